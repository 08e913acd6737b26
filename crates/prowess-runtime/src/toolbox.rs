//! All tools in one place: checks, authorizes and bounds every call.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use prowess::{Manifest, did_you_mean, nearest};
use serde_json::{Map, Value, json};
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};

use crate::{
    active::Active,
    authorizer::{AuthorizedAction, Authorizer},
    outcome::{Outcome, OutcomeStatus, PlanStep, StepOutcome},
    ruling::ActionRequest,
    schema::{Schema, property, shortened},
    tool::Tool,
    tool_parameters::{tool_parameters, unknown_parameters},
};

/// The tools that can be called, and their authorizer.
///
/// Calls may come from many threads at once. Dropping one cancels it, and a panic in one does not
/// affect others.
#[derive(Debug)]
pub struct Toolbox {
    authorizer: Arc<Authorizer>,
    active: Option<Arc<Active>>,
    tools: Vec<Arc<dyn Tool>>,
    left_out: Vec<String>,
    calls: Calls,
    places: Semaphore,
}

/// Limits on every call, whatever its tool allows, and on concurrent calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    /// The timeout, after the authorization.
    pub timeout: Duration,
    /// The maximum size of its output as JSON, in bytes.
    pub output: usize,
    /// The maximum number of concurrent calls; others wait.
    pub at_once: usize,
}

impl Default for Calls {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(600), output: 2 * 1024 * 1024, at_once: 64 }
    }
}

impl Toolbox {
    /// Creates a toolbox without tools.
    pub fn new(authorizer: Arc<Authorizer>) -> Self {
        let calls = Calls::default();
        let places = Semaphore::new(calls.at_once);
        Self { authorizer, active: None, tools: Vec::new(), left_out: Vec::new(), calls, places }
    }

    /// Adds a tool. If a name is taken, the first tool keeps it.
    #[must_use]
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        match self.tools.iter().any(|it| it.name() == tool.name()) {
            true => self.left_out.push(tool.name().to_owned()),
            false => self.tools.push(tool),
        }
        self
    }

    /// Passes the active skills to the authorizer.
    #[must_use]
    pub fn with_active(self, active: Arc<Active>) -> Self {
        Self { active: Some(active), ..self }
    }

    /// Replaces the limits on calls.
    #[must_use]
    pub fn with_calls(self, calls: Calls) -> Self {
        Self { calls, places: Semaphore::new(calls.at_once.max(1)), ..self }
    }

    /// Returns the authorizer.
    pub fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// Returns the tools, in the order in which they were added.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Returns the names of tools that were not added, because the name was taken.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Calls a tool, if its input is valid and the call is authorized.
    pub async fn call(&self, name: &str, input: Value) -> Outcome {
        match self.find(name) {
            Some(tool) => self.call_tool(tool, input).await,
            None => *self.unknown(name),
        }
    }

    /// Does the same with a tool that need not be in the toolbox.
    pub async fn call_tool(&self, tool: &Arc<dyn Tool>, input: Value) -> Outcome {
        let start = Instant::now();
        let outcome = self.answer(tool, input).await.unwrap_or_else(|it| *it);
        Outcome { duration: outcome.duration.or_else(|| Some(start.elapsed())), ..outcome }
    }

    /// Calls the tools of a plan one after the other, like [`call`](Self::call), until one fails.
    /// `watch` is called before each step, and with its outcome after it. The outcome has the plan,
    /// and the outcomes of all steps that were tried.
    pub async fn run_plan(
        &self,
        plan: &[PlanStep],
        mut watch: impl FnMut(&PlanStep, Option<&Outcome>),
    ) -> Outcome {
        let start = Instant::now();
        let mut all = Outcome { plan: Some(plan.to_vec()), ..Outcome::new(OutcomeStatus::Ok) };
        if let Some(step) = plan.iter().find(|it| !it.unfilled.is_empty()) {
            let what = step.unfilled.join("; ");
            let message = format!("step {} cannot be filled in: {what}", step.step);
            let hint = "nothing was run; `{{.name}}` is a parameter, and `{{\"{{\"}}` two braces";
            return Outcome {
                plan: all.plan,
                ..Outcome::bad(OutcomeStatus::Invalid, message).hint(hint)
            };
        }
        for (at, step) in plan.iter().enumerate() {
            watch(step, None);
            let outcome = self.call(&step.tool, Value::Object(step.params.clone())).await;
            watch(step, Some(&outcome));
            if !outcome.is_ok() {
                all.status = outcome.status;
                all.message = Some(stopped(step, &outcome));
                let left = match plan.len() - at - 1 {
                    0 => None,
                    1 => Some("the step after it was not run".to_owned()),
                    left => Some(format!("the {left} steps after it were not run")),
                };
                let hints: Vec<String> = outcome.hint.clone().into_iter().chain(left).collect();
                all.hint = Some(hints.join("; ")).filter(|it| !it.is_empty());
            }
            let (number, tool) = (step.step, step.tool.clone());
            all.steps.push(StepOutcome { step: number, tool, outcome });
            if !all.is_ok() {
                break;
            }
        }
        Outcome { duration: Some(start.elapsed()), ..all }
    }

    async fn answer(&self, tool: &Arc<dyn Tool>, input: Value) -> Result<Outcome, Box<Outcome>> {
        // The policy uses its canonical name.
        let name = tool.name();
        // A panic in `action` is handled like one in `call`.
        let asked = catch_unwind(AssertUnwindSafe(|| {
            let input = checked(&**tool, input)?;
            Ok::<_, Box<Outcome>>((tool.action(&input)?, input))
        }));
        let (mut action, input) = asked.unwrap_or_else(|_| Err(broken(name)))?;
        let active = Active::current().or_else(|| self.active.clone());
        let manifests = manifests(active.as_deref());
        let requested =
            ActionRequest { tool: name, action: &action, active: &manifests, given: Some(&input) };
        if let Some(active) = &active {
            self.authorizer.guard(&requested, active)?;
        }
        let AuthorizedAction { difference, is_agreed } = self.authorizer.decide(&requested).await?;
        action.set_agreed(is_agreed);
        let skill = action.entry().map(|it| it.manifest.name.to_string());
        tool.get_ready(&action, &input).await;
        // It is never closed, so this cannot fail.
        let _place = self.places.acquire().await;
        let mut task = JoinSet::new();
        let own = tool.clone();
        task.spawn(async move {
            match active {
                Some(active) => active.within(async { own.perform(action, input).await }).await,
                None => own.perform(action, input).await,
            }
        });
        match timeout(self.calls.timeout, task.join_next()).await {
            Ok(Some(Ok(outcome))) => {
                self.authorizer.note_network(name, skill.as_deref(), &outcome);
                Ok(bounded(outcome.changed(difference), self.calls.output))
            }
            Ok(_) => Err(broken(name)),
            Err(_) => {
                let message =
                    format!("`{name}` was stopped after {} ms", self.calls.timeout.as_millis());
                Err(Box::new(Outcome::bad(OutcomeStatus::TimedOut, message)))
            }
        }
    }

    /// Returns the tool of a name; if there is none, the only one that matches ignoring case.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let alike = || {
            let mut alike = self.tools.iter().filter(|it| it.name().eq_ignore_ascii_case(name));
            alike.next().filter(|_| alike.next().is_none())
        };
        self.tools.iter().find(|it| it.name() == name).or_else(alike)
    }

    fn unknown(&self, name: &str) -> Box<Outcome> {
        let outcome = Outcome::bad(OutcomeStatus::NotFound, format!("there is no tool `{name}`"));
        Box::new(match nearest(name, self.tools.iter().map(|it| it.name())) {
            Some(near) => outcome.hint(did_you_mean(near)),
            None => {
                let names: Vec<&str> = self.tools.iter().map(|it| it.name()).take(20).collect();
                outcome.hint(format!("there are {}", names.join(", ")))
            }
        })
    }
}

/// Returns the reason why a plan stops.
fn stopped(PlanStep { step, tool, .. }: &PlanStep, outcome: &Outcome) -> String {
    let ended = if outcome.status == OutcomeStatus::Refused { "was refused" } else { "failed" };
    let why = outcome.message.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("step {step} (`{tool}`) {ended}{why}")
}

fn manifests(active: Option<&Active>) -> Vec<Manifest> {
    let skills = active.map(Active::skills).unwrap_or_default();
    skills.into_iter().map(|it| it.manifest).collect()
}

/// Checks an input against the schema of a tool, and resolves aliases. All errors are reported at
/// once.
fn checked(tool: &dyn Tool, input: Value) -> Result<Value, Box<Outcome>> {
    let invalid = |message: String| Box::new(Outcome::bad(OutcomeStatus::Invalid, message));
    let root = tool.input_schema();
    let schema = Schema::new(&root)
        .map_err(|error| invalid(format!("`{}` cannot be called: {error}", tool.name())))?;
    let input = match input {
        Value::Object(input) => Value::Object(named(tool, &root, input)),
        Value::Null => json!({}),
        other => other,
    };
    let mismatches = schema.mismatches(&input);
    if mismatches.is_empty() {
        return Ok(input);
    }
    let mut all: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
    // A schema may allow unlisted names; if something else is wrong, such a name is probably
    // misspelled.
    let unknown = unknown_parameters(&root, &input);
    let is_told = |name: &str| mismatches.iter().any(|it| it.parameter == name);
    let untold = unknown.iter().filter(|it| !is_told(it)).take(MAX_NAMED);
    all.extend(untold.map(|it| format!("`{}` is not a parameter", shortened(it))));
    let outcome = invalid(format!("invalid input: {}", all.join("; ")));
    Err(match takes_parameters(tool.name(), &root, &unknown) {
        Some(takes) => Box::new(outcome.hint(takes)),
        None => outcome,
    })
}

/// The maximum number of parameters in one sentence.
const MAX_NAMED: usize = 12;

/// Returns a sentence with the parameters of a tool, and the one that an unknown name may mean.
pub fn takes_parameters(tool: &str, schema: &Value, unknown: &[&str]) -> Option<String> {
    let parameters = tool_parameters(schema);
    if parameters.is_empty() {
        let lists = schema.get("properties").is_some();
        return (lists && !unknown.is_empty()).then(|| format!("`{tool}` takes no parameters"));
    }
    let near = unknown.iter().find_map(|it| nearest(it, parameters.iter().map(|it| &*it.name)));
    let near = near.map(|it| format!("{} ", did_you_mean(it))).unwrap_or_default();
    let mut named: Vec<String> =
        parameters.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if parameters.len() > MAX_NAMED {
        named.push(format!("and {} more", parameters.len() - MAX_NAMED));
    }
    Some(format!("{near}`{tool}` takes {}", named.join(", ")))
}

/// Resolves aliases, and removes a null that the schema does not allow.
fn named(tool: &dyn Tool, root: &Value, input: Map<String, Value>) -> Map<String, Value> {
    let mut named = Map::new();
    for (name, value) in input {
        let alias = tool.aliases().iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
        let name = alias.filter(|it| !named.contains_key(it)).unwrap_or(name);
        let kind = property(root, &name).and_then(|it| it.get("type"));
        let knows_null = kind.is_none_or(|it| match it {
            Value::Array(kinds) => kinds.iter().any(|it| it == "null"),
            kind => kind == "null",
        });
        if !value.is_null() || knows_null {
            named.insert(name, value);
        }
    }
    named
}

fn broken(name: &str) -> Box<Outcome> {
    let outcome = Outcome::bad(OutcomeStatus::Failed, format!("the tool `{name}` crashed"));
    Box::new(outcome.hint("this is a bug in the tool, not in the input"))
}

/// Limits the size of an output; one that is too large is replaced by the beginning of its text.
fn bounded(outcome: Outcome, most: usize) -> Outcome {
    let text = match &outcome.output {
        Some(Value::String(text)) => text.clone(),
        Some(output) => output.to_string(),
        None => return outcome,
    };
    if text.len() <= most {
        return outcome;
    }
    let end = text.floor_char_boundary(most);
    let left_out = format!("{} of {} bytes", text.len() - end, text.len());
    Outcome { output: Some(json!({"text": text[..end], "left_out": left_out})), ..outcome }
}
