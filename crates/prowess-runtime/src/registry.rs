//! The skills of a store as tools: created, activated, loaded.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use prowess::{
    Directory, Finding, Library, Manifest, Memory, Options, Scope, Source, Status, lock,
};
use serde_json::Value;

use crate::{
    create::{CreateError, check_record},
    definition::{definition_from_json, type_from_word},
    entry::SkillRecord,
    executor::Executor,
    provider::SkillProvider,
    store::{Store, StoreError},
    tool::Tool,
    tools::skill_tools,
};

/// The skills of a store as tools, in addition to the host's own tools.
///
/// The loaded state is swapped as a whole: concurrent readers see either the old state or the new
/// one.
#[derive(Debug)]
pub struct Registry {
    store: Arc<dyn Store>,
    base: Vec<Arc<dyn Tool>>,
    executor: Executor,
    loaded: RwLock<Arc<RegistryTools>>,
    /// Locked during a load, so that an older state cannot replace a newer one.
    loading: Mutex<()>,
}

#[derive(Debug)]
struct RegistryTools {
    library: Arc<Library>,
    tools: Vec<Arc<dyn Tool>>,
}

impl Registry {
    /// Creates a registry without loading anything.
    pub fn new(store: Arc<dyn Store>, base: Vec<Arc<dyn Tool>>, executor: Executor) -> Self {
        let loaded = RegistryTools { library: Arc::new(build_library(&[])), tools: Vec::new() };
        let loaded = RwLock::new(Arc::new(loaded));
        Self { store, base, executor, loaded, loading: Mutex::new(()) }
    }

    /// Creates a registry and loads the active skills of the store.
    pub fn start(
        store: Arc<dyn Store>,
        base: Vec<Arc<dyn Tool>>,
        executor: Executor,
    ) -> Result<Self, StoreError> {
        let registry = Self::new(store, base, executor);
        registry.load_skills()?;
        Ok(registry)
    }

    /// Returns the store of its skills.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Replaces the loaded skills by the active skills of the store; returns the findings on them.
    pub fn load_skills(&self) -> Result<Vec<Finding>, StoreError> {
        let _one_at_a_time = lock(&self.loading);
        let stock = self.store.list_active()?;
        let library = build_library(&stock.entries);
        let tools = skill_tools(&library, &self.base, &self.executor);
        let loaded = Arc::new(RegistryTools { library: Arc::new(library), tools });
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(stock.findings)
    }

    /// Checks a new skill, saves it as active and loads it. `kind` is the name of its type, and
    /// `definition` an object with `steps`, `script`, `template` or `content`.
    pub fn create_skill(
        &self,
        manifest: Manifest,
        kind: &str,
        definition: &Value,
        parameters: Option<Value>,
    ) -> Result<SkillRecord, CreateError> {
        let kind = type_from_word(kind)?;
        let definition = definition_from_json(kind, definition)?;
        let manifest = Manifest { kind, ..manifest };
        self.create(SkillRecord { manifest, definition, parameters, folder: None })
    }

    /// Does the same with a record. Existing skills are not changed.
    pub fn create(&self, entry: SkillRecord) -> Result<SkillRecord, CreateError> {
        check_record(&entry)?;
        let manifest = Manifest { status: Some(Status::Active), ..entry.manifest };
        let entry = self.store.create(&SkillRecord { manifest, ..entry })?;
        self.load_skills()?;
        Ok(entry)
    }

    /// Makes a skill active and loads it.
    pub fn activate_skill(&self, name: &str) -> Result<SkillRecord, StoreError> {
        let entry = self.store.activate(name)?;
        self.load_skills()?;
        Ok(entry)
    }

    /// Returns the tools of the loaded skills.
    pub fn loaded_skills(&self) -> Vec<Arc<dyn Tool>> {
        self.current().tools.clone()
    }

    /// Returns the tools of the host and of the loaded skills; names are unique.
    pub fn all_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.base.iter().chain(&self.current().tools).cloned().collect()
    }

    /// Finds a tool by its name.
    pub fn get(&self, tool: &str) -> Option<Arc<dyn Tool>> {
        self.all_tools().into_iter().find(|it| it.name() == tool)
    }

    fn current(&self) -> Arc<RegistryTools> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl SkillProvider for Registry {
    fn library(&self) -> Arc<Library> {
        self.current().library.clone()
    }
}

/// Creates a library of these skills: from their folders on disk, else from their texts.
fn build_library(entries: &[SkillRecord]) -> Library {
    let parents: BTreeSet<&Path> =
        entries.iter().filter_map(|it| it.folder.as_deref()?.parent()).collect();
    let texts = entries.iter().filter(|it| it.folder.is_none());
    let texts = texts.map(|it| {
        let path = format!("{}/SKILL.md", it.manifest.name);
        (path, it.render().into_bytes())
    });
    let memory: Arc<dyn Source> = Arc::new(Memory::new(Scope::Project, "", texts));
    let options = Options {
        directories: parents.into_iter().map(Directory::new).collect(),
        sources: vec![memory],
        include: Some(entries.iter().map(|it| it.manifest.name.to_string()).collect()),
        ..Options::default()
    };
    Library::load(&options).expect("there is always a source")
}
