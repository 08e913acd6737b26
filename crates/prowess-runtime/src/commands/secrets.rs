//! Files with secrets: those that a command names, and those to hide from one that only reads.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{glob::fits, policy::Policy, roots::is_of_git};

use super::{
    Argument,
    walk::{DIRECTORIES, DirectoryWalk},
};

/// How many files a pattern may stand for to be looked at.
const MATCHED: usize = 10_000;

/// Programs that tell names, sizes and times, and nothing of what files say.
const LOOKING: &[&str] = &[
    "basename", "date", "df", "dirname", "du", "echo", "false", "find", "free", "hostname", "id",
    "ls", "nproc", "printf", "ps", "pwd", "readlink", "realpath", "seq", "sleep", "stat", "test",
    "tree", "true", "uname", "uptime", "whoami",
];

/// Whether a program tells what files say.
pub(super) fn tells_content(name: &str) -> bool {
    !LOOKING.contains(&name.rsplit('/').next().unwrap_or(name))
}

/// The files with secrets that a word names: as it is, behind an option, or in a line of code.
pub(super) fn named(word: &Argument, directory: &Path, policy: &Policy) -> Vec<PathBuf> {
    let text = &*word.text;
    let is_sign = |c: char| c.is_whitespace() || "'\"`()<>[]{};|&=,:@$+".contains(c);
    let glued = text.strip_prefix('-').and_then(|it| it.get(1..));
    let texts = text.split(is_sign).chain([text]).chain(glued).filter(|it| !it.is_empty());
    let mut named: Vec<PathBuf> =
        texts.filter_map(|it| secret(&directory.join(it), policy)).collect();
    named.dedup();
    named
}

/// The files with secrets that a word stands for as a shell expands it.
pub(super) fn matched(word: &Argument, directory: &Path, policy: &Policy) -> Vec<PathBuf> {
    let is_sign = |c: char| matches!(c, '*' | '?' | '[');
    if !word.is_glob {
        return Vec::new();
    }
    let mut paths =
        vec![if word.text.starts_with('/') { "/".into() } else { directory.to_owned() }];
    for pattern in word.text.split('/').filter(|it| !it.is_empty()) {
        let fitting = |directory: PathBuf| -> Vec<PathBuf> {
            if !pattern.contains(is_sign) {
                return vec![directory.join(pattern)];
            }
            // What stands in brackets may be any character.
            let open = pattern.replace(['[', ']'], "*");
            let is_meant = |name: &str| {
                (!name.starts_with('.') || pattern.starts_with(['.', '['])) && fits(&open, name)
            };
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let meant = entries.filter(|it| is_meant(&it.file_name().to_string_lossy()));
            meant.map(|it| it.path()).collect()
        };
        paths = paths.into_iter().flat_map(fitting).take(MATCHED).collect();
    }
    paths.iter().filter_map(|it| secret(it, policy)).collect()
}

/// What a path leads to, if it is a file with secrets that a command is given.
fn secret(path: &Path, policy: &Policy) -> Option<PathBuf> {
    let real = fs::canonicalize(path).ok()?;
    policy.secret(path).or_else(|| policy.secret(&real))?;
    let mut roots = policy.roots.iter().filter_map(|it| fs::canonicalize(it).ok());
    roots.any(|it| real.starts_with(it)).then_some(real)
}

/// Every file and folder with secrets in these directories and below, without links, and the first
/// directory that was not looked into any more.
pub(crate) fn secrets(roots: &[PathBuf], policy: &Policy) -> (Vec<PathBuf>, Option<PathBuf>) {
    let mut found = Vec::new();
    let mut walk = DirectoryWalk::new(roots.iter().cloned(), DIRECTORIES);
    while let Some(directory) = walk.next_directory() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            let is_one = policy.secret(&path).is_some();
            match kind {
                // Of a folder all is secret, or what its files are called.
                kind if kind.is_dir() && is_one && policy.secret(&path.join("x")).is_some() => {
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
    (found, walk.unseen())
}
