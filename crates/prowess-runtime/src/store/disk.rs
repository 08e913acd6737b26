//! Changes to a directory, each whole or not at all, by one writer at a time.
//!
//! What is new is made under a hidden name, brought to the disk, and takes its place by one rename.
//! Whatever a writer that died has left under such a name is taken away by the next.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::{
            ffi::OsStrExt as _,
            fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use prowess_sandbox::{Links, Root, RootError, rename_noreplace};
use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags},
    io::Errno,
    process::geteuid,
};
use sha2::{Digest as _, Sha256};

use super::{Files, StateAfter, StoreError, WriteFailure};
use crate::file_lock::lock_within;

/// A call that changes the disk, or brings a change to it.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStep {
    Create,
    Write,
    Sync,
    Rename,
    SyncDirectory,
    Remove,
}

/// What is asked before every step; a test stops there, as a process that dies would.
#[derive(Default)]
pub(super) struct Steps(pub(super) Option<Box<dyn Fn(DiskStep) -> io::Result<()> + Send + Sync>>);

impl Steps {
    fn before(&self, step: DiskStep) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |ask| ask(step))
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steps")
    }
}

/// A directory that nobody else writes to as long as this is held.
pub(super) struct LockedDirectory<'s> {
    pub(super) root: Root,
    steps: &'s Steps,
    _locks: [Option<File>; 2],
}

/// What the hidden names of unfinished work begin with; sixteen hexadecimal digits follow.
const STAGING: &str = ".prowess-staging-";
/// How long is waited for those who lock the directory alone.
const COURTESY: Duration = Duration::from_secs(5);
/// How deep unfinished work is taken away; what lies deeper is not ours.
const MAX_DEPTH: usize = 64;

impl<'s> LockedDirectory<'s> {
    /// Opens a directory and waits until no other writer has it. Whoever can read the directory could hold
    /// a lock on it for ever: where a file in `state` can be locked, which nobody else can open, that one is
    /// not waited for any longer than a change takes.
    pub(super) fn open(
        path: &Path,
        state: Option<&Path>,
        patience: Duration,
        steps: &'s Steps,
    ) -> Result<Self, StoreError> {
        let failed = |source| failed(path, StateAfter::Unchanged, source);
        let root = Root::open(path).map_err(|error| unusable(path, error))?;
        let busy = || StoreError::Busy { path: path.to_owned(), waited: patience };
        let own = match state.and_then(|it| own_lock(it, root.path()).ok()) {
            Some(own) => Some(lock_within(own, patience).map_err(failed)?.ok_or_else(busy)?),
            None => None,
        };
        // On the directory itself there is no file that could be deleted while it is held, and none is
        // left behind.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(root.as_fd(), ".", flags, Mode::empty());
        let lock = lock.map_err(|errno| failed(errno.into()))?.into();
        let lock = match &own {
            None => Some(lock_within(lock, patience).map_err(failed)?.ok_or_else(busy)?),
            Some(_) => lock_within(lock, patience.min(COURTESY)).map_err(failed)?,
        };
        let may_sweep = lock.is_some();
        let locked = Self { root, steps, _locks: [own, lock] };
        if may_sweep {
            locked.sweep();
        }
        Ok(locked)
    }

    /// Puts a file in the place of the one that is there, or where there is none.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let shown = self.root.path().join(path);
        let failed = |source| failed(&shown, StateAfter::Unchanged, source);
        let mode = match self.root.file(path, Links::Never) {
            Ok(file) => {
                let stat = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
                Some(Mode::from(stat.st_mode))
            }
            Err(error) if error.is_missing() => None,
            Err(error) => return Err(unusable(&shown, error)),
        };
        let staged = StagedName::new(self)?;
        self.write(self.root.as_fd(), &staged.name, bytes, mode).map_err(failed)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().unwrap_or_default();
        self.steps.before(DiskStep::Create).map_err(failed)?;
        let parent = self.root.make_directory(parent).map_err(|it| unusable(&shown, it))?;
        self.steps.before(DiskStep::Rename).map_err(failed)?;
        rustix::fs::renameat(self.root.as_fd(), &staged.name, parent.as_fd(), name)
            .map_err(|errno| failed(errno.into()))?;
        staged.keep();
        self.sync(&shown, &parent, &self.root)
    }

    /// Puts a new folder with its files where there is none.
    pub(super) fn place(&self, name: &str, files: &Files) -> Result<(), StoreError> {
        let shown = self.root.path().join(name);
        let staged = StagedName::new(self)?;
        self.fill(Path::new(&staged.name), files)
            .map_err(|source| failed(&shown, StateAfter::Unchanged, source))?;
        self.rename((&self.root, &staged.name), (&self.root, name))?;
        staged.keep();
        Ok(())
    }

    /// Moves what has one name to another that is not taken. A link is moved, not followed.
    pub(super) fn rename(
        &self,
        (from, old): (&Root, impl AsRef<OsStr>),
        (to, new): (&Root, impl AsRef<OsStr>),
    ) -> Result<(), StoreError> {
        let (old, new) = (old.as_ref(), new.as_ref());
        let shown = to.path().join(new);
        self.steps
            .before(DiskStep::Rename)
            .and_then(|()| Ok(rename_noreplace(from.as_fd(), old, to.as_fd(), new)?))
            .map_err(|source| failed(&shown, StateAfter::Unchanged, source))?;
        self.sync(&shown, to, from)
    }

    /// Takes something away for good, with all that lies in it.
    pub(super) fn discard(&self, directory: &Root, name: &str) -> Result<(), StoreError> {
        // Half of it must not be taken for the whole if this is as far as it gets.
        let staged = StagedName::new(self)?;
        self.rename((directory, name), (&self.root, &staged.name))
    }

    /// Makes a folder with files, and brings all of it to the disk.
    fn fill(&self, folder: &Path, files: &Files) -> io::Result<()> {
        self.steps.before(DiskStep::Create)?;
        rustix::fs::mkdirat(self.root.as_fd(), folder, Mode::from(0o777))?;
        let mut folders = BTreeSet::from([folder.to_owned()]);
        for (path, bytes) in files {
            let path = folder.join(path);
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
            self.steps.before(DiskStep::Create)?;
            let directory = self.root.make_directory(parent).map_err(into_io)?;
            self.write(directory.as_fd(), name, bytes, None)?;
            let above = parent.ancestors().take_while(|it| it.starts_with(folder));
            folders.extend(above.map(PathBuf::from));
        }
        for folder in folders {
            self.steps.before(DiskStep::SyncDirectory)?;
            let directory = self.root.directory(&folder, Links::Never).map_err(into_io)?;
            rustix::fs::fsync(directory.as_fd())?;
        }
        Ok(())
    }

    /// Writes a new file and brings it to the disk. A script can be run.
    fn write(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        bytes: &[u8],
        mode: Option<Mode>,
    ) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let usual = if bytes.starts_with(b"#!") { 0o777 } else { 0o666 };
        self.steps.before(DiskStep::Create)?;
        let file = rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, usual.into())?;
        let mut file = File::from(file);
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, mode)?;
        }
        self.steps.before(DiskStep::Write)?;
        file.write_all(bytes)?;
        self.steps.before(DiskStep::Sync)?;
        file.sync_all()
    }

    /// Brings a rename to the disk: where it led to, and where it came from.
    fn sync(&self, shown: &Path, to: &Root, from: &Root) -> Result<(), StoreError> {
        let other = (from.path() != to.path()).then_some(from);
        for directory in [Some(to), other].into_iter().flatten() {
            self.steps
                .before(DiskStep::SyncDirectory)
                .and_then(|()| Ok(rustix::fs::fsync(directory.as_fd())?))
                .map_err(|source| failed(shown, StateAfter::Unsafe, source))?;
        }
        Ok(())
    }

    /// Takes away what writers have left that died; whatever cannot be taken away stays hidden.
    fn sweep(&self) {
        let Ok(names) = names(self.root.as_fd()) else { return };
        let is_ours = |name: &&OsString| {
            let digits = name.as_bytes().strip_prefix(STAGING.as_bytes());
            digits.is_some_and(|it| it.len() == 16 && it.iter().all(u8::is_ascii_hexdigit))
        };
        for name in names.iter().filter(is_ours) {
            let _ = self.remove(self.root.as_fd(), name, 0);
        }
    }

    fn remove(&self, directory: BorrowedFd<'_>, name: &OsStr, depth: usize) -> io::Result<()> {
        self.steps.before(DiskStep::Remove)?;
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) if depth < MAX_DEPTH => {}
            removed => return Ok(removed?),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inside = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        for name in names(inside.as_fd())? {
            self.remove(inside.as_fd(), &name, depth + 1)?;
        }
        self.steps.before(DiskStep::Remove)?;
        Ok(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?)
    }
}

/// A hidden name for something unfinished. What has it is gone when this is dropped.
struct StagedName<'l, 's> {
    locked: &'l LockedDirectory<'s>,
    name: OsString,
    kept: bool,
}

impl<'l, 's> StagedName<'l, 's> {
    fn new(locked: &'l LockedDirectory<'s>) -> Result<Self, StoreError> {
        let mut random = [0_u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| failed(locked.root.path(), StateAfter::Unchanged, errno.into()))?;
        let name = format!("{STAGING}{:016x}", u64::from_ne_bytes(random)).into();
        Ok(Self { locked, name, kept: false })
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for StagedName<'_, '_> {
    fn drop(&mut self) {
        if !self.kept {
            let _ = self.locked.remove(self.locked.root.as_fd(), &self.name, 0);
        }
    }
}

/// Opens the file that is locked for a directory: one of this user, that nobody else can open.
fn own_lock(state: &Path, directory: &Path) -> io::Result<File> {
    let locks = state.join("locks");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&locks)?;
    let name: String = Sha256::digest(directory.as_os_str().as_bytes())
        .iter()
        .map(|it| format!("{it:02x}"))
        .collect();
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let file = options.open(locks.join(name))?;
    let metadata = file.metadata()?;
    match metadata.is_file() && metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0
    {
        true => Ok(file),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Makes a directory of the host's own and those above it, and brings them to the disk.
pub(super) fn make(path: &Path, steps: &Steps) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    make(parent, steps)?;
    steps.before(DiskStep::Create)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    steps.before(DiskStep::SyncDirectory)?;
    File::open(parent)?.sync_all()
}

/// The names in a directory, sorted.
pub(super) fn names(directory: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// What a directory could not be written for.
pub(super) fn failed(path: &Path, now: StateAfter, source: io::Error) -> StoreError {
    StoreError::Write { path: path.to_owned(), why: WriteFailure::of(&source), now, source }
}

fn into_io(error: RootError) -> io::Error {
    match error {
        RootError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// What is said when a folder or file of the store cannot be written to.
pub(super) fn unusable(path: &Path, error: RootError) -> StoreError {
    match error {
        RootError::Io { source, .. } if source.kind() != io::ErrorKind::NotADirectory => {
            failed(path, StateAfter::Unchanged, source)
        }
        _ => StoreError::NotOurs { path: path.to_owned() },
    }
}
