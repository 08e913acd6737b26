//! The directory in which clients would be started.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::{CLIENTS, Spot, Surroundings, VARIABLES};

use crate::{arguments::Global, context};

/// Returns the surroundings in which clients would be started: here, or in the project that a skill
/// belongs to, which is returned too.
pub(crate) fn surroundings(
    global: &Global,
    folder: Option<&Path>,
) -> Result<(Surroundings, Option<PathBuf>)> {
    let here = absolute(global.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let home = context::home();
    // Nobody starts a client inside a skills directory, only to look at a skill.
    let is_among = folder.and_then(Path::parent).is_some_and(|it| here.starts_with(it));
    let project = folder.and_then(project_of).filter(|it| {
        let is_home = home.as_ref().is_some_and(|home| it == home);
        !is_home && (is_among || !here.starts_with(it))
    });
    let cwd = project.clone().unwrap_or(here);
    let repository = cwd.ancestors().find(|it| it.join(".git").exists()).map(Path::to_owned);
    let variables = VARIABLES.iter().map(|it| it.0);
    let variables: BTreeMap<String, PathBuf> = variables
        .filter_map(|it| Some((it.to_owned(), PathBuf::from(env::var_os(it)?))))
        .filter(|it| it.1.is_absolute())
        .collect();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::split_paths(&path).filter(|it| it.is_absolute()).collect();
    Ok((Surroundings { home, cwd, repository, variables, path }, project))
}

/// Returns the plugin directory of Claude Code, if it exists.
pub(crate) fn plugin_directory(surroundings: &Surroundings) -> Option<PathBuf> {
    let spot = Spot::new("$CLAUDE_CONFIG_DIR/plugins/cache");
    let path = surroundings.directories(&spot).into_iter().next()?;
    let has_any = fs::read_dir(&path).is_ok_and(|mut it| it.next().is_some());
    path.parent().filter(|_| has_any).map(Path::to_owned)
}

/// Shortens a path: relative to a folder or to the home directory, whichever is nearer.
pub(crate) fn short_path(path: &Path, from: &Path, home: Option<&Path>) -> String {
    let is_home_nearer = home.is_some_and(|it| it.starts_with(from));
    let in_home = home.and_then(|it| below(path, it)).map(|it| format!("~/{}", it.display()));
    let here = below(path, from).map(|it| it.display().to_string());
    let shown = if is_home_nearer { in_home.or(here) } else { here.or(in_home) };
    shown.unwrap_or_else(|| path.display().to_string())
}

/// Returns the rest of a path below a directory.
fn below<'p>(path: &'p Path, directory: &Path) -> Option<&'p Path> {
    path.strip_prefix(directory).ok().filter(|it| !it.as_os_str().is_empty())
}

/// Returns the project that a skill belongs to: the folder with the skills directory of some
/// client.
fn project_of(folder: &Path) -> Option<PathBuf> {
    let spots = CLIENTS.iter().flat_map(|it| it.spots).filter(|it| it.is_in_project());
    let projects = spots.filter_map(|spot| {
        let mut above = folder.ancestors().skip(1);
        Some((above.find(|it| folder.starts_with(it.join(spot.path)))?, spot.path.len()))
    });
    // `skills` is a directory of its own, and the end of many others.
    projects.max_by_key(|it| it.1).map(|it| it.0.to_owned())
}

/// Returns the path with all links resolved; unchanged if it cannot be resolved.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    prowess::real_path(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the absolute path without `.` and `..`, so that one directory has one path.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    Ok(std::path::absolute(path)?.components().collect())
}
