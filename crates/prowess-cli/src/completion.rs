//! What a shell offers for the word that is being typed. The scripts of `prowess completions` ask us.

use std::{env, process::ExitCode};

use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, CompletionCandidate},
};
use prowess::{CLIENTS, Library, Manifest, PRESETS, RULES};

use crate::{
    arguments::{Arguments, Global},
    context,
    printer::Printer,
    safe, sessions as kept,
};

/// The variable by which a shell asks.
pub(crate) const ASKED: &str = "PROWESS_COMPLETE";
/// The widest description of a name.
const WIDEST: usize = 60;

/// The tools that are always there.
const TOOLS: &[(&str, &str)] = &[
    ("use_skill", "Takes up a skill"),
    ("run_skill", "Runs a skill, or a script of it"),
    ("read_file", "Reads a file of a skill in use"),
    ("file_operations", "Reads, writes and lists files"),
    ("execute_command", "Runs a command"),
    ("http_request", "Asks a server over HTTP"),
    ("execute_sql", "Runs an SQL statement"),
];

/// Answers a shell that asks. What goes wrong is not told: it would stand in the line that is typed.
pub(crate) fn answer() -> Option<ExitCode> {
    let asked = CompleteEnv::with_factory(command).var(ASKED).completer("prowess");
    match asked.try_complete(env::args_os(), env::current_dir().ok().as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The skills in use.
pub(crate) fn skills() -> ArgValueCandidates {
    ArgValueCandidates::new(|| skills_that(Manifest::is_active))
}

/// The skills that are not in use.
pub(crate) fn disabled() -> ArgValueCandidates {
    ArgValueCandidates::new(|| skills_that(|it| !it.is_active()))
}

/// The files of the skill that was named.
pub(crate) fn resources() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let files = || {
            let matches = typed()?;
            let (_, matches) = matches.subcommand()?;
            let name = matches.try_get_one::<String>("name").ok()??;
            let library = library()?;
            let files = library.get(name)?.resources();
            Some(files.iter().filter_map(|it| offer(&it.path, it.kind.as_str())).collect())
        };
        files().unwrap_or_default()
    })
}

/// The tools: ours, and one for each skill in use.
pub(crate) fn tools() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let own = TOOLS.iter().filter_map(|(name, what)| offer(name, what));
        let Some(library) = library() else { return own.collect() };
        let skills = library.skills().map(|it| &it.manifest).filter(|it| it.is_active());
        let of_skills =
            skills.filter_map(|it| offer(&format!("skill_{}", it.name), &it.description));
        own.chain(of_skills).collect()
    })
}

/// The sessions that are kept.
pub(crate) fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        kept::past().iter().filter_map(|it| offer(&it.name, &it.begins)).collect()
    })
}

/// What can be set.
pub(crate) fn settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let config = global().and_then(|it| context::config(&it).ok());
        let settings = config.map(|it| it.settings()).unwrap_or_default();
        settings.iter().filter_map(|it| offer(it.key, &it.value.to_string())).collect()
    })
}

/// The rules of `check`.
pub(crate) fn rules() -> ArgValueCandidates {
    named(RULES.iter().map(|it| (it.code, it.summary)))
}

/// The clients of the ecosystem.
pub(crate) fn clients() -> ArgValueCandidates {
    named(CLIENTS.iter().map(|it| (it.name, it.label)))
}

/// The presets, each with its first directory.
pub(crate) fn presets() -> ArgValueCandidates {
    named(PRESETS.iter().map(|it| (it.name, it.directories.first().copied().unwrap_or_default())))
}

/// What is always there: names, with what they stand for.
pub(crate) fn named(
    all: impl Iterator<Item = (&'static str, &'static str)> + Clone + Send + Sync + 'static,
) -> ArgValueCandidates {
    ArgValueCandidates::new(move || {
        all.clone().filter_map(|(name, what)| offer(name, what)).collect()
    })
}

/// What can be typed. A shell offers what is hidden where it has nothing else, which is the place of flags.
fn command() -> Command {
    let mut command = Arguments::command();
    command.build();
    hide_flags(command)
}

fn hide_flags(command: Command) -> Command {
    let hide = |it: clap::Arg| if it.is_positional() { it } else { it.hide(true) };
    command.mut_args(hide).mut_subcommands(hide_flags)
}

fn skills_that(is_meant: impl Fn(&Manifest) -> bool) -> Vec<CompletionCandidate> {
    let Some(library) = library() else { return Vec::new() };
    let manifests = library.skills().map(|it| &it.manifest).filter(|it| is_meant(it));
    manifests.filter_map(|it| offer(&it.name, &it.description)).collect()
}

/// Offers a name, unless a shell would read anything else in it: names come from whoever wrote a skill.
fn offer(name: &str, what: &str) -> Option<CompletionCandidate> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./@+".contains(c);
    let is_plain = !name.starts_with('-') && name.chars().all(is_plain);
    let what = safe::cut(&safe::line(what), WIDEST);
    is_plain.then(|| CompletionCandidate::new(name).help(Some(what.into())))
}

fn library() -> Option<Library> {
    let global = global()?;
    context::library_behind(&global, &mut Printer::new(&global)).ok()
}

/// What was typed for every command, with nothing to be said about it.
fn global() -> Option<Global> {
    Some(Global { quiet: true, ..Global::from_arg_matches(&typed()?).ok()? })
}

/// What was typed, as far as it can be understood before it is whole.
fn typed() -> Option<ArgMatches> {
    let words = env::args_os().skip_while(|it| it != "--").skip(1);
    Arguments::command().ignore_errors(true).try_get_matches_from(words).ok()
}
