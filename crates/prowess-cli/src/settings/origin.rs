//! A value with its origin, and problems with their place.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A value with its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Its origin.
    pub origin: SettingOrigin,
}

/// The origin of a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SettingOrigin {
    /// It is not set.
    #[default]
    Default,
    /// It was set in a file.
    File {
        /// The path of the file.
        path: Arc<Path>,
        /// The line, counted from 1.
        line: usize,
    },
    /// It was set by a flag of the command line, such as `--depth`.
    Flag(&'static str),
}

/// A setting that a project's file may not set: as a whole, or some entries of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSetting {
    /// The setting.
    pub key: &'static str,
    /// The place where it is set.
    pub origin: SettingOrigin,
    /// The ignored entries; empty if the whole setting is ignored.
    pub entries: Vec<String>,
    /// The reason.
    pub reason: &'static str,
    /// Whether it applies once the user has approved the file.
    pub can_be_approved: bool,
}

/// The settings are invalid. None of them is applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// All problems, in the order of files and lines.
    pub problems: Vec<ConfigProblem>,
}

/// A problem of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1; `None` for the whole file.
    pub line: Option<usize>,
    /// The message.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
    /// The line itself, without passwords.
    pub excerpt: Option<String>,
    /// The marked bytes of the excerpt.
    pub columns: Option<(usize, usize)>,
}

impl<T> Setting<T> {
    /// Creates a default value.
    pub fn new(value: T) -> Self {
        Self { value, origin: SettingOrigin::Default }
    }

    /// Returns the value, if it is not the default.
    pub fn explicit(&self) -> Option<&T> {
        (self.origin != SettingOrigin::Default).then_some(&self.value)
    }

    /// Sets the value by a flag.
    pub fn flag(&mut self, flag: &'static str, value: T) {
        *self = Self { value, origin: SettingOrigin::Flag(flag) };
    }
}

impl SettingOrigin {
    /// Returns the origin for a file and line.
    pub(super) fn from_place(place: Option<&(PathBuf, usize)>) -> Option<Self> {
        place.map(|(path, line)| Self::File { path: path.as_path().into(), line: *line })
    }

    /// Returns the file and line, owned.
    pub(super) fn to_place(&self) -> Option<(PathBuf, usize)> {
        self.place().map(|(path, line)| (path.to_owned(), line))
    }

    /// Returns the file and line of a value from a file.
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
        for (at, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if at > 0 { "\n" } else { "" })?;
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
