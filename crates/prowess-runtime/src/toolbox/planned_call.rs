//! A call that is ready to be authorized.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{crashed, input::check_input};
use crate::{
    blocking::blocking,
    outcome::Outcome,
    tool::{Action, ActionFacts, InputDisplay, Tool},
};

/// A call with a valid input, and the action that it would perform. Nothing has been done yet.
#[derive(Debug)]
pub struct PlannedCall {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The action, with the content that it needs as it was read.
    pub action: Action,
    pub(super) input: Value,
    pub(super) took: Duration,
}

impl PlannedCall {
    /// Checks the input and asks the tool for its [action](Tool::action), on a thread that may block.
    pub async fn new(tool: Arc<dyn Tool>, input: Value) -> Result<Self, Box<Outcome>> {
        let start = Instant::now();
        let name = tool.name().to_owned();
        let planned = blocking(move || {
            let input = check_input(&*tool, input)?;
            let action = tool.action(&input)?;
            Ok(Self { tool, action, input, took: start.elapsed() })
        });
        // A panic while planning is reported like one while the action is performed.
        planned.await.unwrap_or_else(|_| Err(crashed(&name)))
    }

    /// Describes it for a person, in words that follow “to”: its action, and the input if the
    /// action does not contain it.
    pub fn describe(&self) -> String {
        let ActionFacts { words, input, .. } = self.action.facts();
        match input {
            InputDisplay::Everywhere => format!("{words} with {}", self.input),
            InputDisplay::InQuestion | InputDisplay::Nowhere => words,
        }
    }
}
