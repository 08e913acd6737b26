//! What was deleted, and can be brought back: `<store>/.trash/<time>-<folder>`.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    DOCUMENT, Now, StoreError,
    disk::{self, Locked, failed, unusable},
    document,
    file::{is_folder_name, read},
};
use crate::root::{Links, Root};

const TRASH: &str = ".trash";
/// How many deleted skills are kept; the oldest go for good when others come.
const MAX_KEPT: usize = 50;

/// Something in the trash.
pub(super) struct Thrown {
    /// The trash.
    pub(super) root: Root,
    /// What it is called there.
    pub(super) name: String,
    /// What its folder was called.
    pub(super) folder: String,
    /// What the skill is called, if it can be read.
    pub(super) called: Option<String>,
}

/// Moves a folder, or a link, to the trash.
pub(super) fn put(locked: &Locked<'_>, folder: &OsStr) -> Result<(), StoreError> {
    let shown = locked.root.path().join(TRASH);
    let trash =
        locked.root.make_directory(Path::new(TRASH)).map_err(|error| unusable(&shown, error))?;
    let kept = kept(&trash)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    // Later is later, also when the clock was set back.
    let last = kept.last().and_then(|it| parts(it)).map_or(0, |it| it.0);
    let name = format!("{:020}-{}", now.max(last + 1), folder.to_string_lossy());
    locked.rename((&locked.root, folder), (&trash, &name))?;
    for old in kept.iter().rev().skip(MAX_KEPT - 1) {
        // The skill is in the trash, whether there is now too much in it or not.
        let _ = locked.discard(&trash, old);
    }
    Ok(())
}

/// Finds what was deleted last, or the last of a name.
pub(super) fn latest(locked: &Locked<'_>, name: Option<&str>) -> Result<Thrown, StoreError> {
    let nothing = || StoreError::NothingToUndo { name: name.map(str::to_owned) };
    let shown = locked.root.path().join(TRASH);
    let root = match locked.root.directory(Path::new(TRASH), Links::Never) {
        Err(error) if error.is_missing() => return Err(nothing()),
        opened => opened.map_err(|error| unusable(&shown, error))?,
    };
    for thrown in kept(&root)?.into_iter().rev() {
        let folder = parts(&thrown).map_or("", |it| it.1).to_owned();
        let called = called(&root, &thrown);
        if name.is_none_or(|name| folder == name || called.as_deref() == Some(name)) {
            return Ok(Thrown { root, name: thrown, folder, called });
        }
    }
    Err(nothing())
}

/// What was deleted from a store, the last one first: each with the time and the name.
pub(super) fn removed(store: &Path) -> Result<Vec<(u64, String)>, StoreError> {
    let shown = store.join(TRASH);
    let opened = Root::open(store).and_then(|it| it.directory(Path::new(TRASH), Links::Never));
    let trash = match opened {
        Err(error) if error.is_missing() => return Ok(Vec::new()),
        opened => opened.map_err(|error| unusable(&shown, error))?,
    };
    let entry = |thrown: String| {
        let (time, folder) = parts(&thrown)?;
        Some((time, called(&trash, &thrown).unwrap_or_else(|| folder.to_owned())))
    };
    Ok(kept(&trash)?.into_iter().rev().filter_map(entry).collect())
}

/// The names of the skills in the trash, each once.
pub(super) fn names(trash: &Root) -> Result<BTreeSet<String>, StoreError> {
    let name = |it: &String| called(trash, it).or_else(|| Some(parts(it)?.1.to_owned()));
    Ok(kept(trash)?.iter().filter_map(name).collect())
}

/// What is in the trash, the oldest first; what others have put there is not ours.
fn kept(trash: &Root) -> Result<Vec<String>, StoreError> {
    let names = disk::names(trash.as_fd())
        .map_err(|errno| failed(trash.path(), Now::Unchanged, errno.into()))?;
    let names = names.into_iter().filter_map(|it| it.into_string().ok());
    Ok(names.filter(|it| parts(it).is_some()).collect())
}

/// When something was deleted, in nanoseconds, and what its folder was called.
fn parts(name: &str) -> Option<(u64, &str)> {
    let (time, folder) = name.split_once('-').filter(|it| it.0.len() == 20)?;
    // Nothing was deleted in times to come, after which nothing could be deleted any more.
    let time = time.parse().ok().filter(|it| *it < u64::MAX / 2)?;
    is_folder_name(folder).then_some((time, folder))
}

fn called(trash: &Root, thrown: &str) -> Option<String> {
    let bytes = read(trash, &Path::new(thrown).join(DOCUMENT)).ok()?;
    let entry = document::entry(&bytes, Path::new("")).ok()?;
    Some(entry.manifest.name.into_string())
}
