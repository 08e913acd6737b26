//! Makes a change that was planned, as a whole or not at all.

use std::{
    collections::BTreeMap,
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use prowess::real_path;

use super::{
    disk::{Directory, Disk, InstallStep},
    error::{InstallError, InstallState},
    history::{self, InstalledChange},
    journal::{
        ChangeFolder, ChangeRecord, DONE, FileMove, JOURNAL, MOVES, Move, RECORD, finish, look,
        read_file, roll_back, write_beside,
    },
    merge::MergedContent,
    place::InstallPlace,
    plan::{Content, EntryState, InstallPlan, LocalEdits, PlannedMove, PlannedStep},
    sys,
    tree::{DiskTree, in_parallel},
};
use crate::{
    cache::{CacheError, PackageCache},
    digest::{ContentDigest, TreeFile},
    lock::{LockedSkill, TargetForm},
};

/// Installs and removes skills. As long as it exists, other processes that do so wait.
#[derive(Debug)]
pub struct Installer {
    pub(super) place: InstallPlace,
    pub(super) cache: PackageCache,
    pub(super) disk: Disk,
    recovered: Vec<RecoveredChange>,
    _lock: File,
}

/// A change of an earlier process that was interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveredChange {
    /// What it was.
    pub title: String,
    /// The project or home that it was in.
    pub root: PathBuf,
    /// What was done with it.
    pub outcome: RecoveryOutcome,
}

/// What was done with an interrupted change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryOutcome {
    /// Everything is as it was before.
    RolledBack,
    /// Everything was in place already, and the rest is done now.
    Finished,
    /// It cannot be taken back or finished now, and is tried again by the next command; the reason.
    Waiting(String),
}

/// A file that is written together with the skills: the manifest or the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReplacement {
    /// The file.
    pub path: PathBuf,
    /// What was read; `None` if there was none. If it has changed since, nothing is changed.
    pub before: Option<Vec<u8>>,
    /// What is written; `None` to remove it.
    pub after: Option<Vec<u8>>,
}

impl FileReplacement {
    /// Describes a change of a file.
    pub fn new(path: &Path, before: Option<Vec<u8>>, after: Option<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), before, after }
    }
}

/// How a change is made.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct InstallOptions<'a> {
    /// What a person would call the change, such as `prowess add anthropics/skills`.
    pub title: &'a str,
    /// Called with the number of targets that are ready, and of all; from several threads.
    pub on_progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
    /// Stops the change before anything is visible.
    pub cancelled: Option<&'a AtomicBool>,
}

impl std::fmt::Debug for InstallOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstallOptions").field("title", &self.title).finish_non_exhaustive()
    }
}

impl<'a> InstallOptions<'a> {
    /// Describes a change by what a person would call it.
    pub fn new(title: &'a str) -> Self {
        Self { title, ..Self::default() }
    }

    /// Reports progress to a function, which is called from several threads.
    pub fn with_progress(mut self, report: &'a (dyn Fn(usize, usize) + Sync)) -> Self {
        self.on_progress = Some(report);
        self
    }

    /// Stops when this becomes true.
    pub fn with_cancel(mut self, cancelled: &'a AtomicBool) -> Self {
        self.cancelled = Some(cancelled);
        self
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstallReport {
    /// The id by which it is undone; `None` if there was nothing to do.
    pub id: Option<String>,
    /// What was done with each target.
    pub steps: Vec<PlannedStep>,
    /// The skills with their targets as they are now: copies where links were not possible.
    pub skills: Vec<LockedSkill>,
    /// What could not be moved to the trash yet; the next command does it.
    pub unfinished: Option<String>,
}

impl Installer {
    /// Waits for other processes, and takes back or finishes what interrupted ones began. `on_wait`
    /// is called once if others are installing something.
    ///
    /// The manifest and the lock must be read afterwards.
    pub fn open(
        place: &InstallPlace,
        cache: &PackageCache,
        on_wait: &dyn Fn(),
    ) -> Result<Self, InstallError> {
        Self::open_with(place, cache, on_wait, Disk::default())
    }

    /// Like [`open`](Self::open), with a hook before every step that changes the disk.
    #[doc(hidden)]
    pub fn open_with_steps(
        place: &InstallPlace,
        cache: &PackageCache,
        before: impl Fn(InstallStep) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, InstallError> {
        Self::open_with(place, cache, &|| (), Disk(Some(Box::new(before))))
    }

    fn open_with(
        place: &InstallPlace,
        cache: &PackageCache,
        on_wait: &dyn Fn(),
        disk: Disk,
    ) -> Result<Self, InstallError> {
        let packages = place.state.join("packages");
        let failed = |it| InstallError::unchanged("write", packages.clone(), it);
        disk.create_private_directory(&packages).map_err(failed)?;
        // What others write there would be taken for the journal of a change of this user.
        let not_own = |it| InstallError::unchanged("use", packages.clone(), it);
        crate::sys::check_own(&packages).map_err(not_own)?;
        let mut options = sys::private_file();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(packages.join("lock")).map_err(failed)?;
        let lock = lock_within(file, place.patience, on_wait).map_err(failed)?;
        let lock = lock.ok_or(InstallError::Busy { waited: place.patience })?;
        let (place, cache) = (place.clone(), cache.clone());
        let mut installer = Self { place, cache, disk, recovered: Vec::new(), _lock: lock };
        installer.recover()?;
        Ok(installer)
    }

    /// Returns the interrupted changes of earlier processes, and what was done with them.
    pub fn recovered(&self) -> &[RecoveredChange] {
        &self.recovered
    }

    fn recover(&mut self) -> Result<(), InstallError> {
        let state = self.place.state.clone();
        let unread = |it| InstallError::unchanged("read", state.clone(), it);
        let own = real_path(&self.place.root).ok();
        // The last one first: it may build on what an earlier one has left.
        for folder in ChangeFolder::list(&state).map_err(unread)?.into_iter().rev() {
            if folder.has(RECORD) {
                continue;
            }
            let Some(read) = folder.unfinished() else {
                // It was killed before it wrote anything else.
                folder.remove(&self.disk).map_err(unfinished)?;
                continue;
            };
            let (at, record) = read.map_err(|it| unfinished((folder.path.clone(), it)))?;
            let recovered = match at {
                DONE => {
                    finish(&self.disk, &folder, &state, &record).map(|()| RecoveryOutcome::Finished)
                }
                _ => roll_back(&self.disk, &folder, &state, &record)
                    .map(|()| RecoveryOutcome::RolledBack),
            };
            let outcome = match recovered {
                Ok(outcome) => outcome,
                // Where everything is in place, more can be installed.
                Err(error) if at != DONE && Some(&record.root) == own.as_ref() => {
                    return Err(unfinished(error));
                }
                Err((path, error)) => {
                    RecoveryOutcome::Waiting(format!("{}: {error}", path.display()))
                }
            };
            let ChangeRecord { title, root, .. } = record;
            self.recovered.push(RecoveredChange { title, root, outcome });
        }
        Ok(())
    }

    /// Compares what is wanted with the lock and the disk: all skills that are to be in the lock
    /// afterwards, each with its targets.
    pub fn plan(
        &self,
        current: &[LockedSkill],
        wanted: Vec<LockedSkill>,
        edits: LocalEdits,
    ) -> Result<InstallPlan, InstallError> {
        InstallPlan::new(&self.place, &self.cache, current, wanted, edits)
    }

    /// Makes a change, with the files that go with it: `files` gets the skills as they will be in
    /// the lock. If anything fails, everything is as it was.
    pub fn apply(
        &self,
        plan: InstallPlan,
        options: &InstallOptions<'_>,
        files: impl FnOnce(&[LockedSkill]) -> Vec<FileReplacement>,
    ) -> Result<InstallReport, InstallError> {
        let InstallPlan { mut steps, moves, mut skills } = plan;
        let run = Run { installer: self, options, undoes: None };
        let (id, unfinished) = run.change(&moves, |copies| {
            let places = skills.iter().enumerate().filter(|_| !copies.is_empty());
            let places: BTreeMap<String, usize> =
                places.map(|(at, it)| (it.name.clone(), at)).collect();
            for number in copies {
                let Some(planned) = moves.get(*number) else { continue };
                let step = &mut steps[planned.step];
                step.form = TargetForm::Folder;
                if let Some(skill) = places.get(&step.skill).and_then(|it| skills.get_mut(*it))
                    && let Some(target) = skill.targets.iter_mut().find(|it| it.path == step.path)
                {
                    target.form = TargetForm::Folder;
                }
            }
            files(&skills)
        })?;
        Ok(InstallReport { id, steps, skills, unfinished })
    }

    /// Returns the changes of this place that can be undone, the last one first.
    pub fn history(&self) -> Result<Vec<InstalledChange>, InstallError> {
        history::list(&self.place)
    }

    /// Undoes a change as a whole: folders, manifest and lock. It is refused if any of them has
    /// changed since.
    pub fn undo(
        &self,
        id: &str,
        options: &InstallOptions<'_>,
    ) -> Result<InstalledChange, InstallError> {
        let (change, moves, files) = history::reverse(self, id)?;
        let run = Run { installer: self, options, undoes: Some(id.to_owned()) };
        run.change(&moves, |_| files)?;
        Ok(change)
    }
}

/// How many skills are placed before progress is reported.
const AT_ONCE: usize = 128;

/// A change that is being made.
struct Run<'a> {
    installer: &'a Installer,
    options: &'a InstallOptions<'a>,
    undoes: Option<String>,
}

impl Run<'_> {
    /// Makes a change. `files` gets the numbers of the moves that are copies instead of links. The
    /// result is the id, and what could not be moved to the trash.
    fn change(
        &self,
        moves: &[PlannedMove],
        files: impl FnOnce(&[usize]) -> Vec<FileReplacement>,
    ) -> Result<(Option<String>, Option<String>), InstallError> {
        let (mut files, mut known) = (Some(files), None);
        if moves.is_empty() {
            let listed = files.take().map(|it| it(&[])).unwrap_or_default();
            if listed.iter().all(|it| it.before == it.after) {
                return Ok((None, None));
            }
            known = Some(listed);
        }
        let files = |copies: &[usize]| match (known, files) {
            (Some(known), _) => known,
            (None, files) => files.map(|it| it(copies)).unwrap_or_default(),
        };
        let (disk, place) = (&self.installer.disk, &self.installer.place);
        let failed = |it| InstallError::unchanged("write", place.state.join("packages"), it);
        let root = real_path(&place.root)
            .map_err(|it| InstallError::unchanged("read", place.root.clone(), it))?;
        let (folder, time) = ChangeFolder::create(disk, &place.state).map_err(failed)?;
        let mut record = ChangeRecord::new(time, &root, self.options.title);
        record.undoes.clone_from(&self.undoes);
        for (number, planned) in moves.iter().enumerate() {
            let is_put = planned.new != Content::Nothing;
            let is_held = planned.old != EntryState::Absent;
            let (draft, hold) = (record.hidden_name('d', number), record.hidden_name('h', number));
            record.moves.push(Move {
                skill: planned.location.name.clone(),
                directory: planned.location.directory.clone(),
                name: planned.location.name.clone(),
                draft: is_put.then_some(draft),
                hold: is_held.then_some(hold),
                old: planned.old.clone(),
                new: EntryState::Absent,
                fate: planned.fate,
                saved: None,
            });
            let saved = record.saved_path(&folder, &place.state, number);
            let is_kept = matches!(planned.old, EntryState::Folder(_));
            record.moves[number].saved = is_kept.then_some(saved);
            if is_put {
                add_missing(&mut record.made, &planned.location.directory);
            }
        }
        if let Err(error) = self.attempt(&folder, &mut record, moves, files) {
            let state = match roll_back(disk, &folder, &place.state, &record) {
                Ok(()) => InstallState::Unchanged,
                Err(_) => InstallState::Interrupted,
            };
            return Err(error.with_state(state));
        }
        let unfinished = finish(disk, &folder, &place.state, &record).err();
        let unfinished = unfinished.map(|(path, it)| format!("{}: {it}", path.display()));
        Ok((Some(folder.id), unfinished))
    }

    fn attempt(
        &self,
        folder: &ChangeFolder,
        record: &mut ChangeRecord,
        moves: &[PlannedMove],
        files: impl FnOnce(&[usize]) -> Vec<FileReplacement>,
    ) -> Result<(), InstallError> {
        let disk = &self.installer.disk;
        self.check_cancelled()?;
        folder.write(disk, JOURNAL, record).map_err(unwritten)?;
        let mut directories: BTreeMap<PathBuf, Directory> = BTreeMap::new();
        for own in &record.moves {
            if !directories.contains_key(&own.directory) {
                let open = match own.draft {
                    Some(_) => disk.open_or_create(&own.directory),
                    None => disk.open(&own.directory),
                };
                let open = open.map_err(|it| unwritten((own.directory.clone(), it)))?;
                directories.insert(own.directory.clone(), open);
            }
        }
        let copies = self.stage_all(record, moves, &directories)?;
        for file in files(&copies) {
            if let Some(own) = plan_file(record, file)? {
                record.files.push(own);
            }
        }
        folder.write(disk, JOURNAL, record).map_err(unwritten)?;
        for own in &record.files {
            if !directories.contains_key(&own.directory) {
                let open = disk.open_or_create(&own.directory);
                let open = open.map_err(|it| unwritten((own.directory.clone(), it)))?;
                directories.insert(own.directory.clone(), open);
            }
            let path = own.directory.join(&own.name);
            if let Some(after) = &own.after {
                write_beside(disk, &own.directory.join(&own.draft), after, &path)
                    .map_err(|it| unwritten((path, it)))?;
            }
        }
        for directory in directories.values() {
            let failed = |it| unwritten((directory.path().to_owned(), it));
            directory.check().map_err(failed)?;
            disk.sync(directory).map_err(failed)?;
        }
        self.check_cancelled()?;
        folder.advance(disk, JOURNAL, MOVES).map_err(unwritten)?;
        // Removed names may be taken again.
        let (gone, put): (Vec<&Move>, Vec<&Move>) =
            record.moves.iter().partition(|it| it.draft.is_none());
        for own in gone.into_iter().chain(put) {
            if let Some(directory) = directories.get(&own.directory) {
                make_move(disk, directory, own)?;
            }
        }
        for own in &record.files {
            if let Some(directory) = directories.get(&own.directory) {
                write_file(disk, directory, own)?;
            }
        }
        for directory in directories.values() {
            disk.sync(directory).map_err(|it| unwritten((directory.path().to_owned(), it)))?;
        }
        folder.advance(disk, MOVES, DONE).map_err(unwritten)
    }

    fn check_cancelled(&self) -> Result<(), InstallError> {
        match self.options.cancelled.is_some_and(|it| it.load(Ordering::Relaxed)) {
            true => Err(InstallError::Cancelled { now: InstallState::Unchanged }),
            false => Ok(()),
        }
    }

    /// Creates all drafts, and returns the numbers of those that are copies instead of links.
    fn stage_all(
        &self,
        record: &mut ChangeRecord,
        moves: &[PlannedMove],
        directories: &BTreeMap<PathBuf, Directory>,
    ) -> Result<Vec<usize>, InstallError> {
        let mut placed = self.place_all(record, moves, directories)?;
        let done = AtomicUsize::new(placed.iter().filter(|it| it.is_some()).count());
        let failed = AtomicBool::new(false);
        // What was placed is ready.
        let ready: Vec<bool> = placed.iter().map(Option::is_some).collect();
        let stage = |number: usize| {
            if ready[number] {
                return Ok((EntryState::Absent, false));
            }
            if failed.load(Ordering::Relaxed) {
                return Err(InstallError::Cancelled { now: InstallState::Unchanged });
            }
            let staged = self.check_cancelled().and_then(|()| {
                let own = &record.moves[number];
                let (Some(draft), Some(directory)) = (&own.draft, directories.get(&own.directory))
                else {
                    return Ok((EntryState::Absent, false));
                };
                self.stage(&own.skill, &moves[number].new, directory, draft)
            });
            failed.fetch_or(staged.is_err(), Ordering::Relaxed);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(report) = self.options.on_progress {
                report(done, moves.len());
            }
            staged
        };
        // A test that fails at a step needs the same steps each time.
        let staged: Vec<_> = match self.installer.disk.0 {
            Some(_) => (0..moves.len()).map(stage).collect(),
            None => in_parallel(moves.len(), stage),
        };
        // The error that made the others stop, if there is one.
        let mut copies = Vec::new();
        let mut stopped = None;
        for (number, staged) in staged.into_iter().enumerate() {
            match staged {
                Ok((new, is_copy)) => {
                    record.moves[number].new = placed[number].take().unwrap_or(new);
                    copies.extend(is_copy.then_some(number));
                }
                Err(error @ InstallError::Cancelled { .. }) => {
                    stopped.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        stopped.map_or(Ok(copies), Err)
    }

    /// Creates all drafts that are files of the cache and nothing else, many at once.
    fn place_all(
        &self,
        record: &ChangeRecord,
        moves: &[PlannedMove],
        directories: &BTreeMap<PathBuf, Directory>,
    ) -> Result<Vec<Option<EntryState>>, InstallError> {
        let mut placed = vec![None; moves.len()];
        let mut jobs: Vec<(usize, &[TreeFile], PathBuf)> = Vec::new();
        for (number, (own, planned)) in record.moves.iter().zip(moves).enumerate() {
            if let (Some(draft), Some(directory), Content::Files(files)) =
                (&own.draft, directories.get(&own.directory), &planned.new)
            {
                jobs.push((number, files, directory.path().join(draft)));
            }
        }
        let mut done = 0;
        for jobs in jobs.chunks(AT_ONCE) {
            self.check_cancelled()?;
            for (_, _, path) in jobs {
                let failed = |it| unwritten((path.clone(), it));
                self.installer.disk.before(InstallStep::Create).map_err(failed)?;
            }
            let folders: Vec<_> = jobs.iter().map(|it| (it.1, &*it.2)).collect();
            self.installer.cache.place_all(&folders).map_err(|source| {
                let is_it = |it: &&(usize, &[TreeFile], PathBuf)| match &source {
                    CacheError::Missing(digest) => ContentDigest::of(it.1) == *digest,
                    CacheError::Io { path, .. } => path.starts_with(&it.2),
                    CacheError::InUse(_) => true,
                };
                let skill = jobs.iter().find(is_it).or(jobs.first());
                let skill = skill.map(|it| record.moves[it.0].skill.clone()).unwrap_or_default();
                InstallError::Cache { skill, now: InstallState::Unchanged, source }
            })?;
            for (number, files, _) in jobs {
                let tree = DiskTree { files: files.to_vec(), others: Vec::new() };
                placed[*number] = Some(EntryState::Folder(tree.fingerprint()));
            }
            done += jobs.len();
            if let Some(report) = self.options.on_progress {
                report(done, moves.len());
            }
        }
        Ok(placed)
    }

    /// Creates a draft; returns what it is, and whether it is a copy instead of a link.
    fn stage(
        &self,
        skill: &str,
        content: &Content,
        directory: &Directory,
        draft: &str,
    ) -> Result<(EntryState, bool), InstallError> {
        let (disk, cache) = (&self.installer.disk, &self.installer.cache);
        let path = directory.path().join(draft);
        let failed = |it| unwritten((path.clone(), it));
        match content {
            Content::Nothing => Ok((EntryState::Absent, false)),
            Content::Files(files) => {
                disk.before(InstallStep::Create).map_err(failed)?;
                cache.place(files, &path).map_err(|source| InstallError::Cache {
                    skill: skill.to_owned(),
                    now: InstallState::Unchanged,
                    source,
                })?;
                let tree = DiskTree { files: files.clone(), others: Vec::new() };
                Ok((EntryState::Folder(tree.fingerprint()), false))
            }
            Content::Merged { tree, ours, theirs } => {
                disk.before(InstallStep::Create).map_err(failed)?;
                // The cache links or copies what is unchanged; it may not be written in place.
                let new = cache.folder_of(theirs);
                std::fs::create_dir(&path).map_err(failed)?;
                for (name, content) in &tree.files {
                    let to = path.join(name);
                    if let Some(parent) = to.parent() {
                        std::fs::create_dir_all(parent).map_err(failed)?;
                    }
                    match content {
                        MergedContent::Ours => disk.copy(&ours.join(name), &to).map_err(failed)?,
                        MergedContent::Theirs(name) => {
                            let missing = || io::Error::other("it is not in the cache any more");
                            let new = new.as_ref().ok_or_else(missing).map_err(failed)?;
                            disk.copy_writable(&new.join(name), &to).map_err(failed)?;
                        }
                        MergedContent::Text(text) => {
                            let own = std::fs::metadata(ours.join(name));
                            let own = own.ok().map(|it| it.permissions());
                            disk.create_public_file(&to, text.as_bytes(), own).map_err(failed)?;
                        }
                    }
                }
                let seen = look(directory, draft).map_err(failed)?;
                Ok((seen.unwrap_or(EntryState::Absent), false))
            }
            Content::Link(target, copy) => {
                if sys::has_links() || **copy == Content::Nothing {
                    match directory.create_link(disk, target, draft) {
                        Ok(()) => return Ok((EntryState::Link(target.clone()), false)),
                        Err(error) if **copy == Content::Nothing || !is_impossible(&error) => {
                            return Err(failed(error));
                        }
                        Err(_) => {}
                    }
                }
                Ok((self.stage(skill, copy, directory, draft)?.0, true))
            }
            Content::Copy(from, fingerprint) => {
                disk.copy(from, &path).map_err(failed)?;
                match look(directory, draft).map_err(failed)? {
                    Some(EntryState::Folder(it)) if it == *fingerprint => {
                        Ok((EntryState::Folder(it), false))
                    }
                    _ => Err(InstallError::NotKept { path: from.clone() }),
                }
            }
        }
    }
}

/// Whether an error says that links cannot be created here.
fn is_impossible(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), PermissionDenied | Unsupported | InvalidInput)
}

/// Moves what was there to its hidden name, checks it, and moves the draft to the name.
fn make_move(disk: &Disk, directory: &Directory, own: &Move) -> Result<(), InstallError> {
    let path = directory.path().join(&own.name);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => changed_meanwhile(&path),
        _ => unwritten((path.clone(), error)),
    };
    if let Some(hold) = &own.hold {
        directory.rename(disk, &own.name, hold).map_err(failed)?;
        // What was changed before it was moved is noticed here, and moved back.
        if look(directory, hold).map_err(failed)?.as_ref() != Some(&own.old) {
            return Err(changed_meanwhile(&path));
        }
    }
    match &own.draft {
        Some(draft) => directory.rename(disk, draft, &own.name).map_err(failed),
        None => Ok(()),
    }
}

fn write_file(disk: &Disk, directory: &Directory, own: &FileMove) -> Result<(), InstallError> {
    let path = directory.path().join(&own.name);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => changed_meanwhile(&path),
        _ => unwritten((path.clone(), error)),
    };
    if read_file(directory.path(), &own.name).map_err(failed)? != own.before {
        return Err(changed_meanwhile(&path));
    }
    match (&own.before, &own.after) {
        (_, None) => directory.remove_file(disk, &own.name).map_err(failed),
        (None, Some(_)) => directory.rename(disk, &own.draft, &own.name).map_err(failed),
        (Some(_), Some(_)) => {
            let exchanged = directory.exchange(disk, &own.draft, &own.name).map_err(failed)?;
            let replaced = read_file(directory.path(), &own.draft).map_err(failed)?;
            // Somebody wrote it since it was read above; that is moved back.
            match exchanged && replaced != own.before {
                true => Err(changed_meanwhile(&path)),
                false => Ok(()),
            }
        }
    }
}

/// Plans how a file is written; `None` if it stays as it is. A link is written where it leads.
fn plan_file(
    record: &mut ChangeRecord,
    file: FileReplacement,
) -> Result<Option<FileMove>, InstallError> {
    let FileReplacement { path, before, after } = file;
    let failed = |it| InstallError::unchanged("read", path.clone(), it);
    let real = match std::fs::symlink_metadata(&path) {
        Ok(_) => real_path(&path).map_err(failed)?,
        Err(_) => {
            let parent = path.parent().unwrap_or(Path::new("."));
            let name = path.file_name().unwrap_or_default();
            let mut missing = Vec::new();
            let mut existing = parent;
            while std::fs::symlink_metadata(existing).is_err() {
                let (Some(above), Some(name)) = (existing.parent(), existing.file_name()) else {
                    break;
                };
                missing.push(name);
                existing = above;
            }
            let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
            let mut real = real_path(existing).map_err(failed)?;
            real.extend(missing.into_iter().rev());
            add_missing(&mut record.made, &real);
            real.join(name)
        }
    };
    let (Some(directory), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    };
    let name = name.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    if read_file(directory, name).map_err(failed)? != before {
        return Err(changed_meanwhile(&path));
    }
    if before == after {
        return Ok(None);
    }
    let draft = record.hidden_name('f', record.files.len());
    let (directory, name) = (directory.to_owned(), name.to_owned());
    Ok(Some(FileMove { directory, name, draft, before, after }))
}

/// Adds the directories that do not exist above and including a path, outermost first.
fn add_missing(made: &mut Vec<PathBuf>, directory: &Path) {
    let missing = directory.ancestors().take_while(|it| std::fs::symlink_metadata(it).is_err());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    missing.retain(|it| !made.contains(it));
    made.extend(missing);
}

fn changed_meanwhile(path: &Path) -> InstallError {
    InstallError::ChangedMeanwhile { path: path.to_owned(), now: InstallState::Unchanged }
}

fn unwritten((path, source): (PathBuf, io::Error)) -> InstallError {
    InstallError::unchanged("write", path, source)
}

fn unfinished((path, source): (PathBuf, io::Error)) -> InstallError {
    InstallError::Unfinished { path, source }
}

/// Locks a file; `None` when others do not release it in time.
fn lock_within(file: File, timeout: Duration, on_wait: &dyn Fn()) -> io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => return Ok(Some(file)),
        // Some file systems have no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
            return Ok(Some(file));
        }
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => {}
    }
    on_wait();
    // A blocking lock is queued by the system, whereas polling may starve. After the timeout, the
    // thread releases the lock as soon as it gets it.
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || sender.send(file.lock().map(|()| file)))?;
    receiver.recv_timeout(timeout).ok().transpose()
}
