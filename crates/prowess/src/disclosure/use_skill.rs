//! `use_skill`: the tool by which a model activates a skill.

use std::fmt;

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

use crate::{
    disclosure::{
        disclose::render_cached,
        invoke::{MAX_FILES, fold_paths, folder, remaining_files},
    },
    library::Library,
    read::{skill::Skill, source::ReadError},
    text::shorten::one_line,
};

/// Load a skill's instructions and list its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UseSkillInput {
    /// The exact name of the skill
    #[serde(alias = "skill_name")]
    pub name: String,
}

/// The result of `use_skill`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum UsedSkill {
    /// The skill exists.
    Found {
        /// Its name
        name: String,
        /// The folder that its relative paths begin at
        folder: String,
        /// The instructions; paths of its own files are absolute if it is on disk
        instructions: String,
        /// The files that come with it, as paths below the folder
        resources: Vec<String>,
    },
    /// There is no such skill.
    NotFound {
        /// The message for the model
        message: String,
    },
}

impl fmt::Display for UsedSkill {
    /// Formats it for a model: the instructions as they are, with nothing escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { name, folder, instructions, resources } => {
                write!(f, "# Skill: {}\n\nFolder: {}\n\n", one_line(name), one_line(folder))?;
                writeln!(f, "{}", instructions.trim_end())?;
                if !resources.is_empty() {
                    f.write_str("\nFiles, relative to the folder:\n")?;
                }
                let lines = fold_paths(resources.iter().map(String::as_str));
                for (name, count) in lines.iter().take(MAX_FILES) {
                    match count {
                        1 => writeln!(f, "- {}", one_line(name))?,
                        _ => writeln!(f, "- {} ({count} files)", one_line(name))?,
                    }
                }
                f.write_str(&remaining_files(&lines))
            }
            Self::NotFound { message } => f.write_str(message),
        }
    }
}

impl UsedSkill {
    /// Returns the result for a skill.
    pub fn of(skill: &Skill) -> Result<Self, ReadError> {
        Ok(Self::Found {
            name: skill.manifest.name.to_string(),
            folder: folder(skill),
            instructions: render_cached(skill, skill.text()?).full.clone(),
            resources: skill.resources().iter().map(|it| it.path.to_string()).collect(),
        })
    }
}

impl UseSkillInput {
    /// Returns the JSON schema of the input, derived from this type.
    pub fn schema() -> Schema {
        schema_for!(Self)
    }
}

/// Activates a skill by its exact name. An unknown name is an answer, not an error.
pub fn use_skill(library: &Library, input: &UseSkillInput) -> Result<UsedSkill, ReadError> {
    let Some(skill) = library.get(&input.name) else {
        return Ok(UsedSkill::NotFound { message: format!("skill `{}` not found", input.name) });
    };
    UsedSkill::of(skill)
}
