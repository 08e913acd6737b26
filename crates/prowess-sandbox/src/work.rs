//! The private directory of one run.

use std::{
    env,
    ffi::{CStr, CString},
    fs::{self, DirBuilder, DirEntry, OpenOptions},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{
            DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
        },
    },
    path::{Component, Path, PathBuf},
    sync::Once,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};

use crate::root::{Links, Root, RootError};

/// The private directory of one run: the script's working directory, the files it is given, and the
/// files it leaves. All of it is removed when this is dropped.
#[derive(Debug)]
pub struct Work {
    base: PathBuf,
    path: PathBuf,
    /// A lock that marks it as in use.
    _lock: OwnedFd,
    /// Open as long as this exists: when it closes, even because this process was killed, the
    /// supervisor of the run removes the rest.
    pub(crate) supervisor: Option<OwnedFd>,
}

impl Work {
    /// Creates a directory for temporary files: in `TMPDIR` if usable, else in `/tmp` or
    /// `/var/tmp`.
    pub fn new() -> io::Result<Self> {
        let places = [env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for place in places {
            match Self::within(&place) {
                Ok(work) => return Ok(work),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Creates a directory in this one.
    pub fn within(directory: &Path) -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let directory = fs::canonicalize(directory)?;
        SWEPT.call_once(|| Self::remove_abandoned(&directory));
        let mut builder = tempfile::Builder::new();
        let permissions = fs::Permissions::from_mode(0o700);
        let base = builder.prefix(PREFIX).permissions(permissions).tempdir_in(&directory)?;
        let lock = lock_directory(base.path(), FlockOperation::LockShared)?;
        let base = base.keep();
        let work = Self { path: base.join(WORK), base, _lock: lock, supervisor: None };
        for name in [WORK, GIVEN, TEMPORARY, ROOT] {
            DirBuilder::new().mode(0o700).create(work.base.join(name))?;
        }
        Ok(work)
    }

    /// Removes our work directories that both engine and supervisor left behind, because they were
    /// killed, or the machine went down.
    pub fn remove_abandoned(directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if is_old(&entry).unwrap_or(false)
                && lock_directory(&entry.path(), FlockOperation::NonBlockingLockExclusive).is_ok()
            {
                let _ = remove_folder(&entry.path());
            }
        }
    }

    /// Returns the script's home, which is also its working directory unless the job sets another.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a file that the script can read and run, but not change; returns its path. The name may
    /// contain folders.
    pub fn give(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.given_path(name);
        let mut parts = Path::new(name).components();
        let (true, Some(folder)) =
            (parts.all(|it| matches!(it, Component::Normal(_))), path.parent())
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o500).open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }

    /// Returns the path of a file or folder that is given under this name.
    pub fn given_path(&self, name: &str) -> PathBuf {
        self.base.join(GIVEN).join(name)
    }

    /// Returns the files in it, sorted by path. Links are neither followed nor listed.
    pub fn files(&self) -> Result<Vec<String>, RootError> {
        let files = self.list()?.into_iter().filter(|it| it.1 == FileType::RegularFile);
        Ok(files.map(|it| it.0.to_string_lossy().into_owned()).collect())
    }

    /// Returns everything in it except folders, sorted by path, with the file types.
    pub fn list(&self) -> Result<Vec<(PathBuf, FileType)>, RootError> {
        let root = Root::open(&self.path)?;
        let mut left = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            // A folder that the script has made unreadable is skipped.
            for listed in root.list(&folder, Links::Never).unwrap_or_default() {
                let path = folder.join(&listed.name);
                match listed.kind {
                    FileType::Directory => folders.push(path),
                    kind => left.push((path, kind)),
                }
            }
        }
        left.sort_by(|a, b| a.0.as_os_str().cmp(b.0.as_os_str()));
        Ok(left)
    }

    /// Reads a file that the script left, up to `most` bytes. A link is refused.
    pub fn read(&self, path: impl AsRef<Path>, most: u64) -> Result<Vec<u8>, RootError> {
        let path = path.as_ref();
        let file = Root::open(&self.path)?.file(path, Links::Never)?;
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| RootError::io(path, error))?;
        if bytes.len() as u64 > most {
            return Err(RootError::io(path, io::ErrorKind::FileTooLarge));
        }
        Ok(bytes)
    }

    /// Copies the files that the script left into a directory, under their own paths; returns
    /// these. Copies no more than `most` bytes, counted as they are read: a sparse file may be
    /// larger than its disk usage.
    pub fn collect(&self, into: &Root, most: u64) -> Result<Vec<String>, RootError> {
        let files = self.files()?;
        let mut left = most;
        for path in &files {
            let bytes = self.read(path, left)?;
            left -= bytes.len() as u64;
            into.write(Path::new(path), &bytes)?;
        }
        Ok(files)
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = remove_folder(&self.base);
    }
}

/// The subdirectories of a work directory's base: the script's own, the files it is given, its
/// temporary files, and the mount point of its root.
pub(crate) const WORK: &str = "work";
pub(crate) const GIVEN: &str = "given";
pub(crate) const TEMPORARY: &str = "tmp";
pub(crate) const ROOT: &str = "root";

/// The prefix of work directories' names.
const PREFIX: &str = "prowess-work-";
/// The age from which an unlocked one is considered abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// Whether an entry is a work directory of ours that is old enough to be considered abandoned.
fn is_old(entry: &DirEntry) -> Option<bool> {
    if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
        return Some(false);
    }
    let metadata = entry.metadata().ok()?;
    let is_own = metadata.uid() == rustix::process::getuid().as_raw();
    Some(is_own && metadata.modified().ok()?.elapsed().ok()? > ABANDONED_AFTER)
}

/// Locks a directory for as long as the returned descriptor is open.
pub(crate) fn lock_directory(base: &Path, how: FlockOperation) -> io::Result<OwnedFd> {
    let directory = rustix::fs::open(base, DIRECTORY, Mode::empty())?;
    rustix::fs::flock(&directory, how)?;
    Ok(directory)
}

/// Removes a directory with everything in it, at any depth and with any permissions. Subfolders are
/// moved up and removed there, so that no path gets long; no link is followed. Concurrent removal
/// is not an error.
pub fn remove_folder(base: &Path) -> io::Result<()> {
    let top = match rustix::fs::open(base, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        top => top?,
    };
    let mut number = 0;
    loop {
        let folders = remove_files(&top, &top, &mut number)?;
        if folders.is_empty() {
            return ignore_missing(rustix::fs::rmdir(base));
        }
        for name in folders {
            let Some(folder) = open_writable(&top, &name)? else { continue };
            remove_files(&folder, &top, &mut number)?;
            ignore_missing(rustix::fs::unlinkat(&top, &name, AtFlags::REMOVEDIR))?;
        }
    }
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes the files of a folder. Subfolders of the top folder are returned, others are moved
/// there.
fn remove_files(folder: &OwnedFd, top: &OwnedFd, number: &mut u64) -> io::Result<Vec<CString>> {
    let mut folders = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(folder, &name, AtFlags::empty()) {
            // It is a folder.
            Err(Errno::ISDIR) if std::ptr::eq(folder, top) => folders.push(name),
            Err(Errno::ISDIR) => move_up(folder, &name, top, number)?,
            removed => ignore_missing(removed)?,
        }
    }
    Ok(folders)
}

fn move_up(folder: &OwnedFd, name: &CStr, top: &OwnedFd, number: &mut u64) -> io::Result<()> {
    // Moving a folder writes to it, because its `..` changes.
    let Some(_) = open_writable(folder, name)? else { return Ok(()) };
    loop {
        *number += 1;
        match rustix::fs::renameat(folder, name, top, number.to_string()) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            moved => return ignore_missing(moved),
        }
    }
}

/// Grants us all permissions on a folder; returns `None` if it is gone. The script may still be
/// alive, and put a link in its place: the folder that is changed is the one that was opened.
fn open_writable(parent: &OwnedFd, name: &CStr) -> io::Result<Option<OwnedFd>> {
    let folder = match rustix::fs::openat(parent, name, DIRECTORY | OFlags::PATH, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        folder => folder?,
    };
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let _ = rustix::fs::chmod(path, Mode::RWXU);
    Ok(Some(rustix::fs::openat(&folder, ".", DIRECTORY, Mode::empty())?))
}

/// Treats a missing file as removed.
fn ignore_missing(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}
