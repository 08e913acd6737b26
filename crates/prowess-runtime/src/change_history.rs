//! The history of files written by tools, with their previous contents, for undo.
//!
//! Everything is in one private directory of the host: one JSON file for each change, and one with
//! the previous content if there was any.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use prowess_sandbox::{Links, Root, RootError};
use serde::{Deserialize, Serialize};

use crate::sys::{NO_WAIT, OpenOptionsExt as _, set_mode};
use crate::{
    digest::digest,
    state_directory::{is_own, lock_directory},
    timestamp::timestamp,
};

/// The files written by tools, with their previous contents. Creating this touches no files.
#[derive(Debug, Clone)]
pub struct ChangeHistory {
    directory: PathBuf,
    /// The group of further changes.
    group: Option<String>,
}

/// A change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRecord {
    /// The time of the change, in nanoseconds since 1970; unique among all changes.
    pub time: u64,
    /// The time as text, such as `2026-11-15T09:30:00Z`.
    pub when: String,
    /// The file.
    pub path: PathBuf,
    /// The previous size in bytes; `None` if the file is new.
    pub size: Option<u64>,
    /// The group of changes by the same command; `None` for a single change.
    pub group: Option<String>,
    /// The previous path, if the file or folder was renamed and not written.
    pub renamed_from: Option<PathBuf>,
    /// The SHA-256 of the new content.
    after: String,
    before: Option<Previous>,
    new_folders: usize,
}

/// The stored facts about a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    when: String,
    path: PathBuf,
    /// The SHA-256 of the new content.
    after: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Previous>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renamed_from: Option<PathBuf>,
    /// The number of parent folders that were created for it.
    #[serde(default)]
    new_folders: usize,
}

/// The previous content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Previous {
    size: u64,
    sha256: String,
    mode: u32,
}

/// A change could not be undone; nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// The file has been changed since.
    #[error("`{}` has changed since then", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The file with its previous content, if it had any.
        kept: Option<PathBuf>,
    },
    /// The directory of the file is gone, or a link now leads elsewhere.
    #[error("the directory of `{}` no longer exists", path.display())]
    Moved {
        /// The file.
        path: PathBuf,
        /// The file with its previous content, if it had any.
        kept: Option<PathBuf>,
    },
    /// The previous name is in use again.
    #[error("`{}` exists again", path.display())]
    Taken {
        /// The path with that name.
        path: PathBuf,
    },
    /// The saved previous content is damaged.
    #[error("the previous content of `{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file could not be written.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The history could not be read or written.
    #[error("cannot access the change history")]
    Io(#[from] io::Error),
}

/// The maximum size of a saved file.
pub(crate) const LARGEST: u64 = 64 * 1024 * 1024;
/// The maximum number of saved changes, and their maximum total size; the oldest are removed first.
const CHANGES: usize = 200;
const BYTES: u64 = 256 * 1024 * 1024;
/// The length of a change's ID.
const ID: usize = 8;
/// The maximum size of a file that describes a change.
const FACTS: u64 = 64 * 1024;

impl ChangeRecord {
    /// Returns its ID: a few characters that never change.
    pub fn id(&self) -> String {
        digest(self.time.to_be_bytes()).chars().take(ID).collect()
    }
}

impl ChangeHistory {
    /// Opens the history in a directory, which is created by the first change.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), group: None }
    }

    /// Groups all changes that are saved from now on.
    #[must_use]
    pub fn of_one_command(self) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let words = format!("{} {}", now.as_nanos(), process::id());
        Self { group: Some(digest(words.as_bytes()).chars().take(ID).collect()), ..self }
    }

    /// Returns the group of further changes.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Returns the changes that can be undone, the last one first.
    pub fn list(&self) -> io::Result<Vec<ChangeRecord>> {
        let mut records: Vec<ChangeRecord> =
            self.times()?.into_iter().filter_map(|it| self.read(it).ok()).collect();
        records.reverse();
        Ok(records)
    }

    /// Restores the previous content and mode of a file, or removes it if it was new, with the
    /// empty folders that were created for it. A file that has changed since is not touched.
    ///
    /// Returns the path of the saved content of a removed file, which may have been moved there
    /// from elsewhere.
    pub fn undo(&self, record: &ChangeRecord) -> Result<Option<PathBuf>, UndoError> {
        let path = &record.path;
        let kept = record.size.map(|_| self.content_path(record.time));
        let moved = || UndoError::Moved { path: path.clone(), kept: kept.clone() };
        let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(moved)?;
        // A link in the path could lead to a file that was not written here.
        if prowess::real_path(parent).ok().as_deref() != Some(parent) {
            return Err(moved());
        }
        let (root, name) = (Root::open(parent)?, Path::new(name));
        if let Some(before) = &record.renamed_from {
            if before.symlink_metadata().is_ok() {
                return Err(UndoError::Taken { path: before.clone() });
            }
            if path.symlink_metadata().is_err() {
                return Err(moved());
            }
            let before = before.file_name().and_then(OsStr::to_str).ok_or_else(moved)?;
            root.rename(name, before)?;
            self.forget(record.time);
            return Ok(None);
        }
        let mut removed = None;
        let is_undone = match &record.before {
            Some(before) => {
                let bytes = self.content(record.time)?;
                if digest(&bytes) != before.sha256 {
                    return Err(UndoError::Damaged { path: path.clone() });
                }
                let is_written = root.write_if(name, &bytes, |file| match file {
                    Some(file) => Ok(digest_of(file)? == record.after),
                    None => Ok(true),
                })?;
                if is_written {
                    set_mode(path, before.mode & 0o777)?;
                }
                is_written
            }
            None => match root.file(name, Links::Never) {
                Err(error) if error.is_missing() => true,
                file => {
                    let is_unchanged = digest_of(file?)? == record.after;
                    if is_unchanged {
                        removed =
                            Some(self.keep_removed(record.time, root.file(name, Links::Never)?)?);
                        fs::remove_file(path)?;
                    }
                    is_unchanged
                }
            },
        };
        if !is_undone {
            return Err(UndoError::Changed { path: path.clone(), kept });
        }
        if record.before.is_none() {
            let made = path.ancestors().skip(1).take(record.new_folders);
            // Stops at the first folder that is not empty.
            let _ = made.map(fs::remove_dir).find(Result::is_err);
        }
        self.forget(record.time);
        Ok(removed)
    }

    /// Saves the content of a file that is about to be removed, and removes the oldest of those.
    fn keep_removed(&self, time: u64, mut file: File) -> io::Result<PathBuf> {
        let _lock = lock_directory(&self.directory)?;
        self.check_owner()?;
        let kept = self.directory.join(format!("{time:020}.removed"));
        let mut options = OpenOptions::new();
        let mut copy = options.write(true).create_new(true).mode(0o600).open(&kept)?;
        io::copy(&mut file, &mut copy)?;
        copy.sync_all()?;
        let mut others: Vec<PathBuf> = fs::read_dir(&self.directory)?
            .filter_map(|it| Some(it.ok()?.path()))
            .filter(|it| it.extension().is_some_and(|it| it == "removed") && *it != kept)
            .collect();
        others.sort_unstable();
        for other in surplus(&others, fs::metadata(&kept)?.len(), PathBuf::clone) {
            let _ = fs::remove_file(other);
        }
        Ok(kept)
    }

    /// Whether a file is unchanged since a change, or gone, so that the change can be undone.
    pub fn can_undo(&self, record: &ChangeRecord) -> bool {
        let parent = record.path.parent();
        let is_moved = parent.and_then(|it| prowess::real_path(it).ok()).as_deref() != parent;
        match fs::symlink_metadata(&record.path) {
            _ if is_moved => false,
            there if let Some(before) = &record.renamed_from => {
                there.is_ok() && before.symlink_metadata().is_err()
            }
            Err(error) => error.kind() == io::ErrorKind::NotFound,
            Ok(it) if !it.is_file() => false,
            Ok(_) => {
                let digest = File::open(&record.path).and_then(digest_of);
                digest.is_ok_and(|it| it == record.after)
            }
        }
    }

    /// Saves the content and mode of a file before it is written, and returns the time of the
    /// record. The path is absolute, with links resolved. On failure, nothing is saved.
    pub fn keep(&self, path: &Path, before: Option<(&[u8], u32)>, after: &[u8]) -> io::Result<u64> {
        self.keep_with_folders(path, before, after, 0)
    }

    /// Saves that a file was created, like [`keep`](Self::keep), with the number of parent folders
    /// that were created for it.
    pub fn keep_new(&self, path: &Path, after: &[u8], new_folders: usize) -> io::Result<u64> {
        self.keep_with_folders(path, None, after, new_folders)
    }

    /// Does the same as [`keep`](Self::keep), with the number of parent folders that were created for the file.
    pub(crate) fn keep_with_folders(
        &self,
        path: &Path,
        before: Option<(&[u8], u32)>,
        after: &[u8],
        new_folders: usize,
    ) -> io::Result<u64> {
        let facts = Facts {
            when: timestamp(),
            path: path.to_owned(),
            after: digest(after),
            before: before.map(|(bytes, mode): (&[u8], u32)| Previous {
                size: bytes.len() as u64,
                sha256: digest(bytes),
                mode,
            }),
            group: self.group.clone(),
            renamed_from: None,
            new_folders,
        };
        self.add(&facts, before.map(|it| it.0))
    }

    /// Saves that a file or folder was renamed in its directory, like [`keep`](Self::keep).
    pub fn keep_rename(&self, from: &Path, to: &Path) -> io::Result<u64> {
        let facts = Facts {
            when: timestamp(),
            path: to.to_owned(),
            after: String::new(),
            before: None,
            group: self.group.clone(),
            renamed_from: Some(from.to_owned()),
            new_folders: 0,
        };
        self.add(&facts, None)
    }

    fn add(&self, facts: &Facts, content: Option<&[u8]>) -> io::Result<u64> {
        let _lock = lock_directory(&self.directory)?;
        self.check_owner()?;
        let times = self.times()?;
        let now_nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Times always increase, even if the clock was set back.
        let time = (now_nanos.as_nanos() as u64).max(times.last().map_or(0, |it| it + 1));
        let text = serde_json::to_vec_pretty(facts)?;
        let kept = content.map_or(Ok(()), |bytes| create(&self.content_path(time), bytes));
        if let Err(error) = kept.and_then(|()| create(&self.facts_path(time), &text)) {
            self.forget(time);
            return Err(error);
        }
        let size = content.map_or(0, |it| it.len() as u64);
        surplus(&times, size, |it| self.content_path(*it)).for_each(|it| self.forget(*it));
        Ok(time)
    }

    /// Removes a change from the history.
    pub fn forget(&self, time: u64) {
        for path in [self.facts_path(time), self.content_path(time)] {
            let _ = fs::remove_file(path);
        }
    }

    /// Returns the times of all changes, the oldest first.
    fn times(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        self.check_owner()?;
        let mut times: Vec<u64> = entries
            .filter_map(|entry: io::Result<fs::DirEntry>| {
                let name = entry.ok()?.file_name().into_string().ok()?;
                let digits = name.strip_suffix(".json").filter(|it| it.len() == 20)?;
                digits.parse().ok().filter(|it: &u64| *it < u64::MAX / 2)
            })
            .collect();
        times.sort_unstable();
        Ok(times)
    }

    /// Refuses a directory that others could have written to.
    fn check_owner(&self) -> io::Result<()> {
        if is_own(&fs::metadata(&self.directory)?, 0o022) {
            return Ok(());
        }
        let shown = self.directory.display();
        let why = format!("`{shown}` belongs to another user or is writable by others");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }

    fn read(&self, time: u64) -> io::Result<ChangeRecord> {
        let facts: Facts = serde_json::from_slice(&read(&self.facts_path(time), FACTS)?)?;
        let size = facts.before.as_ref().map(|it| it.size);
        let Facts { when, path, after, before, group, renamed_from, new_folders } = facts;
        Ok(ChangeRecord { time, when, path, size, group, renamed_from, after, before, new_folders })
    }

    fn content(&self, time: u64) -> io::Result<Vec<u8>> {
        read(&self.content_path(time), LARGEST)
    }

    fn facts_path(&self, time: u64) -> PathBuf {
        self.directory.join(format!("{time:020}.json"))
    }

    fn content_path(&self, time: u64) -> PathBuf {
        self.directory.join(format!("{time:020}.before"))
    }
}

/// Returns the oldest items, in order, that exceed the limits together with a new one.
fn surplus<T>(kept: &[T], new: u64, file: impl Fn(&T) -> PathBuf) -> impl Iterator<Item = &T> {
    let mut room = BYTES.saturating_sub(new);
    kept.iter().rev().enumerate().filter_map(move |(at, it)| {
        let size = fs::symlink_metadata(file(it)).map_or(0, |it| it.len());
        let is_surplus = at + 1 >= CHANGES || size > room;
        room -= if is_surplus { 0 } else { size };
        is_surplus.then_some(it)
    })
}

/// Reads one of our own files, up to a limit.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path)?;
    if !is_own(&file.metadata()?, 0o022) || !file.metadata()?.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Writes a new private file.
fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(0o600).custom_flags(NO_WAIT).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn digest_of(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(digest(&bytes))
}
