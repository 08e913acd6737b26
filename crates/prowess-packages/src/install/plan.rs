//! Compares what is wanted with the lock and the disk. Nothing is changed here.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use prowess::real_path;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::{
    conflict::InstallConflict,
    disk::{Directory, Disk, EntryKind},
    error::InstallError,
    merge::{MergedFile, MergedTree, Versions, merge},
    place::{InstallPlace, Location, LocationError, Locator},
    sys,
    tree::{DiskTree, TreeDifference, read_trees},
};
use crate::{
    cache::PackageCache,
    digest::TreeFile,
    lock::{LockedSkill, TargetForm},
    source::SourceKind,
};

/// What to do with installed skills that the user changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LocalEdits {
    /// They are conflicts where a change would touch them.
    #[default]
    Refuse,
    /// They are merged with the new version; the folder as it was goes to the trash.
    Merge,
    /// They go to the trash, and the skill is installed anew.
    SetAside,
}

/// What is done with a target of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallAction {
    /// It is created.
    Create,
    /// It is replaced; it is as it was installed.
    Replace,
    /// It stays, as it is what is wanted already.
    Keep,
    /// It stays with the user's changes, and no other version is wanted.
    KeepEdited,
    /// The user's changes are merged with the new version; the folder as it was goes to the trash.
    Merge,
    /// The user's changes go to the trash, and the skill is installed anew or removed.
    SetAside,
    /// It is removed.
    Remove,
    /// It is gone or somebody else's, and only the lock forgets it.
    Forget,
}

/// What is planned for a target of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedStep {
    /// The name that the skill is installed under.
    pub skill: String,
    /// The folder, as the lock has it.
    pub path: String,
    /// What is done.
    pub action: InstallAction,
    /// Whether it is a folder or a link.
    pub form: TargetForm,
    /// What is done with the files that the user changed.
    pub merged: Vec<MergedFile>,
}

/// A change that has no conflicts.
#[derive(Debug)]
pub struct InstallPlan {
    pub(super) steps: Vec<PlannedStep>,
    /// The moves, each with the number of its step.
    pub(super) moves: Vec<PlannedMove>,
    pub(super) skills: Vec<LockedSkill>,
}

/// What is behind a name, for noticing that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EntryState {
    Absent,
    /// A folder, by the fingerprint of its contents.
    Folder(String),
    /// A link, by its target.
    Link(PathBuf),
}

/// What becomes of what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    /// It goes to the history of changes.
    History,
    /// It goes to the trash.
    Trash,
}

/// What is put somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    /// Files of the cache.
    Files(Vec<TreeFile>),
    Merged {
        tree: MergedTree,
        ours: PathBuf,
        theirs: Vec<TreeFile>,
    },
    /// A link, and what is put there where links do not work.
    Link(PathBuf, Box<Self>),
    /// A copy of a folder.
    Copy(PathBuf, String),
}

#[derive(Debug)]
pub(super) struct PlannedMove {
    pub(super) step: usize,
    pub(super) location: Location,
    pub(super) old: EntryState,
    pub(super) new: Content,
    pub(super) fate: Fate,
}

impl InstallPlan {
    /// Returns what is done with each target, by the name of the skill.
    pub fn steps(&self) -> &[PlannedStep] {
        &self.steps
    }

    /// Whether nothing on the disk has to change, except for the manifest and the lock.
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// Compares the skills of the lock with all that are wanted afterwards, each with its targets.
    pub(super) fn new(
        place: &InstallPlace,
        cache: &PackageCache,
        current: &[LockedSkill],
        wanted: Vec<LockedSkill>,
        edits: LocalEdits,
    ) -> Result<Self, InstallError> {
        let mut planner = Planner {
            place,
            locator: place.locator(),
            cache,
            edits,
            conflicts: Vec::new(),
            disk: BTreeMap::new(),
            steps: Vec::new(),
            moves: Vec::new(),
        };
        planner.check_names(&wanted);
        let old: BTreeMap<&str, &LockedSkill> = current.iter().map(|it| (&*it.name, it)).collect();
        let new: BTreeMap<&str, &LockedSkill> = wanted.iter().map(|it| (&*it.name, it)).collect();
        let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
        let mut located = Vec::new();
        for name in names {
            let (old, new) = (old.get(name).copied(), new.get(name).copied());
            let [old_at, new_at] = [old, new].map(|it| planner.locate(it));
            located.push((old, old_at?, new, new_at?));
        }
        planner.refuse_conflicts()?;
        let owned = located.iter().flat_map(|it| &it.1).map(|it| it.location.path()).collect();
        planner.look(located.iter().flat_map(|it| it.1.iter().chain(&it.3)), &owned)?;
        for (old, old_at, new, new_at) in &located {
            planner.plan_skill(*old, old_at, *new, new_at);
        }
        planner.check_similar_names()?;
        planner.refuse_conflicts()?;
        let Planner { steps, moves, .. } = planner;
        Ok(Self { steps, moves, skills: wanted })
    }
}

struct Planner<'a> {
    place: &'a InstallPlace,
    locator: Locator<'a>,
    cache: &'a PackageCache,
    edits: LocalEdits,
    conflicts: Vec<InstallConflict>,
    /// What is at each location.
    disk: BTreeMap<PathBuf, State>,
    steps: Vec<PlannedStep>,
    moves: Vec<PlannedMove>,
}

/// What is at a location.
#[derive(Debug, Clone)]
enum State {
    Absent,
    Folder(DiskTree),
    Link(PathBuf),
    Other(&'static str),
}

impl State {
    fn seen(&self) -> EntryState {
        match self {
            Self::Folder(tree) => EntryState::Folder(tree.fingerprint()),
            Self::Link(target) => EntryState::Link(target.clone()),
            Self::Absent | Self::Other(_) => EntryState::Absent,
        }
    }
}

/// A target of a skill, and where it is.
#[derive(Debug, Clone)]
struct LocatedTarget {
    location: Location,
    form: TargetForm,
}

/// The folder with the files of a skill before a change, if it has the user's changes and goes away:
/// the changes move to the folder that takes its place.
struct MovingFolder<'a> {
    tree: &'a DiskTree,
    path: PathBuf,
}

impl Planner<'_> {
    fn refuse_conflicts(&mut self) -> Result<(), InstallError> {
        match self.conflicts.is_empty() {
            true => Ok(()),
            false => Err(InstallError::Conflicts(std::mem::take(&mut self.conflicts))),
        }
    }

    /// Checks that no two names are the same folder on some system.
    fn check_names(&mut self, wanted: &[LockedSkill]) {
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        for skill in wanted {
            if !is_folder_name(&skill.name) {
                self.conflicts.push(InstallConflict::BadName { name: skill.name.clone() });
            }
            if let Some(other) = known.insert(folded(&skill.name), &skill.name) {
                let (name, other) = (skill.name.clone(), other.to_owned());
                self.conflicts.push(InstallConflict::SameName { name, other });
            }
        }
    }

    /// Finds the targets of a skill.
    fn locate(&mut self, skill: Option<&LockedSkill>) -> Result<Vec<LocatedTarget>, InstallError> {
        let Some(skill) = skill else { return Ok(Vec::new()) };
        let source = self.source_folder(skill);
        let mut all: Vec<LocatedTarget> = Vec::new();
        for target in &skill.targets {
            let (name, path) = (skill.name.clone(), target.path.clone());
            let located = match is_folder_name(&skill.name) {
                true => self.locator.locate(target, &skill.name),
                false => Err(LocationError::NoClientDirectory),
            };
            let location = match located {
                Ok(location) => location,
                Err(LocationError::NoClientDirectory) => {
                    self.conflicts.push(InstallConflict::NoClientDirectory { skill: name, path });
                    continue;
                }
                Err(LocationError::LinkOutside(link)) => {
                    self.conflicts.push(InstallConflict::LinkOutside { skill: name, link });
                    continue;
                }
                Err(LocationError::NotADirectory(path)) => {
                    self.conflicts.push(InstallConflict::NotADirectory { skill: name, path });
                    continue;
                }
                Err(LocationError::Io(path, source)) => {
                    return Err(InstallError::unchanged("read", path, source));
                }
            };
            if let Some(other) = all.iter().find(|it| it.location.path() == location.path()) {
                let other = other.location.shown.clone();
                self.conflicts.push(InstallConflict::SamePlace { skill: name, path, other });
                continue;
            }
            let own = location.path();
            if let Some(source) = &source
                && (own.starts_with(source) || source.starts_with(&own))
            {
                let source_folder = source.clone();
                let conflict = InstallConflict::SourceOverlap { skill: name, path, source_folder };
                self.conflicts.push(conflict);
                continue;
            }
            all.push(LocatedTarget { location, form: target.form });
        }
        Ok(all)
    }

    /// Returns the folder on this machine that a skill is copied from, without links.
    fn source_folder(&self, skill: &LockedSkill) -> Option<PathBuf> {
        let SourceKind::Folder(path) = &skill.source.kind else { return None };
        let home = self.place.surroundings.home.as_deref();
        let path = match (path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.place.root.join(path),
        };
        let path = if skill.path.is_empty() { path } else { path.join(&skill.path) };
        real_path(path).ok()
    }

    /// Looks at everything that a plan may touch; `owned` is what the lock names.
    fn look<'l>(
        &mut self,
        all: impl Iterator<Item = &'l LocatedTarget>,
        owned: &BTreeSet<PathBuf>,
    ) -> Result<(), InstallError> {
        let mut folders = Vec::new();
        let mut open: BTreeMap<PathBuf, Option<Directory>> = BTreeMap::new();
        for LocatedTarget { location, .. } in all {
            let failed = |it| InstallError::unchanged("read", location.path(), it);
            if !open.contains_key(&location.directory) {
                let directory = match Disk::default().open(&location.directory) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                    opened => Some(opened.map_err(failed)?),
                };
                open.insert(location.directory.clone(), directory);
            }
            let Some(Some(directory)) = open.get(&location.directory) else {
                self.disk.insert(location.path(), State::Absent);
                continue;
            };
            let state = match directory.kind(&location.name).map_err(failed)? {
                None => State::Absent,
                Some(EntryKind::Link(target)) => State::Link(target),
                Some(EntryKind::File) => State::Other("a file"),
                Some(EntryKind::Other) => State::Other("a special file"),
                Some(EntryKind::Folder) => {
                    folders.push(location.path());
                    continue;
                }
            };
            self.disk.insert(location.path(), state);
        }
        folders.sort();
        folders.dedup();
        for (path, tree) in folders.iter().zip(read_trees(&folders)) {
            let state = match tree {
                Ok(tree) => State::Folder(tree),
                // It stays whatever is in it.
                Err(_) if !owned.contains(path) => State::Other("a folder"),
                Err(error) => return Err(InstallError::unchanged("read", path.clone(), error)),
            };
            self.disk.insert(path.clone(), state);
        }
        Ok(())
    }

    fn state(&self, location: &Location) -> State {
        self.disk.get(&location.path()).cloned().unwrap_or(State::Absent)
    }

    fn plan_skill(
        &mut self,
        old: Option<&LockedSkill>,
        old_at: &[LocatedTarget],
        new: Option<&LockedSkill>,
        new_at: &[LocatedTarget],
    ) {
        let old_files = old.map_or(&[][..], |it| &it.files);
        let is_same_version = old.zip(new).is_some_and(|(old, new)| old.digest == new.digest);
        let old_first = old_at.iter().find(|it| it.form == TargetForm::Folder);
        let new_first = new_at.iter().find(|it| it.form == TargetForm::Folder);
        // Where the files were, if no folder stays there, with the user's changes.
        let first_state = old_first.map(|it| self.state(&it.location));
        let moving = match (old_first, &first_state, new_first) {
            (Some(first), Some(State::Folder(tree)), Some(to))
                if matches!(self.state(&to.location), State::Absent | State::Link(_)) =>
            {
                let stays = new_at.iter().any(|it| {
                    it.form == TargetForm::Folder && it.location.path() == first.location.path()
                });
                let is_edited = !tree.difference(old_files).is_empty();
                let carries = is_same_version || self.edits == LocalEdits::Merge;
                let carries = carries && self.edits != LocalEdits::SetAside;
                let path = first.location.path();
                (!stays && is_edited && carries).then_some(MovingFolder { tree, path })
            }
            _ => None,
        };
        for (number, at) in new_at.iter().enumerate() {
            let Some(new) = new else { break };
            let before = old_at.iter().find(|it| it.location.path() == at.location.path());
            let is_first = new_first.is_some_and(|it| it.location == at.location);
            let moving = moving.as_ref().filter(|_| is_first);
            let link = new_first.filter(|_| at.form == TargetForm::Link);
            let content = match link {
                Some(first) => {
                    let target = sys::link_target(&at.location.link_to(&first.location));
                    Content::Link(target, Box::new(Content::Files(new.files.clone())))
                }
                None => Content::Files(new.files.clone()),
            };
            // A first target that is a link leads nowhere: it gets the files.
            debug_assert!(link.is_some() || at.form == TargetForm::Folder || number == 0);
            let versions = (old_files, &*new.files, is_same_version);
            self.plan_target(&new.name, at, before, old_first, content, versions, moving);
        }
        for at in old_at {
            if new_at.iter().any(|it| it.location.path() == at.location.path()) {
                continue;
            }
            let Some(old) = old else { break };
            let carried = moving.as_ref().is_some_and(|it| it.path == at.location.path());
            self.plan_removal(old, at, old_first, new.is_some(), carried);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "these are the facts that decide")]
    fn plan_target(
        &mut self,
        name: &str,
        at: &LocatedTarget,
        before: Option<&LocatedTarget>,
        old_first: Option<&LocatedTarget>,
        content: Content,
        (old_files, new_files, is_same_version): (&[TreeFile], &[TreeFile], bool),
        moving: Option<&MovingFolder<'_>>,
    ) {
        let was = before.map(|it| it.form);
        let state = self.state(&at.location);
        match (&state, &content) {
            (State::Absent, _) => {
                let (content, merged) = match moving {
                    Some(moving) => self.merged(old_files, moving.tree, &moving.path, new_files),
                    None => (content, Vec::new()),
                };
                let action = InstallAction::Create;
                self.step(
                    name,
                    at,
                    action,
                    merged,
                    Some((EntryState::Absent, content, Fate::History)),
                );
            }
            (State::Link(target), Content::Link(wanted, _)) if target == wanted => {
                self.step(name, at, InstallAction::Keep, Vec::new(), None);
            }
            (State::Link(target), _) if self.is_own_link(target, before, old_first) => {
                let (content, merged) = match moving {
                    Some(moving) => self.merged(old_files, moving.tree, &moving.path, new_files),
                    None => (content, Vec::new()),
                };
                let change = (state.seen(), content, Fate::History);
                self.step(name, at, InstallAction::Replace, merged, Some(change));
            }
            (State::Folder(tree), Content::Files(files)) if tree.difference(files).is_empty() => {
                self.step(name, at, InstallAction::Keep, Vec::new(), None);
            }
            (State::Folder(tree), _) if was == Some(TargetForm::Folder) => {
                let difference = tree.difference(old_files);
                let is_files = matches!(content, Content::Files(_));
                let change = |content, fate| Some((state.seen(), content, fate));
                if difference.is_empty() {
                    let change = change(content, Fate::History);
                    self.step(name, at, InstallAction::Replace, Vec::new(), change);
                } else if self.edits == LocalEdits::SetAside {
                    let change = change(content, Fate::Trash);
                    self.step(name, at, InstallAction::SetAside, Vec::new(), change);
                } else if is_files && is_same_version && !difference.is_incomplete() {
                    self.step(name, at, InstallAction::KeepEdited, Vec::new(), None);
                } else if is_files && (is_same_version || self.edits == LocalEdits::Merge) {
                    let path = at.location.path();
                    let (content, merged) = self.merged(old_files, tree, &path, new_files);
                    let change = change(content, Fate::Trash);
                    self.step(name, at, InstallAction::Merge, merged, change);
                } else if !is_files && (is_same_version || self.edits == LocalEdits::Merge) {
                    // The first folder becomes a link, and its changes are in the new first folder.
                    let change = change(content, Fate::Trash);
                    self.step(name, at, InstallAction::Merge, Vec::new(), change);
                } else {
                    self.changed(name, at, difference);
                }
            }
            (State::Folder(_), _) => self.occupied(name, at, "a folder"),
            (State::Link(_), _) => self.occupied(name, at, "a link"),
            (State::Other(what), _) => self.occupied(name, at, what),
        }
    }

    /// Plans the removal of a target that is not wanted any more.
    fn plan_removal(
        &mut self,
        old: &LockedSkill,
        at: &LocatedTarget,
        old_first: Option<&LocatedTarget>,
        stays_elsewhere: bool,
        carried: bool,
    ) {
        let state = self.state(&at.location);
        let fate = if stays_elsewhere { Fate::History } else { Fate::Trash };
        let change = |fate| Some((state.seen(), Content::Nothing, fate));
        match (&state, at.form) {
            (State::Folder(tree), TargetForm::Folder) => {
                let difference = tree.difference(&old.files);
                if difference.is_empty() {
                    self.step(&old.name, at, InstallAction::Remove, Vec::new(), change(fate));
                } else if carried || self.edits == LocalEdits::SetAside {
                    let action = InstallAction::SetAside;
                    self.step(&old.name, at, action, Vec::new(), change(Fate::Trash));
                } else {
                    self.changed(&old.name, at, difference);
                }
            }
            (State::Link(target), TargetForm::Link)
                if self.is_own_link(target, Some(at), old_first) =>
            {
                let change = change(Fate::History);
                self.step(&old.name, at, InstallAction::Remove, Vec::new(), change);
            }
            _ => self.step(&old.name, at, InstallAction::Forget, Vec::new(), None),
        }
    }

    /// Whether a link is the one that the lock says.
    fn is_own_link(
        &self,
        target: &Path,
        before: Option<&LocatedTarget>,
        old_first: Option<&LocatedTarget>,
    ) -> bool {
        let (Some(before), Some(first)) = (before, old_first) else { return false };
        before.form == TargetForm::Link
            && target == sys::link_target(&before.location.link_to(&first.location))
    }

    fn merged(
        &self,
        base: &[TreeFile],
        ours: &DiskTree,
        path: &Path,
        theirs: &[TreeFile],
    ) -> (Content, Vec<MergedFile>) {
        let folder = |files: &[TreeFile]| self.cache.folder_of(files);
        let (base_folder, their_folder) = (folder(base), folder(theirs));
        let tree = merge(&Versions {
            base: (base, base_folder.as_deref()),
            ours: (ours, path),
            theirs: (theirs, their_folder.as_deref()),
        });
        let results = tree.results.clone();
        let (ours, theirs) = (path.to_owned(), theirs.to_owned());
        (Content::Merged { tree, ours, theirs }, results)
    }

    fn step(
        &mut self,
        skill: &str,
        at: &LocatedTarget,
        action: InstallAction,
        merged: Vec<MergedFile>,
        change: Option<(EntryState, Content, Fate)>,
    ) {
        if let Some((old, new, fate)) = change {
            let (step, location) = (self.steps.len(), at.location.clone());
            self.moves.push(PlannedMove { step, location, old, new, fate });
        }
        let (skill, path) = (skill.to_owned(), at.location.shown.clone());
        self.steps.push(PlannedStep { skill, path, action, form: at.form, merged });
    }

    fn occupied(&mut self, skill: &str, at: &LocatedTarget, what: &'static str) {
        let (skill, path) = (skill.to_owned(), at.location.shown.clone());
        self.conflicts.push(InstallConflict::Occupied { skill, path, what });
    }

    fn changed(&mut self, skill: &str, at: &LocatedTarget, difference: TreeDifference) {
        let (skill, path) = (skill.to_owned(), at.location.shown.clone());
        let TreeDifference { changed, modes, missing, extra } = difference;
        let mut files = [changed, modes, missing, extra].concat();
        files.sort();
        self.conflicts.push(InstallConflict::Changed { skill, path, files });
    }

    /// Checks that no folder is created whose name some system does not tell from one beside it.
    fn check_similar_names(&mut self) -> Result<(), InstallError> {
        let mut names: BTreeMap<&Path, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        let going: BTreeSet<PathBuf> = self
            .moves
            .iter()
            .filter(|it| it.new == Content::Nothing)
            .map(|it| it.location.path())
            .collect();
        for planned in self.moves.iter().filter(|it| it.old == EntryState::Absent) {
            let directory = &*planned.location.directory;
            if !names.contains_key(directory) {
                let listed = match Disk::default().open(directory).and_then(|it| it.names()) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                    listed => listed
                        .map_err(|it| InstallError::unchanged("read", directory.to_owned(), it))?,
                };
                let mut by_folded: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for name in listed.into_iter().filter_map(|it| it.into_string().ok()) {
                    by_folded.entry(folded(&name)).or_default().push(name);
                }
                names.insert(directory, by_folded);
            }
            let own = &planned.location.name;
            let beside = names.get(directory).and_then(|it| it.get(&folded(own)));
            let other = beside
                .into_iter()
                .flatten()
                .find(|it| *it != own && !going.contains(&directory.join(it)));
            if let Some(existing) = other {
                self.conflicts.push(InstallConflict::SimilarName {
                    skill: own.clone(),
                    path: planned.location.shown.clone(),
                    existing: existing.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Returns a name as systems see it that do not tell cases and forms of letters apart.
fn folded(name: &str) -> String {
    name.nfkc().flat_map(char::to_lowercase).nfc().collect()
}

/// Whether a name can be that of a folder on every system, and is not hidden.
fn is_folder_name(name: &str) -> bool {
    const RESERVED: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$"];
    let stem = name.split('.').next().unwrap_or_default().to_lowercase();
    let is_numbered = ["com", "lpt"]
        .iter()
        .any(|it| stem.strip_prefix(it).is_some_and(|it| it.chars().count() == 1 && it != "0"));
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with(['.', ' '])
        && !name.ends_with(['.', ' '])
        && !name.contains(|it: char| it.is_control() || "/\\<>:\"|?*".contains(it))
        && !RESERVED.contains(&&*stem)
        && !is_numbered
}
