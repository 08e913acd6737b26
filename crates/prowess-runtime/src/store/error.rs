//! Errors of stores, and the resulting state.

use std::{collections::BTreeSet, fmt, io, path::PathBuf, time::Duration};

use prowess::{ReadError, ReviseError, did_you_mean, is_plain_name};

/// An operation of a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The name cannot be used for a folder on every system.
    #[error("`{name}` is not a valid skill name")]
    BadName {
        /// The name, as given.
        name: String,
    },
    /// It is not the path of a resource.
    #[error("`{path}` is not the path of a resource: {why}")]
    BadPath {
        /// The path, as given.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// There is no such skill.
    #[error("there is no skill `{name}`")]
    NoSuchSkill {
        /// The name, as given.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// Its name or folder exists already.
    #[error("`{name}` already exists, in `{}`", folder.display())]
    AlreadyThere {
        /// The name.
        name: String,
        /// The folder.
        folder: PathBuf,
    },
    /// A skill cannot be restored, because its folder exists again.
    #[error("`{name}` cannot be restored: its folder `{}` exists again", folder.display())]
    NoPlace {
        /// The name.
        name: String,
        /// The folder.
        folder: PathBuf,
        /// The names of those that can be restored.
        others: BTreeSet<String>,
    },
    /// The record would not survive a round trip.
    #[error("`{name}` cannot be saved: {why}")]
    Unfit {
        /// The name.
        name: String,
        /// The reason.
        why: String,
    },
    /// An existing file cannot be parsed as a skill.
    #[error("`{}` cannot be read as a skill: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// An existing file cannot be edited without unrelated changes.
    #[error("`{}` was not changed", path.display())]
    NotEdited {
        /// The file.
        path: PathBuf,
        /// The error.
        source: ReviseError,
    },
    /// There is a link, a pipe, a device or a file in place of a folder or file of the skill.
    #[error("`{}` is not a regular file or folder of the store; nothing has changed", path.display())]
    NotOurs {
        /// The path.
        path: PathBuf,
    },
    /// The store is itself a skill, and contains no others.
    #[error("`{}` is a skill and not a folder of skills; nothing has changed", path.display())]
    IsSkill {
        /// The store.
        path: PathBuf,
    },
    /// No deleted skill can be restored.
    #[error("there is nothing to restore")]
    NothingToUndo {
        /// The requested name.
        name: Option<String>,
    },
    /// The trash cannot be written.
    #[error("nothing was removed: the trash `{}` cannot be used", path.display())]
    NoTrash {
        /// The trash.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Other writers kept the store locked for too long.
    #[error("the store `{}` has been locked by another process for {} s; nothing has changed", path.display(), waited.as_secs())]
    Busy {
        /// The store.
        path: PathBuf,
        /// The waiting time.
        waited: Duration,
    },
    /// A skill to be added cannot be read.
    #[error("cannot read `{}`", path.display())]
    Source {
        /// The skill.
        path: PathBuf,
        /// The error.
        source: ReadError,
    },
    /// A document is a link out of the store, or not a file at all.
    #[error("`{}` is not a regular file of the store", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
    },
    /// Reading failed.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Writing failed.
    #[error("cannot write `{}`; {now}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: WriteFailure,
        /// The resulting state.
        now: StateAfter,
        /// The error of the system.
        source: io::Error,
    },
}

/// The reason why a write failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteFailure {
    /// The disk is full, or the quota is exceeded.
    Full,
    /// Write access is denied.
    ReadOnly,
    /// Too many files are open.
    TooManyFiles,
    /// Anything else.
    Other,
}

/// The state after a failed change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateAfter {
    /// Nothing has changed.
    Unchanged,
    /// The change is visible, but may be lost if the machine stops before it reaches the disk.
    Unsafe,
}

impl StoreError {
    /// Returns a hint on how to fix it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            // If a second word makes it valid, its letters are fine.
            Self::BadName { name } if is_plain_name(&format!("{name}-x")) => format!("`{name}` is a reserved name on Windows: choose another, such as one of two words"),
            Self::BadName { .. } => "use lowercase letters and digits joined by single hyphens, up to 64, such as `create-pr`".to_owned(),
            Self::BadPath { .. } => "give a path in the skill's folder, such as `scripts/run.sh`".to_owned(),
            Self::NoSuchSkill { nearest: Some(near), .. } => did_you_mean(near),
            Self::NoSuchSkill { .. } => "`prowess list` lists all skills".to_owned(),
            Self::AlreadyThere { .. } => "choose another name, or edit the existing skill".to_owned(),
            Self::NoPlace { others, .. } if others.is_empty() => "move the existing folder first".to_owned(),
            Self::NoPlace { others, .. } => {
                let others: Vec<String> = others.iter().map(|it| format!("`prowess undo {it}`")).collect();
                format!("move the existing folder first, or restore another one with {}", others.join(" or "))
            }
            Self::Broken { .. } => "run `prowess check` on it".to_owned(),
            Self::NotEdited { .. } => "edit it by hand".to_owned(),
            Self::NotOurs { .. } => "check what it is, and remove it by hand".to_owned(),
            Self::IsSkill { .. } => "name the directory that the skill is in".to_owned(),
            Self::NothingToUndo { name: Some(name) } => format!("`{name}` was not deleted from this store, or too long ago"),
            Self::NoTrash { .. } => "check the permissions of that directory, or set `XDG_STATE_HOME` to one that you can write".to_owned(),
            Self::Busy { .. } => "try again, or check whether another process hangs".to_owned(),
            Self::Write { why: WriteFailure::Full, .. } => "free some disk space, and try again".to_owned(),
            Self::Write { why: WriteFailure::ReadOnly, .. } => "check the permissions of the store, or choose another with `--dir DIR`".to_owned(),
            Self::Write { why: WriteFailure::TooManyFiles, .. } => "raise the limit on open files, and try again".to_owned(),
            _ => return None,
        })
    }

    /// Whether the fault is in a skill or the request, rather than in the store or the system.
    pub fn is_fault(&self) -> bool {
        !matches!(
            self,
            Self::Busy { .. }
                | Self::NoTrash { .. }
                | Self::Source { .. }
                | Self::Read { .. }
                | Self::Write { .. }
        )
    }
}

impl WriteFailure {
    pub(super) fn of(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Self::Full,
            Kind::ReadOnlyFilesystem | Kind::PermissionDenied => Self::ReadOnly,
            _ if crate::sys::is_too_many_files(error) => Self::TooManyFiles,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for StateAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "nothing has changed",
            Self::Unsafe => "the change was made, but may be lost if the machine crashes now",
        })
    }
}
