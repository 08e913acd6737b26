//! A key in a file.

use std::{io, io::Read as _, path::Path};

use prowess_runtime::sys::{MetadataExt as _, open_no_wait, user_id};

/// A key could not be read from a file. No message contains any of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFileError {
    /// The file cannot be read.
    #[error("the key cannot be read")]
    Read(#[source] io::Error),
    /// It is not a regular file.
    #[error("the key file is not a regular file")]
    Kind,
    /// Others could read or change it.
    #[error("the key file can be read or changed by others (mode {mode:03o})")]
    Open {
        /// Its permissions.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("the key file belongs to another user")]
    Owner,
    /// It is empty, has more than one line, or is not text.
    #[error("the key file must have one line of text")]
    Content,
}

impl KeyFileError {
    /// Returns a hint.
    #[cfg(any(feature = "agent", feature = "mcp"))]
    pub(crate) fn hint(&self, path: &Path) -> Option<String> {
        let path = path.display();
        match self {
            Self::Open { .. } => Some(format!("run `chmod 600 {path}`")),
            _ => None,
        }
    }
}

/// The longest key, in bytes.
const LONGEST: u64 = 16 * 1024;

/// Reads the key in a file that only its owner, the user, can read.
pub(crate) fn read_key_file(path: &Path) -> Result<String, KeyFileError> {
    let file = open_no_wait(path).map_err(KeyFileError::Read)?;
    // The open file is checked, because the path may lead elsewhere by now.
    let metadata = file.metadata().map_err(KeyFileError::Read)?;
    if !metadata.is_file() {
        return Err(KeyFileError::Kind);
    }
    if metadata.uid() != user_id() {
        return Err(KeyFileError::Owner);
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(KeyFileError::Open { mode: metadata.mode() & 0o777 });
    }
    let mut text = String::new();
    match file.take(LONGEST + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 <= LONGEST => {}
        Err(error) if error.kind() != io::ErrorKind::InvalidData => {
            return Err(KeyFileError::Read(error));
        }
        _ => return Err(KeyFileError::Content),
    }
    match text.trim() {
        key if key.is_empty() || key.contains(char::is_whitespace) => Err(KeyFileError::Content),
        key => Ok(key.to_owned()),
    }
}
