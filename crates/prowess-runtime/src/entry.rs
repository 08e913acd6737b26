//! A skill in full, as it is saved, approved and executed.

use prowess::{
    Definition, DefinitionError, Manifest, ReadError, Skill, Type, definition, parameters, render,
    render_definition,
};
use serde_json::Value;

use crate::{
    outcome::{Outcome, OutcomeStatus},
    skill_folder::{FolderError, SkillFolder},
};

/// A skill in full: what it is called, what it executes, and what it takes.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillRecord {
    /// The frontmatter, typed.
    pub manifest: Manifest,
    /// What it executes.
    pub definition: Definition,
    /// The JSON schema of what it takes.
    pub parameters: Option<Value>,
    /// Its folder from the root of the disk; nothing for one that is not on disk.
    pub folder: Option<SkillFolder>,
}

/// A skill is not what its type says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillRecordError {
    /// It could not be read.
    #[error("cannot read skill `{skill}`")]
    Read {
        /// The skill.
        skill: String,
        /// Why.
        source: ReadError,
    },
    /// Its body does not have what its type needs.
    #[error("skill `{skill}` cannot be executed")]
    Definition {
        /// The skill.
        skill: String,
        /// What is missing.
        source: DefinitionError,
    },
    /// The files beside it could not be read.
    #[error("cannot read the files of skill `{skill}`")]
    Files {
        /// The skill.
        skill: String,
        /// Why.
        source: FolderError,
    },
}

impl SkillRecord {
    /// Reads a skill of a library in full.
    pub fn of(skill: &Skill) -> Result<Self, SkillRecordError> {
        let name = || skill.manifest.name.to_string();
        let body = skill
            .instructions()
            .map_err(|source| SkillRecordError::Read { skill: name(), source })?;
        let entry = Self::new(skill.manifest.clone(), &body)?;
        Ok(Self { folder: skill.absolute_folder().map(SkillFolder::from), ..entry })
    }

    /// The same, with the files of its folder as they are now if it runs among them: what is
    /// approved of it is then what runs.
    pub fn with_files(self) -> Result<Self, SkillRecordError> {
        let Definition::Script { .. } = self.definition else { return Ok(self) };
        let skill = self.manifest.name.to_string();
        let folder = self.folder.as_ref().map(SkillFolder::read).transpose();
        let folder = folder.map_err(|source| SkillRecordError::Files { skill, source })?;
        Ok(Self { folder, ..self })
    }

    /// A skill of a library as it is told: whatever its type, all of it is a text.
    pub(crate) fn told(skill: &Skill) -> Result<Self, ReadError> {
        let content = skill.instructions()?;
        Ok(match Self::new(skill.manifest.clone(), &content) {
            Ok(entry) if entry.manifest.kind == Type::Instruction => {
                Self { folder: skill.absolute_folder().map(SkillFolder::from), ..entry }
            }
            _ => Self::text(skill, content),
        })
    }

    /// A text that stands for a skill.
    pub(crate) fn text(skill: &Skill, content: String) -> Self {
        Self {
            manifest: skill.manifest.clone(),
            definition: Definition::Instruction { content },
            parameters: None,
            folder: skill.absolute_folder().map(SkillFolder::from),
        }
    }

    /// Makes an entry of a manifest and the body under it.
    pub fn new(manifest: Manifest, body: &str) -> Result<Self, SkillRecordError> {
        let bad =
            |source| SkillRecordError::Definition { skill: manifest.name.to_string(), source };
        let parameters = match parameters(body) {
            // Nobody runs these, and what stands under that heading may be meant for people.
            Err(_) if manifest.kind == Type::Instruction => None,
            parameters => parameters.map_err(bad)?,
        };
        let definition = definition(manifest.kind, body).map_err(bad)?;
        Ok(Self { definition, parameters, folder: None, manifest })
    }

    /// Its `SKILL.md`.
    pub fn render(&self) -> String {
        render(&self.manifest, &self.body())
    }

    /// What stands under the frontmatter.
    pub(crate) fn body(&self) -> String {
        render_definition(&self.definition, self.parameters.as_ref())
    }
}

impl From<&SkillRecordError> for Outcome {
    fn from(error: &SkillRecordError) -> Self {
        Self::error(OutcomeStatus::Invalid, error)
    }
}
