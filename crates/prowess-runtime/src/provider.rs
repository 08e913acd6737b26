//! The interface through which a host gets skills.

use std::{
    fmt,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use prowess::{Library, LiveLibrary};

/// The polling interval of a provider without notifications.
const EVERY: Duration = Duration::from_millis(200);

/// Provides skills.
pub trait SkillProvider: Send + Sync + fmt::Debug {
    /// Returns the current skills, in a consistent state.
    fn library(&self) -> Arc<Library>;

    /// Waits until the library differs from `last`, or until `patience` expires, and returns the
    /// current library. Blocks the thread; override this if changes can be detected without polling.
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
