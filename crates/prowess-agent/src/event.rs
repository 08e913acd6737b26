//! Events of a turn, for observers such as trace, spans and logging.
//!
//! A new event is a variant here, its name below, and its description in [`description`]; observers
//! then show it. A special rendering of it is up to each of them.

mod description;

use std::{sync::Arc, time::Duration};

use prowess::{Marker, Message, Offer, Role};
use prowess_runtime::Outcome;
use serde::Serialize;
use serde_json::Value as Json;

use crate::model::{ChatRequest, ChatResponse, Delta, TokenUsage};

pub use self::description::{EventDescription, EventLevel, FieldValue};

/// The names of events that are pieces of a reply.
pub(crate) const PIECES: &[&str] = &["heard", "thought", "calls"];
/// The author name of messages that carry [`Context`](crate::Context).
pub(crate) const CONTEXT: &str = "context";

/// An event, with its time and place.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Milliseconds since 1970.
    pub at: u64,
    /// The id of the session it belongs to.
    pub session: &'a str,
    /// The turn, from 1.
    pub turn: usize,
    /// The number of requests to the model in that turn so far.
    pub step: usize,
    /// The event itself.
    #[serde(flatten)]
    pub what: &'a EventKind,
}

/// The kind of an event, with its data.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A turn began with a request.
    Began {
        /// The text of the request.
        prompt: String,
    },
    /// A library was loaded.
    Discovered {
        /// The number of its skills.
        skills: usize,
        /// The findings about them.
        findings: Vec<String>,
    },
    /// A request was matched to skills.
    Matched {
        /// The request.
        query: String,
        /// The strategy by which skills are chosen.
        strategy: String,
        /// The skills that were considered, best first.
        scores: Vec<SkillScore>,
        /// Mentioned names that no skill has.
        unknown: Vec<String>,
    },
    /// A skill was disclosed to the model, or more of it than before.
    Disclosed {
        /// The skill.
        skill: String,
        /// The disclosure level, or the file of the skill that was read.
        level: String,
        /// The cause of the disclosure: `matched`, `mentioned`, `use_skill`, `read_file`, `again`.
        by: String,
        /// The size in tokens.
        tokens: usize,
    },
    /// Documents that match the request were added.
    Retrieved {
        /// Their names.
        documents: Vec<String>,
    },
    /// A prompt was made to fit.
    Fitted {
        /// The size of the context window in tokens.
        window: usize,
        /// The tokens of each part.
        tokens: Json,
        /// The outcome for each skill.
        skills: Json,
        /// The fit steps that were taken.
        steps: Json,
    },
    /// A model was asked to summarise old messages.
    Summarised {
        /// The model.
        model: String,
        /// The number of messages.
        messages: usize,
        /// The summary; `None` if the model failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The reason it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The tokens it used.
        spent: TokenUsage,
        /// The duration.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// Old messages of the session were replaced by a summary.
    Compacted {
        /// The number of messages before.
        before: usize,
        /// The number of messages after.
        after: usize,
        /// The author of the summary: `model` or `extract`.
        by: String,
    },
    /// A request is sent to the model.
    Asked {
        /// The number of this request within the turn.
        step: usize,
        /// The model.
        model: String,
        /// Its provider.
        provider: String,
        /// The exact request.
        #[serde(serialize_with = "shared")]
        ask: Arc<ChatRequest>,
        /// The sources of the parts of the prompt.
        sources: Vec<PromptSource>,
    },
    /// The model streamed a piece of text.
    Heard {
        /// The piece.
        text: String,
    },
    /// The model streamed a piece of its reasoning.
    Thought {
        /// The piece.
        text: String,
    },
    /// The model begins to call a tool.
    Calls {
        /// The tool.
        tool: String,
    },
    /// The model replied.
    Replied {
        /// The step it replied to.
        step: usize,
        /// The reply.
        reply: ChatResponse,
        /// The duration.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// The model failed to reply.
    Failed {
        /// The step that failed.
        step: usize,
        /// The error message.
        message: String,
        /// The kind of error, in one word.
        kind: String,
        /// The duration.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// The request is sent to the model again.
    Retried {
        /// The number of the coming attempt, from 2.
        attempt: usize,
        /// The error of the previous attempt.
        message: String,
        /// The delay before it.
        #[serde(rename = "wait_ms", serialize_with = "milliseconds")]
        wait: Duration,
    },
    /// A tool is called.
    Called {
        /// The id of the call.
        id: String,
        /// The tool.
        tool: String,
        /// Its input, as the model wrote it.
        input: String,
        /// What the call would do, in words that follow “to”; `None` if its input is invalid.
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        /// Whether it [only reads](prowess_runtime::Action::only_reads), or does nothing because
        /// its input is invalid.
        only_reads: bool,
    },
    /// A tool returned.
    Returned {
        /// The id of the call.
        id: String,
        /// The tool.
        tool: String,
        /// The outcome of the call.
        outcome: Box<Outcome>,
        /// The duration.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// An approver was asked about an action.
    Approval {
        /// The action, in words that follow “to”.
        what: String,
        /// The reason for asking.
        why: String,
        /// The reply: `no`, `once`, `always`.
        reply: String,
        /// The approver that replied.
        by: String,
    },
    /// An MCP server started, stopped or failed.
    Server {
        /// The label of the server.
        server: String,
        /// The skill that declares it; empty if it is set in the configuration.
        skill: String,
        /// `started`, `stopped`, `failed`, `refused`.
        state: String,
        /// Its tools, or the reason there are none.
        message: String,
    },
    /// The amount spent so far.
    Spending {
        /// The tokens spent in this session.
        spent: TokenUsage,
        /// The cost of that, if prices are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// The part of that cost that belongs to this turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn_cost: Option<f64>,
    },
    /// Something is wrong, but the turn continues.
    Warned {
        /// The warning.
        message: String,
    },
    /// The turn ended.
    Ended {
        /// The answer, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// The reason there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The tokens it used.
        spent: TokenUsage,
        /// The duration.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
}

/// Names every kind of event, as traces, spans and logs have it.
macro_rules! names {
    ($($kind:ident => $name:literal,)*) => {
        impl EventKind {
            /// The names of all kinds.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Returns its name, as traces, spans and logs have it.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind { .. } => $name,)*
                }
            }
        }
    };
}

names! {
    Began => "began",
    Discovered => "discovered",
    Matched => "matched",
    Disclosed => "disclosed",
    Retrieved => "retrieved",
    Fitted => "fitted",
    Summarised => "summarised",
    Compacted => "compacted",
    Asked => "asked",
    Heard => "heard",
    Thought => "thought",
    Calls => "calls",
    Replied => "replied",
    Failed => "failed",
    Retried => "retried",
    Called => "called",
    Returned => "returned",
    Approval => "approval",
    Server => "server",
    Spending => "spending",
    Warned => "warned",
    Ended => "ended",
}

/// A skill that was considered for a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SkillScore {
    /// The skill.
    pub name: String,
    /// Its confidence.
    pub confidence: f64,
    /// The level at which it is disclosed; `None` if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The evidence for it.
    pub why: Vec<String>,
    /// Whether it is disclosed because of an earlier request rather than this one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub carried: bool,
}

impl SkillScore {
    /// Creates a skill that was considered, and is not disclosed.
    pub fn new(name: impl Into<String>, confidence: f64) -> Self {
        Self { name: name.into(), confidence, level: None, why: Vec::new(), carried: false }
    }
}

/// The source of a part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PromptSource {
    /// The index of the message, from 0.
    pub message: usize,
    /// The start of the part in the text of the message, in bytes.
    pub start: usize,
    /// The end of the part, in bytes.
    pub end: usize,
    /// The source: `system`, `catalog`, `skill:<name>`, `summary`, `user`, `assistant`,
    /// `tool:<name>`, or a name that a middleware chose, such as `retrieval:notes.md`.
    pub from: String,
}

impl EventKind {
    pub(crate) fn from_delta(delta: Delta<'_>) -> Self {
        match delta {
            Delta::Text(text) => Self::Heard { text: text.to_owned() },
            Delta::Thought(text) => Self::Thought { text: text.to_owned() },
            Delta::Call(tool) => Self::Calls { tool: tool.to_owned() },
        }
    }

    /// Whether it is a streamed piece of a reply that a later event reports as a whole.
    pub fn is_piece(&self) -> bool {
        PIECES.contains(&self.name())
    }
}

/// Returns the sources of the parts of these messages.
pub(crate) fn sources(
    messages: &[Message],
    offers: &[Offer],
    catalog: &str,
    marker: Option<&Marker>,
) -> Vec<PromptSource> {
    let opening = marker.map_or_else(String::new, |it| format!("{}\n", it.opening()));
    let mut sources = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let part =
            |start: usize, end: usize, from: String| PromptSource { message: at, start, end, from };
        if message.role != Role::System {
            let from = match (message.role, message.rest.get("name").and_then(Json::as_str)) {
                (Role::Tool, _) => format!("tool:{}", tool_of_result(messages, message)),
                (Role::User, Some("summary")) => "summary".to_owned(),
                (Role::User, Some(CONTEXT)) => match message.rest.get("from") {
                    Some(Json::String(from)) => from.clone(),
                    _ => CONTEXT.to_owned(),
                },
                (role, _) => role.as_str().to_owned(),
            };
            sources.push(part(0, message.content.len(), from));
            continue;
        }
        // A skill begins with its heading, and ends at the next one or at the end of the text.
        let text = &message.content;
        let mut starts: Vec<(usize, String)> = vec![(0, "system".to_owned())];
        let listed = find_long(text, catalog);
        starts.extend(listed.map(|it| (it, "catalog".to_owned())));
        // Skills come after the catalog.
        let behind = listed.map_or(0, |it| it + catalog.len());
        let headings = offers.iter().filter_map(|it| {
            let heading = format!("{opening}## Skill: {}\n", it.name);
            Some((behind + text[behind..].find(&heading)?, format!("skill:{}", it.name)))
        });
        starts.extend(headings);
        starts.sort();
        let ends = starts.iter().skip(1).map(|it| it.0).chain([text.len()]);
        let parts = starts.iter().zip(ends).filter(|(start, end)| start.0 < *end);
        sources.extend(parts.map(|(start, end)| part(start.0, end, start.1.clone())));
    }
    sources
}

/// Returns the position of a long text in another, unless it is empty or missing. Searching for its
/// beginning first is faster than searching for all of it at once.
fn find_long(text: &str, long: &str) -> Option<usize> {
    let beginning = &long[..long.floor_char_boundary(64)];
    let mut places = text.match_indices(beginning).map(|it| it.0);
    places.find(|at| !long.is_empty() && text[*at..].starts_with(long))
}

/// Returns the name of the tool whose result a message is.
fn tool_of_result<'m>(messages: &'m [Message], result: &Message) -> &'m str {
    let mut calls = messages.iter().flat_map(|it| &it.calls);
    let call = calls.find(|it| Some(&it.id) == result.call_id.as_ref());
    call.map_or("", |it| &it.name)
}

fn shared<S: serde::Serializer>(ask: &Arc<ChatRequest>, serializer: S) -> Result<S::Ok, S::Error> {
    ask.serialize(serializer)
}

fn milliseconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}

#[cfg(test)]
pub(crate) mod tests {
    use prowess::Message;

    use super::*;

    /// Returns an event of each kind, with `said` as what users, models and tools said.
    pub(crate) fn samples(said: &str) -> Vec<EventKind> {
        let (took, spent) = (Duration::from_millis(1500), TokenUsage::default());
        let text = said.to_owned();
        let ask = Arc::new(ChatRequest {
            messages: vec![Message::new(Role::User, said)],
            ..ChatRequest::default()
        });
        let (model, tool, id) = ("m".to_owned(), "work".to_owned(), "1".to_owned());
        let (skill, by) = ("deploy".to_owned(), "matched".to_owned());
        let message = Message::new(Role::Assistant, said);
        let reply = ChatResponse { message, ..ChatResponse::default() };
        let score = SkillScore {
            name: skill.clone(),
            confidence: 0.5,
            level: Some("brief".to_owned()),
            why: Vec::new(),
            carried: false,
        };
        vec![
            EventKind::Began { prompt: text.clone() },
            EventKind::Discovered { skills: 1, findings: Vec::new() },
            EventKind::Matched {
                query: text.clone(),
                strategy: "semantic".to_owned(),
                scores: vec![score],
                unknown: Vec::new(),
            },
            EventKind::Disclosed {
                skill: skill.clone(),
                level: "full".to_owned(),
                by: by.clone(),
                tokens: 1,
            },
            EventKind::Retrieved { documents: vec!["notes.md".to_owned()] },
            EventKind::Fitted {
                window: 100,
                tokens: Json::Null,
                skills: Json::Null,
                steps: Json::Null,
            },
            EventKind::Summarised {
                model: model.clone(),
                messages: 2,
                text: Some(text.clone()),
                error: None,
                spent,
                took,
            },
            EventKind::Compacted { before: 3, after: 1, by: by.clone() },
            EventKind::Asked { step: 1, model, provider: "p".to_owned(), ask, sources: Vec::new() },
            EventKind::Heard { text: text.clone() },
            EventKind::Thought { text: text.clone() },
            EventKind::Calls { tool: tool.clone() },
            EventKind::Replied { step: 1, reply, took },
            EventKind::Failed {
                step: 1,
                message: "busy".to_owned(),
                kind: "server_error".to_owned(),
                took,
            },
            EventKind::Retried { attempt: 2, message: "busy".to_owned(), wait: took },
            EventKind::Called {
                id: id.clone(),
                tool: tool.clone(),
                input: text.clone(),
                action: Some(text.clone()),
                only_reads: false,
            },
            EventKind::Returned { id, tool, outcome: Box::new(Outcome::ok(said)), took },
            EventKind::Approval {
                what: text.clone(),
                why: "a rule".to_owned(),
                reply: "no".to_owned(),
                by: by.clone(),
            },
            EventKind::Server {
                server: "s".to_owned(),
                skill,
                state: "started".to_owned(),
                message: text.clone(),
            },
            EventKind::Spending { spent, cost: Some(1.0), turn_cost: None },
            EventKind::Warned { message: "careful".to_owned() },
            EventKind::Ended { answer: Some(text), error: None, spent, took },
        ]
    }

    #[test]
    fn the_name_of_an_event_is_the_one_that_traces_have() {
        let events = samples("");
        let names: Vec<&str> = events.iter().map(EventKind::name).collect();
        assert_eq!(names, EventKind::NAMES);
        for event in events {
            assert_eq!(serde_json::to_value(&event).unwrap()["event"], event.name());
        }
    }

    #[test]
    fn the_sentence_of_an_event_has_nothing_that_was_said() {
        for event in samples("SECRET") {
            let EventDescription { sentence, text, .. } = event.describe();
            assert!(!sentence.is_empty() && !sentence.contains("SECRET"), "{sentence}");
            assert!(!event.is_piece() || text.is_none(), "{sentence}");
        }
    }
}
