//! What was said in a conversation, kept so that nothing of it is lost or done twice.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prowess::{Call, Marker, Message, Role};
use prowess_runtime::{Journal, fresh_marker};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use crate::model::TokenUsage;

/// What was said in a conversation. Clones are the same conversation.
///
/// With a journal every step is written before the next one is taken: what the model says before a
/// tool is called, that a call begins before it does, and its result before the model hears of it.
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
    /// The calls that began and whose result is not known.
    begun: BTreeSet<String>,
    /// The skills that the model took up, each behind the call that told the instructions last.
    taken: Vec<(String, String)>,
    /// How often somebody asked for something.
    turns: usize,
    spent: BTreeMap<String, TokenUsage>,
    /// What stands around the texts of skills, once there was one.
    marker: Option<Marker>,
    journal: Option<Journal>,
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
    /// A call told the instructions of a skill.
    Taken { call: String, skill: String },
    /// Older messages were replaced: these are all that there are.
    Compacted { messages: Vec<Message> },
    /// The code of the markers around the texts of skills.
    Marker { code: String },
    /// A reply of a model took this.
    Spent { model: String, spent: TokenUsage },
    /// Something that a later program writes and an older one can do without.
    #[serde(other)]
    Unknown,
}

impl Line {
    /// Whether it would tell a model what only a host tells it, whoever wrote the journal.
    fn is_of_the_system(&self) -> bool {
        match self {
            Self::Message { message } => message.role == Role::System,
            Self::Compacted { messages } => messages.iter().any(|it| it.role == Role::System),
            _ => false,
        }
    }
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
    /// A line of a journal would tell the model what only a host tells it.
    #[error("line {line} of the session is a system message, which a session cannot contain")]
    System {
        /// Which one, from 1.
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
    /// Begins a conversation that is kept in memory.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Takes up the conversation of a journal, or begins one in it.
    pub fn open(id: &str, mut journal: Journal) -> Result<Self, SessionError> {
        let (own_id, state) = State::read(&journal.take_lines())?;
        let session = Self::new(own_id.as_deref().unwrap_or(id));
        *session.state() = State { journal: Some(journal), ..state };
        if own_id.is_none() {
            session.record(Line::Session { version: VERSION, id: id.to_owned() })?;
        }
        Ok(session)
    }

    /// Takes up the conversation that the lines of a journal tell, and leaves the journal as it is:
    /// what is said from now on is kept in memory.
    pub fn replay(id: &str, lines: &[String]) -> Result<Self, SessionError> {
        let (own_id, state) = State::read(lines)?;
        let session = Self::new(own_id.as_deref().unwrap_or(id));
        *session.state() = state;
        Ok(session)
    }

    /// What tells it from others.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What was said so far.
    pub fn messages(&self) -> Vec<Message> {
        self.history().to_vec()
    }

    /// The same as it is now, shared.
    pub fn history(&self) -> Arc<Vec<Message>> {
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

    /// Whether there is a call of this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.state().messages.iter().flat_map(|it| &it.calls).any(|it| it.id == id)
    }

    /// Adds what was said.
    pub fn push(&self, message: Message) -> Result<(), SessionError> {
        self.record(Line::Message { message })
    }

    /// Notes that a call begins.
    pub fn begin(&self, call: &Call) -> Result<(), SessionError> {
        self.record(Line::Begun { call: call.id.clone() })
    }

    /// Notes that a call told the model the instructions of a skill.
    pub fn activate(&self, call: &str, skill: &str) -> Result<(), SessionError> {
        self.record(Line::Taken { call: call.to_owned(), skill: skill.to_owned() })
    }

    /// The skills that the model took up, each behind the call that told the instructions last; also
    /// when the call is no longer among the messages.
    pub fn taken(&self) -> Vec<(String, String)> {
        self.state().taken.clone()
    }

    /// Has these messages stand for all that was said.
    pub fn compact(&self, messages: Vec<Message>) -> Result<(), SessionError> {
        self.record(Line::Compacted { messages })
    }

    /// The state of a middleware for this conversation, in memory; the first use makes it.
    pub fn keep<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().find_map(|it| it.clone().downcast().ok());
        known.unwrap_or_else(|| {
            let made = Arc::new(make());
            kept.push(made.clone());
            made
        })
    }

    /// The marker between which the model reads what skills say; the same for as long as the
    /// conversation goes on, also when it is taken up again.
    pub fn marker(&self) -> Marker {
        let mut state = self.state();
        if let Some(marker) = &state.marker {
            return marker.clone();
        }
        let marker = fresh_marker();
        // Where it cannot be written, the next message cannot either, which is told then.
        let _ = state.write(&Line::Marker { code: marker.code().to_owned() });
        state.marker = Some(marker.clone());
        marker
    }

    /// The marker, if there has been a use for one.
    pub(crate) fn known_marker(&self) -> Option<Marker> {
        self.state().marker.clone()
    }

    /// Takes this marker, unless the conversation has one already.
    #[must_use]
    pub fn with_marker(self, marker: Marker) -> Self {
        self.state().marker.get_or_insert(marker);
        self
    }

    /// How often somebody asked for something.
    pub fn turns(&self) -> usize {
        self.state().turns
    }

    /// Waits until no other turn of the conversation is being taken, and holds off others.
    pub(crate) async fn begin_turn(&self) -> OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    /// What the replies of each model took, by the model's name.
    pub fn spent_on(&self) -> BTreeMap<String, TokenUsage> {
        self.state().spent.clone()
    }

    /// Counts what a reply of a model took.
    pub(crate) fn spend(&self, model: &str, spent: TokenUsage) -> Result<(), SessionError> {
        if spent == TokenUsage::default() {
            return Ok(());
        }
        let line = Line::Spent { model: model.to_owned(), spent };
        let mut state = self.state();
        // It is spent, whether that can be written or not.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What lines tell, and how the session is called in them.
    fn read(lines: &[String]) -> Result<(Option<String>, Self), SessionError> {
        let (mut own_id, mut state) = (None, Self::default());
        for (number, text) in lines.iter().enumerate() {
            let failed = |source| SessionError::Line { line: number + 1, source };
            match serde_json::from_str(text).map_err(failed)? {
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
                let at = self.place(&message);
                Arc::make_mut(&mut self.messages).insert(at, message);
            }
            Line::Begun { call } => drop(self.begun.insert(call)),
            Line::Taken { call, skill } => {
                self.taken.retain(|it| it.1 != skill);
                self.taken.push((call, skill));
            }
            Line::Compacted { messages } => self.messages = messages.into(),
            // The first one stays: it is in what was said since.
            Line::Marker { code } => self.marker = self.marker.take().or(Marker::new(&code)),
            Line::Spent { model, spent } => *self.spent.entry(model).or_default() += spent,
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
