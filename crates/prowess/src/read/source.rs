//! Places that hold skills. Nothing else in this crate opens a file.

mod resource;
mod directory;
mod folder;
mod walk;
mod ignore;
mod repository;
mod open;
mod mark;
mod trouble;
mod memory;
mod cache;
#[cfg_attr(not(target_os = "linux"), path = "source/no_watcher.rs")]
mod watcher;

use std::{
    collections::HashSet,
    ffi::OsStr,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use crate::finding::Finding;

pub use self::{
    cache::Cache,
    directory::{Directory, HERE, PRESETS, Preset, preset},
    memory::Memory,
    resource::{Resource, ResourceKind, Scope},
    walk::skill_of,
};
pub(crate) use self::{
    cache::Key,
    folder::{Folder, is_link},
    mark::{Mark, VisitMarks},
    trouble::reason,
    watcher::Watcher,
};

/// Whether there is anything at a path.
pub(crate) fn is_there(path: &Path) -> bool {
    path.exists()
}

/// A place that holds skills.
///
/// A source is asked about one folder at a time, from several threads at once, and answers from
/// what is there at that moment.
pub trait Source: Send + Sync + fmt::Debug {
    /// Whose skills they are.
    fn scope(&self) -> Scope;

    /// Looks at one folder; the empty path is the source itself.
    fn visit(&self, folder: &Path, limits: &SizeLimits, listing: Listing) -> Visit;

    /// Lists the resources of the skill at `path`, sorted by path, for whoever did not want them
    /// at once; with them, what was in the way.
    fn resources(&self, path: &Path, limits: &SizeLimits) -> (Vec<Resource>, Vec<Finding>);

    /// Reads a whole `SKILL.md` that `visit` has found.
    fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError>;

    /// Reads a resource of the skill at `path`, as `resources` names it, and nothing outside of
    /// what the source may show.
    fn read_beside(&self, path: &Path, resource: &str) -> Result<Vec<u8>, ReadError>;

    /// The size and time of a `SKILL.md` as it is now; nothing where it cannot change or is gone.
    fn stamp(&self, _path: &Path) -> Option<Stamp> {
        None
    }

    /// A path of the source from the root of the disk; nothing for one that is not on disk.
    fn absolute(&self, _path: &Path) -> Option<PathBuf> {
        None
    }
}

/// What a watcher has heard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// Nothing, for as long as somebody was willing to wait.
    Nothing,
    /// Something has changed.
    Change(TouchedFolders),
    /// That nobody wants to hear any more.
    End,
}

/// Where something has happened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TouchedFolders {
    /// It may have been anywhere.
    pub(crate) is_all: bool,
    /// The folders whose visits looked at it.
    pub(crate) folders: HashSet<Arc<Path>>,
    /// What it happened to in those folders; some of it may be folders that are visited too.
    pub(crate) entries: HashSet<PathBuf>,
}

impl TouchedFolders {
    /// More places than that are not worth telling apart.
    const MOST: usize = 20_000;

    pub(crate) fn all() -> Self {
        Self { is_all: true, ..Self::default() }
    }

    pub(crate) fn add(&mut self, folder: &Arc<Path>, name: Option<&OsStr>) {
        if self.is_all {
            return;
        }
        if !self.folders.contains(folder) {
            self.folders.insert(folder.clone());
        }
        self.entries.extend(name.map(|it| folder.join(it)));
        self.is_all = self.entries.len() > Self::MOST;
    }
}

/// What tells one state of a file from another: its size, and when it was changed last.
pub type Stamp = (u64, Option<SystemTime>);

/// How much is taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// The largest resource, in bytes.
    pub max_file_size: u64,
    /// The largest sum of `SKILL.md` and resources, in bytes.
    pub max_skill_size: u64,
    /// The largest `SKILL.md`, in bytes.
    pub max_document_size: u64,
    /// How many folders deep skills may lie below a directory.
    pub depth: usize,
}

/// Which folders of a directory are searched for skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Search {
    /// All but hidden ones and `node_modules`.
    #[default]
    Plain,
    /// As in a repository: also the hidden folders in which clients keep skills, such as `.claude/skills`,
    /// but neither build output nor what git ignores.
    Repository,
}

/// When the files beside a `SKILL.md` are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listing {
    /// With the skill, so that one that is too large is left out.
    #[default]
    AtOnce,
    /// When somebody asks for them. Loading takes half the time, and no skill is too large.
    OnDemand,
}

impl Default for SizeLimits {
    fn default() -> Self {
        Self {
            max_file_size: 100 * 1024,
            max_skill_size: 500 * 1024,
            max_document_size: 1024 * 1024,
            depth: 1,
        }
    }
}

/// The deepest that skills are searched for, whatever [`SizeLimits::depth`] says.
pub const DEEPEST: usize = 32;
/// The deepest that the files of a skill are listed.
pub(crate) const MAX_DEPTH: usize = 6;
/// How many folders are searched for skills.
pub(crate) const MAX_FOLDERS: usize = 400_000;
/// How many files and folders of one skill are looked at.
pub(crate) const MAX_ENTRIES: usize = 10_000;

/// What a source found in a folder.
#[derive(Debug)]
pub struct Visit {
    /// What is there.
    pub what: VisitResult,
    /// Whether a link led there.
    pub linked: bool,
    /// What was in the way.
    pub findings: Vec<Finding>,
}

/// What a folder is.
#[derive(Debug)]
pub enum VisitResult {
    /// A skill.
    Skill(Box<DiscoveredSkill>),
    /// A folder with these folders in it.
    Folders(Vec<PathBuf>),
    /// A skill whose `SKILL.md`, at this path, could not be read.
    LeftOut(PathBuf),
    /// Nothing that could be looked at.
    Nothing,
}

/// A skill as it lies in its source, not yet parsed.
#[derive(Debug)]
pub struct DiscoveredSkill {
    /// Its `SKILL.md`, as a person would name it.
    pub path: Arc<Path>,
    /// The same file on disk with all links resolved: two with the same are one.
    pub real: Option<Arc<Path>>,
    /// Whether a link led to it: found again without one, it goes by that path.
    pub linked: bool,
    /// The beginning of the file, in nearly every case with all of its frontmatter.
    pub head: Vec<u8>,
    /// How large the file is.
    pub size: u64,
    /// When it was changed last, where that is known.
    pub modified: Option<SystemTime>,
    /// The other files of the folder, if they were to be listed.
    pub resources: Option<Vec<Resource>>,
    /// How many bytes those of its files have that are not listed, because each is too large.
    pub omitted: u64,
}

/// Where a skill lies, as in [`DiscoveredSkill`].
pub(crate) struct At {
    pub(crate) path: Arc<Path>,
    pub(crate) real: Option<Arc<Path>>,
    pub(crate) linked: bool,
}

impl DiscoveredSkill {
    /// The name of the folder that the skill lies in, also when its path was given as `.`.
    pub fn folder_name(&self) -> Option<String> {
        let shown = self.path.parent().and_then(Path::file_name);
        let real = self.real.as_deref().and_then(Path::parent).and_then(Path::file_name);
        shown.or(real).map(|it| it.to_string_lossy().into_owned())
    }

    /// How large all files of the skill are together.
    pub fn total(&self) -> u64 {
        let own = self.size.saturating_add(self.omitted);
        self.resources.iter().flatten().fold(own, |sum, it| sum.saturating_add(it.size))
    }
}

/// Something could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The skill has no such resource, or not one that may be read.
    #[error("skill `{skill}` has no resource `{resource}`")]
    NoSuchResource {
        /// The skill.
        skill: String,
        /// What was asked for.
        resource: String,
    },
    /// The path leads out of what the source may show.
    #[error("`{}` leads out of its directory", path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// The file has been changed, and has no frontmatter any more.
    #[error("`{}` is no longer a skill: it has no frontmatter", path.display())]
    NoSkill {
        /// The path.
        path: PathBuf,
    },
    /// It is a directory, a pipe or a device.
    #[error("`{}` is not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// It is larger than the limit.
    #[error("`{}` has more than {limit} bytes", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The system said no.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
