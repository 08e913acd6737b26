//! The private directory of one run.

use std::{
    env,
    fs::{self, DirEntry, File},
    io::{self, Read as _, Write as _},
    path::{Component, Path, PathBuf},
    sync::Once,
    time::Duration,
};

use crate::{
    file_type::FileType,
    platform::{
        create_private_directory, create_private_script, create_temporary, is_own,
        open_folder_lock, remove_folder,
    },
    root::{Links, Root, RootError},
};

/// The private directory of one run: the script's working directory, the files it is given, and the
/// files it leaves. All of it is removed when this is dropped.
#[derive(Debug)]
pub struct Work {
    base: PathBuf,
    path: PathBuf,
    /// A lock that marks it as in use.
    _lock: File,
    /// Open as long as this exists: when it closes, even because this process was killed, the
    /// supervisor of the run removes the rest.
    pub(crate) supervisor: Option<File>,
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
        let base = create_temporary(PREFIX, &directory)?;
        let lock = open_folder_lock(base.path())?;
        lock.lock_shared()?;
        let base = base.keep();
        let path = base.join(WORK);
        for name in [WORK, GIVEN, TEMPORARY, ROOT] {
            create_private_directory(&base.join(name))?;
        }
        Ok(Self { base, path, _lock: lock, supervisor: None })
    }

    /// Removes our work directories that both engine and supervisor left behind, because they were
    /// killed, or the machine went down.
    pub fn remove_abandoned(directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if is_old(&entry).unwrap_or(false)
                && open_folder_lock(&entry.path()).is_ok_and(|it| it.try_lock().is_ok())
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
        create_private_directory(folder)?;
        create_private_script(&path)?.write_all(bytes)?;
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
    Some(is_own(&metadata) && metadata.modified().ok()?.elapsed().ok()? > ABANDONED_AFTER)
}
