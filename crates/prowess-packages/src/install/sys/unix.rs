//! Unix systems.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::super::disk::EntryKind;

/// An open directory. Names are changed in the directory that was opened, even if its path leads
/// elsewhere meanwhile.
#[derive(Debug)]
pub(in super::super) struct OpenDirectory(File);

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

impl OpenDirectory {
    /// Opens a directory by an absolute path without links.
    #[cfg(target_os = "linux")]
    pub(in super::super) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        match openat2(CWD, path, DIRECTORY, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS | Errno::PERM) => Self::open_and_compare(path),
            opened => Ok(Self(opened?.into())),
        }
    }

    /// Opens a directory by an absolute path without links.
    #[cfg(not(target_os = "linux"))]
    pub(in super::super) fn open(path: &Path) -> io::Result<Self> {
        Self::open_and_compare(path)
    }

    fn open_and_compare(path: &Path) -> io::Result<Self> {
        let directory = File::from(rustix::fs::open(path, DIRECTORY, Mode::empty())?);
        let (opened, named) = (directory.metadata()?, fs::symlink_metadata(path)?);
        let is_same = (opened.dev(), opened.ino()) == (named.dev(), named.ino());
        if is_same && fs::canonicalize(path)? == path {
            Ok(Self(directory))
        } else {
            Err(Errno::LOOP.into())
        }
    }

    /// Whether a path still leads to it.
    pub(in super::super) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let (own, named) = (self.0.metadata()?, fs::symlink_metadata(path)?);
        Ok((own.dev(), own.ino()) == (named.dev(), named.ino()))
    }

    pub(in super::super) fn kind(&self, name: &OsStr) -> io::Result<Option<EntryKind>> {
        let stat = match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => EntryKind::Folder,
            FileType::RegularFile => EntryKind::File,
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
                EntryKind::Link(OsString::from_vec(target.into_bytes()).into())
            }
            _ => EntryKind::Other,
        }))
    }

    pub(in super::super) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub(in super::super) fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::from(0o777))?)
    }

    pub(in super::super) fn create_link(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Renames something to a name that is not taken.
    pub(in super::super) fn rename(&self, old: &OsStr, new: &OsStr) -> io::Result<()> {
        let directory = &self.0;
        match rustix::fs::renameat_with(directory, old, directory, new, RenameFlags::NOREPLACE) {
            // Some file systems cannot do that.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match self.kind(new)? {
                None => Ok(rustix::fs::renameat(directory, old, directory, new)?),
                Some(_) => Err(Errno::EXIST.into()),
            },
            renamed => Ok(renamed?),
        }
    }

    /// Renames a file, in place of another if there is one.
    pub(in super::super) fn replace(&self, old: &OsStr, new: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, old, &self.0, new)?)
    }

    /// Exchanges two files; `false` if that is not possible here.
    pub(in super::super) fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<bool> {
        match rustix::fs::renameat_with(&self.0, one, &self.0, other, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
            exchanged => Ok(exchanged.map(|()| true)?),
        }
    }

    pub(in super::super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(in super::super) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    pub(in super::super) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// Opens a file for reading, without following a link or waiting for a pipe.
pub(in super::super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    File::options().read(true).custom_flags(flags.cast_signed()).open(path)
}

/// Whether a file can be executed; `None` if files do not say that here.
pub(in super::super) fn is_executable(metadata: &Metadata) -> Option<bool> {
    Some(metadata.mode() & 0o111 != 0)
}

/// Makes a file of the user's executable.
pub(in super::super) fn set_executable(path: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.mode();
    fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 | 0o111))
}

/// Lets its owner change what is in a directory.
pub(in super::super) fn open_up(directory: &Path) {
    let mode = fs::symlink_metadata(directory).map_or(0o700, |it| it.mode() & 0o7777 | 0o700);
    let _ = fs::set_permissions(directory, Permissions::from_mode(mode));
}

/// Creates a directory and its parents, for this user alone.
pub(in super::super) fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Options that create files for this user alone, and follow no link.
pub(in super::super) fn private_file() -> fs::OpenOptions {
    let mut options = File::options();
    options.mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Creates a link anywhere.
pub(in super::super) fn create_link(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Waits until the names in a directory are on the disk.
pub(in super::super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Whether a rename failed because the target is on another file system.
pub(in super::super) fn is_other_device(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::XDEV)
}

/// Returns a path as bytes, as the trash of the store has it.
pub(in super::super) fn path_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_owned()
}

/// Whether links to folders can be created.
pub(in super::super) fn has_links() -> bool {
    true
}

/// Returns the target of a link as it is written, with `/`.
pub(in super::super) fn link_target(text: &str) -> PathBuf {
    PathBuf::from(text)
}
