//! The keeper: holds the library of the moment for everybody who asks.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::library::{Library, LoadError, Options};

/// Holds the current library. A reload swaps it whole; whoever has the old one keeps it.
#[derive(Debug)]
pub struct Keeper {
    current: RwLock<Arc<Library>>,
    /// Held over a reload, so that what was read first does not come last.
    reloading: Mutex<()>,
}

impl Keeper {
    /// Loads the library that `options` ask for.
    pub fn start(options: &Options) -> Result<Self, LoadError> {
        Ok(Self {
            current: RwLock::new(Arc::new(Library::load(options)?)),
            reloading: Mutex::new(()),
        })
    }

    /// The library as it is now.
    pub fn library(&self) -> Arc<Library> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loads everything anew and returns what everybody sees from now on.
    pub fn reload(&self) -> Result<Arc<Library>, LoadError> {
        let _one_at_a_time = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let library = Arc::new(self.library().reload()?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = library.clone();
        Ok(library)
    }
}
