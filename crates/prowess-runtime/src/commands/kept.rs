//! What repositories keep for git, where tokens may lie: found, so that nobody else is given it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    PlannedProgram,
    walk::{DIRECTORIES, DirectoryWalk},
};
use crate::listing::entries;

/// What of git lies in some directories.
#[derive(Debug, Default)]
pub(crate) struct GitDirs {
    /// Every `.git` that was found, without links.
    pub(crate) paths: Vec<PathBuf>,
    /// The first directory that was not looked into any more.
    pub(crate) unseen: Option<PathBuf>,
}

impl GitDirs {
    /// Looks for it in the roots and below, the nearest directories first. No link is followed on
    /// the way.
    pub(crate) fn new(roots: &[PathBuf]) -> Self {
        let mut kept = Self::default();
        let mut walk = DirectoryWalk::new(roots.iter().cloned(), DIRECTORIES);
        while let Some(directory) = walk.next_directory() {
            for entry in entries(&directory) {
                if entry.file_name().eq_ignore_ascii_case(".git") {
                    let real = fs::canonicalize(entry.path()).ok();
                    // What a link leads to elsewhere is not given anyway.
                    kept.paths.extend(real.filter(|it| is_below(it, roots)));
                } else if entry.file_type().is_ok_and(|it| it.is_dir()) {
                    walk.enter(entry.path());
                }
            }
        }
        kept.unseen = walk.unseen();
        kept.paths.sort();
        kept.paths.dedup();
        kept
    }

    /// Whether a path is some of it.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.paths.iter().any(|it| path.starts_with(it))
    }
}

/// Whether a path lies in one of these directories, and is none of them.
fn is_below(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|it| path.starts_with(it)) && !roots.iter().any(|it| it.starts_with(path))
}

/// What reads its input, or files that are named one by one, and looks for none itself.
const FILTERS: &[&str] = &[
    "basename", "cat", "column", "cut", "date", "dirname", "echo", "egrep", "false", "fgrep",
    "fold", "grep", "head", "ls", "nl", "printf", "pwd", "rev", "sed", "sort", "tac", "tail",
    "test", "tr", "true", "uniq", "wc",
];

/// Whether a program leaves `.git` alone where it is there, because git runs beside it.
pub(super) fn passes_by(step: &PlannedProgram) -> bool {
    // By its own name: several of them may be one program in truth.
    let is_filter = step.program.names().take(1).any(|it| FILTERS.contains(&it));
    let searches = step.program.names().any(|it| it.ends_with("grep"));
    let looks_around = |word: &str| match word.strip_prefix("--") {
        Some(long) => {
            long.starts_with("fi")
                || searches && ["re", "de", "di"].iter().any(|it| long.starts_with(it))
        }
        None => searches && word.starts_with('-') && word.contains(['r', 'R', 'd']),
    };
    is_filter && !step.arguments.iter().any(|it| looks_around(&it.text))
}
