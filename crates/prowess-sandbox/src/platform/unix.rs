//! Unix: everything starts at an open directory, and goes name by name.

mod directory;
mod folder;
mod removal;
mod size;

use std::{
    ffi::OsStr,
    fs::{DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

pub(crate) use self::directory::{Directory, leads_outside};
pub use self::{removal::remove_folder, size::folder_size};

/// The stream to a program that the caller interacts with.
pub type ProgramStream = tokio::net::UnixStream;

/// Creates a directory with a new name that only this user may access.
pub(crate) fn create_temporary(prefix: &str, within: &Path) -> io::Result<TempDir> {
    let permissions = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(prefix).permissions(permissions).tempdir_in(within)
}

/// Creates a directory that only this user may access, with its parents.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a file that only this user may read and run.
pub(crate) fn create_private_script(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o500).open(path)
}

/// Opens the file that is locked by whoever uses a folder: the folder itself.
pub(crate) fn open_folder_lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Whether a file belongs to this user.
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::getuid().as_raw()
}

/// Returns a path as other paths are written: as it is.
pub(crate) fn plain_path(path: PathBuf) -> PathBuf {
    path
}

/// Whether a name means a file of that name. On Unix, all do.
pub(crate) fn is_plain_name(_: &OsStr) -> bool {
    true
}
