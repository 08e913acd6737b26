//! Reads the lines of a trace into turns, steps and calls.

use std::collections::BTreeMap;

use prowess::Tokenizer;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::{
    builtin::TRACE_VERSION,
    event::{EventKind, PIECES},
};

/// A parsed trace: its events, by turn.
#[derive(Debug, Default, Serialize)]
pub struct RecordedTrace {
    pub(super) turns: Vec<Turn>,
    /// The messages and tools sent to the model, by digest.
    pub(super) said: BTreeMap<String, Json>,
    /// Events of unknown kinds.
    pub(super) other: Vec<Json>,
    /// The numbers of the lines that cannot be parsed, from 1.
    pub(super) unreadable: Vec<usize>,
    /// Whether the last line is incomplete, as after a crash.
    pub(super) is_torn: bool,
    /// The number of events beyond the limit.
    pub(super) left_out: usize,
}

/// A turn: from a request to its answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct Turn {
    pub(super) session: String,
    pub(super) turn: u64,
    pub(super) at: u64,
    /// The time of its last event.
    pub(super) until: u64,
    pub(super) prompt: String,
    /// The event of its end; `None` if it was still running when the trace stopped.
    pub(super) ended: Option<Json>,
    pub(super) steps: Vec<TraceStep>,
    /// All its events except those of steps and calls.
    pub(super) events: Vec<Json>,
}

/// A step: one request to the model.
#[derive(Debug, Default, Serialize)]
pub(super) struct TraceStep {
    pub(super) at: u64,
    pub(super) asked: Json,
    pub(super) budget: Budget,
    /// The event of fitting the prompt.
    pub(super) fitted: Option<Json>,
    /// The event of the reply or of the failure.
    pub(super) replied: Option<Json>,
    pub(super) calls: Vec<Call>,
}

/// The estimated tokens of a prompt, by source.
#[derive(Debug, Default, Serialize)]
pub(super) struct Budget {
    pub(super) window: Option<u64>,
    /// `system`, `catalog`, `skill:<name>`, `context`, `history`, `tools`, in this order.
    pub(super) parts: Vec<(String, usize)>,
}

/// A tool call.
#[derive(Debug, Default, Serialize)]
pub(super) struct Call {
    pub(super) at: u64,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: Json,
    /// What it would do; empty if that is not known.
    pub(super) action: String,
    /// The event of its result.
    pub(super) returned: Option<Json>,
}

/// A file is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file is empty.
    #[error("it is empty")]
    Empty,
    /// No line of it is an event.
    #[error("it is not a trace: no line is an event")]
    Foreign,
    /// It is the journal of a session.
    #[error("it is a session, not a trace")]
    Session,
    /// It was written by a later version.
    #[error("the trace has version {version}, but only {TRACE_VERSION} is supported")]
    Version {
        /// Its version.
        version: u64,
    },
}

/// The maximum number of events that are read.
const MAX_EVENTS: usize = 200_000;
/// The maximum number of unparsable lines that are listed.
const MAX_UNREADABLE: usize = 100;
/// The number of recent entries searched for the one that an event belongs to.
const RECENT: usize = 256;
/// The number of bytes of a text whose tokens are counted.
const MAX_COUNTED: usize = 256 * 1024;
impl RecordedTrace {
    /// Parses the lines of a trace. Lines that cannot be parsed are counted and left out.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        if bytes.trim_ascii().is_empty() {
            return Err(TraceError::Empty);
        }
        let mut reading = TraceReader::default();
        let mut lines = bytes.split(|it| *it == b'\n').enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Json>(line) {
                Ok(Json::Object(event)) => reading.take(event)?,
                _ if lines.peek().is_none() => reading.traced.is_torn = true,
                _ => reading.record_unreadable(at + 1),
            }
        }
        reading.finish()
    }
}

#[derive(Default)]
struct TraceReader {
    traced: RecordedTrace,
    events: usize,
    is_session: bool,
    /// Long texts, by digest.
    texts: BTreeMap<String, Json>,
    /// The indexes of the turns, by session and number.
    places: BTreeMap<(String, u64), usize>,
    /// The event of fitting the next prompt, by turn.
    fitted: BTreeMap<usize, Json>,
    /// The last prompt, by turn.
    told: BTreeMap<usize, PromptTotals>,
    costs: Costs,
    /// The size of a session's context window in tokens, if reported.
    windows: BTreeMap<String, u64>,
}

impl TraceReader {
    fn take(&mut self, mut event: Map<String, Json>) -> Result<(), TraceError> {
        let Some(kind) = event.get("event").and_then(Json::as_str).map(str::to_owned) else {
            self.is_session |= event.get("type").is_some_and(|it| it == "session");
            return Ok(());
        };
        self.events += 1;
        if self.events > MAX_EVENTS {
            self.traced.left_out += 1;
            return Ok(());
        }
        match kind.as_str() {
            "trace" => {
                let version = event.get("version").and_then(Json::as_u64).unwrap_or_default();
                if version > u64::from(TRACE_VERSION) {
                    return Err(TraceError::Version { version });
                }
            }
            "said" => {
                let id = event.get("id").and_then(Json::as_str).map(str::to_owned);
                let said = ["message", "tool", "text"].iter().find_map(|it| event.remove(*it));
                match id.zip(said) {
                    Some((id, text @ Json::String(_))) => drop(self.texts.insert(id, text)),
                    Some((id, said)) => drop(self.traced.said.insert(id, self.with_texts(said))),
                    None => {}
                }
            }
            kind => self.add_event(kind, Json::Object(event)),
        }
        Ok(())
    }

    /// Returns a message with the long texts that it refers to.
    fn with_texts(&self, mut said: Json) -> Json {
        let parts = said.get_mut("parts").and_then(Json::as_array_mut);
        for part in parts.into_iter().flatten() {
            if let Some(text) = part["said"].as_str().and_then(|it| self.texts.get(it)) {
                *part = json!({"from": part["from"], "text": text});
            }
        }
        said
    }

    /// Adds an event to the turn, step or call it belongs to.
    fn add_event(&mut self, kind: &str, event: Json) {
        if !EventKind::NAMES.contains(&kind) || PIECES.contains(&kind) {
            return self.traced.other.push(event);
        }
        let number = self.turn(kind, &event);
        let turn = &mut self.traced.turns[number];
        turn.until = turn.until.max(at(&event));
        match kind {
            "began" => turn.prompt = text(&event, "prompt"),
            "fitted" => {
                let window = event["window"].as_u64().map(|it| (turn.session.clone(), it));
                self.windows.extend(window);
                self.fitted.insert(number, event);
            }
            "asked" => {
                let fitted = self.fitted.remove(&number);
                let told = self.told.entry(number).or_default();
                self.costs.count(&event, &self.traced.said);
                told.take(&event, &self.costs);
                let budget = told.budget(&event, &self.costs, self.windows.get(&turn.session));
                let at = at(&event);
                turn.steps.push(TraceStep {
                    at,
                    asked: event,
                    budget,
                    fitted,
                    ..TraceStep::default()
                });
            }
            "replied" | "failed" => {
                let mut recent = turn.steps.iter_mut().rev().take(RECENT);
                let own = recent.find(|it| it.asked["step"] == event["step"]);
                match own {
                    Some(step) => step.replied = Some(event),
                    None => turn.events.push(event),
                }
            }
            "called" => {
                let call = Call {
                    at: at(&event),
                    id: text(&event, "id"),
                    tool: text(&event, "tool"),
                    input: event["input"].clone(),
                    action: text(&event, "action"),
                    returned: None,
                };
                match turn.steps.last_mut() {
                    Some(step) => step.calls.push(call),
                    // An interrupted session resumes with calls before the model is asked.
                    None => {
                        let (at, calls) = (call.at, vec![call]);
                        turn.steps.push(TraceStep { at, calls, ..TraceStep::default() });
                    }
                }
            }
            "returned" => {
                let recent = turn.steps.iter_mut().rev().take(RECENT);
                let mut calls = recent.flat_map(|it| it.calls.iter_mut().rev().take(RECENT));
                let own = calls.find(|it| event["id"] == *it.id && it.returned.is_none());
                match own {
                    Some(call) => call.returned = Some(event),
                    None => turn.events.push(event),
                }
            }
            "ended" => turn.ended = Some(event),
            _ => turn.events.push(event),
        }
    }

    /// Returns the index of the turn that an event belongs to.
    fn turn(&mut self, kind: &str, event: &Json) -> usize {
        let (session, turn) = (text(event, "session"), event["turn"].as_u64().unwrap_or_default());
        match self.places.get(&(session.clone(), turn)) {
            Some(known) if kind != "began" => *known,
            _ => {
                let (at, place) = (at(event), self.traced.turns.len());
                self.places.insert((session.clone(), turn), place);
                self.traced.turns.push(Turn { session, turn, at, until: at, ..Turn::default() });
                place
            }
        }
    }

    fn record_unreadable(&mut self, line: usize) {
        if self.traced.unreadable.len() < MAX_UNREADABLE {
            self.traced.unreadable.push(line);
        }
    }

    fn finish(self) -> Result<RecordedTrace, TraceError> {
        match (self.events, self.is_session) {
            (0, true) => Err(TraceError::Session),
            (0, false) => Err(TraceError::Foreign),
            _ => Ok(self.traced),
        }
    }
}

/// The messages of the last prompt, and their token counts. Only what changes from step to step is
/// counted again.
#[derive(Default)]
struct PromptTotals {
    ids: Vec<String>,
    totals: BTreeMap<String, usize>,
}

/// The token counts of messages and tools, each by the sources of its parts.
#[derive(Default)]
struct Costs(BTreeMap<String, Vec<(String, usize)>>);

impl Costs {
    /// Counts the parts of a prompt that were not counted before.
    fn count(&mut self, asked: &Json, said: &BTreeMap<String, Json>) {
        for id in ids(asked, "messages").chain(ids(asked, "tools")) {
            if let Some(said) = said.get(id).filter(|_| !self.0.contains_key(id)) {
                self.0.insert(id.to_owned(), costs(said));
            }
        }
    }

    fn of(&self, id: &str) -> &[(String, usize)] {
        self.0.get(id).map(Vec::as_slice).unwrap_or_default()
    }
}

impl PromptTotals {
    fn take(&mut self, asked: &Json, costs: &Costs) {
        let same =
            asked["same"].as_u64().and_then(|it| usize::try_from(it).ok()).unwrap_or_default();
        for id in self.ids.split_off(same.min(self.ids.len())) {
            for (name, tokens) in costs.of(&id) {
                let total = self.totals.entry(name.clone()).or_default();
                *total = total.saturating_sub(*tokens);
            }
        }
        for id in ids(asked, "messages") {
            for (name, tokens) in costs.of(id) {
                *self.totals.entry(name.clone()).or_default() += tokens;
            }
            self.ids.push(id.to_owned());
        }
    }

    fn budget(&self, asked: &Json, costs: &Costs, window: Option<&u64>) -> Budget {
        let tools = ids(asked, "tools").flat_map(|it| costs.of(it)).map(|it| it.1).sum();
        let parts = self.totals.iter().map(|(name, tokens)| (name.clone(), *tokens));
        let mut parts: Vec<(String, usize)> = parts.chain([("tools".to_owned(), tools)]).collect();
        parts.retain(|it| it.1 > 0);
        parts.sort_by_key(|it| rank(&it.0));
        Budget { window: window.copied(), parts }
    }
}

/// Returns the order of the parts of a prompt; the skills come third.
fn rank(part: &str) -> u8 {
    match part {
        "system" => 0,
        "catalog" => 1,
        "context" => 3,
        "history" => 4,
        "tools" => 5,
        _ => 2,
    }
}

fn ids<'a>(asked: &'a Json, key: &str) -> impl Iterator<Item = &'a str> {
    asked[key].as_array().into_iter().flatten().filter_map(Json::as_str)
}

/// Returns the token counts of a message or a tool, by source.
fn costs(said: &Json) -> Vec<(String, usize)> {
    let Some(parts) = said["parts"].as_array() else {
        return vec![("tools".to_owned(), count(&said.to_string()))];
    };
    let calls = said.get("calls").map(|it| ("history".to_owned(), count(&it.to_string())));
    parts
        .iter()
        .map(|part: &Json| {
            let from = part["from"].as_str().unwrap_or_default();
            let name = match from.split_once(':') {
                Some(("skill", _)) => from,
                Some(("tool", _)) => "history",
                Some(_) => "context",
                None if ["system", "catalog", "context"].contains(&from) => from,
                None => "history",
            };
            (name.to_owned(), count(part["text"].as_str().unwrap_or_default()))
        })
        .chain(calls)
        .collect()
}

/// Returns the number of tokens of a text.
fn count(text: &str) -> usize {
    // The beginning of a very long text is representative of all of it.
    let head = &text[..text.floor_char_boundary(MAX_COUNTED)];
    Tokenizer::default().count(head) * (text.len() / head.len().max(1)).max(1)
}

pub(super) fn at(event: &Json) -> u64 {
    event["at"].as_u64().unwrap_or_default()
}

/// Returns a field as text; any other value as JSON.
pub(super) fn text(event: &Json, key: &str) -> String {
    match event.get(key).unwrap_or(&json!("")) {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
