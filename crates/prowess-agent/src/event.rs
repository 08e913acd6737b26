//! What happens on the way, for whoever looks on.

use std::{sync::Arc, time::Duration};

use prowess::{Marker, Message, Offer, Role};
use prowess_runtime::Outcome;
use serde::Serialize;
use serde_json::Value as Json;

use crate::model::{ChatRequest, ChatResponse, Delta, TokenUsage};

/// The name under which a context speaks.
pub(crate) const CONTEXT: &str = "context";

/// Something that happened, with when and where.
#[derive(Debug, Clone, Serialize)]
pub struct Event<'a> {
    /// Milliseconds since 1970.
    pub at: u64,
    /// The session that it belongs to.
    pub session: &'a str,
    /// The turn, from 1.
    pub turn: usize,
    /// How often the model had been asked in that turn.
    pub step: usize,
    /// What it is.
    #[serde(flatten)]
    pub what: &'a EventKind,
}

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// Somebody asks for something.
    Began {
        /// In these words.
        prompt: String,
    },
    /// A library was looked at.
    Discovered {
        /// How many skills it has.
        skills: usize,
        /// What is wrong with them.
        findings: Vec<String>,
    },
    /// A request was matched to skills.
    Matched {
        /// The request.
        query: String,
        /// By what skills are chosen.
        strategy: String,
        /// The skills that were considered, the best first.
        scores: Vec<SkillScore>,
        /// What was mentioned and is not there.
        unknown: Vec<String>,
    },
    /// The model is shown a skill, or more of it than before.
    Disclosed {
        /// The skill.
        skill: String,
        /// How much of it: a level, or which of its files.
        level: String,
        /// By what it came to that: `matched`, `mentioned`, `use_skill`, `read_file`, `again`.
        by: String,
        /// What it takes.
        tokens: usize,
    },
    /// Documents were added that fit the request.
    Retrieved {
        /// Their names.
        documents: Vec<String>,
    },
    /// A prompt was made to fit.
    Fitted {
        /// How many tokens the window holds.
        window: usize,
        /// What each part takes.
        tokens: Json,
        /// What became of each skill.
        skills: Json,
        /// What was done.
        steps: Json,
    },
    /// A model was asked to summarise old messages.
    Summarised {
        /// The model.
        model: String,
        /// How many messages.
        messages: usize,
        /// What it made of them; nothing if it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What it took.
        spent: TokenUsage,
        /// How long it took.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// Old messages of the session were replaced by a summary.
    Compacted {
        /// How many messages there were.
        before: usize,
        /// How many there are.
        after: usize,
        /// Who made the summary: `model` or `extract`.
        by: String,
    },
    /// The model is asked.
    Asked {
        /// How often it was in this turn.
        step: usize,
        /// The model.
        model: String,
        /// Whose it is.
        provider: String,
        /// Exactly what it is asked.
        #[serde(serialize_with = "shared")]
        ask: Arc<ChatRequest>,
        /// What came from where.
        sources: Vec<PromptSource>,
    },
    /// The model says something on the way.
    Heard {
        /// What it says.
        text: String,
    },
    /// The model thinks something on the way.
    Thought {
        /// What it thinks.
        text: String,
    },
    /// The model begins to call a tool.
    Calls {
        /// The tool.
        tool: String,
    },
    /// The model replied.
    Replied {
        /// To which step.
        step: usize,
        /// What.
        reply: ChatResponse,
        /// How long it took.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// The model did not reply.
    Failed {
        /// To which step.
        step: usize,
        /// Why.
        message: String,
        /// What kind of error it was, in one word.
        kind: String,
        /// How long it took.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// The model is asked again.
    Retried {
        /// Which try it will be, from 2.
        attempt: usize,
        /// Why.
        message: String,
        /// After how long.
        #[serde(rename = "wait_ms", serialize_with = "milliseconds")]
        wait: Duration,
    },
    /// A tool is called.
    Called {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// What it is given, as the model wrote it.
        input: String,
    },
    /// A tool has answered.
    Returned {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// What came of it.
        outcome: Outcome,
        /// How long it took.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// Somebody was asked whether something may be done.
    Approval {
        /// What, in words that follow “to”.
        what: String,
        /// Why it was asked.
        why: String,
        /// What was said: `no`, `once`, `always`.
        reply: String,
        /// Who said it.
        by: String,
    },
    /// A server began, ended or failed.
    Server {
        /// The server.
        server: String,
        /// The skill that brought it; empty if somebody has set it.
        skill: String,
        /// `started`, `stopped`, `failed`, `refused`.
        state: String,
        /// Its tools, or why there are none.
        message: String,
    },
    /// What was spent so far.
    Spending {
        /// In this session.
        spent: TokenUsage,
        /// What that costs, if prices are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// How much of that this turn costs.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn_cost: Option<f64>,
    },
    /// Something is not as it should be, and it goes on.
    Warned {
        /// What.
        message: String,
    },
    /// It has come to an end.
    Ended {
        /// The answer, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// Why there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What it took.
        spent: TokenUsage,
        /// How long it took.
        #[serde(rename = "took_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
}

/// A skill that was considered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillScore {
    /// The skill.
    pub name: String,
    /// How likely it is the right one.
    pub confidence: f64,
    /// How much of it is shown; nothing if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// What speaks for it.
    pub why: Vec<String>,
    /// Whether it is shown for what was asked before, rather than for this request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub carried: bool,
}

/// Where a part of a prompt came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptSource {
    /// Which message, from 0.
    pub message: usize,
    /// Where in its text the part begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Where it came from: `system`, `catalog`, `skill:<name>`, `summary`, `user`, `assistant`,
    /// `tool:<name>`, or what a middleware calls it, such as `retrieval:notes.md`.
    pub from: String,
}

impl EventKind {
    pub(crate) fn heard(delta: Delta<'_>) -> Self {
        match delta {
            Delta::Text(text) => Self::Heard { text: text.to_owned() },
            Delta::Thought(text) => Self::Thought { text: text.to_owned() },
            Delta::Call(tool) => Self::Calls { tool: tool.to_owned() },
        }
    }

    /// Whether it is a piece of what is told as a whole later.
    pub fn is_piece(&self) -> bool {
        matches!(self, Self::Heard { .. } | Self::Thought { .. } | Self::Calls { .. })
    }
}

/// What of these messages came from where.
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
                (Role::Tool, _) => format!("tool:{}", called(messages, message)),
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
        // A skill begins with its heading, and ends where the next one or the text does.
        let text = &message.content;
        let mut starts: Vec<(usize, String)> = vec![(0, "system".to_owned())];
        let listed = place(text, catalog);
        starts.extend(listed.map(|it| (it, "catalog".to_owned())));
        // Skills stand behind the list.
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

/// Where a long text stands in another, if it does and is not empty. To look for all of it at once
/// takes longer than to look for its beginning.
fn place(text: &str, long: &str) -> Option<usize> {
    let beginning = &long[..long.floor_char_boundary(64)];
    let mut places = text.match_indices(beginning).map(|it| it.0);
    places.find(|at| !long.is_empty() && text[*at..].starts_with(long))
}

/// The tool whose result a message is.
fn called<'m>(messages: &'m [Message], result: &Message) -> &'m str {
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
