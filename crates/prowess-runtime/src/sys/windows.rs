//! Windows. Access lists take the place of modes and owners: what is below the user's own folders
//! belongs to the user, and to nobody else.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    os::windows::fs::{MetadataExt as _, symlink_dir, symlink_file},
    path::Path,
};

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself, and is then no regular file.
pub const NO_WAIT: i32 = 0x20_0000;
/// The only user, as far as owners of files are compared.
const USER: u32 = 0;
const ERROR_TOO_MANY_OPEN_FILES: i32 = 4;
const ERROR_NOT_SAME_DEVICE: i32 = 17;
/// The endings of files that can be run.
const PROGRAMS: &[&str] = &["exe", "com", "bat", "cmd"];
/// The years from 1601, when the clock of Windows begins, to 1970, in seconds.
const EPOCH: i64 = 11_644_473_600;
/// The ticks of that clock in a second.
const TICKS: u64 = 10_000_000;

/// Names as bytes, in an encoding that has UTF-8 as a part.
pub trait OsStrExt {
    fn from_bytes(bytes: &[u8]) -> &Self;
    fn as_bytes(&self) -> &[u8];
}

impl OsStrExt for OsStr {
    /// Bytes that are no Unicode name nothing that exists.
    fn from_bytes(bytes: &[u8]) -> &Self {
        Self::new(str::from_utf8(bytes).unwrap_or("\u{FFFD}"))
    }

    fn as_bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }
}

pub trait OsStringExt {
    fn from_vec(bytes: Vec<u8>) -> Self;
    fn into_vec(self) -> Vec<u8>;
}

impl OsStringExt for OsString {
    fn from_vec(bytes: Vec<u8>) -> Self {
        String::from_utf8_lossy(&bytes).into_owned().into()
    }

    fn into_vec(self) -> Vec<u8> {
        self.into_encoded_bytes()
    }
}

pub trait OpenOptionsExt {
    fn mode(&mut self, mode: u32) -> &mut Self;
    fn custom_flags(&mut self, flags: i32) -> &mut Self;
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, _: u32) -> &mut Self {
        self
    }

    fn custom_flags(&mut self, flags: i32) -> &mut Self {
        std::os::windows::fs::OpenOptionsExt::custom_flags(self, flags.cast_unsigned())
    }
}

pub trait DirBuilderExt {
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, _: u32) -> &mut Self {
        self
    }
}

pub trait PermissionsExt {
    fn mode(&self) -> u32;
}

impl PermissionsExt for Permissions {
    fn mode(&self) -> u32 {
        if self.readonly() { 0o444 } else { 0o644 }
    }
}

/// The state of a file. Its number is the time of its creation, which no other file of the same
/// path is likely to have.
pub trait MetadataExt {
    fn dev(&self) -> u64;
    fn ino(&self) -> u64;
    fn uid(&self) -> u32;
    fn mode(&self) -> u32;
    fn size(&self) -> u64;
    fn mtime(&self) -> i64;
    fn mtime_nsec(&self) -> i64;
    fn ctime(&self) -> i64;
    fn ctime_nsec(&self) -> i64;
}

impl MetadataExt for Metadata {
    fn dev(&self) -> u64 {
        0
    }

    fn ino(&self) -> u64 {
        self.creation_time()
    }

    fn uid(&self) -> u32 {
        USER
    }

    fn mode(&self) -> u32 {
        match self.is_dir() {
            true => 0o700,
            false => self.permissions().mode() & 0o700,
        }
    }

    fn size(&self) -> u64 {
        self.file_size()
    }

    fn mtime(&self) -> i64 {
        since_1970(self.last_write_time()).0
    }

    fn mtime_nsec(&self) -> i64 {
        since_1970(self.last_write_time()).1
    }

    fn ctime(&self) -> i64 {
        since_1970(self.creation_time()).0
    }

    fn ctime_nsec(&self) -> i64 {
        since_1970(self.creation_time()).1
    }
}

/// Creates a link. Most users may not, unless the system is in developer mode.
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (target, link) = (target.as_ref(), link.as_ref());
    match link.parent().unwrap_or(Path::new("")).join(target).is_dir() {
        true => symlink_dir(target, link),
        false => symlink_file(target, link),
    }
}

/// Returns the number of the current user.
pub fn user_id() -> u32 {
    USER
}

/// Returns a path as text with `/` between names, for patterns.
pub fn slashed(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy().replace('\\', "/").into()
}

/// Gives a file a mode: there is none.
pub fn set_mode(path: &Path, _: u32) -> io::Result<()> {
    fs::symlink_metadata(path).map(drop)
}

/// Gives an open file a mode: there is none.
pub fn set_file_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// Has the temporary file that is created from this given a mode: there is none.
pub fn with_mode<'b, 'p, 's>(
    builder: &'b mut tempfile::Builder<'p, 's>,
    _: u32,
) -> &'b mut tempfile::Builder<'p, 's> {
    builder
}

/// Whether a file is a program, by its ending.
pub fn is_executable(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    PROGRAMS.iter().any(|it| ending.eq_ignore_ascii_case(it)) && path.is_file()
}

/// Fails if this user may not create files in a directory.
pub fn check_writable(directory: &Path) -> io::Result<()> {
    tempfile::tempfile_in(directory).map(drop)
}

/// Restores the owner's permissions on a directory: only the owner can.
pub fn open_up(_: &Path) -> Option<()> {
    None
}

/// Waits until the names in a directory are on the disk: the file system keeps a journal of them.
pub fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether an error says that too many files are open.
pub fn is_too_many_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_TOO_MANY_OPEN_FILES)
}

/// Whether a rename failed because the target is on another drive.
pub fn is_other_device(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_NOT_SAME_DEVICE)
}

/// Opens a file. Links are followed.
pub fn open_no_wait(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Converts a time of Windows to seconds since 1970, and nanoseconds.
fn since_1970(ticks: u64) -> (i64, i64) {
    ((ticks / TICKS).cast_signed() - EPOCH, (ticks % TICKS * 100).cast_signed())
}
