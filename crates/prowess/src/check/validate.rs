//! Applies the rules: to the fields of a frontmatter, to a body, to the files of a folder, and to
//! skills next to each other.

mod name;
mod fields;
mod reference;
mod hidden;
mod body;
mod guidance;
mod beside;

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    finding::{
        Finding, Position, Report, Severity,
        rule::{self, Profile, RULES},
    },
    read::{
        definition::{fences, script},
        gather::gather,
        manifest::{Manifest, Type},
        parse::{DecodedText, SplitDocument, decode},
        source::{Directory, DiscoveredSkill, Folder, Listing, SizeLimits, Source},
    },
};

use self::fields::check_fields;
pub(crate) use self::{
    fields::{check_at_load, support_for},
    guidance::is_template_text,
};

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckResult {
    /// The number of skills, good and bad.
    pub skills: usize,
    /// The findings.
    pub findings: Vec<Finding>,
    /// The scripts of skills of type script, for callers that can analyse them.
    pub scripts: Vec<CheckedScript>,
    /// Their files, sorted by path; one that several paths lead to is listed once.
    pub files: Vec<CheckedFile>,
    /// The directories on disk that bound the check, with all links resolved.
    pub roots: Vec<PathBuf>,
}

/// A `SKILL.md` that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckedFile {
    /// The path of the file, as displayed in findings.
    pub path: PathBuf,
    /// The same file with all links resolved; `None` if it is not on disk.
    pub real: Option<PathBuf>,
    /// Whether a link led to it.
    pub linked: bool,
}

/// The script of a script skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckedScript {
    /// The `SKILL.md` that contains it.
    pub path: PathBuf,
    /// The line of its first line there, counted from 1.
    pub line: usize,
    /// The script.
    pub text: String,
}

/// The reason why there was nothing to check.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The path does not exist or cannot be opened.
    #[error("cannot open `{}`", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// There is no skill at the path.
    #[error("there is no skill in `{}`", path.display())]
    NoSkill {
        /// The path.
        path: PathBuf,
    },
}

/// Checks the skills at each path: a skill's folder, its file, or a folder of skills. A link from one
/// may lead into another.
pub fn check(
    paths: &[PathBuf],
    profile: Profile,
    limits: &SizeLimits,
) -> Result<CheckResult, CheckError> {
    let directories: Vec<Directory> = paths.iter().map(Directory::new).collect();
    check_directories(&directories, profile, limits)
}

/// Does the same for directories with resolved paths, each with its own search rules.
pub fn check_directories(
    directories: &[Directory],
    profile: Profile,
    limits: &SizeLimits,
) -> Result<CheckResult, CheckError> {
    let resolved = directories.iter().map(|it| {
        Folder::resolve_checked(&it.path)
            .map_err(|source| CheckError::Open { path: it.path.clone(), source })
    });
    let (folders, roots): (Vec<PathBuf>, Vec<PathBuf>) =
        resolved.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let allowed: Arc<[PathBuf]> = roots.into();
    let folders = folders.into_iter().zip(directories).map(|(folder, directory)| {
        Folder::open(directory, folder.clone(), allowed.clone(), limits)
            .map_err(|source| CheckError::Open { path: folder.clone(), source })
    });
    let mut folders = folders.collect::<Result<Vec<_>, _>>()?;
    // The same folder under another name contains nothing new.
    let mut seen = HashSet::new();
    folders.retain(|it| seen.insert(it.real().to_owned()));
    let sources: Vec<&dyn Source> = folders.iter().map(|it| it as &dyn Source).collect();
    let mut checked = check_sources(&sources, profile, limits);
    checked.roots = allowed.to_vec();
    if checked.skills == 0 && checked.findings.is_empty() {
        let path = directories.first().map(|it| it.path.clone()).unwrap_or_default();
        return Err(CheckError::NoSkill { path });
    }
    Ok(checked)
}

/// Checks the skills of sources, such as those that came with the program.
pub fn check_sources(
    sources: &[&dyn Source],
    profile: Profile,
    limits: &SizeLimits,
) -> CheckResult {
    let gathered = gather(sources, limits, Listing::AtOnce, |number, found| {
        check_found(sources[number], &found, profile, limits)
    });
    let mut made = gathered.made;
    // The same file at two paths is one skill.
    made.sort_by(|a, b| {
        (a.linked, a.has_other_folder_name(), &a.path).cmp(&(
            b.linked,
            b.has_other_folder_name(),
            &b.path,
        ))
    });
    let mut seen = HashSet::new();
    made.retain(|it| it.real.as_ref().is_none_or(|real| seen.insert(real.clone())));
    let left_out: HashSet<&PathBuf> = gathered.left_out.iter().map(|it| &it.1).collect();
    let skills = made.len() + left_out.len();
    let mut findings = find_name_clashes(&made, profile);
    let scripts = made.iter_mut().filter_map(|it| it.script.take()).collect();
    let mut files: Vec<CheckedFile> = made
        .iter()
        .map(|it: &CheckedSkill| CheckedFile {
            path: it.path.to_path_buf(),
            real: it.real.as_deref().map(Path::to_owned),
            linked: it.linked,
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    findings.extend(made.into_iter().flat_map(|it| it.findings));
    findings.extend(gathered.findings.into_iter().filter_map(|it| adjust_severity(it, profile)));
    findings.sort_by(|a, b| (&a.path, sort_key(a, profile)).cmp(&(&b.path, sort_key(b, profile))));
    findings.dedup();
    CheckResult { skills, findings, scripts, files, roots: Vec::new() }
}

/// Returns the sort key of a finding within a file: the reference library reports in the order of
/// its rules, all others in that of lines.
fn sort_key(finding: &Finding, profile: Profile) -> (Option<usize>, usize) {
    (finding.line.filter(|_| profile != Profile::Reference), order(finding))
}

/// Checks one text, without the folder around it.
pub fn check_text(bytes: &[u8], folder: Option<&str>, profile: Profile) -> Vec<Finding> {
    let mut report = Report::new(profile, Severity::Info);
    let decoded = decode(bytes);
    let reading = SplitDocument::new(&decoded, &mut report);
    check_document(&decoded, &reading, folder, &mut report);
    let mut findings = report.findings;
    findings.sort_by_key(|it| sort_key(it, profile));
    add_excerpts(&decoded.text, &mut findings);
    findings
}

/// Applies every rule about one document; also returns the manifest if there is one.
fn check_document(
    decoded: &DecodedText<'_>,
    reading: &SplitDocument<'_>,
    folder: Option<&str>,
    report: &mut Report,
) -> Option<Manifest> {
    let manifest = reading.manifest(folder, report);
    let refused = report.profile != Profile::Lenient && reference::check(decoded, reading, report);
    // The reference library reports nothing more about a text it cannot read.
    let stops = report.profile == Profile::Reference && refused;
    if reading.fields.is_some() && !stops {
        check_fields(reading, manifest.as_ref(), folder, report);
        hidden::check_document(reading, report);
        hidden::check_look_alikes(reading, report);
    }
    if let Some(manifest) = manifest.as_ref().filter(|_| report.profile == Profile::Spec) {
        guidance::check(reading, manifest, report);
    }
    if reading.document.frontmatter.is_some() {
        body::check(reading, manifest.as_ref(), report);
    }
    manifest
}

fn is_repaired(report: &Report) -> bool {
    let repaired = [&rule::YAML_REPAIRED, &rule::YAML_RESCUED];
    report.findings.iter().any(|it| repaired.iter().any(|rule| std::ptr::eq(*rule, it.rule)))
}

/// The longest line that is shown with a finding, in bytes.
const MAX_EXCERPT: usize = 8192;

/// Adds to each finding the line that it is about.
fn add_excerpts(text: &str, findings: &mut [Finding]) {
    if findings.is_empty() {
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    for finding in findings {
        let line = finding.line.and_then(|it| lines.get(it.checked_sub(1)?));
        finding.excerpt = line.filter(|it| it.len() <= MAX_EXCERPT).map(|it| (*it).into());
    }
}

/// One checked skill.
struct CheckedSkill {
    path: Arc<Path>,
    real: Option<Arc<Path>>,
    linked: bool,
    name: Option<Box<str>>,
    findings: Vec<Finding>,
    script: Option<CheckedScript>,
}

impl CheckedSkill {
    /// Whether the folder has another name than the skill.
    fn has_other_folder_name(&self) -> bool {
        let folder = self.path.parent().and_then(Path::file_name);
        folder.is_none_or(|it| self.name.as_deref().is_none_or(|name| it != name))
    }
}

fn check_found(
    source: &dyn Source,
    found: &DiscoveredSkill,
    profile: Profile,
    limits: &SizeLimits,
) -> CheckedSkill {
    let mut report = Report::new(profile, Severity::Info);
    let bytes = match source.read(&found.path) {
        Ok(bytes) => bytes,
        Err(error) => {
            report.fatal(
                &rule::FILE_UNREADABLE,
                Position::FILE,
                error.to_string(),
                "check the file",
            );
            found.head.clone()
        }
    };
    let folder = found.folder_name();
    let decoded = decode(&bytes);
    let reading = SplitDocument::new(&decoded, &mut report);
    let manifest = check_document(&decoded, &reading, folder.as_deref(), &mut report);
    beside::check(source, found, &reading, &mut report);
    let mut findings = report.findings;
    add_excerpts(&decoded.text, &mut findings);
    findings.extend(too_large(found, limits).and_then(|it| adjust_severity(it, profile)));
    for finding in &mut findings {
        if finding.path.as_os_str().is_empty() {
            finding.path = found.path.to_path_buf();
        }
    }
    CheckedSkill {
        path: found.path.clone(),
        real: found.real.clone(),
        linked: found.linked,
        script: manifest.as_ref().and_then(|it| script_of(it, &reading, &found.path)),
        name: manifest.map(|it| it.name),
        findings,
    }
}

fn script_of(
    manifest: &Manifest,
    reading: &SplitDocument<'_>,
    path: &Path,
) -> Option<CheckedScript> {
    let body = &reading.document.body;
    let fences = fences(body.text);
    let script = script(&fences).filter(|_| manifest.kind == Type::Script)?;
    let (path, line, text) = (path.to_owned(), body.line + script.line, script.text.clone());
    Some(CheckedScript { path, line, text })
}

/// Returns the finding about a skill whose total size is too large.
pub(crate) fn too_large(found: &DiscoveredSkill, limits: &SizeLimits) -> Option<Finding> {
    let (total, limit) = (found.total(), limits.max_skill_size);
    (total > limit).then(|| {
        Finding::new(
            &rule::SKILL_TOO_LARGE,
            Severity::Error,
            &found.path,
            format!("the skill has {total} bytes, more than {limit}, and is left out"),
            "make it smaller, or raise the limit on the size of a skill",
        )
    })
}

/// Returns findings about skills whose names clash.
fn find_name_clashes(made: &[CheckedSkill], profile: Profile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: HashMap<String, &CheckedSkill> = HashMap::new();
    let mut similar: HashMap<String, &CheckedSkill> = HashMap::new();
    for it in made {
        let Some(name) = &it.name else { continue };
        let first = *seen.entry(name::fold_look_alikes(name)).or_insert(it);
        let other = match std::ptr::eq(first, it) {
            true => *similar.entry(name::skeleton(name)).or_insert(it),
            false => first,
        };
        let other_name = other.name.as_deref().unwrap_or_default();
        let (rule, message) = if !std::ptr::eq(other, it) && other_name == &**name {
            (&rule::NAME_TAKEN, format!("`{}` has the same name, `{name}`", other.path.display()))
        } else if !std::ptr::eq(other, it) {
            let message =
                format!("`{name}` looks like `{other_name}` of `{}`", other.path.display());
            (&rule::NAME_CONFUSABLE, message)
        } else if let Some(known) = name::imitated(name) {
            let message = format!("`{name}` looks like `{known}`, a well-known name");
            (&rule::NAME_CONFUSABLE, message)
        } else {
            continue;
        };
        if let Some(severity) = rule.severity(profile) {
            findings.push(Finding::new(rule, severity, &it.path, message, "rename one of them"));
        }
    }
    findings
}

/// Adjusts the severity of a source's finding to the profile; one that rejects a skill stays an
/// error.
fn adjust_severity(mut finding: Finding, profile: Profile) -> Option<Finding> {
    let severity = finding.rule.severity(profile)?;
    finding.severity = finding.severity.max(severity);
    Some(finding)
}

fn order(finding: &Finding) -> usize {
    RULES.iter().position(|it| std::ptr::eq(*it, finding.rule)).unwrap_or(RULES.len())
}

#[cfg(test)]
mod tests;
