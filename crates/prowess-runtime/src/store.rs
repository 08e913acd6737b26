//! Where skills are kept and changed.

mod error;
mod path;
mod document;
mod disk;
mod trash;
mod file;
mod memory;

use std::{collections::BTreeMap, fmt, path::Path};

use prowess::{Finding, Listing, SizeLimits, Source, Status, VisitResult, spec::SKILL_FILE};

use crate::entry::SkillRecord;

#[doc(hidden)]
pub use self::disk::DiskStep;
pub use self::{
    error::{StateAfter, StoreError, WriteFailure},
    file::FileStore,
    memory::MemoryStore,
    trash::deleted_from,
};

/// Where skills are kept and changed.
///
/// A change is made whole or not at all, also when the process dies in the middle of it; whoever
/// reads meanwhile sees what was there before or what is there after. No name or path from outside
/// leads anywhere else.
pub trait Store: Send + Sync + fmt::Debug {
    /// Saves an entry and returns it as it is now kept.
    ///
    /// A new one is a draft unless it says otherwise. One that is there is edited: fields that have
    /// not changed, comments and fields that nobody here knows stay as they are, and so does its
    /// status where the entry has none.
    fn save(&self, entry: &SkillRecord) -> Result<SkillRecord, StoreError>;

    /// Adds a new skill, all its files as they are; the frontmatter of its `SKILL.md` says what it
    /// is called.
    fn add(&self, files: &Files) -> Result<SkillRecord, StoreError>;

    /// Finds a skill by its name.
    fn get(&self, name: &str) -> Result<SkillRecord, StoreError>;

    /// Lists all skills, sorted by name.
    fn list(&self) -> Result<StoreContents, StoreError>;

    /// Makes a skill active, draft or disabled, and changes nothing else.
    fn set_status(&self, name: &str, status: Status) -> Result<SkillRecord, StoreError>;

    /// Writes a file beside the `SKILL.md` of a skill, with the folders above it.
    fn save_resource(&self, name: &str, path: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Removes a skill with all its files; [`undo`](Self::undo) brings it back. A link goes, what
    /// it leads to stays.
    fn delete(&self, name: &str) -> Result<(), StoreError>;

    /// Brings back the skill that was deleted last, or the last one of a name, and returns what it
    /// is called.
    fn undo(&self, name: Option<&str>) -> Result<String, StoreError>;

    /// Lists the active skills, sorted by name.
    fn list_active(&self) -> Result<StoreContents, StoreError> {
        let mut stock = self.list()?;
        stock.entries.retain(|it| it.manifest.is_active());
        Ok(stock)
    }

    /// Saves a new entry, as [`save`](Self::save) does; what is there already is not touched.
    fn create(&self, entry: &SkillRecord) -> Result<SkillRecord, StoreError> {
        self.add(&Files::from([(SKILL_FILE.to_owned(), document::rendered(entry)?)]))
    }

    /// Makes a skill active.
    fn activate(&self, name: &str) -> Result<SkillRecord, StoreError> {
        self.set_status(name, Status::Active)
    }

    /// Makes a skill disabled. Activating it again gives the same bytes as before.
    fn deactivate(&self, name: &str) -> Result<SkillRecord, StoreError> {
        self.set_status(name, Status::Disabled)
    }

    /// Adds the skills of a source that are not there, and returns their names. What is there is
    /// never touched, and nothing is taken from hidden folders.
    fn ensure_defaults(&self, source: &dyn Source) -> Result<Vec<String>, StoreError> {
        let mut added = Vec::new();
        for files in defaults(source)? {
            match self.add(&files) {
                Ok(entry) => added.push(entry.manifest.name.into_string()),
                Err(StoreError::AlreadyThere { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(added)
    }
}

/// The files of a skill, by their paths in its folder, with `/` between the parts.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What a store holds at one moment.
#[derive(Debug, Clone, Default)]
pub struct StoreContents {
    /// The skills.
    pub entries: Vec<SkillRecord>,
    /// What was noticed about them, and why others are not there.
    pub findings: Vec<Finding>,
}

/// The files of every skill that a source has in a folder of its own.
fn defaults(source: &dyn Source) -> Result<Vec<Files>, StoreError> {
    let limits =
        SizeLimits { max_file_size: u64::MAX, max_skill_size: u64::MAX, ..SizeLimits::default() };
    let VisitResult::Folders(folders) =
        source.visit(Path::new(""), &limits, Listing::OnDemand).what
    else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for folder in folders.iter().filter(|it| !has_hidden(it)) {
        let VisitResult::Skill(found) = source.visit(folder, &limits, Listing::AtOnce).what else {
            continue;
        };
        let read = |bytes: Result<Vec<u8>, _>| {
            bytes.map_err(|source| StoreError::Source { path: found.path.to_path_buf(), source })
        };
        let mut files = Files::from([(SKILL_FILE.to_owned(), read(source.read(&found.path))?)]);
        for resource in found.resources.iter().flatten() {
            let folder = Path::new(&*resource.path).parent();
            if !folder.is_some_and(has_hidden) {
                let bytes = read(source.read_beside(&found.path, &resource.path))?;
                files.insert(resource.path.to_string(), bytes);
            }
        }
        all.push(files);
    }
    Ok(all)
}

fn has_hidden(path: &Path) -> bool {
    path.iter().any(|it| it.as_encoded_bytes().starts_with(b"."))
}
