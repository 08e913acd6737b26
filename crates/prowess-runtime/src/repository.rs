//! What git reads as a repository and as its settings: nothing an agent does writes it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::protected::lies_in;

/// What git keeps in a repository and reads again: settings, hooks, and where the rest is.
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

/// How large the settings of a repository can be.
pub(crate) const SIZE: u64 = 1024 * 1024;

/// Whether git takes a directory for a repository: `HEAD` is there, and `objects` and `refs` are
/// beside it or where `commondir` says.
pub(crate) fn is_repository(directory: &Path) -> bool {
    let has = |it: &str| directory.join(it).exists();
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// What of a directory makes git run something, or makes a repository of it; empty where git would read
/// nothing. Anywhere, `commondir` can make git read the `config` that is beside `objects` and `refs`.
pub(crate) fn acted_on(directory: &Path) -> Vec<PathBuf> {
    let has = |it: &str| directory.join(it).exists();
    let is_settings = |it: &PathBuf| !it.ends_with("config") || !it.is_dir();
    let names: &[&str] = if is_repository(directory) {
        &["HEAD", "config", "hooks"]
    } else if has("objects") && has("refs") {
        &["HEAD", "config"]
    } else if has("commondir") {
        &["HEAD"]
    } else {
        &[]
    };
    names.iter().map(|it| directory.join(it)).filter(is_settings).collect()
}

/// Whether a file would belong to a repository once it is written, or be read as the settings of one.
/// `look` says what is at a path: whether it is a directory, if anything is there.
pub(crate) fn is_of_repository(path: &Path, look: impl Fn(&Path) -> Option<bool>) -> bool {
    let mut above = path.ancestors().zip(path.ancestors().skip(1));
    above.any(|(inside, directory)| {
        let is = |name: &str| inside.file_name().is_some_and(|it| it.eq_ignore_ascii_case(name));
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

/// Whether a file is one that the settings of a repository around it name: more settings, or hooks.
pub(crate) fn is_named_by_settings(path: &Path) -> bool {
    path.ancestors().skip(1).any(|it| named(it).iter().any(|it| lies_in(path, it)))
}

/// The files and directories that the settings of the repository of a work tree name: more settings
/// (`include.path`), and hooks (`core.hooksPath`).
pub(crate) fn named(work_tree: &Path) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for directory in git_directories(work_tree) {
        for file in ["config", "config.worktree"] {
            let Some(Some(bytes)) = read(&directory.join(file)) else { continue };
            named.extend(paths(&String::from_utf8_lossy(&bytes), work_tree, &directory));
        }
    }
    named
}

/// The directories that git keeps the repository of a work tree in: its own, and the one it shares
/// with other work trees. None need be there.
pub(crate) fn git_directories(work_tree: &Path) -> Vec<PathBuf> {
    let git = work_tree.join(".git");
    let own = match lead(&git, "gitdir:") {
        Some(path) => work_tree.join(path),
        None => git,
    };
    let common = lead(&own.join("commondir"), "").map(|it| own.join(it));
    [Some(own), common].into_iter().flatten().collect()
}

/// What a file has in it: nothing where none is there, and none of it where it is too large to read, or
/// no file.
pub(crate) fn read(path: &Path) -> Option<Option<Vec<u8>>> {
    let metadata = fs::metadata(path).ok()?;
    let is_read = metadata.is_file() && metadata.len() <= SIZE;
    Some(is_read.then(|| fs::read(path).ok()).flatten())
}

/// The path that a small file gives behind a sign.
fn lead(path: &Path, sign: &str) -> Option<PathBuf> {
    let text = String::from_utf8(read(path)??).ok()?;
    text.strip_prefix(sign).map(|it| PathBuf::from(it.trim()))
}

/// The paths that settings name.
fn paths(settings: &str, work_tree: &Path, directory: &Path) -> Vec<PathBuf> {
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
        // Where a home is nobody says here; the settings of one are protected by their names.
        if !value.is_empty() && !value.starts_with('~') {
            let path = from.join(value);
            paths.push(fs::canonicalize(&path).unwrap_or_else(|_| plain(&path)));
        }
    }
    paths
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
