//! The active skills.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use prowess::{Library, Skill, lock};

use crate::provider::SkillProvider;

/// The active skills in the order of their activation, looked up in the current library.
///
/// A skill is identified by its file: another one with its name does not replace it.
#[derive(Debug)]
pub struct Active {
    provider: Arc<dyn SkillProvider>,
    activated: Mutex<Vec<ActiveSkill>>,
}

tokio::task_local! {
    static CURRENT: Arc<Active>;
}

#[derive(Debug)]
struct ActiveSkill {
    name: Box<str>,
    path: Arc<Path>,
}

impl Active {
    /// Creates a list without skills.
    pub fn new(provider: Arc<dyn SkillProvider>) -> Self {
        Self { provider, activated: Mutex::default() }
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

    /// Returns the current library.
    pub fn library(&self) -> Arc<Library> {
        self.provider.library()
    }

    /// Activates a skill, found by [`Library::get`]. Returns whether such a skill exists and is
    /// enabled.
    pub fn activate(&self, name: &str) -> bool {
        let library = self.library();
        let Some(skill) = library.get(name).filter(|it| it.manifest.is_active()) else {
            return false;
        };
        let mut activated = self.lock();
        if !activated.iter().any(|it| it.path == skill.origin.path) {
            let (name, path) = (skill.manifest.name.clone(), skill.origin.path.clone());
            activated.push(ActiveSkill { name, path });
        }
        true
    }

    /// Returns the active skills that still exist and are enabled.
    pub fn skills(&self) -> Vec<Skill> {
        let library = self.library();
        self.lock()
            .iter()
            .filter_map(|activated: &ActiveSkill| {
                let mut candidates = library.get(&activated.name).into_iter().chain(library.all());
                candidates.find(|it| it.origin.path == activated.path)
            })
            .filter(|it| it.manifest.is_active())
            .cloned()
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ActiveSkill>> {
        lock(&self.activated)
    }
}
