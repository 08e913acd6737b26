//! Watches folders for changes where the system is not Linux: with FSEvents on macOS,
//! `ReadDirectoryChangesW` on Windows and kqueue on BSD, through the crate `notify`. As on Linux, an
//! event only says where to look again.
//!
//! These services report changes anywhere below a folder, so each directory is watched once,
//! together with all folders that links inside it may lead to. Whether a directory itself comes,
//! goes, or is replaced, by a link or a mount for example, is not reported, but checked every
//! second.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, event::ModifyKind};

use super::{LONGEST, Mark, QUIET, TouchedFolders, WatchEvent, reason, sys};
use crate::lock::lock;

/// The interval of checking whether the directories are still the same folders.
const CHECKED: Duration = Duration::from_secs(1);
/// The number of changed entries above which some events may be lost, as Windows does not say so.
const BURST: usize = 64;
/// The time after such a burst at which everything is looked at once more.
const AFTER_BURST: Duration = Duration::from_secs(2);

/// Watches the folders that were visited.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// Never used while `table` is locked: it may wait for a callback, which locks it too.
    service: Mutex<RecommendedWatcher>,
    shared: Arc<WatchState>,
}

/// The state that the service's callback updates.
#[derive(Debug, Default)]
struct WatchState {
    table: Mutex<WatchTable>,
    /// Notified when something that matters has changed, and at the end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WatchTable {
    /// The directories, and the folder at each path when it was last looked at.
    directories: Vec<(PathBuf, Option<FolderId>)>,
    /// The folders that are watched with all that is below them; `None` if the watch may have ended.
    trees: HashMap<PathBuf, Option<FolderId>>,
    /// The visits that depend on everything in a folder, by its path with all links resolved.
    visits: HashMap<PathBuf, Vec<Arc<Path>>>,
    /// The folders of each visit, by the folder that was visited.
    folders: HashMap<Arc<Path>, Vec<PathBuf>>,
    touched: TouchedFolders,
    /// Whether something has been touched since it was last asked.
    is_new: bool,
    /// When everything is to be looked at once more.
    burst: Option<Instant>,
    /// Whether some directory is on a file system without events for other machines.
    is_shared: bool,
    /// Why the system refused to watch a directory.
    refused: Option<String>,
    is_ended: bool,
}

/// A folder at a path: its path with all links resolved, what the file system calls it, and the
/// time at which it was created, because its number may be used again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FolderId {
    real: PathBuf,
    number: (u64, u64),
    created: Option<SystemTime>,
}

impl Watcher {
    /// Starts a watcher; returns the reason if that is not possible.
    pub(crate) fn new() -> Result<Self, String> {
        let shared = Arc::new(WatchState::default());
        let callback = shared.clone();
        let service = notify::recommended_watcher(move |event| {
            if lock(&callback.table).receive(event) {
                callback.changed.notify_all();
            }
        });
        Ok(Self { service: Mutex::new(service.map_err(failure_reason)?), shared })
    }

    /// Runs visits while watching all folders that they go through, each before it is listed.
    /// Visits that are done `again` are forgotten before; without a list, all of them. Reports when
    /// the system refuses.
    pub(crate) fn watch_during<T>(
        &self,
        again: Option<&[PathBuf]>,
        look: impl FnOnce() -> T,
    ) -> (T, Result<(), String>) {
        self.lock_table().forget(again);
        let seen = look();
        if again.is_none() {
            self.remove_unused();
        }
        (seen, self.lock_table().refused.clone().map_or(Ok(()), Err))
    }

    /// Watches everything in a folder, for a visit.
    pub(crate) fn watch(&self, visited: &Path, folder: &Path) {
        self.lock_table().add(visited, folder);
    }

    /// Watches the path to a directory, which need not exist.
    pub(crate) fn watch_path(&self, path: &Path) {
        let id = folder_id(path);
        let is_watched = {
            let mut table = self.lock_table();
            table.directories.push((path.to_owned(), id.clone()));
            table.is_shared |= id.as_ref().is_some_and(|it| sys::is_shared(&it.real));
            id.as_ref().map(|it| (table.trees.get(&it.real).cloned(), it.real.clone()))
        };
        let Some((known, real)) = is_watched else { return };
        if known.as_ref() == Some(&id) {
            return;
        }
        let mut service = lock(&self.service);
        if known.is_some() {
            // The folder that was watched is gone, and perhaps its watch too.
            let _ = notify::Watcher::unwatch(&mut *service, &real);
        }
        let watched = notify::Watcher::watch(&mut *service, &real, RecursiveMode::Recursive);
        let mut table = self.lock_table();
        match watched {
            Ok(()) => drop(table.trees.insert(real, id)),
            // If it may not be read, or is gone again, the visit finds that too.
            Err(_) if fs::read_dir(&real).is_err() => drop(table.trees.remove(&real)),
            Err(error) => table.refused = Some(failure_reason(error)),
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
        let (mut longest, mut check) = (None, Instant::now() + CHECKED);
        let mut table = self.lock_table();
        loop {
            let now = Instant::now();
            if table.is_ended {
                return WatchEvent::End;
            }
            if now >= check {
                check = now + CHECKED;
                let directories = table.directories.clone();
                drop(table);
                let is_elsewhere = directories.iter().any(|(path, was)| folder_id(path) != *was);
                table = self.lock_table();
                if is_elsewhere || table.burst.take_if(|it| *it <= now).is_some() {
                    table.touch_all();
                }
            }
            if std::mem::take(&mut table.is_new) {
                let longest = *longest.get_or_insert(now + LONGEST);
                until = (now + QUIET).min(longest).max(rested);
            } else if now >= until {
                return match longest {
                    None => WatchEvent::Nothing,
                    Some(_) => WatchEvent::Change(table.take_touched(now)),
                };
            }
            let left = until.min(check).saturating_duration_since(now);
            let waited = self.shared.changed.wait_timeout(table, left);
            table = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Stops all waiting threads.
    pub(crate) fn end(&self) {
        self.lock_table().is_ended = true;
        self.shared.changed.notify_all();
    }

    /// Removes the watches of folders that are no longer at the path of a directory.
    fn remove_unused(&self) {
        let unused: Vec<PathBuf> = {
            let table = self.lock_table();
            let is_used = |path: &Path| {
                table.directories.iter().any(|it| it.1.as_ref().is_some_and(|it| it.real == path))
            };
            table.trees.keys().filter(|it| !is_used(it)).cloned().collect()
        };
        for path in &unused {
            // A folder that is gone may have taken its watch with it.
            let _ = notify::Watcher::unwatch(&mut *lock(&self.service), path);
        }
        if !unused.is_empty() {
            let mut table = self.lock_table();
            table.trees.retain(|path, _| !unused.contains(path));
            // FSEvents drops what it has not reported yet whenever a watch is removed.
            table.touch_all();
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, WatchTable> {
        lock(&self.shared.table)
    }
}

impl WatchTable {
    /// Forgets the visits to these folders, or all of them and the directories.
    fn forget(&mut self, visited: Option<&[PathBuf]>) {
        let Some(visited) = visited else {
            self.visits.clear();
            self.folders.clear();
            self.directories.clear();
            self.is_shared = false;
            return;
        };
        for visited in visited {
            for folder in self.folders.remove(&**visited).into_iter().flatten() {
                if let Some(visits) = self.visits.get_mut(&folder) {
                    visits.retain(|it| **it != **visited);
                    if visits.is_empty() {
                        self.visits.remove(&folder);
                    }
                }
            }
        }
    }

    fn add(&mut self, visited: &Path, folder: &Path) {
        let folder = self.resolve(folder);
        let visits = self.visits.entry(folder.clone()).or_default();
        if visits.iter().any(|it| **it == *visited) {
            return;
        }
        let known = self.folders.get_key_value(visited).map(|it| it.0.clone());
        let visited = known.unwrap_or_else(|| visited.into());
        visits.push(visited.clone());
        self.folders.entry(visited).or_default().push(folder);
    }

    /// Returns the path with all links resolved of a folder that is reached from its directory
    /// without a link, or that has none in its path.
    fn resolve(&self, folder: &Path) -> PathBuf {
        let below = self.directories.iter().filter_map(|(path, id)| {
            Some((path.as_os_str().len(), &id.as_ref()?.real, folder.strip_prefix(path).ok()?))
        });
        match below.max_by_key(|it| it.0) {
            Some((_, real, rest)) if rest.as_os_str().is_empty() => real.clone(),
            Some((_, real, rest)) => real.join(rest),
            None => folder.to_owned(),
        }
    }

    /// Records where something has changed; returns whether it matters.
    fn receive(&mut self, event: notify::Result<Event>) -> bool {
        let Ok(event) = event else {
            self.trees.values_mut().for_each(|it| *it = None);
            self.touch_all();
            return true;
        };
        if event.kind.is_access() {
            return false;
        }
        if event.need_rescan() {
            self.touch_all();
            return true;
        }
        let is_gone = matches!(
            event.kind,
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) | EventKind::Other
        );
        let mut matters = false;
        for path in &event.paths {
            if is_gone && let Some(tree) = self.trees.get_mut(path) {
                *tree = None;
                self.touched.is_all = true;
                matters = true;
            }
            let parent = path.parent().and_then(|it| self.visits.get(it));
            let itself = self.visits.get(path);
            for visit in parent.into_iter().flatten() {
                self.touched.add(visit, path.file_name());
            }
            for visit in itself.into_iter().flatten() {
                self.touched.add(visit, None);
            }
            matters |= parent.is_some() || itself.is_some();
        }
        self.is_new |= matters;
        matters
    }

    fn touch_all(&mut self) {
        (self.touched.is_all, self.is_new) = (true, true);
    }

    /// Returns what was touched; after a burst everything, then and once more later.
    fn take_touched(&mut self, now: Instant) -> TouchedFolders {
        let mut touched = std::mem::take(&mut self.touched);
        if touched.entries.len() > BURST {
            touched.is_all = true;
            self.burst = Some(now + AFTER_BURST);
        }
        touched
    }
}

/// Returns the folder at a path, which may be a link.
fn folder_id(path: &Path) -> Option<FolderId> {
    let real = fs::canonicalize(path).ok()?;
    let metadata = fs::metadata(&real).ok().filter(fs::Metadata::is_dir)?;
    let Mark { device, inode, .. } = sys::state(&real).ok()?.mark;
    Some(FolderId { real, number: (device, inode), created: metadata.created().ok() })
}

/// Returns why there are no events.
fn failure_reason(error: notify::Error) -> String {
    match error.kind {
        ErrorKind::MaxFilesWatch => "the system's limit on watched files is reached".to_owned(),
        ErrorKind::Io(error) => format!("the system cannot report them: {}", reason(&error)),
        _ => {
            let error = io::Error::other(error.to_string());
            format!("the system cannot report them: {}", reason(&error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn watching(path: &Path) -> Watcher {
        let watcher = Watcher::new().expect("the system reports changes");
        let ((), refused) = watcher.watch_during(None, || watcher.watch_path(path));
        refused.expect("the folder can be watched");
        watcher
    }

    #[test]
    fn a_directory_that_comes_is_a_change_anywhere() {
        let folder = tempfile::tempdir().expect("there is room");
        let watcher = watching(&folder.path().join("wanted"));
        std::fs::create_dir(folder.path().join("wanted")).expect("it can be made");
        assert_eq!(watcher.wait(LONG, Instant::now()), WatchEvent::Change(TouchedFolders::all()));
        watcher.end();
        assert_eq!(watcher.wait(LONG, Instant::now()), WatchEvent::End);
    }

    #[test]
    fn only_visited_folders_matter() {
        let folder = tempfile::tempdir().expect("there is room");
        let [seen, other] = ["seen", "other"].map(|it| folder.path().join(it));
        [&seen, &other].iter().for_each(|it| std::fs::create_dir(it).expect("it can be made"));
        let watcher = watching(folder.path());
        watcher.watch(&seen, &seen);
        std::fs::write(other.join("file"), "x").expect("it can be written");
        std::fs::write(seen.join("file"), "x").expect("it can be written");
        let mut touched = TouchedFolders::default();
        touched.add(&Arc::from(&*seen), Some("file".as_ref()));
        assert_eq!(watcher.wait(LONG, Instant::now()), WatchEvent::Change(touched));
    }

    #[test]
    fn lost_events_are_a_change_anywhere() {
        let mut table = WatchTable::default();
        let lost = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        assert!(table.receive(Ok(lost)));
        assert!(table.touched.is_all);
        let mut table = WatchTable::default();
        assert!(table.receive(Err(notify::Error::generic("it broke"))));
        assert!(table.touched.is_all);
    }

    #[test]
    fn after_a_burst_everything_is_looked_at_again() {
        let mut table = WatchTable::default();
        table.add(Path::new("/a"), Path::new("/a"));
        for number in 0..=BURST {
            let event = Event::new(EventKind::Any).add_path(format!("/a/{number}").into());
            assert!(table.receive(Ok(event)));
        }
        assert!(table.take_touched(Instant::now()).is_all);
        assert!(table.burst.is_some());
    }
}
