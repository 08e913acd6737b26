//! The door to files: every one is opened without waiting and looked at before it is read, so that
//! a pipe or device cannot block.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::{ReadError, trouble::Trouble};

/// Reads a whole file, if it lies inside `allowed`.
pub(super) fn read_all(path: &Path, allowed: &[PathBuf], limit: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let file = open_contained(path, allowed)?;
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// Reads an ordinary file of at most a mebibyte, to show lines of it.
pub(super) fn read_for_display(path: &Path) -> Option<Vec<u8>> {
    let everywhere = [PathBuf::from("/")];
    read_all(path, &everywhere, 1024 * 1024).ok()
}

/// Opens an ordinary file that lies inside `allowed` once every link is resolved.
///
/// The resolved path is opened without following any link, so that one swapped in meanwhile leads
/// nowhere.
pub(super) fn open_contained(path: &Path, allowed: &[PathBuf]) -> Result<File, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let real = std::fs::canonicalize(path).map_err(failed)?;
    if !allowed.iter().any(|it| real.starts_with(it)) {
        return Err(ReadError::Outside { path: path.to_owned() });
    }
    let file = open_real(&real).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ReadError::NotRegular { path: path.to_owned() });
    }
    Ok(File::from(file))
}

/// Opens a path that holds no link; a link that has come since is an error.
pub(super) fn open_real(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags};
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            // Kernels before 5.6 and some containers do not have it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// One entry of a directory.
pub(super) struct Entry {
    /// The name; with replacement characters where it is no text.
    pub(super) name: Box<str>,
    pub(super) is_text: bool,
    pub(super) kind: FileType,
}

/// The entries of a directory, and the directory.
pub(super) struct Entries {
    pub(super) directory: OwnedFd,
    pub(super) names: Vec<Entry>,
}

/// The entries of a directory.
pub(super) fn list(directory: OwnedFd) -> Result<Entries, Trouble> {
    let mut names = Vec::new();
    each_entry(&directory, |name, kind| {
        if !matches!(name, b"." | b"..") {
            let text = String::from_utf8_lossy(name);
            let is_text = matches!(text, Cow::Borrowed(_));
            names.push(Entry { name: text.into(), is_text, kind });
        }
    })?;
    Ok(Entries { directory, names })
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

/// Reads into what is free of a buffer, until it is full or the file ends.
pub(super) fn fill(file: &OwnedFd, bytes: &mut Vec<u8>) -> Result<(), Trouble> {
    loop {
        let free = bytes.capacity() - bytes.len();
        match rustix::io::read(file, rustix::buffer::spare_capacity(bytes)) {
            // An ordinary file gives less than was asked for only at its end.
            Ok(read) if read < free || read == 0 => return Ok(()),
            Ok(_) if bytes.len() == bytes.capacity() => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// When a file was changed last.
pub(super) fn modified(stat: &Stat) -> Option<SystemTime> {
    let seconds = u64::try_from(stat.st_mtime).ok()?;
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::new(seconds, u32::try_from(stat.st_mtime_nsec).ok()?))
}
