//! Opens folders that their owner has no permissions on. The folder whose permissions change is the
//! one that was opened, because a script may put a link in its place.

use std::{ffi::CStr, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

/// The flags for listing a folder.
pub(super) const LIST: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder for listing.
pub(super) fn open_list(folder: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, c".", LIST, Mode::empty())
}

#[cfg(target_os = "linux")]
mod permissions {
    use std::os::fd::AsRawFd as _;

    use super::*;

    /// Without this flag, opening would need permissions.
    const FOLDER: OFlags = LIST.union(OFlags::PATH);

    /// Opens a folder by its path.
    pub(in super::super) fn open_top(path: &Path) -> Result<OwnedFd, Errno> {
        rustix::fs::open(path, FOLDER, Mode::empty())
    }

    /// Opens a folder in another.
    pub(in super::super) fn open_folder(parent: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(parent, name, FOLDER, Mode::empty())
    }

    /// Changes the permissions of an open folder.
    pub(in super::super) fn set_mode(folder: &OwnedFd, mode: Mode) -> Result<(), Errno> {
        rustix::fs::chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), mode)
    }
}

#[cfg(not(target_os = "linux"))]
mod permissions {
    use rustix::fs::AtFlags;

    use super::*;

    /// Opens a folder by its path.
    pub(in super::super) fn open_top(path: &Path) -> Result<OwnedFd, Errno> {
        rustix::fs::open(path, LIST, Mode::empty())
    }

    /// Opens a folder in another; if its owner lacks permissions, they are granted.
    pub(in super::super) fn open_folder(parent: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
        match rustix::fs::openat(parent, name, LIST, Mode::empty()) {
            Err(Errno::ACCESS) => {
                rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)?;
                rustix::fs::openat(parent, name, LIST, Mode::empty())
            }
            opened => opened,
        }
    }

    /// Changes the permissions of an open folder.
    pub(in super::super) fn set_mode(folder: &OwnedFd, mode: Mode) -> Result<(), Errno> {
        rustix::fs::fchmod(folder, mode)
    }
}

pub(super) use self::permissions::{open_folder, open_top, set_mode};
