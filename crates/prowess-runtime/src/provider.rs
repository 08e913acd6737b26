//! Whoever has skills to give: the seam through which a host takes them.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use prowess::{Library, LiveLibrary};

use crate::authorizer::Authorizer;

/// How often a provider is asked that does not tell when it has other skills.
const EVERY: Duration = Duration::from_millis(200);

/// Whoever has skills to give.
pub trait SkillProvider: Send + Sync + fmt::Debug {
    /// The skills of this moment, all of one state.
    fn library(&self) -> Arc<Library>;

    /// Waits until the library is another than `last`, or until `patience` is at its end, and returns the
    /// library as it is then. Holds up the thread; whoever can tell without asking again does better.
    fn wait(&self, last: &Arc<Library>, patience: Duration) -> Arc<Library> {
        let start = Instant::now();
        loop {
            let (now, left) = (self.library(), patience.saturating_sub(start.elapsed()));
            if !Arc::ptr_eq(&now, last) || left.is_zero() {
                return now;
            }
            thread::sleep(left.min(EVERY));
        }
    }
}

impl SkillProvider for LiveLibrary {
    fn library(&self) -> Arc<Library> {
        Self::library(self)
    }

    fn wait(&self, last: &Arc<Library>, patience: Duration) -> Arc<Library> {
        Self::wait(self, last, patience)
    }
}

impl SkillProvider for Arc<Library> {
    fn library(&self) -> Arc<Library> {
        self.clone()
    }
}

/// The skills of a provider that a gate does not conceal.
#[derive(Debug)]
pub struct PermittedSkills {
    provider: Arc<dyn SkillProvider>,
    authorizer: Arc<Authorizer>,
    /// The last library, and what is left of it.
    last: Mutex<Option<(Arc<Library>, Arc<Library>)>>,
}

impl PermittedSkills {
    /// Leaves out what the gate conceals.
    pub fn new(provider: Arc<dyn SkillProvider>, authorizer: Arc<Authorizer>) -> Self {
        Self { provider, authorizer, last: Mutex::default() }
    }

    fn last(&self) -> MutexGuard<'_, Option<(Arc<Library>, Arc<Library>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SkillProvider for PermittedSkills {
    fn library(&self) -> Arc<Library> {
        let whole = self.provider.library();
        let mut last = self.last();
        if let Some((_, left)) = last.as_ref().filter(|it| Arc::ptr_eq(&it.0, &whole)) {
            return left.clone();
        }
        let left = match whole.all().any(|it| self.authorizer.is_denied(it)) {
            true => Arc::new(whole.keeping(|it| !self.authorizer.is_denied(it))),
            false => whole.clone(),
        };
        *last = Some((whole, left.clone()));
        left
    }

    fn wait(&self, last: &Arc<Library>, patience: Duration) -> Arc<Library> {
        let whole =
            self.last().as_ref().filter(|it| Arc::ptr_eq(&it.1, last)).map(|it| it.0.clone());
        if let Some(whole) = whole {
            self.provider.wait(&whole, patience);
        }
        self.library()
    }
}
