//! Directories that are searched for skills, and their scopes.

use std::path::{Path, PathBuf};

use crate::read::source::{Scope, Search};

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

/// A named list of directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Its directories, in order of precedence; those below `~` are the user's.
    pub directories: &'static [&'static str],
}

/// The preset of every directory of every client, in this project and of this user. Which these are
/// depends on where the host runs: see [`Surroundings::here`](crate::Surroundings::here).
pub const HERE: &str = "here";

/// All presets: where the clients of the ecosystem keep their skills.
pub const PRESETS: &[Preset] = &[
    Preset { name: HERE, directories: &[] },
    Preset {
        name: "agents",
        directories: &[".agents/skills", "~/.agents/skills", "~/.config/agents/skills"],
    },
    Preset { name: "aiq", directories: &["~/.aiqconfig/skills"] },
    Preset { name: "claude", directories: &[".claude/skills", "~/.claude/skills"] },
    Preset {
        name: "cline",
        directories: &[".cline/skills", ".clinerules/skills", "~/.cline/skills"],
    },
    Preset { name: "codex", directories: &[".codex/skills", "~/.codex/skills"] },
    Preset { name: "copilot", directories: &[".github/skills", "~/.copilot/skills"] },
    Preset { name: "cursor", directories: &[".cursor/skills", "~/.cursor/skills"] },
    Preset {
        name: "deepagents",
        directories: &[".deepagents/skills", "~/.deepagents/agent/skills"],
    },
    Preset { name: "gemini", directories: &[".gemini/skills", "~/.gemini/skills"] },
    Preset { name: "goose", directories: &[".goose/skills", "~/.config/goose/skills"] },
    Preset { name: "lango", directories: &["~/.lango/skills"] },
    Preset { name: "openclaw", directories: &["skills", "~/.openclaw/skills"] },
    Preset {
        name: "opencode",
        directories: &[".opencode/skills", ".opencode/skill", "~/.config/opencode/skills"],
    },
    Preset { name: "openhands", directories: &[".openhands/skills", "~/.openhands/skills"] },
    Preset { name: "pi", directories: &[".pi/skills", "~/.pi/agent/skills"] },
    Preset { name: "roo", directories: &[".roo/skills", "~/.roo/skills"] },
    Preset { name: "sisu", directories: &[".sisu/skills", "~/.sisu/skills"] },
    Preset { name: "windsurf", directories: &[".windsurf/skills", "~/.codeium/windsurf/skills"] },
];

/// Finds a preset by its name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|it| it.name == name)
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
