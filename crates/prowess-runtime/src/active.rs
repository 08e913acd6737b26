//! The skills that were taken up.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prowess::{Library, Skill};

use crate::provider::SkillProvider;

/// The skills that were taken up, in that order, as the library of the moment has them.
///
/// A skill is known by its file: another one of its name does not take its place.
#[derive(Debug)]
pub struct Active {
    provider: Arc<dyn SkillProvider>,
    taken: Mutex<Vec<ActiveSkill>>,
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
    /// Begins with no skill.
    pub fn new(provider: Arc<dyn SkillProvider>) -> Self {
        Self { provider, taken: Mutex::default() }
    }

    /// Has the tools and the gate go by these skills while a future is waited for, and not by those
    /// that they were made with: so many conversations can share one toolbox.
    pub async fn within<T>(self: Arc<Self>, future: impl Future<Output = T>) -> T {
        CURRENT.scope(self, future).await
    }

    /// Does the same for work that is not async.
    pub(crate) fn within_blocking<T>(self: Arc<Self>, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// The skills that are gone by here, if somebody said so.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// The library of the moment.
    pub fn library(&self) -> Arc<Library> {
        self.provider.library()
    }

    /// Takes a skill up, found as by [`Library::get`]. Says whether there is such a skill, and it is
    /// in use.
    pub fn activate(&self, name: &str) -> bool {
        let library = self.library();
        let Some(skill) = library.get(name).filter(|it| it.manifest.is_active()) else {
            return false;
        };
        let mut taken = self.taken();
        if !taken.iter().any(|it| it.path == skill.origin.path) {
            let (name, path) = (skill.manifest.name.clone(), skill.origin.path.clone());
            taken.push(ActiveSkill { name, path });
        }
        true
    }

    /// The skills that were taken up and are still there and in use.
    pub fn skills(&self) -> Vec<Skill> {
        let library = self.library();
        let find = |taken: &ActiveSkill| {
            let is_it = |skill: &&Skill| skill.origin.path == taken.path;
            let named = library.get(&taken.name).filter(is_it);
            named
                .or_else(|| library.all().find(is_it))
                .filter(|it| it.manifest.is_active())
                .cloned()
        };
        self.taken().iter().filter_map(find).collect()
    }

    fn taken(&self) -> MutexGuard<'_, Vec<ActiveSkill>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
