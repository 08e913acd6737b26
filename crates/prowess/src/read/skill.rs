//! A skill: its manifest, where it came from, and the files beside it.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use super::{
    manifest::Manifest,
    memo::Memo,
    parse::{decode, instructions, metadata_description},
    source::{Folder, Key, Mark, ReadError, Resource, Scope, SizeLimits, Source},
};

/// A file with a description that is shown to models only.
pub(crate) const METADATA_FILE: &str = "METADATA.yml";

/// A skill of a library. Its instructions are read when they are asked for.
#[derive(Debug, Clone)]
pub struct Skill {
    /// The frontmatter, typed.
    pub manifest: Manifest,
    /// The scope and path that it came from.
    pub origin: Origin,
    /// The path of the skill that shadows this one: it is used when this one's name is asked for.
    pub hidden_by: Option<Arc<Path>>,
    pub(crate) resources: OnceLock<Box<[Resource]>>,
    pub(crate) home: Arc<Home>,
    /// Instructions that replace those of its file.
    pub(crate) pinned_instructions: Option<Arc<str>>,
    /// The key of its text in the index, if its files determine one.
    pub(crate) state: Option<Key>,
}

/// The source that a skill is read from, with its limits.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) source: Arc<dyn Source>,
    /// The source as a folder on disk, if it is one.
    pub(crate) folder: Option<Arc<Folder>>,
    pub(crate) limits: SizeLimits,
    /// Rendered instructions, by path and text: a conversation needs the same ones again.
    pub(crate) rendered: Memo<(Arc<Path>, Arc<str>), Arc<RenderedBody>>,
    /// The instructions, by the files that they were read from.
    pub(crate) texts: Memo<(Arc<Path>, Mark), Arc<str>>,
}

/// The instructions of a skill as a model reads them, without arguments.
#[derive(Debug)]
pub(crate) struct RenderedBody {
    /// All of them, with absolute paths, without the list of files.
    pub(crate) full: String,
    /// The parameters and the beginning of the instructions.
    pub(crate) brief: String,
}

impl Home {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        folder: Option<Arc<Folder>>,
        limits: SizeLimits,
    ) -> Self {
        Self { source, folder, limits, rendered: Memo::default(), texts: Memo::default() }
    }

    /// Returns the same home with empty caches.
    pub(crate) fn with_empty_caches(&self) -> Self {
        Self::new(self.source.clone(), self.folder.clone(), self.limits)
    }

    /// Whether both read skills from the same place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.folder, &other.folder) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => Arc::ptr_eq(&self.source, &other.source),
            _ => false,
        }
    }
}

/// The maximum size of a file that is cached, in bytes.
pub(crate) const MEMORABLE: usize = 32 * 1024;

/// The scope and the path that a skill came from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The owner of the skill: the project, the user or the program.
    pub scope: Scope,
    /// The path of its `SKILL.md`.
    pub path: Arc<Path>,
    /// The size of that file, in bytes.
    pub size: u64,
    /// The time of its last modification, if known.
    pub modified: Option<SystemTime>,
}

impl Skill {
    /// Returns the description in `METADATA.yml`, or else that of the frontmatter. A file that is
    /// broken or cannot be read is ignored.
    pub(crate) fn description(&self) -> Cow<'_, str> {
        let has_file = self.resources().iter().any(|it| &*it.path == METADATA_FILE);
        let own = has_file.then(|| metadata_description(&self.read(METADATA_FILE).ok()?)).flatten();
        own.map_or(Cow::Borrowed(&*self.manifest.description), |it| Cow::Owned(it.into()))
    }

    /// Reads the current instructions, even if the file has changed since it was loaded. A file
    /// that has lost its frontmatter has none.
    pub fn instructions(&self) -> Result<String, ReadError> {
        self.text().map(|it| it.to_string())
    }

    /// Does the same, and caches the text until the file changes.
    pub(crate) fn text(&self) -> Result<Arc<str>, ReadError> {
        let (path, read) = (&self.origin.path, || self.read_text().map(Arc::from));
        let folder = self.home.folder.as_ref().filter(|_| self.pinned_instructions.is_none());
        match folder.and_then(|it| it.settled_mark(path)) {
            Some(mark) if mark.size <= MEMORABLE as u64 => {
                self.home.texts.try_get((path.clone(), mark), |_| read())
            }
            _ => read(),
        }
    }

    /// Does the same, without a cache.
    pub(crate) fn read_text(&self) -> Result<String, ReadError> {
        if let Some(pinned_instructions) = &self.pinned_instructions {
            return Ok(pinned_instructions.to_string());
        }
        let bytes = self.home.source.read(&self.origin.path)?;
        let text = decode(&bytes).text;
        let document = prowess_frontmatter::split(&text);
        if document.frontmatter.is_none() {
            return Err(ReadError::NoSkill { path: self.origin.path.to_path_buf() });
        }
        Ok(instructions(&document).to_owned())
    }

    /// Returns the same skill with these instructions, even if its file changes: so that what was
    /// reviewed is what is disclosed.
    #[must_use]
    pub fn with_instructions(&self, instructions: &str) -> Self {
        Self { pinned_instructions: Some(instructions.into()), state: None, ..self.clone() }
    }

    /// Returns the same skill, with its resources listed anew.
    #[must_use]
    pub fn with_current_resources(&self) -> Self {
        Self { resources: OnceLock::new(), state: None, ..self.clone() }
    }

    /// Returns the other files of its folder, sorted by path.
    pub fn resources(&self) -> &[Resource] {
        let Home { source, limits, .. } = &*self.home;
        self.resources
            .get_or_init(|| source.resources(&self.origin.path, limits).0.into_boxed_slice())
    }

    /// Reads one resource; only those in `resources` can be read.
    pub fn read(&self, resource: &str) -> Result<Vec<u8>, ReadError> {
        let wanted = resource.strip_prefix("./").unwrap_or(resource);
        let Some(known) = self.resources().iter().find(|it| &*it.path == wanted) else {
            return Err(ReadError::NoSuchResource {
                skill: self.manifest.name.to_string(),
                resource: resource.to_owned(),
            });
        };
        self.home.source.read_beside(&self.origin.path, &known.path)
    }

    /// Reads the current `SKILL.md`, with the frontmatter.
    pub fn document(&self) -> Result<Vec<u8>, ReadError> {
        self.home.source.read(&self.origin.path)
    }

    /// Whether its `SKILL.md` is the one at `path`, compared exactly.
    pub fn is_at(&self, path: &Path) -> bool {
        self.origin.path.as_os_str() == path.as_os_str()
    }

    /// Returns the folder of the skill.
    pub fn folder(&self) -> &Path {
        self.origin.path.parent().unwrap_or(Path::new(""))
    }

    /// Returns the absolute folder of the skill; `None` for a skill that is not on disk.
    pub fn absolute_folder(&self) -> Option<PathBuf> {
        self.home.source.absolute(self.folder())
    }
}
