//! Validates new skills.

use prowess::Definition;
use prowess_shell::{Hazard, lint};
use prowess_template::{Template, TemplateError};
use serde_json::Value;

use crate::{
    definition::ShapeError,
    entry::SkillRecord,
    schema::{Schema, SchemaError},
    store::StoreError,
};

/// A skill could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Its type or definition is invalid.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Its script is dangerous.
    #[error("the script is refused: line {} is `{}` ({})", .0.line, .0.command, .0.kind.as_str())]
    Hazard(Hazard),
    /// Its script contains a NUL character.
    #[error("the script is refused: it contains a NUL character")]
    Nul,
    /// Its template cannot be parsed.
    #[error("cannot parse the template")]
    Template(#[from] TemplateError),
    /// The schema of its parameters cannot be used.
    #[error("cannot use the schema of its parameters")]
    Schema(#[from] SchemaError),
    /// Its parameters are not an object.
    #[error("the schema of its parameters has type {kind}, expected \"object\"")]
    NoObject {
        /// The type in the schema, as JSON.
        kind: Value,
    },
    /// The store refused it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks that an entry has what its type needs: steps, a safe script, a valid template, checkable
/// parameters. An instruction may be empty.
pub fn check_record(entry: &SkillRecord) -> Result<(), CreateError> {
    let missing =
        |what| CreateError::Shape(ShapeError::Missing { kind: entry.manifest.kind, what });
    match &entry.definition {
        Definition::Instruction { .. } => {}
        Definition::Composite { steps } if steps.is_empty() => {
            return Err(missing("a non-empty list of `steps`"));
        }
        Definition::Composite { steps } => {
            if let Some(at) = steps.iter().position(|it| it.tool.trim().is_empty()) {
                return Err(ShapeError::Step { number: at + 1, what: "a `tool`" }.into());
            }
        }
        Definition::Script { script } if script.trim().is_empty() => {
            return Err(missing("a `script` string"));
        }
        // A shell stops there, so the checked text would differ from the one that runs.
        Definition::Script { script } if script.contains('\0') => {
            return Err(CreateError::Nul);
        }
        Definition::Script { script } => {
            if let Some(hazard) = lint(script) {
                return Err(CreateError::Hazard(hazard));
            }
        }
        Definition::Template { template } if template.trim().is_empty() => {
            return Err(missing("a `template` string"));
        }
        Definition::Template { template } => drop(Template::parse(template)?),
    }
    if let Some(parameters) = &entry.parameters {
        Schema::new(parameters)?;
        // A schema without a type is treated as an object.
        if let Some(kind) = parameters.get("type").filter(|it| *it != "object") {
            return Err(CreateError::NoObject { kind: kind.clone() });
        }
    }
    Ok(())
}
