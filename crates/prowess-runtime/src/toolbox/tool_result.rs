//! An outcome as the result of a tool.

use serde::Serialize;
use serde_json::{Value, json};

use crate::outcome::{Outcome, OutcomeStatus};

/// The result of a call in two fields, for hosts that send it to a model themselves.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// Whether the call failed.
    pub is_error: bool,
    /// The plan, output or standard output of a successful call; the whole outcome of a failed one.
    pub content: Value,
}

impl From<Outcome> for ToolResult {
    fn from(outcome: Outcome) -> Self {
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
