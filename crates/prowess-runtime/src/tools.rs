//! The tools of the runtime, one per file.

mod use_skill;
mod find_skills;
mod run_skill;
mod skill;
mod read_file;
mod read_skill_file;
mod file_operations;
mod execute_command;
#[cfg(feature = "http")]
mod http_request;
#[cfg(feature = "sql")]
mod execute_sql;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::outcome::{Outcome, OutcomeStatus};

#[cfg(feature = "sql")]
pub use self::execute_sql::ExecuteSql;
#[cfg(feature = "http")]
pub use self::http_request::HttpRequest;
pub use self::{
    execute_command::ExecuteCommand,
    file_operations::FileOperations,
    find_skills::FindSkills,
    read_file::ReadFile,
    read_skill_file::ReadSkillFile,
    run_skill::RunSkill,
    skill::{SkillTool, skill_tools},
    use_skill::UseSkill,
};

/// Generates the self-contained JSON schema of an input from its type.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Parses an input.
fn input<T: DeserializeOwned>(input: &Value) -> Result<T, Box<Outcome>> {
    let read = T::deserialize(input);
    read.map_err(|error| {
        Outcome::bad(OutcomeStatus::Invalid, format!("invalid input: {error}")).into()
    })
}

/// Runs blocking work on a thread of its own.
async fn blocking(
    work: impl FnOnce() -> Result<Outcome, Box<Outcome>> + Send + 'static,
) -> Outcome {
    crate::blocking::blocking(work).await.flatten().unwrap_or_else(|it| *it)
}
