//! A model with scripted replies, for tests and experiments.

use std::{collections::VecDeque, sync::Mutex};

use prowess::{Call, Message, Role, lock};
use serde_json::Value as Json;

use crate::model::{
    ChatRequest, ChatResponse, Delta, Model, ModelError, ModelFuture, StopReason, TokenUsage,
};

/// A model that replies from a script, one entry per request.
#[derive(Debug, Default)]
pub struct ScriptedModel {
    lines: Mutex<VecDeque<Result<ChatResponse, ModelError>>>,
    asked: Mutex<Vec<ChatRequest>>,
}

impl ScriptedModel {
    /// Creates an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reply with this text.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        let message = Message::new(Role::Assistant, text);
        self.replies(ChatResponse { message, ..ChatResponse::default() })
    }

    /// Adds a reply that calls this tool.
    #[must_use]
    pub fn calls(self, tool: &str, input: Json) -> Self {
        self.calls_all([(tool, input)])
    }

    /// Adds a reply that calls all these tools at once.
    #[must_use]
    pub fn calls_all<'t>(self, calls: impl IntoIterator<Item = (&'t str, Json)>) -> Self {
        let calls = calls.into_iter().map(|(name, input)| Call {
            name: name.to_owned(),
            arguments: input.to_string(),
            ..Call::default()
        });
        let message = Message { calls: calls.collect(), ..Message::new(Role::Assistant, "") };
        self.replies(ChatResponse { message, stop: StopReason::Calls, ..ChatResponse::default() })
    }

    /// Adds this reply.
    #[must_use]
    pub fn replies(self, reply: ChatResponse) -> Self {
        lock(&self.lines).push_back(Ok(reply));
        self
    }

    /// Adds this error.
    #[must_use]
    pub fn fails(self, error: ModelError) -> Self {
        lock(&self.lines).push_back(Err(error));
        self
    }

    /// Returns the requests it received, in order.
    pub fn asked(&self) -> Vec<ChatRequest> {
        lock(&self.asked).clone()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn provider(&self) -> &str {
        "scripted"
    }

    fn reply<'a>(
        &'a self,
        ask: &'a ChatRequest,
        hear: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> ModelFuture<'a> {
        Box::pin(async move {
            lock(&self.asked).push(ask.clone());
            let line = lock(&self.lines).pop_front();
            let mut reply = line.unwrap_or_else(|| {
                let message = "the script is over".to_owned();
                Err(ModelError::Refused { model: "scripted".to_owned(), message })
            })?;
            for word in reply.message.content.split_inclusive(' ') {
                hear(Delta::Text(word));
            }
            reply.message.calls.iter().for_each(|it| hear(Delta::Call(&it.name)));
            if reply.spent == TokenUsage::default() {
                let said: usize = ask.messages.iter().map(|it| it.content.len()).sum();
                let (input, output) = (said / 4, reply.message.content.len() / 4 + 1);
                reply.spent = TokenUsage {
                    input: input as u64,
                    output: output as u64,
                    ..TokenUsage::default()
                };
            }
            Ok(reply)
        })
    }
}
