//! Files with secrets: those that a command names, and those to hide from commands that only read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{glob::fits, policy::Policy, roots::is_of_git};

use super::{
    Argument,
    walk::{DIRECTORIES, DirectoryWalk},
};

/// The maximum number of files that a glob is compared with.
const MATCHED: usize = 10_000;

/// Programs that print names, sizes and times, but no file contents.
const METADATA_PROGRAMS: &[&str] = &[
    "basename", "date", "df", "dirname", "du", "echo", "false", "find", "free", "hostname", "id",
    "ls", "nproc", "printf", "ps", "pwd", "readlink", "realpath", "seq", "sleep", "stat", "test",
    "tree", "true", "uname", "uptime", "whoami",
];

/// Whether a program prints file contents.
pub(super) fn prints_content(name: &str) -> bool {
    !METADATA_PROGRAMS.contains(&name.rsplit('/').next().unwrap_or(name))
}

/// Returns the files with secrets that a word names: as a whole, after an option, or in code.
pub(super) fn named_secrets(word: &Argument, directory: &Path, policy: &Policy) -> Vec<PathBuf> {
    let text = &*word.text;
    let glued = text.strip_prefix('-').and_then(|it| it.get(1..));
    let texts = text
        .split(|c: char| c.is_whitespace() || "'\"`()<>[]{};|&=,:@$+".contains(c))
        .chain([text])
        .chain(glued)
        .filter(|it| !it.is_empty());
    let mut named: Vec<PathBuf> =
        texts.filter_map(|it| resolve_secret(&directory.join(it), policy)).collect();
    named.dedup();
    named
}

/// Returns the files with secrets that a glob expands to.
pub(super) fn matched_secrets(word: &Argument, directory: &Path, policy: &Policy) -> Vec<PathBuf> {
    if !word.is_glob {
        return Vec::new();
    }
    let mut paths =
        vec![if word.text.starts_with('/') { "/".into() } else { directory.to_owned() }];
    for pattern in word.text.split('/').filter(|it| !it.is_empty()) {
        paths = paths.into_iter().flat_map(|it| expand(&it, pattern)).take(MATCHED).collect();
    }
    paths.iter().filter_map(|it| resolve_secret(it, policy)).collect()
}

/// Returns the paths in a directory that a glob without slashes expands to, or more.
fn expand(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    if !pattern.contains(['*', '?', '[']) {
        return vec![directory.join(pattern)];
    }
    // Brackets may match any character.
    let wide = pattern.replace(['[', ']'], "*");
    let has_hidden = pattern.starts_with(['.', '[']);
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|it| {
            let name = it.file_name();
            let name = name.to_string_lossy();
            (has_hidden || !name.starts_with('.')) && fits(&wide, &name)
        })
        .map(|it| it.path())
        .collect()
}

/// Returns the target of a path, if it is a file with secrets in the roots.
fn resolve_secret(path: &Path, policy: &Policy) -> Option<PathBuf> {
    let real = prowess::real_path(path).ok()?;
    policy.why_secret(path).or_else(|| policy.why_secret(&real))?;
    let mut roots = policy.roots.iter().filter_map(|it| prowess::real_path(it).ok());
    roots.any(|it| real.starts_with(it)).then_some(real)
}

/// Returns all files and folders with secrets in these directories and below, with links resolved,
/// and the first directory that was not searched.
pub(crate) fn find_secrets(roots: &[PathBuf], policy: &Policy) -> (Vec<PathBuf>, Option<PathBuf>) {
    let mut found = Vec::new();
    let mut walk = DirectoryWalk::new(roots.iter().cloned(), DIRECTORIES);
    while let Some(directory) = walk.next_directory() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            let is_one = policy.why_secret(&path).is_some();
            match kind {
                // Either everything in a folder is secret, or only certain names.
                kind if kind.is_dir() && is_one && policy.why_secret(&path.join("x")).is_some() => {
                    found.push(path);
                }
                kind if kind.is_dir() && !is_of_git(Path::new(&entry.file_name())) => {
                    walk.enter(path);
                }
                kind if kind.is_file() && is_one => found.push(path),
                _ => {}
            }
        }
    }
    (found, walk.first_unsearched())
}
