//! The project folders that a person trusts to have skills that act.
//!
//! The decisions are in one file of the host, which only its owner can write. If it is unreadable,
//! nothing is trusted.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::sys::{MetadataExt as _, NO_WAIT, OpenOptionsExt as _, user_id};
use crate::{state_directory::lock_directory, timestamp::timestamp};

/// The file with the folders that a person trusts or does not trust. Creating this touches no
/// files.
#[derive(Debug, Clone)]
pub struct TrustFile {
    directory: PathBuf,
}

/// A decision on a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrustEntry {
    /// The folder, with all links resolved.
    pub path: PathBuf,
    /// Whether it is trusted, with everything below it.
    pub trusted: bool,
    /// The time of the decision.
    pub since: String,
}

/// The content of the file.
#[derive(Default, Serialize, Deserialize)]
struct TrustList {
    folders: Vec<TrustEntry>,
}

const NAME: &str = "trust.json";
/// The maximum size of the file, in bytes.
const MAX_SIZE: u64 = 16 * 1024 * 1024;

impl TrustFile {
    /// Opens the file in a directory of the host.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Returns its path.
    pub fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// Returns all decisions, sorted by path.
    pub fn entries(&self) -> io::Result<Vec<TrustEntry>> {
        let mut entries = self.read()?.folders;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Returns the decision on a folder, or on the nearest one above it; `None` if there is none.
    pub fn decision(&self, folder: &Path) -> io::Result<Option<bool>> {
        let folder = prowess::real_path(folder)?;
        let entries = self.read()?.folders;
        // A relative path does not name a folder.
        let entries = entries.iter().filter(|it| it.path.is_absolute());
        let above = entries.filter(|it| folder.starts_with(&it.path));
        let nearest = above.max_by_key(|it| it.path.components().count());
        Ok(nearest.map(|it| it.trusted))
    }

    /// Saves a decision on a folder; returns the folder with all links resolved.
    pub fn decide(&self, folder: &Path, trusted: bool) -> io::Result<PathBuf> {
        let path = prowess::real_path(folder)?;
        if path.to_str().is_none() {
            let why = "the path is not valid UTF-8, so the decision cannot be saved";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let entry = TrustEntry { path: path.clone(), trusted, since: timestamp() };
        self.change(|folders| {
            folders.retain(|it| it.path != entry.path);
            folders.push(entry);
        })?;
        Ok(path)
    }

    /// Removes the decision on a folder, which may no longer exist; returns whether there was one.
    pub fn forget(&self, folder: &Path) -> io::Result<bool> {
        let path = prowess::real_path(folder).or_else(|_| std::path::absolute(folder))?;
        let mut is_known = false;
        self.change(|folders| {
            let before = folders.len();
            folders.retain(|it| it.path != path);
            is_known = folders.len() < before;
        })?;
        Ok(is_known)
    }

    /// Changes the file atomically, under a lock.
    fn change(&self, change: impl FnOnce(&mut Vec<TrustEntry>)) -> io::Result<()> {
        let _lock = lock_directory(&self.directory)?;
        let mut list = self.read()?;
        change(&mut list.folders);
        // A temporary file is private, and stays so.
        let mut draft = tempfile::NamedTempFile::new_in(&self.directory)?;
        draft.write_all(&serde_json::to_vec_pretty(&list)?)?;
        draft.as_file().sync_all()?;
        draft.persist(self.path())?;
        Ok(())
    }

    fn read(&self) -> io::Result<TrustList> {
        let file = match OpenOptions::new().read(true).custom_flags(NO_WAIT).open(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(TrustList::default());
            }
            file => file?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if !is_own(&metadata, 0o022) || !is_own(&fs::metadata(&self.directory)?, 0o002) {
            let why = "it, or its directory, belongs to another user or can be written by others";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let mut text = Vec::new();
        file.take(MAX_SIZE).read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(|it| io::Error::new(io::ErrorKind::InvalidData, it))
    }
}

/// Whether a file belongs to the current user, and nobody else can write it.
fn is_own(metadata: &fs::Metadata, others: u32) -> bool {
    metadata.uid() == user_id() && metadata.mode() & others == 0
}
