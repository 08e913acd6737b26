//! Files that git reads as a repository or its settings: no agent may write them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::protected::{is_named, is_within};

/// Files of a repository that git reads again: settings, hooks, and references to the rest.
const GIT_FILES: [&str; 11] = [
    "HEAD",
    "objects",
    "refs",
    "config",
    "config.worktree",
    "hooks",
    "commondir",
    "gitdir",
    "info",
    "modules",
    "worktrees",
];

/// The maximum size of a repository's settings.
pub(crate) const SIZE: u64 = 1024 * 1024;

/// Whether git treats a directory as a repository: it has `HEAD`, and `objects` and `refs` are next
/// to it or in `commondir`.
pub(crate) fn is_repository(directory: &Path) -> bool {
    has_entry(directory, "HEAD") && (has_entry(directory, "commondir") || has_objects(directory))
}

fn has_objects(directory: &Path) -> bool {
    has_entry(directory, "objects") && has_entry(directory, "refs")
}

fn has_entry(directory: &Path, name: &str) -> bool {
    directory.join(name).exists()
}

/// Returns the files of a directory that make git run something, or make it a repository; empty if
/// git would not read any. Anywhere, `commondir` can make git read the `config` next to `objects`
/// and `refs`.
pub(crate) fn files_git_acts_on(directory: &Path) -> Vec<PathBuf> {
    let names: &[&str] = if is_repository(directory) {
        &["HEAD", "config", "hooks"]
    } else if has_objects(directory) {
        &["HEAD", "config"]
    } else if has_entry(directory, "commondir") {
        &["HEAD"]
    } else {
        &[]
    };
    names
        .iter()
        .map(|it| directory.join(it))
        .filter(|it: &PathBuf| !it.ends_with("config") || !it.is_dir())
        .collect()
}

/// Whether writing a file would make it part of a repository, or settings of one. `look` returns
/// whether there is a directory at a path, if it exists.
pub(crate) fn is_of_repository(path: &Path, look: impl Fn(&Path) -> Option<bool>) -> bool {
    let mut above = path.ancestors().zip(path.ancestors().skip(1));
    above.any(|(inside, directory)| {
        let is = |name: &str| inside.file_name().is_some_and(|it| is_named(it, name));
        if !GIT_FILES.iter().any(|it| is(it)) {
            return false;
        }
        let has = |name: &str| is(name) || look(&directory.join(name)).is_some();
        let has_settings = match is("config") {
            true => inside == path,
            false => look(&directory.join("config")) == Some(false),
        };
        let has_objects = has("objects") && has("refs");
        let completes = is("HEAD") || is("objects") || is("refs") || is("config");
        (has("HEAD") && (has("commondir") || has_objects))
            || completes && has_settings && has_objects
    })
}

/// Whether a file is named by the settings of a repository around it: as further settings, or
/// hooks.
pub(crate) fn is_named_by_settings(path: &Path) -> bool {
    path.ancestors().skip(1).any(|it| named_by_settings(it).iter().any(|it| is_within(path, it)))
}

/// Returns the files and directories that the settings of a work tree's repository name: further
/// settings (`include.path`), and hooks (`core.hooksPath`).
pub(crate) fn named_by_settings(work_tree: &Path) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for directory in git_directories(work_tree) {
        for file in ["config", "config.worktree"] {
            let Some(Some(bytes)) = read(&directory.join(file)) else { continue };
            named.extend(parse_paths(&String::from_utf8_lossy(&bytes), work_tree, &directory));
        }
    }
    named
}

/// Returns the git directories of a work tree: its own, and the one it shares with other work
/// trees. They may not exist.
pub(crate) fn git_directories(work_tree: &Path) -> Vec<PathBuf> {
    let git = work_tree.join(".git");
    let own = match read_pointer(&git, "gitdir:") {
        Some(path) => work_tree.join(path),
        None => git,
    };
    let common = read_pointer(&own.join("commondir"), "").map(|it| own.join(it));
    [Some(own), common].into_iter().flatten().collect()
}

/// Reads a file; the outer `None` if it does not exist, the inner one if it is too large or not a
/// regular file.
pub(crate) fn read(path: &Path) -> Option<Option<Vec<u8>>> {
    let metadata = fs::metadata(path).ok()?;
    let is_read = metadata.is_file() && metadata.len() <= SIZE;
    Some(is_read.then(|| fs::read(path).ok()).flatten())
}

/// Returns the path in a small file after a prefix.
fn read_pointer(path: &Path, sign: &str) -> Option<PathBuf> {
    let text = String::from_utf8(read(path)??).ok()?;
    text.strip_prefix(sign).map(|it| PathBuf::from(it.trim()))
}

/// Returns the paths in settings.
fn parse_paths(settings: &str, work_tree: &Path, directory: &Path) -> Vec<PathBuf> {
    let mut section = String::new();
    let mut paths = Vec::new();
    for line in settings.lines() {
        let mut line = line.trim();
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|it| it.rsplit_once(']')) {
            section = name.trim().to_ascii_lowercase();
            line = rest.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().to_ascii_lowercase();
        let value = value.trim().trim_matches('"').trim_end_matches('/');
        let from = match &*key {
            "path" if section.starts_with("include") => directory,
            "hookspath" if section == "core" => work_tree,
            _ => continue,
        };
        // The home directory is unknown here; settings in it are protected by their names.
        if !value.is_empty() && !value.starts_with('~') {
            let path = from.join(value);
            paths.push(prowess::real_path(&path).unwrap_or_else(|_| normalize(&path)));
        }
    }
    paths
}

/// Removes `.` and `..` from a path, without resolving links.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(normal.pop()),
            std::path::Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}
