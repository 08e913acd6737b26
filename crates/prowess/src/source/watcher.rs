//! Hears from the system when to look again. What has changed only a look tells: a queue that ran
//! over, or a folder that was moved meanwhile, cannot lead it astray.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

use super::Heard;

/// How long it has to be quiet before somebody looks, so that one look sees all that belongs together.
const QUIET: Duration = Duration::from_millis(100);
/// How long a change waits at the most where it is never quiet.
const LONGEST: Duration = Duration::from_secs(2);
/// What happens to names in a folder.
const NAMES: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::DELETE).union(WatchFlags::MOVE).union(WatchFlags::ONLYDIR);
/// What happens to files as well.
const ALL: WatchFlags = NAMES
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);
/// File systems on which others write without a word, as the kernel numbers them.
const SHARED: &[u32] = &[
    0x5346_414F, // AFS
    0x6B41_4653, // AFS of the kernel
    0x00C3_6400, // Ceph
    0xFF53_4D42, // CIFS
    0x7375_7245, // Coda
    0x6573_5546, // FUSE, also of virtual machines
    0x0000_6969, // NFS
    0x0102_1997, // Plan 9, also of virtual machines
    0x0000_517B, // SMB
    0xFE53_4D42, // SMB 2
    0x786F_4256, // shared folders of VirtualBox
];

/// Hears from the system that something has changed in the folders that the last look went through.
#[derive(Debug)]
pub(crate) struct Watcher {
    inotify: OwnedFd,
    /// Rung when nobody wants to hear any more.
    bell: OwnedFd,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    watches: HashMap<i32, Watch>,
    /// The number of the look.
    look: u64,
    /// Whether some directory lies where others write without a word.
    is_shared: bool,
    /// Why the system gives no further watches.
    refused: Option<Errno>,
}

/// What is wanted of a folder, and which look wanted it last.
#[derive(Debug)]
struct Watch {
    look: u64,
    /// The names that matter; all of them where there is no list.
    names: Option<Vec<OsString>>,
}

impl Watcher {
    /// Begins to listen; where that cannot be done, says why.
    pub(crate) fn new() -> Result<Self, String> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(why)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC).map_err(why)?;
        Ok(Self { inotify, bell, watched: Mutex::default() })
    }

    /// Has a look watch all folders that it goes through, each before it is listed, and none but
    /// those; where there are too many, says so.
    pub(crate) fn during<T>(&self, look: impl FnOnce() -> T) -> (T, Result<(), String>) {
        {
            let mut watched = self.watched();
            watched.look += 1;
            watched.is_shared = false;
        }
        let seen = look();
        let mut watched = self.watched();
        let last = watched.look;
        watched.watches.retain(|number, watch| {
            let is_wanted = watch.look == last;
            if !is_wanted {
                // A folder that is gone has taken its watch with it.
                let _ = inotify::remove_watch(&self.inotify, *number);
            }
            is_wanted
        });
        (seen, watched.refused.map_or(Ok(()), |it| Err(why(it))))
    }

    /// Watches all that happens in a folder.
    pub(crate) fn watch(&self, folder: &Path) {
        self.add(folder, None);
    }

    /// Watches all that leads to a directory, which need not be there: each name on the way.
    pub(crate) fn watch_way(&self, path: &Path) {
        let real = std::fs::canonicalize(path).ok();
        let stat = rustix::fs::statfs(path);
        self.watched().is_shared |= stat.is_ok_and(|it| SHARED.contains(&(it.f_type as u32)));
        let spelt = std::path::absolute(path).ok().filter(|it| Some(it) != real.as_ref());
        for way in spelt.iter().chain(&real) {
            for step in way.ancestors() {
                if let (Some(folder), Some(name)) = (step.parent(), step.file_name()) {
                    self.add(folder, Some(name));
                }
            }
        }
    }

    /// Whether the system does not tell of all that others do.
    pub(crate) fn is_shared(&self) -> bool {
        self.watched().is_shared
    }

    /// Waits for a change, and then until it is quiet, but not longer than `patience` for the first
    /// and not less than until `rested` for the second.
    pub(crate) fn wait(&self, patience: Duration, rested: Instant) -> Heard {
        let mut until = Instant::now() + patience;
        let mut longest = None;
        loop {
            match self.is_ringing(until) {
                Some(true) => return Heard::End,
                None if longest.is_none() => return Heard::Nothing,
                None => return Heard::Change,
                Some(false) => {}
            }
            if self.take() {
                let now = Instant::now();
                let longest = *longest.get_or_insert(now + LONGEST);
                until = (now + QUIET).min(longest).max(rested);
            }
        }
    }

    /// Has everybody who waits go home.
    pub(crate) fn end(&self) {
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn add(&self, folder: &Path, name: Option<&OsStr>) {
        let mut watched = self.watched();
        if watched.refused.is_some() {
            return;
        }
        let flags = if name.is_some() { NAMES } else { ALL } | WatchFlags::MASK_ADD;
        match inotify::add_watch(&self.inotify, folder, flags) {
            Ok(number) => {
                let look = watched.look;
                let fresh = || Watch { look: 0, names: Some(Vec::new()) };
                let watch = watched.watches.entry(number).or_insert_with(fresh);
                if watch.look != look {
                    *watch = Watch { look, ..fresh() };
                }
                match (name, &mut watch.names) {
                    (Some(name), Some(names)) => names.push(name.to_owned()),
                    (Some(_), None) => {}
                    (None, names) => *names = None,
                }
            }
            Err(errno @ (Errno::NOSPC | Errno::NOMEM | Errno::MFILE)) => {
                watched.refused = Some(errno);
            }
            // What is not there, or may not be looked at, the look has found out too.
            Err(_) => {}
        }
    }

    /// Waits until there is something to hear: whether that is the bell; nothing when it took too long.
    fn is_ringing(&self, until: Instant) -> Option<bool> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
            let mut ears =
                [PollFd::new(&self.bell, PollFlags::IN), PollFd::new(&self.inotify, PollFlags::IN)];
            match poll(&mut ears, Some(&left)) {
                Ok(0) => return None,
                Ok(_) => return Some(!ears[0].revents().is_empty()),
                Err(Errno::INTR) => {}
                // Nothing can be heard any more, and nobody would notice.
                Err(_) => return Some(true),
            }
        }
    }

    /// Takes in all that has been told; whether any of it matters.
    fn take(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut told = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut matters = false;
        while let Ok(event) = told.next() {
            let name = event.file_name().map(|it| OsStr::from_bytes(it.to_bytes()));
            matters |= self.matters(event.wd(), event.events(), name);
        }
        matters
    }

    fn matters(&self, number: i32, events: ReadFlags, name: Option<&OsStr>) -> bool {
        let mut watched = self.watched();
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            return true;
        }
        if events.contains(ReadFlags::IGNORED) {
            return watched.watches.remove(&number).is_some();
        }
        let watch = watched.watches.get(&number);
        watch.is_some_and(|it| match (&it.names, name) {
            (None, _) => true,
            (Some(names), Some(name)) => names.iter().any(|it| it == name),
            (Some(_), None) => events.contains(ReadFlags::UNMOUNT),
        })
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the system tells nothing, and what would help.
fn why(errno: Errno) -> String {
    match errno {
        Errno::NOSPC => "the system gives no more watches; `fs.inotify.max_user_watches` says how \
                         many there are"
            .to_owned(),
        Errno::MFILE => {
            "too many programs watch already; `fs.inotify.max_user_instances` says how \
                         many may"
                .to_owned()
        }
        errno => format!("the system cannot tell of them: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn watching(path: &Path) -> Watcher {
        let watcher = Watcher::new().expect("the system tells");
        let ((), watched) = watcher.during(|| watcher.watch_way(path));
        watched.expect("there are watches");
        watcher
    }

    #[test]
    fn only_names_on_the_way_matter() {
        let folder = tempfile::tempdir().expect("there is room");
        let watcher = watching(&folder.path().join("wanted"));
        std::fs::write(folder.path().join("other"), "x").expect("it can be written");
        assert_eq!(watcher.wait(QUIET, Instant::now()), Heard::Nothing);
        std::fs::create_dir(folder.path().join("wanted")).expect("it can be made");
        assert_eq!(watcher.wait(LONG, Instant::now()), Heard::Change);
        watcher.end();
        assert_eq!(watcher.wait(LONG, Instant::now()), Heard::End);
    }

    #[test]
    fn a_queue_that_ran_over_is_a_change() {
        let folder = tempfile::tempdir().expect("there is room");
        let watcher = watching(&folder.path().join("wanted"));
        let most = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events");
        let most: usize = most.ok().and_then(|it| it.trim().parse().ok()).unwrap_or(16_384);
        for number in 0..=most / 2 {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, "").expect("it can be written");
            std::fs::remove_file(&path).expect("it can be removed");
        }
        assert_eq!(watcher.wait(LONG, Instant::now()), Heard::Change);
    }
}
