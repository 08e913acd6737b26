//! As much of a skill as is asked for.

mod brief;
mod thresholds;

pub use self::thresholds::{Thresholds, ThresholdsError};

use std::{borrow::Cow, sync::Arc};

use crate::{
    invisible::visible,
    invoke::{filled, invoke},
    parse::described,
    shorten::{defused, one_line, shortened, to_sentence},
    skill::{MEMORABLE, Resource, Skill},
    source::ReadError,
    tokens::Tokenizer,
};

/// How many tokens of a skill are shown as metadata, about.
const METADATA: usize = 50;
/// How many of them are the description's, however long the name is.
const DESCRIPTION: usize = 20;
/// Where a skill can have a description for this level alone.
pub(crate) const METADATA_FILE: &str = "METADATA.yml";

/// How much of a skill is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Its name and description, in about 50 tokens.
    Metadata,
    /// Its parameters and first instructions as well, in about 200 tokens.
    Brief,
    /// All of its instructions, and the names of its files.
    Full,
}

/// As much of a skill as was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disclosure {
    /// How much that is.
    pub level: Level,
    /// What the model is told.
    pub text: String,
    /// How long it is to a model, by estimate.
    pub tokens: usize,
    /// The files it can ask for.
    pub resources: Vec<Resource>,
}

/// What the instructions of a skill say without arguments.
#[derive(Debug)]
pub(crate) struct RenderedBody {
    /// All of it, paths absolute, without the list of files.
    pub(crate) full: String,
    /// The parameters and the first instructions.
    pub(crate) brief: String,
}

impl RenderedBody {
    /// What these instructions of a skill say, found out once for as long as they stay the same.
    pub(crate) fn of(skill: &Skill, instructions: Arc<str>) -> Arc<Self> {
        let find = |instructions: &str| {
            let full = filled(skill, instructions, None);
            Arc::new(Self { brief: brief::brief(&full), full })
        };
        if instructions.len() > MEMORABLE {
            return find(&instructions);
        }
        skill.home.told.get((skill.origin.path.clone(), instructions), |key| find(&key.1))
    }
}

impl Level {
    /// The word for it, as in `--level`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Brief => "brief",
            Self::Full => "full",
        }
    }
}

/// Discloses a skill. The instructions are read only when the level needs them.
pub fn disclose(skill: &Skill, level: Level) -> Result<Disclosure, ReadError> {
    let text = match level {
        Level::Metadata => metadata(skill),
        Level::Brief => metadata(skill) + &RenderedBody::of(skill, skill.text()?).brief,
        Level::Full => full(skill)?,
    };
    let tokens = Tokenizer::Estimate.count(&text);
    Ok(Disclosure { level, text, tokens, resources: skill.resources().to_vec() })
}

/// Everything that the skill says, its description first.
fn full(skill: &Skill) -> Result<String, ReadError> {
    let (name, description) = (&skill.manifest.name, &skill.manifest.description);
    let description = visible(description);
    let description = defused(&description);
    Ok(format!("# {}\n\n{description}\n\n{}", one_line(name), invoke(skill, None)?))
}

/// The description that `METADATA.yml` has, or else the frontmatter. A file that is broken or cannot
/// be read counts for nothing.
pub(crate) fn description(skill: &Skill) -> Cow<'_, str> {
    let has_file = skill.resources().iter().any(|it| &*it.path == METADATA_FILE);
    let read = || described(&skill.read(METADATA_FILE).ok()?);
    let own = has_file.then(read).flatten();
    own.map_or(Cow::Borrowed(&*skill.manifest.description), |it| Cow::Owned(it.into()))
}

/// The name and the description.
fn metadata(skill: &Skill) -> String {
    let description = one_line(&description(skill));
    let description = defused(&description);
    let heading = format!("# {}\n\n", one_line(&skill.manifest.name));
    let count = |text: &str| Tokenizer::Estimate.count(text);
    let room = METADATA.saturating_sub(count(&heading)).max(DESCRIPTION);
    format!("{heading}{}\n", to_sentence(shortened(&description, room, count)))
}
