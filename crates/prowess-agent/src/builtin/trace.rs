//! A trace: every event as a line of JSON.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use prowess::{Message, lock};
use prowess_runtime::{
    files::Journal,
    secret::{KnownSecrets, mask, mask_json},
};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::{
    event::{Event, EventKind, PromptSource},
    middleware::{Middleware, request::Turn},
    model::{ChatRequest, ToolDefinition},
};

/// Writes every event as a line of JSON, for [`RecordedTrace`](crate::RecordedTrace) to read.
///
/// Anything that looks like a secret is masked. A message, tool or long text that is sent to the
/// model repeatedly is written once, as `said`, and referred to by its digest; of the messages of a
/// step, those in common with the previous step are only counted, as `same`. A line that cannot be
/// written causes one warning, and does not fail the turn.
pub struct Trace {
    sink: Box<Sink>,
    state: Mutex<State>,
    has_failed: AtomicBool,
}

#[derive(Default)]
struct State {
    has_begun: bool,
    /// The digests already written.
    said: BTreeSet<Id>,
    /// The digests of the last step's messages of each running turn, by session and number.
    told: BTreeMap<(String, usize), Vec<Id>>,
}

/// The last request of a session, so that the digest of a repeated message is computed once.
#[derive(Default)]
struct Last(Mutex<RequestDigests>);

#[derive(Default)]
struct RequestDigests {
    ask: Arc<ChatRequest>,
    /// The digest of each message.
    ids: Vec<Id>,
    /// The sources of their parts.
    sources: Vec<PromptSource>,
}

/// A part of a message.
struct MessagePiece<'m> {
    from: &'m str,
    text: &'m str,
    /// The digest of a long text.
    id: Option<Id>,
}

type Sink = dyn Fn(&str) -> io::Result<()> + Send + Sync;
type Id = [u8; 16];

/// The version of the lines that are written.
pub(crate) const VERSION: u32 = 2;
/// The maximum number of digests remembered; beyond that, repeated texts are written again.
const MAX_SAID: usize = 1_000_000;
/// The size in bytes from which a text is written separately, because other messages often contain
/// it too.
const LONG: usize = 4096;

impl Trace {
    /// Passes every line to a function, which should be fast.
    pub fn new(sink: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { sink: Box::new(sink), state: Mutex::default(), has_failed: AtomicBool::new(false) }
    }

    /// Appends every line to a journal, without waiting for the disk.
    pub fn journal(journal: Journal) -> Self {
        let mut journal = journal.unsynced();
        // The lines of earlier runs are not needed.
        drop(journal.take_lines());
        let journal = Mutex::new(journal);
        Self::new(move |line| lock(&journal).append(line))
    }

    /// Masks these secrets too, anywhere.
    #[must_use]
    pub fn without(self, secrets: KnownSecrets) -> Self {
        let sink = self.sink;
        Self { sink: Box::new(move |line: &str| sink(&secrets.mask_line(line))), ..self }
    }

    fn write(&self, turn: &Turn, event: &Event<'_>) -> io::Result<()> {
        // One event at a time, so that a text is written before it is referred to.
        let mut state = lock(&self.state);
        if !state.has_begun {
            self.line(json!({"event": "trace", "version": VERSION, "at": event.at}))?;
            state.has_begun = true;
        }
        match event.what {
            EventKind::Asked { .. } => self.write_request(turn, event, &mut state),
            EventKind::Ended { .. } => {
                state.told.remove(&turn_of(event));
                self.line(serde_json::to_value(event)?)
            }
            _ => self.line(serde_json::to_value(event)?),
        }
    }

    fn write_request(&self, turn: &Turn, event: &Event<'_>, state: &mut State) -> io::Result<()> {
        let EventKind::Asked { step, model, provider, ask, sources } = event.what else {
            return Ok(());
        };
        if state.said.len() > MAX_SAID {
            state.said.clear();
        }
        let State { said, told, .. } = state;
        let last = turn.session.keep(Last::default);
        let mut last = lock(&last.0);
        let mut ids = Vec::with_capacity(ask.messages.len());
        let before =
            by_message(&last.sources, last.ids.len()).zip(&last.ids).zip(&last.ask.messages);
        let mut before = before.map(Some).chain(std::iter::repeat(None));
        for (own, message) in by_message(sources, ask.messages.len()).zip(&ask.messages) {
            let known = before.next().flatten();
            ids.push(match known {
                Some(((was, id), told)) if *was == *own && told == message && said.contains(id) => {
                    *id
                }
                _ => self.write_message(message, &parts(message, own), said)?,
            });
        }
        drop(before);
        *last = RequestDigests { ask: ask.clone(), ids: ids.clone(), sources: sources.clone() };
        drop(last);
        let messages = ids;
        let tools = ask
            .tools
            .iter()
            .map(|it: &ToolDefinition| {
                self.write_once(tool_id(it), said, || mask_value(json!({"tool": it})))
            })
            .collect::<io::Result<Vec<Id>>>()?;
        let told = told.entry(turn_of(event)).or_default();
        let same = told.iter().zip(&messages).take_while(|(old, new)| old == new).count();
        self.line(json!({
            "at": event.at, "session": event.session, "turn": event.turn, "step": step,
            "event": "asked", "model": model, "provider": provider, "same": same,
            "messages": messages[same..].iter().map(hex).collect::<Vec<_>>(),
            "tools": tools.iter().map(hex).collect::<Vec<_>>(),
            "max_output": ask.max_output, "temperature": ask.temperature,
        }))?;
        *told = messages;
        Ok(())
    }

    fn write_message(
        &self,
        message: &Message,
        parts: &[MessagePiece<'_>],
        said: &mut BTreeSet<Id>,
    ) -> io::Result<Id> {
        let id = message_id(message, parts);
        if said.contains(&id) {
            return Ok(id);
        }
        for part in parts {
            if let Some(id) = part.id {
                self.write_once(id, said, || json!({"text": mask(part.text)}))?;
            }
        }
        self.write_once(id, said, || json!({"message": message_json(message, parts)}))
    }

    /// Writes something that may be sent to the model again, unless it was written before.
    fn write_once(
        &self,
        id: Id,
        said: &mut BTreeSet<Id>,
        line: impl FnOnce() -> Json,
    ) -> io::Result<Id> {
        if !said.contains(&id) {
            let mut line = line();
            line["event"] = json!("said");
            line["id"] = json!(hex(&id));
            (self.sink)(&line.to_string())?;
            said.insert(id);
        }
        Ok(id)
    }

    fn line(&self, line: Json) -> io::Result<()> {
        (self.sink)(&mask_value(line).to_string())
    }
}

impl Middleware for Trace {
    fn name(&self) -> &str {
        "trace"
    }

    fn note(&self, turn: &Turn, what: &EventKind) {
        if what.is_piece() {
            return;
        }
        if let Err(error) = self.write(turn, &turn.event(what))
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            turn.note(EventKind::Warned { message: format!("cannot write the trace: {error}") });
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

/// Returns the sources of each message.
fn by_message(sources: &[PromptSource], messages: usize) -> impl Iterator<Item = &[PromptSource]> {
    let mut rest = sources;
    (0..messages).map(move |at| {
        let (own, others) = rest.split_at(rest.partition_point(|it| it.message <= at));
        rest = others;
        own
    })
}

/// Returns the parts of a message with different sources.
fn parts<'m>(message: &'m Message, sources: &'m [PromptSource]) -> Vec<MessagePiece<'m>> {
    if sources.is_empty() {
        return vec![MessagePiece::new(message.role.as_str(), &message.content)];
    }
    let parts = sources.iter().map(|it| {
        MessagePiece::new(&it.from, message.content.get(it.start..it.end).unwrap_or_default())
    });
    parts.collect()
}

impl<'m> MessagePiece<'m> {
    fn new(from: &'m str, text: &'m str) -> Self {
        let id = (text.len() >= LONG).then(|| digest(&[text.as_bytes()]));
        Self { from, text, id }
    }
}

/// Returns a message with its parts, masked; long texts are only referred to.
fn message_json(message: &Message, parts: &[MessagePiece<'_>]) -> Json {
    let mut json = json!({"role": message.role.as_str(), "parts": null});
    if !message.calls.is_empty() {
        json["calls"] = json!(message.calls);
    }
    if let Some(id) = &message.call_id {
        json["call_id"] = json!(id);
    }
    if !message.parts.is_empty() {
        json["attached"] = json!(message.parts);
    }
    if !message.rest.is_empty() {
        json["rest"] = json!(message.rest);
    }
    json = mask_value(json);
    json["parts"] = parts
        .iter()
        .map(|it: &MessagePiece<'_>| match &it.id {
            Some(id) => json!({"from": mask(it.from), "said": hex(id)}),
            None => json!({"from": mask(it.from), "text": mask(it.text)}),
        })
        .collect();
    json
}

fn mask_value(mut json: Json) -> Json {
    mask_json(&mut json);
    json
}

fn message_id(message: &Message, parts: &[MessagePiece<'_>]) -> Id {
    let rest = json!([message.calls, message.call_id, message.parts, message.rest]).to_string();
    let mut texts = vec![message.role.as_str().as_bytes(), rest.as_bytes()];
    for MessagePiece { from, text, id } in parts {
        texts.extend([from.as_bytes(), id.as_ref().map_or(text.as_bytes(), |it| it)]);
    }
    digest(&texts)
}

fn tool_id(tool: &ToolDefinition) -> Id {
    let schema = tool.input_schema.to_string();
    digest(&[tool.name.as_bytes(), tool.description.as_bytes(), schema.as_bytes()])
}

fn digest(texts: &[&[u8]]) -> Id {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    let mut id = Id::default();
    id.copy_from_slice(&digest.finalize()[..16]);
    id
}

/// Returns the session and number of an event's turn.
fn turn_of(event: &Event<'_>) -> (String, usize) {
    (event.session.to_owned(), event.turn)
}

fn hex(id: &Id) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}
