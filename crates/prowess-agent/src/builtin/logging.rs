//! Logging: a line per event.

use tracing::{Level, debug, error, info, warn};

use crate::{
    event::EventKind,
    middleware::{Middleware, request::Turn},
};

/// Logs events through the crate `tracing`, one line each, with the target `prowess`.
///
/// Events that matter to a user are `INFO`, each step `DEBUG`, problems `WARN`, and a turn without
/// an answer `ERROR`. Messages, calls and results are not logged unless `texts` is set, because
/// they may contain secrets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Logging {
    /// Whether lines also contain messages, calls and results.
    pub texts: bool,
}

impl Middleware for Logging {
    fn name(&self) -> &str {
        "logging"
    }

    fn note(&self, turn: &Turn, what: &EventKind) {
        let Some((level, line)) = self.line(what) else { return };
        let event = what.name();
        let (session, turn, step) = (turn.session.id(), turn.number, turn.steps());
        match level {
            Level::ERROR => error!(target: "prowess", session, turn, step, event, "{line}"),
            Level::WARN => warn!(target: "prowess", session, turn, step, event, "{line}"),
            Level::INFO => info!(target: "prowess", session, turn, step, event, "{line}"),
            _ => debug!(target: "prowess", session, turn, step, event, "{line}"),
        }
    }
}

impl Logging {
    /// Returns the level and text of an event's line.
    fn line(&self, what: &EventKind) -> Option<(Level, String)> {
        let said =
            |text: &str| if self.texts { format!(": {}", one_line(text)) } else { String::new() };
        Some(match what {
            EventKind::Began { prompt } => (Level::INFO, format!("a turn begins{}", said(prompt))),
            EventKind::Discovered { skills, findings } => {
                (Level::DEBUG, format!("{skills} skills, {} findings", findings.len()))
            }
            EventKind::Matched { strategy, scores, unknown, .. } => {
                let scores: Vec<String> =
                    scores.iter().map(|it| format!("`{}` {:.2}", it.name, it.confidence)).collect();
                let line = format!("{strategy}: {}; {} unknown", scores.join(", "), unknown.len());
                (Level::DEBUG, line)
            }
            EventKind::Disclosed { skill, level, by, tokens } => {
                (Level::INFO, format!("`{skill}` {level} by {by}, {tokens} tokens"))
            }
            EventKind::Retrieved { documents } => {
                (Level::DEBUG, format!("{} documents", documents.len()))
            }
            EventKind::Fitted { window, tokens, steps, .. } => {
                let steps: Vec<&str> = steps
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|it| it["step"].as_str())
                    .collect();
                let line = format!(
                    "{} of {window} tokens{}{}",
                    tokens["total"],
                    if steps.is_empty() { "" } else { " after " },
                    steps.join(", ")
                );
                (Level::DEBUG, line)
            }
            EventKind::Summarised { model, messages, error: None, .. } => {
                (Level::DEBUG, format!("{messages} messages by `{model}`"))
            }
            EventKind::Summarised { model, error: Some(error), .. } => {
                (Level::WARN, format!("not by `{model}`: {error}"))
            }
            EventKind::Compacted { before, after, by } => {
                (Level::INFO, format!("{before} messages to {after} by {by}"))
            }
            EventKind::Asked { model, provider, ask, .. } => {
                let (messages, tools) = (ask.messages.len(), ask.tools.len());
                let line = format!("`{model}` of {provider}: {messages} messages, {tools} tools");
                (Level::DEBUG, line)
            }
            EventKind::Heard { .. } | EventKind::Thought { .. } | EventKind::Calls { .. } => {
                return None;
            }
            EventKind::Replied { reply, took, .. } => {
                let (spent, calls) = (reply.spent, reply.message.calls.len());
                let line = format!(
                    "{spent}, {calls} calls, {} ms{}",
                    took.as_millis(),
                    said(&reply.message.content)
                );
                (Level::DEBUG, line)
            }
            EventKind::Failed { message, took, .. } => {
                (Level::WARN, format!("{message} ({} ms)", took.as_millis()))
            }
            EventKind::Retried { attempt, message, wait } => {
                let line = format!("attempt {attempt} in {} ms: {message}", wait.as_millis());
                (Level::WARN, line)
            }
            EventKind::Called { tool, input, .. } => {
                (Level::INFO, format!("`{tool}`{}", said(input)))
            }
            EventKind::Returned { tool, outcome, took, .. } => {
                let level = if outcome.is_ok() { Level::INFO } else { Level::WARN };
                let why = said(outcome.message.as_deref().unwrap_or_default());
                let line =
                    format!("`{tool}` {:?} after {} ms{why}", outcome.status, took.as_millis());
                (level, line)
            }
            EventKind::Approval { what, reply, by, .. } => {
                (Level::INFO, format!("{reply} by {by}{}", said(what)))
            }
            EventKind::Server { server, skill, state, .. } => {
                (Level::INFO, format!("`{server}` of `{skill}` {state}"))
            }
            EventKind::Spending { spent, cost, .. } => {
                let cost = cost.map_or(String::new(), |it| format!(", {it:.6} spent"));
                let line = format!("{spent}{cost}");
                (Level::DEBUG, line)
            }
            EventKind::Warned { message } => (Level::WARN, message.clone()),
            EventKind::Ended { error: Some(error), took, .. } => {
                (Level::ERROR, format!("no answer after {} ms: {error}", took.as_millis()))
            }
            EventKind::Ended { answer, took, .. } => {
                let answer = said(answer.as_deref().unwrap_or_default());
                (Level::INFO, format!("an answer after {} ms{answer}", took.as_millis()))
            }
        })
    }
}

/// Returns a text as a single line.
fn one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}
