//! Discloses a skill at a level.

mod brief;
mod thresholds;

pub use self::thresholds::{Thresholds, ThresholdsError};

use std::sync::Arc;

use crate::{
    disclosure::invoke::{fill_instructions, invoke},
    read::{
        skill::{MEMORABLE, RenderedBody, Skill},
        source::{ReadError, Resource},
    },
    text::{
        invisible::visible,
        shorten::{escape_tags, one_line, shorten_line, to_sentence},
        tokens::Tokenizer,
    },
};

/// The approximate number of tokens of a skill's metadata.
const METADATA: usize = 50;
/// The number of those for the description, however long the name is.
const DESCRIPTION: usize = 20;

/// The level of a disclosure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Its name and description, in about 50 tokens.
    Metadata,
    /// Also its parameters and first instructions, in about 200 tokens.
    Brief,
    /// All of its instructions, and the names of its files.
    Full,
}

/// A skill disclosed at a level.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disclosure {
    /// The level.
    pub level: Level,
    /// The text for the model.
    pub text: String,
    /// Its estimated length in tokens.
    pub tokens: usize,
    /// The files that the model can ask for.
    pub resources: Vec<Resource>,
}

/// Renders the instructions of a skill, once as long as they are unchanged.
pub(crate) fn render_cached(skill: &Skill, instructions: Arc<str>) -> Arc<RenderedBody> {
    if instructions.len() > MEMORABLE {
        return render(skill, &instructions);
    }
    skill.home.rendered.get((skill.origin.path.clone(), instructions), |key| render(skill, &key.1))
}

fn render(skill: &Skill, instructions: &str) -> Arc<RenderedBody> {
    let full = fill_instructions(skill, instructions, None);
    Arc::new(RenderedBody { brief: brief::brief(&full), full })
}

impl Level {
    /// Returns the word for it, as in `--level`.
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
        Level::Metadata => metadata_text(skill),
        Level::Brief => metadata_text(skill) + &render_cached(skill, skill.text()?).brief,
        Level::Full => full_text(skill)?,
    };
    let tokens = Tokenizer::Estimate.count(&text);
    Ok(Disclosure { level, text, tokens, resources: skill.resources().to_vec() })
}

/// Returns the full text of the skill, its description first.
fn full_text(skill: &Skill) -> Result<String, ReadError> {
    let (name, description) = (&skill.manifest.name, &skill.manifest.description);
    let description = visible(description);
    let description = escape_tags(&description);
    Ok(format!("# {}\n\n{description}\n\n{}", one_line(name), invoke(skill, None)?))
}

/// Returns the name and the description.
fn metadata_text(skill: &Skill) -> String {
    let description = one_line(&skill.description());
    let description = escape_tags(&description);
    let heading = format!("# {}\n\n", one_line(&skill.manifest.name));
    let count = |text: &str| Tokenizer::Estimate.count(text);
    let room = METADATA.saturating_sub(count(&heading)).max(DESCRIPTION);
    format!("{heading}{}\n", to_sentence(shorten_line(&description, room, count)))
}
