//! Why a store did not do what it was asked for, and what is true now.

use std::{collections::BTreeSet, fmt, io, path::PathBuf, time::Duration};

use prowess::{ReadError, ReviseError, did_you_mean, is_plain_name};

/// A store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No folder can be called that everywhere.
    #[error("`{name}` is not a valid skill name")]
    BadName {
        /// The name, as given.
        name: String,
    },
    /// It is no path of a resource.
    #[error("`{path}` is not the path of a resource: {why}")]
    BadPath {
        /// The path, as given.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no such skill.
    #[error("there is no skill `{name}`")]
    NoSuchSkill {
        /// The name, as given.
        name: String,
        /// The name that comes nearest.
        nearest: Option<String>,
    },
    /// Its name or folder is taken.
    #[error("`{name}` already exists, in `{}`", folder.display())]
    AlreadyThere {
        /// The name.
        name: String,
        /// Where.
        folder: PathBuf,
    },
    /// What is to be brought back has no place, because its folder is there again.
    #[error("`{name}` cannot be restored: its folder `{}` exists again", folder.display())]
    NoPlace {
        /// The name.
        name: String,
        /// Where.
        folder: PathBuf,
        /// The names of those that can be brought back.
        others: BTreeSet<String>,
    },
    /// What is to be saved would not come back as it is.
    #[error("`{name}` cannot be saved: {why}")]
    Unfit {
        /// The name.
        name: String,
        /// What is in the way.
        why: String,
    },
    /// A file that is there cannot be read as a skill.
    #[error("`{}` cannot be read as a skill: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file that is there cannot be edited without touching what nobody asked for.
    #[error("`{}` was not changed", path.display())]
    NotEdited {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ReviseError,
    },
    /// There is a link, a pipe, a device or a file where a folder or file of the skill should be.
    #[error("`{}` is not a regular file or folder of the store; nothing has changed", path.display())]
    NotOurs {
        /// The path.
        path: PathBuf,
    },
    /// The store is one skill, and holds no others.
    #[error("`{}` is a skill and not a folder of skills; nothing has changed", path.display())]
    IsSkill {
        /// The store.
        path: PathBuf,
    },
    /// Nothing was deleted that could be brought back.
    #[error("there is nothing to restore")]
    NothingToUndo {
        /// The name that was asked for.
        name: Option<String>,
    },
    /// There is nowhere to keep what is deleted.
    #[error("nothing was removed: the trash `{}` cannot be used", path.display())]
    NoTrash {
        /// The trash.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others write to the store all the time.
    #[error("the store `{}` has been locked by another process for {} s; nothing has changed", path.display(), waited.as_secs())]
    Busy {
        /// The store.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A skill that should be added cannot be read.
    #[error("cannot read `{}`", path.display())]
    Source {
        /// The skill.
        path: PathBuf,
        /// Why.
        source: ReadError,
    },
    /// A document is a link that leads out of the store, or no file at all.
    #[error("`{}` is not a regular file of the store", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
    },
    /// The system did not let it be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system did not let it be written.
    #[error("cannot write `{}`; {now}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// What stands behind it.
        why: WriteFailure,
        /// What is true now.
        now: StateAfter,
        /// What the system said.
        source: io::Error,
    },
}

/// Why the system did not let something be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteFailure {
    /// There is no room left, or no more may be used.
    Full,
    /// It may not be written.
    ReadOnly,
    /// Too many files are open.
    TooManyFiles,
    /// Anything else.
    Other,
}

/// What is true after a change that did not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateAfter {
    /// Everything is as it was.
    Unchanged,
    /// The change is there; it may be lost again if the machine stops before it reaches the disk.
    Unsafe,
}

impl StoreError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            // With a second word it could be: no letter of it is wrong.
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
            Self::NothingToUndo { name: Some(name) } => format!("`{name}` was not removed from here, or too long ago"),
            Self::NoTrash { .. } => "check the permissions of that directory, or set `XDG_STATE_HOME` to one that you can write".to_owned(),
            Self::Busy { .. } => "try again, or look for a process that hangs".to_owned(),
            Self::Write { why: WriteFailure::Full, .. } => "free some disk space, and try again".to_owned(),
            Self::Write { why: WriteFailure::ReadOnly, .. } => "check the permissions of the store, or choose another with `--dir DIR`".to_owned(),
            Self::Write { why: WriteFailure::TooManyFiles, .. } => "raise the limit on open files, and try again".to_owned(),
            _ => return None,
        })
    }

    /// Whether a skill or what was asked for is at fault; else the store or the system is.
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
        use rustix::io::Errno;
        match error.kind() {
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Self::Full,
            Kind::ReadOnlyFilesystem | Kind::PermissionDenied => Self::ReadOnly,
            _ => match Errno::from_io_error(error) {
                Some(Errno::MFILE | Errno::NFILE) => Self::TooManyFiles,
                _ => Self::Other,
            },
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
