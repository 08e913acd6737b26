//! The keeper: holds the library of the moment for everybody who asks.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    library::{Library, LoadError, Options},
    load::{Fingerprint, fingerprint},
    source::{Heard, Watcher},
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
pub struct Keeper {
    held: Arc<Held>,
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
    Told,
    /// By looking again and again, because the system cannot tell; with the reason.
    Polling(String),
}

#[derive(Debug)]
struct Held {
    current: Mutex<Arc<Library>>,
    swapped: Condvar,
    /// Held over a reload, so that what was read first does not come last.
    reloading: Mutex<()>,
    watching: Mutex<Watching>,
}

impl Keeper {
    /// Loads the library that `options` ask for, and watches it if they say so.
    pub fn start(options: &Options) -> Result<Self, LoadError> {
        let mut watching = Watching::Off;
        // What changes while the library is loaded for the first time must not be missed.
        let follower = options.watch.then(|| Follower::new(options, &mut watching));
        let held = Arc::new(Held {
            current: Mutex::new(Arc::new(Library::load(options)?)),
            swapped: Condvar::new(),
            reloading: Mutex::default(),
            watching: Mutex::new(watching),
        });
        let mut keeper = Self { held, watcher: Weak::new(), _watching: None };
        if let Some(follower) = follower {
            keeper.watcher = follower.watcher.as_ref().map_or_else(Weak::new, Arc::downgrade);
            let started = follower.start(Arc::downgrade(&keeper.held)).map_err(LoadError::Watch)?;
            keeper._watching = Some(started);
        }
        Ok(keeper)
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

    /// Loads everything anew and returns what everybody sees from now on.
    pub fn reload(&self) -> Result<Arc<Library>, LoadError> {
        self.held.reload()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.end();
        }
    }
}

impl Held {
    fn library(&self) -> Arc<Library> {
        locked(&self.current).clone()
    }

    fn reload(&self) -> Result<Arc<Library>, LoadError> {
        let _one_at_a_time = locked(&self.reloading);
        let library = Arc::new(self.library().reload()?);
        let before = std::mem::replace(&mut *locked(&self.current), library.clone());
        self.swapped.notify_all();
        // Freeing a large library takes a while, in which nobody has to wait.
        drop(before);
        Ok(library)
    }
}

/// Follows the files of a library: waits, looks, and has it reloaded when something is other than it was.
struct Follower {
    options: Options,
    /// Who tells when to look, unless the system cannot.
    watcher: Option<Arc<Watcher>>,
    seen: Fingerprint,
    /// How long the last look took.
    took: Duration,
}

impl Follower {
    /// Looks for the first time.
    fn new(options: &Options, watching: &mut Watching) -> Self {
        let (options, watcher) = (options.clone(), None);
        let mut follower = Self { options, watcher, seen: 0, took: Duration::ZERO };
        *watching = match Watcher::new() {
            Ok(watcher) => {
                follower.watcher = Some(Arc::new(watcher));
                Watching::Told
            }
            Err(why) => Watching::Polling(why),
        };
        let (seen, cannot) = follower.look();
        follower.seen = seen;
        if let Some(why) = cannot {
            *watching = Watching::Polling(why);
        }
        follower
    }

    /// Follows until the sender is dropped and the watcher told to end.
    fn start(self, held: Weak<Held>) -> io::Result<Sender<()>> {
        let (watching, ended) = channel::<()>();
        let name = "prowess-watch".to_owned();
        thread::Builder::new().name(name).spawn(move || self.follow(&held, &ended))?;
        Ok(watching)
    }

    fn follow(mut self, held: &Weak<Held>, ended: &Receiver<()>) {
        let mut rested = Instant::now();
        while self.wait(rested, ended) != Heard::End {
            let started = Instant::now();
            let (now, cannot) = self.look();
            let Some(held) = held.upgrade() else { return };
            if let Some(why) = cannot {
                *locked(&held.watching) = Watching::Polling(why);
            }
            // Without directories there is nothing that could have changed.
            if now != self.seen && held.reload().is_ok() {
                self.seen = now;
            }
            // What never stops changing takes half of one core at the most.
            rested = Instant::now() + started.elapsed();
        }
    }

    /// Waits until it is time to look again.
    fn wait(&self, rested: Instant, ended: &Receiver<()>) -> Heard {
        let pause = |(least, times): (Duration, u32)| least.max(self.took * times);
        let Some(watcher) = &self.watcher else {
            return match ended.recv_timeout(pause(POLLED)) {
                Err(RecvTimeoutError::Timeout) => Heard::Nothing,
                _ => Heard::End,
            };
        };
        watcher.wait(pause(if watcher.is_shared() { SHARED } else { TOLD }), rested)
    }

    /// Looks at all files; with it, why the system cannot tell of them any more.
    fn look(&mut self) -> (Fingerprint, Option<String>) {
        let started = Instant::now();
        let fingerprint = || fingerprint(&self.options, self.watcher.as_ref());
        let (seen, watched) = match &self.watcher {
            Some(watcher) => watcher.during(fingerprint),
            None => (fingerprint(), Ok(())),
        };
        self.took = started.elapsed();
        let cannot = watched.err();
        // What watches there are would only be missing elsewhere.
        self.watcher.take_if(|_| cannot.is_some());
        (seen, cannot)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
