//! A store in memory, for tests of hosts and for temporary skills.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, MutexGuard},
};

use prowess::{Status, lock, nearest, revise_status, spec::SKILL_FILE};

use super::{Files, Store, StoreContents, StoreError, document, path};
use crate::entry::SkillRecord;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    skills: BTreeMap<String, Files>,
    /// Ordered by deletion, the last one at the end.
    trash: Vec<(String, Files)>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a single assignment, so a panic leaves nothing half done.
        lock(&self.0)
    }
}

impl Store for MemoryStore {
    fn save(&self, entry: &SkillRecord) -> Result<SkillRecord, StoreError> {
        let name = path::check_name(&entry.manifest.name)?;
        let mut state = self.state();
        let bytes = match state.skills.get(name) {
            Some(files) => document::revise_record(&files[SKILL_FILE], &self::entry(files), entry)?,
            None => document::render_record(entry)?,
        };
        let files = state.skills.entry(name.to_owned()).or_default();
        files.insert(SKILL_FILE.to_owned(), bytes);
        Ok(self::entry(files))
    }

    fn add(&self, files: &Files) -> Result<SkillRecord, StoreError> {
        let name = document::check_files(files)?;
        let mut state = self.state();
        state.check_absent(&name)?;
        state.skills.insert(name, files.clone());
        Ok(entry(files))
    }

    fn get(&self, name: &str) -> Result<SkillRecord, StoreError> {
        self.state().files(name).map(|it| entry(it))
    }

    fn list(&self) -> Result<StoreContents, StoreError> {
        let entries = self.state().skills.values().map(entry).collect();
        Ok(StoreContents { entries, findings: Vec::new() })
    }

    fn set_status(&self, name: &str, status: Status) -> Result<SkillRecord, StoreError> {
        let mut state = self.state();
        let files = state.files(name)?;
        let revised = revise_status(&files[SKILL_FILE], status)
            .map_err(|source| StoreError::NotEdited { path: SKILL_FILE.into(), source })?;
        files.insert(SKILL_FILE.to_owned(), revised);
        Ok(entry(files))
    }

    fn save_resource(&self, name: &str, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = path::check_resource(path)?.to_string_lossy().into_owned();
        self.state().files(name)?.insert(path, bytes.to_vec());
        Ok(())
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let mut state = self.state();
        state.files(name)?;
        let deleted = state.skills.remove_entry(name);
        state.trash.extend(deleted);
        Ok(())
    }

    fn undo(&self, name: Option<&str>) -> Result<String, StoreError> {
        let mut state = self.state();
        let Some(at) = state
            .trash
            .iter()
            .rposition(|it: &(String, Files)| name.is_none_or(|name| it.0 == name))
        else {
            return Err(StoreError::NothingToUndo { name: name.map(str::to_owned) });
        };
        if let Err(StoreError::AlreadyThere { name, folder }) =
            state.check_absent(&state.trash[at].0)
        {
            let names = state.trash.iter().map(|it| it.0.clone());
            let others = names.filter(|it| state.check_absent(it).is_ok()).collect();
            return Err(StoreError::NoPlace { name, folder, others });
        }
        let (name, files) = state.trash.remove(at);
        state.skills.insert(name.clone(), files);
        Ok(name)
    }
}

impl State {
    fn files(&mut self, name: &str) -> Result<&mut Files, StoreError> {
        let nearest = nearest(name, self.skills.keys().map(String::as_str)).map(str::to_owned);
        self.skills
            .get_mut(name)
            .ok_or_else(|| StoreError::NoSuchSkill { name: name.to_owned(), nearest })
    }

    fn check_absent(&self, name: &str) -> Result<(), StoreError> {
        match self.skills.contains_key(name) {
            true => Err(StoreError::AlreadyThere { name: name.to_owned(), folder: name.into() }),
            false => Ok(()),
        }
    }
}

/// Returns the record of a skill; its files were validated when added.
fn entry(files: &Files) -> SkillRecord {
    let entry = document::parse_record(&files[SKILL_FILE], Path::new(SKILL_FILE));
    SkillRecord { folder: None, ..entry.expect("files are validated when they are added") }
}
