//! Trust in the skills of a project: asked once, and remembered.

use std::{
    env, fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::Library;
use prowess_cli::settings::Config;
use prowess_runtime::approval::TrustFile;
use prowess_runtime::sys::MetadataExt as _;

use crate::{
    arguments::Global,
    context::{self, shell_quote},
    host,
    printer::{self, Printer},
    safe,
    surroundings::real_path,
};

/// Returns the options without the directories of untrusted projects, with a note, for skills that
/// act. Asks the person at the terminal, if there is one and nothing was decided yet.
pub(crate) fn ask_for_trust(
    config: &Config,
    global: &Global,
    is_trusted: bool,
    printer: &mut Printer,
) -> Global {
    if is_trusted {
        return global.clone();
    }
    leave_out_untrusted(config, global, UndecidedTrust::Ask, printer)
}

/// Like [`ask_for_trust`], where only skills of these names act: nobody is asked about a project
/// without them.
pub(crate) fn ask_for_trust_in<'a>(
    mut names: impl Iterator<Item = &'a str>,
    config: &Config,
    global: &Global,
    is_trusted: bool,
    printer: &mut Printer,
) -> Result<Global> {
    if is_trusted {
        return Ok(global.clone());
    }
    let library = Library::load(&context::options(config, global))?;
    let directories: Vec<PathBuf> = context::directories_of_project(config, global)
        .iter()
        .map(|it| real_path(&context::resolve(&it.0, global)))
        .collect();
    let is_about_project = names.any(|name| {
        let skill = library.get(name).or_else(|| library.for_tool(name));
        let path = skill.map(|it| real_path(&it.origin.path));
        path.is_some_and(|it| directories.iter().any(|dir| it.starts_with(dir)))
    });
    let how = if is_about_project { UndecidedTrust::Ask } else { UndecidedTrust::LeaveOut };
    Ok(leave_out_untrusted(config, global, how, printer))
}

/// Like [`ask_for_trust`], for commands that only show what an agent would have, and ask nobody.
pub(crate) fn without_untrusted(config: &Config, global: &Global, printer: &mut Printer) -> Global {
    leave_out_untrusted(config, global, UndecidedTrust::Note, printer)
}

/// What to do about an undecided project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UndecidedTrust {
    /// Ask the person at the terminal, and note what is left out.
    Ask,
    /// Note what is left out.
    Note,
    /// Leave it out silently.
    LeaveOut,
}

fn leave_out_untrusted(
    config: &Config,
    global: &Global,
    how: UndecidedTrust,
    printer: &mut Printer,
) -> Global {
    let mut acting = global.clone();
    if !config.skill.enabled.value {
        return acting;
    }
    let mut projects: Vec<(PathBuf, Vec<PathBuf>)> = Vec::new();
    for (directory, folder) in context::directories_of_project(config, global) {
        let path = context::resolve(&directory, global);
        let folder = match folder {
            Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
            Some(folder) => folder,
            None => project_of(global.cwd.as_deref().unwrap_or(Path::new("."))),
        };
        let folder = real_path(&folder);
        if is_home(&folder) {
            continue;
        }
        match projects.iter_mut().find(|it| it.0 == folder) {
            Some(project) => project.1.push(path),
            None => projects.push((folder, vec![path])),
        }
    }
    let file = trust_file();
    for (folder, directories) in projects {
        let (there, later): (Vec<_>, Vec<_>) = directories.into_iter().partition(|it| has_any(it));
        let may_act = match there.is_empty() {
            true => decision(&folder, file.as_ref(), printer) == Some(true),
            false => may_act(&folder, &there, file.as_ref(), how, printer),
        };
        if !may_act {
            acting.leaves_out_skills |= !there.is_empty();
            acting.untrusted.extend(there);
            // A watched directory may be created later, when nobody would be asked.
            acting.untrusted.extend(later);
        }
    }
    acting
}

/// Notes that an agent would not use some of the skills shown, because their project is not
/// trusted.
pub(crate) fn note_untrusted(config: &Config, global: &Global, printer: &mut Printer) {
    let directories = context::directories_of_project(config, global);
    let mut directories = directories.iter().map(|it| context::resolve(&it.0, global));
    if directories.any(|it| has_any(&it) && is_needed(&it, global)) {
        printer.note("`ask` leaves out the skills of this project until it is trusted; use `prowess trust .`");
    }
}

/// Returns whether a project has to be trusted before the skills in a directory act.
pub(crate) fn is_needed(directory: &Path, global: &Global) -> bool {
    let Ok(config) = context::config(global) else { return false };
    context::directories_of_project(&config, global).into_iter().any(|(it, folder)| {
        let folder =
            folder.unwrap_or_else(|| project_of(global.cwd.as_deref().unwrap_or(Path::new("."))));
        let folder = real_path(&folder);
        context::resolve(&it, global) == directory
            && !is_home(&folder)
            && trust_file().and_then(|it| it.decision(&folder).ok().flatten()) != Some(true)
    })
}

/// Returns whether a directory has any entry.
fn has_any(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut it| it.next().is_some())
}

/// Returns the file of decisions; `None` without a home directory.
pub(crate) fn trust_file() -> Option<TrustFile> {
    host::state().map(TrustFile::at)
}

/// Returns the project of a folder: its repository, unless that is the whole home directory.
pub(crate) fn project_of(folder: &Path) -> PathBuf {
    let folder = real_path(folder);
    let repository = folder.ancestors().find(|it| it.join(".git").exists());
    let is_above_home =
        repository.is_some_and(|it| home().is_some_and(|home| home.starts_with(it)));
    repository
        .filter(|it| !is_above_home && is_repository_of_owner(it, &folder))
        .unwrap_or(&folder)
        .to_owned()
}

/// Returns whether a repository belongs to the owner of a folder in it, and only they can write to
/// it. Anybody can make a repository of a directory such as `/tmp`.
fn is_repository_of_owner(repository: &Path, folder: &Path) -> bool {
    let metadata = [repository, &repository.join(".git"), folder].map(|it| fs::metadata(it).ok());
    let is_writable_by_all = metadata[0].as_ref().is_some_and(|it| it.mode() & 0o002 != 0);
    let [repository, git, folder] = metadata.map(|it| Some(it?.uid()));
    !is_writable_by_all && repository == folder && git == folder
}

/// Returns whether a settings file named on the command line belongs to a project, not to the user:
/// it is in the current project, in a directory above, or in another repository.
pub(crate) fn is_of_project(file: &Path, global: &Global) -> bool {
    let Some(folder) = prowess::real_path(file).ok().and_then(|it| Some(it.parent()?.to_owned()))
    else {
        return false;
    };
    let here = global.cwd.as_deref().unwrap_or(Path::new("."));
    let Ok(here) = prowess::real_path(here) else { return false };
    let user = context::places(global).user.and_then(|it| prowess::real_path(it).ok());
    let is_own = is_home(&folder) || user.is_some_and(|it| folder.starts_with(it));
    let project = project_of(&here);
    let is_near = here.starts_with(&folder) || (!is_home(&project) && folder.starts_with(&project));
    !is_own && (is_near || project_of(&folder).join(".git").exists())
}

/// Returns the decision about a project.
fn decision(folder: &Path, file: Option<&TrustFile>, printer: &mut Printer) -> Option<bool> {
    let file = file?;
    file.decision(folder).unwrap_or_else(|error| {
        printer.warning(&format!("`{}` is not used: {error}", file.path().display()));
        None
    })
}

/// Returns whether the skills in these directories of a project may act.
fn may_act(
    folder: &Path,
    directories: &[PathBuf],
    file: Option<&TrustFile>,
    how: UndecidedTrust,
    printer: &mut Printer,
) -> bool {
    let is_asked =
        how == UndecidedTrust::Ask && io::stdin().is_terminal() && io::stderr().is_terminal();
    let here = env::current_dir().and_then(prowess::real_path);
    let is_here = here.is_ok_and(|it| project_of(&it) == folder);
    let typed = if is_here { ".".to_owned() } else { shell_quote(&folder.to_string_lossy()) };
    let mut is_remembered = false;
    match decision(folder, file, printer) {
        Some(true) => return true,
        None if is_asked => {
            let answer = ask_person(folder, directories);
            if let (Some(answer), Some(file)) = (answer, file) {
                match file.decide(folder, answer) {
                    Ok(_) => is_remembered = true,
                    Err(error) => {
                        printer.warning(&format!("the answer could not be saved: {error}"));
                    }
                }
            }
            if answer == Some(true) {
                if is_remembered {
                    printer.note(&format!(
                        "this is remembered; `prowess trust --revoke {typed}` revokes it"
                    ));
                }
                return true;
            }
        }
        Some(false) | None => {}
    }
    if how == UndecidedTrust::LeaveOut {
        return false;
    }
    let why = match is_remembered {
        true => format!("and this is remembered; `prowess trust {typed}` changes it"),
        false => {
            format!("because this project is not trusted; use `prowess trust {typed}` to trust it")
        }
    };
    printer.note(&format!("the skills in {} are left out, {why}", list_below(directories, folder)));
    false
}

/// Asks the person at the terminal; `None` if the answer is neither yes nor no.
fn ask_person(folder: &Path, directories: &[PathBuf]) -> Option<bool> {
    let question = format!(
        "This project has skills in {}. Skills can run scripts and give instructions to the agent. Do you trust `{}`?",
        safe::for_approval(&safe::line(&list_below(directories, folder))),
        safe::for_approval(&safe::line(&folder.to_string_lossy())),
    );
    printer::confirm(&question).ok().flatten()
}

/// Lists directories, relative to their project.
fn list_below(directories: &[PathBuf], folder: &Path) -> String {
    let names = directories.iter().map(|it| {
        let real = real_path(it);
        format!("`{}`", real.strip_prefix(folder).unwrap_or(it).display())
    });
    names.collect::<Vec<_>>().join(", ")
}

fn is_home(folder: &Path) -> bool {
    home().is_some_and(|it| it == folder)
}

fn home() -> Option<PathBuf> {
    prowess::real_path(env::home_dir()?).ok()
}
