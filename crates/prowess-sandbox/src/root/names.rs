//! The names in a directory: created, moved and removed one by one.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    path::{Component, Path},
};

use super::Root;
use crate::platform;

impl Root {
    /// Returns the names in the directory, sorted.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = self.directory.names()?.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    /// Creates a file, which must not exist, for everybody whom the system's default allows to read
    /// it.
    pub fn create_file(&self, name: &OsStr, executable: bool) -> io::Result<File> {
        self.directory.create_file(check(name)?, executable)
    }

    /// Creates a directory, which must not exist.
    pub fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        self.directory.create_directory(check(name)?)
    }

    /// Moves something to another directory, in place of the file of that name if there is one.
    pub fn move_to(&self, old: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        self.directory.rename(check(old)?, &to.directory, check(new)?)
    }

    /// Moves something to another directory, to a name that is not taken.
    pub fn move_noreplace(&self, old: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        self.directory.rename_noreplace(check(old)?, &to.directory, check(new)?)
    }

    /// Removes a file, or a link.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        self.directory.remove_file(check(name)?)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        self.directory.remove_directory(check(name)?)
    }

    /// Waits until the names in the directory are on the disk. On systems that cannot do that, such
    /// as Windows, it does nothing.
    pub fn sync(&self) -> io::Result<()> {
        self.directory.sync()
    }

    /// Opens the file whose lock keeps other writers out of the directory: on Unix, the directory
    /// itself. [`write_if`](Self::write_if) waits for the same lock.
    pub fn open_lock(&self) -> io::Result<File> {
        self.directory.open_lock()
    }
}

/// Accepts a single name: neither a path, nor a way out.
fn check(name: &OsStr) -> io::Result<&OsStr> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(only)), None) if only == name && platform::is_plain_name(name) => {
            Ok(name)
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_neither_a_path_nor_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        for bad in ["", ".", "..", "a/b", "a/", "/", "./a", "../a"] {
            let bad = OsStr::new(bad);
            let error = root.create_file(bad, false).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bad:?}");
            assert!(root.move_to(OsStr::new("a"), &root, bad).is_err(), "{bad:?}");
        }
        assert_eq!(root.names().unwrap(), Vec::<OsString>::new());
    }

    #[test]
    fn something_is_moved_only_to_a_free_name_unless_it_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let [a, b, inner] = ["a", "b", "inner"].map(OsStr::new);
        root.write(Path::new("a"), b"a").unwrap();
        root.write(Path::new("b"), b"b").unwrap();
        root.create_directory(inner).unwrap();
        let inside = root.directory(Path::new("inner"), crate::Links::Never).unwrap();
        let taken = root.move_noreplace(a, &root, b).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        root.move_noreplace(a, &inside, b).unwrap();
        root.move_to(b, &inside, b).unwrap();
        assert_eq!(root.names().unwrap(), ["inner"]);
        assert_eq!(std::fs::read(folder.path().join("inner/b")).unwrap(), b"b");
        assert!(root.remove_directory(inner).is_err(), "it is not empty");
        inside.remove_file(b).unwrap();
        drop(inside);
        root.remove_directory(inner).unwrap();
        assert_eq!(root.names().unwrap(), Vec::<OsString>::new());
    }
}
