//! `find_skills`: which skills fit a task.

use std::{borrow::Cow, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{blocking, input, schema};
use crate::{
    outcome::Outcome,
    provider::Provider,
    retriever::Retriever,
    tool::{Act, Answer, Tool},
};

/// The tool `find_skills`.
#[derive(Debug)]
pub struct FindSkills {
    /// Whoever has the skills.
    pub provider: Arc<dyn Provider>,
}

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What is to be done, in a few words
    query: String,
}

/// How many skills are told.
const MOST: usize = 10;

impl Tool for FindSkills {
    fn name(&self) -> &str {
        "find_skills"
    }

    fn description(&self) -> Cow<'_, str> {
        "Finds the skills that fit a task, best first, with what each is for. `use_skill` takes one \
         up."
            .into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn act(&self, given: &Value) -> Result<Act, Box<Outcome>> {
        input::<Input>(given).map(|_| Act::Tell)
    }

    fn call<'a>(&'a self, given: Value) -> Answer<'a> {
        let retriever = Retriever { provider: Some(self.provider.clone()) };
        Box::pin(blocking(move || {
            let Input { query } = input(&given)?;
            let found = retriever.retrieve(&query, MOST);
            let told =
                found.iter().map(|it| json!({"name": it.name, "description": it.description}));
            Ok(Outcome::ok(told.collect::<Vec<_>>()))
        }))
    }
}
