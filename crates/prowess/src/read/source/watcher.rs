//! Watches folders for changes with inotify. An event only says where to look again: the visit finds
//! what has changed, so that a folder moved meanwhile cannot mislead it, and a queue overflow means
//! to look everywhere.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs::File,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

use super::{LONGEST, QUIET, TouchedFolders, WatchEvent};
use crate::lock::lock;

/// The maximum number of links on a path, as in the kernel.
const LINKS: usize = 40;
/// The events about names in a folder.
const NAMES: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::DELETE).union(WatchFlags::MOVE).union(WatchFlags::ONLYDIR);
/// The events about names and file contents.
const ALL: WatchFlags = NAMES
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);
/// File systems on which other machines write without an event, by their magic numbers in the
/// kernel.
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

/// Watches the folders that were visited.
#[derive(Debug)]
pub(crate) struct Watcher {
    inotify: OwnedFd,
    /// Signalled to stop waiting.
    stop_signal: OwnedFd,
    /// Reports that something was mounted or unmounted, if the system supports it.
    mounts: Option<File>,
    table: Mutex<WatchTable>,
}

#[derive(Debug, Default)]
struct WatchTable {
    watches: HashMap<i32, Watch>,
    /// The watches of each visit, by the folder that was visited.
    visits: HashMap<Arc<Path>, Vec<i32>>,
    /// The directories, and the inode of each.
    directories: Vec<(PathBuf, Option<FolderId>)>,
    /// Whether some directory is on a file system without events for other machines.
    is_shared: bool,
    /// The error with which the system refused further watches.
    refused: Option<Errno>,
}

/// The device and the inode of a folder.
type FolderId = (u64, u64);

/// The uses of a watch on a folder.
#[derive(Debug, Default)]
struct Watch {
    /// The visits that depend on everything in it.
    visits: Vec<Arc<Path>>,
    /// The names in it that lead to a directory.
    names: Vec<OsString>,
}

/// An event that wakes a waiting thread.
enum Wakeup {
    /// The watcher was stopped.
    Stopped,
    /// Something was mounted or unmounted.
    Mount,
    /// There are file events to read.
    FileEvents,
}

/// The reason why a folder is watched.
#[derive(Clone, Copy)]
enum WatchReason<'a> {
    /// Everything in it, for a visit of this folder.
    For(&'a Path),
    /// Changes to this name.
    Name(&'a OsStr),
}

impl Watcher {
    /// Starts a watcher; returns the reason if that is not possible.
    pub(crate) fn new() -> Result<Self, String> {
        let inotify =
            inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(failure_reason)?;
        let stop_signal = eventfd(0, EventfdFlags::CLOEXEC).map_err(failure_reason)?;
        let mounts = File::open("/proc/self/mountinfo").ok();
        Ok(Self { inotify, stop_signal, mounts, table: Mutex::default() })
    }

    /// Runs visits while watching all folders that they go through, each before it is listed.
    /// Watches of a visit that is done `again` and no longer goes there are removed; without a
    /// list, those of all visits. Reports when the system has too few.
    pub(crate) fn watch_during<T>(
        &self,
        again: Option<&[PathBuf]>,
        look: impl FnOnce() -> T,
    ) -> (T, Result<(), String>) {
        self.lock_table().forget(again);
        let seen = look();
        let mut table = self.lock_table();
        table.watches.retain(|number, watch| {
            let is_wanted = !watch.visits.is_empty() || !watch.names.is_empty();
            if !is_wanted {
                // A folder that is gone has taken its watch with it.
                let _ = inotify::remove_watch(&self.inotify, *number);
            }
            is_wanted
        });
        (seen, table.refused.map_or(Ok(()), |it| Err(failure_reason(it))))
    }

    /// Watches everything in a folder, for a visit.
    pub(crate) fn watch(&self, visited: &Path, folder: &Path) {
        self.add(folder, WatchReason::For(visited));
    }

    /// Watches the path to a directory, which need not exist: each name on the path, also behind
    /// links.
    pub(crate) fn watch_path(&self, path: &Path) {
        let stat = rustix::fs::statfs(path);
        {
            let mut table = self.lock_table();
            table.is_shared |= stat.is_ok_and(|it| SHARED.contains(&(it.f_type as u32)));
            table.directories.push((path.to_owned(), folder_id(path)));
        }
        let Ok(mut left) = std::path::absolute(path) else { return };
        let (mut here, mut links) = (PathBuf::new(), 0);
        loop {
            let mut steps = left.components();
            let step = steps.next();
            let rest = steps.as_path();
            left = match step {
                Some(Component::Normal(name)) => {
                    self.add(&here, WatchReason::Name(name));
                    match std::fs::read_link(here.join(name)) {
                        Ok(target) if links < LINKS => {
                            links += 1;
                            target.join(rest)
                        }
                        _ => {
                            here.push(name);
                            rest.to_owned()
                        }
                    }
                }
                Some(Component::ParentDir) => {
                    here.pop();
                    rest.to_owned()
                }
                Some(root) => {
                    here.push(root);
                    rest.to_owned()
                }
                None => return,
            };
        }
    }

    /// Whether some changes, by other machines, cause no events.
    pub(crate) fn is_shared(&self) -> bool {
        self.lock_table().is_shared
    }

    /// Waits for a change for at most `patience`, and then for a quiet period, at least until
    /// `rested`.
    pub(crate) fn wait(&self, patience: Duration, rested: Instant) -> WatchEvent {
        let mut until = Instant::now() + patience;
        let mut longest = None;
        let mut touched = TouchedFolders::default();
        loop {
            let matters = match self.listen(until) {
                Some(Wakeup::Stopped) => return WatchEvent::End,
                Some(Wakeup::Mount) => {
                    let is_other = self.lock_table().is_elsewhere();
                    touched.is_all |= is_other;
                    is_other
                }
                Some(Wakeup::FileEvents) => self.read_events(&mut touched),
                None if longest.is_none() => return WatchEvent::Nothing,
                None => return WatchEvent::Change(touched),
            };
            if matters {
                let now = Instant::now();
                let longest = *longest.get_or_insert(now + LONGEST);
                until = (now + QUIET).min(longest).max(rested);
            }
        }
    }

    /// Stops all waiting threads.
    pub(crate) fn end(&self) {
        let _ = rustix::io::write(&self.stop_signal, &1u64.to_ne_bytes());
    }

    fn add(&self, folder: &Path, wanted: WatchReason<'_>) {
        let mut table = self.lock_table();
        if table.refused.is_some() {
            return;
        }
        let flags = if matches!(wanted, WatchReason::Name(_)) { NAMES } else { ALL };
        match inotify::add_watch(&self.inotify, folder, flags | WatchFlags::MASK_ADD) {
            Ok(number) => table.add(number, wanted),
            Err(errno @ (Errno::NOSPC | Errno::NOMEM | Errno::MFILE)) => {
                table.refused = Some(errno);
            }
            // If it does not exist or may not be read, the visit finds that too.
            Err(_) => {}
        }
    }

    /// Waits for an event; `None` at the timeout.
    fn listen(&self, until: Instant) -> Option<Wakeup> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
            let mut ears = vec![
                PollFd::new(&self.stop_signal, PollFlags::IN),
                PollFd::new(&self.inotify, PollFlags::IN),
            ];
            ears.extend(self.mounts.as_ref().map(|it| PollFd::new(it, PollFlags::PRI)));
            match poll(&mut ears, Some(&left)) {
                Ok(0) => return None,
                Ok(_) if !ears[0].revents().is_empty() => return Some(Wakeup::Stopped),
                // It is reported once, and other events can wait.
                Ok(_) if ears.get(2).is_some_and(|it| !it.revents().is_empty()) => {
                    return Some(Wakeup::Mount);
                }
                Ok(_) => return Some(Wakeup::FileEvents),
                Err(Errno::INTR) => {}
                // No more events can arrive, and nothing would notice.
                Err(_) => return Some(Wakeup::Stopped),
            }
        }
    }

    /// Reads all pending events; returns whether any of them matters.
    fn read_events(&self, touched: &mut TouchedFolders) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut events = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut matters = false;
        let mut table = self.lock_table();
        while let Ok(event) = events.next() {
            let name = event.file_name().map(|it| OsStr::from_bytes(it.to_bytes()));
            matters |= table.touch(event.wd(), event.events(), name, touched);
        }
        matters
    }

    fn lock_table(&self) -> MutexGuard<'_, WatchTable> {
        lock(&self.table)
    }
}

impl WatchTable {
    /// Removes the watches of visits to these folders, or all of them.
    fn forget(&mut self, visited: Option<&[PathBuf]>) {
        let Some(visited) = visited else {
            self.watches.values_mut().for_each(|it| *it = Watch::default());
            self.visits.clear();
            self.directories.clear();
            self.is_shared = false;
            return;
        };
        for folder in visited {
            for number in self.visits.remove(&**folder).into_iter().flatten() {
                if let Some(watch) = self.watches.get_mut(&number) {
                    watch.visits.retain(|it| **it != **folder);
                }
            }
        }
    }

    fn add(&mut self, number: i32, wanted: WatchReason<'_>) {
        let watch = self.watches.entry(number).or_default();
        match wanted {
            WatchReason::Name(name) => watch.names.push(name.to_owned()),
            WatchReason::For(visited) if watch.visits.iter().any(|it| **it == *visited) => {}
            WatchReason::For(visited) => {
                let known = self.visits.get_key_value(visited).map(|it| it.0.clone());
                let visited = known.unwrap_or_else(|| visited.into());
                watch.visits.push(visited.clone());
                self.visits.entry(visited).or_default().push(number);
            }
        }
    }

    /// Whether some directory has been replaced by another folder.
    fn is_elsewhere(&self) -> bool {
        self.directories.iter().any(|(path, was)| folder_id(path) != *was)
    }

    /// Records where something has changed; returns whether it matters.
    fn touch(
        &mut self,
        number: i32,
        events: ReadFlags,
        name: Option<&OsStr>,
        touched: &mut TouchedFolders,
    ) -> bool {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            touched.is_all = true;
            return true;
        }
        let Some(watch) = self.watches.get(&number) else { return false };
        let is_on_the_way = match name {
            Some(name) => watch.names.iter().any(|it| it == name),
            None => !watch.names.is_empty() && events.contains(ReadFlags::UNMOUNT),
        };
        touched.is_all |= is_on_the_way;
        watch.visits.iter().for_each(|it| touched.add(it, name));
        let matters = is_on_the_way || !watch.visits.is_empty();
        if events.contains(ReadFlags::IGNORED) {
            // A path that is gone is looked up anew.
            touched.is_all |= !watch.names.is_empty();
            self.watches.remove(&number);
            return true;
        }
        matters
    }
}

fn folder_id(path: &Path) -> Option<FolderId> {
    rustix::fs::stat(path).ok().map(|it| (it.st_dev as _, it.st_ino as _))
}

/// Returns why there are no events, and what would help.
fn failure_reason(errno: Errno) -> String {
    match errno {
        Errno::NOSPC => "the limit on inotify watches is reached (raise \
                         `fs.inotify.max_user_watches` with `sysctl`)"
            .to_owned(),
        Errno::MFILE => "the limit on inotify instances is reached (raise \
                         `fs.inotify.max_user_instances` with `sysctl`)"
            .to_owned(),
        errno => format!("the system cannot report them: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn watching(path: &Path) -> Watcher {
        let watcher = Watcher::new().expect("the system tells");
        let ((), table) = watcher.watch_during(None, || watcher.watch_path(path));
        table.expect("there are watches");
        watcher
    }

    #[test]
    fn only_names_on_the_way_matter() {
        let folder = tempfile::tempdir().expect("there is room");
        let watcher = watching(&folder.path().join("wanted"));
        std::fs::write(folder.path().join("other"), "x").expect("it can be written");
        assert_eq!(watcher.wait(QUIET, Instant::now()), WatchEvent::Nothing);
        std::fs::create_dir(folder.path().join("wanted")).expect("it can be made");
        assert_eq!(watcher.wait(LONG, Instant::now()), WatchEvent::Change(TouchedFolders::all()));
        watcher.end();
        assert_eq!(watcher.wait(LONG, Instant::now()), WatchEvent::End);
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
        assert_eq!(watcher.wait(LONG, Instant::now()), WatchEvent::Change(TouchedFolders::all()));
    }
}
