//! Windows and others: no modes, and folders are found by path.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf},
};

use super::EntryKind;

/// A folder.
#[derive(Debug)]
pub(crate) struct OpenFolder(PathBuf);

impl OpenFolder {
    /// Opens a folder; the last name may be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        match path.is_dir() {
            true => Ok(Self(path)),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Returns the names in it and what they are, in no order.
    pub(crate) fn entries(&self) -> io::Result<Vec<(OsString, EntryKind)>> {
        let entry = |it: io::Result<fs::DirEntry>| {
            let it = it?;
            Ok((it.file_name(), kind(&it.metadata()?)))
        };
        fs::read_dir(&self.0)?.map(entry).collect()
    }

    /// Opens a folder in it, which is no link.
    pub(crate) fn folder(&self, name: &OsStr) -> io::Result<Self> {
        self.checked(name, EntryKind::Folder).map(Self)
    }

    /// Opens a file in it, which is no link.
    pub(crate) fn file(&self, name: &OsStr) -> io::Result<File> {
        File::open(self.checked(name, EntryKind::File)?)
    }

    /// Returns the target of a link in it, with `/`.
    pub(crate) fn link(&self, name: &OsStr) -> io::Result<OsString> {
        let target = fs::read_link(self.0.join(name))?;
        let text = target.to_str().ok_or(io::ErrorKind::InvalidData)?;
        Ok(text.replace('\\', "/").into())
    }

    fn checked(&self, name: &OsStr, wanted: EntryKind) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        match kind(&fs::symlink_metadata(&path)?) == wanted {
            true => Ok(path),
            false => Err(io::Error::other("it has been replaced meanwhile")),
        }
    }
}

fn kind(metadata: &Metadata) -> EntryKind {
    match metadata.file_type() {
        it if it.is_symlink() => EntryKind::Link,
        it if it.is_dir() => EntryKind::Folder,
        it if it.is_file() => EntryKind::File,
        _ => EntryKind::Other,
    }
}

/// Whether a file can be executed: there is no bit, and so a script is known by its first line.
pub(crate) fn is_executable(_: &Metadata, start: &[u8]) -> bool {
    start.starts_with(b"#!")
}

/// Whether a file of the cache has the mode that the cache gave it.
pub(crate) fn has_mode(metadata: &Metadata, _executable: bool, writable: bool) -> bool {
    metadata.permissions().readonly() != writable
}

/// Sets what may be done with a file.
pub(crate) fn set_mode(file: &File, _executable: bool, writable: bool) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(!writable);
    file.set_permissions(permissions)
}

/// Returns how many names a file has: not known.
pub(crate) fn link_count(_: &Metadata) -> Option<u64> {
    None
}

/// Creates a folder, with those above it; access lists keep others out.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Fails if a folder belongs to another user: access lists say who may write in it.
pub(crate) fn check_own(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Waits until the names in a folder are on the disk: the file system keeps a journal of them.
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Waits until everything on the file system of a path is on the disk; false where that is not possible.
pub(crate) fn sync_file_system(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Whether an error says that a file system has no locks.
pub(crate) fn is_without_locks(_: &io::Error) -> bool {
    false
}

/// Returns the number of the file system of a file: not known.
pub(crate) fn device(_: &Metadata) -> u64 {
    0
}

/// Waits until a file is on the disk, if that is possible for one that is open for reading.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}
