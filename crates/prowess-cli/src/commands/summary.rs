//! The output of `prowess` without a command: every skill by its directory, the installed agents
//! that load it, and suggestions. It fits on one screen.

mod named;
mod document;
mod screen;

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::{
    CLIENTS, Checkup, Client, NameToChange, Suggestion, Surroundings, examine, installed_clients,
    suggestions,
};

use self::named::SummaryScope;
use super::{count, doctor::configured_directories};
use crate::{
    ExitStatus,
    arguments::Global,
    context::{self, count_in_plugins, shell_quote},
    printer::Printer,
    skill_count::SkillCount,
    surroundings::{plugin_directory, short_path, surroundings},
};

/// The most suggestions.
const SUGGESTED: usize = 3;

/// The contents of the summary.
struct Summary<'a> {
    checkup: &'a Checkup,
    /// The clients that are judged.
    clients: &'a [&'static Client],
    /// Whether they are the installed ones; otherwise none was detected, and they are all known
    /// ones.
    is_detected: bool,
    surroundings: &'a Surroundings,
    named: &'a SummaryScope,
    /// The options that a suggested command needs to search the same directories.
    typed: String,
    /// The most helpful commands.
    advice: Vec<Advice>,
    /// The number of skills, as `prowess list` counts them.
    counted: SkillCount,
    /// The paths of the skills that Prowess itself leaves out.
    left_out: Vec<PathBuf>,
    /// The directory of plugins, whose skills are not examined.
    plugins: Option<PathBuf>,
    /// The number of skills in the plugins of this repository, if nothing of it is read.
    in_plugins: usize,
}

impl Summary<'_> {
    /// Returns whether Prowess itself leaves out the skill in this file.
    fn is_left_out(&self, path: &Path) -> bool {
        prowess::real_path(path).is_ok_and(|it| self.left_out.contains(&it))
    }
}

/// A command and its purpose.
struct Advice {
    command: String,
    why: String,
}

pub(crate) fn run(global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    context::check_typed_directories(global)?;
    let (surroundings, _) = surroundings(global, None)?;
    let mut others = configured_directories(global, printer)?;
    others.extend(surroundings.here().into_iter().filter(|it| it.path.exists()));
    let detected = installed_clients(&surroundings);
    let is_detected = !detected.is_empty();
    let clients = if is_detected { detected } else { CLIENTS.iter().collect() };
    let mut checkup =
        printer.with_progress("examining skills", || examine(&clients, &surroundings, &others));
    let named = SummaryScope::of(global)?;
    named.restrict(&mut checkup);
    let here = env::current_dir().unwrap_or_default();
    let mut suggested = suggestions(&checkup, &surroundings);
    // That would be about all skills of a directory.
    suggested.retain(|it| !named.is_of_skills() || !matches!(it, Suggestion::Share { .. }));
    let suggested = suggested.iter().take(SUGGESTED);
    let home = surroundings.home.as_deref();
    let advice = suggested.filter_map(|it| advise(it, &here, home)).collect();
    let library = context::library_for_counting(global)?;
    let left_out = library.left_out().iter().map(prowess::real_path);
    let left_out: Vec<PathBuf> = left_out.filter_map(Result::ok).collect();
    let shown: BTreeSet<usize> =
        checkup.locations.iter().flat_map(|it| it.skills.iter().copied()).collect();
    let paths = shown.iter().map(|it| &*checkup.skills[*it].path);
    let is_read = checkup.locations.iter().any(|it| it.in_project);
    let summary = Summary {
        in_plugins: match is_read || !named.directories.is_empty() {
            true => 0,
            false => count_in_plugins(&surroundings.cwd),
        },
        advice,
        plugins: plugin_directory(&surroundings).filter(|_| named.directories.is_empty()),
        counted: SkillCount::of_files(paths, &library),
        left_out,
        checkup: &checkup,
        clients: &clients,
        is_detected,
        surroundings: &surroundings,
        named: &named,
        typed: context::directory_flags(global),
    };
    if printer.json {
        printer.document(&document::document(&summary))?;
    } else {
        screen::show(&summary, printer)?;
    }
    Ok(ExitStatus::Success)
}

/// Returns the command of a suggestion, as it can be typed here.
fn advise(suggestion: &Suggestion<'_>, here: &Path, home: Option<&Path>) -> Option<Advice> {
    let path = |it: &Path| shell_quote(&short_path(it, here, home));
    let paths = |all: &[&Path]| all.iter().map(|it| path(it)).collect::<Vec<_>>().join(" ");
    let (command, why) = match suggestion {
        Suggestion::Fix { directories, skills } => (
            format!("prowess check {} --fix", paths(directories)),
            format!("fix the frontmatter of {}", count(*skills, "skill")),
        ),
        Suggestion::Rename { which: NameToChange::Folder, directories, skills } => (
            format!("prowess check {} --fix --rename folder", paths(directories)),
            match skills {
                1 => "rename 1 folder to match its skill".to_owned(),
                many => format!("rename {many} folders to match their skills"),
            },
        ),
        Suggestion::Rename { which: NameToChange::Skill, directories, skills } => (
            format!("prowess check {} --fix --rename name", paths(directories)),
            format!("rename {} to match the folder", count(*skills, "skill")),
        ),
        Suggestion::Lowercase { directories, skills } => (
            format!("prowess check {} --fix --rename lowercase", paths(directories)),
            format!("make the names of {} and of their folders lowercase", count(*skills, "skill")),
        ),
        Suggestion::Check { directories, skills } => (
            format!("prowess check {}", paths(directories)),
            format!("see what to change in {}", count(*skills, "skill")),
        ),
        Suggestion::Truncated { name, skills } => (
            format!("prowess doctor {}", shell_quote(name)),
            match skills {
                1 => "see what a client truncates".to_owned(),
                more => format!("see what a client truncates, also of {} more", more - 1),
            },
        ),
        Suggestion::Compare { name, skills } => (
            format!("prowess doctor {}", shell_quote(name)),
            match skills {
                1 => "see which of the skills with this name wins".to_owned(),
                more => format!("see which one wins; {more} skills share their names"),
            },
        ),
        Suggestion::Share { from, to, is_by_link, clients, skills } => {
            let is_own = short_path(from, here, home).starts_with('~');
            let from = path(from);
            let to_path = path(to);
            let make = if to.exists() { String::new() } else { format!("mkdir -p {to_path} && ") };
            // A link in a project must work in every clone.
            let copy = match (is_by_link, is_own) {
                (true, true) => "ln -s",
                (true, false) => "ln -sr",
                (false, _) => "cp -r",
            };
            let whom = match &clients[..] {
                [one] => one.label.to_owned(),
                [one, two] => format!("{} and {}", one.label, two.label),
                [one, rest @ ..] => format!("{} and {} more", one.label, rest.len()),
                [] => String::new(),
            };
            (
                format!("{make}{copy} {from}/* {to_path}/"),
                format!("let {whom} load {}", count(*skills, "skill")),
            )
        }
        _ => return None,
    };
    Some(Advice { command, why })
}
