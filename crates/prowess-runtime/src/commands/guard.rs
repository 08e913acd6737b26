//! Files that others act on without being asked: a command must not leave anything in them.
//!
//! Where the sandbox mounts, those of the roots and above the working directory are read-only inside.
//! What it cannot keep from being written is put right once nobody is left to write. Nothing is ever
//! deleted: a person may have written it meanwhile, so it is moved to a trash, and that is said.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsString,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    ops::Bound,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use prowess_sandbox::SandboxLevel;
use rustix::io::Errno;

use super::walk::{DIRECTORIES, DirectoryWalk};
use crate::{
    change_history::ChangeHistory,
    listing::entries,
    outcome::{Outcome, OutcomeStatus},
    protected::{ResolvedPath, is_protected, place},
    repository::acted_on,
    sensitive::{self, guarded},
};

/// How much is looked through for them, the nearest first.
#[derive(Debug, Clone, Copy)]
struct Extent {
    directories: usize,
    entries: usize,
}

const GUARDED: Extent = Extent { directories: DIRECTORIES, entries: usize::MAX };
/// The same where they are only told, again and again while a server runs.
const TOLD: Extent = Extent { directories: 2_000, entries: 10_000 };
/// How many files of each are looked at, how far down, how large one can be to be put right, and how
/// large all of them.
const FILES: usize = 500;
const DEPTH: usize = 8;
const SIZE: u64 = 256 * 1024;
const TOTAL: u64 = 64 * 1024 * 1024;
/// How many links are followed.
const LINKS: usize = 1_000;

/// What is said of a run that wrote what none may write, unless a person has agreed to it.
const WROTE: &str = "protected or sensitive files were changed, and have been restored";
/// The same where not all of it could be put right.
const STAYS: &str = "protected or sensitive files were changed, and could not be restored";

/// What the protected files were before a command ran. Dropped, it puts them right.
#[derive(Debug)]
pub(crate) struct Guard {
    /// The roots, and what is above the working directory as far as a root.
    places: Vec<PathBuf>,
    /// What is protected whatever its name is.
    named: Vec<PathBuf>,
    /// Whether sensitive files are put right, too: nobody has agreed to exactly this command.
    keeps_sensitive: bool,
    trash: PathBuf,
    before: GuardedFiles,
    is_done: bool,
}

/// What was put right.
#[derive(Debug)]
pub(crate) struct Repair {
    /// Each thing that had changed, in words.
    pub(crate) said: Vec<String>,
    /// Whether all of it is as it was.
    pub(crate) is_whole: bool,
    /// Each sensitive file that has changed and was left, in words.
    pub(crate) left: Vec<String>,
}

/// What the protected files are, to tell what becomes of them. Nothing is put right.
#[derive(Debug)]
pub(crate) struct ProtectedFiles {
    places: Vec<PathBuf>,
    named: Vec<PathBuf>,
    seen: GuardedFiles,
    /// When they were first looked at, in seconds since 1970.
    since: i64,
}

/// What became of a protected file.
#[derive(Debug)]
pub(crate) struct ProtectedChange {
    pub(crate) path: PathBuf,
    /// In a word or two, such as `new`, `changed` or `removed`.
    pub(crate) what: &'static str,
    /// The protected link that leads to it, if it is protected for that alone.
    pub(crate) led_by: Option<PathBuf>,
    before: Option<File>,
    after: Option<File>,
    /// How many folders were made for it, counted from its own one upwards.
    new_folders: usize,
}

impl ProtectedFiles {
    /// Looks at the protected files in these directories and below, and at those that are named.
    pub(crate) fn new(places: Vec<PathBuf>, named: Vec<PathBuf>) -> Self {
        let seen = GuardedFiles::new(&places, &named, TOLD);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { places, named, seen, since: since.as_secs() as i64 }
    }

    /// What has become of those that agents and programs act on, since this was last asked.
    pub(crate) fn changes(&mut self) -> Vec<ProtectedChange> {
        let mut now = GuardedFiles::new(&self.places, &self.named, TOLD);
        now.look_again(&self.seen);
        let before = std::mem::replace(&mut self.seen, now);
        let after = &self.seen;
        let is_file = |it: &File| !matches!(it, File::Directory | File::Unseen);
        // What was too far away to be seen may have been there all the time.
        let is_old = |it: &File| matches!(it, File::Plain(_, stamp, _) if before.unseen.is_some() && stamp.2 < self.since);
        let mut changes = Vec::new();
        for (path, file) in after.files.iter().filter(|it| is_file(it.1)) {
            let old = before.moved(path, after);
            let is_known = old.as_deref().is_some_and(|it| before.is_unseen(it));
            let old = old.and_then(|it| before.files.get(&it));
            let is_new = old.is_none();
            if is_known
                || is_new && (is_old(file) || before.is_newly_led(path, after))
                || old.is_some_and(|it| is_same(it, file))
            {
                continue;
            }
            let what = old.map_or("new", |it| changed(it, file));
            let new_folders = if is_new { before.new_folders(path) } else { 0 };
            let led_by = after.led_by(path).or(before.led_by(path)).map(Path::to_owned);
            let (before, after) = (old.cloned(), Some(file.clone()));
            let path = path.clone();
            changes.push(ProtectedChange { path, what, led_by, before, after, new_folders });
        }
        for (path, file) in before.files.iter().filter(|it| is_file(it.1)) {
            let is_there = fs::symlink_metadata(path).is_ok();
            if is_there || !before.is_missed(path, after) {
                continue;
            }
            let led_by = before.led_by(path).map(Path::to_owned);
            let (path, before) = (path.clone(), Some(file.clone()));
            let (what, after, new_folders) = ("removed", None, 0);
            changes.push(ProtectedChange { path, what, led_by, before, after, new_folders });
        }
        let is_sensitive =
            |it: &Path| before.sensitive.contains(it) || after.sensitive.contains(it);
        changes.retain(|it| {
            let by_name = it.led_by.as_deref().unwrap_or(&it.path);
            !is_sensitive(&it.path) || sensitive::acted_on(by_name).is_some()
        });
        changes
    }
}

impl ProtectedChange {
    /// Whether something was there before, which would be lost.
    pub(crate) fn is_loss(&self) -> bool {
        self.before.is_some()
    }

    /// Keeps what the file held, and says by which time it is found; nothing where that is not known.
    pub(crate) fn keep(&self, history: &ChangeHistory) -> Option<u64> {
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
    /// What is protected by its name, and all that is in it.
    files: BTreeMap<PathBuf, File>,
    /// Where each lies that is protected by its name.
    homes: BTreeMap<Home, PathBuf>,
    /// The same the other way round.
    tops: BTreeMap<PathBuf, Home>,
    /// What is not protected, but asked about each time a tool writes it.
    sensitive: BTreeSet<PathBuf>,
    /// Targets of protected or sensitive links, which are protected for that alone. A target
    /// need not be there.
    led: BTreeMap<PathBuf, PathBuf>,
    /// How many bytes can still be kept: of what is protected, and of what is sensitive.
    room: u64,
    sensitive_room: u64,
    /// The directories that were looked into.
    directories: BTreeSet<PathBuf>,
    /// The first directory that was not looked into any more.
    unseen: Option<PathBuf>,
}

/// What tells a protected file wherever its directory is moved: that directory, and its name there.
type Home = (u64, u64, OsString);

/// What tells a file from what it was before: its size, inode, and when it was changed.
type Stamp = (u64, u64, i64, i64);

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum File {
    Directory,
    /// A directory that was not looked into.
    Unseen,
    Link(PathBuf),
    /// With its mode; without its bytes where there is no room for them.
    Plain(u32, Stamp, Option<Vec<u8>>),
    Other,
}

impl Guard {
    /// Looks at the protected files in the roots and below, and at those that are named. What has to
    /// go afterwards is moved to `trash`.
    pub(crate) fn new(
        roots: &[PathBuf],
        directory: &Path,
        mut named: Vec<PathBuf>,
        keeps_sensitive: bool,
        trash: PathBuf,
    ) -> Self {
        let inside = |it: &&Path| roots.iter().any(|root| it.starts_with(root));
        let above = directory.ancestors().take_while(inside).map(Path::to_owned);
        let places: Vec<PathBuf> = roots.iter().cloned().chain(above).collect();
        named.retain(|it| inside(&&**it) && !is_protected(it));
        let before = GuardedFiles::new(&places, &named, GUARDED);
        Self { before, places, named, keeps_sensitive, trash, is_done: false }
    }

    /// The protected files and directories in the roots and above the working directory. A link is
    /// none: what it leads to may be nothing for a command to read.
    pub(crate) fn there(&self) -> impl Iterator<Item = &Path> {
        let is_near = |it: &PathBuf| self.is_near(it) || self.named.contains(it);
        let files = self.before.files.iter().filter(move |it| is_near(it.0));
        let is_own = |it: &File| matches!(it, File::Directory | File::Unseen | File::Plain(..));
        files.filter(move |it| is_own(it.1)).map(|it| &**it.0)
    }

    /// The first directory that was not looked into.
    pub(crate) fn unseen(&self) -> Option<&Path> {
        self.before.unseen.as_deref()
    }

    /// Puts right what a run has changed, and says so in its outcome.
    pub(crate) fn put_right_after(self, outcome: &mut Outcome) {
        let trash = self.trash.clone();
        // What it was shown read-only it could not change.
        let repair = self.restore(outcome.sandbox == Some(SandboxLevel::Strong));
        if !repair.left.is_empty() && outcome.message.is_none() {
            let left = repair.left.join(", ");
            outcome.message = Some(format!("sensitive files have changed: {left}"));
            outcome.hint = Some("check each of them before other programs use it".to_owned());
        }
        if repair.said.is_empty() {
            return;
        }
        outcome.denied.extend(repair.said);
        outcome.status = if outcome.is_ok() { OutcomeStatus::Failed } else { outcome.status };
        let (message, hint) = match repair.is_whole {
            true => {
                let trash = trash.display();
                (WROTE, format!("nothing is lost: the last content is in `{trash}`"))
            }
            false => (STAYS, "check each file before other programs use it".to_owned()),
        };
        outcome.message = Some(message.to_owned());
        outcome.hint = Some(hint);
    }

    /// Puts right what has changed, and says what that was. What was [`there`](Self::there) could
    /// not be changed where it was read-only.
    pub(crate) fn restore(mut self, is_read_only: bool) -> Repair {
        self.put_right(is_read_only)
    }

    fn put_right(&mut self, is_read_only: bool) -> Repair {
        self.is_done = true;
        let after = GuardedFiles::new(&self.places, &self.named, GUARDED);
        // What is named may lie in a directory that was moved, and another in its place.
        let is_there = |it: &Path| self.before.tops.get(it) == after.tops.get(it);
        let is_safe =
            |it: &&Path| is_read_only && is_there(it) && !self.named.iter().any(|own| own == it);
        let safe: BTreeSet<&Path> = self.there().filter(is_safe).collect();
        let was_safe = |path: &Path| path.ancestors().any(|it| safe.contains(it));
        let mut repair = Repair { said: Vec::new(), is_whole: true, left: Vec::new() };
        // What cannot be put back is better left than taken away.
        let is_left = |path: &Path, old: Option<&File>| {
            let is_sensitive =
                self.before.sensitive.contains(path) || after.sensitive.contains(path);
            let has_copy = !matches!(old, Some(File::Plain(_, _, None)));
            is_sensitive && !(self.keeps_sensitive && has_copy)
        };
        let led_by = |path: &Path| {
            let link = after.led_by(path).or(self.before.led_by(path));
            link.map(|it| format!(", which `{}` leads to", it.display())).unwrap_or_default()
        };
        let mut gone: Vec<&Path> = Vec::new();
        for (path, file) in &after.files {
            let old = self.before.moved(path, &after);
            let is_known = old.as_deref().is_some_and(|it| self.before.is_unseen(it));
            let old = old.and_then(|it| self.before.files.get(&it));
            let is_done = gone.iter().any(|it| path.starts_with(it));
            let is_newly_led = old.is_none() && self.before.is_newly_led(path, &after);
            let is_same = old.is_some_and(|it| is_same(it, file));
            if is_done || is_known || is_newly_led || is_same || was_safe(path) {
                continue;
            }
            let what = if old.is_some() { "changed" } else { "written" };
            let by = led_by(path);
            if is_left(path, old) {
                repair.left.push(format!("`{}` was {what}{by}", path.display()));
                continue;
            }
            gone.push(path);
            repair.said.push(match away(path, &self.trash) {
                Ok(to) => {
                    format!("`{}` was {what}{by}: moved to `{}`", path.display(), to.display())
                }
                Err(error) => {
                    repair.is_whole = false;
                    format!("`{}` was {what}{by}, and is still there: {error}", path.display())
                }
            });
        }
        for (path, file) in &self.before.files {
            // What was not looked into this time is looked at by itself.
            let seen = || after.files.get(path).cloned().or_else(|| look(path, &mut { SIZE }));
            let now = if gone.iter().any(|it| path.starts_with(it)) { None } else { seen() };
            let is_same = now.as_ref().is_some_and(|it| is_same(it, file));
            if is_same || was_safe(path) || !self.before.is_missed(path, &after) {
                continue;
            }
            if is_left(path, Some(file)) {
                let is_gone = now.is_none();
                let said = || format!("`{}` was removed{}", path.display(), led_by(path));
                repair.left.extend(is_gone.then(said));
                continue;
            }
            repair.said.push(match restore(path, file) {
                Ok(()) => format!("`{}` is as it was", path.display()),
                Err(error) => {
                    repair.is_whole = false;
                    format!("`{}` could not be restored: {error}", path.display())
                }
            });
        }
        repair
    }

    /// Whether a path is protected by its name, in one of the places.
    fn is_near(&self, path: &Path) -> bool {
        let is_kept = self.keeps_sensitive && self.before.sensitive.contains(path);
        let place = place(path).or_else(|| path.parent().filter(|_| is_kept));
        place.is_some_and(|it| self.places.iter().any(|own| own == it))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_done {
            self.put_right(false);
        }
    }
}

impl GuardedFiles {
    /// Looks for them in these directories and below, as far as the extent goes, and at those that are
    /// named. A link is followed if it is one of them, and leads to something in these directories.
    fn new(places: &[PathBuf], named: &[PathBuf], extent: Extent) -> Self {
        let (files, homes, tops, sensitive, led, directories) = Default::default();
        let (room, sensitive_room, unseen) = (TOTAL, TOTAL, None);
        let mut seen =
            Self { files, homes, tops, sensitive, led, room, sensitive_room, directories, unseen };
        let is_sensitive = |path: &Path| {
            let inside = places.iter().filter_map(|it| path.strip_prefix(it).ok());
            let inside = inside.max_by_key(|it| it.components().count());
            guarded(inside.unwrap_or(path)).is_some()
        };
        let mut walk = DirectoryWalk::new(places.iter().cloned(), extent.directories);
        let mut count = 0;
        while count < extent.entries
            && let Some(directory) = walk.next_directory()
        {
            let is_git =
                |it: &Path| it.file_name().is_some_and(|it| it.eq_ignore_ascii_case(".git"));
            // What matters in git's own directory is protected by its name.
            let own = if is_git(&directory) { Vec::new() } else { acted_on(&directory) };
            for entry in entries(&directory) {
                count += 1;
                let path = entry.path();
                let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
                // In the place of git's own directory, a file or link leads to another one.
                let leads = is_git(&path) && !is_directory;
                if place(&path).is_some() || leads || own.contains(&path) {
                    seen.take_in(path, &directory);
                } else if !is_directory && !is_git(&directory) && is_sensitive(&path) {
                    seen.sensitive.insert(path.clone());
                    seen.take_in(path, &directory);
                } else if is_directory && !is_git(&directory) {
                    walk.enter(path);
                }
            }
            seen.directories.insert(directory);
        }
        seen.unseen = walk.unseen();
        for path in named {
            if let Some(directory) = path.parent() {
                seen.take_in(path.clone(), directory);
            }
        }
        seen.follow_links(places);
        seen
    }

    /// Takes in what the links lead to that are among them.
    fn follow_links(&mut self, places: &[PathBuf]) {
        // In the place of git's own directory, what a link leads to is found as a repository.
        let is_link = |(path, file): (&PathBuf, &File)| {
            let is_git = path.file_name().is_some_and(|it| it.eq_ignore_ascii_case(".git"));
            (matches!(file, File::Link(_)) && !is_git).then(|| path.clone())
        };
        let mut links: VecDeque<PathBuf> = self.files.iter().filter_map(is_link).collect();
        let mut left = LINKS;
        while let Some(link) = links.pop_front().filter(|_| left > 0) {
            left -= 1;
            let ResolvedPath { end, links: between } = ResolvedPath::of(&link);
            for path in between.into_iter().chain([end]) {
                let is_inside = places.iter().any(|it| path.starts_with(it) && path != *it);
                // What leads to a directory around itself would make all of it protected.
                if !is_inside || link.starts_with(&path) || self.home(&path).is_some() {
                    continue;
                }
                self.led.insert(path.clone(), link.clone());
                let known: BTreeSet<PathBuf> = self.below(&path).map(|it| it.0.clone()).collect();
                let Some(directory) = path.parent().map(Path::to_owned) else { continue };
                self.take_in(path.clone(), &directory);
                let new = self.below(&path).filter(|it| !known.contains(it.0));
                let new: Vec<(PathBuf, Option<PathBuf>)> =
                    new.map(|it| (it.0.clone(), is_link(it))).collect();
                let is_sensitive = self.sensitive.contains(&link);
                for (path, link) in new {
                    links.extend(link);
                    self.sensitive.extend(is_sensitive.then_some(path));
                }
            }
        }
    }

    /// How many directories around a new file were not there, as far as is known.
    fn new_folders(&self, path: &Path) -> usize {
        let was_there = |it: &Path| {
            let is_known = matches!(self.files.get(it), Some(File::Directory | File::Unseen));
            is_known || self.directories.contains(it) || self.is_unseen(it)
        };
        let is_inside = path.ancestors().any(|it| self.directories.contains(it));
        match self.unseen.is_none() && is_inside {
            true => path.ancestors().skip(1).take_while(|it| !was_there(it)).count(),
            false => 0,
        }
    }

    /// The files that are known at a path and in it.
    fn below<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = (&'s PathBuf, &'s File)> {
        let (from, to) = (Bound::Included(path), Bound::Unbounded);
        self.files.range::<Path, _>((from, to)).take_while(move |it| it.0.starts_with(path))
    }

    /// The link that leads to what a path is or lies in, if it is protected for that alone.
    fn led_by(&self, path: &Path) -> Option<&Path> {
        self.led.get(self.home(path)?.0).map(PathBuf::as_path)
    }

    /// Whether a path is protected only since a link leads to it: nobody knows what was there before,
    /// and the link itself is told.
    fn is_newly_led(&self, path: &Path, after: &Self) -> bool {
        let is_led = |it: &Path| self.led.contains_key(it);
        after.led_by(path).is_some() && !path.ancestors().any(is_led)
    }

    /// Looks at what was known before as well, however much there is to look through by now.
    fn look_again(&mut self, before: &Self) {
        for path in before.tops.keys() {
            if !self.tops.contains_key(path)
                && let Some(directory) = path.parent()
                && fs::symlink_metadata(path).is_ok()
            {
                self.take_in(path.clone(), directory);
            }
        }
    }

    /// Takes in what is protected by its name, with all that is in it.
    fn take_in(&mut self, path: PathBuf, directory: &Path) {
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
            let Some(mut file) = look(&path, room) else { continue };
            count += 1;
            if path.file_name().is_some_and(|it| it == "HEAD") {
                // Git writes it whenever it goes to another branch: that one is there is what counts.
                file = File::Other;
            }
            if file == File::Directory {
                if depth < DEPTH && count < FILES {
                    open.extend(entries(&path).map(|it| (it.path(), depth + 1)));
                } else {
                    file = File::Unseen;
                }
            }
            self.files.insert(path, file);
        }
    }

    /// Where that lay which is at a path after a command ran: elsewhere, if its directory was moved.
    fn moved(&self, path: &Path, after: &Self) -> Option<PathBuf> {
        let (top, home) = after.home(path)?;
        match self.homes.get(home) {
            Some(old) if old != top && fs::symlink_metadata(old).is_err() => {
                let rest = path.strip_prefix(top).ok()?;
                Some(if rest.as_os_str().is_empty() { old.clone() } else { old.join(rest) })
            }
            _ => Some(path.to_owned()),
        }
    }

    /// Whether somebody would look for a path where it was: not where its directory has gone.
    fn is_missed(&self, path: &Path, after: &Self) -> bool {
        let Some((top, home)) = self.home(path) else { return true };
        let is_moved = after.homes.get(home).is_some_and(|it| it != top);
        !is_moved && place(top).or(top.parent()).is_some_and(is_directory)
    }

    /// What is protected by its name and has this path, or is it.
    fn home<'p>(&self, path: &'p Path) -> Option<(&'p Path, &Home)> {
        path.ancestors().find_map(|it| Some((it, self.tops.get(it)?)))
    }

    /// Whether a path lies in a directory that was not looked into: nobody knows what was there.
    fn is_unseen(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|it| self.files.get(it) == Some(&File::Unseen))
    }
}

/// How a file has changed, in a word or two.
fn changed(before: &File, after: &File) -> &'static str {
    match (before, after) {
        (File::Plain(old, _, Some(a)), File::Plain(new, _, Some(b))) if a == b => {
            if new & !old & 0o111 != 0 { "made executable" } else { "mode changed" }
        }
        _ => "changed",
    }
}

/// Whether nothing has changed, as far as was looked.
fn is_same(a: &File, b: &File) -> bool {
    let is_directory = |it: &_| matches!(it, File::Directory | File::Unseen);
    match (a, b) {
        (File::Plain(a_mode, a_stamp, a), File::Plain(b_mode, b_stamp, b)) => {
            // Without the bytes of both, the time of the last change tells, which no command can set.
            let is_same = if a.is_some() && b.is_some() { a == b } else { a_stamp == b_stamp };
            a_mode == b_mode && is_same
        }
        (a, b) => a == b || is_directory(a) && is_directory(b),
    }
}

/// What is at a path; its bytes are kept as long as there is room.
fn look(path: &Path, room: &mut u64) -> Option<File> {
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

/// Moves what is at a path to a directory of its own in the trash; returns where it is.
fn away(path: &Path, trash: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(trash)?;
    let into = tempfile::Builder::new().prefix("prowess-trash-").tempdir_in(trash)?;
    let to = into.path().join(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    match fs::rename(path, &to) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::XDEV) => {
            copy(path, &to)?;
            if is_directory(path) { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        moved => moved?,
    }
    // It stays when all has gone well.
    let _ = into.keep();
    Ok(to)
}

/// Copies a file or directory; what is neither, nor a link, cannot be.
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
    if fs::symlink_metadata(parent).is_err() && place(path).is_some() {
        fs::create_dir(parent)?;
    }
    if !is_directory(parent) {
        return Err(io::Error::other("it lay in a directory that is none now"));
    }
    match file {
        File::Directory | File::Unseen => fs::create_dir(path),
        File::Link(to) => symlink(to, path),
        File::Plain(mode, _, Some(bytes)) => {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(*mode & 0o777).open(path)?;
            file.write_all(bytes)
        }
        File::Plain(_, _, None) | File::Other => Err(io::Error::other("there is no copy of it")),
    }
}
