//! The files that tools wrote, with what they held before, so that a write can be undone.
//!
//! Everything is in one directory of the host, readable by its owner alone: for each change one JSON
//! file, and one with the previous content where there was any.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use prowess_sandbox::{Links, Root, RootError};
use serde::{Deserialize, Serialize};

use crate::{
    content::digest,
    state_directory::{NO_WAIT, is_own, lock_directory},
    timestamp::timestamp,
};

/// The files that tools wrote, with what they held before. Making one touches nothing.
#[derive(Debug, Clone)]
pub struct ChangeHistory {
    directory: PathBuf,
    /// What the changes have in common that are kept from now on.
    group: Option<String>,
}

/// One file that a tool wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRecord {
    /// When it was written, in nanoseconds since 1970; no two changes have the same.
    pub time: u64,
    /// The same as text, such as `2026-11-15T09:30:00Z`.
    pub when: String,
    /// The file.
    pub path: PathBuf,
    /// How many bytes it held before; nothing if it is new.
    pub size: Option<u64>,
    /// What it has in common with the other changes of one command; nothing where it stands alone.
    pub group: Option<String>,
    /// What it was called before, of a file or folder that was renamed and not written.
    pub renamed_from: Option<PathBuf>,
    /// The SHA-256 of what was written.
    after: String,
    before: Option<Previous>,
    new_folders: usize,
}

/// What is stored about a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    when: String,
    path: PathBuf,
    /// The SHA-256 of what was written.
    after: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Previous>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renamed_from: Option<PathBuf>,
    /// How many folders were made for it, counted from its own one upwards.
    #[serde(default)]
    new_folders: usize,
}

/// What the file held before.
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
    /// Somebody has changed the file since.
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
    /// Something else has the previous name by now.
    #[error("`{}` exists again", path.display())]
    Taken {
        /// What has the name.
        path: PathBuf,
    },
    /// The previous content is not what was kept.
    #[error("the previous content of `{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file could not be written.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The history could not be read or written.
    #[error("cannot use the history of changes")]
    Io(#[from] io::Error),
}

/// The largest file whose content is kept.
pub(crate) const LARGEST: u64 = 64 * 1024 * 1024;
/// How many changes are kept, and how many bytes of them; the oldest go first.
const CHANGES: usize = 200;
const BYTES: u64 = 256 * 1024 * 1024;
/// How many characters a change is called by.
const ID: usize = 8;
/// The largest file that describes a change.
const FACTS: u64 = 64 * 1024;

impl ChangeRecord {
    /// What it is called where it is listed: a few characters, the same as long as it is kept.
    pub fn id(&self) -> String {
        digest(&self.time.to_be_bytes()).chars().take(ID).collect()
    }
}

impl ChangeHistory {
    /// A history in a directory, which is made when there is something to keep.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), group: None }
    }

    /// The same history, in which all that is kept by this one belongs together.
    #[must_use]
    pub fn of_one_command(self) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let words = format!("{} {}", now.as_nanos(), process::id());
        Self { group: Some(digest(words.as_bytes()).chars().take(ID).collect()), ..self }
    }

    /// What the changes have in common that are kept by this one.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// The changes that can be undone, the last one first.
    pub fn list(&self) -> io::Result<Vec<ChangeRecord>> {
        let mut records: Vec<ChangeRecord> =
            self.times()?.into_iter().filter_map(|it| self.read(it).ok()).collect();
        records.reverse();
        Ok(records)
    }

    /// Restores what a file held before a change, and its mode, or removes it if it was new, with the
    /// folders that were made for it and are empty. A file that has changed since then is left alone.
    ///
    /// Returns where the content of a removed file is kept: it may have been moved there from another place.
    pub fn undo(&self, record: &ChangeRecord) -> Result<Option<PathBuf>, UndoError> {
        let path = &record.path;
        let kept = record.size.map(|_| self.content_path(record.time));
        let moved = || UndoError::Moved { path: path.clone(), kept: kept.clone() };
        let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(moved)?;
        // A link on the way could lead to a file that nobody wrote here.
        if fs::canonicalize(parent).ok().as_deref() != Some(parent) {
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
        let is_ours = |file: File| Ok::<_, io::Error>(digest_of(file)? == record.after);
        let is_undone = match &record.before {
            Some(before) => {
                let bytes = self.content(record.time)?;
                if digest(&bytes) != before.sha256 {
                    return Err(UndoError::Damaged { path: path.clone() });
                }
                let is_written = root.write_if(name, &bytes, |file| match file {
                    Some(file) => is_ours(file),
                    None => Ok(true),
                })?;
                if is_written {
                    fs::set_permissions(path, fs::Permissions::from_mode(before.mode & 0o777))?;
                }
                is_written
            }
            None => match root.file(name, Links::Never) {
                Err(error) if error.is_missing() => true,
                file => {
                    let is_ours = is_ours(file?)?;
                    if is_ours {
                        removed =
                            Some(self.keep_removed(record.time, root.file(name, Links::Never)?)?);
                        fs::remove_file(path)?;
                    }
                    is_ours
                }
            },
        };
        if !is_undone {
            return Err(UndoError::Changed { path: path.clone(), kept });
        }
        if record.before.is_none() {
            let made = path.ancestors().skip(1).take(record.new_folders);
            // The first that is not empty ends it.
            let _ = made.map(fs::remove_dir).find(Result::is_err);
        }
        self.forget(record.time);
        Ok(removed)
    }

    /// Keeps the content of a file that is about to be removed, and lets the oldest of those go.
    fn keep_removed(&self, time: u64, mut file: File) -> io::Result<PathBuf> {
        let _lock = lock_directory(&self.directory)?;
        self.own()?;
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
        for other in too_much(&others, fs::metadata(&kept)?.len(), PathBuf::clone) {
            let _ = fs::remove_file(other);
        }
        Ok(kept)
    }

    /// Whether a file still is as it was after a change, or is gone, so that the change can be undone.
    pub fn can_undo(&self, record: &ChangeRecord) -> bool {
        let parent = record.path.parent();
        let is_moved = parent.and_then(|it| fs::canonicalize(it).ok()).as_deref() != parent;
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

    /// Keeps what a file holds before it is written, with its mode, and says by which time it is found. The path is
    /// absolute and without links. Nothing of it is there when that fails.
    pub fn keep(&self, path: &Path, before: Option<(&[u8], u32)>, after: &[u8]) -> io::Result<u64> {
        self.keep_with_folders(path, before, after, 0)
    }

    /// Keeps the same with how many folders were made for the file, counted from its own one upwards.
    pub(crate) fn keep_with_folders(
        &self,
        path: &Path,
        before: Option<(&[u8], u32)>,
        after: &[u8],
        new_folders: usize,
    ) -> io::Result<u64> {
        let previous = |(bytes, mode): (&[u8], u32)| Previous {
            size: bytes.len() as u64,
            sha256: digest(bytes),
            mode,
        };
        let facts = Facts {
            when: timestamp(),
            path: path.to_owned(),
            after: digest(after),
            before: before.map(previous),
            group: self.group.clone(),
            renamed_from: None,
            new_folders,
        };
        self.add(&facts, before.map(|it| it.0))
    }

    /// Keeps that a file or folder was renamed beside itself, as [`keep`](Self::keep) does.
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
        self.own()?;
        let times = self.times()?;
        let now_nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Later is later, also when the clock was set back.
        let time = (now_nanos.as_nanos() as u64).max(times.last().map_or(0, |it| it + 1));
        let text = serde_json::to_vec_pretty(facts)?;
        let kept = content.map_or(Ok(()), |bytes| create(&self.content_path(time), bytes));
        if let Err(error) = kept.and_then(|()| create(&self.facts_path(time), &text)) {
            self.forget(time);
            return Err(error);
        }
        let size = content.map_or(0, |it| it.len() as u64);
        too_much(&times, size, |it| self.content_path(*it)).for_each(|it| self.forget(*it));
        Ok(time)
    }

    /// Keeps a change no longer.
    pub fn forget(&self, time: u64) {
        for path in [self.facts_path(time), self.content_path(time)] {
            let _ = fs::remove_file(path);
        }
    }

    /// The times of all changes, the oldest first.
    fn times(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        self.own()?;
        let time = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let digits = name.strip_suffix(".json").filter(|it| it.len() == 20)?;
            digits.parse().ok().filter(|it: &u64| *it < u64::MAX / 2)
        };
        let mut times: Vec<u64> = entries.filter_map(time).collect();
        times.sort_unstable();
        Ok(times)
    }

    /// Refuses a directory that somebody else could have filled.
    fn own(&self) -> io::Result<()> {
        if is_own(&fs::metadata(&self.directory)?, 0o022) {
            return Ok(());
        }
        let shown = self.directory.display();
        let why = format!("`{shown}` belongs to another user or can be written by others");
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

/// The oldest of what is kept, the oldest first, that are too many or too large beside a new one.
fn too_much<T>(kept: &[T], new: u64, file: impl Fn(&T) -> PathBuf) -> impl Iterator<Item = &T> {
    let mut room = BYTES.saturating_sub(new);
    kept.iter().rev().enumerate().filter_map(move |(at, it)| {
        let size = fs::symlink_metadata(file(it)).map_or(0, |it| it.len());
        let is_too_much = at + 1 >= CHANGES || size > room;
        room -= if is_too_much { 0 } else { size };
        is_too_much.then_some(it)
    })
}

/// Reads a file of ours, no more of it than this.
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

/// Writes a new file that its owner alone can read.
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
