//! The changes that can be undone.

use std::path::{Path, PathBuf};

use prowess::real_path;

use super::{
    disk::Disk,
    error::InstallError,
    installer::{FileReplacement, Installer},
    journal::{ChangeFolder, ChangeRecord, RECORD, look, read_file},
    place::{InstallPlace, Location},
    plan::{Content, EntryState, Fate, PlannedMove},
};

/// A change that was made, and can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstalledChange {
    /// The id by which it is undone.
    pub id: String,
    /// When it was made, in nanoseconds since 1970.
    pub time: u64,
    /// What a person would call it.
    pub title: String,
    /// The skills that it installed, changed or removed, each once.
    pub skills: Vec<String>,
    /// The folders and files that it changed.
    pub paths: Vec<PathBuf>,
}

/// Returns the changes of a place, the last one first. It can be read while others install.
pub fn install_history(place: &InstallPlace) -> Result<Vec<InstalledChange>, InstallError> {
    list(place)
}

pub(super) fn list(place: &InstallPlace) -> Result<Vec<InstalledChange>, InstallError> {
    let unread = |it| InstallError::unchanged("read", place.state.clone(), it);
    let root = real_path(&place.root).map_err(unread)?;
    let mut all = Vec::new();
    for folder in ChangeFolder::list(&place.state).map_err(unread)?.into_iter().rev() {
        // One that cannot be read cannot be undone.
        if let Ok(record) = folder.read(RECORD)
            && record.root == root
        {
            all.push(change(&folder, &record));
        }
    }
    Ok(all)
}

fn change(folder: &ChangeFolder, record: &ChangeRecord) -> InstalledChange {
    let mut skills: Vec<String> = record.moves.iter().map(|it| it.skill.clone()).collect();
    skills.sort();
    skills.dedup();
    let moves = record.moves.iter().map(|it| it.directory.join(&it.name));
    let files = record.files.iter().map(|it| it.directory.join(&it.name));
    InstalledChange {
        id: folder.id.clone(),
        time: record.time,
        title: record.title.clone(),
        skills,
        paths: moves.chain(files).collect(),
    }
}

/// Plans the opposite of a change.
pub(super) fn reverse(
    installer: &Installer,
    id: &str,
) -> Result<(InstalledChange, Vec<PlannedMove>, Vec<FileReplacement>), InstallError> {
    let place = &installer.place;
    let missing = || InstallError::NoSuchChange { id: id.to_owned() };
    let unread = |it| InstallError::unchanged("read", place.state.clone(), it);
    let root = real_path(&place.root).map_err(unread)?;
    let mut folders = ChangeFolder::list(&place.state).map_err(unread)?.into_iter();
    let folder = folders.find(|it| it.id == id && it.has(RECORD)).ok_or_else(missing)?;
    let record = folder.read(RECORD).map_err(unread)?;
    if record.root != root {
        return Err(missing());
    }
    let mut moves = Vec::new();
    for own in &record.moves {
        let path = own.directory.join(&own.name);
        if seen(&own.directory, &own.name)? != Some(own.new.clone()) {
            return Err(InstallError::ChangedSince { path });
        }
        let new = match &own.old {
            EntryState::Absent => Content::Nothing,
            EntryState::Link(target) => Content::Link(target.clone(), Box::new(Content::Nothing)),
            EntryState::Folder(fingerprint) => {
                let saved = own.saved.clone().filter(|it| it.is_dir());
                let saved = saved.ok_or(InstallError::NotKept { path: path.clone() })?;
                Content::Copy(saved, fingerprint.clone())
            }
        };
        let (directory, name) = (own.directory.clone(), own.name.clone());
        let location = Location { directory, name, shown: path.to_string_lossy().into_owned() };
        // What goes away may be all that is left of it.
        moves.push(PlannedMove { step: 0, location, old: own.new.clone(), new, fate: Fate::Trash });
    }
    let mut files = Vec::new();
    for file in &record.files {
        let path = file.directory.join(&file.name);
        let now = read_file(&file.directory, &file.name)
            .map_err(|it| InstallError::unchanged("read", path.clone(), it))?;
        if now != file.after {
            return Err(InstallError::ChangedSince { path });
        }
        files.push(FileReplacement::new(&path, file.after.clone(), file.before.clone()));
    }
    Ok((change(&folder, &record), moves, files))
}

fn seen(directory: &Path, name: &str) -> Result<Option<EntryState>, InstallError> {
    let opened = match Disk::default().open(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(EntryState::Absent));
        }
        opened => opened,
    };
    let seen = opened.and_then(|it| look(&it, name));
    seen.map_err(|it| InstallError::unchanged("read", directory.join(name), it))
}
