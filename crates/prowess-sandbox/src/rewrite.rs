//! Changes to what somebody else wrote: each whole or not at all, and only to what was read.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, AtFlags};

use crate::root::{Links, Root, RootError, rename_noreplace};

/// A file was not rewritten; it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// It is not to be written to, at least not by us.
    #[error("it is read-only")]
    ReadOnly,
    /// It does not hold any more what was read.
    #[error("another program has changed it in the meantime")]
    Changed,
    /// It could not be reached or written.
    #[error(transparent)]
    Root(#[from] RootError),
}

impl Root {
    /// Puts `after` in the place of a file that still holds `before`, with the rights, the attributes
    /// and, where that is allowed, the owner that it had. One that holds `after` already is well. No
    /// link is followed on the way.
    pub fn rewrite(&self, path: &Path, before: &[u8], after: &[u8]) -> Result<(), RewriteError> {
        let (folder, name) = self.place(path)?;
        let mut error = RewriteError::Changed;
        let mut is_done = false;
        let is_wanted = |old: Option<File>| {
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
        };
        let is_written = folder.write_if(&name, after, is_wanted)?;
        if is_written || is_done { Ok(()) } else { Err(error) }
    }

    /// Gives a file or folder another name beside it, which nothing has yet. No link is followed on
    /// the way.
    pub fn rename(&self, path: &Path, new: &str) -> Result<(), RootError> {
        let (folder, name) = self.place(path)?;
        let directory = folder.as_fd();
        rename_noreplace(directory, name.as_os_str(), directory, new.as_ref())
            .and_then(|()| rustix::fs::fsync(directory))
            .map_err(|errno| RootError::Io { path: path.to_owned(), source: errno.into() })
    }

    /// The folder that something lies in, and its name there.
    fn place(&self, path: &Path) -> Result<(Self, PathBuf), RootError> {
        let outside = || RootError::Outside { path: path.to_owned() };
        let name = path.file_name().ok_or_else(outside)?;
        let folder = self.directory(path.parent().unwrap_or(Path::new("")), Links::Never)?;
        Ok((folder, name.into()))
    }
}
