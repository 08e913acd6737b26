//! The keeper: holds the library of the moment for everybody who asks.

use std::{
    sync::{
        Arc, Mutex, PoisonError, RwLock, Weak,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    library::{Library, LoadError, Options},
    load::{Fingerprint, fingerprint},
};

/// How often a watched library is looked at, at the most.
const EVERY: Duration = Duration::from_millis(500);
/// How much longer than a look the pause behind it is, so that watching never takes much.
const PAUSE: u32 = 20;

/// Holds the current library. A reload swaps it whole; whoever has the old one keeps it.
#[derive(Debug)]
pub struct Keeper {
    held: Arc<Held>,
    /// Tells the watching thread to end, by being dropped.
    _watching: Option<Sender<()>>,
}

#[derive(Debug)]
struct Held {
    current: RwLock<Arc<Library>>,
    /// Held over a reload, so that what was read first does not come last.
    reloading: Mutex<()>,
}

impl Keeper {
    /// Loads the library that `options` ask for, and watches it if they say so.
    pub fn start(options: &Options) -> Result<Self, LoadError> {
        // What changes while the library is loaded for the first time must not be missed.
        let seen = options.watch.then(|| fingerprint(options));
        let current = RwLock::new(Arc::new(Library::load(options)?));
        let held = Arc::new(Held { current, reloading: Mutex::new(()) });
        let watching = seen.map(|seen| watch(Arc::downgrade(&held), options.clone(), seen));
        Ok(Self { held, _watching: watching })
    }

    /// The library as it is now.
    pub fn library(&self) -> Arc<Library> {
        self.held.library()
    }

    /// Loads everything anew and returns what everybody sees from now on.
    pub fn reload(&self) -> Result<Arc<Library>, LoadError> {
        self.held.reload()
    }
}

impl Held {
    fn library(&self) -> Arc<Library> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reload(&self) -> Result<Arc<Library>, LoadError> {
        let _one_at_a_time = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let library = Arc::new(self.library().reload()?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = library.clone();
        Ok(library)
    }
}

/// Looks at the sources again and again, and reloads when something about them has changed. Ends
/// when the keeper is dropped.
fn watch(held: Weak<Held>, options: Options, mut seen: Fingerprint) -> Sender<()> {
    let (watching, ended) = channel::<()>();
    thread::spawn(move || {
        let mut pause = EVERY;
        while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let started = Instant::now();
            let now = fingerprint(&options);
            pause = EVERY.max(started.elapsed() * PAUSE);
            let Some(held) = held.upgrade().filter(|_| now != seen) else { continue };
            // Without directories there is nothing that could have changed.
            if held.reload().is_ok() {
                seen = now;
            }
        }
    });
    watching
}
