//! The tools that come with the runtime, one a file.

mod execute_command;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::outcome::{Outcome, Status};

pub use self::execute_command::ExecuteCommand;

/// The JSON schema of an input, made from its type, whole in itself.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Reads an input.
fn input<T: DeserializeOwned>(input: &Value) -> Result<T, Box<Outcome>> {
    let read = T::deserialize(input);
    read.map_err(|error| {
        Outcome::bad(Status::Invalid, format!("the input is wrong: {error}")).into()
    })
}
