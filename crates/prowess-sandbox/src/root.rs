//! A directory that no path leads out of: not by `..`, not by a link, not by a link created
//! concurrently.
//!
//! Every path from outside is resolved here, starting at an open directory. Links inside are
//! resolved first, then the kernel opens the result without following any: the file that was
//! checked is the file that is opened.

mod draft;

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::{Component, Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat},
    io::Errno,
};

use self::draft::Draft;

/// A directory that no path leads out of.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
    /// The path by which the host opened it.
    given_path: PathBuf,
}

/// The treatment of links on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Links are followed, as long as they stay inside.
    Inside,
    /// Links are refused.
    Never,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: OsString,
    /// Its type; a link is not followed.
    pub kind: FileType,
    /// Its size.
    pub size: u64,
}

/// A page of a directory's entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryPage {
    /// The entries, sorted by name.
    pub entries: Vec<DirectoryEntry>,
    /// The total number of entries of the directory.
    pub total: usize,
}

/// A path could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// It leads out of its directory, or might.
    #[error("`{}` leads out of its directory", path.display())]
    Outside {
        /// The path, as given.
        path: PathBuf,
    },
    /// It is a link, a pipe, a device, or a directory where a file was meant.
    #[error("`{}` is not a regular file", path.display())]
    NotRegular {
        /// The path, as given.
        path: PathBuf,
    },
    /// The system reported an error.
    #[error("cannot access `{}`", path.display())]
    Io {
        /// The path, as given.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl RootError {
    /// Whether the path does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn outside(path: &Path) -> Self {
        Self::Outside { path: path.to_owned() }
    }

    pub(crate) fn io(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), source: source.into() }
    }

    /// Returns the error of a path that may lead outside.
    fn unopened(path: &Path, errno: Errno) -> Self {
        match errno {
            Errno::XDEV | Errno::LOOP => Self::outside(path),
            errno => Self::io(path, errno),
        }
    }
}

impl Root {
    /// Opens a directory. This path is the host's own: links on it are followed.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        open_root(path).map_err(|error| RootError::io(path, error))
    }

    /// Returns its path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open directory.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the rest of an absolute path below this directory, by the given or the resolved path
    /// of the directory.
    pub fn within<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        [&self.path, &self.given_path].into_iter().find_map(|own| path.strip_prefix(own).ok())
    }

    /// Resolves every link of a path: returns a path inside, without links.
    pub fn real(&self, path: &Path) -> Result<PathBuf, RootError> {
        let mut rest: Vec<OsString> = names(path)?.into_iter().rev().map(OsString::from).collect();
        let mut real = PathBuf::new();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                if !real.pop() {
                    return Err(RootError::outside(path));
                }
                continue;
            }
            real.push(name);
            let target = match rustix::fs::readlinkat(&self.directory, &real, Vec::new()) {
                Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
                Err(Errno::INVAL) => continue,
                Err(errno) => return Err(RootError::unopened(path, errno)),
            };
            links += 1;
            if links > MAX_LINKS {
                return Err(RootError::outside(path));
            }
            real.pop();
            let mut target = target.as_path();
            if target.is_absolute() {
                target = self.within(target).ok_or_else(|| RootError::outside(path))?;
                real.clear();
            }
            let names = target.components().rev().filter(|it| *it != Component::CurDir);
            rest.extend(names.map(|it| it.as_os_str().to_owned()));
        }
        Ok(real)
    }

    /// Opens a regular file for reading. A pipe or device is refused without blocking.
    pub fn file(&self, path: &Path, links: Links) -> Result<File, RootError> {
        let file = self.resolve(path, FILE, links)?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| RootError::io(path, errno))?;
        if kind(&stat) != FileType::RegularFile {
            return Err(RootError::NotRegular { path: path.to_owned() });
        }
        Ok(File::from(file))
    }

    /// Opens a directory inside.
    pub fn directory(&self, path: &Path, links: Links) -> Result<Self, RootError> {
        let directory = self.resolve(path, DIRECTORY, links)?;
        Ok(self.inside(directory, path))
    }

    /// Lists a directory, sorted by name.
    pub fn list(&self, path: &Path, links: Links) -> Result<Vec<DirectoryEntry>, RootError> {
        Ok(self.page(path, links, 0, usize::MAX)?.entries)
    }

    /// Lists a page of a directory: `limit` entries, starting at index `offset`. Of any number of
    /// names, only these are kept in memory.
    pub fn page(
        &self,
        path: &Path,
        links: Links,
        offset: usize,
        limit: usize,
    ) -> Result<DirectoryPage, RootError> {
        let directory = self.resolve(path, DIRECTORY, links)?;
        let most = offset.saturating_add(limit);
        let (mut names, mut total) = (BTreeSet::new(), 0);
        for entry in Dir::read_from(&directory).map_err(|errno| RootError::io(path, errno))? {
            let entry = entry.map_err(|errno| RootError::io(path, errno))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            total += 1;
            names.insert(name.to_owned());
            if names.len() > most {
                names.pop_last();
            }
        }
        let mut entries = Vec::new();
        for name in names.into_iter().skip(offset) {
            // An entry that was removed meanwhile is left out.
            if let Ok(stat) = rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                let name = OsString::from_vec(name.into_bytes());
                entries.push(DirectoryEntry { name, kind: kind(&stat), size: stat.st_size as u64 });
            }
        }
        Ok(DirectoryPage { entries, total })
    }

    /// Creates a directory and its parents; returns it open. No link is followed.
    pub fn make_directory(&self, path: &Path) -> Result<Self, RootError> {
        // Opened anew, because a lock belongs to the open file description.
        let mut directory = open_name(self.as_fd(), OsStr::new("."), DIRECTORY)
            .map_err(|errno| RootError::io(path, errno))?;
        for name in names(path)? {
            match rustix::fs::mkdirat(&directory, name, Mode::from(0o777)) {
                Err(Errno::EXIST) => {}
                made => made
                    .and_then(|()| rustix::fs::fsync(&directory))
                    .map_err(|errno| RootError::io(path, errno))?,
            }
            directory = open_name(directory.as_fd(), name, DIRECTORY)
                .map_err(|errno| RootError::unopened(path, errno))?;
        }
        Ok(self.inside(directory, path))
    }

    /// Writes a file atomically, and creates its parent directories. A link of its name is refused.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), RootError> {
        let (parent, name) = self.parent(path)?;
        Draft::new(&parent.directory, name, path, bytes)?.commit()
    }

    /// Writes a file if `is_wanted` accepts the current one, and returns whether it did. The check
    /// comes last, right before the replacement; concurrent calls run one after the other.
    pub fn write_if(
        &self,
        path: &Path,
        bytes: &[u8],
        is_wanted: impl FnOnce(Option<File>) -> io::Result<bool>,
    ) -> Result<bool, RootError> {
        let (parent, name) = self.parent(path)?;
        lock(&parent.directory).map_err(|errno| RootError::io(path, errno))?;
        draft::sweep(&parent.directory, name);
        let draft = Draft::new(&parent.directory, name, path, bytes)?;
        let old = match open_name(parent.as_fd(), name, FILE) {
            Ok(old) => Some(File::from(old)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(RootError::unopened(path, errno)),
        };
        if !is_wanted(old).map_err(|error| RootError::io(path, error))? {
            return Ok(false);
        }
        draft.commit().map(|()| true)
    }

    /// Returns the directory of a file, created if necessary, and the file's name.
    fn parent<'p>(&self, path: &'p Path) -> Result<(Self, &'p OsStr), RootError> {
        let name = path.file_name().ok_or_else(|| RootError::outside(path))?;
        Ok((self.make_directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    fn inside(&self, directory: OwnedFd, path: &Path) -> Self {
        Self { directory, path: self.path.join(path), given_path: self.given_path.join(path) }
    }

    /// Opens the target of a path, if it is inside.
    fn resolve(&self, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, RootError> {
        names(path)?;
        let opened = match self.open_plain(path, flags) {
            Err(Errno::LOOP) if links == Links::Inside => self.open_plain(&self.real(path)?, flags),
            opened => opened,
        };
        opened.map_err(|errno| RootError::unopened(path, errno))
    }

    /// Opens a path that contains no link.
    fn open_plain(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            return match rustix::fs::openat2(&self.directory, path, flags, Mode::empty(), how) {
                // Something on the path was renamed: the kernel asks to retry.
                Err(Errno::AGAIN) => continue,
                // Missing in kernels before 5.6 and in some containers.
                Err(Errno::NOSYS | Errno::PERM) => self.walk(path, flags),
                opened => opened,
            };
        }
    }

    /// Opens a path name by name.
    fn walk(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut directory: Option<OwnedFd> = None;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            let flags = if names.peek().is_some() { DIRECTORY } else { flags };
            let from = directory.as_ref().map_or(self.as_fd(), |it| it.as_fd());
            directory = Some(open_name(from, name.as_os_str(), flags)?);
        }
        directory.ok_or(Errno::NOENT)
    }
}

/// The maximum number of links, as in the kernel.
const MAX_LINKS: usize = 40;
/// The timeout of waiting for other writers of a directory.
const PATIENCE: Duration = Duration::from_secs(5);
/// The flags for opening a file: never blocks, whatever the file is.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// The flags for opening a directory.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn open_root(path: &Path) -> io::Result<Root> {
    let given_path = std::path::absolute(path)?;
    let path = std::fs::canonicalize(path)?;
    let directory = rustix::fs::open(&path, DIRECTORY, Mode::empty())?;
    Ok(Root { directory, path, given_path })
}

/// Opens a name in a directory; a link of that name is refused.
fn open_name(directory: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(|errno| match errno {
        // The error for a link if a directory was expected.
        Errno::NOTDIR if rustix::fs::readlinkat(directory, name, Vec::new()).is_ok() => Errno::LOOP,
        errno => errno,
    })
}

/// Renames something to a name that is not taken.
pub fn rename_noreplace(
    from: BorrowedFd<'_>,
    old: &OsStr,
    to: BorrowedFd<'_>,
    new: &OsStr,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // Not supported by some file systems; our other writers hold a lock.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => rustix::fs::renameat(from, old, to, new),
                Ok(_) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            }
        }
        renamed => renamed,
    }
}

/// Locks a directory against other writers. Closing the directory releases the lock.
fn lock(directory: &OwnedFd) -> Result<(), Errno> {
    let start = Instant::now();
    loop {
        match rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if start.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(2));
            }
            locked => return locked,
        }
    }
}

/// Splits a relative path into names.
fn names(path: &Path) -> Result<Vec<&OsStr>, RootError> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(RootError::outside(path));
            }
        }
    }
    Ok(names)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
