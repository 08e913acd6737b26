//! Unix systems.

use std::{
    borrow::Cow,
    fs::{self, File, Permissions},
    io,
    path::Path,
};

pub use std::os::unix::{
    ffi::{OsStrExt, OsStringExt},
    fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
};

use rustix::{
    fs::{Access, AtFlags, CWD, Mode, OFlags, RawMode, access, chmodat},
    io::Errno,
};

/// Flags that open a file without waiting for a pipe and without following a link.
pub const NO_WAIT: i32 = (OFlags::NONBLOCK.bits() | OFlags::NOFOLLOW.bits()) as i32;

/// Returns the number of the current user.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns a path as text with `/` between names, for patterns.
pub fn slashed(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy()
}

/// Gives a file a mode.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Gives an open file a mode.
pub fn set_file_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Has the temporary file that is created from this given a mode, within the umask.
pub fn with_mode<'b, 'p, 's>(
    builder: &'b mut tempfile::Builder<'p, 's>,
    mode: u32,
) -> &'b mut tempfile::Builder<'p, 's> {
    builder.permissions(Permissions::from_mode(mode))
}

/// Whether this user may run a file.
pub fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok() && path.is_file()
}

/// Fails if this user may not create files in a directory.
pub fn check_writable(directory: &Path) -> io::Result<()> {
    Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Restores the owner's permissions on a directory. Links are not followed.
#[cfg(target_os = "linux")]
pub fn open_up(directory: &Path) -> Option<()> {
    use std::os::fd::AsRawFd as _;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = File::from(rustix::fs::openat(CWD, directory, flags, Mode::empty()).ok()?);
    let mode = opened_mode(&opened.metadata().ok()?)?;
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    chmodat(CWD, path, mode, AtFlags::empty()).ok()
}

/// Restores the owner's permissions on a directory. Links are not followed: this system can change
/// the permissions of a link itself.
#[cfg(not(target_os = "linux"))]
pub fn open_up(directory: &Path) -> Option<()> {
    let metadata = fs::symlink_metadata(directory).ok().filter(fs::Metadata::is_dir)?;
    chmodat(CWD, directory, opened_mode(&metadata)?, AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// Returns the mode with the owner's permissions, if it is a directory of the user.
fn opened_mode(metadata: &fs::Metadata) -> Option<Mode> {
    let mode = metadata.mode() & 0o7777 | 0o700;
    (metadata.uid() == user_id()).then(|| Mode::from_raw_mode(mode as RawMode))
}

/// Waits until the names in a directory are on the disk.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Whether an error says that too many files are open.
pub fn is_too_many_files(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Whether a rename failed because the target is on another file system.
pub fn is_other_device(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::XDEV)
}

/// Opens a file without waiting for a pipe. Links are followed.
pub fn open_no_wait(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}
