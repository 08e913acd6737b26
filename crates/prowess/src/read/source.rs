//! Places that contain skills. Nothing else in this crate opens a file.

mod resource;
mod directory;
mod folder;
mod walk;
mod ignore;
mod repository;
mod mark;
mod sys;
mod open;
mod trouble;
mod memory;
mod cache;
// The tests can use the watcher of other systems on Linux too: `RUSTFLAGS="--cfg prowess_notify"`.
#[cfg_attr(any(not(target_os = "linux"), prowess_notify), path = "source/notify_watcher.rs")]
mod watcher;

use std::{
    collections::HashSet,
    ffi::OsStr,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::finding::Finding;

pub use self::{
    cache::Cache,
    directory::Directory,
    memory::Memory,
    resource::{Resource, ResourceKind, Scope},
    walk::skill_of,
};
pub(crate) use self::{
    cache::Key,
    folder::{Folder, is_link},
    mark::{Mark, VisitMarks},
    sys::{path_bytes, path_from},
    trouble::reason,
    watcher::Watcher,
};

/// Whether a path exists.
pub(crate) fn is_there(path: &Path) -> bool {
    path.exists()
}

/// Resolves all links of a path. Equal paths are written alike: on Windows without `\\?\`.
pub fn real_path(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    std::fs::canonicalize(path).map(sys::plain_path)
}

/// A place that contains skills.
///
/// A source is asked about one folder at a time, from several threads at once, and answers with the
/// state at that moment.
pub trait Source: Send + Sync + fmt::Debug {
    /// Returns whose skills they are.
    fn scope(&self) -> Scope;

    /// Looks at one folder; the empty path is the source itself.
    fn visit(&self, folder: &Path, limits: &SizeLimits, listing: Listing) -> Visit;

    /// Lists the resources of the skill at `path`, sorted by path, for callers that did not list
    /// them during the visit; with findings.
    fn resources(&self, path: &Path, limits: &SizeLimits) -> (Vec<Resource>, Vec<Finding>);

    /// Reads a whole `SKILL.md` that `visit` has found.
    fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError>;

    /// Reads a resource of the skill at `path`, by its name in `resources`, and nothing outside of
    /// what the source may show.
    fn read_beside(&self, path: &Path, resource: &str) -> Result<Vec<u8>, ReadError>;

    /// Returns the current size and time of a `SKILL.md`; `None` if it cannot change or is gone.
    fn stamp(&self, _path: &Path) -> Option<Stamp> {
        None
    }

    /// Returns the absolute path of a file of the source; `None` if it is not on disk.
    fn absolute(&self, _path: &Path) -> Option<PathBuf> {
        None
    }
}

/// The quiet period before a change is reported, so that one visit sees all that belongs together.
const QUIET: Duration = Duration::from_millis(100);
/// The maximum delay of a change if there is no quiet period.
const LONGEST: Duration = Duration::from_secs(2);

/// An event from a watcher.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// Nothing happened before the timeout.
    Nothing,
    /// Something has changed.
    Change(TouchedFolders),
    /// The watcher was stopped.
    End,
}

/// The folders in which something changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TouchedFolders {
    /// Whether the change may be anywhere.
    pub(crate) is_all: bool,
    /// The folders whose visits looked at it.
    pub(crate) folders: HashSet<Arc<Path>>,
    /// The changed entries of those folders; some may be folders that are visited too.
    pub(crate) entries: HashSet<PathBuf>,
}

impl TouchedFolders {
    /// The maximum number of entries that are tracked; with more, `is_all` is set.
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

/// The size and modification time of a file, which together identify its state.
pub type Stamp = (u64, Option<SystemTime>);

/// Limits on what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// The largest resource, in bytes.
    pub max_file_size: u64,
    /// The largest sum of `SKILL.md` and resources, in bytes.
    pub max_skill_size: u64,
    /// The largest `SKILL.md`, in bytes.
    pub max_document_size: u64,
    /// The maximum depth of skills below a directory, in folders.
    pub depth: usize,
}

/// The folders of a directory that are searched for skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Search {
    /// All but hidden folders and `node_modules`.
    #[default]
    Plain,
    /// As in a repository: also the hidden folders in which clients keep skills, such as
    /// `.claude/skills`, but no build output and nothing that git ignores.
    Repository,
}

/// The time at which the files beside a `SKILL.md` are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listing {
    /// With the skill, so that one that is too large is left out.
    #[default]
    AtOnce,
    /// On first use. Loading takes half the time, and no skill is rejected for its size.
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

/// The maximum depth of the search for skills, whatever [`SizeLimits::depth`] says.
pub const DEEPEST: usize = 32;
/// The maximum depth to which the files of a skill are listed.
pub(crate) const MAX_DEPTH: usize = 6;
/// The maximum number of folders that are searched for skills.
pub(crate) const MAX_FOLDERS: usize = 400_000;
/// The maximum number of files and folders of one skill that are looked at.
pub(crate) const MAX_ENTRIES: usize = 10_000;

/// The result of visiting a folder.
#[derive(Debug)]
pub struct Visit {
    /// The content of the folder.
    pub what: VisitResult,
    /// Whether a link led to it.
    pub linked: bool,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Visit {
    /// Creates a visit that no link led to, without findings.
    pub fn new(what: VisitResult) -> Self {
        Self { what, linked: false, findings: Vec::new() }
    }
}

/// The content of a visited folder.
#[derive(Debug)]
pub enum VisitResult {
    /// A skill.
    Skill(Box<DiscoveredSkill>),
    /// A folder with these folders in it.
    Folders(Vec<PathBuf>),
    /// A skill whose `SKILL.md`, at this path, could not be read.
    LeftOut(PathBuf),
    /// Nothing that could be read.
    Nothing,
}

/// A skill as found in its source, not yet parsed.
#[derive(Debug)]
pub struct DiscoveredSkill {
    /// The path of its `SKILL.md`, as displayed.
    pub path: Arc<Path>,
    /// The same file on disk with all links resolved: two skills with the same one are duplicates.
    pub real: Option<Arc<Path>>,
    /// Whether a link led to it: if it is also found without a link, that path is used.
    pub linked: bool,
    /// The beginning of the file, nearly always including all of its frontmatter.
    pub head: Vec<u8>,
    /// The size of the file, in bytes.
    pub size: u64,
    /// The time of its last modification, if known.
    pub modified: Option<SystemTime>,
    /// The other files of the folder, if they were listed.
    pub resources: Option<Vec<Resource>>,
    /// The total size, in bytes, of the files that are not listed because each is too large.
    pub omitted: u64,
}

/// The paths of a skill, as in [`DiscoveredSkill`].
pub(crate) struct SkillPaths {
    pub(crate) path: Arc<Path>,
    pub(crate) real: Option<Arc<Path>>,
    pub(crate) linked: bool,
}

impl DiscoveredSkill {
    /// Creates a skill that is not on disk, from the path and the bytes of its `SKILL.md`.
    pub fn new(path: impl Into<Arc<Path>>, head: Vec<u8>) -> Self {
        Self {
            path: path.into(),
            real: None,
            linked: false,
            size: head.len() as u64,
            head,
            modified: None,
            resources: None,
            omitted: 0,
        }
    }

    /// Returns the name of the skill's folder, even if its path was given as `.`.
    pub fn folder_name(&self) -> Option<String> {
        let shown = self.path.parent().and_then(Path::file_name);
        let real = self.real.as_deref().and_then(Path::parent).and_then(Path::file_name);
        shown.or(real).map(|it| it.to_string_lossy().into_owned())
    }

    /// Returns the total size of all files of the skill, in bytes.
    pub fn total(&self) -> u64 {
        let own = self.size.saturating_add(self.omitted);
        self.resources.iter().flatten().fold(own, |sum, it| sum.saturating_add(it.size))
    }
}

/// An error from reading a skill or a resource.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The skill has no such resource, or not one that may be read.
    #[error("skill `{skill}` has no resource `{resource}`")]
    NoSuchResource {
        /// The skill.
        skill: String,
        /// The resource that was asked for.
        resource: String,
    },
    /// The path leads outside of what the source may show.
    #[error("`{}` leads out of its directory", path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// The file has changed, and no longer has a frontmatter.
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
    /// It exceeds the size limit.
    #[error("`{}` has more than {limit} bytes", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The system returned an error.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}
