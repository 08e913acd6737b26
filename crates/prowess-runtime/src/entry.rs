//! A complete skill, as it is saved, approved and executed.

use prowess::{
    Definition, DefinitionError, Manifest, ReadError, Skill, Type, definition, parameters, render,
    render_definition,
};
use serde_json::Value;

use crate::{
    outcome::{Outcome, OutcomeStatus},
    skill_folder::{FolderError, SkillFolder},
};

/// A complete skill: its manifest, its definition, and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillRecord {
    /// The frontmatter, typed.
    pub manifest: Manifest,
    /// The definition that it executes.
    pub definition: Definition,
    /// The JSON schema of its parameters.
    pub parameters: Option<Value>,
    /// Its absolute folder; `None` if it is not on disk.
    pub folder: Option<SkillFolder>,
}

/// A skill does not match its type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillRecordError {
    /// Reading failed.
    #[error("cannot read skill `{skill}`")]
    Read {
        /// The skill.
        skill: String,
        /// The error.
        source: ReadError,
    },
    /// Its body lacks a part that its type needs.
    #[error("skill `{skill}` cannot be executed")]
    Definition {
        /// The skill.
        skill: String,
        /// The error.
        source: DefinitionError,
    },
    /// The files next to it could not be read.
    #[error("cannot read the files of skill `{skill}`")]
    Files {
        /// The skill.
        skill: String,
        /// The error.
        source: FolderError,
    },
}

impl SkillRecord {
    /// Reads a complete skill of a library.
    pub fn of(skill: &Skill) -> Result<Self, SkillRecordError> {
        let body = skill.instructions().map_err(|source| SkillRecordError::Read {
            skill: skill.manifest.name.to_string(),
            source,
        })?;
        let entry = Self::new(skill.manifest.clone(), &body)?;
        Ok(Self { folder: skill.absolute_folder().map(SkillFolder::from), ..entry })
    }

    /// Adds the current files of its folder if it is a script, so that the approved files are those
    /// that run.
    pub fn with_files(self) -> Result<Self, SkillRecordError> {
        let Definition::Script { .. } = self.definition else { return Ok(self) };
        let skill = self.manifest.name.to_string();
        let folder = self.folder.as_ref().map(SkillFolder::read).transpose();
        let folder = folder.map_err(|source| SkillRecordError::Files { skill, source })?;
        Ok(Self { folder, ..self })
    }

    /// Returns a skill for disclosure: whatever its type, all of it is text.
    pub(crate) fn for_disclosure(skill: &Skill) -> Result<Self, ReadError> {
        let content = skill.instructions()?;
        Ok(match Self::new(skill.manifest.clone(), &content) {
            Ok(entry) if entry.manifest.kind == Type::Instruction => {
                Self { folder: skill.absolute_folder().map(SkillFolder::from), ..entry }
            }
            _ => Self::text(skill, content),
        })
    }

    /// Returns a skill whose instructions are this text.
    pub(crate) fn text(skill: &Skill, content: String) -> Self {
        Self {
            manifest: skill.manifest.clone(),
            definition: Definition::Instruction { content },
            parameters: None,
            folder: skill.absolute_folder().map(SkillFolder::from),
        }
    }

    /// Creates a record from a manifest and the body below it.
    pub fn new(manifest: Manifest, body: &str) -> Result<Self, SkillRecordError> {
        let bad =
            |source| SkillRecordError::Definition { skill: manifest.name.to_string(), source };
        let parameters = match parameters(body) {
            // These are not run, and the section below that heading may be meant for people.
            Err(_) if manifest.kind == Type::Instruction => None,
            parameters => parameters.map_err(bad)?,
        };
        let definition = definition(manifest.kind, body).map_err(bad)?;
        Ok(Self { definition, parameters, folder: None, manifest })
    }

    /// Renders its `SKILL.md`.
    pub fn render(&self) -> String {
        render(&self.manifest, &self.body())
    }

    /// Renders the body below the frontmatter.
    pub(crate) fn body(&self) -> String {
        render_definition(&self.definition, self.parameters.as_ref())
    }
}

impl From<&SkillRecordError> for Outcome {
    fn from(error: &SkillRecordError) -> Self {
        Self::error(OutcomeStatus::Invalid, error)
    }
}
