//! Lists directories whose files are protected from other writers.

use std::{
    fs::{self, DirEntry},
    path::Path,
};

use crate::sys::open_up;

/// Returns the entries of a writable directory. If a directory of the user cannot be listed, its
/// permissions are restored: anybody who knows a name could write in it unnoticed.
pub(crate) fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    let listed = fs::read_dir(directory).or_else(|error| {
        let is_hidden = error.kind() == std::io::ErrorKind::PermissionDenied;
        if is_hidden && open_up(directory).is_some() { fs::read_dir(directory) } else { Err(error) }
    });
    listed.into_iter().flatten().flatten()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::{
        fs::Permissions,
        os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    };

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
        symlink(folder.path(), &link).unwrap();
        assert_eq!(open_up(&link), None);
        assert_eq!(entries(&folder.path().join("nowhere")).count(), 0);
    }
}
