//! The files of a skill, and the scope of a directory.

use std::{fmt, time::SystemTime};

/// The owner of a skill. A skill of the project takes precedence over one of the user of the same
/// name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The project that is worked on.
    #[default]
    Project,
    /// The user.
    User,
    /// The program itself.
    Bundled,
}

/// A file beside `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// Its path within the skill's folder, with `/` between the parts.
    pub path: Box<str>,
    /// Its purpose.
    pub kind: ResourceKind,
    /// Whether it is a text file.
    pub is_text: bool,
    /// Its size, in bytes.
    pub size: u64,
    /// The time of its last modification, if known.
    pub modified: Option<SystemTime>,
}

/// The purpose of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ResourceKind {
    /// To be run.
    Script,
    /// To be read by the model.
    Reference,
    /// To be filled in.
    Template,
    /// To be used as it is.
    Asset,
}

impl Scope {
    /// Returns the word for it, as in `project:create-pr`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Bundled => "bundled",
        }
    }
}

impl ResourceKind {
    /// Returns the word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Reference => "reference",
            Self::Template => "template",
            Self::Asset => "asset",
        }
    }

    /// Returns the kind of a file, by its extension and then by its folder.
    pub fn of(path: &str) -> Self {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let ending = file.rsplit_once('.').map_or("", |it| it.1).to_ascii_lowercase();
        let folder = folder.split('/').next().unwrap_or_default();
        match (ending.as_str(), folder) {
            ("sh" | "bash" | "py", _) => Self::Script,
            ("md" | "mdx" | "txt" | "rst", "scripts" | "bin") => Self::Reference,
            (
                "xsd" | "dtd" | "xml" | "json" | "yml" | "yaml" | "toml" | "csv" | "tsv" | "lock"
                | "css" | "html" | "svg" | "png" | "jpg" | "gif" | "ttf" | "pdf" | "zip",
                "scripts" | "bin",
            ) => Self::Asset,
            (_, "scripts" | "bin") => Self::Script,
            (_, "references" | "reference" | "docs") => Self::Reference,
            (_, "templates" | "template") => Self::Template,
            (_, "assets" | "asset") => Self::Asset,
            (
                "zsh" | "fish" | "ps1" | "bat" | "cmd" | "js" | "mjs" | "cjs" | "ts" | "rb" | "pl"
                | "php" | "lua",
                _,
            ) => Self::Script,
            ("md" | "mdx" | "txt" | "rst" | "pdf" | "html", _) => Self::Reference,
            ("yml" | "yaml" | "json" | "toml" | "template" | "tmpl" | "tpl" | "j2" | "hbs", _) => {
                Self::Template
            }
            _ => Self::Asset,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
