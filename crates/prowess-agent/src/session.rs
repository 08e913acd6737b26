//! What was said in a conversation, kept so that nothing of it is lost or done twice.

use std::{
    any::Any,
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prowess::{Call, Message, Role};
use prowess_runtime::Journal;
use serde::{Deserialize, Serialize};

/// What was said in a conversation. Clones are the same conversation.
///
/// With a journal every step is written before the next one is taken: what the model says before a
/// tool is called, that a call begins before it does, and its result before the model hears of it.
#[derive(Debug, Clone, Default)]
pub struct Session {
    id: Arc<str>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<Message>,
    /// The calls that began and whose result is not known.
    begun: BTreeSet<String>,
    turns: usize,
    journal: Option<Journal>,
    kept: Vec<Arc<dyn Any + Send + Sync>>,
}

/// One line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    /// The first one.
    Session { version: u32, id: String },
    /// Something was said.
    Message { message: Message },
    /// A call begins.
    Begun { call: String },
    /// Older messages were replaced: these are all that there are.
    Compacted { messages: Vec<Message> },
}

/// The version of the journal that is written.
const VERSION: u32 = 1;

/// A session cannot be kept or taken up again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// What was said cannot be written.
    #[error("cannot write the session")]
    Write(#[source] io::Error),
    /// A line of a journal cannot be read.
    #[error("line {line} of the session cannot be read")]
    Line {
        /// Which one, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A journal is of a later version.
    #[error("the session is of version {version}, and only {VERSION} is known")]
    Version {
        /// Its version.
        version: u32,
    },
}

impl Session {
    /// Begins a conversation that is kept in memory.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), state: Arc::default() }
    }

    /// Takes up the conversation of a journal, or begins one in it.
    pub fn open(id: &str, mut journal: Journal) -> Result<Self, SessionError> {
        let lines = journal.take_lines();
        let session = Self::new(id);
        let mut own_id = None;
        let mut state = State::default();
        for (number, text) in lines.iter().enumerate() {
            let failed = |source| SessionError::Line { line: number + 1, source };
            match serde_json::from_str(text).map_err(failed)? {
                Line::Session { version, .. } if version > VERSION => {
                    return Err(SessionError::Version { version });
                }
                Line::Session { id, .. } => own_id = Some(id),
                line => state.take(line),
            }
        }
        state.turns = state.messages.iter().filter(|it| it.role == Role::User).count();
        state.journal = Some(journal);
        let session = match own_id {
            Some(id) => Self { id: id.into(), ..session },
            None => {
                state.write(&Line::Session { version: VERSION, id: id.to_owned() })?;
                session
            }
        };
        *session.state() = state;
        Ok(session)
    }

    /// What tells it from others.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What was said so far.
    pub fn messages(&self) -> Vec<Message> {
        self.state().messages.clone()
    }

    /// The calls of the last reply that have no result, and whether each had begun.
    pub fn open_calls(&self) -> Vec<(Call, bool)> {
        let state = self.state();
        let Some(at) = state.messages.iter().rposition(|it| it.role == Role::Assistant) else {
            return Vec::new();
        };
        let answered = |call: &&Call| {
            state.messages[at..].iter().any(|it| it.call_id.as_deref() == Some(&call.id))
        };
        let open = state.messages[at].calls.iter().filter(|it| !answered(it));
        open.map(|it| (it.clone(), state.begun.contains(&it.id))).collect()
    }

    /// Adds what was said.
    pub fn push(&self, message: Message) -> Result<(), SessionError> {
        self.record(Line::Message { message })
    }

    /// Notes that a call begins.
    pub fn begin(&self, call: &Call) -> Result<(), SessionError> {
        self.record(Line::Begun { call: call.id.clone() })
    }

    /// Has these messages stand for all that was said.
    pub fn compact(&self, messages: Vec<Message>) -> Result<(), SessionError> {
        self.record(Line::Compacted { messages })
    }

    /// Keeps something for as long as anybody holds the conversation.
    pub fn keep(&self, thing: Arc<dyn Any + Send + Sync>) {
        self.state().kept.push(thing);
    }

    /// What tells it from all others that somebody holds now, also from those of the same id.
    pub(crate) fn place(&self) -> usize {
        Arc::as_ptr(&self.state).addr()
    }

    pub(crate) fn begin_turn(&self) -> usize {
        let mut state = self.state();
        state.turns += 1;
        state.turns
    }

    fn record(&self, line: Line) -> Result<(), SessionError> {
        let mut state = self.state();
        state.write(&line)?;
        state.take(line);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self, line: &Line) -> Result<(), SessionError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let text = serde_json::to_string(line).map_err(io::Error::other);
        text.and_then(|it| journal.append(&it)).map_err(SessionError::Write)
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Session { .. } => {}
            Line::Message { message } => {
                if let Some(id) = &message.call_id {
                    self.begun.remove(id);
                }
                let at = self.place(&message);
                self.messages.insert(at, message);
            }
            Line::Begun { call } => drop(self.begun.insert(call)),
            Line::Compacted { messages } => self.messages = messages,
        }
    }

    /// Where a message belongs: results stand in the order of their calls, whichever came first.
    fn place(&self, message: &Message) -> usize {
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
