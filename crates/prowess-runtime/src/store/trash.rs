//! Deleted skills, which can be restored.
//!
//! If the host provides a directory, they are in `<state>/trash/skills/<time>-<folder>`: `skill` is
//! the deleted folder, and `origin` has the path of its store. Otherwise they are in
//! `<store>/.trash/<time>-<folder>`, as in earlier versions.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use prowess::spec::SKILL_FILE;
use prowess_sandbox::{Links, Root};

use super::{
    StateAfter, StoreError,
    disk::{LockedDirectory, open_error, write_error},
    document,
    file::{is_folder_name, read_document},
};
use crate::sys::{DirBuilderExt as _, OsStrExt as _, OsStringExt as _, is_other_device, symlink};

const TRASH: &str = ".trash";
/// The maximum number of deleted skills; the oldest are deleted permanently.
const MAX_DELETED: usize = 50;

/// The host's folder for the trash of all its stores.
const STATE_TRASH: &str = "trash/skills";
/// The names of the files in each entry.
const SKILL: &str = "skill";
const ORIGIN: &str = "origin";

/// A deleted skill.
pub(super) struct DeletedSkill {
    /// The folder that contains it.
    pub(super) root: Root,
    /// The folder of the trash to remove with it.
    entry: Option<PathBuf>,
    /// Its name in that folder.
    pub(super) name: String,
    /// The original name of its folder.
    pub(super) folder: String,
    /// The name of the skill, if it can be read.
    pub(super) skill_name: Option<String>,
}

/// Moves a folder or a link to the trash: the host's, if there is one.
pub(super) fn put(
    locked: &LockedDirectory<'_>,
    state: Option<&Path>,
    folder: &OsStr,
) -> Result<(), StoreError> {
    match state {
        Some(state) => put_in_state(locked, &state.join(STATE_TRASH), folder),
        None => put_in_store(locked, folder),
    }
}

fn put_in_store(locked: &LockedDirectory<'_>, folder: &OsStr) -> Result<(), StoreError> {
    let shown = locked.root.path().join(TRASH);
    let trash =
        locked.root.make_directory(Path::new(TRASH)).map_err(|error| open_error(&shown, error))?;
    let existing = list_entries(&trash)?;
    let name = entry_name(&existing, folder);
    locked.rename((&locked.root, folder), (&trash, &name))?;
    for old in existing.iter().rev().skip(MAX_DELETED - 1) {
        // The skill is in the trash already; exceeding the limit is harmless.
        let _ = locked.discard(&trash, old);
    }
    Ok(())
}

fn put_in_state(
    locked: &LockedDirectory<'_>,
    trash: &Path,
    folder: &OsStr,
) -> Result<(), StoreError> {
    let store = locked.root.path();
    let unable = |source| StoreError::NoTrash { path: trash.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(trash).map_err(unable)?;
    let root = Root::open(trash).map_err(|error| open_error(trash, error))?;
    let existing = list_entries(&root)?;
    let entry = root.path().join(entry_name(&existing, folder));
    fs::DirBuilder::new().mode(0o700).create(&entry).map_err(unable)?;
    let moved = fs::write(entry.join(ORIGIN), store.as_os_str().as_bytes())
        .map_err(unable)
        .and_then(|()| move_across(locked, (&locked.root, folder), &entry, SKILL));
    if let Err(error) = moved {
        // It only contains the files created here: the skill was not moved.
        let _ = fs::remove_file(entry.join(ORIGIN));
        let _ = fs::remove_dir(&entry);
        return Err(error);
    }
    let own = existing.iter().rev().filter(|it| origin(&root, it).as_deref() == Some(store));
    for old in own.skip(MAX_DELETED - 1) {
        let _ = fs::remove_dir_all(root.path().join(old));
    }
    Ok(())
}

/// Moves an entry to another directory, even on another disk: it is deleted here once the copy is
/// complete.
fn move_across(
    locked: &LockedDirectory<'_>,
    (from, old): (&Root, &OsStr),
    to: &Path,
    new: &str,
) -> Result<(), StoreError> {
    let target = Root::open(to).map_err(|error| open_error(to, error))?;
    match locked.rename((from, old), (&target, new)) {
        Err(StoreError::Write { source, .. }) if is_other_device(&source) => {
            let (here, there) = (from.path().join(old), to.join(new));
            if let Err(source) = copy(&here, &there) {
                let _ = remove_any(&there);
                return Err(write_error(&there, StateAfter::Unchanged, source));
            }
            remove_any(&here).map_err(|source| write_error(&here, StateAfter::Unsafe, source))
        }
        moved => moved,
    }
}

/// Copies a file, a link or a folder with all its contents, and syncs it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if metadata.is_file() {
        fs::copy(from, to)?;
        return fs::File::open(to)?.sync_all();
    }
    if !metadata.is_dir() {
        return Err(io::Error::other("it contains something other than files, folders and links"));
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    fs::set_permissions(to, metadata.permissions())?;
    fs::File::open(to)?.sync_all()
}

fn remove_any(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Returns a name for the trash that sorts after all others, even if the clock was set back.
fn entry_name(existing: &[String], folder: &OsStr) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let last = existing.last().and_then(|it| parse_entry_name(it)).map_or(0, |it| it.0);
    format!("{:020}-{}", now.max(last + 1), folder.to_string_lossy())
}

/// Finds the skill that was deleted last from a store, or the last of a name.
pub(super) fn find_latest(
    locked: &LockedDirectory<'_>,
    state: Option<&Path>,
    name: Option<&str>,
) -> Result<DeletedSkill, StoreError> {
    let store = locked.root.path();
    let outside = state.and_then(|it| Root::open(&it.join(STATE_TRASH)).ok());
    if let Some(trash) = outside
        && let Some((entry, folder, skill_name)) = find_newest(&trash, name, |it| it == store)
    {
        let entry = trash.path().join(entry);
        let root = Root::open(&entry).map_err(|error| open_error(&entry, error))?;
        return Ok(DeletedSkill {
            root,
            entry: Some(entry),
            name: SKILL.to_owned(),
            folder,
            skill_name,
        });
    }
    let nothing = || StoreError::NothingToUndo { name: name.map(str::to_owned) };
    let shown = store.join(TRASH);
    let root = match locked.root.directory(Path::new(TRASH), Links::Never) {
        Err(error) if error.is_missing() => return Err(nothing()),
        opened => opened.map_err(|error| open_error(&shown, error))?,
    };
    for deleted in list_entries(&root)?.into_iter().rev() {
        let folder = parse_entry_name(&deleted).map_or("", |it| it.1).to_owned();
        let skill_name = read_skill_name(&root, Path::new(&deleted));
        if name.is_none_or(|name| folder == name || skill_name.as_deref() == Some(name)) {
            return Ok(DeletedSkill { root, entry: None, name: deleted, folder, skill_name });
        }
    }
    Err(nothing())
}

/// Returns the skills deleted from a store, the last one first: each with the time and the name.
pub(super) fn list_deleted(
    store: &Path,
    state: Option<&Path>,
) -> Result<Vec<(u64, String)>, StoreError> {
    let mut deleted = Vec::new();
    if let Some(trash) = state.and_then(|it| Root::open(&it.join(STATE_TRASH)).ok()) {
        let store = prowess::real_path(store).unwrap_or_else(|_| store.to_owned());
        for entry in list_entries(&trash)?
            .into_iter()
            .filter(|it| origin(&trash, it).as_ref() == Some(&store))
        {
            let Some((time, folder)) = parse_entry_name(&entry) else { continue };
            let skill_name = read_skill_name(&trash, &Path::new(&entry).join(SKILL));
            deleted.push((time, skill_name.unwrap_or_else(|| folder.to_owned())));
        }
    }
    let shown = store.join(TRASH);
    let opened = Root::open(store).and_then(|it| it.directory(Path::new(TRASH), Links::Never));
    match opened {
        Err(error) if error.is_missing() => {}
        opened => {
            let trash = opened.map_err(|error| open_error(&shown, error))?;
            for entry in list_entries(&trash)? {
                let Some((time, folder)) = parse_entry_name(&entry) else { continue };
                let skill_name = read_skill_name(&trash, Path::new(&entry));
                deleted.push((time, skill_name.unwrap_or_else(|| folder.to_owned())));
            }
        }
    }
    deleted.sort_by_key(|it| std::cmp::Reverse(it.0));
    Ok(deleted)
}

/// Returns the store from which a skill was deleted last, or the last of a name, among the accepted
/// stores with their trash here.
pub fn deleted_from(
    state: &Path,
    name: Option<&str>,
    is_wanted: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let trash = Root::open(&state.join(STATE_TRASH)).ok()?;
    let (entry, ..) = find_newest(&trash, name, is_wanted)?;
    origin(&trash, &entry)
}

/// Finds the newest match in the host's trash: its entry, its folder and its name.
fn find_newest(
    trash: &Root,
    name: Option<&str>,
    is_store: impl Fn(&Path) -> bool,
) -> Option<(String, String, Option<String>)> {
    list_entries(trash).ok()?.into_iter().rev().find_map(|entry| {
        origin(trash, &entry).filter(|it| is_store(it))?;
        let folder = parse_entry_name(&entry)?.1.to_owned();
        let skill_name = read_skill_name(trash, &Path::new(&entry).join(SKILL));
        let is_it = name.is_none_or(|name| folder == name || skill_name.as_deref() == Some(name));
        is_it.then_some((entry, folder, skill_name))
    })
}

/// Returns the store that an entry came from; `None` if the entry is incomplete.
fn origin(trash: &Root, entry: &str) -> Option<PathBuf> {
    let entry = trash.path().join(entry);
    fs::symlink_metadata(entry.join(SKILL)).ok()?;
    let bytes = fs::read(entry.join(ORIGIN)).ok()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

impl DeletedSkill {
    /// Moves it back to its original folder.
    pub(super) fn restore(&self, locked: &LockedDirectory<'_>) -> Result<(), StoreError> {
        let Some(entry) = &self.entry else {
            return locked.rename((&self.root, &self.name), (&locked.root, &self.folder));
        };
        let from = (&self.root, OsStr::new(&self.name));
        move_across(locked, from, locked.root.path(), &self.folder)?;
        let _ = fs::remove_dir_all(entry);
        Ok(())
    }

    /// Returns the names of the skills deleted from the same store, each once.
    pub(super) fn others(&self, store: &Path) -> BTreeSet<String> {
        let Some(trash) = self.entry.as_deref().and_then(Path::parent) else {
            return list_names(&self.root).unwrap_or_default();
        };
        let Ok(trash) = Root::open(trash) else { return BTreeSet::new() };
        let existing = list_entries(&trash)
            .unwrap_or_default()
            .into_iter()
            .filter(|it: &String| origin(&trash, it).is_some_and(|it| it == store));
        existing
            .filter_map(|it: String| {
                let skill_name = read_skill_name(&trash, &Path::new(&it).join(SKILL));
                skill_name.or_else(|| Some(parse_entry_name(&it)?.1.to_owned()))
            })
            .collect()
    }
}

/// Returns the names of the skills in the trash, each once.
fn list_names(trash: &Root) -> Result<BTreeSet<String>, StoreError> {
    Ok(list_entries(trash)?
        .iter()
        .filter_map(|it: &String| {
            read_skill_name(trash, Path::new(it))
                .or_else(|| Some(parse_entry_name(it)?.1.to_owned()))
        })
        .collect())
}

/// Lists the trash, the oldest first; foreign files are ignored.
fn list_entries(trash: &Root) -> Result<Vec<String>, StoreError> {
    let names =
        trash.names().map_err(|error| write_error(trash.path(), StateAfter::Unchanged, error))?;
    let names = names.into_iter().filter_map(|it| it.into_string().ok());
    Ok(names.filter(|it| parse_entry_name(it).is_some()).collect())
}

/// Returns the time of the deletion in nanoseconds, and the original name of the folder.
fn parse_entry_name(name: &str) -> Option<(u64, &str)> {
    let (time, folder) = name.split_once('-').filter(|it| it.0.len() == 20)?;
    // A time in the far future would make every later deletion fail.
    let time = time.parse().ok().filter(|it| *it < u64::MAX / 2)?;
    is_folder_name(folder).then_some((time, folder))
}

fn read_skill_name(trash: &Root, deleted: &Path) -> Option<String> {
    let bytes = read_document(trash, &deleted.join(SKILL_FILE)).ok()?;
    let entry = document::parse_record(&bytes, Path::new("")).ok()?;
    Some(entry.manifest.name.into_string())
}
