//! Directories that are searched for skills, and their scopes.

use std::path::{Path, PathBuf};

use crate::{
    clients::Preset,
    read::source::{Scope, Search},
};

/// A directory to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The path as given: absolute, relative, or below `~`.
    pub path: PathBuf,
    /// The scope of its skills.
    pub scope: Scope,
    /// Whether it may be missing without a finding. Most directories of a preset are.
    pub optional: bool,
    /// The folders of it that are searched.
    pub search: Search,
}

impl Directory {
    /// Returns a directory with the scope of its path: the user's below `~`, else the project's.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let scope = if path.starts_with("~") { Scope::User } else { Scope::Project };
        Self { path, scope, optional: false, search: Search::Plain }
    }

    /// Returns a directory that may be a whole repository, with skills anywhere in it.
    pub fn repository(path: impl Into<PathBuf>) -> Self {
        Self { search: Search::Repository, ..Self::new(path) }
    }

    /// Returns the path to open: `~` is the home directory, and a relative path begins at `cwd`.
    pub fn resolve(&self, cwd: Option<&Path>, home: Option<&Path>) -> PathBuf {
        let path = match (self.path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.path.clone(),
        };
        match cwd {
            Some(cwd) => cwd.join(path),
            None => path,
        }
    }
}

impl Preset {
    /// Returns the directories of the preset.
    pub fn directories(&self) -> impl Iterator<Item = Directory> {
        self.directories.iter().map(|path| Directory { optional: true, ..Directory::new(path) })
    }
}
