//! `read_file`: reads a file of an active skill, or one inside the roots.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use prowess::{Skill, lock};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    blocking,
    file_operations::{page, path_replaced, read, with_path},
    input, schema,
};
use crate::sys::MetadataExt as _;
use crate::{
    active::ActiveSkills,
    content::FileChunk,
    outcome::{Outcome, OutcomeStatus},
    roots::Roots,
    tool::{Action, Tool, ToolFuture},
    tool_output::ToolOutput,
};

/// The tool `read_file`. Files of skills are cached for five minutes, unless they are edited.
#[derive(Debug, Clone)]
pub struct ReadFile(Arc<Reader>);

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A file of an active skill, by its path in the skill or its name alone, or any other file in
    /// the working directory
    path: String,
    /// Byte offset to start from
    #[serde(default)]
    offset: u64,
    /// Maximum number of bytes
    limit: Option<u64>,
}

/// The lifetime of a cached file, and the maximum size of all of them.
const LIFETIME: Duration = Duration::from_mins(5);
const MAX_BYTES: usize = 16 * 1024 * 1024;

struct Reader {
    active: Arc<ActiveSkills>,
    roots: Arc<Roots>,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    cached: Mutex<HashMap<Key, CachedFile>>,
}

/// The `SKILL.md` of a skill, and the path of a resource within it.
type Key = (Arc<Path>, Box<str>);

#[derive(Clone)]
struct CachedFile {
    bytes: Arc<[u8]>,
    stamp: Option<Stamp>,
    read_at: Instant,
}

/// Identifies the state of a file: its device and inode, its size and its times.
type Stamp = (u64, u64, u64, i64, i64, i64, i64);

/// A resource of an active skill.
struct ActiveResource {
    skill: Skill,
    resource: Box<str>,
}

impl ReadFile {
    /// Creates the tool for the active skills, and for other files inside these directories.
    pub fn new(active: Arc<ActiveSkills>, roots: Arc<Roots>) -> Self {
        Self::with_clock(active, roots, Instant::now)
    }

    /// Creates the tool with another clock than the system's.
    pub fn with_clock(
        active: Arc<ActiveSkills>,
        roots: Arc<Roots>,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Reader { active, roots, clock: Box::new(clock), cached: Mutex::default() }))
    }
}

impl Tool for ReadFile {
    fn name(&self) -> &str {
        "read_file"
    }

    fn description(&self) -> Cow<'_, str> {
        "Read a file of an active skill, by its path in the skill or its name alone, or any file in the \
         working directory. Returns `next_offset` if there is more; binary content is base64."
            .into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        let input: Input = input(given)?;
        match self.0.find(&self.0.active(), &input.path)? {
            Some(found) => {
                let bytes = self.0.bytes(&found).map_err(|it| read_failure(&input.path, &it))?;
                Ok(found.path().map_or(Action::Tell, |path| Action::Resource { path, bytes }))
            }
            None => Ok(Action::Read(self.0.roots.find_existing(&input.path)?.absolute())),
        }
    }

    fn perform<'a>(&'a self, action: Action, given: Value) -> ToolFuture<'a> {
        let reader = self.0.clone();
        let active = reader.active();
        Box::pin(blocking(move || {
            let input: Input = input(&given)?;
            match (reader.find(&active, &input.path)?, action) {
                (Some(found), Action::Resource { path, bytes })
                    if found.path().as_ref() == Some(&path) =>
                {
                    to_outcome(&found, &bytes, &input)
                }
                // The meaning of the path has just changed.
                (_, Action::Resource { .. }) | (Some(_), Action::Read(_)) => {
                    Err(path_replaced(&input.path))
                }
                (Some(found), _) => {
                    let bytes = reader.bytes(&found);
                    to_outcome(&found, &bytes.map_err(|it| read_failure(&input.path, &it))?, &input)
                }
                (None, action) => {
                    let Input { path, offset, limit } = &input;
                    let authorized =
                        if let Action::Read(it) = &action { Some(&**it) } else { None };
                    read(&reader.roots, path, *offset, *limit, authorized)
                }
            }
        }))
    }

    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        outcome.is_ok() && outcome.output.as_ref().is_some_and(|it| it["skill"].is_string())
    }
}

impl Reader {
    fn active(&self) -> Arc<ActiveSkills> {
        ActiveSkills::current().unwrap_or_else(|| self.active.clone())
    }

    /// Finds the resource that a path means. `None` if no active skill has one; an outcome if
    /// several have.
    fn find(
        &self,
        active: &ActiveSkills,
        path: &str,
    ) -> Result<Option<ActiveResource>, Box<Outcome>> {
        let skills = active.skills();
        let mut found = MEANINGS
            .iter()
            .map(|it| find_all(&skills, path, *it))
            .find(|it| !it.is_empty())
            .unwrap_or_default();
        if let [_, _, ..] = &found[..] {
            let names = found.iter().map(|it| format!("`{}`", it.address()));
            let names = names.take(MAX_CANDIDATES).collect::<Vec<_>>().join(", ");
            let message = format!("`{path}` is the name of {} files", found.len());
            return Err(Outcome::bad(OutcomeStatus::Invalid, message)
                .hint(format!("use one of these paths: {names}"))
                .into());
        }
        Ok(found.pop())
    }

    fn bytes(&self, found: &ActiveResource) -> Result<Arc<[u8]>, prowess::ReadError> {
        let key = (found.skill.origin.path.clone(), found.resource.clone());
        let (now, stamp) = ((self.clock)(), found.stamp());
        if let Some(cached) = self
            .cache()
            .get(&key)
            .filter(|it: &&CachedFile| it.stamp == stamp && now < it.read_at + LIFETIME)
        {
            return Ok(cached.bytes.clone());
        }
        let bytes: Arc<[u8]> = found.skill.read(&found.resource)?.into();
        let mut cached = self.cache();
        cached.retain(|_, it| now < it.read_at + LIFETIME);
        let size: usize = cached.values().map(|it| it.bytes.len()).sum();
        if size + bytes.len() > MAX_BYTES {
            cached.clear();
        }
        if bytes.len() <= MAX_BYTES {
            cached.insert(key, CachedFile { bytes: bytes.clone(), stamp, read_at: now });
        }
        Ok(bytes)
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<Key, CachedFile>> {
        lock(&self.cached)
    }
}

fn to_outcome(
    found: &ActiveResource,
    bytes: &[u8],
    input: &Input,
) -> Result<Outcome, Box<Outcome>> {
    let page = page(input.limit)?;
    let part = FileChunk::read(&mut io::Cursor::new(bytes), input.offset, page);
    let part = part.expect("reading from memory cannot fail");
    let mut answer = with_path(&input.path, part.into_output(bytes.len() as u64));
    let (skill, resource) = (&*found.skill.manifest.name, &*found.resource);
    answer["skill"] = skill.into();
    answer["resource"] = resource.into();
    let typed = ToolOutput::ActiveResource {
        skill: skill.to_owned(),
        resource: resource.to_owned(),
        text: answer["content"].as_str().unwrap_or_default().to_owned(),
    };
    Ok(Outcome::ok(answer).with_typed(typed))
}

fn read_failure(path: &str, error: &prowess::ReadError) -> Box<Outcome> {
    Box::new(Outcome::bad(OutcomeStatus::Failed, format!("cannot read `{path}`: {error}")))
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("active", &self.active)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

/// The maximum number of candidates in a message.
const MAX_CANDIDATES: usize = 10;

/// Whether a path means a resource of a skill.
type Meaning = fn(&Skill, resource: &str, path: &str) -> bool;

/// The possible meanings of a path, in order of precedence: a path within the skill, that after the
/// skill's name, that after its folder as returned by `use_skill`, a file name.
const MEANINGS: [Meaning; 4] = [
    |_, resource, path| path == resource,
    |skill, resource, path| {
        let behind = path.strip_prefix(&*skill.manifest.name).and_then(|it| it.strip_prefix('/'));
        behind == Some(resource)
    },
    |skill, resource, path| {
        // Most paths are excluded without looking up the folder.
        path.ends_with(resource) && {
            let folder = skill.absolute_folder().unwrap_or_else(|| skill.folder().to_owned());
            folder.join(resource) == Path::new(path)
        }
    },
    |_, resource, path| resource.rsplit('/').next() == Some(path),
];

/// Returns the resources that a path means in one way.
fn find_all(skills: &[Skill], path: &str, is_meant: Meaning) -> Vec<ActiveResource> {
    let path = path.trim_start_matches("./");
    skills
        .iter()
        .flat_map(|skill: &Skill| {
            skill
                .resources()
                .iter()
                .filter(|it| is_meant(skill, &it.path, path))
                .map(|it| ActiveResource { skill: skill.clone(), resource: it.path.clone() })
                .collect::<Vec<_>>()
        })
        .collect()
}

impl ActiveResource {
    /// Returns an unambiguous name of the resource.
    fn address(&self) -> String {
        format!("{}/{}", self.skill.manifest.name, self.resource)
    }

    /// Returns its path; `None` if the skill is not on disk.
    fn path(&self) -> Option<PathBuf> {
        Some(self.skill.absolute_folder()?.join(&*self.resource))
    }

    fn stamp(&self) -> Option<Stamp> {
        let it = std::fs::metadata(self.path()?).ok()?;
        Some((
            it.dev(),
            it.ino(),
            it.size(),
            it.mtime(),
            it.mtime_nsec(),
            it.ctime(),
            it.ctime_nsec(),
        ))
    }
}
