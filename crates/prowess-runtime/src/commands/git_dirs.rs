//! Finds the `.git` directories, which may contain tokens, to hide them from other programs.

use std::path::{Path, PathBuf};

use super::{
    PlannedProgram,
    walk::{DIRECTORIES, DirectoryWalk},
};
use crate::{listing::entries, protected::is_named};

/// The `.git` directories below some roots.
#[derive(Debug, Default)]
pub(crate) struct GitDirs {
    /// Every `.git` that was found, with links resolved.
    pub(crate) paths: Vec<PathBuf>,
    /// The first directory that was not searched, because there are too many.
    pub(crate) unsearched: Option<PathBuf>,
}

impl GitDirs {
    /// Searches the roots and below, the nearest directories first, without following links.
    pub(crate) fn new(roots: &[PathBuf]) -> Self {
        let mut found = Self::default();
        let mut walk = DirectoryWalk::new(roots.iter().cloned(), DIRECTORIES);
        while let Some(directory) = walk.next_directory() {
            for entry in entries(&directory) {
                if is_named(&entry.file_name(), ".git") {
                    let real = prowess::real_path(entry.path()).ok();
                    // A target outside of the roots is inaccessible anyway.
                    found.paths.extend(real.filter(|it| is_below(it, roots)));
                } else if entry.file_type().is_ok_and(|it| it.is_dir()) {
                    walk.enter(entry.path());
                }
            }
        }
        found.unsearched = walk.first_unsearched();
        found.paths.sort();
        found.paths.dedup();
        found
    }

    /// Whether a path is in one of them.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.paths.iter().any(|it| path.starts_with(it))
    }
}

/// Whether a path is in one of these directories, but does not contain one of them.
fn is_below(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|it| path.starts_with(it)) && !roots.iter().any(|it| it.starts_with(path))
}

/// Programs that read their input, or individually named files, and do not search directories.
const FILTERS: &[&str] = &[
    "basename", "cat", "column", "cut", "date", "dirname", "echo", "egrep", "false", "fgrep",
    "fold", "grep", "head", "ls", "nl", "printf", "pwd", "rev", "sed", "sort", "tac", "tail",
    "test", "tr", "true", "uniq", "wc",
];

/// Whether a program ignores `.git` if it is accessible because git runs in the same command.
pub(super) fn ignores_git(step: &PlannedProgram) -> bool {
    // By its typed name: several of them may be links to the same program.
    let is_filter = step.program.names().take(1).any(|it| FILTERS.contains(&it));
    let is_grep = step.program.names().any(|it| it.ends_with("grep"));
    is_filter && !step.arguments.iter().any(|it| may_search(&it.text, is_grep))
}

/// Whether an argument of a filter may make it read files that are not named.
fn may_search(argument: &str, is_grep: bool) -> bool {
    match argument.strip_prefix("--") {
        Some(long) => {
            long.starts_with("fi")
                || is_grep && ["re", "de", "di"].iter().any(|it| long.starts_with(it))
        }
        None => is_grep && argument.starts_with('-') && argument.contains(['r', 'R', 'd']),
    }
}
