//! What is wrong with a manifest.

use prowess::{CLIENTS, is_plain_name, name_hint};

use super::MAX_FILE;
use crate::source::SourceSyntaxError;

/// A manifest cannot be read or edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It has too many bytes or skills.
    #[error("the manifest has more than {limit}")]
    TooLarge {
        /// The limit, such as `100000 skills`.
        limit: String,
    },
    /// A merge has left both sides in it.
    #[error("lines {first} to {last} have an unresolved merge conflict")]
    Conflict {
        /// The first line with a marker, counted from 1.
        first: usize,
        /// The last line with a marker.
        last: usize,
    },
    /// It is not TOML.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A value is of another type.
    #[error("line {line}, column {column}: `{key}` {expected}")]
    Type {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The dotted key.
        key: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A value is of the right type, but not one that can be used.
    #[error("line {line}, column {column}: `{value}` in `{key}` {why}")]
    Value {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The dotted key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A key of `[skills]` cannot be the name of a folder on every system.
    #[error("line {line}, column {column}: `{name}` cannot be the name of an installed skill")]
    Name {
        /// The line, counted from 1; 0 for one that is being added.
        line: usize,
        /// The column, counted from 1; 0 for one that is being added.
        column: usize,
        /// The key.
        name: String,
    },
    /// Two keys differ in upper and lower case only.
    #[error(
        "line {line}, column {column}: `{name}` and `{other}` would be one folder on systems that ignore case"
    )]
    Collision {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The second key.
        name: String,
        /// The first key.
        other: String,
    },
    /// A value is not a source.
    #[error("line {line}, column {column}: the source of `{name}` cannot be read")]
    Source {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The key.
        name: String,
        /// The reason.
        source: SourceSyntaxError,
    },
    /// An entry cannot be written such that reading it gives the same.
    #[error("the entry of `{name}` cannot be changed without other changes in the file")]
    NotEdited {
        /// The key.
        name: String,
    },
}

impl ManifestError {
    /// Returns the line and column, counted from 1, if it is about a place.
    pub fn position(&self) -> Option<(usize, usize)> {
        match self {
            Self::Syntax { line, column, .. }
            | Self::Type { line, column, .. }
            | Self::Value { line, column, .. }
            | Self::Name { line, column, .. }
            | Self::Collision { line, column, .. }
            | Self::Source { line, column, .. } => Some((*line, *column)).filter(|it| it.0 > 0),
            Self::Conflict { first, .. } => Some((*first, 1)),
            Self::TooLarge { .. } | Self::NotEdited { .. } => None,
        }
    }

    /// Returns a hint on how to fix it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::TooLarge { .. } => "keep the skills of several projects in several manifests".to_owned(),
            Self::Conflict { .. } => {
                "keep the lines of both sides that you want, and remove the markers".to_owned()
            }
            Self::Syntax { .. } => return None,
            Self::Type { key, .. } => match key.as_str() {
                "skills" => "write `[skills]`, and a line such as `pdf = \"anthropics/skills\"` below it".to_owned(),
                "packages" => "write `[packages]`, and its settings below it".to_owned(),
                "packages.signers" => "write `[packages.signers]`, and a line such as `\"anthropics/*\" = [\"minisign:…\"]` below it".to_owned(),
                "packages.registries" => "write `[packages.registries]`, and a line such as `team = \"https://skills.example.com\"` below it".to_owned(),
                "packages.min_age" => "write a text such as `\"3d\"` or `\"12h\"`".to_owned(),
                key if key.starts_with("skills.") => "write a source such as `\"anthropics/skills\"`, or `{ source = \"…\", skill = \"…\", clients = [\"…\"], copy = true }`".to_owned(),
                _ => return None,
            },
            Self::Value { key, value, .. } if key.ends_with("clients") => name_hint(value, CLIENTS.iter().map(|it| it.name)),
            Self::Value { key, .. } if key == "packages.min_age" => "write a number and `m`, `h`, `d` or `w`, such as `\"3d\"`".to_owned(),
            Self::Value { key, .. } if key.starts_with("packages.registries") => "write a URL such as `https://skills.example.com`".to_owned(),
            Self::Value { key, .. } if key.starts_with("packages.signers") => "a pattern is a source in which `*` stands for anything, such as `anthropics/*`".to_owned(),
            Self::Value { .. } => return None,
            Self::Name { name, .. } => {
                let plain = name.to_lowercase().replace([' ', '_', '.'], "-");
                match is_plain_name(&plain) {
                    true => format!("write `{plain} = {{ source = \"…\", skill = \"{name}\" }}`"),
                    false => "use lowercase letters and digits joined by single hyphens, up to 64, such as `create-pr`; the name in the frontmatter can be given by `skill`".to_owned(),
                }
            }
            Self::Collision { .. } => "rename one of them; its name in the frontmatter can be given by `skill`".to_owned(),
            Self::Source { source, .. } => source.hint.clone(),
            Self::NotEdited { .. } => "write it by hand, on a line of its own below `[skills]`".to_owned(),
        })
    }

    pub(super) fn too_large() -> Self {
        Self::TooLarge { limit: format!("{} MiB", MAX_FILE >> 20) }
    }
}
