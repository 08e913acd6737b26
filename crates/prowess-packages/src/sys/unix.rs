//! Unix: folders are opened below each other without following links, so that one swapped in
//! meanwhile leads nowhere.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::Path,
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags, openat, readlinkat, statat},
    io::Errno,
};

use super::EntryKind;

/// An open folder.
#[derive(Debug)]
pub(crate) struct OpenFolder(File);

impl OpenFolder {
    /// Opens a folder; the last name may be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?.into()))
    }

    /// Returns the names in it and what they are, in no order.
    pub(crate) fn entries(&self) -> io::Result<Vec<(OsString, EntryKind)>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                let found = statat(&self.0, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
                kind = FileType::from_raw_mode(found.st_mode as rustix::fs::RawMode);
            }
            let kind = match kind {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Folder,
                FileType::Symlink => EntryKind::Link,
                _ => EntryKind::Other,
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    /// Opens a folder in it, which is no link.
    pub(crate) fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(&self.0, name, flags, Mode::empty())?.into()))
    }

    /// Opens a file in it, which is no link, without waiting for a pipe.
    pub(crate) fn file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?.into())
    }

    /// Returns the target of a link in it, with `/`.
    pub(crate) fn link(&self, name: &OsStr) -> io::Result<OsString> {
        Ok(OsString::from_vec(readlinkat(&self.0, name, Vec::new())?.into_bytes()))
    }
}

/// Whether the owner may execute a file.
pub(crate) fn is_executable(metadata: &Metadata, _start: &[u8]) -> bool {
    metadata.mode() & 0o100 != 0
}

/// Whether a file of the cache has the mode that the cache gave it.
pub(crate) fn has_mode(metadata: &Metadata, executable: bool, writable: bool) -> bool {
    metadata.mode() & 0o7777 == mode(executable, writable)
}

/// Sets what may be done with a file.
pub(crate) fn set_mode(file: &File, executable: bool, writable: bool) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode(executable, writable)))
}

fn mode(executable: bool, writable: bool) -> u32 {
    match (executable, writable) {
        (true, true) => 0o755,
        (false, true) => 0o644,
        (true, false) => 0o555,
        (false, false) => 0o444,
    }
}

/// Returns how many names a file has.
pub(crate) fn link_count(metadata: &Metadata) -> Option<u64> {
    Some(metadata.nlink())
}

/// Creates a folder that only its owner can enter, with those above it.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Fails if a folder belongs to another user, or everyone can write in it: then what is read from it
/// may be anybody's.
pub(crate) fn check_own(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    let why = if metadata.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user"
    } else if metadata.mode() & 0o002 != 0 {
        "everyone can write in it"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Waits until the names in a folder are on the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match rustix::fs::fsync(File::open(path)?) {
        // Some network file systems cannot.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(()),
        other => Ok(other?),
    }
}

/// Waits until everything on the file system of a path is on the disk; false where that is not possible.
#[cfg(target_os = "linux")]
pub(crate) fn sync_file_system(path: &Path) -> io::Result<bool> {
    Ok(rustix::fs::syncfs(File::open(path)?).map(|()| true)?)
}

/// Waits until everything on the file system of a path is on the disk; false where that is not possible.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_file_system(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Whether an error says that a file system has no locks.
pub(crate) fn is_without_locks(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOLCK | Errno::NOSYS | Errno::NOTSUP))
}

/// Returns the number of the file system of a file.
pub(crate) fn device(metadata: &Metadata) -> u64 {
    metadata.dev()
}

/// Waits until a file is on the disk.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
