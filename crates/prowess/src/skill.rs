//! A skill: its manifest, where it came from, and the files beside it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, OnceLock},
    time::SystemTime,
};

use prowess_frontmatter::{Field, Value};

use crate::{
    disclose::RenderedBody,
    matching::Memo,
    source::{Folder, Key, Mark, ReadError, SizeLimits, Source},
};

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
    pub(crate) told: Memo<(Arc<Path>, Arc<str>), Arc<RenderedBody>>,
    /// The instructions themselves, by the files that they were read from.
    pub(crate) texts: Memo<(Arc<Path>, Mark), Arc<str>>,
}

impl Home {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        folder: Option<Arc<Folder>>,
        limits: SizeLimits,
    ) -> Self {
        Self { source, folder, limits, told: Memo::default(), texts: Memo::default() }
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

/// The frontmatter of a skill, typed. A field that is not there is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// What it is called; not always a name that the specification allows.
    pub name: Box<str>,
    /// What it does and when to use it.
    pub description: Box<str>,
    /// Under which terms it comes.
    pub license: Option<Box<str>>,
    /// What it needs around it, in words.
    pub compatibility: Option<Box<str>>,
    /// Whatever else its author noted, as written.
    pub metadata: Box<[Field<'static>]>,
    /// The tools it may use without asking.
    pub allowed_tools: AllowedTools,
    /// Its version, as written.
    pub version: Option<Box<str>>,
    /// Who wrote it.
    pub author: Option<Box<str>>,
    /// Words to find it by.
    pub tags: Box<[Box<str>]>,
    /// What it does when it is run.
    pub kind: Type,
    /// Whether it is in use, where it says so; see [`status`](Self::status()).
    pub status: Option<Status>,
    /// The address it was imported from; empty for a local one.
    pub source: Option<Box<str>>,
    /// Who or what made it.
    pub created_by: Option<Box<str>>,
    /// Whether somebody has to agree before it runs.
    pub requires_approval: bool,
    /// What single clients understand, where any of it is used.
    pub dialect: Option<Box<Dialect>>,
    /// The fields nobody here knows, as written.
    pub unknown: Box<[Field<'static>]>,
}

/// Fields that clients have added and people use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dialect {
    /// The model does not see it; a person can still invoke it.
    pub disable_model_invocation: Option<bool>,
    /// A person can invoke it.
    pub user_invocable: Option<bool>,
    /// What to type behind its name.
    pub argument_hint: Option<Box<str>>,
    /// More about when to use it.
    pub when_to_use: Option<Box<str>>,
    /// Globs of the files it is about.
    pub paths: Box<[Box<str>]>,
    /// Where it runs: `fork` or `inline`.
    pub context: Option<Box<str>>,
    /// The agent that it is handed to.
    pub agent: Option<Box<str>>,
    /// The model that it wants.
    pub model: Option<Box<str>>,
    /// How hard the model should think.
    pub effort: Option<Box<str>>,
    /// What is run before and after it, as written.
    pub hooks: Option<Value<'static>>,
    /// What it needs: tools, programs, other skills.
    pub requires: Box<[Box<str>]>,
    /// Words that ask for it.
    pub triggers: Box<[Box<str>]>,
}

/// The tools that a skill may use without asking, such as `Read` or `Bash(git add:*)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedTools(pub Box<[Box<str>]>);

/// What a skill does when it is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Type {
    /// It tells the model how to do something.
    #[default]
    Instruction,
    /// It is a plan of tool calls.
    Composite,
    /// It is a shell script.
    Script,
    /// It is a text with places to fill in.
    Template,
}

/// Whether a skill is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Status {
    /// In use.
    #[default]
    Active,
    /// Not yet in use.
    Draft,
    /// No longer in use.
    Disabled,
}

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

/// Whose skill it is. A skill of the project is taken before one of the user of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// It belongs to what is worked on.
    #[default]
    Project,
    /// It belongs to the person.
    User,
    /// It came with the program.
    Bundled,
}

/// A file beside `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its path within the skill's folder, with `/` between the parts.
    pub path: Box<str>,
    /// What it is for.
    pub kind: ResourceKind,
    /// Whether it is text.
    pub is_text: bool,
    /// How large it is.
    pub size: u64,
    /// When it was changed last, where that is known.
    pub modified: Option<SystemTime>,
}

/// What a resource is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// To be run.
    Script,
    /// To be read by the model.
    Reference,
    /// To be filled in.
    Template,
    /// To be used as it is.
    Asset,
}

impl Skill {
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
        let text = crate::parse::decode(&bytes).text;
        let document = prowess_frontmatter::split(&text);
        if document.frontmatter.is_none() {
            return Err(ReadError::NoSkill { path: self.origin.path.to_path_buf() });
        }
        Ok(crate::parse::instructions(&document).to_owned())
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

impl Manifest {
    /// Says whether the skill has a tag, whatever its case.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))
    }

    /// Whether it is in use; one that does not say so is.
    pub fn status(&self) -> Status {
        self.status.unwrap_or_default()
    }

    /// Whether the skill is in use.
    pub fn is_active(&self) -> bool {
        self.status() == Status::Active
    }

    /// Whether the model does not see the skill, so that only a person can invoke it.
    pub fn hides_from_model(&self) -> bool {
        self.dialect().disable_model_invocation == Some(true)
    }

    /// Whether a model may know of the skill: it is in use and does not hide from models.
    pub fn is_for_models(&self) -> bool {
        self.is_active() && !self.hides_from_model()
    }

    /// Whether a person can invoke the skill by its name.
    pub fn is_for_people(&self) -> bool {
        self.is_active() && self.dialect().user_invocable != Some(false)
    }

    /// The fields that clients have added; all empty when none is used.
    pub fn dialect(&self) -> &Dialect {
        static NONE: LazyLock<Dialect> = LazyLock::new(Dialect::default);
        self.dialect.as_deref().unwrap_or(&NONE)
    }
}

impl AllowedTools {
    /// Reads tools with spaces or commas between them, those inside parentheses left alone.
    pub fn from_text(text: &str) -> Self {
        let mut depth = 0_usize;
        let separates = |c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (c == ',' || c.is_whitespace())
        };
        Self(text.split(separates).filter(|it| !it.is_empty()).map(Box::from).collect())
    }

    /// The tools as the specification writes them, with spaces between; nothing when one of them
    /// would come apart.
    pub fn to_text(&self) -> Option<String> {
        let text = self.0.join(" ");
        (Self::from_text(&text) == *self).then_some(text)
    }
}

impl Type {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Instruction, Self::Composite, Self::Script, Self::Template];

    /// The word for it, as in a frontmatter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Composite => "composite",
            Self::Script => "script",
            Self::Template => "template",
        }
    }

    /// The type that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Active, Self::Draft, Self::Disabled];

    /// The word for it, as in a frontmatter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Draft => "draft",
            Self::Disabled => "disabled",
        }
    }

    /// The status that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

impl Scope {
    /// The word for it, as in `project:create-pr`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Bundled => "bundled",
        }
    }
}

impl ResourceKind {
    /// The word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Reference => "reference",
            Self::Template => "template",
            Self::Asset => "asset",
        }
    }

    /// The kind of a file, by its ending and then by its folder.
    pub fn of(path: &str) -> Self {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let ending = file.rsplit_once('.').map_or("", |it| it.1).to_ascii_lowercase();
        let folder = folder.split('/').next().unwrap_or_default();
        match (ending.as_str(), folder) {
            ("sh" | "bash" | "py", _) => Self::Script,
            ("md" | "mdx" | "txt" | "rst", "scripts" | "bin") => Self::Reference,
            (
                "xsd" | "dtd" | "xml" | "json" | "yml" | "yaml" | "toml" | "csv" | "tsv" | "lock"
                | "css" | "html" | "svg" | "png" | "jpg" | "gif" | "ttf" | "pdf" | "zip",
                "scripts" | "bin",
            ) => Self::Asset,
            (_, "scripts" | "bin") => Self::Script,
            (_, "references" | "reference" | "docs") => Self::Reference,
            (_, "templates" | "template") => Self::Template,
            (_, "assets" | "asset") => Self::Asset,
            (
                "zsh" | "fish" | "ps1" | "bat" | "cmd" | "js" | "mjs" | "cjs" | "ts" | "rb" | "pl"
                | "php" | "lua",
                _,
            ) => Self::Script,
            ("md" | "mdx" | "txt" | "rst" | "pdf" | "html", _) => Self::Reference,
            ("yml" | "yaml" | "json" | "toml" | "template" | "tmpl" | "tpl" | "j2" | "hbs", _) => {
                Self::Template
            }
            _ => Self::Asset,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
