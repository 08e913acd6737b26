//! What came of a call or a run, well or badly.

use std::{error::Error, iter, time::Duration};

use prowess_sandbox::{CapturedText, SandboxLevel, ScriptConnection};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value};

use crate::tool_output::ToolOutput;

/// What came of a call or a run. Only what applies is there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// How it ended.
    pub status: OutcomeStatus,
    /// What went wrong, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What has changed since it was approved, as lines with `+` and `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// What a script exited with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What a script printed.
    #[serde(flatten, serialize_with = "stdout")]
    pub stdout: Option<CapturedText>,
    /// What a script printed as errors.
    #[serde(flatten, serialize_with = "stderr")]
    pub stderr: Option<CapturedText>,
    /// What a tool, a template or an instruction gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The output as a type, where hosts render it themselves.
    #[serde(skip)]
    pub typed: Option<Box<ToolOutput>>,
    /// What a composite skill would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<PlanStep>>,
    /// What came of the steps of a plan that were executed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepOutcome>,
    /// The files that a script left in its work directory, by path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What of that was not handed over, each with why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// How long it took.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// What held a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLevel>,
    /// What the sandbox refused a script, each thing once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// What a script has connected to through its proxy, and what it was refused there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<ScriptConnection>,
    /// How many more connections there were than are listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub network_omitted: u64,
}

/// How a call or a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutcomeStatus {
    /// Well.
    Ok,
    /// It ran, and says that it failed.
    Failed,
    /// A signal ended it.
    Killed,
    /// Its time was over.
    TimedOut,
    /// Whoever asked for it no longer wants it.
    Cancelled,
    /// The policy, the sandbox or a person said no; nothing ran.
    Refused,
    /// What it was given is not what it takes; nothing ran.
    Invalid,
    /// There is no such tool, skill or file.
    NotFound,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanStep {
    /// Its number, from 1.
    pub step: usize,
    /// The tool to call.
    pub tool: String,
    /// What to call it with.
    pub params: Map<String, Value>,
    /// What of that could not be filled in, each with why; it is as it was written.
    #[serde(skip)]
    pub unfilled: Vec<String>,
}

/// What came of one step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepOutcome {
    /// Its number, from 1.
    pub step: usize,
    /// The tool that was called.
    pub tool: String,
    /// What came of it.
    pub outcome: Outcome,
}

impl Outcome {
    /// An outcome that holds nothing but how it ended.
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
            denied: Vec::new(),
            network: Vec::new(),
            network_omitted: 0,
        }
    }

    /// What came out well.
    pub fn ok(output: impl Into<Value>) -> Self {
        Self { output: Some(output.into()), ..Self::new(OutcomeStatus::Ok) }
    }

    /// What did not come out well, and why.
    pub fn bad(status: OutcomeStatus, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::new(status) }
    }

    /// What did not come out well because of an error, with its causes in one line.
    pub fn error(status: OutcomeStatus, error: &dyn Error) -> Self {
        let causes = iter::successors(Some(error), |&it| it.source()).map(|it| it.to_string());
        Self::bad(status, causes.collect::<Vec<_>>().join(": "))
    }

    /// The same, with its output as a type.
    #[must_use]
    pub(crate) fn with_typed(self, output: ToolOutput) -> Self {
        Self { typed: Some(Box::new(output)), ..self }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same, with what has changed since it was approved.
    #[must_use]
    pub(crate) fn changed(self, difference: Option<String>) -> Self {
        Self { difference: difference.or(self.difference), ..self }
    }

    /// Whether all is well.
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

/// The text of a stream, and how much of it was cut where that is so.
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
