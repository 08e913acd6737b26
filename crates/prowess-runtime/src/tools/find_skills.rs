//! `find_skills`: finds the skills for a task.

use std::{borrow::Cow, sync::Arc};

use prowess::{Level, Thresholds, brief_line, spec::MAX_DESCRIPTION};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{blocking, input, schema};
use crate::{
    outcome::Outcome,
    provider::SkillProvider,
    retriever::Retriever,
    tool::{Action, Tool, ToolFuture},
    tool_output::{FoundSkill, FoundSkills, ToolOutput},
};

/// The tool `find_skills`.
#[derive(Debug)]
pub struct FindSkills {
    /// The provider of the skills.
    pub provider: Arc<dyn SkillProvider>,
    /// The confidence thresholds of each level.
    pub thresholds: Thresholds,
}

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The task, in a few words
    query: String,
}

/// The maximum number of skills, and of characters of a description, as in the specification.
const MAX_SKILLS: usize = 10;

impl Tool for FindSkills {
    fn name(&self) -> &str {
        "find_skills"
    }

    fn description(&self) -> Cow<'_, str> {
        "Find the skills that match a task, best first. Load one with `use_skill`.".into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn output_schema(&self) -> Option<Value> {
        let text = json!({"type": "string"});
        let skill = json!({
            "type": "object",
            "properties": {
                "name": text,
                "description": text,
                "confidence": {"type": "number"},
                "level": {"type": "string", "enum": ["metadata", "brief", "full"]},
            },
            "required": ["name", "description", "confidence", "level"],
        });
        Some(json!({
            "type": "object",
            "properties": {"skills": {"type": "array", "items": skill}, "total": {"type": "integer"}},
            "required": ["skills", "total"],
        }))
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        input::<Input>(given).map(|_| Action::Tell)
    }

    fn perform<'a>(&'a self, _: Action, given: Value) -> ToolFuture<'a> {
        let (library, thresholds) = (self.provider.library(), self.thresholds);
        Box::pin(blocking(move || {
            let Input { query } = input(&given)?;
            let total = library.skills().filter(|it| it.manifest.is_for_models()).count();
            let retriever = Retriever { provider: Some(Arc::new(library)) };
            let found = retriever.retrieve(&query, MAX_SKILLS).into_iter().map(|it| {
                let description = brief_line(&it.description, MAX_DESCRIPTION);
                FoundSkill::new(it.name, description, it.confidence, thresholds)
            });
            let mut skills: Vec<FoundSkill> = found.collect();
            // Next to a good match, very unlikely ones are not worth their tokens.
            if skills.first().is_some_and(|it| it.level != Level::Metadata.as_str()) {
                skills.retain(|it| it.confidence > 0.0);
            }
            let found = FoundSkills::new(skills, total);
            Ok(Outcome::ok(json!(found)).with_typed(ToolOutput::FoundSkills(found)))
        }))
    }

    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        outcome.is_ok()
    }
}
