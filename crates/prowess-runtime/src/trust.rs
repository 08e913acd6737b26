//! Which project folders a person trusts to bring skills that act.
//!
//! The answers are in one file of the host's, which only its owner can write. What cannot be read is not trusted.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    state_directory::{NO_WAIT, lock_directory},
    timestamp::timestamp,
};

/// The file with the folders that a person trusts, and those that they do not. Making one touches nothing.
#[derive(Debug, Clone)]
pub struct TrustFile {
    directory: PathBuf,
}

/// What a person has decided about a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEntry {
    /// The folder, with all links resolved.
    pub path: PathBuf,
    /// Whether it is trusted, with all that is below it.
    pub trusted: bool,
    /// When that was decided.
    pub since: String,
}

/// What the file holds.
#[derive(Default, Serialize, Deserialize)]
struct Book {
    folders: Vec<TrustEntry>,
}

const NAME: &str = "trust.json";
/// The largest file that is read, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

impl TrustFile {
    /// The file in a directory of the host's.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// All that was decided, by path.
    pub fn entries(&self) -> io::Result<Vec<TrustEntry>> {
        let mut entries = self.read()?.folders;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// What was decided about a folder, or about the nearest one above it; nothing where nobody has decided.
    pub fn decision(&self, folder: &Path) -> io::Result<Option<bool>> {
        let folder = fs::canonicalize(folder)?;
        let entries = self.read()?.folders;
        // What is not written out from the root of the disk names no folder.
        let entries = entries.iter().filter(|it| it.path.is_absolute());
        let above = entries.filter(|it| folder.starts_with(&it.path));
        let nearest = above.max_by_key(|it| it.path.components().count());
        Ok(nearest.map(|it| it.trusted))
    }

    /// Keeps what a person has decided about a folder; returns the folder with all links resolved.
    pub fn decide(&self, folder: &Path, trusted: bool) -> io::Result<PathBuf> {
        let path = fs::canonicalize(folder)?;
        if path.to_str().is_none() {
            let why = "the path is not UTF-8, so that the answer cannot be kept";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let entry = TrustEntry { path: path.clone(), trusted, since: timestamp() };
        self.change(|folders| {
            folders.retain(|it| it.path != entry.path);
            folders.push(entry);
        })?;
        Ok(path)
    }

    /// Forgets what was decided about a folder, which need not be there any more; says whether anything was.
    pub fn forget(&self, folder: &Path) -> io::Result<bool> {
        let path = fs::canonicalize(folder).or_else(|_| std::path::absolute(folder))?;
        let mut is_known = false;
        self.change(|folders| {
            let before = folders.len();
            folders.retain(|it| it.path != path);
            is_known = folders.len() < before;
        })?;
        Ok(is_known)
    }

    /// Changes the file whole or not at all, while no other process does.
    fn change(&self, change: impl FnOnce(&mut Vec<TrustEntry>)) -> io::Result<()> {
        let _lock = lock_directory(&self.directory)?;
        let mut book = self.read()?;
        change(&mut book.folders);
        // A temporary file is readable by its owner alone, and stays so.
        let mut draft = tempfile::NamedTempFile::new_in(&self.directory)?;
        draft.write_all(&serde_json::to_vec_pretty(&book)?)?;
        draft.as_file().sync_all()?;
        draft.persist(self.path())?;
        Ok(())
    }

    fn read(&self) -> io::Result<Book> {
        let file = match OpenOptions::new().read(true).custom_flags(NO_WAIT).open(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Book::default()),
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
        file.take(LARGEST).read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(|it| io::Error::new(io::ErrorKind::InvalidData, it))
    }
}

/// Whether something belongs to whoever runs this, and nobody else can write it.
fn is_own(metadata: &fs::Metadata, others: u32) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & others == 0
}
