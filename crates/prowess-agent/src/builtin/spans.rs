//! Spans of the `tracing` crate for turns, and within them for steps and tool calls.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use prowess::{Call, lock};
use prowess_runtime::{OutcomeStatus, secret::mask};
use tracing::{Instrument as _, Span, Value, field::Empty};

use crate::{
    event::{EventDescription, EventKind, EventLevel, FieldValue},
    middleware::request::{Request, Turn},
    middleware::{CallFuture, Middleware, Next, NextCall, ResponseFuture},
    model::{StopReason, TokenUsage},
    models::ModelProvider,
};

/// The target of all spans and events.
pub(crate) const TARGET: &str = "prowess::spans";

/// Emits events as spans and events of the `tracing` crate, for any subscriber.
///
/// A turn is a span `invoke_agent` within the caller's; each step is a span `chat` in it, and each
/// call a span `execute_tool`. Their fields are named after the GenAI conventions of OpenTelemetry;
/// `otel.name`, `otel.kind` and `otel.status_code` are for `tracing-opentelemetry`. Everything else
/// is an event of the turn. Texts of users, models and tools are not included.
#[derive(Debug)]
pub struct Spans {
    agent: String,
    /// The running turns, by address.
    open: Mutex<BTreeMap<usize, Open>>,
}

/// The spans of a turn; the inner ones are dropped first, and so end before it.
#[derive(Debug)]
struct Open {
    calls: BTreeMap<String, Span>,
    steps: BTreeMap<usize, Span>,
    turn: Span,
    /// The kind and message of the model's last error.
    failed: Option<(String, String)>,
}

/// Makes `emit` of the fields that events can have: a subscriber has to know all of them at compile
/// time. Those that an event does not have are left out.
macro_rules! event_fields {
    ($($field:ident)*) => {
        #[cfg(test)]
        const FIELDS: &[&str] = &[$(stringify!($field)),*];

        /// Emits an event of a turn.
        fn emit(turn: &Span, event: &EventKind) {
            let EventDescription { level, fields, .. } = event.describe();
            let (name, fields) = (event.name(), fields.into_iter().map(without_secrets).collect());
            match level {
                EventLevel::Debug | EventLevel::Info => tracing::info!(
                    target: TARGET,
                    parent: turn,
                    { $(prowess.$field = value(&fields, stringify!($field)),)* },
                    "{name}"
                ),
                EventLevel::Warn | EventLevel::Error => tracing::warn!(
                    target: TARGET,
                    parent: turn,
                    { $(prowess.$field = value(&fields, stringify!($field)),)* },
                    "{name}"
                ),
            }
        }
    };
}

event_fields! {
    skills findings strategy scores unknown skill level by tokens documents window steps model
    messages input output cost before after attempt message wait_ms what why reply server state
}

impl Spans {
    /// Creates the middleware for an agent of this name.
    pub fn new(agent: impl Into<String>) -> Self {
        Self { agent: agent.into(), open: Mutex::default() }
    }

    fn open_turns(&self) -> MutexGuard<'_, BTreeMap<usize, Open>> {
        lock(&self.open)
    }

    fn begin(&self, turn: &Turn) -> Open {
        let turn = tracing::info_span!(
            target: TARGET,
            "invoke_agent",
            otel.name = format!("invoke_agent {}", self.agent),
            otel.kind = "internal",
            otel.status_code = Empty,
            otel.status_description = Empty,
            error.type = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = self.agent,
            gen_ai.conversation.id = turn.session.id(),
            gen_ai.provider.name = Empty,
            gen_ai.request.model = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            prowess.turn = turn.number,
            prowess.steps = Empty,
        );
        Open { turn, steps: BTreeMap::new(), calls: BTreeMap::new(), failed: None }
    }
}

impl Middleware for Spans {
    fn name(&self) -> &str {
        "spans"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        let span = self.open_turns().get(&turn_key(&request.turn)).map(|it| it.turn.clone());
        match span {
            Some(span) => Box::pin(next.reply(request).instrument(span)),
            None => next.reply(request),
        }
    }

    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> CallFuture<'a> {
        let span =
            self.open_turns().get(&turn_key(turn)).and_then(|it| it.calls.get(&call.id).cloned());
        match span {
            Some(span) => Box::pin(next.call(call).instrument(span)),
            None => next.call(call),
        }
    }

    fn note(&self, turn: &Turn, what: &EventKind) {
        match what {
            EventKind::Began { .. } => {
                drop(self.open_turns().insert(turn_key(turn), self.begin(turn)));
            }
            EventKind::Ended { error, spent, .. } => {
                let Some(open) = self.open_turns().remove(&turn_key(turn)) else { return };
                record_spent(&open.turn, *spent);
                open.turn.record("prowess.steps", turn.steps());
                if let Some(error) = error {
                    let failed = open.failed.as_ref().filter(|it| it.1 == *error);
                    record_error(&open.turn, failed.map_or("_OTHER", |it| &it.0), error);
                }
            }
            what if what.is_piece() => {}
            what => {
                if let Some(open) = self.open_turns().get_mut(&turn_key(turn)) {
                    open.record_event(turn, what);
                }
            }
        }
    }
}

impl Open {
    fn record_event(&mut self, turn: &Turn, what: &EventKind) {
        match what {
            EventKind::Asked { step, model, provider, ask, .. } => {
                let provider = provider_name(provider);
                self.turn.record("gen_ai.provider.name", provider);
                self.turn.record("gen_ai.request.model", model);
                let span = tracing::info_span!(
                    target: TARGET,
                    parent: &self.turn,
                    "chat",
                    otel.name = format!("chat {model}"),
                    otel.kind = "client",
                    otel.status_code = Empty,
                    otel.status_description = Empty,
                    error.type = Empty,
                    gen_ai.operation.name = "chat",
                    gen_ai.provider.name = provider,
                    gen_ai.request.model = model,
                    gen_ai.request.max_tokens = ask.max_output,
                    gen_ai.request.temperature = ask.temperature,
                    gen_ai.conversation.id = turn.session.id(),
                    gen_ai.response.finish_reasons = Empty,
                    gen_ai.usage.input_tokens = Empty,
                    gen_ai.usage.output_tokens = Empty,
                    gen_ai.usage.cache_read.input_tokens = Empty,
                    prowess.step = step,
                    prowess.messages = ask.messages.len(),
                    prowess.tools = ask.tools.len(),
                );
                self.steps.insert(*step, span);
            }
            EventKind::Replied { step, reply, .. } => {
                let Some(span) = self.steps.remove(step) else { return };
                record_spent(&span, reply.spent);
                span.record("gen_ai.response.finish_reasons", finish_reason(reply.stop));
            }
            EventKind::Failed { step, message, kind, .. } => {
                let Some(span) = self.steps.remove(step) else { return };
                record_error(&span, kind, message);
                self.failed = Some((kind.clone(), message.clone()));
            }
            EventKind::Called { id, tool, .. } => {
                let span = tracing::info_span!(
                    target: TARGET,
                    parent: &self.turn,
                    "execute_tool",
                    otel.name = format!("execute_tool {tool}"),
                    otel.kind = "internal",
                    otel.status_code = Empty,
                    otel.status_description = Empty,
                    error.type = Empty,
                    gen_ai.operation.name = "execute_tool",
                    gen_ai.tool.name = tool,
                    gen_ai.tool.call.id = id,
                    gen_ai.tool.type = "function",
                    prowess.step = turn.steps(),
                    prowess.status = Empty,
                );
                self.calls.insert(id.clone(), span);
            }
            EventKind::Returned { id, outcome, .. } => {
                let Some(span) = self.calls.remove(id) else { return };
                let status = outcome.status.as_str();
                span.record("prowess.status", status);
                if outcome.status != OutcomeStatus::Ok {
                    record_error(&span, status, outcome.message.as_deref().unwrap_or_default());
                }
            }
            what => emit(&self.turn, what),
        }
    }
}

/// Masks the secrets in the text of a field.
fn without_secrets((name, value): (&'static str, FieldValue)) -> (&'static str, FieldValue) {
    match value {
        FieldValue::Text(text) => (name, FieldValue::Text(mask(&text).into_owned())),
        value => (name, value),
    }
}

/// Returns the value of a field, if there is one of this name.
fn value<'f>(fields: &'f BTreeMap<&str, FieldValue>, name: &str) -> Option<&'f dyn Value> {
    fields.get(name).map(|it| -> &dyn Value {
        match it {
            FieldValue::Integer(number) => number,
            FieldValue::Float(number) => number,
            FieldValue::Text(text) => text,
        }
    })
}

/// Returns the key of a turn while it runs.
fn turn_key(turn: &Turn) -> usize {
    std::ptr::from_ref(turn).addr()
}

fn record_spent(span: &Span, spent: TokenUsage) {
    span.record("gen_ai.usage.input_tokens", spent.input);
    span.record("gen_ai.usage.output_tokens", spent.output);
    span.record("gen_ai.usage.cache_read.input_tokens", spent.cached);
}

fn record_error(span: &Span, kind: &str, message: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "error");
    span.record("otel.status_description", &*mask(message));
}

/// Returns the provider's name in the conventions.
fn provider_name(provider: &str) -> &str {
    ModelProvider::from_word(provider).map_or(provider, |it| it.row().telemetry_name)
}

/// Returns the stop reason's name in the conventions.
fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Done => "stop",
        StopReason::Calls => "tool_calls",
        StopReason::Length => "length",
        StopReason::Filtered => "content_filter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::tests::samples;

    #[test]
    fn every_field_of_an_event_is_emitted() {
        for event in samples("said") {
            for (name, _) in event.describe().fields {
                assert!(FIELDS.contains(&name), "`{name}` of `{}`", event.name());
            }
        }
    }
}
