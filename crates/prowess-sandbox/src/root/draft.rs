//! A draft of a file: written completely under another name, then moved over the old one.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, TryLockError},
    io::{self, Write as _},
    path::Path,
};

use super::RootError;
use crate::{file_type::FileType, platform::Directory};

/// A complete file under a temporary name. Removed when it is dropped before it is committed, and
/// locked as long as its writer lives.
pub(super) struct Draft<'d> {
    directory: &'d Directory,
    draft: Option<OsString>,
    name: &'d OsStr,
    path: &'d Path,
    file: File,
}

impl<'d> Draft<'d> {
    pub(super) fn new(
        directory: &'d Directory,
        name: &'d OsStr,
        path: &'d Path,
        bytes: &[u8],
    ) -> Result<Self, RootError> {
        let exists = match directory.inspect(name) {
            Ok((FileType::RegularFile, _)) => true,
            Ok(_) => return Err(RootError::NotRegular { path: path.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(RootError::io(path, error)),
        };
        let (draft, file) = create(directory, name).map_err(|error| RootError::io(path, error))?;
        let mut draft = Self { directory, draft: Some(draft), name, path, file };
        draft.fill(exists, bytes).map_err(|error| RootError::io(path, error))?;
        Ok(draft)
    }

    /// Writes the content, with the owner, permissions and attributes of the old file.
    fn fill(&mut self, exists: bool, bytes: &[u8]) -> io::Result<()> {
        if exists {
            self.directory.copy_attributes(self.name, &self.file)?;
        }
        self.file.write_all(bytes)?;
        self.file.sync_all()
    }

    /// Replaces the file with it.
    pub(super) fn commit(mut self) -> Result<(), RootError> {
        self.replace().map_err(|error| RootError::io(self.path, error))
    }

    fn replace(&mut self) -> io::Result<()> {
        let draft = self.draft.as_ref().expect("a draft has a name until it is committed");
        self.directory.rename(draft, self.directory, self.name)?;
        self.draft = None;
        self.directory.sync()
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            let _ = self.directory.remove_file(draft);
        }
    }
}

/// Removes the drafts of a file whose writers died.
pub(super) fn sweep(directory: &Directory, name: &OsStr) {
    let Ok(names) = directory.names() else { return };
    let (start, end) = affixes(name);
    for draft in names.flatten() {
        let text = draft.to_string_lossy();
        let random = text.strip_prefix(&start).and_then(|it| it.strip_suffix(end));
        if !random.is_some_and(|it| {
            it.len() == 16 && it.bytes().all(|it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        }) {
            continue;
        }
        let Ok(file) = directory.open_file(Path::new(&draft)) else { continue };
        if file.try_lock().is_ok() {
            let _ = directory.remove_file(&draft);
        }
    }
}

/// Creates an empty file with a name that is not taken.
fn create(directory: &Directory, name: &OsStr) -> io::Result<(OsString, File)> {
    loop {
        let draft = draft_name(name)?;
        let file = match directory.create_file(&draft, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        // A concurrent sweep may have removed it before it was locked. Some file systems have no
        // locks.
        let is_locked = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if !is_locked && directory.inspect(&draft).is_ok() {
            return Ok((draft, file));
        }
    }
}

/// Returns a hidden, unguessable name.
fn draft_name(name: &OsStr) -> io::Result<OsString> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random)?;
    let (start, end) = affixes(name);
    Ok(format!("{start}{:016x}{end}", u64::from_ne_bytes(random)).into())
}

/// Returns prefix and suffix of a draft's name.
fn affixes(name: &OsStr) -> (String, &'static str) {
    // The name itself may already have the maximum length.
    let start: String = name.to_string_lossy().chars().take(32).collect();
    (format!(".{start}."), ".draft")
}
