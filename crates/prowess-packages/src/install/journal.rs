//! The journal of a change, by which the next process takes back or finishes what a killed one
//! began, and the history of changes.
//!
//! Each change has a folder `packages/changes/<id>` in the state directory. The name of the file in
//! it says how far the change has come, and becomes the next by one rename:
//!
//! | file | on the disk | what the next process does |
//! |---|---|---|
//! | `journal.json` | drafts, under hidden names beside their targets | removes the drafts |
//! | `moves.json` | drafts are being moved to their names, and what was there to hidden names | moves everything back |
//! | `done.json` | everything is in place; what was there still has hidden names | moves that to the trash and the history |
//! | `record.json` | nothing is left to do | nothing: `undo` uses it |

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{
    disk::{Directory, Disk, EntryKind},
    plan::{EntryState, Fate},
    sys,
    tree::read_tree,
};

/// The folder of changes in the state directory.
const CHANGES: &str = "packages/changes";
/// The trash of removed skills, which it shares with stores: `<time>-<folder>` with the folder as
/// `skill`, and the directory that it was in as `origin`.
const TRASH: &str = "trash/skills";
const SKILL: &str = "skill";
const ORIGIN: &str = "origin";
/// What was replaced, in the folder of a change.
const OLD: &str = "old";
/// The ending of the draft of a file that is restored.
const BACK: &str = "-back";
/// The number of changes that can be undone.
const MAX_CHANGES: usize = 20;
/// From how many entries of the trash on the whole file system is synced at once.
const MANY: usize = 16;
/// The largest journal that is read.
const MAX_JOURNAL: u64 = 256 << 20;
/// The version of the format.
const VERSION: u32 = 1;

pub(super) const JOURNAL: &str = "journal.json";
pub(super) const MOVES: &str = "moves.json";
pub(super) const DONE: &str = "done.json";
pub(super) const RECORD: &str = "record.json";

/// What a change does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ChangeRecord {
    pub(super) version: u32,
    /// The time in nanoseconds, with which ids are made.
    pub(super) time: u64,
    /// The project or home.
    pub(super) root: PathBuf,
    /// What a person would call it.
    pub(super) title: String,
    /// The change that it undoes.
    pub(super) undoes: Option<String>,
    /// The directories that are created, each after the one that it is in.
    pub(super) made: Vec<PathBuf>,
    pub(super) moves: Vec<Move>,
    pub(super) files: Vec<FileMove>,
}

/// A folder or link that is put somewhere or taken away.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Move {
    pub(super) skill: String,
    pub(super) directory: PathBuf,
    pub(super) name: String,
    /// The hidden name of what is put there.
    pub(super) draft: Option<String>,
    /// The hidden name of what was there.
    pub(super) hold: Option<String>,
    pub(super) old: EntryState,
    pub(super) new: EntryState,
    pub(super) fate: Fate,
    /// Where what was there is kept afterwards.
    pub(super) saved: Option<PathBuf>,
}

/// A file that is written whole: the manifest or the lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FileMove {
    pub(super) directory: PathBuf,
    pub(super) name: String,
    pub(super) draft: String,
    #[serde(with = "bytes")]
    pub(super) before: Option<Vec<u8>>,
    #[serde(with = "bytes")]
    pub(super) after: Option<Vec<u8>>,
}

/// Bytes as text if they are, and else as numbers.
mod bytes {
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(untagged)]
    enum Bytes {
        Text(String),
        Numbers(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes = bytes.as_ref().map(|it| match str::from_utf8(it) {
            Ok(text) => Bytes::Text(text.to_owned()),
            Err(_) => Bytes::Numbers(it.clone()),
        });
        bytes.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        Ok(Option::<Bytes>::deserialize(deserializer)?.map(|it| match it {
            Bytes::Text(text) => text.into_bytes(),
            Bytes::Numbers(bytes) => bytes,
        }))
    }
}

/// A failed step, with the path that it was about.
pub(super) type StepResult<T> = Result<T, (PathBuf, io::Error)>;

/// Adds a path to the error of the system.
pub(super) trait AtPath<T> {
    fn at(self, path: impl Into<PathBuf>) -> StepResult<T>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, path: impl Into<PathBuf>) -> StepResult<T> {
        self.map_err(|error| (path.into(), error))
    }
}

/// The folder of a change.
#[derive(Debug, Clone)]
pub(super) struct ChangeFolder {
    pub(super) path: PathBuf,
    pub(super) id: String,
}

impl ChangeFolder {
    /// Returns all changes, the oldest first.
    pub(super) fn list(state: &Path) -> io::Result<Vec<Self>> {
        let folder = state.join(CHANGES);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let Ok(id) = entry?.file_name().into_string() else { continue };
            if parse_id(&id).is_some() {
                all.push(Self { path: folder.join(&id), id });
            }
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }

    /// Creates the folder of a new change, with a time later than all others.
    pub(super) fn create(disk: &Disk, state: &Path) -> io::Result<(Self, u64)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let now = u64::try_from(now).unwrap_or(u64::MAX / 4);
        let last = Self::list(state)?.last().and_then(|it| parse_id(&it.id)).unwrap_or(0);
        let trashed = last_in_trash(state);
        let time = now.max(last + 1).max(trashed + 1);
        let id = format!("{time:020}");
        let path = state.join(CHANGES).join(&id);
        disk.create_private_directory(&path)?;
        Ok((Self { path, id }, time))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.path.join(name).is_file()
    }

    pub(super) fn write(&self, disk: &Disk, name: &str, record: &ChangeRecord) -> StepResult<()> {
        let path = self.path.join(name);
        let bytes = serde_json::to_vec(record).map_err(io::Error::other).at(&path)?;
        disk.write(&path, &bytes).at(path)
    }

    /// Goes on to the next state.
    pub(super) fn advance(&self, disk: &Disk, from: &str, to: &str) -> StepResult<()> {
        let to = self.path.join(to);
        disk.rename(&self.path.join(from), &to).at(to)
    }

    pub(super) fn read(&self, name: &str) -> io::Result<ChangeRecord> {
        let file = sys::open_file(&self.path.join(name))?;
        let mut bytes = Vec::new();
        file.take(MAX_JOURNAL).read_to_end(&mut bytes)?;
        let record: ChangeRecord = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        if record.version != VERSION {
            return Err(io::Error::other("it was written by a newer version of this program"));
        }
        Ok(record)
    }

    /// Reads the record of a change that is not finished.
    pub(super) fn unfinished(&self) -> Option<io::Result<(&'static str, ChangeRecord)>> {
        if self.has(RECORD) {
            return None;
        }
        let state = [DONE, MOVES, JOURNAL].into_iter().find(|it| self.has(it))?;
        Some(self.read(state).map(|it| (state, it)))
    }

    pub(super) fn remove(&self, disk: &Disk) -> StepResult<()> {
        disk.remove_all(&self.path).at(&self.path)
    }
}

impl ChangeRecord {
    pub(super) fn new(time: u64, root: &Path, title: &str) -> Self {
        Self {
            version: VERSION,
            time,
            root: root.to_owned(),
            title: title.to_owned(),
            undoes: None,
            made: Vec::new(),
            moves: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Returns a hidden name that no other change has, and no store takes for its own.
    pub(super) fn hidden_name(&self, kind: char, number: usize) -> String {
        format!(".prowess-install-{:020}-{kind}{number}", self.time)
    }

    /// Returns where something is kept that is moved away.
    pub(super) fn saved_path(&self, folder: &ChangeFolder, state: &Path, number: usize) -> PathBuf {
        let own = &self.moves[number];
        match own.fate {
            Fate::History => folder.path.join(OLD).join(number.to_string()),
            Fate::Trash => {
                // Each has a time of its own, as the trash is sorted by them.
                let time = self.time + number as u64;
                state.join(TRASH).join(format!("{time:020}-{}", own.name)).join(SKILL)
            }
        }
    }
}

/// Returns the time of an id.
fn parse_id(id: &str) -> Option<u64> {
    let is_id = id.len() == 20 && id.bytes().all(|it| it.is_ascii_digit());
    id.parse().ok().filter(|it| is_id && *it < u64::MAX / 2)
}

fn last_in_trash(state: &Path) -> u64 {
    let entries = fs::read_dir(state.join(TRASH)).into_iter().flatten().flatten();
    let names = entries.filter_map(|it| it.file_name().into_string().ok());
    names.filter_map(|it| parse_id(it.get(..20)?)).max().unwrap_or(0)
}

/// Returns what is at a name now.
pub(super) fn look(directory: &Directory, name: &str) -> io::Result<Option<EntryState>> {
    Ok(match directory.kind(name)? {
        None => Some(EntryState::Absent),
        Some(EntryKind::Link(target)) => Some(EntryState::Link(target)),
        Some(EntryKind::Folder) => {
            Some(EntryState::Folder(read_tree(&directory.path().join(name))?.fingerprint()))
        }
        Some(EntryKind::File | EntryKind::Other) => None,
    })
}

/// Opens a directory, if it is still there.
fn reopen(disk: &Disk, path: &Path) -> StepResult<Option<Directory>> {
    match disk.open(path) {
        Err(error) if is_gone(&error) => Ok(None),
        opened => opened.map(Some).at(path),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Reads a file of a directory; `None` if there is none.
pub(super) fn read_file(directory: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let path = directory.join(name);
    let mut file = match sys::open_file(&path) {
        Err(error) if is_gone(&error) => return Ok(None),
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Takes a change back. It can be repeated, whatever the state that an earlier attempt has left.
pub(super) fn roll_back(
    disk: &Disk,
    folder: &ChangeFolder,
    state: &Path,
    record: &ChangeRecord,
) -> StepResult<()> {
    check_root(record)?;
    if folder.has(DONE) {
        // It is not certain that this is on the disk.
        folder.advance(disk, DONE, MOVES)?;
    }
    if folder.has(MOVES) {
        for file in record.files.iter().rev() {
            take_back_file(disk, file)?;
        }
        for (number, own) in record.moves.iter().enumerate().rev() {
            take_back(disk, state, record, number, own)?;
        }
        // From here on, drafts that are there were never moved or are back.
        folder.advance(disk, MOVES, JOURNAL)?;
    }
    for own in &record.moves {
        if let Some(draft) = &own.draft
            && reopen(disk, &own.directory)?.is_some()
        {
            let path = own.directory.join(draft);
            disk.remove_all(&path).at(path)?;
        }
    }
    for file in &record.files {
        remove_drafts(disk, file)?;
    }
    remove_made(disk, record)?;
    folder.remove(disk)
}

/// Fails if the project is gone: it may come back, with what its hidden names hold.
fn check_root(record: &ChangeRecord) -> StepResult<()> {
    fs::metadata(&record.root).map(drop).at(&record.root)
}

/// Removes the directories that a change created, as far as they are empty.
fn remove_made(disk: &Disk, record: &ChangeRecord) -> StepResult<()> {
    for made in record.made.iter().rev() {
        let (Some(parent), Some(name)) = (made.parent(), made.file_name()) else { continue };
        if let Ok(Some(parent)) = reopen(disk, parent) {
            match parent.remove_directory(disk, name) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) if is_gone(&error) => {}
                removed => removed.at(made)?,
            }
        }
    }
    Ok(())
}

fn take_back(
    disk: &Disk,
    state: &Path,
    record: &ChangeRecord,
    number: usize,
    own: &Move,
) -> StepResult<()> {
    let Some(directory) = reopen(disk, &own.directory)? else { return Ok(()) };
    let shown = own.directory.join(&own.name);
    let is_there = |name: &Option<String>| match name {
        Some(name) => directory.kind(name).map(|it| it.is_some()),
        None => Ok(false),
    };
    let is_held = is_there(&own.hold).at(&shown)?;
    let was_put = own.draft.is_some() && !is_there(&own.draft).at(&shown)?;
    let was_new = own.hold.is_none();
    let mut trash = (record.time + (record.moves.len() + number) as u64..)
        .map(|it| state.join(TRASH).join(format!("{it:020}-{}", own.name)))
        .filter(|it| !it.exists());
    let mut to_trash = |name: &str| {
        let entry = trash.next().expect("numbers do not end");
        put_in_trash(disk, &directory, name, &entry)
    };
    // The draft is gone, so what has the name is the draft, or what the user made of it. If
    // something was held and is not any more, it is back already.
    if was_put
        && (was_new || is_held)
        && directory.kind(&own.name).at(&shown)?.is_some()
        && let Some(draft) = &own.draft
    {
        if look(&directory, &own.name).at(&shown)?.as_ref() == Some(&own.new) {
            directory.rename(disk, &own.name, draft).at(&shown)?;
        } else {
            // The user changed it meanwhile, so it is kept.
            to_trash(&own.name)?;
        }
        disk.sync(&directory).at(&shown)?;
    }
    if is_held && let Some(hold) = &own.hold {
        match directory.kind(&own.name).at(&shown)? {
            None => directory.rename(disk, hold, &own.name).at(&shown)?,
            // The user put something else there, which stays.
            Some(_) if own.saved.is_some() => to_trash(hold)?,
            Some(_) => directory.remove_file(disk, hold).at(&shown)?,
        }
        disk.sync(&directory).at(&shown)?;
    }
    Ok(())
}

fn take_back_file(disk: &Disk, file: &FileMove) -> StepResult<()> {
    let Some(directory) = reopen(disk, &file.directory)? else { return Ok(()) };
    let shown = file.directory.join(&file.name);
    let now = read_file(&file.directory, &file.name).at(&shown)?;
    let draft = read_file(&file.directory, &file.draft).at(&shown)?;
    if now == file.after && draft.is_some() && draft != file.before && draft != file.after {
        // Somebody else wrote it in the moment in which it was replaced.
        directory.replace(disk, &file.draft, &file.name).at(&shown)?;
        return disk.sync(&directory).at(&shown);
    }
    // What somebody else wrote meanwhile stays.
    if now != file.after || file.before == file.after {
        return Ok(());
    }
    match &file.before {
        Some(_) if draft == file.before => {
            directory.replace(disk, &file.draft, &file.name).at(&shown)?;
        }
        Some(before) => {
            // Another name: an unfinished one must not look like what somebody wrote.
            let back = format!("{}{BACK}", file.draft);
            let path = file.directory.join(&back);
            disk.remove_all(&path).at(&path)?;
            write_beside(disk, &path, before, &shown).at(&shown)?;
            directory.replace(disk, &back, &file.name).at(&shown)?;
        }
        None => directory.remove_file(disk, &file.name).at(&shown)?,
    }
    disk.sync(&directory).at(&shown)
}

fn remove_drafts(disk: &Disk, file: &FileMove) -> StepResult<()> {
    for draft in [file.draft.clone(), format!("{}{BACK}", file.draft)] {
        let path = file.directory.join(draft);
        disk.remove_all(&path).at(path)?;
    }
    Ok(())
}

/// Writes a draft of a file, with the permissions that the file has.
pub(super) fn write_beside(disk: &Disk, draft: &Path, bytes: &[u8], file: &Path) -> io::Result<()> {
    let permissions = match fs::metadata(file) {
        Ok(metadata) => Some(metadata.permissions()),
        Err(_) => None,
    };
    disk.create_public_file(draft, bytes, permissions)
}

/// Moves something to an entry of the trash. It can be repeated.
pub(super) fn put_in_trash(
    disk: &Disk,
    directory: &Directory,
    name: &str,
    entry: &Path,
) -> StepResult<()> {
    move_to_trash(disk, directory, name, entry)?;
    sync_entry(disk, entry)
}

/// Moves something to an entry of the trash, which is not synced.
fn move_to_trash(disk: &Disk, directory: &Directory, name: &str, entry: &Path) -> StepResult<()> {
    disk.create_private_directory(entry).at(entry)?;
    let origin = entry.join(ORIGIN);
    disk.remove_all(&origin).at(&origin)?;
    disk.create_unsynced(&origin, &sys::path_bytes(directory.path())).at(origin)?;
    let (from, to) = (directory.path().join(name), entry.join(SKILL));
    disk.move_across(&from, &to).at(to)
}

fn sync_entry(disk: &Disk, entry: &Path) -> StepResult<()> {
    let origin = entry.join(ORIGIN);
    disk.sync_file(&origin).at(&origin)?;
    disk.sync_parent(&origin).at(entry)
}

/// Moves what was replaced or removed to where it is kept. It can be repeated.
pub(super) fn finish(
    disk: &Disk,
    folder: &ChangeFolder,
    state: &Path,
    record: &ChangeRecord,
) -> StepResult<()> {
    check_root(record)?;
    let (mut changed, mut entries) = (BTreeSet::new(), Vec::new());
    for own in &record.moves {
        let Some(hold) = &own.hold else { continue };
        let Some(directory) = reopen(disk, &own.directory)? else { continue };
        let shown = own.directory.join(hold);
        match (directory.kind(hold).at(&shown)?, &own.saved) {
            (Some(EntryKind::Link(_)), _) => directory.remove_file(disk, hold).at(shown)?,
            (None, _) | (_, None) => {}
            (Some(_), Some(saved)) if own.fate == Fate::Trash => {
                let entry = saved.parent().unwrap_or(saved);
                move_to_trash(disk, &directory, hold, entry)?;
                entries.push(entry);
            }
            (Some(_), Some(saved)) => {
                let parent = saved.parent().unwrap_or(saved);
                disk.create_private_directory(parent).at(parent)?;
                disk.move_across(&shown, saved).at(saved)?;
                changed.insert(saved.clone());
            }
        }
        changed.insert(own.directory.join(hold));
    }
    let is_synced = entries.len() > MANY && disk.sync_file_system(state).at(state)?;
    for entry in entries.iter().filter(|_| !is_synced) {
        sync_entry(disk, entry)?;
    }
    let parents: BTreeSet<&Path> = changed.iter().filter_map(|it| it.parent()).collect();
    for parent in parents {
        // Any name in it stands for it.
        disk.sync_parent(&parent.join(RECORD)).at(parent)?;
    }
    for file in &record.files {
        remove_drafts(disk, file)?;
    }
    match &record.undoes {
        // An undone change and its undoing are both gone.
        Some(undone) => {
            let undone = folder.path.with_file_name(undone);
            if let Ok(record) =
                (ChangeFolder { path: undone.clone(), id: String::new() }).read(RECORD)
            {
                discard_restored(disk, state, &record)?;
                remove_made(disk, &record)?;
            }
            disk.remove_all(&undone).at(undone)?;
            folder.remove(disk)
        }
        None => {
            folder.advance(disk, DONE, RECORD)?;
            trim(disk, state)
        }
    }
}

/// Removes entries of the trash that were copied back.
fn discard_restored(disk: &Disk, state: &Path, record: &ChangeRecord) -> StepResult<()> {
    let trash = state.join(TRASH);
    for own in record.moves.iter().filter(|it| it.fate == Fate::Trash) {
        if let Some(entry) = own.saved.as_deref().and_then(Path::parent)
            && entry.starts_with(&trash)
        {
            disk.remove_all(entry).at(entry)?;
        }
    }
    Ok(())
}

/// Removes the oldest changes from the history. What is in the trash stays there.
fn trim(disk: &Disk, state: &Path) -> StepResult<()> {
    let mut finished = ChangeFolder::list(state).at(state)?;
    finished.retain(|it| it.has(RECORD));
    for old in finished.iter().rev().skip(MAX_CHANGES) {
        old.remove(disk)?;
    }
    Ok(())
}
