//! A draft of a file: written completely under another name, then moved over the old one.

use std::{
    ffi::{CStr, OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, FlockOperation, Gid, Mode, OFlags, Stat, Uid, XattrFlags},
    io::Errno,
};

use super::{FILE, RootError, kind, open_name};

/// A complete file under a temporary name. Removed when it is dropped before it is committed, and
/// locked as long as its writer lives.
pub(super) struct Draft<'d> {
    directory: &'d OwnedFd,
    draft: Option<OsString>,
    name: &'d OsStr,
    path: &'d Path,
    file: File,
}

impl<'d> Draft<'d> {
    pub(super) fn new(
        directory: &'d OwnedFd,
        name: &'d OsStr,
        path: &'d Path,
        bytes: &[u8],
    ) -> Result<Self, RootError> {
        let old = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if kind(&stat) == FileType::RegularFile => Some(stat),
            Ok(_) => return Err(RootError::NotRegular { path: path.to_owned() }),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(RootError::io(path, errno)),
        };
        let (draft, file) = create(directory, name).map_err(|errno| RootError::io(path, errno))?;
        let mut draft = Self { directory, draft: Some(draft), name, path, file };
        draft.fill(old, bytes).map_err(|error| RootError::io(path, error))?;
        Ok(draft)
    }

    /// Writes the content, with the owner, permissions and attributes of the old file.
    fn fill(&mut self, old: Option<Stat>, bytes: &[u8]) -> io::Result<()> {
        if let Some(old) = old {
            // A user who may write a file may not always change its owner.
            let owner = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            let _ = rustix::fs::fchown(&self.file, Some(owner.0), Some(owner.1));
            rustix::fs::fchmod(&self.file, Mode::from(old.st_mode & 0o777))?;
            self.copy_attributes();
        }
        self.file.write_all(bytes)?;
        self.file.sync_all()
    }

    /// Replaces the file with it.
    pub(super) fn commit(mut self) -> Result<(), RootError> {
        self.replace().map_err(|errno| RootError::io(self.path, errno))
    }

    fn replace(&mut self) -> Result<(), Errno> {
        let draft = self.draft.as_ref().expect("a draft has a name until it is committed");
        rustix::fs::renameat(self.directory, draft, self.directory, self.name)?;
        self.draft = None;
        rustix::fs::fsync(self.directory)
    }

    /// Copies the extended attributes of the old file, including access control lists, as far as
    /// the file system supports them and we are permitted.
    fn copy_attributes(&self) {
        let Ok(old) = open_name(self.directory.as_fd(), self.name, FILE) else { return };
        let mut names = vec![0_u8; rustix::fs::flistxattr_query(&old).unwrap_or(0)];
        let Ok(length) = rustix::fs::flistxattr(&old, &mut names) else { return };
        for name in names[..length].split_inclusive(|it| *it == 0) {
            let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
            let mut value = vec![0_u8; rustix::fs::fgetxattr_query(&old, name).unwrap_or(0)];
            if let Ok(length) = rustix::fs::fgetxattr(&old, name, &mut value) {
                let (value, flags) = (&value[..length], XattrFlags::empty());
                let _ = rustix::fs::fsetxattr(&self.file, name, value, flags);
            }
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            let _ = rustix::fs::unlinkat(self.directory, draft, AtFlags::empty());
        }
    }
}

/// Removes the drafts of a file whose writers died.
pub(super) fn sweep(directory: &OwnedFd, name: &OsStr) {
    let Ok(entries) = Dir::read_from(directory) else { return };
    let (start, end) = affixes(name);
    for entry in entries.flatten() {
        let draft = OsStr::from_bytes(entry.file_name().to_bytes());
        let text = draft.to_string_lossy();
        let random = text.strip_prefix(&start).and_then(|it| it.strip_suffix(end));
        if !random.is_some_and(|it| {
            it.len() == 16 && it.bytes().all(|it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        }) {
            continue;
        }
        let Ok(file) = open_name(directory.as_fd(), draft, FILE) else { continue };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = rustix::fs::unlinkat(directory, draft, AtFlags::empty());
        }
    }
}

/// Creates an empty file with a name that is not taken.
fn create(directory: &OwnedFd, name: &OsStr) -> Result<(OsString, File), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    loop {
        let draft = draft_name(name)?;
        let mode = Mode::from(0o666);
        let file = match rustix::fs::openat(directory, &draft, flags | OFlags::NOFOLLOW, mode) {
            Ok(file) => File::from(file),
            Err(Errno::EXIST) => continue,
            Err(errno) => return Err(errno),
        };
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        // A concurrent sweep may have removed it before it was locked. Some file systems have no
        // locks.
        let is_swept = locked == Err(Errno::WOULDBLOCK) || rustix::fs::fstat(&file)?.st_nlink == 0;
        if !is_swept {
            return Ok((draft, file));
        }
    }
}

/// Returns a hidden, unguessable name.
fn draft_name(name: &OsStr) -> Result<OsString, Errno> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
    let (start, end) = affixes(name);
    Ok(format!("{start}{:016x}{end}", u64::from_ne_bytes(random)).into())
}

/// Returns prefix and suffix of a draft's name.
fn affixes(name: &OsStr) -> (String, &'static str) {
    // The name itself may already have the maximum length.
    let start: String = name.to_string_lossy().chars().take(32).collect();
    (format!(".{start}."), ".draft")
}
