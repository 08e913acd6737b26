//! The keeper: holds the library of the moment for everybody who asks.

use std::{
    io, mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    library::{Library, LoadError, Options, load::ParsedFile, scanner::Scanner},
    read::{
        gather::ScanResult,
        source::{TouchedFolders, WatchEvent, Watcher},
    },
};

/// How often somebody looks at what the system does not tell of, at the most, and how much longer than
/// a look the pause behind it is.
const POLLED: (Duration, u32) = (Duration::from_millis(500), 20);
/// The same for directories on which others write without a word, as over a network.
const SHARED: (Duration, u32) = (Duration::from_secs(2), 20);
/// The same where the system tells: it might not tell all.
const TOLD: (Duration, u32) = (Duration::from_secs(60), 500);

/// Holds the current library. A reload swaps it whole; whoever has the old one keeps it.
#[derive(Debug)]
pub struct LiveLibrary {
    held: Arc<LiveState>,
    watcher: Weak<Watcher>,
    /// Tells the watching thread to end, by being dropped.
    _watching: Option<Sender<()>>,
}

/// How a keeper comes to know of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watching {
    /// Not by itself: somebody asks for a reload.
    Off,
    /// The system tells of them.
    Notified,
    /// By looking again and again, because the system cannot tell; with the reason.
    Polling(String),
}

#[derive(Debug)]
struct LiveState {
    current: Mutex<Arc<Library>>,
    swapped: Condvar,
    /// Held over a reload or a look, so that what was read first does not come last; whether somebody
    /// has reloaded since the last look.
    reloading: Mutex<bool>,
    watching: Mutex<Watching>,
    switched: Condvar,
}

impl LiveLibrary {
    /// Loads the library that `options` ask for, and watches it if they say so.
    pub fn start(options: &Options) -> Result<Self, LoadError> {
        if !options.watch {
            let held = LiveState::new(Library::load(options)?, Watching::Off);
            return Ok(Self { held, watcher: Weak::new(), _watching: None });
        }
        let (follower, library, watching) = Follower::new(options)?;
        let held = LiveState::new(library, watching);
        let watcher = follower.watcher.as_ref().map_or_else(Weak::new, Arc::downgrade);
        let started = follower.start(Arc::downgrade(&held)).map_err(LoadError::Watch)?;
        Ok(Self { held, watcher, _watching: Some(started) })
    }

    /// The library as it is now.
    pub fn library(&self) -> Arc<Library> {
        self.held.library()
    }

    /// Waits until the library is another than `last`, or until `patience` is at its end, and returns
    /// the library as it is then.
    pub fn wait(&self, last: &Arc<Library>, patience: Duration) -> Arc<Library> {
        let current = locked(&self.held.current);
        let is_last = |current: &mut Arc<Library>| Arc::ptr_eq(current, last);
        let waited = self.held.swapped.wait_timeout_while(current, patience, is_last);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// How it comes to know of changes.
    pub fn watching(&self) -> Watching {
        locked(&self.held.watching).clone()
    }

    /// Waits until it comes to know of changes in another way than `last`, or until `patience` is at its
    /// end, and returns how it does then.
    pub fn wait_watching(&self, last: &Watching, patience: Duration) -> Watching {
        let watching = locked(&self.held.watching);
        let is_last = |watching: &mut Watching| watching == last;
        let waited = self.held.switched.wait_timeout_while(watching, patience, is_last);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Loads everything anew and returns what everybody sees from now on.
    pub fn reload(&self) -> Result<Arc<Library>, LoadError> {
        self.held.reload()
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
        locked(&self.current).clone()
    }

    fn reload(&self) -> Result<Arc<Library>, LoadError> {
        let mut is_reloaded = locked(&self.reloading);
        let library = self.library().reload()?;
        *is_reloaded = true;
        Ok(self.show(library))
    }

    /// Has everybody see a library from now on.
    fn show(&self, library: Library) -> Arc<Library> {
        let library = Arc::new(library);
        let before = mem::replace(&mut *locked(&self.current), library.clone());
        self.swapped.notify_all();
        // Freeing a large library takes a while, in which nobody has to wait.
        drop(before);
        library
    }
}

/// Follows the files of a library: waits, looks, and makes a new one when something is other than it was.
struct Follower {
    visits: Scanner,
    /// Who tells when to look, and where, unless the system cannot.
    watcher: Option<Arc<Watcher>>,
    /// How long the last look at everything took.
    took: Duration,
}

impl Follower {
    /// Looks for the first time; with it, what that has come to.
    fn new(options: &Options) -> Result<(Self, Library, Watching), LoadError> {
        let (watcher, cannot) = match Watcher::new() {
            Ok(watcher) => (Some(Arc::new(watcher)), None),
            Err(why) => (None, Some(why)),
        };
        let mut follower = Self { visits: Scanner::new(options)?, watcher, took: Duration::ZERO };
        let (gathered, refused) = follower.look(&TouchedFolders::all());
        let gathered = gathered.expect("whatever is seen first is new");
        let library = follower.visits.library(gathered, None);
        let watching = cannot.or(refused).map_or(Watching::Notified, Watching::Polling);
        Ok((follower, library, watching))
    }

    /// Follows until the sender is dropped and the watcher told to end.
    fn start(self, held: Weak<LiveState>) -> io::Result<Sender<()>> {
        let (watching, ended) = channel::<()>();
        let name = "prowess-watch".to_owned();
        thread::Builder::new().name(name).spawn(move || self.follow(&held, &ended))?;
        Ok(watching)
    }

    fn follow(mut self, held: &Weak<LiveState>, ended: &Receiver<()>) {
        let mut rested = Instant::now();
        loop {
            let mut touched = match self.wait(rested, ended) {
                WatchEvent::Nothing => TouchedFolders::all(),
                WatchEvent::Change(touched) => touched,
                WatchEvent::End => return,
            };
            let Some(held) = held.upgrade() else { return };
            let mut is_reloaded = locked(&held.reloading);
            let started = Instant::now();
            if mem::take(&mut *is_reloaded) {
                // What everybody sees is newer than what was seen here.
                self.visits.distrust();
                touched = TouchedFolders::all();
            }
            let (gathered, cannot) = self.look(&touched);
            if let Some(why) = cannot {
                *locked(&held.watching) = Watching::Polling(why);
                held.switched.notify_all();
            }
            if let Some(gathered) = gathered {
                held.show(self.visits.library(gathered, Some(&held.library())));
            }
            // What never stops changing takes half of one core at the most.
            rested = Instant::now() + started.elapsed();
        }
    }

    /// Waits until it is time to look again.
    fn wait(&self, rested: Instant, ended: &Receiver<()>) -> WatchEvent {
        let pause = |(least, times): (Duration, u32)| least.max(self.took * times);
        let Some(watcher) = &self.watcher else {
            return match ended.recv_timeout(pause(POLLED)) {
                Err(RecvTimeoutError::Timeout) => WatchEvent::Nothing,
                _ => WatchEvent::End,
            };
        };
        watcher.wait(pause(if watcher.is_shared() { SHARED } else { TOLD }), rested)
    }

    /// Looks where something has happened; with it, why the system cannot tell of it any more.
    fn look(
        &mut self,
        touched: &TouchedFolders,
    ) -> (Option<ScanResult<ParsedFile>>, Option<String>) {
        let started = Instant::now();
        let (gathered, watched) = self.visits.look(touched, self.watcher.as_ref());
        if touched.is_all {
            self.took = started.elapsed();
        }
        let cannot = watched.err();
        // What watches there are would only be missing elsewhere.
        self.watcher.take_if(|_| cannot.is_some());
        (gathered, cannot)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
