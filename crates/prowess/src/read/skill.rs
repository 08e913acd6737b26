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
    parse::{decode, described, instructions},
    source::{Folder, Key, Mark, ReadError, Resource, Scope, SizeLimits, Source},
};

/// A file with a description for models alone.
pub(crate) const METADATA_FILE: &str = "METADATA.yml";

/// A skill of a library. Its instructions stay where they are until they are asked for.
#[derive(Debug, Clone)]
pub struct Skill {
    /// The frontmatter, typed.
    pub manifest: Manifest,
    /// Where it came from.
    pub origin: Origin,
    /// The path of the skill that is taken when this one's name is asked for.
    pub hidden_by: Option<Arc<Path>>,
    pub(crate) resources: OnceLock<Box<[Resource]>>,
    pub(crate) home: Arc<Home>,
    /// What it tells instead of its file.
    pub(crate) held: Option<Arc<str>>,
    /// What its text for the index is told from others by, where its files tell.
    pub(crate) state: Option<Key>,
}

/// What a skill is read from, and how much of it.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) source: Arc<dyn Source>,
    /// The same, where it is a folder on disk.
    pub(crate) folder: Option<Arc<Folder>>,
    pub(crate) limits: SizeLimits,
    /// What skills say, by their paths and instructions: a conversation is told the same ones again.
    pub(crate) rendered: Memo<(Arc<Path>, Arc<str>), Arc<RenderedBody>>,
    /// The instructions themselves, by the files that they were read from.
    pub(crate) texts: Memo<(Arc<Path>, Mark), Arc<str>>,
}

/// The instructions of a skill as a model reads them, without arguments.
#[derive(Debug)]
pub(crate) struct RenderedBody {
    /// All of them, paths absolute, without the list of files.
    pub(crate) full: String,
    /// The parameters and the first instructions.
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

    /// The same home, with nothing remembered.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.source.clone(), self.folder.clone(), self.limits)
    }

    /// Whether skills of the same place are read from it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.folder, &other.folder) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => Arc::ptr_eq(&self.source, &other.source),
            _ => false,
        }
    }
}

/// Longer files are not remembered.
pub(crate) const MEMORABLE: usize = 32 * 1024;

/// Where a skill came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Whose skill it is.
    pub scope: Scope,
    /// Its `SKILL.md`.
    pub path: Arc<Path>,
    /// How large that file is.
    pub size: u64,
    /// When it was changed last, where that is known.
    pub modified: Option<SystemTime>,
}

impl Skill {
    /// The description in `METADATA.yml`, or else the frontmatter's. A file that is broken or cannot
    /// be read counts for nothing.
    pub(crate) fn description(&self) -> Cow<'_, str> {
        let has_file = self.resources().iter().any(|it| &*it.path == METADATA_FILE);
        let read = || described(&self.read(METADATA_FILE).ok()?);
        let own = has_file.then(read).flatten();
        own.map_or(Cow::Borrowed(&*self.manifest.description), |it| Cow::Owned(it.into()))
    }

    /// Reads the instructions as they are now, also when the file has changed since it was loaded. A
    /// file that has lost its frontmatter has none.
    pub fn instructions(&self) -> Result<String, ReadError> {
        self.text().map(|it| it.to_string())
    }

    /// Does the same, and reads a file once for as long as it is the same.
    pub(crate) fn text(&self) -> Result<Arc<str>, ReadError> {
        let (path, read) = (&self.origin.path, || self.read_text().map(Arc::from));
        let folder = self.home.folder.as_ref().filter(|_| self.held.is_none());
        match folder.and_then(|it| it.settled(path)) {
            Some(mark) if mark.size <= MEMORABLE as u64 => {
                self.home.texts.try_get((path.clone(), mark), |_| read())
            }
            _ => read(),
        }
    }

    /// Does the same, and remembers nothing.
    pub(crate) fn read_text(&self) -> Result<String, ReadError> {
        if let Some(held) = &self.held {
            return Ok(held.to_string());
        }
        let bytes = self.home.source.read(&self.origin.path)?;
        let text = decode(&bytes).text;
        let document = prowess_frontmatter::split(&text);
        if document.frontmatter.is_none() {
            return Err(ReadError::NoSkill { path: self.origin.path.to_path_buf() });
        }
        Ok(instructions(&document).to_owned())
    }

    /// The same skill with these instructions, whatever becomes of its file: so that what was looked
    /// at is what is told.
    #[must_use]
    pub fn holding(&self, instructions: &str) -> Self {
        Self { held: Some(instructions.into()), state: None, ..self.clone() }
    }

    /// The same skill, with its resources to be listed anew.
    #[must_use]
    pub fn relisted(&self) -> Self {
        Self { resources: OnceLock::new(), state: None, ..self.clone() }
    }

    /// The other files of its folder, sorted by path.
    pub fn resources(&self) -> &[Resource] {
        let Home { source, limits, .. } = &*self.home;
        self.resources
            .get_or_init(|| source.resources(&self.origin.path, limits).0.into_boxed_slice())
    }

    /// Reads one resource; only what is listed in `resources` can be read.
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

    /// Reads its `SKILL.md` as it is now, with the frontmatter.
    pub fn document(&self) -> Result<Vec<u8>, ReadError> {
        self.home.source.read(&self.origin.path)
    }

    /// Whether its `SKILL.md` is the one at a path, to the letter.
    pub fn is_at(&self, path: &Path) -> bool {
        self.origin.path.as_os_str() == path.as_os_str()
    }

    /// The folder of the skill.
    pub fn folder(&self) -> &Path {
        self.origin.path.parent().unwrap_or(Path::new(""))
    }

    /// The folder of the skill from the root of the disk; nothing for a skill that is not on disk.
    pub fn absolute_folder(&self) -> Option<PathBuf> {
        self.home.source.absolute(self.folder())
    }
}
