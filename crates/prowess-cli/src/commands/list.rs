mod follow;

use std::{
    borrow::Cow,
    cmp::Reverse,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::{Directory, Finding, Library, Profile, Severity, Skill, did_you_mean};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::{FindingJson, ResourceJson, count, finding_json, fold_findings, resource_json};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    context::{self, shell_quote},
    printer::Printer,
    safe,
    skill_count::SkillCount,
    suggest,
};

/// The number of findings printed by default.
const SHOWN: usize = 10;
/// The least width of the column of names.
const LEAST: usize = 20;
/// The widest column of names.
const WIDEST: usize = 36;

/// List skills
///
/// At a terminal, descriptions are cut to its width. In a pipe or file, each skill is one line: its name, a tab,
/// and the full description.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directories to search, as with `--dir`
    #[arg(value_hint = clap::ValueHint::DirPath)]
    paths: Vec<PathBuf>,
    /// Print only the names, one per line
    #[arg(long, conflicts_with = "json", conflicts_with = "watch")]
    short: bool,
    /// Show only skills with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Keep running and print a line for each change, until Ctrl-C
    ///
    /// A skill was added (`+`), removed (`-`) or changed (`~`); a finding appeared (`!`) or was fixed (`✓`). With
    /// `--json`, each line is a document with an `event`: `list` first, then `added`, `removed`, `changed`, `found`
    /// or `cleared`.
    #[arg(long)]
    watch: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    check_typed_directories(&args.paths, global)?;
    let global = &context::with_paths(global, &args.paths);
    if args.watch {
        return follow::follow(args, global, printer);
    }
    let library = context::leak(context::library(global, printer)?);
    let skills: Vec<&Skill> = library
        .all()
        .filter(|skill: &&Skill| args.tag.as_ref().is_none_or(|tag| skill.manifest.has_tag(tag)))
        .collect();
    if printer.json {
        printer.document(&ListJson::new(library, &skills))?;
    } else if args.short {
        for skill in &skills {
            printer.line(safe::line(&library.address(skill)))?;
        }
        printer.flush()?;
        context::note_left_out(library, printer);
    } else {
        print(library, &skills, args.tag.as_deref(), global, printer)?;
    }
    Ok(status(library))
}

/// Fails with a hint if the words are not directories but may mean a skill.
fn check_typed_directories(paths: &[PathBuf], global: &Global) -> Result<(), CliError> {
    let Some(words) = paths
        .iter()
        .map(|it: &PathBuf| it.to_str().filter(|it| !context::is_path(it)).map(shell_quote))
        .collect::<Option<Vec<_>>>()
    else {
        return Ok(());
    };
    let resolved: Vec<PathBuf> =
        paths.iter().map(|it| context::resolve(&Directory::new(it), global)).collect();
    let (Some(first), Some(path)) = (paths.first(), resolved.first()) else { return Ok(()) };
    if resolved.iter().any(|it| it.exists()) {
        return Ok(());
    }
    let words = words.join(" ");
    let find = format!("`prowess find {words}` searches for skills");
    let is_one_word = paths.len() == 1 && !words.starts_with('\'');
    let hint = match suggest::path(path).filter(|it| Path::new(it).is_dir()) {
        Some(near) => format!("{} {find}", did_you_mean(near)),
        None if is_one_word => {
            format!("{find}, `prowess show {words}` shows the skill with that name")
        }
        None => find,
    };
    Err(CliError::new(format!("there is no directory `{}`", first.display())).hint(hint))
}

/// Prints the list as text.
fn print(
    library: &Library,
    skills: &[&Skill],
    tag: Option<&str>,
    global: &Global,
    printer: &mut Printer,
) -> Result<()> {
    print_table(library, skills, printer)?;
    printer.flush()?;
    let skill = context::config(global)?.skill;
    let is_all =
        skill.enabled.value && skill.include.value.is_none() && skill.exclude.value.is_empty();
    print_summary(library, skills.len(), tag, is_all, printer);
    Ok(())
}

/// Returns a failure if a named path is not a directory.
fn status(library: &Library) -> ExitStatus {
    let is_empty = library.all().next().is_none();
    let mut rules = library.findings().iter().map(|it| it.rule.code);
    match is_empty && rules.any(|it| it == "directory-unreadable") {
        true => ExitStatus::Error,
        false => ExitStatus::Success,
    }
}

#[derive(Serialize)]
struct ListJson<'a> {
    skills: Vec<SkillJson<'a>>,
    findings: Vec<FindingJson<'a>>,
}

impl<'a> ListJson<'a> {
    fn new(library: &'a Library, skills: &[&'a Skill]) -> Self {
        let skills = skills.iter().map(|it| skill_json(it, library.address(it))).collect();
        Self { skills, findings: library.findings().iter().map(finding_json).collect() }
    }
}

#[derive(Serialize)]
struct SkillJson<'a> {
    name: &'a str,
    /// The selector; the name if that is enough.
    address: String,
    description: &'a str,
    r#type: &'a str,
    status: &'a str,
    scope: &'a str,
    path: Cow<'a, str>,
    tags: &'a [Box<str>],
    resources: Vec<ResourceJson<'a>>,
    hidden_by: Option<Cow<'a, str>>,
}

fn skill_json(skill: &Skill, address: String) -> SkillJson<'_> {
    let manifest = &skill.manifest;
    SkillJson {
        name: &manifest.name,
        address,
        description: &manifest.description,
        r#type: manifest.kind.as_str(),
        status: manifest.status().as_str(),
        scope: skill.origin.scope.as_str(),
        path: skill.origin.path.to_string_lossy(),
        tags: &manifest.tags,
        resources: skill.resources().iter().map(resource_json).collect(),
        hidden_by: skill.hidden_by.as_ref().map(|it| it.to_string_lossy()),
    }
}

fn print_table(library: &Library, skills: &[&Skill], printer: &mut Printer) -> Result<()> {
    let names: Vec<(usize, String)> = skills
        .iter()
        .map(|skill: &&Skill| {
            let name = safe::line(&library.address(skill)).into_owned();
            (name.width(), name)
        })
        .collect();
    let most = printer.width.map_or(WIDEST, |it| (it / 3).clamp(LEAST, WIDEST));
    let widest = names.iter().map(|it| it.0).max().unwrap_or(0).min(most);
    for (skill, (width, name)) in skills.iter().zip(names) {
        let pad = widest.saturating_sub(width);
        let description = safe::line(&skill.manifest.description);
        let description = match skill.manifest.status() {
            prowess::Status::Active => description,
            status => format!("({}) {description}", status.as_str()).into(),
        };
        // A terminal that does not report its width gets the usual one.
        let width_of_line = printer.width.or(printer.is_terminal.then_some(80));
        let description = match width_of_line {
            Some(it) => {
                safe::cut(&description, it.saturating_sub(widest.max(width) + 2).max(10)).into()
            }
            None => description,
        };
        let (name, description) = (printer.name(&name), printer.dim(&description));
        if !printer.is_terminal {
            printer.line(format_args!("{name}\t{description}"))?;
            continue;
        }
        printer.line(format_args!("{name}{:pad$}  {description}", ""))?;
    }
    Ok(())
}

/// Prints the number of skills and their findings; `is_all` if none was filtered out.
fn print_summary(
    library: &Library,
    shown: usize,
    tag: Option<&str>,
    is_all: bool,
    printer: &mut Printer,
) {
    let findings = library.findings().iter().filter(|it| !context::is_missing_directory(it));
    let least = if printer.verbose { Severity::Info } else { Severity::Warning };
    let mut worth: Vec<&Finding> = findings.filter(|it| it.severity >= least).collect();
    worth.sort_by_key(|it| Reverse(it.severity));
    let most = if printer.verbose { usize::MAX } else { SHOWN };
    let folders = library
        .all()
        .map(Skill::folder)
        .chain(library.left_out().iter().filter_map(|it| it.parent()));
    let worth = fold_findings(worth, folders);
    for finding in worth.iter().take(most) {
        printer.finding(finding);
    }
    let mut words = match tag {
        None => SkillCount::of(library).to_string(),
        Some(tag) => format!("{} with the tag `{tag}`", count(shown, "skill")),
    };
    if worth.len() > most {
        words.push_str(&format!(", {} more findings (-v shows them)", worth.len() - most));
    }
    printer.note(&words);
    if worth
        .iter()
        .take(most)
        .any(|it: &Cow<'_, Finding>| it.rule.severity(Profile::Spec) > Some(it.severity))
    {
        printer.note("`list` reports what loads; `prowess check` applies the specification, and reports some of these as errors");
    }
    let is_empty = library.all().next().is_none() && library.left_out().is_empty();
    if is_all && is_empty && !library.findings().iter().any(context::is_missing_directory) {
        printer.note("no folder with a `SKILL.md` was found; build output and files ignored by git are searched only if given explicitly");
    }
}
