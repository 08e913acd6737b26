//! From the lines of a trace to turns, steps and calls.

use std::collections::BTreeMap;

use prowess::Tokenizer;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::builtin::TRACE_VERSION;

/// A trace that was read: what happened, by turns.
#[derive(Debug, Default, Serialize)]
pub struct RecordedTrace {
    pub(super) turns: Vec<Turn>,
    /// The messages and tools that the model was told, by digest.
    pub(super) said: BTreeMap<String, Json>,
    /// Events that nobody here knows.
    pub(super) other: Vec<Json>,
    /// The lines that cannot be read, from 1.
    pub(super) unreadable: Vec<usize>,
    /// Whether the last line is not whole, as after a crash.
    pub(super) is_torn: bool,
    /// How many events there are beyond those that are taken.
    pub(super) left_out: usize,
}

/// From what a person asked to the answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct Turn {
    pub(super) session: String,
    pub(super) turn: u64,
    pub(super) at: u64,
    /// When something of it happened last.
    pub(super) until: u64,
    pub(super) prompt: String,
    /// The event of its end; none while it goes on, or went on when the trace stopped.
    pub(super) ended: Option<Json>,
    pub(super) steps: Vec<TraceStep>,
    /// All that happened beside asking and calling.
    pub(super) events: Vec<Json>,
}

/// The model was asked once.
#[derive(Debug, Default, Serialize)]
pub(super) struct TraceStep {
    pub(super) at: u64,
    pub(super) asked: Json,
    pub(super) budget: Budget,
    /// How the prompt was made to fit.
    pub(super) fitted: Option<Json>,
    /// The event of the reply, or why there is none.
    pub(super) replied: Option<Json>,
    pub(super) calls: Vec<Call>,
}

/// The tokens of a prompt by where they came from, by estimate.
#[derive(Debug, Default, Serialize)]
pub(super) struct Budget {
    pub(super) window: Option<u64>,
    /// `system`, `catalog`, `skill:<name>`, `context`, `history`, `tools`, in this order.
    pub(super) parts: Vec<(String, usize)>,
}

/// A tool was called.
#[derive(Debug, Default, Serialize)]
pub(super) struct Call {
    pub(super) at: u64,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: Json,
    /// The event of its result.
    pub(super) returned: Option<Json>,
}

/// A file is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// No line of it is an event.
    #[error("it is not a trace: no line is an event")]
    Foreign,
    /// It is what a conversation is kept in.
    #[error("it is a session, not a trace")]
    Session,
    /// It was written by a later version.
    #[error("the trace has version {version}, but only {TRACE_VERSION} is supported")]
    Version {
        /// Its version.
        version: u64,
    },
}

/// The most events that are taken.
const MAX_EVENTS: usize = 200_000;
/// The most lines that are listed as unreadable.
const MAX_UNREADABLE: usize = 100;
/// How far back what an event belongs to is looked for.
const RECENT: usize = 256;
/// How many bytes of a text are counted.
const MAX_COUNTED: usize = 256 * 1024;
/// What happens beside asking and calling.
const BESIDE: &[&str] = &[
    "discovered",
    "matched",
    "disclosed",
    "retrieved",
    "summarised",
    "compacted",
    "retried",
    "approval",
    "server",
    "spending",
    "warned",
];

impl RecordedTrace {
    /// Reads the lines of a trace. Lines that cannot be read are counted and left out.
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
                _ => reading.unreadable(at + 1),
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
    /// Where the turns are, by session and number.
    places: BTreeMap<(String, u64), usize>,
    /// How the next prompt was made to fit, by turn.
    fitted: BTreeMap<usize, Json>,
    /// What the model was told last, by turn.
    told: BTreeMap<usize, PromptTotals>,
    costs: Costs,
    /// How many tokens the window of a session holds, where that was said.
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
                    Some((id, said)) => drop(self.traced.said.insert(id, self.filled(said))),
                    None => {}
                }
            }
            kind => self.happened(kind, Json::Object(event)),
        }
        Ok(())
    }

    /// A message with the long texts that it refers to.
    fn filled(&self, mut said: Json) -> Json {
        let parts = said.get_mut("parts").and_then(Json::as_array_mut);
        for part in parts.into_iter().flatten() {
            if let Some(text) = part["said"].as_str().and_then(|it| self.texts.get(it)) {
                *part = json!({"from": part["from"], "text": text});
            }
        }
        said
    }

    /// Puts an event where it belongs.
    fn happened(&mut self, kind: &str, event: Json) {
        let is_known = BESIDE.contains(&kind);
        let has_place = matches!(
            kind,
            "began" | "fitted" | "asked" | "replied" | "failed" | "called" | "returned" | "ended"
        );
        if !is_known && !has_place {
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
                    returned: None,
                };
                match turn.steps.last_mut() {
                    Some(step) => step.calls.push(call),
                    // A session that was broken off goes on with calls before the model is asked.
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

    /// The turn that an event belongs to, by its place.
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

    fn unreadable(&mut self, line: usize) {
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

/// The messages that a model was told last, and what they take. Only what changes from step to step is
/// counted anew.
#[derive(Default)]
struct PromptTotals {
    ids: Vec<String>,
    totals: BTreeMap<String, usize>,
}

/// What messages and tools take, each by where its parts came from.
#[derive(Default)]
struct Costs(BTreeMap<String, Vec<(String, usize)>>);

impl Costs {
    /// Counts what a step tells the model and was not counted before.
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
        let rank = |name: &str| match name {
            "system" => 0,
            "catalog" => 1,
            "context" => 3,
            "history" => 4,
            "tools" => 5,
            _ => 2,
        };
        parts.sort_by_key(|it| rank(&it.0));
        Budget { window: window.copied(), parts }
    }
}

fn ids<'a>(asked: &'a Json, key: &str) -> impl Iterator<Item = &'a str> {
    asked[key].as_array().into_iter().flatten().filter_map(Json::as_str)
}

/// What a message or a tool takes, by where it came from.
fn costs(said: &Json) -> Vec<(String, usize)> {
    let count = |text: &str| {
        // The beginning of a very long text stands for all of it.
        let head = &text[..text.floor_char_boundary(MAX_COUNTED)];
        Tokenizer::default().count(head) * (text.len() / head.len().max(1)).max(1)
    };
    let Some(parts) = said["parts"].as_array() else {
        return vec![("tools".to_owned(), count(&said.to_string()))];
    };
    let part = |part: &Json| {
        let from = part["from"].as_str().unwrap_or_default();
        let name = match from.split_once(':') {
            Some(("skill", _)) => from,
            Some(("tool", _)) => "history",
            Some(_) => "context",
            None if ["system", "catalog", "context"].contains(&from) => from,
            None => "history",
        };
        (name.to_owned(), count(part["text"].as_str().unwrap_or_default()))
    };
    let calls = said.get("calls").map(|it| ("history".to_owned(), count(&it.to_string())));
    parts.iter().map(part).chain(calls).collect()
}

pub(super) fn at(event: &Json) -> u64 {
    event["at"].as_u64().unwrap_or_default()
}

/// A field as text; whatever else it is, as JSON.
pub(super) fn text(event: &Json, key: &str) -> String {
    match event.get(key).unwrap_or(&json!("")) {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
