//! The execution manager: executes skills by tool call, name or intent.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use prowess::{Library, Skill, did_you_mean, matches_among, nearest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    authorizer::Authorizer,
    entry::SkillRecord,
    executor::Executor,
    outcome::{Outcome, OutcomeStatus},
    provider::SkillProvider,
    ruling::ActionRequest,
    strict_json::strict_json,
    tool::Action,
};

/// Executes the skills of a provider. Every execution is authorized.
#[derive(Debug)]
pub struct Manager {
    provider: Arc<dyn SkillProvider>,
    executor: Executor,
    authorizer: Arc<Authorizer>,
    mapped: Mutex<ToolSkills>,
}

/// A tool call by a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its input: an object, the JSON text of one, or nothing.
    #[serde(default)]
    pub arguments: Value,
}

/// A request to execute a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionRequest {
    /// The selector of the skill in the library.
    pub skill: String,
    /// Its parameters.
    pub parameters: Map<String, Value>,
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExecutionResponse {
    /// The skill, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The confidence that this skill is meant, if it was guessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The result of a tool call, for a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResult {
    /// Whether it is an error.
    pub is_error: bool,
    /// The output, plan or stdout if it succeeded, the whole outcome otherwise.
    pub content: Value,
}

/// Options for the choice of a skill by intent.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// The minimum confidence that a skill is meant, from 0 to 1.
    pub min_confidence: f64,
    /// The parameters of the skill.
    pub parameters: Map<String, Value>,
}

impl Default for Intent {
    fn default() -> Self {
        Self { min_confidence: 0.7, parameters: Map::new() }
    }
}

impl Manager {
    /// Creates a manager.
    pub fn new(
        provider: Arc<dyn SkillProvider>,
        executor: Executor,
        authorizer: Arc<Authorizer>,
    ) -> Self {
        Self { provider, executor, authorizer, mapped: Mutex::default() }
    }

    /// Returns the selector of the skill that a tool name [stands for](Library::for_tool); `None`
    /// if there is none that a model may use.
    pub fn skill(&self, tool: &str) -> Option<String> {
        self.mapped(&self.provider.library(), tool)
    }

    /// Converts a call to a request, with every argument.
    pub fn request(&self, call: &ToolCall) -> Option<ExecutionRequest> {
        let skill = self.skill(&call.name)?;
        Some(ExecutionRequest { skill, parameters: arguments(&call.arguments) })
    }

    /// Executes the skill that a tool stands for.
    pub async fn call(&self, call: &ToolCall) -> ToolResult {
        match self.request(call) {
            Some(request) => self.execute(request).await.into(),
            None => ExecutionResponse::from(self.unknown(&call.name)).into(),
        }
    }

    /// Executes a skill, if it is authorized.
    pub async fn execute(&self, request: ExecutionRequest) -> ExecutionResponse {
        let library = self.provider.library();
        let Some(skill) = library.get(&request.skill).filter(|it| is_in_use(it)) else {
            return self.unknown(&request.skill).into();
        };
        let name = skill.manifest.name.to_string();
        let respond = |outcome| ExecutionResponse { skill: Some(name), confidence: None, outcome };
        let entry = match SkillRecord::of(skill).and_then(SkillRecord::with_files) {
            Ok(entry) => entry,
            Err(error) => return respond(Outcome::from(&error)),
        };
        let tool = format!("skill_{}", entry.manifest.name);
        let action = Action::of(entry.clone());
        let given = Value::Object(request.parameters.clone());
        let active = [entry.manifest.clone()];
        let requested =
            ActionRequest { tool: &tool, action: &action, active: &active, given: Some(&given) };
        match self.authorizer.authorize(&requested).await {
            Ok(difference) => {
                let outcome = self.executor.execute(&entry, request.parameters).await;
                self.authorizer.note_network(&tool, Some(&entry.manifest.name), &outcome);
                respond(outcome.changed(difference))
            }
            Err(refused) => respond(*refused),
        }
    }

    /// Executes the skill for an intent: the one with this tool name, else the best match. One
    /// below the minimum confidence is not executed.
    pub async fn execute_by_intent(&self, intent: &str, how: Intent) -> ExecutionResponse {
        let library = self.provider.library();
        let found = match self.mapped(&library, intent) {
            Some(skill) => Some((skill, 1.0)),
            None => {
                let intent = intent.to_owned();
                let best = tokio::task::spawn_blocking(move || best(&library, &intent));
                best.await.unwrap_or_default()
            }
        };
        match found {
            Some((skill, confidence)) if confidence >= how.min_confidence => {
                let request = ExecutionRequest { skill, parameters: how.parameters };
                ExecutionResponse { confidence: Some(confidence), ..self.execute(request).await }
            }
            // Also if the minimum is NaN.
            Some((skill, confidence)) => unsure(skill, confidence, how.min_confidence),
            None => Outcome::bad(OutcomeStatus::NotFound, "no skill matches the request").into(),
        }
    }

    fn mapped(&self, library: &Arc<Library>, tool: &str) -> Option<String> {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.get(library, tool)
    }

    fn unknown(&self, name: &str) -> Outcome {
        let library = self.provider.library();
        let unknown =
            Outcome::bad(OutcomeStatus::NotFound, format!("there is no skill for `{name}`"));
        let bare = name.strip_prefix("skill_").unwrap_or(name);
        let names = library.skills().filter(|it| is_in_use(it)).map(|it| &*it.manifest.name);
        match nearest(bare, names) {
            Some(near) => unknown.hint(did_you_mean(near)),
            None => unknown,
        }
    }
}

impl From<Outcome> for ExecutionResponse {
    fn from(outcome: Outcome) -> Self {
        Self { skill: None, confidence: None, outcome }
    }
}

impl From<ExecutionResponse> for ToolResult {
    fn from(response: ExecutionResponse) -> Self {
        let outcome = response.outcome;
        let is_error = !outcome.is_ok();
        let content = match outcome {
            Outcome { status: OutcomeStatus::Ok, plan: Some(plan), .. } => json!(plan),
            Outcome { status: OutcomeStatus::Ok, output: Some(output), .. } => output,
            Outcome { status: OutcomeStatus::Ok, stdout: Some(stdout), .. } => json!(stdout.text),
            outcome => json!(outcome),
        };
        Self { is_error, content }
    }
}

/// The skills of tool names, in one library. Names without a skill are not cached.
#[derive(Debug, Default)]
struct ToolSkills {
    library: Weak<Library>,
    skills: HashMap<String, String>,
}

impl ToolSkills {
    /// The maximum number of cached names; they come from outside, and each skill has several.
    const MAX: usize = 65_536;

    fn get(&mut self, library: &Arc<Library>, tool: &str) -> Option<String> {
        if !std::ptr::eq(self.library.as_ptr(), Arc::as_ptr(library)) {
            *self = Self { library: Arc::downgrade(library), ..Self::default() };
        }
        if let Some(skill) = self.skills.get(tool) {
            return Some(skill.clone());
        }
        let skill = library.for_tool(tool).filter(|it| is_in_use(it))?;
        let skill = library.address(skill);
        if self.skills.len() >= Self::MAX {
            self.skills.clear();
        }
        self.skills.insert(tool.to_owned(), skill.clone());
        Some(skill)
    }
}

/// Whether a model may use a skill.
fn is_in_use(skill: &Skill) -> bool {
    skill.manifest.is_for_models()
}

/// Returns the best match, and its confidence.
fn best(library: &Library, intent: &str) -> Option<(String, f64)> {
    let found = matches_among(library, intent, 1, |it| it.hidden_by.is_none() && is_in_use(it));
    found.first().map(|it| (library.address(it.skill), it.confidence))
}

fn unsure(skill: String, confidence: f64, least: f64) -> ExecutionResponse {
    let rounded = (confidence * 1e4).round() / 1e4;
    let message = format!(
        "no skill matches well enough: the best is `{skill}` with a confidence of {rounded}, \
         below {least}"
    );
    let output = json!({"best": skill, "confidence": rounded, "min_confidence": least});
    let outcome =
        Outcome { output: Some(output), ..Outcome::bad(OutcomeStatus::NotFound, message) };
    ExecutionResponse { skill: None, confidence: Some(confidence), outcome }
}

/// Converts the arguments of a call to parameters. Nothing is lost: anything but an object becomes
/// the parameter `input`.
fn arguments(arguments: &Value) -> Map<String, Value> {
    match arguments {
        Value::Object(arguments) => arguments.clone(),
        Value::Null => Map::new(),
        Value::String(text) if text.trim().is_empty() => Map::new(),
        // Some models send the text of an object.
        Value::String(text) => strict_json(text)
            .and_then(serde_json::from_value)
            .unwrap_or_else(|_| Map::from_iter([("input".to_owned(), arguments.clone())])),
        other => Map::from_iter([("input".to_owned(), other.clone())]),
    }
}

#[cfg(test)]
mod tests {
    use prowess::{Memory, Options, Scope};

    use super::*;

    fn library(names: &[&str]) -> Arc<Library> {
        let files = names.iter().map(|it| {
            let text = format!("---\nname: {it}\ndescription: a skill\n---\n");
            (format!("{it}/SKILL.md"), text.into_bytes())
        });
        let memory = Memory::new(Scope::Project, "memory", files);
        let options = Options { sources: vec![Arc::new(memory)], ..Options::default() };
        Arc::new(Library::load(&options).expect("there is a source"))
    }

    #[test]
    fn hits_are_kept_misses_are_not_and_another_library_is_looked_at_anew() {
        let mut mapped = ToolSkills::default();
        let (one, two) = (library(&["open-pr"]), library(&["open-pr", "deploy"]));
        for name in ["open-pr", "skill_open-pr", "SKILL_OPEN_PR", "Open_PR"] {
            assert_eq!(mapped.get(&one, name).as_deref(), Some("open-pr"), "{name}");
        }
        assert_eq!(mapped.skills.len(), 4);
        assert_eq!(mapped.get(&one, "deploy"), None);
        assert_eq!(mapped.skills.len(), 4);
        assert_eq!(mapped.get(&two, "deploy").as_deref(), Some("deploy"));
        assert_eq!(mapped.skills.len(), 1);
    }

    #[test]
    fn no_argument_is_lost() {
        let cases = [
            (json!({"a": 1, "b": [null]}), json!({"a": 1, "b": [null]})),
            (json!("{\"a\": 1}"), json!({"a": 1})),
            (json!(null), json!({})),
            (json!(""), json!({})),
            (json!("text"), json!({"input": "text"})),
            (json!([1, 2]), json!({"input": [1, 2]})),
        ];
        for (given, kept) in cases {
            assert_eq!(Value::from(arguments(&given)), kept);
        }
    }
}
