//! Whoever has skills to give: the seam through which a host takes them.

use std::{
    fmt,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use prowess::{Library, LiveLibrary};

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
