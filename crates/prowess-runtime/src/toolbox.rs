//! All tools in one place: checks, authorizes and bounds every call.

mod input;
mod planned_call;
mod skills;
mod intent;
mod tool_result;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use prowess::{Manifest, did_you_mean, nearest};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};

use crate::{
    active::ActiveSkills,
    authorizer::{AuthorizedAction, Authorizer},
    executor::Executor,
    outcome::{Outcome, OutcomeStatus, PlanStep, StepOutcome},
    provider::SkillProvider,
    ruling::ActionRequest,
    tool::Tool,
};

use self::skills::CallableSkills;
pub use self::{
    input::takes_parameters,
    intent::{Intent, IntentOutcome},
    planned_call::PlannedCall,
    skills::SkillCall,
    tool_result::ToolResult,
};

/// The tools that can be called, and their authorizer.
///
/// Calls may come from many threads at once. Dropping one cancels it, and a panic in one does not
/// affect others.
#[derive(Debug)]
pub struct Toolbox {
    authorizer: Arc<Authorizer>,
    active: Option<Arc<ActiveSkills>>,
    tools: Vec<Arc<dyn Tool>>,
    skills: Option<CallableSkills>,
    left_out: Vec<String>,
    calls: Calls,
    permits: Semaphore,
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
        let permits = Semaphore::new(calls.at_once);
        Self {
            authorizer,
            active: None,
            tools: Vec::new(),
            skills: None,
            left_out: Vec::new(),
            calls,
            permits,
        }
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

    /// Makes the skills of a provider callable: a name that no tool has
    /// [refers to](prowess::Library::for_tool) a skill.
    #[must_use]
    pub fn with_skills(self, provider: Arc<dyn SkillProvider>, executor: Executor) -> Self {
        Self { skills: Some(CallableSkills::new(provider, executor)), ..self }
    }

    /// Passes the active skills to the authorizer.
    #[must_use]
    pub fn with_active(self, active: Arc<ActiveSkills>) -> Self {
        Self { active: Some(active), ..self }
    }

    /// Replaces the limits on calls.
    #[must_use]
    pub fn with_calls(self, calls: Calls) -> Self {
        Self { calls, permits: Semaphore::new(calls.at_once.max(1)), ..self }
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
        match (self.find(name), self.skill_call(name, &input)) {
            (Some(tool), _) => self.call_tool(tool, input).await,
            (None, Some(call)) => self.call_skill(call).await,
            (None, None) => *self.unknown(name),
        }
    }

    /// Returns the selector of the skill that the name of a tool refers to; `None` if no model may
    /// use one.
    pub fn skill_for(&self, tool: &str) -> Option<String> {
        self.skills.as_ref()?.selector(tool)
    }

    /// Converts a call of a tool to the call of a skill, with every argument.
    pub fn skill_call(&self, tool: &str, arguments: &Value) -> Option<SkillCall> {
        self.skills.as_ref()?.call(tool, arguments)
    }

    /// Calls a skill as its own tool `skill_<name>`, which need not be among the tools.
    pub async fn call_skill(&self, SkillCall { skill, parameters }: SkillCall) -> Outcome {
        let Some(skills) = &self.skills else { return *self.unknown(&skill) };
        match skills.tool(&skill).await {
            Ok(tool) => self.call_tool(&tool, Value::Object(parameters)).await,
            Err(outcome) => *outcome,
        }
    }

    /// Calls a tool that need not be in the toolbox, with the same checks.
    pub async fn call_tool(&self, tool: &Arc<dyn Tool>, input: Value) -> Outcome {
        let start = Instant::now();
        match self.plan(tool, input).await {
            Ok(planned) => self.call_planned(planned).await,
            Err(outcome) => Outcome { duration: Some(start.elapsed()), ..*outcome },
        }
    }

    /// Plans a call by the skills that are active. Nothing is done, and nobody is asked.
    pub async fn plan(
        &self,
        tool: &Arc<dyn Tool>,
        input: Value,
    ) -> Result<PlannedCall, Box<Outcome>> {
        let planned = PlannedCall::new(tool.clone(), input);
        match self.active() {
            Some(active) => active.within(planned).await,
            None => planned.await,
        }
    }

    fn active(&self) -> Option<Arc<ActiveSkills>> {
        ActiveSkills::current().or_else(|| self.active.clone())
    }

    /// Performs a call that was planned before, once it is authorized.
    pub async fn call_planned(&self, planned: PlannedCall) -> Outcome {
        let (start, planning) = (Instant::now(), planned.took);
        let outcome = self.perform(planned).await.unwrap_or_else(|it| *it);
        let duration = outcome.duration.or_else(|| Some(planning + start.elapsed()));
        Outcome { duration, ..outcome }
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
            let hint = "nothing was run; write `{{.name}}` for a parameter, and `{{\"{{\"}}` for two braces";
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
                all.message = Some(stop_reason(step, &outcome));
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

    async fn perform(&self, planned: PlannedCall) -> Result<Outcome, Box<Outcome>> {
        let PlannedCall { tool, mut action, input, .. } = planned;
        // The policy uses its canonical name.
        let name = tool.name();
        let active = self.active();
        let manifests = manifests(active.as_deref());
        let requested =
            ActionRequest { tool: name, action: &action, active: &manifests, given: Some(&input) };
        if let Some(active) = &active {
            self.authorizer.check_disclosed(&requested, active)?;
        }
        let AuthorizedAction { difference, is_agreed } = self.authorizer.decide(&requested).await?;
        action.set_agreed(is_agreed);
        let skill = action.facts().subject.record().map(|it| it.manifest.name.to_string());
        tool.get_ready(&action, &input).await;
        // It is never closed, so this cannot fail.
        let _permit = self.permits.acquire().await;
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
                Ok(limit_output(outcome.changed(difference), self.calls.output))
            }
            Ok(_) => Err(crashed(name)),
            Err(_) => {
                let message =
                    format!("`{name}` was stopped after {} ms", self.calls.timeout.as_millis());
                Err(Box::new(Outcome::bad(OutcomeStatus::TimedOut, message)))
            }
        }
    }

    /// Returns the tool of a name; if there is none, the only one that matches ignoring case.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|it| it.name() == name).or_else(|| {
            let mut alike = self.tools.iter().filter(|it| it.name().eq_ignore_ascii_case(name));
            alike.next().filter(|_| alike.next().is_none())
        })
    }

    fn unknown(&self, name: &str) -> Box<Outcome> {
        let outcome = Outcome::bad(OutcomeStatus::NotFound, format!("there is no tool `{name}`"));
        let skills = self.skills.as_ref().map(CallableSkills::names).unwrap_or_default();
        let bare = name.strip_prefix("skill_").unwrap_or(name);
        let near = nearest(name, self.tools.iter().map(|it| it.name()));
        Box::new(match near.or_else(|| nearest(bare, skills.iter().map(String::as_str))) {
            Some(near) => outcome.hint(did_you_mean(near)),
            None if self.tools.is_empty() => outcome,
            None => {
                let names: Vec<&str> = self.tools.iter().map(|it| it.name()).take(20).collect();
                outcome.hint(format!("there are {}", names.join(", ")))
            }
        })
    }
}

/// Returns the reason why a plan stops.
fn stop_reason(PlanStep { step, tool, .. }: &PlanStep, outcome: &Outcome) -> String {
    let ended = if outcome.status == OutcomeStatus::Refused { "was refused" } else { "failed" };
    let why = outcome.message.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("step {step} (`{tool}`) {ended}{why}")
}

fn manifests(active: Option<&ActiveSkills>) -> Vec<Manifest> {
    let skills = active.map(ActiveSkills::skills).unwrap_or_default();
    skills.into_iter().map(|it| it.manifest).collect()
}

fn crashed(name: &str) -> Box<Outcome> {
    let outcome = Outcome::bad(OutcomeStatus::Failed, format!("the tool `{name}` crashed"));
    Box::new(outcome.hint("this is a bug in the tool, not in the input"))
}

/// Limits the size of an output; one that is too large is replaced by the beginning of its text.
fn limit_output(outcome: Outcome, most: usize) -> Outcome {
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
    let output = Some(json!({"text": text[..end], "left_out": left_out}));
    Outcome { output, typed: None, ..outcome }
}
