//! Atomic changes to a directory, by one writer at a time.
//!
//! New data is created under a hidden name, synced to disk, and moved into place by a single
//! rename. Leftovers of a writer that died are removed by the next one.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fmt,
    fs::{File, Permissions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use prowess_sandbox::{Links, Root, RootError};

use super::{Files, StateAfter, StoreError, WriteFailure};
use crate::sys::{
    DirBuilderExt as _, MetadataExt as _, NO_WAIT, OpenOptionsExt as _, OsStrExt as _,
    sync_directory, user_id,
};
use crate::{digest::digest, file_lock::lock_within};

/// An operation that changes the disk, or syncs it.
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

/// A hook before every step; a test fails there to simulate a crash.
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

/// A directory that is locked against other writers as long as this exists.
pub(super) struct LockedDirectory<'s> {
    pub(super) root: Root,
    steps: &'s Steps,
    _locks: [Option<File>; 2],
}

/// The prefix of the hidden names of unfinished work; sixteen hexadecimal digits follow.
const STAGING: &str = ".prowess-staging-";
/// The timeout for writers that only lock the directory.
const COURTESY: Duration = Duration::from_secs(5);
/// The maximum depth to which unfinished work is removed; anything deeper is not ours.
const MAX_DEPTH: usize = 64;

impl<'s> LockedDirectory<'s> {
    /// Opens a directory and waits until no other writer has it. Anybody who can read the directory
    /// could lock it for ever: if a private file in `state` can be locked, the lock on the
    /// directory is only waited for as long as a change takes.
    pub(super) fn open(
        path: &Path,
        state: Option<&Path>,
        patience: Duration,
        steps: &'s Steps,
    ) -> Result<Self, StoreError> {
        let failed = |source| write_error(path, StateAfter::Unchanged, source);
        let root = Root::open(path).map_err(|error| open_error(path, error))?;
        let busy = || StoreError::Busy { path: path.to_owned(), waited: patience };
        let own = match state.and_then(|it| open_lock(it, root.path()).ok()) {
            Some(own) => Some(lock_within(own, patience).map_err(failed)?.ok_or_else(busy)?),
            None => None,
        };
        // A lock on the directory itself needs no file, which could be deleted while locked, or
        // left behind.
        let lock = root.open_lock().map_err(failed)?;
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

    /// Creates or replaces a file.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let shown = self.root.path().join(path);
        let failed = |source| write_error(&shown, StateAfter::Unchanged, source);
        let permissions = match self.root.file(path, Links::Never) {
            Ok(file) => Some(file.metadata().map_err(failed)?.permissions()),
            Err(error) if error.is_missing() => None,
            Err(error) => return Err(open_error(&shown, error)),
        };
        let staged = StagedName::new(self)?;
        self.write(&self.root, &staged.name, bytes, permissions).map_err(failed)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().unwrap_or_default();
        self.steps.before(DiskStep::Create).map_err(failed)?;
        let parent = self.root.make_directory(parent).map_err(|it| open_error(&shown, it))?;
        self.steps.before(DiskStep::Rename).map_err(failed)?;
        self.root.move_to(&staged.name, &parent, name).map_err(failed)?;
        staged.keep();
        self.sync(&shown, &parent, &self.root)
    }

    /// Creates a new folder with its files.
    pub(super) fn create_folder(&self, name: &str, files: &Files) -> Result<(), StoreError> {
        let shown = self.root.path().join(name);
        let staged = StagedName::new(self)?;
        self.fill(Path::new(&staged.name), files)
            .map_err(|source| write_error(&shown, StateAfter::Unchanged, source))?;
        self.rename((&self.root, &staged.name), (&self.root, name))?;
        staged.keep();
        Ok(())
    }

    /// Renames an entry to an unused name. A link is moved, not followed.
    pub(super) fn rename(
        &self,
        (from, old): (&Root, impl AsRef<OsStr>),
        (to, new): (&Root, impl AsRef<OsStr>),
    ) -> Result<(), StoreError> {
        let (old, new) = (old.as_ref(), new.as_ref());
        let shown = to.path().join(new);
        self.steps
            .before(DiskStep::Rename)
            .and_then(|()| from.move_noreplace(old, to, new))
            .map_err(|source| write_error(&shown, StateAfter::Unchanged, source))?;
        self.sync(&shown, to, from)
    }

    /// Removes an entry permanently, with all its contents.
    pub(super) fn discard(&self, directory: &Root, name: &str) -> Result<(), StoreError> {
        // Renamed first, so that a partly removed entry is never visible.
        let staged = StagedName::new(self)?;
        self.rename((directory, name), (&self.root, &staged.name))
    }

    /// Creates a folder with files, and syncs all of it.
    fn fill(&self, folder: &Path, files: &Files) -> io::Result<()> {
        self.steps.before(DiskStep::Create)?;
        self.root.create_directory(folder.as_os_str())?;
        let mut folders = BTreeSet::from([folder.to_owned()]);
        for (path, bytes) in files {
            let path = folder.join(path);
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
            self.steps.before(DiskStep::Create)?;
            let directory = self.root.make_directory(parent).map_err(into_io)?;
            self.write(&directory, name, bytes, None)?;
            let above = parent.ancestors().take_while(|it| it.starts_with(folder));
            folders.extend(above.map(PathBuf::from));
        }
        for folder in folders {
            self.steps.before(DiskStep::SyncDirectory)?;
            self.root.directory(&folder, Links::Never).map_err(into_io)?.sync()?;
        }
        Ok(())
    }

    /// Writes a new file and syncs it. Scripts are made executable.
    fn write(
        &self,
        directory: &Root,
        name: &OsStr,
        bytes: &[u8],
        permissions: Option<Permissions>,
    ) -> io::Result<()> {
        self.steps.before(DiskStep::Create)?;
        let mut file = directory.create_file(name, bytes.starts_with(b"#!"))?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        self.steps.before(DiskStep::Write)?;
        file.write_all(bytes)?;
        self.steps.before(DiskStep::Sync)?;
        file.sync_all()
    }

    /// Syncs a rename: the target directory, and the source.
    fn sync(&self, shown: &Path, to: &Root, from: &Root) -> Result<(), StoreError> {
        let other = (from.path() != to.path()).then_some(from);
        for directory in [Some(to), other].into_iter().flatten() {
            self.steps
                .before(DiskStep::SyncDirectory)
                .and_then(|()| directory.sync())
                .map_err(|source| write_error(shown, StateAfter::Unsafe, source))?;
        }
        Ok(())
    }

    /// Removes leftovers of writers that died; if that fails, they stay hidden.
    fn sweep(&self) {
        let Ok(names) = self.root.names() else { return };
        for name in names.iter().filter(|name: &&OsString| {
            let digits = name.as_bytes().strip_prefix(STAGING.as_bytes());
            digits.is_some_and(|it| it.len() == 16 && it.iter().all(u8::is_ascii_hexdigit))
        }) {
            let _ = self.remove(&self.root, name, 0);
        }
    }

    fn remove(&self, directory: &Root, name: &OsStr, depth: usize) -> io::Result<()> {
        self.steps.before(DiskStep::Remove)?;
        match directory.remove_file(name) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory && depth < MAX_DEPTH => {}
            removed => return removed,
        }
        let inside = directory.directory(Path::new(name), Links::Never).map_err(into_io)?;
        for name in inside.names()? {
            self.remove(&inside, &name, depth + 1)?;
        }
        drop(inside);
        self.steps.before(DiskStep::Remove)?;
        directory.remove_directory(name)
    }
}

/// A hidden name for unfinished work, which is removed when this is dropped.
struct StagedName<'l, 's> {
    locked: &'l LockedDirectory<'s>,
    name: OsString,
    is_kept: bool,
}

impl<'l, 's> StagedName<'l, 's> {
    fn new(locked: &'l LockedDirectory<'s>) -> Result<Self, StoreError> {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(|error| {
            write_error(locked.root.path(), StateAfter::Unchanged, error.into())
        })?;
        let name = format!("{STAGING}{:016x}", u64::from_ne_bytes(random)).into();
        Ok(Self { locked, name, is_kept: false })
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for StagedName<'_, '_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = self.locked.remove(&self.locked.root, &self.name, 0);
        }
    }
}

/// Opens the lock file of a directory: one of this user, that nobody else can open.
fn open_lock(state: &Path, directory: &Path) -> io::Result<File> {
    let locks = state.join("locks");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&locks)?;
    let name = digest(directory.as_os_str().as_bytes());
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(NO_WAIT);
    let file = options.open(locks.join(name))?;
    let metadata = file.metadata()?;
    let is_ours = metadata.uid() == user_id() && metadata.mode() & 0o077 == 0;
    if metadata.is_file() && is_ours {
        Ok(file)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Creates a directory of the host and its parents, and syncs them.
pub(super) fn create_directories(path: &Path, steps: &Steps) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    create_directories(parent, steps)?;
    steps.before(DiskStep::Create)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    steps.before(DiskStep::SyncDirectory)?;
    sync_directory(parent)
}

/// Creates the error for a failed write.
pub(super) fn write_error(path: &Path, now: StateAfter, source: io::Error) -> StoreError {
    StoreError::Write { path: path.to_owned(), why: WriteFailure::of(&source), now, source }
}

fn into_io(error: RootError) -> io::Error {
    match error {
        RootError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// Creates the error for a folder or file of the store that cannot be opened for writing.
pub(super) fn open_error(path: &Path, error: RootError) -> StoreError {
    match error {
        RootError::Io { source, .. } if source.kind() != io::ErrorKind::NotADirectory => {
            write_error(path, StateAfter::Unchanged, source)
        }
        _ => StoreError::NotOurs { path: path.to_owned() },
    }
}
