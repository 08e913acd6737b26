//! Changes to files of other programs: atomic, and only to the content that was read.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, AtFlags};

use crate::root::{Links, Root, RootError, rename_noreplace};

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
        let (folder, name) = self.folder_and_name(path)?;
        let mut error = RewriteError::Changed;
        let mut is_done = false;
        let is_written = folder.write_if(&name, after, |old: Option<File>| {
            let Some(old) = old else { return Ok(false) };
            let access =
                rustix::fs::accessat(folder.as_fd(), &name, Access::WRITE_OK, AtFlags::empty());
            if access.is_err() || old.metadata()?.permissions().readonly() {
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
        let (folder, name) = self.folder_and_name(path)?;
        let directory = folder.as_fd();
        rename_noreplace(directory, name.as_os_str(), directory, new.as_ref())
            .and_then(|()| rustix::fs::fsync(directory))
            .map_err(|errno| RootError::io(path, errno))
    }

    /// Returns the folder of a path, and its name there.
    fn folder_and_name(&self, path: &Path) -> Result<(Self, PathBuf), RootError> {
        let name = path.file_name().ok_or_else(|| RootError::outside(path))?;
        let folder = self.directory(path.parent().unwrap_or(Path::new("")), Links::Never)?;
        Ok((folder, name.into()))
    }
}
