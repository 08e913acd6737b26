//! Opening files: each is opened without blocking and checked before it is read, so that a pipe or
//! device cannot block.

use std::{
    borrow::Cow,
    fs::File,
    io::Read as _,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::{ReadError, trouble::Trouble};

/// Reads a whole file, if it is inside `allowed`.
pub(super) fn read_all(path: &Path, allowed: &[PathBuf], limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_contained(path, allowed)?;
    let size = file.metadata().map_or(0, |it| it.len()).min(limit);
    // With room for one more byte, the end is reached without growing the buffer.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// Opens a regular file that is inside `allowed` once every link is resolved.
///
/// The resolved path is opened without following any link, so that a link swapped in meanwhile is
/// not followed.
pub(super) fn open_contained(path: &Path, allowed: &[PathBuf]) -> Result<File, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let file = match open_plain(path, allowed) {
        Some(file) => file,
        None => {
            let real = std::fs::canonicalize(path).map_err(failed)?;
            if !is_inside(&real, allowed) {
                return Err(ReadError::Outside { path: path.to_owned() });
            }
            open_file(&real).map_err(|it| failed(it.into()))?
        }
    };
    let stat = rustix::fs::fstat(&file).map_err(|it| failed(it.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ReadError::NotRegular { path: path.to_owned() });
    }
    Ok(File::from(file))
}

/// Opens a path that is inside `allowed` and contains no link, as most do: there is nothing to
/// resolve.
fn open_plain(path: &Path, allowed: &[PathBuf]) -> Option<OwnedFd> {
    let is_plain = path.components().all(|it| it != Component::ParentDir);
    (is_plain && is_inside(path, allowed))
        .then(|| open_without_links(rustix::fs::CWD, path, FILE)?.ok())?
}

/// Whether a path without links is inside one of the directories, and not in a `.git` folder, which
/// may contain tokens.
pub(super) fn is_inside(real: &Path, allowed: &[PathBuf]) -> bool {
    let inside = allowed.iter().filter_map(|it| real.strip_prefix(it).ok());
    inside.into_iter().any(|it| !it.iter().any(|part| part == ".git"))
}

/// The flags to open a file: non-blocking, whatever it is.
pub(super) const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// The flags to open a directory.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a file by a path without links; a link that has appeared since is an error.
pub(super) fn open_file(real: &Path) -> Result<OwnedFd, Errno> {
    open_beneath(rustix::fs::CWD, real, FILE)
}

/// Opens a directory by a path without links; a link that has appeared since is an error.
pub(super) fn open_directory(real: &Path) -> Result<OwnedFd, Errno> {
    open_beneath(rustix::fs::CWD, real, DIRECTORY)
}

/// Opens a directory by its name in another; a link of that name is an error.
pub(super) fn open_inside(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens a path below a directory, following no link at all.
pub(super) fn open_beneath(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    open_without_links(&directory, path, flags)
        .unwrap_or_else(|| rustix::fs::openat(&directory, path, flags, Mode::empty()))
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

/// One entry of a directory.
pub(super) struct FolderEntry {
    /// The name; with replacement characters if it is not valid UTF-8.
    pub(super) name: Box<str>,
    pub(super) is_text: bool,
    pub(super) kind: FileType,
}

/// A directory with its entries.
pub(super) struct Entries {
    pub(super) directory: OwnedFd,
    pub(super) names: Vec<FolderEntry>,
}

/// Lists the entries of a directory.
pub(super) fn list(directory: OwnedFd) -> Result<Entries, Trouble> {
    let mut names = Vec::new();
    for_each_entry(&directory, |name, kind| {
        if !matches!(name, b"." | b"..") {
            let text = String::from_utf8_lossy(name);
            let is_text = matches!(text, Cow::Borrowed(_));
            names.push(FolderEntry { name: text.into(), is_text, kind });
        }
    })?;
    Ok(Entries { directory, names })
}

#[cfg(target_os = "linux")]
fn for_each_entry(directory: &OwnedFd, mut take: impl FnMut(&[u8], FileType)) -> Result<(), Errno> {
    let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 8192];
    let mut entries = rustix::fs::RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        take(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn for_each_entry(directory: &OwnedFd, mut take: impl FnMut(&[u8], FileType)) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        take(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(())
}

/// Reads into the free capacity of a buffer, until it is full or the file ends.
pub(super) fn fill(file: &OwnedFd, bytes: &mut Vec<u8>) -> Result<(), Trouble> {
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

/// Returns the time of the last modification of a file.
pub(super) fn modified_at(stat: &Stat) -> Option<SystemTime> {
    let seconds = u64::try_from(stat.st_mtime).ok()?;
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::new(seconds, u32::try_from(stat.st_mtime_nsec).ok()?))
}
