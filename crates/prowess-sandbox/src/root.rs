//! A directory that no path leads out of: not by `..`, not by a link, not by a link created
//! concurrently.
//!
//! Every path from outside is resolved here, starting at an open directory. Links inside are
//! resolved first, then the kernel opens the result without following any: the file that was
//! checked is the file that is opened.

mod draft;
mod names;

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{File, TryLockError},
    io,
    path::{Component, Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use self::draft::Draft;
use crate::{
    file_type::FileType,
    platform::{self, Directory},
};

/// A directory that no path leads out of.
#[derive(Debug)]
pub struct Root {
    pub(crate) directory: Directory,
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
#[non_exhaustive]
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
#[non_exhaustive]
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
    fn unopened(path: &Path, error: io::Error) -> Self {
        if platform::leads_outside(&error) { Self::outside(path) } else { Self::io(path, error) }
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
            let target = self.directory.read_link(&real);
            let Some(target) = target.map_err(|error| RootError::unopened(path, error))? else {
                continue;
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

    /// Returns the target of a link, as it is; no link is followed before its name.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, RootError> {
        let (parent, name) = self.existing_parent(path)?;
        let target =
            parent.directory.read_link(Path::new(name)).map_err(|it| RootError::io(path, it))?;
        target.ok_or_else(|| RootError::io(path, io::ErrorKind::InvalidInput))
    }

    /// Opens a regular file for reading. A pipe or device is refused without blocking.
    pub fn file(&self, path: &Path, links: Links) -> Result<File, RootError> {
        let file = self.resolve(path, links, |path| self.directory.open_file(path))?;
        let metadata = file.metadata().map_err(|error| RootError::io(path, error))?;
        if !metadata.is_file() {
            return Err(RootError::NotRegular { path: path.to_owned() });
        }
        Ok(file)
    }

    /// Opens a directory inside.
    pub fn directory(&self, path: &Path, links: Links) -> Result<Self, RootError> {
        let directory = self.open_directory(path, links)?;
        Ok(self.inside(directory, path))
    }

    /// Returns the type and the size of something; no link is followed.
    pub fn entry(&self, path: &Path) -> Result<DirectoryEntry, RootError> {
        let (parent, name) = self.existing_parent(path)?;
        let (kind, size) =
            parent.directory.inspect(name).map_err(|error| RootError::io(path, error))?;
        Ok(DirectoryEntry { name: name.to_owned(), kind, size })
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
        let directory = self.open_directory(path, links)?;
        let most = offset.saturating_add(limit);
        let (mut names, mut total) = (BTreeSet::new(), 0);
        for name in directory.names().map_err(|error| RootError::io(path, error))? {
            total += 1;
            names.insert(name.map_err(|error| RootError::io(path, error))?);
            if names.len() > most {
                names.pop_last();
            }
        }
        let mut entries = Vec::new();
        for name in names.into_iter().skip(offset) {
            // An entry that was removed meanwhile is left out.
            if let Ok((kind, size)) = directory.inspect(&name) {
                entries.push(DirectoryEntry { name, kind, size });
            }
        }
        Ok(DirectoryPage { entries, total })
    }

    /// Creates a directory and its parents; returns it open. No link is followed.
    pub fn make_directory(&self, path: &Path) -> Result<Self, RootError> {
        let mut directory = self.open_directory(Path::new(""), Links::Never)?;
        for name in names(path)? {
            match directory.create_directory(name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made
                    .and_then(|()| directory.sync())
                    .map_err(|error| RootError::io(path, error))?,
            }
            directory = directory
                .open_directory(Path::new(name))
                .map_err(|error| RootError::unopened(path, error))?;
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
        let _lock = lock(&parent.directory).map_err(|error| RootError::io(path, error))?;
        draft::sweep(&parent.directory, name);
        let draft = Draft::new(&parent.directory, name, path, bytes)?;
        let old = match parent.directory.open_file(Path::new(name)) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(RootError::unopened(path, error)),
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

    /// Returns the directory of something, and its name there.
    pub(crate) fn existing_parent<'p>(
        &self,
        path: &'p Path,
    ) -> Result<(Self, &'p OsStr), RootError> {
        let name = path.file_name().ok_or_else(|| RootError::outside(path))?;
        Ok((self.directory(path.parent().unwrap_or(Path::new("")), Links::Never)?, name))
    }

    fn inside(&self, directory: Directory, path: &Path) -> Self {
        Self { directory, path: self.path.join(path), given_path: self.given_path.join(path) }
    }

    fn open_directory(&self, path: &Path, links: Links) -> Result<Directory, RootError> {
        self.resolve(path, links, |path| self.directory.open_directory(path))
    }

    /// Opens the target of a path, if it is inside.
    fn resolve<T>(
        &self,
        path: &Path,
        links: Links,
        open: impl Fn(&Path) -> io::Result<T>,
    ) -> Result<T, RootError> {
        names(path)?;
        let opened = match open(path) {
            Err(error) if links == Links::Inside && platform::leads_outside(&error) => {
                open(&self.real(path)?)
            }
            opened => opened,
        };
        opened.map_err(|error| RootError::unopened(path, error))
    }
}

/// The maximum number of links, as in the kernel.
const MAX_LINKS: usize = 40;
/// The timeout of waiting for other writers of a directory.
const PATIENCE: Duration = Duration::from_secs(5);

fn open_root(path: &Path) -> io::Result<Root> {
    let given_path = std::path::absolute(path)?;
    let path = std::fs::canonicalize(path)?;
    let directory = Directory::open(&path)?;
    // Written as the paths that it is compared with.
    Ok(Root { directory, path: platform::plain_path(path), given_path })
}

/// Locks a directory against other writers, until the returned file is closed.
fn lock(directory: &Directory) -> io::Result<File> {
    let start = Instant::now();
    let lock = directory.open_lock()?;
    loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(lock),
        }
    }
}

/// Splits a relative path into names.
fn names(path: &Path) -> Result<Vec<&OsStr>, RootError> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) if platform::is_plain_name(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(RootError::outside(path)),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
