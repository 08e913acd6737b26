//! Lists directories whose files are protected from other writers.

use std::{
    fs::{self, DirEntry, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    process::geteuid,
};

/// Returns the entries of a writable directory. If a directory of the user cannot be listed, its
/// permissions are restored: anybody who knows a name could write in it unnoticed.
pub(crate) fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    let listed = fs::read_dir(directory).or_else(|error| {
        let is_hidden = error.kind() == std::io::ErrorKind::PermissionDenied;
        if is_hidden && open_up(directory).is_some() { fs::read_dir(directory) } else { Err(error) }
    });
    listed.into_iter().flatten().flatten()
}

/// Restores the owner's permissions on a directory. Links are not followed.
fn open_up(directory: &Path) -> Option<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = fs::File::from(openat(CWD, directory, flags, Mode::empty()).ok()?);
    let metadata = opened.metadata().ok()?;
    if metadata.uid() != geteuid().as_raw() {
        return None;
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&opened)));
    fs::set_permissions(path, Permissions::from_mode(metadata.mode() & 0o7777 | 0o700)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_ones_own_is_listed_whatever_its_mode_is() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("file"), "").unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o311)).unwrap();
        assert_eq!(open_up(&closed), Some(()));
        assert_eq!(fs::metadata(&closed).unwrap().mode() & 0o777, 0o711);
        assert_eq!(entries(&closed).count(), 1);
    }

    #[test]
    fn a_link_and_what_is_not_there_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert_eq!(open_up(&link), None);
        assert_eq!(entries(&folder.path().join("nowhere")).count(), 0);
    }
}
