//! The library: all skills at one moment.
//!
//! A `Library` never changes. A `LiveLibrary` provides the current one: its `Watcher` (in
//! `read::source`) says which folders were touched, the `Scanner` reads these again, and the new
//! library replaces the old one as a whole. `changes` compares the two.

pub(crate) mod load;
pub(crate) mod scanner;
pub(crate) mod live_library;
pub(crate) mod changes;

use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{
    finding::{Finding, rule::Profile},
    index::{Embedder, Searchable},
    library::load::load,
    read::{
        scan_cache::IndexPlace,
        skill::Skill,
        source::{Cache, Directory, Listing, SizeLimits, Source},
    },
    spec::SKILL_FILE,
};

/// Options for loading a library.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The directories to search, in order of precedence.
    pub directories: Vec<Directory>,
    /// Other sources, with a lower precedence than the directories.
    pub sources: Vec<Arc<dyn Source>>,
    /// The base of relative directories; the process's working directory when not given.
    pub cwd: Option<PathBuf>,
    /// The directory that `~` stands for.
    pub home: Option<PathBuf>,
    /// The only names to include; all if not given.
    pub include: Option<Vec<String>>,
    /// The names to exclude.
    pub exclude: Vec<String>,
    /// Limits on what is read.
    pub limits: SizeLimits,
    /// The time at which the files beside a `SKILL.md` are listed.
    pub resources: Listing,
    /// Whether a [`LiveLibrary`](crate::LiveLibrary) watches for changes and reloads them.
    pub watch: bool,
    /// The profile; the lenient one gives a skill without a name that of its folder.
    pub profile: Profile,
    /// Word vectors, by which skills are also found by their meaning.
    pub embedder: Option<Arc<Embedder>>,
    /// A cache of what was read; without it everything is read every time.
    pub cache: Option<Cache>,
}

/// All skills at one moment. A library never changes; [`reload`](Self::reload) makes a new one.
#[derive(Debug, Clone, Default)]
pub struct Library {
    /// The skills, sorted by name; of those with the same name the one that takes precedence comes
    /// first.
    pub(crate) skills: Vec<Arc<Skill>>,
    pub(crate) findings: Vec<Finding>,
    /// The paths of files that could not be loaded as skills.
    pub(crate) left_out: Vec<Arc<Path>>,
    pub(crate) options: Options,
    /// The index, built by the first request.
    pub(crate) searchable: Arc<OnceLock<Searchable>>,
    /// The location of the cached index, if there is a cache.
    pub(crate) cached_index: Option<IndexPlace>,
}

/// The reason why no library was loaded. A fault of a skill or directory is a [`Finding`] instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No directory or source was given; nothing else is scanned.
    #[error("no directories with skills are configured")]
    NoDirectories,
    /// The thread that watches for changes could not be started.
    #[error("cannot watch the skills")]
    Watch(#[source] io::Error),
}

impl Library {
    /// Loads the skills of all directories and sources. Only the frontmatter is read, except for
    /// skills of one name, which are compared.
    pub fn load(options: &Options) -> Result<Self, LoadError> {
        load(options, None)
    }

    /// Loads everything anew. A skill whose file can no longer be loaded is kept as it was, with a
    /// finding.
    pub fn reload(&self) -> Result<Self, LoadError> {
        load(&self.options, Some(self))
    }

    /// Returns the same library with only some of its skills.
    #[must_use]
    pub fn filter_skills(&self, is_kept: impl Fn(&Skill) -> bool) -> Self {
        let skills = self.skills.iter().filter(|it| is_kept(it)).cloned().collect();
        let cached_index = self.cached_index.clone().map(|it| IndexPlace { is_whole: false, ..it });
        Self { skills, searchable: Arc::default(), cached_index, ..self.clone() }
    }

    /// Returns every skill, sorted by name, including shadowed ones.
    pub fn all(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().map(|it| &**it)
    }

    /// Returns the skills that can be asked for by name alone, sorted by it.
    pub fn skills(&self) -> impl Iterator<Item = &Skill> {
        self.all().filter(|it| it.hidden_by.is_none())
    }

    /// Finds a skill by `scope:name`, by its name, or by the path of its file or folder.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.get_qualified(name)
            .or_else(|| self.get_exact(name))
            .or_else(|| self.get_by_path(Path::new(name)))
            .map(|it| &**it)
    }

    /// Returns the active skill for the name of a tool: the skill's own name before any other
    /// spelling.
    ///
    /// The name is the skill's in any case, or `skill_<name>`; `_` may replace `-`.
    pub fn for_tool(&self, name: &str) -> Option<&Skill> {
        let bare = name.get(6..).filter(|_| name[..6].eq_ignore_ascii_case("skill_"));
        self.skills()
            .find(|it| it.manifest.is_active() && *it.manifest.name == *name)
            .or_else(|| self.find_spelled_like(name))
            .or_else(|| self.find_spelled_like(bare?))
    }

    /// Returns the shortest text by which [`get`](Self::get) finds just this skill of the library.
    pub fn address(&self, skill: &Skill) -> String {
        let (name, path) = (&*skill.manifest.name, &skill.origin.path);
        // A skill that is not shadowed is found by its name, unless that can be read as
        // `scope:name`.
        if skill.hidden_by.is_none() && !name.contains(':') {
            return name.to_owned();
        }
        for selector in [name.to_owned(), format!("{}:{name}", skill.origin.scope)] {
            let found = self.get(&selector);
            if found.is_some_and(|it| it.origin.path.as_os_str() == path.as_os_str()) {
                return selector;
            }
        }
        path.display().to_string()
    }

    fn find_spelled_like(&self, name: &str) -> Option<&Skill> {
        self.skills()
            .find(|it| it.manifest.is_active() && letters(&it.manifest.name).eq(letters(name)))
    }

    fn get_qualified(&self, name: &str) -> Option<&Arc<Skill>> {
        let (scope, bare) = name.split_once(':')?;
        self.all_named(bare).iter().find(|it| it.origin.scope.as_str() == scope)
    }

    fn get_by_path(&self, path: &Path) -> Option<&Arc<Skill>> {
        let wanted = without_current_dirs(path);
        self.skills.iter().find(|it| {
            [&*it.origin.path, it.folder()].iter().any(|it| without_current_dirs(it) == wanted)
        })
    }

    /// Returns the skill that is found by exactly this name.
    fn get_exact(&self, name: &str) -> Option<&Arc<Skill>> {
        self.skills.get(self.lower_bound(name)).filter(|it| &*it.manifest.name == name)
    }

    /// Returns the skills of one name, the one that takes precedence first.
    fn all_named(&self, name: &str) -> &[Arc<Skill>] {
        let rest = &self.skills[self.lower_bound(name)..];
        &rest[..rest.partition_point(|it| &*it.manifest.name == name)]
    }

    /// Returns the position of the first name that does not sort before `name`.
    fn lower_bound(&self, name: &str) -> usize {
        self.skills.partition_point(|it| &*it.manifest.name < name)
    }

    /// Returns the position of the skill for a name or `scope:name`, ignoring case.
    pub(crate) fn position(&self, name: &str) -> Option<u32> {
        self.exact_position(name).or_else(|| {
            let (scope, bare) = name.split_once(':').unwrap_or(("", name));
            let qualified = self.skills.iter().position(|it| {
                it.origin.scope.as_str() == scope && it.manifest.name.eq_ignore_ascii_case(bare)
            });
            let position = qualified.or_else(|| {
                self.skills.iter().position(|it| it.manifest.name.eq_ignore_ascii_case(name))
            });
            position.map(|it| it as u32)
        })
    }

    /// Returns the position of the skill that is found by exactly this name.
    pub(crate) fn exact_position(&self, name: &str) -> Option<u32> {
        self.get_exact(name).map(|_| self.lower_bound(name) as u32)
    }

    /// Returns the position of a skill of this library.
    pub(crate) fn position_of(&self, skill: &Skill) -> Option<usize> {
        let name = &*skill.manifest.name;
        let at = self.all_named(name).iter().position(|it| std::ptr::eq(&**it, skill));
        at.map(|it| self.lower_bound(name) + it)
    }

    /// Whether some name starts with these letters.
    pub(crate) fn has_name_starting_with(&self, start: &str) -> bool {
        let first = self.skills.get(self.lower_bound(start));
        first.is_some_and(|it| it.manifest.name.starts_with(start))
    }

    /// Returns the index over all skills. The first caller waits until their instructions are read.
    pub(crate) fn searchable(&self) -> &Searchable {
        self.searchable.get_or_init(|| {
            Searchable::new(
                &self.skills,
                self.options.embedder.as_ref(),
                self.cached_index.as_ref(),
            )
        })
    }

    /// Returns the skills that have a tag.
    pub fn tagged(&self, tag: &str) -> impl Iterator<Item = &Skill> {
        self.skills().filter(move |it| it.manifest.has_tag(tag))
    }

    /// Returns the findings from loading: about what was repaired, rejected or shadowed.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the paths of files that could not be loaded as skills, each with a finding that says
    /// why.
    pub fn left_out(&self) -> &[Arc<Path>] {
        &self.left_out
    }

    /// Returns why the skill in the folder of this name, or at this path, could not be loaded;
    /// `None` if none was rejected there.
    pub fn why_left_out(&self, name: &str) -> Option<&Finding> {
        let wanted = without_current_dirs(Path::new(name));
        if wanted.as_os_str().is_empty() || wanted == Path::new(SKILL_FILE) {
            return None;
        }
        let path = self.left_out.iter().find(|it| {
            it.ends_with(&wanted) || it.parent().is_some_and(|it| it.ends_with(&wanted))
        });
        self.reason(path?)
    }

    /// Returns the worst finding about a file that was rejected.
    pub fn reason(&self, path: &Path) -> Option<&Finding> {
        let about = self.findings.iter().filter(|it| it.path.starts_with(path));
        about.max_by_key(|it| it.severity)
    }
}

/// Normalizes a path by removing redundant parts.
fn without_current_dirs(path: &Path) -> PathBuf {
    path.components().filter(|it| *it != Component::CurDir).collect()
}

/// Returns the letters of a name that matter for a tool.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_lowercase).map(|c| if c == '_' { '-' } else { c })
}
