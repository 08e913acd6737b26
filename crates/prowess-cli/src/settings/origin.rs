//! A value with where it came from, and what is wrong where.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A value, and where it came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting<T> {
    /// What holds.
    pub value: T,
    /// Where it came from.
    pub origin: SettingOrigin,
}

/// Where a value came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Nobody has set it.
    #[default]
    Default,
    /// A file.
    File {
        /// Which.
        path: Arc<Path>,
        /// The line, counted from 1.
        line: usize,
    },
    /// A flag of the command line, such as `--depth`.
    Flag(&'static str),
}

/// What the file of a project sets and may not: a whole setting, or some entries of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSetting {
    /// The setting.
    pub key: &'static str,
    /// Where it is set.
    pub origin: SettingOrigin,
    /// The entries that are ignored; all of it when there are none.
    pub entries: Vec<String>,
    /// Why.
    pub reason: &'static str,
    /// Whether it applies once the user has approved the file.
    pub can_be_approved: bool,
}

/// What was set cannot be used. Nothing holds then, not even the rest of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// All that is wrong, in the order of files and lines.
    pub faults: Vec<ConfigProblem>,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1; nothing when all of it is meant.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The line itself, without passwords.
    pub excerpt: Option<String>,
    /// Which bytes of the excerpt are meant.
    pub columns: Option<(usize, usize)>,
}

impl<T> Setting<T> {
    /// What holds where nobody has set anything.
    pub fn new(value: T) -> Self {
        Self { value, origin: SettingOrigin::Default }
    }

    /// What somebody has set.
    pub fn given(&self) -> Option<&T> {
        (self.origin != SettingOrigin::Default).then_some(&self.value)
    }

    /// Takes what a flag says.
    pub fn flag(&mut self, flag: &'static str, value: T) {
        *self = Self { value, origin: SettingOrigin::Flag(flag) };
    }
}

impl SettingOrigin {
    /// A file and a line, where there are any.
    pub(super) fn of_place(place: Option<&(PathBuf, usize)>) -> Option<Self> {
        place.map(|(path, line)| Self::File { path: path.as_path().into(), line: *line })
    }

    /// The file and line, owned.
    pub(super) fn to_place(&self) -> Option<(PathBuf, usize)> {
        self.place().map(|(path, line)| (path.to_owned(), line))
    }

    /// The file and line, for what came from a file.
    pub(super) fn place(&self) -> Option<(&Path, usize)> {
        match self {
            Self::File { path, line } => Some((path, *line)),
            Self::Default | Self::Flag(_) => None,
        }
    }
}

impl ConfigProblem {
    pub(super) fn new(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        let (path, message) = (path.into(), message.into());
        Self { path, line: None, message, hint: None, excerpt: None, columns: None }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{fault}", if at > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, message, hint, .. } = self;
        let line = line.map(|it| format!(":{it}")).unwrap_or_default();
        write!(f, "{}{line}: {message}", path.display())?;
        hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}
