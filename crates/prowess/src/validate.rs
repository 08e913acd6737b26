//! The rules, applied: to the fields of a frontmatter, to a body, to the files of a folder, and to
//! skills that lie side by side.

mod name;
mod fields;
mod hidden;
mod body;
mod beside;

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    finding::{At, Finding, Report, Severity},
    gather::gather,
    parse::{Reading, decode},
    rule::{self, Profile, RULES},
    skill::Manifest,
    source::{Folder, Found, Limits, Source},
};

pub(crate) use self::fields::at_load;
use self::fields::fields;

/// What was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// How many skills there were, good and bad.
    pub skills: usize,
    /// What is wrong with them.
    pub findings: Vec<Finding>,
}

/// There was nothing to check.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The path does not exist or cannot be opened.
    #[error("cannot open `{}`", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no skill at the path.
    #[error("there is no skill in `{}`", path.display())]
    NoSkill {
        /// The path.
        path: PathBuf,
    },
}

/// Checks the skills at each path: a skill's folder, its file, or a folder of skills.
pub fn check(paths: &[PathBuf], profile: Profile, limits: &Limits) -> Result<Checked, CheckError> {
    let mut all = Checked { skills: 0, findings: Vec::new() };
    for path in paths {
        let opened = |source| CheckError::Open { path: path.clone(), source };
        let source = Folder::open_any(path, limits).map_err(opened)?;
        let checked = check_source(&source, profile, limits);
        if checked.skills == 0 && checked.findings.is_empty() {
            return Err(CheckError::NoSkill { path: path.clone() });
        }
        all.skills += checked.skills;
        all.findings.extend(checked.findings);
    }
    Ok(all)
}

/// Checks the skills of a source, such as those that came with the program.
pub fn check_source(source: &dyn Source, profile: Profile, limits: &Limits) -> Checked {
    let gathered =
        gather(&[source], limits, |_, found| check_found(source, &found, profile, limits));
    let mut made = gathered.made;
    // The same file by two ways is one skill.
    made.sort_by(|a, b| (a.linked, &a.path).cmp(&(b.linked, &b.path)));
    let mut seen = HashSet::new();
    made.retain(|it| seen.insert(it.real.clone()));
    let skills = made.len() + gathered.left_out.len();
    let mut findings = neighbours(&made, profile);
    findings.extend(made.into_iter().flat_map(|it| it.findings));
    findings.extend(gathered.findings.into_iter().filter_map(|it| weighed(it, profile)));
    // The reference library reports in the order of its rules, everybody else in that of lines.
    let line = |it: &Finding| it.line.filter(|_| profile != Profile::Reference);
    findings.sort_by(|a, b| (&a.path, line(a), order(a)).cmp(&(&b.path, line(b), order(b))));
    Checked { skills, findings }
}

/// Checks one text, without the folder around it.
pub fn check_text(bytes: &[u8], folder: Option<&str>, profile: Profile) -> Vec<Finding> {
    let mut report = Report::new(profile, Severity::Info);
    let decoded = decode(bytes);
    let reading = Reading::new(&decoded, &mut report);
    document(&reading, folder, &mut report);
    let mut findings = report.findings;
    if profile == Profile::Reference {
        findings.sort_by_key(order);
    } else {
        findings.sort_by_key(|it| (it.line, order(it)));
    }
    findings
}

/// Every rule about one document; with it, the manifest if there is one.
fn document(reading: &Reading<'_>, folder: Option<&str>, report: &mut Report) -> Option<Manifest> {
    let manifest = reading.manifest(folder, report);
    if reading.fields.is_some() {
        fields(reading, manifest.as_ref(), folder, report);
        hidden::characters(reading, report);
    }
    if reading.document.frontmatter.is_some() {
        body::rules(reading, manifest.as_ref(), report);
    }
    manifest
}

/// One checked skill.
struct Made {
    path: Arc<Path>,
    real: Arc<Path>,
    linked: bool,
    name: Option<Box<str>>,
    findings: Vec<Finding>,
}

fn check_found(source: &dyn Source, found: &Found, profile: Profile, limits: &Limits) -> Made {
    let mut report = Report::new(profile, Severity::Info);
    let bytes = match source.read(&found.path) {
        Ok(bytes) => bytes,
        Err(error) => {
            report.fatal(&rule::FILE_UNREADABLE, At::FILE, error.to_string(), "check the file");
            found.head.clone()
        }
    };
    let folder = real_folder(found);
    let decoded = decode(&bytes);
    let reading = Reading::new(&decoded, &mut report);
    let manifest = document(&reading, folder.as_deref(), &mut report);
    beside::rules(source, found, &reading, limits, &mut report);
    let mut findings = report.findings;
    for finding in &mut findings {
        if finding.path.as_os_str().is_empty() {
            finding.path = found.path.to_path_buf();
        }
    }
    Made {
        path: found.path.clone(),
        real: found.real.clone(),
        linked: found.linked,
        name: manifest.map(|it| it.name),
        findings,
    }
}

/// The name of the folder that a skill lies in, also when its path was given as `.`.
fn real_folder(found: &Found) -> Option<String> {
    let shown = found.path.parent().and_then(Path::file_name);
    let real = found.real.parent().and_then(Path::file_name);
    shown.or(real).map(|it| it.to_string_lossy().into_owned())
}

/// Findings about skills whose names clash.
fn neighbours(made: &[Made], profile: Profile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: HashMap<String, &Made> = HashMap::new();
    for it in made {
        let Some(name) = &it.name else { continue };
        let Some(first) = seen.get(&name::folded(name)) else {
            seen.insert(name::folded(name), it);
            continue;
        };
        let same = first.name.as_deref() == Some(&**name);
        let rule = if same { &rule::NAME_TAKEN } else { &rule::NAME_CONFUSABLE };
        let first_name = first.name.as_deref().unwrap_or_default();
        let message = if same {
            format!("`{name}` is the name of `{}` too", first.path.display())
        } else {
            format!("`{name}` looks like `{first_name}` of `{}`", first.path.display())
        };
        if let Some(severity) = rule.severity(profile) {
            findings.push(Finding::about(rule, severity, &it.path, message, "rename one of them"));
        }
    }
    findings
}

/// A source's finding, weighed by the profile; what leaves a skill out stays an error.
fn weighed(mut finding: Finding, profile: Profile) -> Option<Finding> {
    let severity = finding.rule.severity(profile)?;
    finding.severity = finding.severity.max(severity);
    Some(finding)
}

fn order(finding: &Finding) -> usize {
    RULES.iter().position(|it| std::ptr::eq(*it, finding.rule)).unwrap_or(RULES.len())
}

#[cfg(test)]
mod tests;
