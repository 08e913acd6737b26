//! A walk through directories.

use std::{collections::VecDeque, path::PathBuf};

/// The default maximum number of directories of a walk.
pub(super) const DIRECTORIES: usize = 50_000;

/// A breadth-first walk through directories.
#[derive(Debug)]
pub(super) struct DirectoryWalk {
    open: VecDeque<PathBuf>,
    left: usize,
}

impl DirectoryWalk {
    /// Creates a walk from these directories, through at most `most` directories.
    pub(super) fn new(roots: impl IntoIterator<Item = PathBuf>, most: usize) -> Self {
        Self { open: roots.into_iter().collect(), left: most }
    }

    /// Returns the next directory; `None` after the last one, or after the maximum number.
    pub(super) fn next_directory(&mut self) -> Option<PathBuf> {
        self.left = self.left.checked_sub(1)?;
        self.open.pop_front()
    }

    /// Adds a directory that was found during the walk.
    pub(super) fn enter(&mut self, directory: PathBuf) {
        self.open.push_back(directory);
    }

    /// Returns the first directory that was not visited.
    pub(super) fn first_unsearched(self) -> Option<PathBuf> {
        self.open.into_iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_directories_come_first_and_what_is_left_is_named() {
        let mut walk = DirectoryWalk::new(["a", "b"].map(PathBuf::from), 3);
        let mut seen = Vec::new();
        while let Some(directory) = walk.next_directory() {
            walk.enter(directory.join("x"));
            seen.push(directory);
        }
        assert_eq!(seen, ["a", "b", "a/x"].map(PathBuf::from));
        assert_eq!(walk.first_unsearched(), Some(PathBuf::from("b/x")));
        let mut walk = DirectoryWalk::new([PathBuf::from("a")], 9);
        while walk.next_directory().is_some() {}
        assert_eq!(walk.first_unsearched(), None);
    }
}
