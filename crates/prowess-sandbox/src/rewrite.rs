//! Changes to files of other programs: atomic, and only to the content that was read.

use std::{fs::File, io::Read as _, path::Path};

use crate::root::{Root, RootError};

/// A file was not rewritten and is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// It is not writable, at least for this user.
    #[error("it is read-only")]
    ReadOnly,
    /// Its content is no longer what was read.
    #[error("another program has changed it in the meantime")]
    Changed,
    /// It could not be reached or written.
    #[error(transparent)]
    Root(#[from] RootError),
}

impl Root {
    /// Replaces a file whose content is still `before` with `after`, and keeps its permissions,
    /// attributes and, if allowed, owner. A file whose content is already `after` is a success. No
    /// link is followed on the path.
    pub fn rewrite(&self, path: &Path, before: &[u8], after: &[u8]) -> Result<(), RewriteError> {
        let (folder, name) = self.existing_parent(path)?;
        let mut error = RewriteError::Changed;
        let mut is_done = false;
        let is_written = folder.write_if(Path::new(name), after, |old: Option<File>| {
            let Some(old) = old else { return Ok(false) };
            if !folder.directory.is_writable(name) || old.metadata()?.permissions().readonly() {
                error = RewriteError::ReadOnly;
                return Ok(false);
            }
            let most = before.len().max(after.len()) as u64;
            let mut now = Vec::new();
            old.take(most + 1).read_to_end(&mut now)?;
            is_done = now == after;
            Ok(now == before)
        })?;
        if is_written || is_done { Ok(()) } else { Err(error) }
    }

    /// Renames a file or folder within its folder, to a name that is not taken. No link is followed
    /// on the path.
    pub fn rename(&self, path: &Path, new: &str) -> Result<(), RootError> {
        let (folder, name) = self.existing_parent(path)?;
        folder
            .move_noreplace(name, &folder, new.as_ref())
            .and_then(|()| folder.sync())
            .map_err(|error| RootError::io(path, error))
    }
}
