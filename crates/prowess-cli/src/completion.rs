//! Shell completion. The scripts of `prowess completions` call this program for candidates.

use std::{env, ffi::OsStr, process::ExitCode, sync::Arc};

use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use clap_complete::{
    CompleteEnv,
    engine::{
        ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter,
        ValueCompleter as _,
    },
};
use prowess::{CLIENTS, Library, Manifest, PRESETS, RULES};
use prowess_cli::settings::Config;
use prowess_runtime::{Launcher, SkillProvider};

use crate::features::AUDIT_RULES;
#[cfg(feature = "packages")]
use crate::packages;
use crate::{
    arguments::{Arguments, Global},
    commands::doctor,
    context,
    host::PermissionArgs,
    printer::Printer,
    safe,
    toolbox::{Caller, toolbox},
};
#[cfg(feature = "agent")]
use crate::{connection, sessions as session_files};

/// The variable by which a shell asks for completions.
pub(crate) const ASKED: &str = "PROWESS_COMPLETE";
/// The longest description of a candidate, in columns.
const WIDEST: usize = 60;

/// Answers a shell that asks for completions. Errors are not printed: they would end up in the line
/// being typed.
pub(crate) fn answer() -> Option<ExitCode> {
    let asked = CompleteEnv::with_factory(command).var(ASKED).completer("prowess");
    match asked.try_complete(env::args_os(), env::current_dir().ok().as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Completes the enabled skills.
pub(crate) fn skills() -> ArgValueCandidates {
    ArgValueCandidates::new(|| skills_that(Manifest::is_active))
}

/// Completes the skills that a lock file of this project or of the user names.
#[cfg(feature = "packages")]
pub(crate) fn installed_skills() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let skills = global().map(|it| packages::installed_skills(&it)).unwrap_or_default();
        skills.iter().filter_map(|(name, source)| candidate(name, source)).collect()
    })
}

/// Completes the disabled skills.
pub(crate) fn disabled_skills() -> ArgValueCandidates {
    ArgValueCandidates::new(|| skills_that(|it| !it.is_active()))
}

/// Completes the files of the skill on the command line.
pub(crate) fn resources() -> ArgValueCandidates {
    ArgValueCandidates::new(|| files_of_typed_skill().unwrap_or_default())
}

fn files_of_typed_skill() -> Option<Vec<CompletionCandidate>> {
    let matches = parse_typed()?;
    let (_, matches) = matches.subcommand()?;
    let name = matches.try_get_one::<String>("name").ok()??;
    let library = library()?;
    let files = library.get(name)?.resources();
    Some(files.iter().filter_map(|it| candidate(&it.path, it.kind.as_str())).collect())
}

/// Completes the saved sessions.
#[cfg(feature = "agent")]
pub(crate) fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        session_files::saved_sessions()
            .iter()
            .filter_map(|it| candidate(&it.name, &it.begins))
            .collect()
    })
}

/// Completes the settings.
pub(crate) fn settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let settings = config().map(|it| it.settings()).unwrap_or_default();
        settings.iter().filter_map(|it| candidate(it.key, it.about)).collect()
    })
}

/// Completes the rules of `check` and `audit`.
pub(crate) fn rules() -> ArgValueCandidates {
    from_list(RULES.iter().chain(AUDIT_RULES).map(|it| (it.code, it.summary)))
}

/// Completes the rules of `audit`.
#[cfg(feature = "packages")]
pub(crate) fn audit_rules() -> ArgValueCandidates {
    from_list(AUDIT_RULES.iter().map(|it| (it.code, it.summary)))
}

/// Completes the skills that clients may find, and paths.
pub(crate) fn examined_skills() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let text = typed.to_string_lossy();
        if text.starts_with('.') || text.contains('/') {
            return PathCompleter::any().complete(typed);
        }
        let names = global().and_then(|it| doctor::skill_names(&it).ok()).unwrap_or_default();
        let names = names.iter().filter(|it| it.0.starts_with(&*text));
        names.filter_map(|(name, path)| candidate(name, path)).collect()
    })
}

/// Completes the tools.
pub(crate) fn tools() -> ArgValueCandidates {
    ArgValueCandidates::new(|| tool_candidates().unwrap_or_default())
}

fn tool_candidates() -> Option<Vec<CompletionCandidate>> {
    let global = global()?;
    let provider: Arc<dyn SkillProvider> = Arc::new(Arc::new(library()?));
    // The toolbox is only listed, so that nothing is started.
    let (running, launcher) = (PermissionArgs::default(), Launcher::program("prowess"));
    let printer = &mut Printer::new(&global);
    let kit = toolbox(Caller::Person, &running, &provider, &global, &[], launcher, printer);
    let toolbox = kit.ok()?.toolbox;
    let tools = toolbox.tools().iter();
    Some(tools.filter_map(|it| candidate(it.name(), &it.description())).collect())
}

/// Completes the default models of the providers, and the configured one.
pub(crate) fn models() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let set = config().and_then(|it| it.model.name.value);
        let usual = default_models().into_iter().filter(|it| set.as_deref() != Some(it.0));
        let set = set.as_deref().and_then(|it| candidate(it, "the configured model"));
        set.into_iter().chain(usual.filter_map(|it| candidate(it.0, it.1))).collect()
    })
}

#[cfg(feature = "agent")]
fn default_models() -> Vec<(&'static str, &'static str)> {
    connection::default_models().collect()
}

/// Returns no models: this build has no providers.
#[cfg(not(feature = "agent"))]
fn default_models() -> Vec<(&'static str, &'static str)> {
    Vec::new()
}

/// Completes the providers.
#[cfg(feature = "agent")]
pub(crate) fn providers() -> ArgValueCandidates {
    from_list(connection::providers().map(|it| (it, "")))
}

/// Completes the configured servers.
#[cfg(any(feature = "http", feature = "mcp"))]
pub(crate) fn servers() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let servers = config().map(|it| it.servers.value.0).unwrap_or_default();
        servers.iter().filter_map(|it| candidate(&it.description.name, "")).collect()
    })
}

/// Completes the clients of the ecosystem.
pub(crate) fn clients() -> ArgValueCandidates {
    from_list(CLIENTS.iter().map(|it| (it.name, it.label)))
}

/// Completes the presets, each with its first directory.
pub(crate) fn presets() -> ArgValueCandidates {
    from_list(
        PRESETS.iter().map(|it| (it.name, it.directories.first().copied().unwrap_or_default())),
    )
}

/// Completes from a fixed list of names with descriptions.
pub(crate) fn from_list(
    all: impl Iterator<Item = (&'static str, &'static str)> + Clone + Send + Sync + 'static,
) -> ArgValueCandidates {
    ArgValueCandidates::new(move || {
        all.clone().filter_map(|(name, what)| candidate(name, what)).collect()
    })
}

/// Returns the command line with its flags hidden: shells offer hidden candidates only if there are
/// no others.
fn command() -> Command {
    let mut command = Arguments::command();
    command.build();
    hide_flags(command)
}

fn hide_flags(command: Command) -> Command {
    command
        .mut_args(|it: clap::Arg| if it.is_positional() { it } else { it.hide(true) })
        .mut_subcommands(hide_flags)
}

fn skills_that(is_meant: impl Fn(&Manifest) -> bool) -> Vec<CompletionCandidate> {
    let Some(library) = library() else { return Vec::new() };
    let manifests = library.skills().map(|it| &it.manifest).filter(|it| is_meant(it));
    manifests.filter_map(|it| candidate(&it.name, &it.description)).collect()
}

/// Returns a candidate, unless a shell would interpret a character of it: names come from the
/// authors of skills.
fn candidate(name: &str, what: &str) -> Option<CompletionCandidate> {
    let is_plain =
        !name.starts_with('-') && name.chars().all(|c| c.is_alphanumeric() || "-_./@+".contains(c));
    let what = safe::cut(&safe::line(what), WIDEST);
    is_plain.then(|| CompletionCandidate::new(name).help(Some(what.into())))
}

fn library() -> Option<Library> {
    let global = global()?;
    context::library_without_notes(&global, &mut Printer::new(&global)).ok()
}

fn config() -> Option<Config> {
    context::config(&global()?).ok()
}

/// Returns the global options on the command line so far, with `--quiet`.
fn global() -> Option<Global> {
    Some(Global { quiet: true, ..Global::from_arg_matches(&parse_typed()?).ok()? })
}

/// Parses the incomplete command line as far as possible.
fn parse_typed() -> Option<ArgMatches> {
    let words = env::args_os().skip_while(|it| it != "--").skip(1);
    Arguments::command().ignore_errors(true).try_get_matches_from(words).ok()
}
