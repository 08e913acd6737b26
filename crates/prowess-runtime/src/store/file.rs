//! A store in a folder: each skill is `<store>/<name>/SKILL.md` with its resources next to it.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use prowess::{
    Directory, Library, Listing, Options, SizeLimits, Status, nearest, revise_status,
    spec::SKILL_FILE,
};
use prowess_sandbox::{FileType, Links, Root, RootError};

use super::{
    Files, StateAfter, Store, StoreContents, StoreError,
    disk::{DiskStep, LockedDirectory, Steps, create_directories, write_error},
    document, path,
    trash::{self, DeletedSkill, deleted_from},
};
use crate::entry::SkillRecord;

/// A store in a folder: each skill is `<store>/<name>/SKILL.md` with its resources next to it.
///
/// Writers in all processes wait for each other; readers never wait. Deleted skills are moved to
/// the trash, which keeps the last fifty: `<store>/.trash` unless the host provides a directory.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    /// The host's directory for locks and the trash.
    state: Option<PathBuf>,
    patience: Duration,
    steps: Steps,
}

/// The default timeout for other writers.
const PATIENCE: Duration = Duration::from_secs(10);

impl FileStore {
    /// Opens a folder. A missing one is an empty store, and created by the first change.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let path = std::path::absolute(path)
            .map_err(|source| StoreError::Read { path: path.to_owned(), source })?;
        if path.exists() && !path.is_dir() {
            return Err(StoreError::NotOurs { path });
        }
        Ok(Self { path, state: None, patience: PATIENCE, steps: Steps::default() })
    }

    /// Returns the deleted skills that can be restored, the last one first: each with the time, in
    /// nanoseconds since 1970, and its name.
    pub fn removed(&self) -> Result<Vec<(u64, String)>, StoreError> {
        trash::list_deleted(&self.path, self.state.as_deref())
    }

    /// Replaces the timeout for other writers.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Uses a private directory for its lock and its trash. Other users cannot hold this lock;
    /// their writers are not waited for.
    #[must_use]
    pub fn with_state(self, state: PathBuf) -> Self {
        Self { state: Some(state), ..self }
    }

    /// Calls a hook before every step that changes the disk.
    #[doc(hidden)]
    #[must_use]
    pub fn with_steps(
        self,
        ask: impl Fn(DiskStep) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { steps: Steps(Some(Box::new(ask))), ..self }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the directory, which is created if need be.
    fn create_and_lock(&self) -> Result<LockedDirectory<'_>, StoreError> {
        create_directories(&self.path, &self.steps)
            .map_err(|it| write_error(&self.path, StateAfter::Unchanged, it))?;
        LockedDirectory::open(&self.path, self.state.as_deref(), self.patience, &self.steps)
    }

    /// Locks the directory for a change; returns `error` if it does not exist.
    fn lock(&self, error: StoreError) -> Result<LockedDirectory<'_>, StoreError> {
        match self.path.try_exists() {
            Ok(false) => Err(error),
            _ => {
                LockedDirectory::open(&self.path, self.state.as_deref(), self.patience, &self.steps)
            }
        }
    }

    /// Opens the directory; `None` if it does not exist.
    fn open_root(&self) -> Result<Option<Root>, StoreError> {
        match Root::open(&self.path) {
            Ok(root) => Ok(Some(root)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(read_error(&self.path, error)),
        }
    }
}

impl Store for FileStore {
    fn save(&self, entry: &SkillRecord) -> Result<SkillRecord, StoreError> {
        let name = path::check_name(&entry.manifest.name)?;
        let locked = self.create_and_lock()?;
        match find(&locked.root, name) {
            Ok(found) => {
                let revised = document::revise_record(&found.bytes, &found.entry, entry)?;
                found.write(&locked, &revised)
            }
            Err(StoreError::NoSuchSkill { .. }) => {
                let document = (SKILL_FILE.to_owned(), document::render_record(entry)?);
                if file_type(&locked.root, name).is_some() {
                    return Err(already_exists(&locked.root, name, name));
                }
                create_skill(&locked, name, &Files::from([document]))
            }
            Err(error) => Err(error),
        }
    }

    fn add(&self, files: &Files) -> Result<SkillRecord, StoreError> {
        let name = document::check_files(files)?;
        // An existing skill is found without a lock, even in a read-only store.
        if let Some(root) = self.open_root()? {
            check_absent(&root, &name)?;
        }
        let locked = self.create_and_lock()?;
        check_absent(&locked.root, &name)?;
        create_skill(&locked, &name, files)
    }

    fn get(&self, name: &str) -> Result<SkillRecord, StoreError> {
        match self.open_root()? {
            Some(root) => Ok(find(&root, name)?.entry),
            None => Err(no_such_skill(name)),
        }
    }

    fn list(&self) -> Result<StoreContents, StoreError> {
        let Some(root) = self.open_root()? else { return Ok(StoreContents::default()) };
        let library = load_library(&root);
        let mut contents =
            StoreContents { entries: Vec::new(), findings: library.findings().to_vec() };
        for skill in library.skills() {
            let path = &skill.origin.path;
            match read_document(&root, relative_path(&root, path)) {
                Ok(bytes) => match document::parse_record(&bytes, path) {
                    Ok(entry) => contents.entries.push(entry),
                    Err(finding) => contents.findings.push(*finding),
                },
                // It was removed since the library was loaded.
                Err(error) if is_missing(&error) => {}
                Err(error) => contents.findings.push(document::unreadable_finding(path, &error)),
            }
        }
        Ok(contents)
    }

    fn set_status(&self, name: &str, status: Status) -> Result<SkillRecord, StoreError> {
        let locked = self.lock(no_such_skill(name))?;
        let found = find(&locked.root, name)?;
        if found.folder().as_os_str().is_empty() {
            return Err(StoreError::IsSkill { path: self.path.clone() });
        }
        let revised = revise_status(&found.bytes, status).map_err(|source| {
            StoreError::NotEdited { path: locked.root.path().join(&found.document), source }
        })?;
        found.write(&locked, &revised)
    }

    fn save_resource(&self, name: &str, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = path::check_resource(path)?;
        let locked = self.lock(no_such_skill(name))?;
        let found = find(&locked.root, name)?;
        locked.replace(&found.folder().join(path), bytes)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let locked = self.lock(no_such_skill(name))?;
        let root = &locked.root;
        let folder = match find(root, name) {
            Ok(found) => found.folder().to_owned(),
            // A broken skill, or a link to elsewhere, can be deleted as well.
            Err(StoreError::Broken { path, .. } | StoreError::Foreign { path }) => {
                relative_path(root, &path).parent().unwrap_or(Path::new("")).to_owned()
            }
            Err(StoreError::NoSuchSkill { .. }) if is_link(root, name) => name.into(),
            Err(error) => return Err(error),
        };
        if folder.as_os_str().is_empty() {
            return Err(StoreError::IsSkill { path: self.path.clone() });
        }
        trash::put(&locked, self.state.as_deref(), folder.as_os_str())
    }

    fn undo(&self, name: Option<&str>) -> Result<String, StoreError> {
        let nothing = StoreError::NothingToUndo { name: name.map(str::to_owned) };
        // The store's folder may be gone.
        let state = self.state.as_deref();
        let is_in_state =
            state.and_then(|it| deleted_from(it, name, |it| it == self.path)).is_some();
        let locked = if is_in_state { self.create_and_lock()? } else { self.lock(nothing)? };
        let deleted = trash::find_latest(&locked, state, name)?;
        // Another skill may have taken its name.
        if file_type(&locked.root, &deleted.folder).is_some() {
            return Err(folder_exists(&locked.root, &deleted));
        }
        deleted.restore(&locked)?;
        Ok(deleted.skill_name.unwrap_or(deleted.folder))
    }
}

/// Creates the error for a folder that exists again, with the other skills that can be restored.
fn folder_exists(root: &Root, deleted: &DeletedSkill) -> StoreError {
    let name = deleted.skill_name.as_ref().unwrap_or(&deleted.folder).clone();
    let mut others = deleted.others(root.path());
    others.retain(|it| *it != name && file_type(root, it).is_none());
    StoreError::NoPlace { name, folder: root.path().join(&deleted.folder), others }
}

/// A skill that was found, with the bytes of its `SKILL.md`.
struct StoredSkill {
    /// The path of its `SKILL.md` within the store.
    document: PathBuf,
    bytes: Vec<u8>,
    entry: SkillRecord,
}

impl StoredSkill {
    fn folder(&self) -> &Path {
        self.document.parent().unwrap_or(Path::new(""))
    }

    fn write(self, locked: &LockedDirectory<'_>, bytes: &[u8]) -> Result<SkillRecord, StoreError> {
        if bytes == self.bytes {
            return Ok(self.entry);
        }
        let path = locked.root.path().join(&self.document);
        let entry = document::parse_record(bytes, &path)
            .map_err(|it| StoreError::Unfit { name: self.name(), why: it.message })?;
        locked.replace(&self.document, bytes)?;
        Ok(entry)
    }

    fn name(&self) -> String {
        self.entry.manifest.name.to_string()
    }
}

/// Finds a skill by its name, which may differ from that of its folder. A folder of that name takes
/// precedence, so that no other folder can replace it.
fn find(root: &Root, name: &str) -> Result<StoredSkill, StoreError> {
    let own = is_folder_name(name).then(|| open_skill(root, &Path::new(name).join(SKILL_FILE)));
    if let Some(Ok(found)) = &own
        && &*found.entry.manifest.name == name
    {
        return own.expect("it was found");
    }
    let library = load_library(root);
    let skill = library.skills().find(|it| &*it.manifest.name == name);
    if let Some(skill) = skill {
        return open_skill(root, relative_path(root, &skill.origin.path));
    }
    // The error of a folder with that name is more helpful than that there is no such skill.
    if let Some(Err(error)) = own.filter(|it| !matches!(it, Err(error) if is_missing(error))) {
        return Err(error);
    }
    let names = library.skills().map(|it| &*it.manifest.name);
    let nearest = nearest(name, names).map(str::to_owned);
    Err(StoreError::NoSuchSkill { name: name.to_owned(), nearest })
}

fn open_skill(root: &Root, document: &Path) -> Result<StoredSkill, StoreError> {
    let bytes = read_document(root, document)?;
    let path = root.path().join(document);
    match document::parse_record(&bytes, &path) {
        Ok(entry) => Ok(StoredSkill { document: document.to_owned(), bytes, entry }),
        Err(finding) => Err(StoreError::Broken { path, why: finding.message }),
    }
}

/// Reads a document of the store at once; stops just above the size limit.
pub(super) fn read_document(root: &Root, path: &Path) -> Result<Vec<u8>, StoreError> {
    let shown = || root.path().join(path);
    let file = root.file(path, Links::Inside).map_err(|error| read_error(&shown(), error))?;
    let mut bytes = Vec::new();
    let read = file.take(SizeLimits::default().max_document_size + 1).read_to_end(&mut bytes);
    read.map_err(|source| StoreError::Read { path: shown(), source })?;
    Ok(bytes)
}

fn read_error(path: &Path, error: RootError) -> StoreError {
    match error {
        RootError::Io { source, .. } => StoreError::Read { path: path.to_owned(), source },
        _ => StoreError::Foreign { path: path.to_owned() },
    }
}

fn no_such_skill(name: &str) -> StoreError {
    StoreError::NoSuchSkill { name: name.to_owned(), nearest: None }
}

/// Returns a path of the library relative to the store.
fn relative_path<'p>(root: &Root, path: &'p Path) -> &'p Path {
    path.strip_prefix(root.path()).unwrap_or(path)
}

/// Loads the skills as other clients see them, with findings on invalid ones.
fn load_library(root: &Root) -> Library {
    let options = Options {
        directories: vec![Directory::new(root.path())],
        resources: Listing::OnDemand,
        ..Options::default()
    };
    Library::load(&options).expect("a directory is named")
}

/// Refuses a name that a skill or another entry of the store has.
fn check_absent(root: &Root, name: &str) -> Result<(), StoreError> {
    let error = match find(root, name) {
        Ok(found) => already_exists(root, name, found.folder()),
        Err(_) if file_type(root, name).is_some() => already_exists(root, name, name),
        Err(StoreError::NoSuchSkill { .. }) => return Ok(()),
        Err(error) => error,
    };
    Err(error)
}

fn already_exists(root: &Root, name: &str, folder: impl AsRef<Path>) -> StoreError {
    StoreError::AlreadyThere { name: name.to_owned(), folder: root.path().join(folder) }
}

fn create_skill(
    locked: &LockedDirectory<'_>,
    name: &str,
    files: &Files,
) -> Result<SkillRecord, StoreError> {
    if file_type(&locked.root, SKILL_FILE).is_some() {
        return Err(StoreError::IsSkill { path: locked.root.path().to_owned() });
    }
    locked.create_folder(name, files)?;
    Ok(open_skill(&locked.root, &Path::new(name).join(SKILL_FILE))?.entry)
}

/// Returns the file type of an entry of the store.
fn file_type(root: &Root, name: &str) -> Option<FileType> {
    if !is_folder_name(name) {
        return None;
    }
    Some(root.entry(Path::new(name)).ok()?.kind)
}

fn is_link(root: &Root, name: &str) -> bool {
    file_type(root, name) == Some(FileType::Symlink)
}

fn is_missing(error: &StoreError) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error, StoreError::Read { source, .. } if matches!(source.kind(), NotFound | NotADirectory))
}

/// Whether a name can be that of a skill's folder: a single component, and not hidden.
pub(super) fn is_folder_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}
