//! `skill_<name>`: a skill as a tool of its own.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use prowess::{Definition, Library, escape_tags, visible};
use serde_json::{Map, Value, json};

use crate::{
    entry::SkillRecord,
    executor::Executor,
    outcome::{Outcome, OutcomeStatus},
    tool::{Action, Tool, ToolFuture},
};

/// The maximum length of a name for all models.
const MAX_NAME: usize = 64;

/// A skill as a tool. An instruction is returned; any other type is executed.
#[derive(Debug)]
pub struct SkillTool {
    name: String,
    entry: SkillRecord,
    executor: Executor,
}

impl SkillTool {
    /// Creates a tool with this name.
    pub fn new(name: impl Into<String>, entry: SkillRecord, executor: Executor) -> Self {
        Self { name: name.into(), entry, executor }
    }

    /// Returns the skill.
    pub fn entry(&self) -> &SkillRecord {
        &self.entry
    }
}

/// Creates tools for all skills that a model may use, with names that are not in `others`.
pub fn skill_tools(
    library: &Library,
    others: &[Arc<dyn Tool>],
    executor: &Executor,
) -> Vec<Arc<dyn Tool>> {
    let mut taken: BTreeSet<String> = others.iter().map(|it| it.name().to_owned()).collect();
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for skill in library.skills().filter(|it| it.manifest.is_for_models()) {
        // It was removed since it was listed.
        if let Ok(entry) = SkillRecord::of(skill) {
            let name = tool_name(&entry.manifest.name, &taken);
            taken.insert(name.clone());
            tools.push(Arc::new(SkillTool::new(name, entry, executor.clone())));
        }
    }
    tools
}

/// Returns the name of a skill's tool: `skill_<name>`, with unsupported characters replaced, and
/// with a number if that is taken.
fn tool_name(skill: &str, taken: &BTreeSet<String>) -> String {
    let whole: String = "skill_"
        .chars()
        .chain(
            skill
                .chars()
                .map(|c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }),
        )
        .collect();
    let mut names = (1..).map(|number: usize| {
        let number = if number == 1 { String::new() } else { format!("_{number}") };
        let cut = whole.len().min(MAX_NAME - number.len());
        format!("{}{number}", &whole[..cut])
    });
    names.find(|it| !taken.contains(it)).expect("there are more numbers than tools")
}

impl Tool for SkillTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> Cow<'_, str> {
        let manifest = &self.entry.manifest;
        match (&self.entry.definition, manifest.description.trim()) {
            (Definition::Instruction { .. }, "") => {
                format!("Reference guide for {}", manifest.name).into()
            }
            (_, "") => format!("Run the skill {}", manifest.name).into(),
            (_, description) => escape_tags(&visible(description)).into_owned().into(),
        }
    }

    fn input_schema(&self) -> Value {
        self.entry
            .parameters
            .clone()
            .filter(Value::is_object)
            .unwrap_or_else(|| json!({ "type": "object", "properties": {} }))
    }

    fn action(&self, input: &Value) -> Result<Action, Box<Outcome>> {
        parse_parameters(input.clone())?;
        let entry = self.entry.clone().with_files().map_err(|it| Outcome::from(&it))?;
        Ok(Action::of(entry))
    }

    fn perform<'a>(&'a self, action: Action, input: Value) -> ToolFuture<'a> {
        match action {
            Action::Execute(entry) => self.run(Cow::Owned(*entry), input),
            _ => self.run(Cow::Borrowed(&self.entry), input),
        }
    }

    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        outcome.is_ok() || outcome.stdout.is_some() || outcome.stderr.is_some()
    }
}

impl SkillTool {
    /// Executes the skill, or returns its instructions.
    fn run<'a>(&'a self, entry: Cow<'a, SkillRecord>, input: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            match (&entry.definition, parse_parameters(input)) {
                (_, Err(outcome)) => *outcome,
                (Definition::Instruction { content }, Ok(_)) => {
                    let manifest = &entry.manifest;
                    Outcome::ok(json!({
                        "content": content,
                        "source": manifest.source.as_deref().unwrap_or_default(),
                        "description": self.description(),
                        "type": manifest.kind.as_str(),
                    }))
                }
                (_, Ok(parameters)) => self.executor.execute(&entry, parameters).await,
            }
        })
    }
}

/// Parses the parameters of a skill; `null` means none.
fn parse_parameters(input: Value) -> Result<Map<String, Value>, Box<Outcome>> {
    match input {
        Value::Object(parameters) => Ok(parameters),
        Value::Null => Ok(Map::new()),
        _ => {
            let outcome =
                Outcome::bad(OutcomeStatus::Invalid, "the input of a skill must be an object");
            Err(outcome.hint("pass an object with its parameters, such as `{}`").into())
        }
    }
}
