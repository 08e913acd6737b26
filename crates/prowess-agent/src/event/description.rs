//! Events in words and numbers: the one place where an event is described.

use std::{fmt, time::Duration};

use serde_json::{Value as Json, json};

use super::{EventKind, SkillScore};

/// An event in words and numbers, for logs, spans and people at a terminal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EventDescription {
    /// How much it matters.
    pub level: EventLevel,
    /// The event in one sentence, without what a user, a model or a tool said.
    pub sentence: String,
    /// What was said: a request, an input, an answer. It may contain secrets.
    pub text: Option<String>,
    /// Its facts, by name. An event that is a span of its own has none.
    pub fields: Vec<(&'static str, FieldValue)>,
}

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventLevel {
    /// A step on the way.
    Debug,
    /// It matters to a user.
    Info,
    /// A problem, but the turn continues.
    Warn,
    /// The turn has no answer.
    Error,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// A whole number.
    Integer(u64),
    /// Any other number.
    Float(f64),
    /// A text, or several as JSON or separated by commas. It may contain secrets.
    Text(String),
}

impl EventKind {
    /// Describes the event.
    pub fn describe(&self) -> EventDescription {
        match self {
            Self::Began { prompt } => info("a turn begins").saying(prompt),
            Self::Discovered { skills, findings } => {
                debug(format!("{skills} skills are there, with {} findings", findings.len()))
                    .with("skills", *skills)
                    .with("findings", findings.len())
            }
            Self::Matched { strategy, scores, unknown, .. } => debug(matching(scores))
                .with("strategy", strategy)
                .with("scores", json!(scores).to_string())
                .with("unknown", unknown.join(", ")),
            Self::Disclosed { skill, level, by, tokens } => info(match by.as_str() {
                "read_file" => format!("reads `{level}` of skill `{skill}` ({tokens} tokens)"),
                "use_skill" => format!("loads skill `{skill}` ({tokens} tokens)"),
                _ => format!("shows skill `{skill}`: {level}, {by} ({tokens} tokens)"),
            })
            .with("skill", skill)
            .with("level", level)
            .with("by", by)
            .with("tokens", *tokens),
            Self::Retrieved { documents } => {
                let names = documents.join(", ");
                let sentence = if names.is_empty() { "no document" } else { &names };
                debug(format!("adds {sentence}")).with("documents", names)
            }
            Self::Fitted { window, tokens, steps, .. } => {
                let taken = names(steps, "step");
                let after = if taken.is_empty() { "" } else { " after " };
                debug(format!(
                    "the prompt has {} of {window} tokens{after}{taken}",
                    tokens["total"]
                ))
                .with("window", *window)
                .with("tokens", tokens.to_string())
                .with("steps", steps.to_string())
            }
            Self::Summarised { model, messages, error, spent, .. } => match error {
                None => debug(format!("`{model}` summarised {messages} messages")),
                Some(error) => {
                    warn(format!("`{model}` did not summarise {messages} messages: {error}"))
                }
            }
            .with("model", model)
            .with("messages", *messages)
            .with("input", spent.input)
            .with("output", spent.output),
            Self::Compacted { before, after, by } => {
                info(format!("summarised {before} messages into {after} (by {by})"))
                    .with("before", *before)
                    .with("after", *after)
                    .with("by", by)
            }
            Self::Asked { step, model, .. } => debug(format!("asks `{model}` (step {step})")),
            Self::Heard { .. } => debug("replies"),
            Self::Thought { .. } => debug("thinks"),
            Self::Calls { tool } => debug(format!("is about to call {tool}")),
            Self::Replied { reply, took, .. } => {
                debug(format!("replied after {}: {}", Seconds(*took), reply.spent))
                    .saying(&reply.message.content)
            }
            Self::Failed { message, took, .. } => {
                warn(format!("no reply after {}: {message}", Seconds(*took)))
            }
            Self::Retried { attempt, message, wait } => {
                warn(format!("retries in {} (attempt {attempt}): {message}", Seconds(*wait)))
                    .with("attempt", *attempt)
                    .with("message", message)
                    .with("wait_ms", wait.as_secs_f64() * 1e3)
            }
            Self::Called { tool, input, .. } => info(format!("calls {tool}")).saying(input),
            Self::Returned { tool, outcome, took, .. } => {
                let level = if outcome.is_ok() { EventLevel::Info } else { EventLevel::Warn };
                let status = outcome.status.as_str();
                let why = outcome.message.as_deref().filter(|_| !outcome.is_ok());
                describe(level, format!("{tool}: {status} after {}", Seconds(*took)))
                    .saying(why.unwrap_or_default())
            }
            Self::Approval { what, why, reply, by } => info(format!("approval `{reply}` by {by}"))
                .saying(what)
                .with("what", what)
                .with("why", why)
                .with("reply", reply)
                .with("by", by),
            Self::Server { server, skill, state, message } => {
                let level = match state.as_str() {
                    "failed" | "refused" => EventLevel::Warn,
                    _ => EventLevel::Info,
                };
                // A configured server belongs to no skill.
                let of = if skill.is_empty() { String::new() } else { format!(" of `{skill}`") };
                describe(level, format!("server `{server}`{of} {state}"))
                    .saying(message)
                    .with("server", server)
                    .with("skill", skill)
                    .with("state", state)
                    .with("message", message)
            }
            Self::Spending { spent, cost, .. } => {
                let cost_so_far = cost.map_or(String::new(), |it| format!(", cost {it:.6}"));
                let spending = debug(format!("so far: {spent}{cost_so_far}"))
                    .with("input", spent.input)
                    .with("output", spent.output);
                match cost {
                    Some(cost) => spending.with("cost", *cost),
                    None => spending,
                }
            }
            Self::Warned { message } => warn(message).with("message", message),
            Self::Ended { answer, error, took, .. } => match error {
                Some(error) => describe(
                    EventLevel::Error,
                    format!("no answer after {}: {error}", Seconds(*took)),
                ),
                None => info(format!("an answer after {}", Seconds(*took)))
                    .saying(answer.as_deref().unwrap_or_default()),
            },
        }
    }
}

impl EventDescription {
    /// Adds what was said.
    fn saying(self, text: &str) -> Self {
        Self { text: Some(text.to_owned()).filter(|it| !it.is_empty()), ..self }
    }

    /// Adds a fact.
    fn with(mut self, name: &'static str, value: impl Into<FieldValue>) -> Self {
        self.fields.push((name, value.into()));
        self
    }
}

fn describe(level: EventLevel, sentence: impl Into<String>) -> EventDescription {
    EventDescription { level, sentence: sentence.into(), text: None, fields: Vec::new() }
}

fn debug(sentence: impl Into<String>) -> EventDescription {
    describe(EventLevel::Debug, sentence)
}

fn info(sentence: impl Into<String>) -> EventDescription {
    describe(EventLevel::Info, sentence)
}

fn warn(sentence: impl Into<String>) -> EventDescription {
    describe(EventLevel::Warn, sentence)
}

impl From<usize> for FieldValue {
    fn from(number: usize) -> Self {
        Self::Integer(number as u64)
    }
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for FieldValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for FieldValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl fmt::Display for SkillScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.carried {
            true => write!(f, "{} carried over", self.name),
            false => write!(f, "{} {:.0} %", self.name, self.confidence * 100.0),
        }
    }
}

/// Returns a sentence with the skills that are disclosed for a request.
fn matching(scores: &[SkillScore]) -> String {
    let (mut fitting, mut carried) = (Vec::new(), Vec::new());
    for score in scores.iter().filter(|it| it.level.is_some()) {
        match score.carried {
            true => carried.push(score.name.clone()),
            false => fitting.push(score.to_string()),
        }
    }
    let lists = [("matching skills", fitting), ("carried over", carried)];
    let lists = lists.into_iter().filter(|it| !it.1.is_empty());
    let lists: Vec<String> =
        lists.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
    if lists.is_empty() { "no skill matches".to_owned() } else { lists.join("; ") }
}

/// Joins one field of each object of a list.
fn names(list: &Json, field: &str) -> String {
    let names = list.as_array().into_iter().flatten().filter_map(|it| it[field].as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// A duration as people read it.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0 => write!(f, "{} ms", self.0.as_millis()),
            _ => write!(f, "{:.1} s", self.0.as_secs_f64()),
        }
    }
}
