//! The outcome of a call or a run.

use std::{error::Error, fmt, iter, time::Duration};

use prowess_sandbox::{CapturedText, SandboxLevel, ScriptConnection};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value, json};

pub use crate::tool_output::{FoundSkill, FoundSkills, SkillFilePart, ToolOutput};

/// The outcome of a call or a run. Fields that do not apply are empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The status.
    pub status: OutcomeStatus,
    /// The error message, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A hint on how to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The changes since the last approval, as lines with `+` and `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// The exit code of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The standard output of a script.
    #[serde(flatten, serialize_with = "stdout")]
    pub stdout: Option<CapturedText>,
    /// The standard error of a script.
    #[serde(flatten, serialize_with = "stderr")]
    pub stderr: Option<CapturedText>,
    /// The output of a tool, a template or an instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The output as a type, where hosts render it themselves.
    #[serde(skip)]
    pub typed: Option<Box<ToolOutput>>,
    /// The plan of a composite skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<PlanStep>>,
    /// The outcomes of the executed steps of a plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepOutcome>,
    /// The files that a script created in its work directory, by path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The files of these that were not copied, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The duration.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// The sandbox level of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLevel>,
    /// The limits of a script that this system could not enforce, by their names in settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unenforced_limits: Vec<&'static str>,
    /// The operations that the sandbox denied, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The connections of a script through its proxy, including refused ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<ScriptConnection>,
    /// The number of connections that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub network_omitted: u64,
}

/// The status of a call or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutcomeStatus {
    /// It succeeded.
    Ok,
    /// It ran and failed.
    Failed,
    /// A signal ended it.
    Killed,
    /// It exceeded its time limit.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
    /// The policy, the sandbox or a person refused it; nothing ran.
    Refused,
    /// Its input is invalid; nothing ran.
    Invalid,
    /// There is no such tool, skill or file.
    NotFound,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlanStep {
    /// Its number, from 1.
    pub step: usize,
    /// The tool to call.
    pub tool: String,
    /// Its input.
    pub params: Map<String, Value>,
    /// The inputs that could not be filled in, each with the reason; they are unchanged.
    #[serde(skip)]
    pub unfilled: Vec<String>,
}

/// The outcome of one step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepOutcome {
    /// Its number, from 1.
    pub step: usize,
    /// The tool that was called.
    pub tool: String,
    /// The outcome.
    pub outcome: Outcome,
}

impl OutcomeStatus {
    /// Returns its name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
        }
    }
}

impl PlanStep {
    /// Creates a step whose inputs are all filled in.
    pub fn new(step: usize, tool: impl Into<String>, params: Map<String, Value>) -> Self {
        Self { step, tool: tool.into(), params, unfilled: Vec::new() }
    }
}

impl fmt::Display for PlanStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {} {}", self.step, self.tool, json!(self.params))
    }
}

impl Outcome {
    /// Creates an outcome with only a status.
    pub fn new(status: OutcomeStatus) -> Self {
        Self {
            status,
            message: None,
            hint: None,
            difference: None,
            exit_code: None,
            signal: None,
            stdout: None,
            stderr: None,
            output: None,
            typed: None,
            plan: None,
            steps: Vec::new(),
            files: Vec::new(),
            left_out: Vec::new(),
            duration: None,
            sandbox: None,
            unenforced_limits: Vec::new(),
            denied: Vec::new(),
            network: Vec::new(),
            network_omitted: 0,
        }
    }

    /// Creates a successful outcome.
    pub fn ok(output: impl Into<Value>) -> Self {
        Self { output: Some(output.into()), ..Self::new(OutcomeStatus::Ok) }
    }

    /// Creates an unsuccessful outcome with a message.
    pub fn bad(status: OutcomeStatus, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::new(status) }
    }

    /// Creates an unsuccessful outcome from an error, with its causes in one line.
    pub fn error(status: OutcomeStatus, error: &dyn Error) -> Self {
        let causes = iter::successors(Some(error), |&it| it.source()).map(|it| it.to_string());
        Self::bad(status, causes.collect::<Vec<_>>().join(": "))
    }

    /// The same, with its output as a type.
    #[must_use]
    pub(crate) fn with_typed(self, output: ToolOutput) -> Self {
        Self { typed: Some(Box::new(output)), ..self }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds the changes since the last approval.
    #[must_use]
    pub(crate) fn changed(self, difference: Option<String>) -> Self {
        Self { difference: difference.or(self.difference), ..self }
    }

    /// Whether it succeeded.
    pub fn is_ok(&self) -> bool {
        self.status == OutcomeStatus::Ok
    }
}

fn stdout<S: Serializer>(stream: &Option<CapturedText>, serializer: S) -> Result<S::Ok, S::Error> {
    streams(["stdout", "stdout_cut"], stream, serializer)
}

fn stderr<S: Serializer>(stream: &Option<CapturedText>, serializer: S) -> Result<S::Ok, S::Error> {
    streams(["stderr", "stderr_cut"], stream, serializer)
}

/// Serializes the text of a stream, and the number of omitted bytes if there are any.
fn streams<S: Serializer>(
    [text, cut]: [&'static str; 2],
    stream: &Option<CapturedText>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    if let Some(stream) = stream {
        map.serialize_entry(text, &stream.text)?;
        if stream.cut > 0 {
            map.serialize_entry(cut, &stream.cut)?;
        }
    }
    map.end()
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn milliseconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(|it| it.as_millis() as u64).serialize(serializer)
}
