//! The files of a skill, and whose skills a directory has.

use std::{fmt, time::SystemTime};

/// Whose skill it is. A skill of the project is taken before one of the user of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// It belongs to what is worked on.
    #[default]
    Project,
    /// It belongs to the person.
    User,
    /// It came with the program.
    Bundled,
}

/// A file beside `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its path within the skill's folder, with `/` between the parts.
    pub path: Box<str>,
    /// What it is for.
    pub kind: ResourceKind,
    /// Whether it is text.
    pub is_text: bool,
    /// How large it is.
    pub size: u64,
    /// When it was changed last, where that is known.
    pub modified: Option<SystemTime>,
}

/// What a resource is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The word for it, as in `project:create-pr`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Bundled => "bundled",
        }
    }
}

impl ResourceKind {
    /// The word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Reference => "reference",
            Self::Template => "template",
            Self::Asset => "asset",
        }
    }

    /// The kind of a file, by its ending and then by its folder.
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
