//! The outputs of tools that hosts render themselves, as types.

use prowess::{Thresholds, UsedSkill};
use serde::{Deserialize, Serialize};

/// The output of a tool, typed. [`Outcome::output`](crate::Outcome::output) has the same as JSON.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolOutput {
    /// The skills that `find_skills` found.
    FoundSkills(FoundSkills),
    /// The skill that `use_skill` loaded.
    UsedSkill(UsedSkill),
    /// A part of a file that `read_skill_file` read.
    SkillFile(SkillFilePart),
    /// A part of a file of an active skill that `read_file` read.
    ActiveResource {
        /// The name of the skill.
        skill: String,
        /// The path of the file in the skill.
        resource: String,
        /// The text; empty if the file is not text.
        text: String,
    },
}

/// The skills that match a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FoundSkills {
    /// The matching skills, best first; the nearest ones if none clearly matches.
    pub skills: Vec<FoundSkill>,
    /// The number of skills that were searched.
    pub total: usize,
}

/// A skill that matches a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FoundSkill {
    /// Its name.
    pub name: String,
    /// Its description, on one line.
    pub description: String,
    /// Its confidence from 0 to 1, in hundredths.
    pub confidence: f64,
    /// The level that the confidence is worth: `metadata`, `brief` or `full`.
    pub level: String,
}

impl FoundSkills {
    /// Creates a list of matching skills, out of so many.
    pub fn new(skills: Vec<FoundSkill>, total: usize) -> Self {
        Self { skills, total }
    }
}

impl FoundSkill {
    /// Creates a matching skill, with the level that its confidence is worth.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        confidence: f64,
        thresholds: Thresholds,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            confidence: (confidence * 100.0).round() / 100.0,
            level: thresholds.level(confidence).as_str().to_owned(),
        }
    }
}

/// A part of a file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct SkillFilePart {
    /// The path, as it was given.
    pub path: String,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// The offset of the next part; `None` after the last one.
    pub next_offset: Option<u64>,
    /// The text of a part that is text.
    pub content: Option<String>,
    /// Any other part, in base64.
    pub content_base64: Option<String>,
}
