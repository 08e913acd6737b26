//! Shows the contents of a package before anything is written.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::Result;
use prowess::{
    Directory, Finding, Profile, ResourceKind, Severity, SizeLimits, check_directories,
    spec::SKILL_FILE,
};
use prowess_packages::{DiscoveredPackage, FetchedTree, PackagedSkill, TreeFile, discover};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    commands::{count, finding_json, plural},
    context,
    markdown::wrap,
    printer::{Printer, paint, severity_style},
    safe,
};

/// The skills that are described before the others are only counted.
const DESCRIBED: usize = 20;
/// The findings of a skill that are printed without `-v`.
const FINDINGS: usize = 5;
/// The scripts that are named.
const SCRIPTS: usize = 3;
/// The widest column of names.
const WIDEST: usize = 28;
/// The width of lines that are not printed at a terminal.
const USUAL: usize = 100;
/// The lines of a description.
const LINES: usize = 2;

/// The rules that skills of packages are checked by: those of `check`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReviewRules {
    pub(crate) profile: Profile,
    pub(crate) limits: SizeLimits,
}

/// A skill of a package, with what is wrong with it.
#[derive(Debug)]
pub(crate) struct ReviewedSkill {
    pub(crate) skill: PackagedSkill,
    /// The findings of `check` and `audit`, with paths below the folder of the skill.
    pub(crate) findings: Vec<Finding>,
    /// The number of errors of `audit`.
    pub(crate) dangers: usize,
    /// The number of findings of `audit`, which come first.
    audited: usize,
}

impl ReviewedSkill {
    /// Checks and audits skills of fetched packages, on all cores.
    pub(crate) fn all(skills: &[(&PackagedSkill, &FetchedTree)], rules: ReviewRules) -> Vec<Self> {
        let threads = thread::available_parallelism().map_or(1, |it| it.get()).min(skills.len());
        let next = AtomicUsize::new(0);
        let review = || {
            let mut done = Vec::new();
            while let (number, Some((skill, tree))) = {
                let number = next.fetch_add(1, Ordering::Relaxed);
                (number, skills.get(number))
            } {
                done.push((number, Self::new(skill, tree, rules)));
            }
            done
        };
        let mut done = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(review)).collect();
            let mut done = review();
            for other in others {
                done.extend(other.join().unwrap_or_else(|it| std::panic::resume_unwind(it)));
            }
            done
        });
        done.sort_by_key(|it| it.0);
        done.into_iter().map(|it| it.1).collect()
    }

    /// Checks and audits a skill of a fetched package.
    pub(crate) fn new(skill: &PackagedSkill, tree: &FetchedTree, rules: ReviewRules) -> Self {
        let folder =
            if skill.path.is_empty() { tree.folder.clone() } else { tree.folder.join(&skill.path) };
        Self::in_folder(skill.clone(), &folder, rules)
    }

    /// Checks and audits the skill of a folder, if there is one.
    pub(crate) fn of_folder(folder: &Path, files: &[TreeFile], rules: ReviewRules) -> Option<Self> {
        let found = discover(folder, files, "");
        let skill = found.skills.into_iter().find(|it| it.path.is_empty())?;
        Some(Self::in_folder(skill, folder, rules))
    }

    fn in_folder(skill: PackagedSkill, folder: &Path, rules: ReviewRules) -> Self {
        let directories = [Directory::repository(folder)];
        let checked = check_directories(&directories, rules.profile, &rules.limits);
        let mut findings = checked.map(|it| it.findings).unwrap_or_default();
        // The folder that it is installed in has its name, and other skills below it are others.
        findings.retain(|it| {
            let is_own = it.path.parent().is_none_or(|parent| {
                !parent.ancestors().any(|above| {
                    above != folder && above.starts_with(folder) && above.join("SKILL.md").exists()
                })
            });
            it.rule.code != "name-folder" && is_own
        });
        let audited = super::audit(&skill.files, folder);
        let dangers = audited.iter().filter(|it| it.severity == Severity::Error).count();
        let number = audited.len();
        findings.splice(0..0, audited);
        for finding in &mut findings {
            if let Ok(path) = finding.path.strip_prefix(folder) {
                finding.path = path.to_owned();
            }
        }
        Self { skill, findings, dangers, audited: number }
    }

    /// Returns the number of errors of `audit` that an earlier version does not have.
    pub(crate) fn new_dangers(&self, known: &[Finding]) -> usize {
        let is_known = |it: &&Finding| {
            known.iter().any(|old| {
                old.rule.code == it.rule.code
                    && old.message == it.message
                    && old.excerpt == it.excerpt
            })
        };
        self.audited().filter(|it| it.severity == Severity::Error && !is_known(it)).count()
    }

    /// Returns the findings of `audit`, which come first.
    fn audited(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().take(self.audited)
    }

    /// Prints the findings that are worth it.
    pub(crate) fn print_findings(&self, printer: &mut Printer) -> Result<()> {
        let width = printer.width.unwrap_or(USUAL);
        print_findings(self, "", width, printer)
    }

    /// Returns it as JSON.
    pub(crate) fn json(&self) -> Value {
        let PackagedSkill { name, description, path, files, digest, plugin, overlooked, .. } =
            &self.skill;
        json!({
            "name": name,
            "description": description,
            "path": path,
            "plugin": plugin,
            "overlooked": overlooked,
            "digest": digest.to_string(),
            "files": files.iter().map(|it| json!({
                "path": it.path, "size": it.size, "executable": it.executable,
                "digest": it.digest.to_string(),
            })).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(finding_json).collect::<Vec<_>>(),
        })
    }

    fn scripts(&self) -> Vec<&str> {
        let files = self.skill.files.iter();
        let scripts =
            files.filter(|it| it.executable || ResourceKind::of(&it.path) == ResourceKind::Script);
        scripts.map(|it| &*it.path).collect()
    }

    /// Describes its files: their number, size and scripts.
    fn contents(&self) -> String {
        let files = &self.skill.files;
        let size = size_text(files.iter().map(|it| it.size).sum());
        let mut text = format!("{}, {size}", count(files.len(), "file"));
        let scripts = self.scripts();
        if !scripts.is_empty() {
            let named = scripts.iter().take(SCRIPTS).map(|it| safe::line(it).into_owned());
            let named: Vec<String> = named.collect();
            let more = match scripts.len().saturating_sub(SCRIPTS) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let what = plural(scripts.len(), "script", "scripts");
            text.push_str(&format!(", {what}: {}{more}", named.join(", ")));
        }
        text
    }
}

/// Prints skills: names and descriptions, files, scripts, findings.
pub(crate) fn print_skills(skills: &[&ReviewedSkill], printer: &mut Printer) -> Result<()> {
    let width = printer.width.unwrap_or(USUAL);
    let names = skills.iter().map(|it| safe::line(&it.skill.name).width());
    let room = names.max().unwrap_or(0).min(WIDEST);
    let shown = if printer.verbose { skills.len() } else { DESCRIBED };
    for (at, reviewed) in skills.iter().enumerate() {
        if at >= shown && reviewed.dangers == 0 {
            continue;
        }
        print_skill(reviewed, room, width, printer)?;
    }
    let hidden = skills.iter().skip(shown).filter(|it| it.dangers == 0).count();
    if hidden > 0 {
        printer.line(format_args!("… and {}; `-v` shows all", count(hidden, "more skill")))?;
    }
    Ok(())
}

fn print_skill(
    reviewed: &ReviewedSkill,
    room: usize,
    width: usize,
    printer: &mut Printer,
) -> Result<()> {
    let name = safe::line(&reviewed.skill.name).into_owned();
    let indent = " ".repeat(room + 2);
    let text_room = width.saturating_sub(room + 2).max(24);
    let pad = " ".repeat(room.saturating_sub(name.width()));
    let description = safe::line(&reviewed.skill.description).into_owned();
    let mut lines = wrap(&description, text_room, "");
    if lines.len() > LINES && !printer.verbose {
        lines.truncate(LINES);
        if let Some(last) = lines.last_mut() {
            *last = safe::cut(&format!("{last} …"), text_room);
        }
    }
    let first = if lines.is_empty() { String::new() } else { lines.remove(0) };
    printer.line(format_args!("{}{pad}  {first}", printer.name(&name)).to_string().trim_end())?;
    for line in lines {
        printer.line(format_args!("{indent}{line}"))?;
    }
    for line in wrap(&reviewed.contents(), text_room, "") {
        printer.line(format_args!("{indent}{}", printer.dim(&line)))?;
    }
    print_findings(reviewed, &indent, text_room, printer)
}

fn print_findings(
    reviewed: &ReviewedSkill,
    indent: &str,
    text_room: usize,
    printer: &mut Printer,
) -> Result<()> {
    let least = if printer.verbose { Severity::Info } else { Severity::Warning };
    let worth: Vec<&Finding> = reviewed.findings.iter().filter(|it| it.severity >= least).collect();
    let most = if printer.verbose { worth.len() } else { FINDINGS.max(reviewed.dangers) };
    for finding in worth.iter().take(most) {
        for (at, line) in finding_lines(finding, text_room).iter().enumerate() {
            let (style, label) = severity_style(finding.severity);
            let line = match at {
                0 => line.replacen(label, &paint(label, style, printer.colored), 1),
                _ => line.clone(),
            };
            printer.line(format_args!("{indent}{line}"))?;
        }
    }
    if worth.len() > most {
        let more = plural(worth.len() - most, "more finding", "more findings");
        printer
            .line(format_args!("{indent}{}", printer.dim(&format!("{more}; `-v` shows all"))))?;
    }
    Ok(())
}

fn finding_lines(finding: &Finding, width: usize) -> Vec<String> {
    let line = finding.line.map(|it| format!(":{it}")).unwrap_or_default();
    let path = finding.path.display().to_string();
    let place = if path.is_empty() { String::new() } else { format!("{path}{line}: ") };
    let (_, label) = severity_style(finding.severity);
    let text = format!("{label}[{}] {place}{}", finding.rule.code, finding.message);
    wrap(&safe::line(&text), width, "  ")
}

/// Returns what was left out of a package, one line for each reason.
pub(crate) fn left_out_lines(findings: &[Finding], tree: &FetchedTree) -> Vec<String> {
    let lines = findings.iter().map(|it| {
        let path = it.path.strip_prefix(&tree.folder).unwrap_or(&it.path).display().to_string();
        let line = it.line.map(|it| format!(":{it}")).unwrap_or_default();
        let place = if path.is_empty() { String::new() } else { format!("{path}{line}: ") };
        format!("{place}{} [{}]", it.message, it.rule.code)
    });
    lines.collect()
}

/// Prints which skills of a package were left out, what else is wrong with it, and which skills other package managers
/// do not see.
pub(crate) fn print_left_out(found: &DiscoveredPackage, tree: &FetchedTree, printer: &mut Printer) {
    let least = if printer.verbose { Severity::Info } else { Severity::Warning };
    // What is wrong with skills that are there is printed with them.
    let paths: BTreeSet<&Path> = found.skills.iter().map(|it| Path::new(&it.path)).collect();
    let is_of_skill = |it: &&Finding| {
        let path = it.path.strip_prefix(&tree.folder).unwrap_or(&it.path);
        let mut above = path.ancestors().filter(|it| !it.as_os_str().is_empty());
        above.any(|it| paths.contains(it))
            || path == Path::new(SKILL_FILE) && paths.contains(Path::new(""))
    };
    let findings = found.findings.iter().filter(|it| it.severity >= least);
    let findings = findings.filter(|it| !is_of_skill(it)).cloned();
    let mut lines = left_out_lines(&findings.collect::<Vec<_>>(), tree);
    lines.extend(found.notes.iter().map(|it| {
        let line = it.line.map(|it| format!(":{it}")).unwrap_or_default();
        let place = if it.path.is_empty() { String::new() } else { format!("{}{line}: ", it.path) };
        format!("{place}{}", it.message)
    }));
    lines.extend(tree.notes.iter().cloned());
    let most = if printer.verbose { lines.len() } else { FINDINGS };
    for line in lines.iter().take(most) {
        printer.warning(line);
    }
    if lines.len() > most {
        let more = plural(lines.len() - most, "more line", "more lines");
        printer.warning(&format!("{more} about what was left out or repaired; `-v` shows all"));
    }
    let overlooked: Vec<&str> =
        found.skills.iter().filter(|it| it.overlooked).map(|it| &*it.name).collect();
    if !overlooked.is_empty() {
        let names = context::quote_entries(&overlooked);
        let skills = plural(overlooked.len(), "skill", "skills");
        printer.note(&format!(
            "{skills} that other package managers do not see where they are: {names}"
        ));
    }
}

/// Formats a size, such as `48.2 kB`.
pub(crate) fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let number = bytes as f64;
    match UNITS.iter().find(|it| number >= it.1) {
        Some((unit, factor)) => format!("{:.1} {unit}", number / factor),
        None => plural(usize::try_from(bytes).unwrap_or(usize::MAX), "byte", "bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [0, 1, 999, 1000, 48_211, 1_300_000, 2_000_000_000].map(size_text),
            ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "48.2 kB", "1.3 MB", "2.0 GB"]
        );
    }
}
