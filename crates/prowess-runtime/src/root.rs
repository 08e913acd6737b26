//! A directory that nothing leads out of: not `..`, not a link, not a link that comes in between.
//!
//! Every path from outside is resolved here, by the kernel, from an open directory on. What was
//! checked is what is opened.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};

/// A directory that nothing leads out of.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
}

/// What happens to a link on the way to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It is followed, as long as it stays inside.
    Inside,
    /// It is refused.
    Never,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: OsString,
    /// What it is; a link is a link.
    pub kind: FileType,
    /// How large it is.
    pub size: u64,
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
    #[error("`{}` is not an ordinary file", path.display())]
    NotRegular {
        /// The path, as given.
        path: PathBuf,
    },
    /// The system said no.
    #[error("cannot use `{}`", path.display())]
    Io {
        /// The path, as given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RootError {
    /// Whether there is nothing of this path.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Root {
    /// Opens a directory. This path is the host's own: links on it are followed.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        let failed = |source| RootError::Io { path: path.to_owned(), source };
        let path = std::fs::canonicalize(path).map_err(failed)?;
        let directory = rustix::fs::open(&path, DIRECTORY, Mode::empty());
        Ok(Self { directory: directory.map_err(|it| failed(it.into()))?, path })
    }

    /// Where it lies, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open directory.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Opens an ordinary file to read it. A pipe or device is refused without waiting for it.
    pub fn file(&self, path: &Path, links: Links) -> Result<File, RootError> {
        let file = self.resolve(path, FILE, links)?;
        let stat = rustix::fs::fstat(&file).map_err(|it| failed(path, it))?;
        if kind(&stat) != FileType::RegularFile {
            return Err(RootError::NotRegular { path: path.to_owned() });
        }
        Ok(File::from(file))
    }

    /// Opens a directory inside.
    pub fn directory(&self, path: &Path, links: Links) -> Result<Self, RootError> {
        let directory = self.resolve(path, DIRECTORY, links)?;
        Ok(Self { directory, path: self.path.join(path) })
    }

    /// Lists a directory, sorted by name.
    pub fn list(&self, path: &Path, links: Links) -> Result<Vec<Listed>, RootError> {
        let directory = self.resolve(path, DIRECTORY, links)?;
        let failed = |errno| failed(path, errno);
        let mut all = Vec::new();
        for entry in Dir::read_from(&directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_owned();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            // One that has gone meanwhile is not there.
            if let Ok(stat) = rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                let name = OsString::from_vec(name.into_bytes());
                all.push(Listed { name, kind: kind(&stat), size: stat.st_size as u64 });
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Makes a directory and those above it; returns it open. No link is followed.
    pub fn make_directory(&self, path: &Path) -> Result<Self, RootError> {
        let failed = |errno| failed(path, errno);
        let mut directory = self
            .directory
            .try_clone()
            .map_err(|it| RootError::Io { path: path.to_owned(), source: it })?;
        for name in parts(path)? {
            match rustix::fs::mkdirat(&directory, name, Mode::from(0o777)) {
                Ok(()) => rustix::fs::fsync(&directory).map_err(failed)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            let flags = DIRECTORY | OFlags::NOFOLLOW;
            let next = rustix::fs::openat(&directory, name, flags, Mode::empty());
            directory = next.map_err(|errno| refused(path, errno))?;
        }
        Ok(Self { directory, path: self.path.join(path) })
    }

    /// Writes a file whole or not at all, and makes the directories above it. A link of its name is
    /// refused.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), RootError> {
        let outside = || RootError::Outside { path: path.to_owned() };
        let name = path.file_name().ok_or_else(outside)?;
        let parent = self.make_directory(path.parent().unwrap_or(Path::new("")))?;
        let failed = |errno| failed(path, errno);
        let mode = match rustix::fs::statat(&parent.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if kind(&stat) == FileType::RegularFile => Some(Mode::from(stat.st_mode)),
            Ok(_) => return Err(RootError::NotRegular { path: path.to_owned() }),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(failed(errno)),
        };
        let mut draft = Draft::new(&parent.directory, name).map_err(failed)?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(&draft.file, mode).map_err(failed)?;
        }
        let io = |source| RootError::Io { path: path.to_owned(), source };
        draft.file.write_all(bytes).map_err(io)?;
        draft.file.sync_all().map_err(io)?;
        draft.keep(name).map_err(failed)?;
        rustix::fs::fsync(&parent.directory).map_err(failed)
    }

    /// Opens what a path leads to, if that lies inside.
    fn resolve(&self, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, RootError> {
        let names = parts(path)?;
        let path = if names.is_empty() { Path::new(".") } else { path };
        let mut how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if links == Links::Never {
            how |= ResolveFlags::NO_SYMLINKS;
        }
        loop {
            return match rustix::fs::openat2(&self.directory, path, flags, Mode::empty(), how) {
                // Something was renamed on the way: the kernel asks to look again.
                Err(Errno::AGAIN) => continue,
                // Kernels before 5.6 and some containers do not have it.
                Err(Errno::NOSYS | Errno::PERM) => self.walk(path, &names, flags),
                opened => opened.map_err(|errno| refused(path, errno)),
            };
        }
    }

    /// Opens a path name by name, following no link at all.
    fn walk(&self, path: &Path, names: &[&OsStr], flags: OFlags) -> Result<OwnedFd, RootError> {
        let open = |directory: BorrowedFd<'_>, name: &OsStr, flags| {
            rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty())
                .map_err(|errno| refused(path, errno))
        };
        let Some((last, above)) = names.split_last() else {
            return open(self.as_fd(), OsStr::new("."), flags);
        };
        let mut directory: Option<OwnedFd> = None;
        for name in above {
            let from = directory.as_ref().map_or(self.as_fd(), |it| it.as_fd());
            directory = Some(open(from, name, DIRECTORY)?);
        }
        open(directory.as_ref().map_or(self.as_fd(), |it| it.as_fd()), last, flags)
    }
}

/// How a file is opened: without waiting, whatever it is.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// How a directory is opened.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A file that has no name yet that anybody looks for. Gone when it is dropped before it is kept.
struct Draft<'d> {
    directory: &'d OwnedFd,
    name: Option<OsString>,
    file: File,
}

impl<'d> Draft<'d> {
    fn new(directory: &'d OwnedFd, name: &OsStr) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            let draft = draft_name(name)?;
            let mode = Mode::from(0o666);
            match rustix::fs::openat(directory, &draft, flags | OFlags::NOFOLLOW, mode) {
                Ok(file) => {
                    return Ok(Self { directory, name: Some(draft), file: File::from(file) });
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn keep(mut self, name: &OsStr) -> Result<(), Errno> {
        let draft = self.name.as_ref().expect("a draft has a name until it is kept");
        rustix::fs::renameat(self.directory, draft, self.directory, name)?;
        self.name = None;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}

/// A hidden name that nobody can guess.
fn draft_name(name: &OsStr) -> Result<OsString, Errno> {
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    // The name itself may be as long as a name can be.
    let start: String = name.to_string_lossy().chars().take(32).collect();
    Ok(format!(".{start}.{:016x}.draft", u64::from_ne_bytes(random)).into())
}

/// The names of a relative path.
fn parts(path: &Path) -> Result<Vec<&OsStr>, RootError> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(RootError::Outside { path: path.to_owned() });
            }
        }
    }
    Ok(parts)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn failed(path: &Path, errno: Errno) -> RootError {
    RootError::Io { path: path.to_owned(), source: errno.into() }
}

/// What an errno says about a path that may have led out.
fn refused(path: &Path, errno: Errno) -> RootError {
    match errno {
        Errno::XDEV | Errno::LOOP => RootError::Outside { path: path.to_owned() },
        errno => failed(path, errno),
    }
}
