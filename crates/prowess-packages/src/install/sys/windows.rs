//! Windows. There are no open directories to work in, so paths are checked before each step.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io,
    os::windows::fs::{OpenOptionsExt as _, symlink_dir, symlink_file},
    path::{Path, PathBuf},
};

use super::super::disk::EntryKind;

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself, and is then no regular file.
const NO_FOLLOW: u32 = 0x20_0000;
const ERROR_NOT_SAME_DEVICE: i32 = 17;

/// A directory without links on its path.
#[derive(Debug)]
pub(in super::super) struct OpenDirectory(PathBuf);

impl OpenDirectory {
    /// Opens a directory by an absolute path without links.
    pub(in super::super) fn open(path: &Path) -> io::Result<Self> {
        if !fs::symlink_metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        match prowess::real_path(path)? == path {
            true => Ok(Self(path.to_owned())),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Whether a path still leads to it.
    pub(in super::super) fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(prowess::real_path(path)? == self.0)
    }

    pub(in super::super) fn kind(&self, name: &OsStr) -> io::Result<Option<EntryKind>> {
        let path = self.0.join(name);
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata?,
        };
        Ok(Some(match metadata.file_type() {
            it if it.is_symlink() => EntryKind::Link(fs::read_link(path)?),
            it if it.is_dir() => EntryKind::Folder,
            it if it.is_file() => EntryKind::File,
            _ => EntryKind::Other,
        }))
    }

    pub(in super::super) fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.0)?.map(|it| Ok(it?.file_name())).collect()
    }

    pub(in super::super) fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    pub(in super::super) fn create_link(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        symlink_dir(target, self.0.join(name))
    }

    /// Renames something to a name that is not taken.
    pub(in super::super) fn rename(&self, old: &OsStr, new: &OsStr) -> io::Result<()> {
        match self.kind(new)? {
            None => fs::rename(self.0.join(old), self.0.join(new)),
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Renames a file, in place of another if there is one.
    pub(in super::super) fn replace(&self, old: &OsStr, new: &OsStr) -> io::Result<()> {
        fs::rename(self.0.join(old), self.0.join(new))
    }

    /// Exchanges two files; `false` if that is not possible here.
    pub(in super::super) fn exchange(&self, _: &OsStr, _: &OsStr) -> io::Result<bool> {
        Ok(false)
    }

    pub(in super::super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        let path = self.0.join(name);
        // A link to a directory is removed like one.
        fs::remove_file(&path).or_else(|error| match fs::symlink_metadata(&path) {
            Ok(it) if it.is_symlink() => fs::remove_dir(&path),
            _ => Err(error),
        })
    }

    pub(in super::super) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    pub(in super::super) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a file for reading, without following a link.
pub(in super::super) fn open_file(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(NO_FOLLOW).open(path)
}

/// Whether a file can be executed; `None` if files do not say that here.
pub(in super::super) fn is_executable(_: &Metadata) -> Option<bool> {
    None
}

/// Makes a file of the user's executable: its name decides here.
pub(in super::super) fn set_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Lets its owner change what is in a directory: read-only files cannot be removed here.
pub(in super::super) fn open_up(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if let Ok(metadata) = entry.metadata()
            && metadata.is_file()
            && metadata.permissions().readonly()
        {
            let mut permissions = metadata.permissions();
            #[expect(clippy::permissions_set_readonly_false, reason = "only on Windows")]
            permissions.set_readonly(false);
            let _ = fs::set_permissions(entry.path(), permissions);
        }
    }
}

/// Creates a directory and its parents.
pub(in super::super) fn create_private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Options that create files, and follow no link.
pub(in super::super) fn private_file() -> fs::OpenOptions {
    let mut options = File::options();
    options.custom_flags(NO_FOLLOW);
    options
}

/// Creates a link anywhere.
pub(in super::super) fn create_link(target: &Path, link: &Path) -> io::Result<()> {
    match link.parent().unwrap_or(Path::new("")).join(target).is_dir() {
        true => symlink_dir(target, link),
        false => symlink_file(target, link),
    }
}

/// Waits until the names in a directory are on the disk: the file system keeps a journal of them.
pub(in super::super) fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether a rename failed because the target is on another drive.
pub(in super::super) fn is_other_device(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_NOT_SAME_DEVICE)
}

/// Returns a path as bytes, as the trash of the store has it.
pub(in super::super) fn path_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_owned()
}

/// Whether links to folders can be created: most users may not.
pub(in super::super) fn has_links() -> bool {
    false
}

/// Returns the target of a link as it is written, with `\`.
pub(in super::super) fn link_target(text: &str) -> PathBuf {
    PathBuf::from(text.replace('/', "\\"))
}
