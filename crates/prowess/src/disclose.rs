//! As much of a skill as is asked for.

use std::borrow::Cow;

use crate::{
    definition::parameters,
    skill::{Resource, Skill},
    source::ReadError,
    tokens::estimate,
};

/// How many characters of a description are shown before everything is asked for.
const MAX_DESCRIPTION: usize = 1024;
/// How many tokens of instructions a brief holds.
const BRIEF: usize = 150;

/// How much of a skill is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Its name and description.
    Metadata,
    /// Its parameters and first instructions as well.
    Brief,
    /// All of its instructions.
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

impl Level {
    /// The word for it, as in `--level`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Brief => "brief",
            Self::Full => "full",
        }
    }

    /// The level for a confidence: brief from 0.15, full from 0.7, metadata for what is no number.
    pub fn from_confidence(confidence: f64) -> Self {
        if confidence >= 0.7 {
            Self::Full
        } else if confidence >= 0.15 {
            Self::Brief
        } else {
            Self::Metadata
        }
    }
}

/// Discloses a skill. The instructions are read only when the level needs them.
pub fn disclose(skill: &Skill, level: Level) -> Result<Disclosure, ReadError> {
    let manifest = &skill.manifest;
    let mut text = format!("# {}\n\n{}\n", manifest.name, described(&manifest.description, level));
    if level >= Level::Brief {
        let instructions = skill.instructions()?;
        if level == Level::Full {
            text.push('\n');
            text.push_str(&instructions);
        } else {
            brief(&mut text, &instructions);
        }
    }
    Ok(Disclosure { level, tokens: estimate(&text), text, resources: skill.resources().to_vec() })
}

/// The description, cut to what the specification allows unless everything is asked for.
fn described(description: &str, level: Level) -> Cow<'_, str> {
    match description.char_indices().nth(MAX_DESCRIPTION) {
        Some((end, _)) if level < Level::Full => Cow::Owned(format!("{}…", &description[..end])),
        _ => Cow::Borrowed(description),
    }
}

/// The parameters and the first instructions, as many lines as fit; a cut is said.
fn brief(text: &mut String, instructions: &str) {
    let schema = parameters(instructions).ok().flatten();
    let properties = schema.as_ref().and_then(|it| it["properties"].as_object());
    let parameters = properties.into_iter().flatten().map(|(name, property)| {
        let kind = property["type"].as_str().unwrap_or("any");
        let about = property["description"].as_str().unwrap_or("");
        format!("- `{name}` ({kind}) {about}")
    });
    let mut used = 0;
    let lines = parameters.chain(instructions.lines().map(str::to_owned));
    text.push('\n');
    for line in lines {
        used += estimate(&line).max(1);
        if used > BRIEF {
            text.push_str("… (cut here; ask for the full skill)\n");
            return;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
