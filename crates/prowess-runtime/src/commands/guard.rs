//! Protects files that other programs act on automatically from changes by a command.
//!
//! If the sandbox mounts, those in the roots and above the working directory are read-only inside.
//! Changes that it cannot prevent are reverted once the run has ended. Nothing is ever deleted: a
//! person may have written it meanwhile, so it is moved to a trash, and reported.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsString,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    ops::Bound,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use prowess_sandbox::SandboxLevel;

use super::walk::{DIRECTORIES, DirectoryWalk};
use crate::sys::{
    MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, is_other_device, symlink,
};
use crate::{
    change_history::ChangeHistory,
    listing::entries,
    outcome::{Outcome, OutcomeStatus},
    protected::{ResolvedPath, is_named, is_protected, protected_in},
    repository::files_git_acts_on,
    sensitive::{why_acted_on, why_guarded},
};

/// Limits on the search for them, the nearest first.
#[derive(Debug, Clone, Copy)]
struct Extent {
    directories: usize,
    entries: usize,
}

const GUARDED: Extent = Extent { directories: DIRECTORIES, entries: usize::MAX };
/// The limits if changes are only reported, repeatedly while a server runs.
const REPORTED: Extent = Extent { directories: 2_000, entries: 10_000 };
/// The limits on the number of files in each, on their depth, on the size of a restorable file, and
/// on the size of all of them.
const FILES: usize = 500;
const DEPTH: usize = 8;
const SIZE: u64 = 256 * 1024;
const TOTAL: u64 = 64 * 1024 * 1024;
/// The maximum number of followed links.
const LINKS: usize = 1_000;

/// The message on a run that changed protected files, unless a person has approved it.
const RESTORED: &str = "protected or sensitive files were changed, and have been restored";
/// The message if not everything could be restored.
const NOT_RESTORED: &str = "protected or sensitive files were changed, and could not be restored";

/// A snapshot of the protected files before a command runs. Restores them when dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    /// The roots, and the parents of the working directory up to a root.
    places: Vec<PathBuf>,
    /// Paths that are protected regardless of their names.
    named: Vec<PathBuf>,
    /// Whether sensitive files are restored, too: nobody has approved this exact command.
    keeps_sensitive: bool,
    trash: PathBuf,
    before: GuardedFiles,
    is_done: bool,
}

/// The result of a restoration.
#[derive(Debug)]
pub(crate) struct Repair {
    /// A description of each change.
    pub(crate) changes: Vec<String>,
    /// Whether everything was restored.
    pub(crate) is_whole: bool,
    /// A description of each sensitive file that changed and was not restored.
    pub(crate) left: Vec<String>,
}

/// A snapshot of the protected files, to report changes. Nothing is restored.
#[derive(Debug)]
pub(crate) struct ProtectedFiles {
    places: Vec<PathBuf>,
    named: Vec<PathBuf>,
    /// Those of the last call.
    known: GuardedFiles,
    /// The time of the first snapshot, in seconds since 1970.
    since: i64,
}

/// A change of a protected file.
#[derive(Debug)]
pub(crate) struct ProtectedChange {
    pub(crate) path: PathBuf,
    /// The kind of change, such as `new`, `changed` or `removed`.
    pub(crate) what: &'static str,
    /// The protected link that leads to it, if it is protected only because of that.
    pub(crate) link: Option<PathBuf>,
    before: Option<File>,
    after: Option<File>,
    /// The number of parent folders that were created for it.
    new_folders: usize,
}

impl ProtectedFiles {
    /// Takes a snapshot of the protected files in these directories and below, and of the named
    /// ones.
    pub(crate) fn new(places: Vec<PathBuf>, named: Vec<PathBuf>) -> Self {
        let known = GuardedFiles::new(&places, &named, REPORTED);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { places, named, known, since: since.as_secs() as i64 }
    }

    /// Returns the changes of files that agents and programs act on, since the last call.
    pub(crate) fn changes(&mut self) -> Vec<ProtectedChange> {
        let mut now = GuardedFiles::new(&self.places, &self.named, REPORTED);
        now.add_known(&self.known);
        let before = std::mem::replace(&mut self.known, now);
        let after = &self.known;
        let mut changes = Vec::new();
        for (path, file) in after.files.iter().filter(|it| !it.1.is_directory()) {
            let old = before.previous_path(path, after);
            let is_known = old.as_deref().is_some_and(|it| before.is_unsearched(it));
            let old = old.and_then(|it| before.files.get(&it));
            let is_new = old.is_none();
            // A file outside of the limits may have existed before.
            let is_old = before.unsearched.is_some()
                && matches!(file, File::Plain(_, stamp, _) if stamp.2 < self.since);
            if is_known
                || is_new && (is_old || before.is_newly_linked(path, after))
                || old.is_some_and(|it| is_same(it, file))
            {
                continue;
            }
            let what = old.map_or("new", |it| describe_change(it, file));
            let new_folders = if is_new { before.new_folders(path) } else { 0 };
            let link = after.link_to(path).or(before.link_to(path)).map(Path::to_owned);
            let (before, after) = (old.cloned(), Some(file.clone()));
            let path = path.clone();
            changes.push(ProtectedChange { path, what, link, before, after, new_folders });
        }
        for (path, file) in before.files.iter().filter(|it| !it.1.is_directory()) {
            let exists = fs::symlink_metadata(path).is_ok();
            if exists || !before.is_missing(path, after) {
                continue;
            }
            let link = before.link_to(path).map(Path::to_owned);
            let (path, before) = (path.clone(), Some(file.clone()));
            let (what, after, new_folders) = ("removed", None, 0);
            changes.push(ProtectedChange { path, what, link, before, after, new_folders });
        }
        changes.retain(|it| {
            let is_sensitive =
                before.sensitive.contains(&it.path) || after.sensitive.contains(&it.path);
            let by_name = it.link.as_deref().unwrap_or(&it.path);
            !is_sensitive || why_acted_on(by_name).is_some()
        });
        changes
    }
}

impl ProtectedChange {
    /// Whether a previous file would be lost.
    pub(crate) fn is_loss(&self) -> bool {
        self.before.is_some()
    }

    /// Adds the previous content to the history, and returns its time there; `None` if it is
    /// unknown.
    pub(crate) fn save(&self, history: &ChangeHistory) -> Option<u64> {
        let before = match &self.before {
            None => None,
            Some(File::Plain(mode, _, Some(bytes))) => Some((&**bytes, *mode)),
            Some(_) => return None,
        };
        let after = match &self.after {
            None => &[][..],
            Some(File::Plain(_, _, Some(bytes))) => bytes,
            Some(_) => return None,
        };
        history.keep_with_folders(&self.path, before, after, self.new_folders).ok()
    }
}

/// The protected files of some directories.
#[derive(Debug)]
struct GuardedFiles {
    /// Files protected by their names, with all their contents.
    files: BTreeMap<PathBuf, File>,
    /// The current paths of those protected by their names.
    homes: BTreeMap<Home, PathBuf>,
    /// The reverse mapping.
    tops: BTreeMap<PathBuf, Home>,
    /// Files that are not protected, but require approval for each write by a tool.
    sensitive: BTreeSet<PathBuf>,
    /// Targets of protected or sensitive links, which are protected only because of that. A target
    /// need not exist.
    link_targets: BTreeMap<PathBuf, PathBuf>,
    /// The number of bytes that can still be saved: of protected files, and of sensitive ones.
    room: u64,
    sensitive_room: u64,
    /// The searched directories.
    directories: BTreeSet<PathBuf>,
    /// The first directory that was not searched, because there are too many.
    unsearched: Option<PathBuf>,
}

/// Identifies a protected file even if its directory is moved: that directory, and its name there.
type Home = (u64, u64, OsString);

/// Detects a change of a file: its size, inode, and time of the last change.
type Stamp = (u64, u64, i64, i64);

/// The entry at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum File {
    Directory,
    /// A directory that was not searched.
    Unsearched,
    Link(PathBuf),
    /// With its mode; without its bytes if they exceed the limit.
    Plain(u32, Stamp, Option<Vec<u8>>),
    Other,
}

impl File {
    fn is_directory(&self) -> bool {
        matches!(self, Self::Directory | Self::Unsearched)
    }
}

impl Guard {
    /// Takes a snapshot of the protected files in the roots and below, and of the named ones.
    /// Removed files are moved to `trash`.
    pub(crate) fn new(
        roots: &[PathBuf],
        directory: &Path,
        mut named: Vec<PathBuf>,
        keeps_sensitive: bool,
        trash: PathBuf,
    ) -> Self {
        let above = directory.ancestors().take_while(|it| is_inside(it, roots)).map(Path::to_owned);
        let places: Vec<PathBuf> = roots.iter().cloned().chain(above).collect();
        named.retain(|it| is_inside(it, roots) && !is_protected(it));
        let before = GuardedFiles::new(&places, &named, GUARDED);
        Self { before, places, named, keeps_sensitive, trash, is_done: false }
    }

    /// Returns the protected files and directories in the roots and above the working directory.
    /// Links are not included: a command may not be permitted to read the target.
    pub(crate) fn protected_paths(&self) -> impl Iterator<Item = &Path> {
        let files = self.before.files.iter();
        files
            .filter(|(path, file)| {
                !matches!(file, File::Link(_) | File::Other)
                    && (self.is_near(path) || self.named.contains(path))
            })
            .map(|it| &**it.0)
    }

    /// Returns the first directory that was not searched.
    pub(crate) fn first_unsearched(&self) -> Option<&Path> {
        self.before.unsearched.as_deref()
    }

    /// Restores files that a run has changed, and reports that in its outcome.
    pub(crate) fn restore_after_run(self, outcome: &mut Outcome) {
        let trash = self.trash.clone();
        // Files mounted read-only could not be changed.
        let repair = self.restore(outcome.sandbox == Some(SandboxLevel::Strong));
        if !repair.left.is_empty() && outcome.message.is_none() {
            let left = repair.left.join(", ");
            outcome.message = Some(format!("sensitive files have changed: {left}"));
            outcome.hint = Some("check each of them before other programs use it".to_owned());
        }
        if repair.changes.is_empty() {
            return;
        }
        outcome.denied.extend(repair.changes);
        outcome.status = if outcome.is_ok() { OutcomeStatus::Failed } else { outcome.status };
        let (message, hint) = match repair.is_whole {
            true => {
                let trash = trash.display();
                (RESTORED, format!("nothing is lost: the last content is in `{trash}`"))
            }
            false => (NOT_RESTORED, "check each file before other programs use it".to_owned()),
        };
        outcome.message = Some(message.to_owned());
        outcome.hint = Some(hint);
    }

    /// Restores changed files, and reports them. The [`protected_paths`](Self::protected_paths)
    /// could not be changed if they were read-only.
    pub(crate) fn restore(mut self, is_read_only: bool) -> Repair {
        self.restore_changes(is_read_only)
    }

    fn restore_changes(&mut self, is_read_only: bool) -> Repair {
        self.is_done = true;
        let after = GuardedFiles::new(&self.places, &self.named, GUARDED);
        let safe: BTreeSet<&Path> = self
            .protected_paths()
            .filter(|it| {
                // A named file may be in a directory that was moved, and replaced by another.
                is_read_only
                    && self.before.tops.get(*it) == after.tops.get(*it)
                    && !self.named.iter().any(|own| own == it)
            })
            .collect();
        let was_safe = |path: &Path| path.ancestors().any(|it| safe.contains(it));
        let mut repair = Repair { changes: Vec::new(), is_whole: true, left: Vec::new() };
        let mut gone: Vec<&Path> = Vec::new();
        for (path, file) in &after.files {
            let old = self.before.previous_path(path, &after);
            let is_known = old.as_deref().is_some_and(|it| self.before.is_unsearched(it));
            let old = old.and_then(|it| self.before.files.get(&it));
            let is_done = gone.iter().any(|it| path.starts_with(it));
            let is_newly_linked = old.is_none() && self.before.is_newly_linked(path, &after);
            let is_same = old.is_some_and(|it| is_same(it, file));
            if is_done || is_known || is_newly_linked || is_same || was_safe(path) {
                continue;
            }
            let by = self.describe_link(path, &after);
            if self.is_left(path, old, &after) {
                let what = if old.is_some() { "changed" } else { "written" };
                repair.left.push(format!("`{}` was {what}{by}", path.display()));
                continue;
            }
            let what = if old.is_some() { "changing" } else { "writing" };
            let what = format!("{what} `{}`{by}", path.display());
            gone.push(path);
            repair.changes.push(match move_to_trash(path, &self.trash) {
                Ok(to) => format!("{what}: it was moved to `{}`", to.display()),
                Err(error) => {
                    repair.is_whole = false;
                    format!("{what}, but it is still there: {error}")
                }
            });
        }
        for (path, file) in &self.before.files {
            let now = match gone.iter().any(|it| path.starts_with(it)) {
                true => None,
                // Files outside of the searched directories are checked individually.
                false => after.files.get(path).cloned().or_else(|| read_entry(path, &mut { SIZE })),
            };
            let is_same = now.as_ref().is_some_and(|it| is_same(it, file));
            if is_same || was_safe(path) || !self.before.is_missing(path, &after) {
                continue;
            }
            if self.is_left(path, Some(file), &after) {
                if now.is_none() {
                    let by = self.describe_link(path, &after);
                    repair.left.push(format!("`{}` was removed{by}", path.display()));
                }
                continue;
            }
            repair.changes.push(match restore(path, file) {
                Ok(()) => format!("changing `{}`: it was restored", path.display()),
                Err(error) => {
                    repair.is_whole = false;
                    format!("changing `{}`, but it could not be restored: {error}", path.display())
                }
            });
        }
        repair
    }

    /// Whether a changed file is only reported: a sensitive one that may change, or that could not
    /// be restored if it was removed.
    fn is_left(&self, path: &Path, old: Option<&File>, after: &GuardedFiles) -> bool {
        let is_sensitive = self.before.sensitive.contains(path) || after.sensitive.contains(path);
        let has_copy = !matches!(old, Some(File::Plain(_, _, None)));
        is_sensitive && !(self.keeps_sensitive && has_copy)
    }

    /// Returns a phrase with the link because of which a path is protected, to follow it.
    fn describe_link(&self, path: &Path, after: &GuardedFiles) -> String {
        let link = after.link_to(path).or(self.before.link_to(path));
        link.map(|it| format!(" (linked from `{}`)", it.display())).unwrap_or_default()
    }

    /// Whether a path is protected by its name, in one of the places.
    fn is_near(&self, path: &Path) -> bool {
        let is_kept = self.keeps_sensitive && self.before.sensitive.contains(path);
        let place = protected_in(path).or_else(|| path.parent().filter(|_| is_kept));
        place.is_some_and(|it| self.places.iter().any(|own| own == it))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_done {
            self.restore_changes(false);
        }
    }
}

impl GuardedFiles {
    /// Searches these directories and below within the limits, and adds the named files. A
    /// protected link is followed if its target is in these directories.
    fn new(places: &[PathBuf], named: &[PathBuf], extent: Extent) -> Self {
        let (files, homes, tops, sensitive, link_targets, directories) = Default::default();
        let (room, sensitive_room, unsearched) = (TOTAL, TOTAL, None);
        let mut found = Self {
            files,
            homes,
            tops,
            sensitive,
            link_targets,
            room,
            sensitive_room,
            directories,
            unsearched,
        };
        let mut walk = DirectoryWalk::new(places.iter().cloned(), extent.directories);
        let mut count = 0;
        while count < extent.entries
            && let Some(directory) = walk.next_directory()
        {
            let is_git = is_git_name(&directory);
            // Files of git's own directory are protected by their names.
            let own = if is_git { Vec::new() } else { files_git_acts_on(&directory) };
            for entry in entries(&directory) {
                count += 1;
                let path = entry.path();
                let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
                // In place of git's own directory, a file or link leads to another one.
                let leads = is_git_name(&path) && !is_directory;
                if protected_in(&path).is_some() || leads || own.contains(&path) {
                    found.add_protected(path, &directory);
                } else if !is_directory && !is_git && is_sensitive(&path, places) {
                    found.sensitive.insert(path.clone());
                    found.add_protected(path, &directory);
                } else if is_directory && !is_git {
                    walk.enter(path);
                }
            }
            found.directories.insert(directory);
        }
        found.unsearched = walk.first_unsearched();
        for path in named {
            if let Some(directory) = path.parent() {
                found.add_protected(path.clone(), directory);
            }
        }
        found.follow_links(places);
        found
    }

    /// Adds the targets of links among them.
    fn follow_links(&mut self, places: &[PathBuf]) {
        let mut links: VecDeque<PathBuf> = self.files.iter().filter_map(link_path).collect();
        let mut left = LINKS;
        while let Some(link) = links.pop_front().filter(|_| left > 0) {
            left -= 1;
            let ResolvedPath { end, links: between } = ResolvedPath::of(&link);
            for path in between.into_iter().chain([end]) {
                let is_inside = places.iter().any(|it| path.starts_with(it) && path != *it);
                // A link to a directory around itself would protect everything in it.
                if !is_inside || link.starts_with(&path) || self.home(&path).is_some() {
                    continue;
                }
                self.link_targets.insert(path.clone(), link.clone());
                let known: BTreeSet<PathBuf> =
                    self.files_below(&path).map(|it| it.0.clone()).collect();
                let Some(directory) = path.parent().map(Path::to_owned) else { continue };
                self.add_protected(path.clone(), &directory);
                let new = self.files_below(&path).filter(|it| !known.contains(it.0));
                let new: Vec<(PathBuf, Option<PathBuf>)> =
                    new.map(|it| (it.0.clone(), link_path(it))).collect();
                let is_sensitive = self.sensitive.contains(&link);
                for (path, link) in new {
                    links.extend(link);
                    self.sensitive.extend(is_sensitive.then_some(path));
                }
            }
        }
    }

    /// Returns the number of parent directories of a new file that did not exist before.
    fn new_folders(&self, path: &Path) -> usize {
        let is_inside = path.ancestors().any(|it| self.directories.contains(it));
        match self.unsearched.is_none() && is_inside {
            true => path.ancestors().skip(1).take_while(|it| !self.has_directory(it)).count(),
            false => 0,
        }
    }

    fn has_directory(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(File::is_directory)
            || self.directories.contains(path)
            || self.is_unsearched(path)
    }

    /// Returns the known files at a path and in it.
    fn files_below<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = (&'s PathBuf, &'s File)> {
        let (from, to) = (Bound::Included(path), Bound::Unbounded);
        self.files.range::<Path, _>((from, to)).take_while(move |it| it.0.starts_with(path))
    }

    /// Returns the link that leads to a path or its parent, if it is protected only because of
    /// that.
    fn link_to(&self, path: &Path) -> Option<&Path> {
        self.link_targets.get(self.home(path)?.0).map(PathBuf::as_path)
    }

    /// Whether a path is protected only because of a new link: its previous content is unknown, and
    /// the link itself is reported.
    fn is_newly_linked(&self, path: &Path, after: &Self) -> bool {
        after.link_to(path).is_some()
            && !path.ancestors().any(|it: &Path| self.link_targets.contains_key(it))
    }

    /// Checks the previously known files as well, regardless of the limits.
    fn add_known(&mut self, before: &Self) {
        for path in before.tops.keys() {
            if !self.tops.contains_key(path)
                && let Some(directory) = path.parent()
                && fs::symlink_metadata(path).is_ok()
            {
                self.add_protected(path.clone(), directory);
            }
        }
    }

    /// Adds an entry protected by its name, with all its contents.
    fn add_protected(&mut self, path: PathBuf, directory: &Path) {
        if let (Ok(home), Some(name)) = (fs::metadata(directory), path.file_name()) {
            let home = (home.dev(), home.ino(), name.to_owned());
            self.homes.insert(home.clone(), path.clone());
            self.tops.insert(path.clone(), home);
        }
        let mut open = vec![(path, 0)];
        let mut count = 0;
        while let Some((path, depth)) = open.pop() {
            let room = match self.sensitive.contains(&path) {
                true => &mut self.sensitive_room,
                false => &mut self.room,
            };
            let Some(mut file) = read_entry(&path, room) else { continue };
            count += 1;
            if path.file_name().is_some_and(|it| it == "HEAD") {
                // Git writes it at every checkout: only its existence matters.
                file = File::Other;
            }
            if file == File::Directory {
                if depth < DEPTH && count < FILES {
                    open.extend(entries(&path).map(|it| (it.path(), depth + 1)));
                } else {
                    file = File::Unsearched;
                }
            }
            self.files.insert(path, file);
        }
    }

    /// Returns the previous path of a file, if its directory was moved.
    fn previous_path(&self, path: &Path, after: &Self) -> Option<PathBuf> {
        let (top, home) = after.home(path)?;
        match self.homes.get(home) {
            Some(old) if old != top && fs::symlink_metadata(old).is_err() => {
                let rest = path.strip_prefix(top).ok()?;
                Some(if rest.as_os_str().is_empty() { old.clone() } else { old.join(rest) })
            }
            _ => Some(path.to_owned()),
        }
    }

    /// Whether a path is missing from its place, rather than moved with its directory.
    fn is_missing(&self, path: &Path, after: &Self) -> bool {
        let Some((top, home)) = self.home(path) else { return true };
        let is_moved = after.homes.get(home).is_some_and(|it| it != top);
        !is_moved && protected_in(top).or(top.parent()).is_some_and(is_directory)
    }

    /// Returns the entry protected by its name at a path or above.
    fn home<'p>(&self, path: &'p Path) -> Option<(&'p Path, &Home)> {
        path.ancestors().find_map(|it| Some((it, self.tops.get(it)?)))
    }

    /// Whether a path is in a directory that was not searched, so that its previous content is
    /// unknown.
    fn is_unsearched(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|it| self.files.get(it) == Some(&File::Unsearched))
    }
}

fn is_inside(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|it| path.starts_with(it))
}

fn is_git_name(path: &Path) -> bool {
    path.file_name().is_some_and(|it| is_named(it, ".git"))
}

/// Whether each write of a tool to a file in these directories requires approval.
fn is_sensitive(path: &Path, places: &[PathBuf]) -> bool {
    let inside = places.iter().filter_map(|it| path.strip_prefix(it).ok());
    let inside = inside.max_by_key(|it| it.components().count());
    why_guarded(inside.unwrap_or(path)).is_some()
}

/// Returns the path of a link to follow. The target of one in place of git's own directory is found
/// as a repository.
fn link_path((path, file): (&PathBuf, &File)) -> Option<PathBuf> {
    (matches!(file, File::Link(_)) && !is_git_name(path)).then(|| path.clone())
}

/// Describes the change of a file in a word or two.
fn describe_change(before: &File, after: &File) -> &'static str {
    match (before, after) {
        (File::Plain(old, _, Some(a)), File::Plain(new, _, Some(b))) if a == b => {
            if new & !old & 0o111 != 0 { "made executable" } else { "mode changed" }
        }
        _ => "changed",
    }
}

/// Whether nothing has changed, as far as known.
fn is_same(a: &File, b: &File) -> bool {
    match (a, b) {
        (File::Plain(a_mode, a_stamp, a), File::Plain(b_mode, b_stamp, b)) => {
            // Without the bytes of both, the time of the last change decides, which no command can
            // set.
            let is_same = if a.is_some() && b.is_some() { a == b } else { a_stamp == b_stamp };
            a_mode == b_mode && is_same
        }
        (a, b) => a == b || a.is_directory() && b.is_directory(),
    }
}

/// Reads the entry at a path, with its bytes as long as there is room.
fn read_entry(path: &Path, room: &mut u64) -> Option<File> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(if metadata.is_dir() {
        File::Directory
    } else if metadata.is_symlink() {
        File::Link(fs::read_link(path).unwrap_or_default())
    } else if !metadata.is_file() {
        File::Other
    } else {
        let stamp = (metadata.len(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec());
        let has_room = metadata.len() <= SIZE.min(*room);
        *room -= if has_room { metadata.len() } else { 0 };
        let bytes = has_room.then(|| fs::read(path).ok()).flatten();
        File::Plain(metadata.permissions().mode(), stamp, bytes)
    })
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}

/// Moves the entry at a path to its own directory in the trash; returns the new path.
fn move_to_trash(path: &Path, trash: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(trash)?;
    let into = tempfile::Builder::new().prefix("prowess-trash-").tempdir_in(trash)?;
    let to = into.path().join(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    match fs::rename(path, &to) {
        Err(error) if is_other_device(&error) => {
            copy(path, &to)?;
            if is_directory(path) { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        moved => moved?,
    }
    // It is kept on success.
    let _ = into.keep();
    Ok(to)
}

/// Copies a file, a directory or a link; other kinds are an error.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if metadata.is_file() {
        return fs::copy(from, to).map(drop);
    }
    if !metadata.is_dir() {
        return Err(io::Error::other("it is not a regular file"));
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn restore(path: &Path, file: &File) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    if fs::symlink_metadata(parent).is_err() && protected_in(path).is_some() {
        fs::create_dir(parent)?;
    }
    if !is_directory(parent) {
        return Err(io::Error::other("its parent is no longer a directory"));
    }
    match file {
        File::Directory | File::Unsearched => fs::create_dir(path),
        File::Link(to) => symlink(to, path),
        File::Plain(mode, _, Some(bytes)) => {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(*mode & 0o777).open(path)?;
            file.write_all(bytes)
        }
        File::Plain(_, _, None) | File::Other => Err(io::Error::other("there is no copy of it")),
    }
}
