//! The live library: provides the current library to all callers.

use std::{
    io, mem,
    sync::{
        Arc, Condvar, Mutex, PoisonError, Weak,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    library::{Library, LoadError, Options, load::ParsedFile, scanner::Scanner},
    lock::lock,
    read::{
        gather::ScanResult,
        source::{TouchedFolders, WatchEvent, Watcher},
    },
};

/// The minimum interval of polling where the system reports no changes, and the pause after a scan
/// as a multiple of its duration.
const POLLED: (Duration, u32) = (Duration::from_millis(500), 20);
/// The same for directories to which other machines write without events, as over a network.
const SHARED: (Duration, u32) = (Duration::from_secs(2), 20);
/// The same where the system reports changes, as it might miss some.
const TOLD: (Duration, u32) = (Duration::from_secs(60), 500);

/// Provides the current library. A reload swaps it whole; callers that have the old one keep it.
#[derive(Debug)]
pub struct LiveLibrary {
    state: Arc<LiveState>,
    watcher: Weak<Watcher>,
    /// Ends the watching thread when it is dropped.
    _watching: Option<Sender<()>>,
}

/// The way in which a live library learns of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watching {
    /// Not at all: only on an explicit reload.
    Off,
    /// By notifications of the system.
    Notified,
    /// By polling, because the system cannot notify; with the reason.
    Polling(String),
}

#[derive(Debug)]
struct LiveState {
    current: Mutex<Arc<Library>>,
    swapped: Condvar,
    /// Locked during a reload or a scan, so that an older result does not replace a newer one;
    /// whether there was a reload since the last scan.
    reloading: Mutex<bool>,
    watching: Mutex<Watching>,
    switched: Condvar,
}

impl LiveLibrary {
    /// Loads the library for `options`, and watches it if they say so.
    pub fn start(options: &Options) -> Result<Self, LoadError> {
        if !options.watch {
            let state = LiveState::new(Library::load(options)?, Watching::Off);
            return Ok(Self { state, watcher: Weak::new(), _watching: None });
        }
        let (follower, library, watching) = Follower::new(options)?;
        let state = LiveState::new(library, watching);
        let watcher = follower.watcher.as_ref().map_or_else(Weak::new, Arc::downgrade);
        let started = follower.start(Arc::downgrade(&state)).map_err(LoadError::Watch)?;
        Ok(Self { state, watcher, _watching: Some(started) })
    }

    /// Returns the current library.
    pub fn library(&self) -> Arc<Library> {
        self.state.library()
    }

    /// Waits until the library is another than `last`, or for at most `patience`, and returns the
    /// current library.
    pub fn wait(&self, last: &Arc<Library>, patience: Duration) -> Arc<Library> {
        let current = lock(&self.state.current);
        let waited = self.state.swapped.wait_timeout_while(
            current,
            patience,
            |current: &mut Arc<Library>| Arc::ptr_eq(current, last),
        );
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Returns the way in which it learns of changes.
    pub fn watching(&self) -> Watching {
        lock(&self.state.watching).clone()
    }

    /// Waits until the way of watching is another than `last`, or for at most `patience`, and
    /// returns the current one.
    pub fn wait_watching(&self, last: &Watching, patience: Duration) -> Watching {
        let watching = lock(&self.state.watching);
        let waited = self.state.switched.wait_timeout_while(
            watching,
            patience,
            |watching: &mut Watching| watching == last,
        );
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Loads everything anew and returns the library that is current from then on.
    pub fn reload(&self) -> Result<Arc<Library>, LoadError> {
        self.state.reload()
    }
}

impl Drop for LiveLibrary {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.end();
        }
    }
}

impl LiveState {
    fn new(library: Library, watching: Watching) -> Arc<Self> {
        Arc::new(Self {
            current: Mutex::new(Arc::new(library)),
            swapped: Condvar::new(),
            reloading: Mutex::default(),
            watching: Mutex::new(watching),
            switched: Condvar::new(),
        })
    }

    fn library(&self) -> Arc<Library> {
        lock(&self.current).clone()
    }

    fn reload(&self) -> Result<Arc<Library>, LoadError> {
        let mut is_reloaded = lock(&self.reloading);
        let library = self.library().reload()?;
        *is_reloaded = true;
        Ok(self.replace(library))
    }

    /// Makes a library the current one.
    fn replace(&self, library: Library) -> Arc<Library> {
        let library = Arc::new(library);
        let before = mem::replace(&mut *lock(&self.current), library.clone());
        self.swapped.notify_all();
        // Freeing a large library takes a while, so it is done after releasing `current`.
        drop(before);
        library
    }
}

/// Follows the files of a library: waits, scans, and makes a new library when something has
/// changed.
struct Follower {
    visits: Scanner,
    /// The watcher that reports when and where to scan, unless the system does not support it.
    watcher: Option<Arc<Watcher>>,
    /// The duration of the last full scan.
    scan_time: Duration,
}

impl Follower {
    /// Scans for the first time; also returns the result.
    fn new(options: &Options) -> Result<(Self, Library, Watching), LoadError> {
        let (watcher, cannot) = match Watcher::new() {
            Ok(watcher) => (Some(Arc::new(watcher)), None),
            Err(why) => (None, Some(why)),
        };
        let mut follower =
            Self { visits: Scanner::new(options)?, watcher, scan_time: Duration::ZERO };
        let (gathered, refused) = follower.scan(&TouchedFolders::all());
        let gathered = gathered.expect("whatever is seen first is new");
        let library = follower.visits.assemble(gathered, None);
        let watching = cannot.or(refused).map_or(Watching::Notified, Watching::Polling);
        Ok((follower, library, watching))
    }

    /// Runs until the sender is dropped and the watcher is stopped.
    fn start(self, state: Weak<LiveState>) -> io::Result<Sender<()>> {
        let (watching, ended) = channel::<()>();
        let name = "prowess-watch".to_owned();
        thread::Builder::new().name(name).spawn(move || self.follow(&state, &ended))?;
        Ok(watching)
    }

    fn follow(mut self, state: &Weak<LiveState>, ended: &Receiver<()>) {
        let mut rested = Instant::now();
        loop {
            let mut touched = match self.wait(rested, ended) {
                WatchEvent::Nothing => TouchedFolders::all(),
                WatchEvent::Change(touched) => touched,
                WatchEvent::End => return,
            };
            let Some(state) = state.upgrade() else { return };
            let mut is_reloaded = lock(&state.reloading);
            let started = Instant::now();
            if mem::take(&mut *is_reloaded) {
                // The current library is newer than the last scan.
                self.visits.distrust();
                touched = TouchedFolders::all();
            }
            let (gathered, cannot) = self.scan(&touched);
            if let Some(why) = cannot {
                *lock(&state.watching) = Watching::Polling(why);
                state.switched.notify_all();
            }
            if let Some(gathered) = gathered {
                state.replace(self.visits.assemble(gathered, Some(&state.library())));
            }
            // If changes never stop, scans take at most half of one core.
            rested = Instant::now() + started.elapsed();
        }
    }

    /// Waits until it is time to scan again.
    fn wait(&self, rested: Instant, ended: &Receiver<()>) -> WatchEvent {
        let Some(watcher) = &self.watcher else {
            return match ended.recv_timeout(self.pause(POLLED)) {
                Err(RecvTimeoutError::Timeout) => WatchEvent::Nothing,
                _ => WatchEvent::End,
            };
        };
        watcher.wait(self.pause(if watcher.is_shared() { SHARED } else { TOLD }), rested)
    }

    fn pause(&self, (least, times): (Duration, u32)) -> Duration {
        least.max(self.scan_time * times)
    }

    /// Scans where something has changed; also returns the reason if the system can no longer
    /// notify.
    fn scan(
        &mut self,
        touched: &TouchedFolders,
    ) -> (Option<ScanResult<ParsedFile>>, Option<String>) {
        let started = Instant::now();
        let (gathered, watched) = self.visits.scan(touched, self.watcher.as_ref());
        if touched.is_all {
            self.scan_time = started.elapsed();
        }
        let cannot = watched.err();
        // With only some of the watches, changes elsewhere would be missed.
        self.watcher.take_if(|_| cannot.is_some());
        (gathered, cannot)
    }
}
