//! A change to a file: its current and its new content.

use std::{path::PathBuf, sync::Arc};

use crate::digest::digest;

/// A change to a file: its current and its new content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChange {
    /// The absolute path, with links resolved.
    pub path: PathBuf,
    /// The current content.
    pub before: FileState,
    /// The new content; `None` if the tool does not know it.
    pub after: Option<Arc<[u8]>>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// It was not read.
    Unknown,
    /// The file does not exist.
    Missing,
    /// The bytes.
    Bytes(Arc<[u8]>),
    /// The size of a file that is too large to read.
    TooLarge(u64),
}

impl FileState {
    /// Returns the SHA-256 of the content, `none` if there is no such file; `None` if it is
    /// unknown.
    pub(crate) fn digest(&self) -> Option<String> {
        match self {
            Self::Missing => Some("none".to_owned()),
            Self::Bytes(bytes) => Some(digest(bytes)),
            Self::Unknown | Self::TooLarge(_) => None,
        }
    }
}

impl From<PathBuf> for FileChange {
    fn from(path: PathBuf) -> Self {
        Self { path, before: FileState::Unknown, after: None }
    }
}

impl From<&str> for FileChange {
    fn from(path: &str) -> Self {
        PathBuf::from(path).into()
    }
}
