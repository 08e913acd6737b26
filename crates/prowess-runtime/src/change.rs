//! A file that would be written: what it holds now, and what it would hold.

use std::{path::PathBuf, sync::Arc};

use crate::digest::digest;

/// A file that would be written: what it holds now, and what it would hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Where it is, as an absolute path without links.
    pub path: PathBuf,
    /// What it holds now.
    pub before: FileState,
    /// What it would hold; nothing where the tool does not say.
    pub after: Option<Arc<[u8]>>,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// Nobody has looked.
    Unknown,
    /// There is no such file.
    Missing,
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// So many bytes, too many to be read.
    TooLarge(u64),
}

impl FileState {
    /// The SHA-256 of the content, `none` where there is no such file; nothing where it is not known.
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
