//! A session: a conversation, saved so that nothing is lost or executed twice.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use prowess::{Call, Marker, Message, Role, lock};
use prowess_runtime::{files::Journal, text::fresh_marker};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use crate::model::TokenUsage;

/// A conversation. Clones share the same state.
///
/// With a journal every step is written before the next one is taken: a reply before its tools are
/// called, the start of a call before it runs, and its result before the model receives it.
#[derive(Debug, Clone, Default)]
pub struct Session {
    id: Arc<str>,
    state: Arc<Mutex<State>>,
    kept: Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct State {
    messages: Arc<Vec<Message>>,
    /// The calls that began and have no result yet.
    begun: BTreeSet<String>,
    /// The skills that the model activated, each after the id of the call that last disclosed the
    /// instructions.
    taken: Vec<(String, String)>,
    /// The number of requests.
    turns: usize,
    spent: BTreeMap<String, TokenUsage>,
    /// The marker around texts of skills, once one was needed.
    marker: Option<Marker>,
    journal: Option<Journal>,
}

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    /// The first line.
    Session { version: u32, id: String },
    /// A message was added.
    Message { message: Message },
    /// A call begins.
    Begun { call: String },
    /// A call disclosed the instructions of a skill.
    Taken { call: String, skill: String },
    /// Older messages were replaced: these are all messages now.
    Compacted { messages: Vec<Message> },
    /// The code of the markers around the texts of skills.
    Marker { code: String },
    /// The token usage of a reply.
    Spent { model: String, spent: TokenUsage },
    /// A kind of line from a later version, which older versions can ignore.
    #[serde(other)]
    Unknown,
}

impl Line {
    /// Whether it contains a system message, which only the host may provide, not the journal.
    fn is_of_the_system(&self) -> bool {
        match self {
            Self::Message { message } => message.role == Role::System,
            Self::Compacted { messages } => messages.iter().any(|it| it.role == Role::System),
            _ => false,
        }
    }
}

/// The version of the journals that are written.
const VERSION: u32 = 1;

/// A session cannot be saved or resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The journal cannot be written.
    #[error("cannot write the session")]
    Write(#[source] io::Error),
    /// A line of a journal cannot be parsed.
    #[error("line {line} of the session cannot be read")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// A line of a journal would tell the model what only a host tells it.
    #[error("line {line} of the session is a system message, which a session cannot contain")]
    System {
        /// The line number, from 1.
        line: usize,
    },
    /// A journal is of a later version.
    #[error("the session has version {version}, but only {VERSION} is supported")]
    Version {
        /// Its version.
        version: u32,
    },
}

impl Session {
    /// Creates a session in memory.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Resumes the session of a journal, or creates one in it.
    pub fn open(id: &str, mut journal: Journal) -> Result<Self, SessionError> {
        let (own_id, state) = State::read(&journal.take_lines())?;
        let session = Self::new(own_id.as_deref().unwrap_or(id));
        *session.state() = State { journal: Some(journal), ..state };
        if own_id.is_none() {
            session.record(Line::Session { version: VERSION, id: id.to_owned() })?;
        }
        Ok(session)
    }

    /// Resumes the session from the lines of a journal, and leaves the journal unchanged: new
    /// messages are kept in memory.
    pub fn replay(id: &str, lines: &[String]) -> Result<Self, SessionError> {
        let (own_id, state) = State::read(lines)?;
        let session = Self::new(own_id.as_deref().unwrap_or(id));
        *session.state() = state;
        Ok(session)
    }

    /// Returns its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the messages so far.
    pub fn messages(&self) -> Vec<Message> {
        self.history().to_vec()
    }

    /// Returns the current messages as a shared snapshot.
    pub fn history(&self) -> Arc<Vec<Message>> {
        self.state().messages.clone()
    }

    /// Returns the calls of the last reply that have no result, and whether each had begun.
    pub fn open_calls(&self) -> Vec<(Call, bool)> {
        let state = self.state();
        let Some(at) = state.messages.iter().rposition(|it| it.role == Role::Assistant) else {
            return Vec::new();
        };
        let reply = &state.messages[at..];
        let answered: Vec<&String> = reply.iter().filter_map(|it| it.call_id.as_ref()).collect();
        let open = reply[0].calls.iter().filter(|it| !answered.contains(&&it.id));
        open.map(|it| (it.clone(), state.begun.contains(&it.id))).collect()
    }

    /// Whether there is a call with this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.state().messages.iter().flat_map(|it| &it.calls).any(|it| it.id == id)
    }

    /// Adds a message.
    pub fn push(&self, message: Message) -> Result<(), SessionError> {
        self.record(Line::Message { message })
    }

    /// Records that a call begins.
    pub fn begin(&self, call: &Call) -> Result<(), SessionError> {
        self.record(Line::Begun { call: call.id.clone() })
    }

    /// Records that a call disclosed the instructions of a skill.
    pub fn activate(&self, call: &str, skill: &str) -> Result<(), SessionError> {
        self.record(Line::Taken { call: call.to_owned(), skill: skill.to_owned() })
    }

    /// Returns the skills that the model activated, each after the id of the call that last
    /// disclosed the instructions; also if the call is no longer among the messages.
    pub fn activated_skills(&self) -> Vec<(String, String)> {
        self.state().taken.clone()
    }

    /// Replaces all messages with these.
    pub fn compact(&self, messages: Vec<Message>) -> Result<(), SessionError> {
        self.record(Line::Compacted { messages })
    }

    /// Returns the state of a middleware for this session, in memory; the first use creates it.
    pub fn keep<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = lock(&self.kept);
        let known = kept.iter().find_map(|it| it.clone().downcast().ok());
        known.unwrap_or_else(|| {
            let made = Arc::new(make());
            kept.push(made.clone());
            made
        })
    }

    /// Returns the marker around texts of skills; it stays the same for the whole session, also
    /// after it is resumed.
    pub fn marker(&self) -> Marker {
        let mut state = self.state();
        if let Some(marker) = &state.marker {
            return marker.clone();
        }
        let marker = fresh_marker();
        // If this write fails, that of the next message fails too and reports the error.
        let _ = state.write(&Line::Marker { code: marker.code().to_owned() });
        state.marker = Some(marker.clone());
        marker
    }

    /// Returns the marker, if one was needed so far.
    pub(crate) fn known_marker(&self) -> Option<Marker> {
        self.state().marker.clone()
    }

    /// Sets the marker, unless the session has one already.
    #[must_use]
    pub fn with_marker(self, marker: Marker) -> Self {
        self.state().marker.get_or_insert(marker);
        self
    }

    /// Returns the number of requests.
    pub fn turns(&self) -> usize {
        self.state().turns
    }

    /// Waits until no other turn of the session is running, and blocks others.
    pub(crate) async fn begin_turn(&self) -> OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    /// Returns the token usage of each model, by model name.
    pub fn spent_on(&self) -> BTreeMap<String, TokenUsage> {
        self.state().spent.clone()
    }

    /// Adds the token usage of a reply.
    pub(crate) fn spend(&self, model: &str, spent: TokenUsage) -> Result<(), SessionError> {
        if spent == TokenUsage::default() {
            return Ok(());
        }
        let line = Line::Spent { model: model.to_owned(), spent };
        let mut state = self.state();
        // The tokens are spent, whether that can be written or not.
        let written = state.write(&line);
        state.take(line);
        written
    }

    fn record(&self, line: Line) -> Result<(), SessionError> {
        let mut state = self.state();
        state.write(&line)?;
        state.take(line);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Parses the lines of a journal: returns the session id in them, and the state.
    fn read(lines: &[String]) -> Result<(Option<String>, Self), SessionError> {
        let (mut own_id, mut state) = (None, Self::default());
        for (number, text) in lines.iter().enumerate() {
            match serde_json::from_str(text)
                .map_err(|source| SessionError::Line { line: number + 1, source })?
            {
                Line::Session { version, .. } if version > VERSION => {
                    return Err(SessionError::Version { version });
                }
                Line::Session { id, .. } => own_id = Some(id),
                line if line.is_of_the_system() => {
                    return Err(SessionError::System { line: number + 1 });
                }
                line => state.take(line),
            }
        }
        Ok((own_id, state))
    }

    fn write(&mut self, line: &Line) -> Result<(), SessionError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let text = serde_json::to_string(line).map_err(io::Error::other);
        text.and_then(|it| journal.append(&it)).map_err(SessionError::Write)
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Session { .. } | Line::Unknown => {}
            Line::Message { message } => {
                self.turns += usize::from(message.role == Role::User);
                if let Some(id) = &message.call_id {
                    self.begun.remove(id);
                }
                let at = self.index_for(&message);
                Arc::make_mut(&mut self.messages).insert(at, message);
            }
            Line::Begun { call } => drop(self.begun.insert(call)),
            Line::Taken { call, skill } => {
                self.taken.retain(|it| it.1 != skill);
                self.taken.push((call, skill));
            }
            Line::Compacted { messages } => self.messages = messages.into(),
            // The first marker stays: later messages contain it.
            Line::Marker { code } => self.marker = self.marker.take().or(Marker::new(&code)),
            Line::Spent { model, spent } => *self.spent.entry(model).or_default() += spent,
        }
    }

    /// Returns the index for a message: results are in the order of their calls, in whichever order
    /// they arrive.
    fn index_for(&self, message: &Message) -> usize {
        let end = self.messages.len();
        let Some(at) = self.messages.iter().rposition(|it| !it.calls.is_empty()) else {
            return end;
        };
        let calls = &self.messages[at].calls;
        let rank =
            |it: &Message| calls.iter().position(|call| Some(&call.id) == it.call_id.as_ref());
        let Some(own) = rank(message) else { return end };
        let results = self.messages[at + 1..].iter().take_while(|it| it.role == Role::Tool);
        at + 1 + results.take_while(|it| rank(it).is_some_and(|other| other < own)).count()
    }
}
