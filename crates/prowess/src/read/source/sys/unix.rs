//! Files and folders of Unix systems, opened by descriptors that no link can redirect.

use std::{
    ffi::{OsStr, OsString},
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            ffi::{OsStrExt as _, OsStringExt as _},
            fs::{DirBuilderExt as _, OpenOptionsExt as _},
        },
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::{Kind, Mark, State};

/// The flags to open a file: non-blocking, whatever it is.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// The flags to open a directory.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open folder.
#[derive(Debug)]
pub(crate) struct FolderHandle(OwnedFd);

/// A folder that stays open, however long it is used.
pub(crate) type BaseFolder = FolderHandle;

impl FolderHandle {
    /// Opens a folder by a path without links; a link that has appeared since is an error.
    pub(crate) fn open(real: &Path) -> io::Result<Self> {
        Ok(Self(open_beneath(rustix::fs::CWD, real, DIRECTORY)?))
    }

    /// Opens a folder by its name in this one; a link of that name is an error.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        Ok(Self(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Opens a file by its name in this folder; a link of that name is an error.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let flags = FILE | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(&self.0, name, flags, Mode::empty())?.into())
    }

    /// Opens a folder by its path below this one, following no link at all.
    pub(crate) fn folder_beneath(&self, path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self(open_beneath(&self.0, path, OFlags::DIRECTORY)?))
    }

    /// Opens a file by its path below this folder, following no link at all.
    pub(crate) fn file_beneath(&self, path: &Path) -> io::Result<File> {
        Ok(open_beneath(&self.0, path, FILE)?.into())
    }

    /// Returns the state of the folder itself.
    pub(crate) fn state(&self) -> io::Result<State> {
        Ok(state_from(&rustix::fs::fstat(&self.0)?))
    }

    /// Returns the state of what has this path below the folder; a link itself, not its target.
    pub(crate) fn state_of(&self, path: &str) -> io::Result<State> {
        let path = if path.is_empty() { "." } else { path };
        Ok(state_from(&rustix::fs::statat(&self.0, path, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Calls `take` with the name and the kind of each entry.
    pub(crate) fn for_each_entry(&self, mut take: impl FnMut(&OsStr, Kind)) -> io::Result<()> {
        each_entry(&self.0, |name, kind| {
            if !matches!(name, b"." | b"..") {
                take(OsStr::from_bytes(name), kind_from(kind));
            }
        })?;
        Ok(())
    }
}

/// Opens a file by a path without links; a link that has appeared since is an error.
pub(crate) fn open_file(real: &Path) -> io::Result<File> {
    Ok(open_beneath(rustix::fs::CWD, real, FILE)?.into())
}

/// Opens a file by a path that has not been resolved, if the system can tell that it contains no
/// link.
pub(crate) fn open_unresolved(path: &Path) -> Option<File> {
    Some(open_without_links(rustix::fs::CWD, path, FILE)?.ok()?.into())
}

/// Opens a path below a directory, following no link at all.
fn open_beneath(directory: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    open_without_links(&directory, path, flags)
        .unwrap_or_else(|| open_step_by_step(&directory, path, flags))
}

/// Opens a path without links with `openat2`. Kernels before 5.6 and some containers lack it.
#[cfg(target_os = "linux")]
fn open_without_links(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
) -> Option<Result<OwnedFd, Errno>> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => None,
        opened => Some(opened),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_without_links(_: impl AsFd, _: &Path, _: OFlags) -> Option<Result<OwnedFd, Errno>> {
    None
}

/// Opens a path without links where one call cannot: each folder on it from the one before.
fn open_step_by_step(directory: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut parts = path.components().peekable();
    let mut above: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let flags = if is_last { flags } else { DIRECTORY | OFlags::NOFOLLOW };
        let name = part.as_os_str();
        let opened = match &above {
            Some(above) => rustix::fs::openat(above, name, flags, Mode::empty()),
            None => rustix::fs::openat(&directory, name, flags, Mode::empty()),
        };
        above = Some(opened.map_err(|errno| match errno {
            // Some systems say so of a link that is to be opened as a directory.
            Errno::NOTDIR
                if is_link(above.as_ref().map_or(directory.as_fd(), AsFd::as_fd), name) =>
            {
                Errno::LOOP
            }
            // The BSDs say so of a link that is not to be followed.
            Errno::MLINK => Errno::LOOP,
            errno => errno,
        })?);
    }
    above.ok_or(Errno::NOENT)
}

fn is_link(directory: impl AsFd, name: &OsStr) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Symlink)
}

#[cfg(target_os = "linux")]
fn each_entry(directory: &OwnedFd, mut take: impl FnMut(&[u8], FileType)) -> Result<(), Errno> {
    let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 8192];
    let mut entries = rustix::fs::RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        take(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn each_entry(directory: &OwnedFd, mut take: impl FnMut(&[u8], FileType)) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        take(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(())
}

/// Returns the state of an open file.
pub(crate) fn file_state(file: &File) -> io::Result<State> {
    Ok(state_from(&rustix::fs::fstat(file)?))
}

/// Returns the state of what has this path; of the target if it is a link.
pub(crate) fn state(path: &Path) -> io::Result<State> {
    Ok(state_from(&rustix::fs::stat(path)?))
}

/// Returns the state of what has this path; a link itself, not its target.
pub(crate) fn link_state(path: &Path) -> io::Result<State> {
    Ok(state_from(&rustix::fs::lstat(path)?))
}

/// Reads into the free capacity of a buffer, until it is full or the file ends.
pub(crate) fn fill(file: &File, bytes: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let free = bytes.capacity() - bytes.len();
        match rustix::io::read(file, rustix::buffer::spare_capacity(bytes)) {
            // A regular file returns less than was asked for only at its end.
            Ok(read) if read < free || read == 0 => return Ok(()),
            Ok(_) if bytes.len() == bytes.capacity() => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Opens a file by its path; a link in its place is an error.
pub(crate) fn open_no_link(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Creates a file that only this user can read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Creates a folder, and those above it, that only this user can enter.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether an error says that there is a link where none may be, or a circle of links.
pub(crate) fn is_link_error(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Whether an error says that something cannot be opened at all, such as a socket.
pub(crate) fn is_unopenable(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NXIO)
}

/// Whether a name is a certain one to the file system. Those of macOS ignore case by default.
pub(crate) fn is_name(name: &OsStr, wanted: &str) -> bool {
    if cfg!(target_os = "macos") { name.eq_ignore_ascii_case(wanted) } else { name == wanted }
}

/// Returns a path as people write it.
pub(crate) fn plain_path(path: PathBuf) -> PathBuf {
    path
}

/// Returns the bytes of a path.
pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Returns the path with these bytes.
pub(crate) fn path_from(bytes: Vec<u8>) -> Option<PathBuf> {
    Some(OsString::from_vec(bytes).into())
}

/// Whether a folder is on a file system on which other machines write without an event.
#[cfg(any(target_os = "macos", target_os = "freebsd"))]
pub(crate) fn is_shared(real: &Path) -> bool {
    /// The flag of a file system that is on this machine.
    const MNT_LOCAL: u64 = 0x1000;
    rustix::fs::statfs(real).is_ok_and(|it| u64::from(it.f_flags) & MNT_LOCAL == 0)
}

/// Whether a folder is on a file system on which other machines write without an event. The watcher
/// for Linux knows itself, and other systems are not asked.
#[cfg(not(any(
    target_os = "macos",
    target_os = "freebsd",
    all(target_os = "linux", not(prowess_notify))
)))]
pub(crate) fn is_shared(_: &Path) -> bool {
    false
}

fn state_from(stat: &Stat) -> State {
    State {
        kind: kind_from(FileType::from_raw_mode(stat.st_mode)),
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        modified: modified_at(stat),
        mark: Mark {
            device: stat.st_dev as _,
            inode: stat.st_ino as _,
            size: stat.st_size as _,
            modified: (stat.st_mtime as _, stat.st_mtime_nsec as _),
            changed: (stat.st_ctime as _, stat.st_ctime_nsec as _),
        },
    }
}

fn kind_from(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        FileType::Unknown => Kind::Unknown,
        _ => Kind::Other,
    }
}

fn modified_at(stat: &Stat) -> Option<SystemTime> {
    let seconds = u64::try_from(stat.st_mtime).ok()?;
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::new(seconds, u32::try_from(stat.st_mtime_nsec).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_by_step_no_link_is_followed_either() {
        let folder = tempfile::tempdir().expect("there is room");
        let root = folder.path().canonicalize().expect("it exists");
        std::fs::create_dir_all(root.join("a/b")).expect("it can be made");
        std::fs::write(root.join("a/b/file"), "text").expect("it can be written");
        std::os::unix::fs::symlink("a", root.join("link")).expect("it can be made");
        std::os::unix::fs::symlink("file", root.join("a/b/other")).expect("it can be made");
        let own = FolderHandle::open(&root).expect("it can be opened").0;
        let open = |path: &str| open_step_by_step(&own, Path::new(path), FILE | OFlags::NOFOLLOW);
        let opened = ["a/b/file", "a/./b/file", "."].map(|it| open(it).map(drop));
        assert_eq!(opened, [Ok(()); 3]);
        let refused =
            ["link/b/file", "a/b/other", "a/b/file/x", "a/none", ""].map(|it| open(it).map(drop));
        assert_eq!(
            refused,
            [Errno::LOOP, Errno::LOOP, Errno::NOTDIR, Errno::NOENT, Errno::NOENT].map(Err)
        );
        assert!(open(root.join("a/b/file").to_str().expect("it is text")).is_ok());
    }
}
