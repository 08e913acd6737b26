//! The active skills of a conversation.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use prowess::{Library, Skill, lock};

use crate::provider::SkillProvider;

/// The active skills, in the order of their activation.
///
/// A skill is active when its instructions are in the conversation, all of them. One of which a
/// model is shown less is disclosed, and one that fits a request is matched; neither is active.
/// What depends on a skill goes by this list: its tools and rules, its files, and its servers.
///
/// The skills are looked up in the current library. A skill is identified by its file: another one
/// with its name does not replace it.
#[derive(Debug, Default)]
pub struct ActiveSkills {
    provider: Option<Arc<dyn SkillProvider>>,
    activated: Mutex<Vec<ActiveSkill>>,
}

tokio::task_local! {
    static CURRENT: Arc<ActiveSkills>;
}

#[derive(Debug)]
struct ActiveSkill {
    name: Box<str>,
    /// Its file; `None` if it was activated by its name alone.
    path: Option<Arc<Path>>,
}

impl ActiveSkills {
    /// Creates a list without skills.
    pub fn new(provider: Arc<dyn SkillProvider>) -> Self {
        Self { provider: Some(provider), activated: Mutex::default() }
    }

    /// Makes the tools and the authorizer use these skills during a future, instead of those that
    /// they were created with, so that many conversations can share one toolbox.
    pub async fn within<T>(self: Arc<Self>, future: impl Future<Output = T>) -> T {
        CURRENT.scope(self, future).await
    }

    /// Does the same for work that is not async.
    pub(crate) fn within_blocking<T>(self: Arc<Self>, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// Returns the skills set by [`within`](Self::within), if any.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Whether there is a library to look the skills up in.
    pub fn has_library(&self) -> bool {
        self.provider.is_some()
    }

    /// Returns the current library; an empty one if there is none.
    pub fn library(&self) -> Arc<Library> {
        self.provider.as_ref().map(|it| it.library()).unwrap_or_default()
    }

    /// Activates a skill, found by [`Library::get`]. Returns whether such a skill exists and is
    /// enabled.
    pub fn activate(&self, name: &str) -> bool {
        let library = self.library();
        let Some(skill) = library.get(name).filter(|it| it.manifest.is_active()) else {
            return false;
        };
        let mut activated = self.lock();
        if !activated.iter().any(|it| it.path.as_ref() == Some(&skill.origin.path)) {
            let (name, path) = (skill.manifest.name.clone(), Some(skill.origin.path.clone()));
            activated.push(ActiveSkill { name, path });
        }
        true
    }

    /// Activates a skill by its name alone, whether the library has it or not: rules about the
    /// name apply, but no tool finds its files.
    pub fn activate_name(&self, name: &str) {
        let mut activated = self.lock();
        if !activated.iter().any(|it| &*it.name == name) {
            activated.push(ActiveSkill { name: name.into(), path: None });
        }
    }

    /// Returns the names of the active skills.
    pub fn names(&self) -> Vec<String> {
        self.lock().iter().map(|it| it.name.to_string()).collect()
    }

    /// Returns the active skills that still exist and are enabled.
    pub fn skills(&self) -> Vec<Skill> {
        self.skills_of(&self.library()).into_iter().cloned().collect()
    }

    /// Returns those of them that a library has, which need not be the one they are looked up in.
    pub fn skills_of<'l>(&self, library: &'l Library) -> Vec<&'l Skill> {
        self.lock().iter().filter_map(|it| it.find(library)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ActiveSkill>> {
        lock(&self.activated)
    }
}

impl ActiveSkill {
    /// Returns the skill of a library, if it is enabled.
    fn find<'l>(&self, library: &'l Library) -> Option<&'l Skill> {
        let named = library.get(&self.name);
        let found = match &self.path {
            Some(path) => named
                .filter(|it| it.origin.path == *path)
                .or_else(|| library.all().find(|it| it.origin.path == *path)),
            None => named,
        };
        found.filter(|it| it.manifest.is_active())
    }
}
