//! A tool that a model can call.

mod action;
mod action_facts;
mod format;
mod request_url;

use std::{borrow::Cow, fmt, future::Future, pin::Pin};

use serde_json::Value;

use crate::outcome::Outcome;

pub(crate) use self::action_facts::{
    ActionFacts, ApprovalFacts, AuditMode, DefaultRuling, InputDisplay, ListedAs, PolicySetting,
    QuestionContent, RulePath, SubjectSource,
};
pub use self::{
    action::{Action, CommandPreview},
    format::{ToolFormat, simplify_schema},
};

/// The tool that discloses skills.
pub(crate) const USE_SKILL: &str = "use_skill";

/// The future of an outcome.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// The future of the preparation of a call.
pub type ReadyFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A tool that a model can call.
///
/// A tool declares the action of a call before performing it, so that the policy can decide. Its
/// outcome is bounded in time and size, and everything it started ends when the future is dropped.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns its name: letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// Returns its description for a model.
    fn description(&self) -> Cow<'_, str>;

    /// Returns its description in one line, for people.
    fn summary(&self) -> String {
        let description = self.description();
        let mut lines = description.lines().map(str::trim);
        lines.find(|it| !it.is_empty()).unwrap_or_default().to_owned()
    }

    /// Returns the JSON schema of its input.
    fn input_schema(&self) -> Value;

    /// Returns the JSON schema of its successful output, if it has one.
    fn output_schema(&self) -> Option<Value> {
        None
    }

    /// Returns aliases of its inputs, each with the actual name.
    fn aliases(&self) -> &[(&str, &str)] {
        &[]
    }

    /// Returns the action of a call with this input; an outcome if the input is invalid.
    fn action(&self, input: &Value) -> Result<Action, Box<Outcome>>;

    /// Prepares such a call once, however long that takes: it is not part of the call.
    fn get_ready<'a>(&'a self, _act: &'a Action, _input: &'a Value) -> ReadyFuture<'a> {
        Box::pin(async {})
    }

    /// Performs exactly the action that [`action`](Self::action) returned for this input: it
    /// contains the authorized content.
    fn perform<'a>(&'a self, action: Action, input: Value) -> ToolFuture<'a>;

    /// Calls the tool without any authorization. Models call it through a [`Toolbox`](crate::Toolbox).
    fn call<'a>(&'a self, input: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            match self.action(&input) {
                Ok(action) => self.perform(action, input).await,
                Err(outcome) => *outcome,
            }
        })
    }

    /// Whether an outcome is the text of a skill; a model reads that between markers.
    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        let _ = outcome;
        false
    }
}
