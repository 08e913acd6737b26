//! The skills that the policy does not deny.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use prowess::{Library, lock};

use crate::{authorizer::Authorizer, provider::SkillProvider};

/// The skills of a provider that the authorizer does not deny.
#[derive(Debug)]
pub struct PermittedSkills {
    provider: Arc<dyn SkillProvider>,
    authorizer: Arc<Authorizer>,
    /// The last library, and its permitted part.
    last: Mutex<Option<(Arc<Library>, Arc<Library>)>>,
}

impl PermittedSkills {
    /// Omits the skills that the authorizer denies.
    pub fn new(provider: Arc<dyn SkillProvider>, authorizer: Arc<Authorizer>) -> Self {
        Self { provider, authorizer, last: Mutex::default() }
    }

    fn lock_last(&self) -> MutexGuard<'_, Option<(Arc<Library>, Arc<Library>)>> {
        lock(&self.last)
    }
}

impl SkillProvider for PermittedSkills {
    fn library(&self) -> Arc<Library> {
        let whole = self.provider.library();
        let mut last = self.lock_last();
        if let Some((_, permitted)) = last.as_ref().filter(|it| Arc::ptr_eq(&it.0, &whole)) {
            return permitted.clone();
        }
        let permitted = match whole.all().any(|it| self.authorizer.is_denied(it)) {
            true => Arc::new(whole.filter_skills(|it| !self.authorizer.is_denied(it))),
            false => whole.clone(),
        };
        *last = Some((whole, permitted.clone()));
        permitted
    }

    fn wait(&self, last: &Arc<Library>, patience: Duration) -> Arc<Library> {
        let whole =
            self.lock_last().as_ref().filter(|it| Arc::ptr_eq(&it.1, last)).map(|it| it.0.clone());
        if let Some(whole) = whole {
            self.provider.wait(&whole, patience);
        }
        self.library()
    }
}
