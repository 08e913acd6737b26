//! What is wrong with a lock file.

use crate::{
    digest::{ContentDigest, DigestSyntaxError},
    manifest::{MAX_FILE, MAX_SKILLS},
    source::SourceSyntaxError,
};

/// A lock file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// It has too many bytes, skills or files.
    #[error("the lock file has more than {limit}")]
    TooLarge {
        /// The limit, such as `100000 skills`.
        limit: String,
    },
    /// A newer Prowess wrote it.
    #[error("the lock file has version {version}, and this program reads up to {newest}")]
    Newer {
        /// The version of the file.
        version: i64,
        /// The newest version that can be read.
        newest: i64,
    },
    /// A merge has left both sides in it.
    #[error("the lock file has an unresolved merge conflict in lines {first} to {last}")]
    Conflict {
        /// The first line with a marker, counted from 1.
        first: usize,
        /// The last line with a marker.
        last: usize,
    },
    /// It is not TOML.
    #[error("line {line}, column {column} of the lock file: {message}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A field is missing or of another type.
    #[error("line {line} of the lock file: `{field}` {expected}")]
    Field {
        /// The line, counted from 1.
        line: usize,
        /// The field, such as `files.size`.
        field: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A value cannot be used.
    #[error("{}: {field} `{value}` {why}", place(*line, skill))]
    Value {
        /// The line, counted from 1; none for a skill that is being added.
        line: Option<usize>,
        /// The skill.
        skill: String,
        /// The field.
        field: &'static str,
        /// The value, without control characters.
        value: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A skill is there twice.
    #[error("line {line} of the lock file: the skill `{name}` is there twice")]
    Duplicate {
        /// The line of the second one, counted from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// A digest cannot be read.
    #[error("line {line} of the lock file: the digest of `{of}` cannot be read")]
    Digest {
        /// The line, counted from 1.
        line: usize,
        /// The skill or file.
        of: String,
        /// The reason.
        source: DigestSyntaxError,
    },
    /// The files are not those of the digest.
    #[error("{}: the digest of its files is `{actual}`, and not `{said}`", place(*line, skill))]
    Mismatch {
        /// The line, counted from 1; none for a skill that is being added.
        line: Option<usize>,
        /// The skill.
        skill: String,
        /// The digest in the lock.
        said: ContentDigest,
        /// The digest of the files in the lock.
        actual: ContentDigest,
    },
    /// A path leads elsewhere, or is not the same everywhere.
    #[error("{}: the path `{path}` {why}", place(*line, skill))]
    Path {
        /// The line, counted from 1; none for a skill that is being added.
        line: Option<usize>,
        /// The skill.
        skill: String,
        /// The path, without control characters.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A target has a form that this version does not know.
    #[error("line {line} of the lock file: `{form}` is not a form of a target")]
    Form {
        /// The line, counted from 1.
        line: usize,
        /// The form.
        form: String,
    },
    /// A source cannot be read.
    #[error("line {line} of the lock file: the source of `{skill}` cannot be read")]
    Source {
        /// The line, counted from 1.
        line: usize,
        /// The skill.
        skill: String,
        /// The reason.
        source: SourceSyntaxError,
    },
}

impl LockError {
    /// Returns a hint on how to fix it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::TooLarge { .. } => "split the skills into several projects".to_owned(),
            Self::Newer { .. } => "update Prowess; nothing has changed".to_owned(),
            Self::Conflict { .. } => "take either side, such as with `git checkout --theirs prowess.lock`, and run `prowess sync`, which adds what `prowess.toml` asks for".to_owned(),
            Self::Form { .. } | Self::Source { .. } => "update Prowess, or restore the file from version control".to_owned(),
            Self::Path { why: "is outside of the project", .. } => "do not trust this file; restore it from version control, or delete it and run `prowess sync`".to_owned(),
            _ => "restore the file from version control, or delete it and run `prowess sync` to make a new one".to_owned(),
        })
    }

    /// Returns the first line, counted from 1, if it is about one.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::TooLarge { .. } | Self::Newer { .. } => None,
            Self::Conflict { first: line, .. }
            | Self::Syntax { line, .. }
            | Self::Field { line, .. }
            | Self::Duplicate { line, .. }
            | Self::Digest { line, .. }
            | Self::Form { line, .. }
            | Self::Source { line, .. } => Some(*line),
            Self::Value { line, .. } | Self::Mismatch { line, .. } | Self::Path { line, .. } => {
                *line
            }
        }
    }

    /// Adds the line of a fault that was found without one.
    pub(super) fn at(mut self, at: usize) -> Self {
        if let Self::Value { line, .. } | Self::Mismatch { line, .. } | Self::Path { line, .. } =
            &mut self
        {
            line.get_or_insert(at);
        }
        self
    }

    pub(super) fn too_long() -> Self {
        Self::TooLarge { limit: format!("{} MiB", MAX_FILE >> 20) }
    }

    pub(super) fn too_many() -> Self {
        Self::TooLarge { limit: format!("{MAX_SKILLS} skills") }
    }
}

fn place(line: Option<usize>, skill: &str) -> String {
    match line {
        Some(line) => format!("line {line} of the lock file, `{skill}`"),
        None => format!("`{skill}` cannot be locked"),
    }
}
