//! An open directory, and what can be done with the names in it.

use std::{
    ffi::{CStr, OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, Dir, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags},
    io::Errno,
};

use crate::file_type::FileType;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

/// The flags for opening a file: never blocks, whatever the file is.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// The flags for opening a directory.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Whether a path was not opened because a link on it may lead outside.
pub(crate) fn leads_outside(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::XDEV | Errno::LOOP))
}

impl Directory {
    /// Opens a directory of the host: links on its path are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, DIRECTORY, Mode::empty())?))
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Opens a file beneath it. A path with a link is refused.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        Ok(open_beneath(&self.0, path, FILE)?.into())
    }

    /// Opens a directory beneath it. A path with a link is refused.
    pub(crate) fn open_directory(&self, path: &Path) -> io::Result<Self> {
        Ok(Self(open_beneath(&self.0, path, DIRECTORY)?))
    }

    /// Opens the file that is locked by whoever writes in it: the directory itself, opened anew,
    /// because a lock belongs to the open file description.
    pub(crate) fn open_lock(&self) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.0, ".", DIRECTORY, Mode::empty())?.into())
    }

    /// Returns the target of a link; `None` if there is something else.
    pub(crate) fn read_link(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        match rustix::fs::readlinkat(&self.0, path, Vec::new()) {
            Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()).into())),
            Err(Errno::INVAL) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns the names in it, in no order.
    pub(crate) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
        let entries = Dir::read_from(&self.0)?;
        Ok(entries.filter_map(|entry| match entry {
            Ok(entry) => {
                let name = entry.file_name().to_bytes();
                let is_own = matches!(name, b"." | b"..");
                (!is_own).then(|| Ok(OsString::from_vec(name.to_vec())))
            }
            Err(errno) => Some(Err(errno.into())),
        }))
    }

    /// Returns the type and the size of a file in it; a link is not followed.
    pub(crate) fn inspect(&self, name: &OsStr) -> io::Result<(FileType, u64)> {
        let stat = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((file_type(&stat), u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// Whether this user may write a file in it.
    pub(crate) fn is_writable(&self, name: &OsStr) -> bool {
        rustix::fs::accessat(&self.0, name, Access::WRITE_OK, AtFlags::empty()).is_ok()
    }

    /// Creates a directory in it.
    pub(crate) fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::from(0o777))?)
    }

    /// Creates a file in it, which must not exist yet.
    pub(crate) fn create_file(&self, name: &OsStr, executable: bool) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from(if executable { 0o777 } else { 0o666 });
        Ok(rustix::fs::openat(&self.0, name, flags | OFlags::NOFOLLOW, mode)?.into())
    }

    /// Gives a file the owner, permissions and attributes of the one of this name, including access
    /// control lists, as far as the file system supports them and we are permitted.
    pub(crate) fn copy_attributes(&self, name: &OsStr, file: &File) -> io::Result<()> {
        let old = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // A user who may write a file may not always change its owner.
        let owner = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        let _ = rustix::fs::fchown(file, Some(owner.0), Some(owner.1));
        rustix::fs::fchmod(file, Mode::from_raw_mode(old.st_mode & 0o777))?;
        let Ok(old) = open_name(self.as_fd(), name, FILE) else { return Ok(()) };
        let mut names = vec![0_u8; rustix::fs::flistxattr_query(&old).unwrap_or(0)];
        let Ok(length) = rustix::fs::flistxattr(&old, &mut names) else { return Ok(()) };
        for name in names[..length].split_inclusive(|it| *it == 0) {
            let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
            let mut value = vec![0_u8; rustix::fs::fgetxattr_query(&old, name).unwrap_or(0)];
            if let Ok(length) = rustix::fs::fgetxattr(&old, name, &mut value) {
                let (value, flags) = (&value[..length], XattrFlags::empty());
                let _ = rustix::fs::fsetxattr(file, name, value, flags);
            }
        }
        Ok(())
    }

    /// Moves a file, in place of another if there is one.
    pub(crate) fn rename(&self, old: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, old, &to.0, new)?)
    }

    /// Moves something to a name that is not taken.
    pub(crate) fn rename_noreplace(&self, old: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        match rustix::fs::renameat_with(&self.0, old, &to.0, new, RenameFlags::NOREPLACE) {
            // Not supported by some file systems; our other writers hold a lock.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match rustix::fs::statat(&to.0, new, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => self.rename(old, to, new),
                    Ok(_) => Err(Errno::EXIST.into()),
                    Err(errno) => Err(errno.into()),
                }
            }
            renamed => Ok(renamed?),
        }
    }

    /// Removes a file or a link.
    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            // The error for a directory on systems other than Linux.
            Err(Errno::PERM) if self.inspect(name).is_ok_and(|it| it.0 == FileType::Directory) => {
                Err(Errno::ISDIR.into())
            }
            removed => Ok(removed?),
        }
    }

    /// Removes an empty directory.
    pub(crate) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Waits until the names in it are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

/// Opens a path that contains no link.
fn open_beneath(directory: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            return match rustix::fs::openat2(directory, path, flags, Mode::empty(), how) {
                // Something on the path was renamed: the kernel asks to retry.
                Err(Errno::AGAIN) => continue,
                // Missing in kernels before 5.6 and in some containers.
                Err(Errno::NOSYS | Errno::PERM) => walk(directory, path, flags),
                opened => opened,
            };
        }
    }
    #[cfg(not(target_os = "linux"))]
    walk(directory, path, flags)
}

/// Opens a path name by name.
fn walk(start: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut directory: Option<OwnedFd> = None;
    let mut names = path.components().peekable();
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { DIRECTORY } else { flags };
        let from = directory.as_ref().unwrap_or(start).as_fd();
        directory = Some(open_name(from, name.as_os_str(), flags)?);
    }
    directory.ok_or(Errno::NOENT)
}

/// Opens a name in a directory; a link of that name is refused.
fn open_name(directory: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(|errno| match errno {
        // The error for a link if a directory was expected.
        Errno::NOTDIR if rustix::fs::readlinkat(directory, name, Vec::new()).is_ok() => Errno::LOOP,
        errno => errno,
    })
}

fn file_type(stat: &Stat) -> FileType {
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::RegularFile => FileType::RegularFile,
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::Symlink,
        rustix::fs::FileType::Fifo => FileType::Fifo,
        rustix::fs::FileType::Socket => FileType::Socket,
        rustix::fs::FileType::CharacterDevice => FileType::CharacterDevice,
        rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
        rustix::fs::FileType::Unknown => FileType::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_walk_opens_what_the_kernel_opens_and_refuses_links_too() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/file"), "text").unwrap();
        symlink("a", folder.path().join("link")).unwrap();
        symlink("b/file", folder.path().join("a/file-link")).unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let both = |path: &str, flags| {
            let path = Path::new(path);
            let (one, two) =
                (open_beneath(&directory.0, path, flags), walk(&directory.0, path, flags));
            assert_eq!(one.as_ref().err(), two.as_ref().err(), "{path:?}");
            two.map(drop)
        };
        assert_eq!(both("a/b/file", FILE), Ok(()));
        assert_eq!(both("a/b", DIRECTORY), Ok(()));
        assert_eq!(both("link/b/file", FILE), Err(Errno::LOOP));
        assert_eq!(both("link", DIRECTORY), Err(Errno::LOOP));
        assert_eq!(both("a/file-link", FILE), Err(Errno::LOOP));
        assert_eq!(both("a/nothing", FILE), Err(Errno::NOENT));
        assert_eq!(both("a/b/file/more", FILE), Err(Errno::NOTDIR));
    }
}
