//! Which skills of a package are meant.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io::{self, IsTerminal as _},
    sync::atomic::AtomicBool,
};

use anyhow::Result;
use prowess::{did_you_mean, is_plain_name, nearest};
use prowess_packages::{DiscoveredPackage, FetchedTree, PackagedSkill};
use unicode_width::UnicodeWidthStr as _;

use super::review;
use crate::{
    cli_error::CliError,
    commands::count,
    context::{quote_entries, shell_quote},
    printer::{self, Printer},
    safe,
};

/// The widest column of names.
const WIDEST: usize = 32;
/// The skills that an error names.
const NAMED: usize = 20;

/// The skills that were chosen, and those that cannot be installed beside them.
#[derive(Debug, Default)]
pub(crate) struct SkillChoice<'p> {
    pub(crate) skills: Vec<&'p PackagedSkill>,
    /// Each with the skill of the same name that is taken instead.
    pub(crate) doubles: Vec<(&'p PackagedSkill, &'p PackagedSkill)>,
}

/// Chooses skills by name; all of them; the only one; or those that the person at the terminal
/// names. `None` if that person chooses none.
pub(crate) fn choose<'p>(
    package: &'p DiscoveredPackage,
    tree: &FetchedTree,
    names: &[String],
    all: bool,
    printer: &mut Printer,
) -> Result<Option<SkillChoice<'p>>> {
    if package.skills.is_empty() {
        return Err(no_skills(package, tree).into());
    }
    if !names.is_empty() {
        let mut skills: Vec<&PackagedSkill> = Vec::new();
        for name in names {
            let found = find(package, tree, name)?;
            if !skills.iter().any(|it| it.path == found.path) {
                skills.push(found);
            }
        }
        return Ok(Some(SkillChoice { skills, doubles: Vec::new() }));
    }
    let offered: Vec<&PackagedSkill> = package.skills.iter().filter(|it| !it.internal).collect();
    // An author who offers nothing but such skills means them.
    let offered = if offered.is_empty() { package.skills.iter().collect() } else { offered };
    if all || offered.len() == 1 {
        return Ok(Some(one_of_each_name(offered)));
    }
    if printer.json || !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(several(&offered, tree).into());
    }
    print_choices(&offered, printer)?;
    let question = "Which of them? Numbers or names, such as `1 3` or `1-4`\n";
    let question = printer::wrap_for_stderr(question.trim_end()) + "\n";
    let picked =
        printer::ask(&question, "numbers, [a]ll, [n]one", &AtomicBool::new(false), |it| {
            pick(it, &offered)
        })?;
    let picked = picked.unwrap_or_default();
    Ok((!picked.is_empty()).then(|| one_of_each_name(picked)))
}

/// Returns the name that a skill is installed under: its own, or one like it that a folder can have.
pub(crate) fn installed_name(name: &str) -> String {
    if is_plain_name(name) {
        return name.to_owned();
    }
    let plain = name.to_lowercase().replace(|it: char| !it.is_alphanumeric(), "-");
    plain.split('-').filter(|it| !it.is_empty()).collect::<Vec<_>>().join("-")
}

/// Leaves out skills that would be installed under the name of another one.
fn one_of_each_name(skills: Vec<&PackagedSkill>) -> SkillChoice<'_> {
    let mut chosen = SkillChoice::default();
    let mut known: BTreeMap<String, &PackagedSkill> = BTreeMap::new();
    for skill in skills {
        match known.entry(installed_name(&skill.name).to_lowercase()) {
            Entry::Occupied(first) => chosen.doubles.push((skill, *first.get())),
            Entry::Vacant(place) => {
                place.insert(skill);
                chosen.skills.push(skill);
            }
        }
    }
    chosen
}

/// Finds a skill by its name, by its plugin and name, or by its folder.
fn find<'p>(
    package: &'p DiscoveredPackage,
    tree: &FetchedTree,
    name: &str,
) -> Result<&'p PackagedSkill, CliError> {
    let wanted = name.trim_end_matches('/');
    let is_named = |it: &&PackagedSkill| {
        let qualified = it.plugin.as_ref().map(|plugin| format!("{plugin}:{}", it.name));
        it.name.eq_ignore_ascii_case(wanted)
            || qualified.is_some_and(|it| it.eq_ignore_ascii_case(wanted))
    };
    let found: Vec<&PackagedSkill> = match package.skills.iter().find(|it| it.path == wanted) {
        Some(skill) if !wanted.is_empty() => vec![skill],
        _ => package.skills.iter().filter(is_named).collect(),
    };
    match found[..] {
        [one] => return Ok(one),
        [] => {}
        _ => {
            let paths: Vec<&str> = found.iter().map(|it| &*it.path).collect();
            let message =
                format!("`{name}` is there {} times: {}", found.len(), quote_entries(&paths));
            let hint = format!("name one by its folder, as in `--skill {}`", shell_quote(paths[0]));
            return Err(CliError::invalid_input(message).hint(hint));
        }
    }
    // Its folder may be known by a finding that says why it was left out.
    let left_out = package.findings.iter().find(|it| {
        it.path.ancestors().any(|it| it.file_name().is_some_and(|folder| folder == wanted))
    });
    if let Some(finding) = left_out {
        let path = finding.path.strip_prefix(&tree.folder).unwrap_or(&finding.path);
        let message = format!("`{name}` was left out: {} ({})", finding.message, path.display());
        return Err(CliError::invalid_input(message).hint(&*finding.hint));
    }
    let fault = CliError::invalid_input(format!("there is no skill `{name}` in {}", shown(tree)));
    Err(match nearest(wanted, package.skills.iter().map(|it| &*it.name)) {
        Some(near) => fault.hint(did_you_mean(near)),
        None => {
            let names: Vec<&str> = package.skills.iter().map(|it| &*it.name).collect();
            fault.hint(format!("it has {}", listed(&names)))
        }
    })
}

fn no_skills(package: &DiscoveredPackage, tree: &FetchedTree) -> CliError {
    let mut fault = CliError::invalid_input(format!("there is no skill in {}", shown(tree)));
    for line in review::left_out_lines(&package.findings, tree).into_iter().take(5) {
        fault = fault.hint(line);
    }
    if let Some((name, source)) = package.elsewhere.first() {
        let typed = shell_quote(&source.to_string());
        fault = fault.hint(format!("its plugin `{name}` is elsewhere: `prowess add {typed}`"));
    }
    for note in package.notes.iter().take(3) {
        fault = fault.hint(note.message.clone()).hint(note.hint.clone());
    }
    if package.findings.is_empty() && package.notes.is_empty() && package.elsewhere.is_empty() {
        fault = fault.hint("a skill is a folder with a `SKILL.md`");
    }
    fault
}

fn several(offered: &[&PackagedSkill], tree: &FetchedTree) -> CliError {
    let names: Vec<&str> = offered.iter().map(|it| &*it.name).collect();
    let skills = count(offered.len(), "skill");
    CliError::invalid_input(format!("there are {skills} in {}: {}", shown(tree), listed(&names)))
        .hint("choose with `--skill NAME`, or install all with `--all`")
}

/// Lists names, and counts the rest.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|it| format!("`{it}`")).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Names the place of a package.
fn shown(tree: &FetchedTree) -> String {
    format!("`{}`", tree.source)
}

/// Prints the skills with numbers.
fn print_choices(offered: &[&PackagedSkill], printer: &mut Printer) -> Result<()> {
    let digits = offered.len().to_string().len();
    let width = printer.err_width().max(40);
    let room = offered.iter().map(|it| safe::line(&it.name).width()).max().unwrap_or(0).min(WIDEST);
    for (number, skill) in offered.iter().enumerate() {
        let name = safe::line(&skill.name).into_owned();
        let pad = " ".repeat(room.saturating_sub(name.width()));
        let left = width.saturating_sub(digits + room + 4).max(10);
        let description = safe::cut(&safe::line(&skill.description), left);
        let line = format!("{:>digits$}  {}{pad}  {description}", number + 1, printer.name(&name));
        printer.line(line.trim_end())?;
    }
    printer.flush()
}

/// Reads an answer such as `1 3-5 pdf`, `all` or `none`.
fn pick<'p>(answer: &str, offered: &[&'p PackagedSkill]) -> Option<Vec<&'p PackagedSkill>> {
    match answer {
        "a" | "all" | "*" => return Some(offered.to_vec()),
        "n" | "no" | "none" | "q" => return Some(Vec::new()),
        _ => {}
    }
    let words = answer.split([' ', ',']).filter(|it| !it.is_empty());
    let mut picked: Vec<&PackagedSkill> = Vec::new();
    for word in words {
        let range = match word.split_once('-') {
            Some((first, last)) => first.parse().ok().zip(last.parse().ok()),
            None => word.parse().ok().map(|it: usize| (it, it)),
        };
        let found: Vec<&PackagedSkill> = match range {
            Some((first, last)) if 1 <= first && first <= last && last <= offered.len() => {
                offered[first - 1..last].to_vec()
            }
            Some(_) => return None,
            None => {
                let named: Vec<_> = offered
                    .iter()
                    .copied()
                    .filter(|it| it.name.eq_ignore_ascii_case(word))
                    .collect();
                if named.is_empty() {
                    return None;
                }
                named
            }
        };
        for skill in found {
            if !picked.iter().any(|it| it.path == skill.path) {
                picked.push(skill);
            }
        }
    }
    (!picked.is_empty()).then_some(picked)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use prowess_packages::discover;

    use super::*;

    #[test]
    fn numbers_names_and_ranges_choose() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut files = Vec::new();
        for name in ["docx", "pdf", "xlsx"] {
            let text = format!("---\nname: {name}\ndescription: Use it.\n---\n\nText.\n");
            fs::create_dir(folder.path().join(name)).expect("it is new");
            fs::write(folder.path().join(name).join("SKILL.md"), &text).expect("it is new");
            let digest = prowess_packages::FileDigest::of(text.as_bytes());
            let path = format!("{name}/SKILL.md");
            files.push(prowess_packages::TreeFile::new(path, digest, text.len() as u64, false));
        }
        let found = discover(folder.path(), &files, "");
        let offered: Vec<&PackagedSkill> = found.skills.iter().collect();
        let names = |answer| {
            pick(answer, &offered)
                .map(|it| it.iter().map(|it| &*it.name).collect::<Vec<_>>().join(" "))
        };
        let answers = ["1", "3, 1", "2-3", "PDF 1", "a", "n", "1-1 docx"].map(names);
        let expected = ["docx", "xlsx docx", "pdf xlsx", "pdf docx", "docx pdf xlsx", "", "docx"];
        assert_eq!(answers, expected.map(|it| Some(it.to_owned())));
        for wrong in ["", "0", "4", "2-9", "3-1", "y", "ppt"] {
            assert_eq!(names(wrong), None, "{wrong:?}");
        }
    }
}
