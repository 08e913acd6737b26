//! Stores of skills.

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

/// Stores and changes skills.
///
/// A change is atomic, even if the process dies in the middle of it; concurrent readers see the
/// state either before or after it. No name or path from outside leads out of the store.
pub trait Store: Send + Sync + fmt::Debug {
    /// Saves an entry and returns it as saved.
    ///
    /// A new one is a draft unless it has a status. An existing one is edited: unchanged fields,
    /// comments and unknown fields are preserved, and so is its status if the entry has none.
    fn save(&self, entry: &SkillRecord) -> Result<SkillRecord, StoreError>;

    /// Adds a new skill with all its files, unchanged; the name is in the frontmatter of its
    /// `SKILL.md`.
    fn add(&self, files: &Files) -> Result<SkillRecord, StoreError>;

    /// Finds a skill by its name.
    fn get(&self, name: &str) -> Result<SkillRecord, StoreError>;

    /// Lists all skills, sorted by name.
    fn list(&self) -> Result<StoreContents, StoreError>;

    /// Makes a skill active, draft or disabled, and changes nothing else.
    fn set_status(&self, name: &str, status: Status) -> Result<SkillRecord, StoreError>;

    /// Writes a file next to the `SKILL.md` of a skill, and creates its parent folders.
    fn save_resource(&self, name: &str, path: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Removes a skill with all its files; [`undo`](Self::undo) restores it. A link is removed
    /// without its target.
    fn delete(&self, name: &str) -> Result<(), StoreError>;

    /// Restores the skill that was deleted last, or the last one of a name, and returns its name.
    fn undo(&self, name: Option<&str>) -> Result<String, StoreError>;

    /// Lists the active skills, sorted by name.
    fn list_active(&self) -> Result<StoreContents, StoreError> {
        let mut contents = self.list()?;
        contents.entries.retain(|it| it.manifest.is_active());
        Ok(contents)
    }

    /// Saves a new entry, like [`save`](Self::save); an existing one is not touched.
    fn create(&self, entry: &SkillRecord) -> Result<SkillRecord, StoreError> {
        self.add(&Files::from([(SKILL_FILE.to_owned(), document::render_record(entry)?)]))
    }

    /// Makes a skill active.
    fn activate(&self, name: &str) -> Result<SkillRecord, StoreError> {
        self.set_status(name, Status::Active)
    }

    /// Makes a skill disabled. Activating it again restores the same bytes.
    fn deactivate(&self, name: &str) -> Result<SkillRecord, StoreError> {
        self.set_status(name, Status::Disabled)
    }

    /// Adds the skills of a source that do not exist yet, and returns their names. Existing ones
    /// are not touched, and hidden folders are ignored.
    fn ensure_defaults(&self, source: &dyn Source) -> Result<Vec<String>, StoreError> {
        let mut added = Vec::new();
        for files in read_skills(source)? {
            match self.add(&files) {
                Ok(entry) => added.push(entry.manifest.name.into_string()),
                Err(StoreError::AlreadyThere { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(added)
    }
}

/// The files of a skill, by their paths in its folder, separated by `/`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The contents of a store at one moment.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoreContents {
    /// The skills.
    pub entries: Vec<SkillRecord>,
    /// Findings on them, and on skills that could not be read.
    pub findings: Vec<Finding>,
}

/// Reads the files of every skill in a source that has its own folder.
fn read_skills(source: &dyn Source) -> Result<Vec<Files>, StoreError> {
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
