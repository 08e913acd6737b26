//! Errors of installing, and the state that they leave.

use std::{fmt, io, path::PathBuf, time::Duration};

use super::conflict::InstallConflict;
use crate::cache::CacheError;

/// Something was not installed, removed or undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// Something of the user's is in the way. Nothing has changed.
    #[error("{}", conflicts(.0))]
    Conflicts(Vec<InstallConflict>),
    /// Other processes were installing something for too long. Nothing has changed.
    #[error("another process has been installing something for {} s; nothing has changed", waited.as_secs())]
    Busy {
        /// The waiting time.
        waited: Duration,
    },
    /// The system reported an error.
    #[error("cannot {action} `{}`; {now}", path.display())]
    Io {
        /// The verb, such as `write`.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The resulting state.
        now: InstallState,
        /// The cause.
        source: io::Error,
    },
    /// The cache does not have what is to be installed.
    #[error("cannot install `{skill}`; {now}")]
    Cache {
        /// The skill.
        skill: String,
        /// The resulting state.
        now: InstallState,
        /// The cause.
        source: CacheError,
    },
    /// Something was changed by somebody else while the change was made.
    #[error("`{}` was changed meanwhile; {now}", path.display())]
    ChangedMeanwhile {
        /// The path.
        path: PathBuf,
        /// The resulting state.
        now: InstallState,
    },
    /// The host cancelled the change.
    #[error("cancelled; {now}")]
    Cancelled {
        /// The resulting state.
        now: InstallState,
    },
    /// An earlier change of this place was interrupted and cannot be taken back yet.
    #[error("an interrupted change cannot be taken back: cannot write `{}`", path.display())]
    Unfinished {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// There is no such change.
    #[error("there is no change `{id}` to undo")]
    NoSuchChange {
        /// The id, as given.
        id: String,
    },
    /// Something was changed since, so that a change cannot be undone.
    #[error("`{}` has changed since; nothing was undone", path.display())]
    ChangedSince {
        /// The path.
        path: PathBuf,
    },
    /// What was replaced is not kept any more.
    #[error("what was in `{}` is not kept any more; nothing was undone", path.display())]
    NotKept {
        /// The path.
        path: PathBuf,
    },
}

/// The state after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallState {
    /// Everything is as it was.
    Unchanged,
    /// Some of the change was made, and the next command takes it back.
    Interrupted,
}

impl fmt::Display for InstallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "nothing has changed",
            Self::Interrupted => {
                "the next `prowess` command that installs takes back what was done"
            }
        })
    }
}

impl InstallError {
    pub(super) fn unchanged(action: &'static str, path: PathBuf, source: io::Error) -> Self {
        Self::Io { action, path, now: InstallState::Unchanged, source }
    }

    /// Returns the same error of another resulting state.
    pub(super) fn with_state(mut self, state: InstallState) -> Self {
        if let Self::Io { now, .. }
        | Self::Cache { now, .. }
        | Self::ChangedMeanwhile { now, .. }
        | Self::Cancelled { now } = &mut self
        {
            *now = state;
        }
        self
    }

    /// Returns what to do; for conflicts that of the first, as each has its own.
    pub fn hint(&self) -> Option<String> {
        let fixed = match self {
            Self::Conflicts(conflicts) => return conflicts.first().map(InstallConflict::hint),
            Self::Busy { .. } => "wait until it has ended, or end it",
            Self::Io { source, .. } | Self::Unfinished { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some disk space, and try again"
                }
                io::ErrorKind::PermissionDenied => "check the permissions of the folder",
                io::ErrorKind::ReadOnlyFilesystem => "the file system cannot be written",
                _ => return None,
            },
            Self::Cache { .. } => "fetch it again with `prowess sync`",
            Self::ChangedMeanwhile { .. } => "try again",
            Self::Cancelled { .. } => return None,
            Self::NoSuchChange { .. } => "`prowess undo --list` lists the changes",
            Self::ChangedSince { path } => {
                return Some(format!("move `{}` away first, or keep it", path.display()));
            }
            Self::NotKept { .. } => "install the earlier version with `prowess add`",
        };
        Some(fixed.to_owned())
    }
}

fn conflicts(all: &[InstallConflict]) -> String {
    match all {
        [] => "there is a conflict; nothing has changed".to_owned(),
        [one] => format!("{one}; nothing has changed"),
        [first, rest @ ..] => {
            let rest = rest.len();
            let conflicts = if rest == 1 { "conflict" } else { "conflicts" };
            format!("{first}, and {rest} more {conflicts}; nothing has changed")
        }
    }
}
