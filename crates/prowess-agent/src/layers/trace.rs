//! A trace: everything that happens, one JSON line each.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use prowess::Message;
use prowess_runtime::Journal;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::{
    event::{Event, Source, What},
    layer::Layer,
    mask::{MASK, mask, mask_json},
    model::Offered,
    request::Turn,
};

/// Writes everything that happens as JSON lines, for [`Traced`](crate::Traced) to read.
///
/// What looks like a secret is masked. A message or tool that the model is told again and again is
/// written once, as `said`, and referred to by its digest; of the messages of a step, those that it has
/// in common with the step before are only counted, as `same`. A line that cannot be written is warned
/// of once and is no fault of the turn.
pub struct Trace {
    sink: Box<Sink>,
    state: Mutex<State>,
    has_failed: AtomicBool,
}

#[derive(Default)]
struct State {
    has_begun: bool,
    /// The digests of what was written.
    said: BTreeSet<Id>,
    /// The digests of long texts that have nothing to mask.
    clean: BTreeSet<Id>,
    /// What was told in the last step of each turn that goes on, by session and number.
    told: BTreeMap<(String, usize), Vec<Id>>,
}

type Sink = dyn Fn(&str) -> io::Result<()> + Send + Sync;
type Id = [u8; 16];

/// The version of the lines that are written.
pub(crate) const VERSION: u32 = 1;
/// How many digests are remembered; whatever is said again after that is written again.
const MAX_SAID: usize = 1_000_000;
/// From how many bytes on a text is remembered to have no secrets.
const LONG: usize = 4096;

impl Trace {
    /// Gives every line to a function, which need not be quick about it but should be.
    pub fn new(sink: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { sink: Box::new(sink), state: Mutex::default(), has_failed: AtomicBool::new(false) }
    }

    /// Adds every line to a journal, without waiting for the disk.
    pub fn journal(journal: Journal) -> Self {
        let mut journal = journal.unsynced();
        // Nobody will ask for what an earlier run has written.
        drop(journal.take_lines());
        let journal = Mutex::new(journal);
        Self::new(move |line| journal.lock().unwrap_or_else(PoisonError::into_inner).append(line))
    }

    /// Masks these texts, too, wherever they stand.
    #[must_use]
    pub fn without(self, secrets: Vec<String>) -> Self {
        let sink = self.sink;
        let quoted = secrets.iter().map(|it| json!(it).to_string());
        let secrets: Vec<String> = quoted.map(|it| it.trim_matches('"').to_owned()).collect();
        let masked = move |line: &str| {
            let known = |text: String, secret: &String| text.replace(secret.as_str(), MASK);
            sink(&secrets.iter().fold(line.to_owned(), known))
        };
        Self { sink: Box::new(masked), ..self }
    }

    fn write(&self, event: &Event<'_>) -> io::Result<()> {
        // One at a time, so that what is referred to stands before.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.has_begun {
            self.line(json!({"event": "trace", "version": VERSION, "at": event.at}))?;
            state.has_begun = true;
        }
        match event.what {
            What::Asked { .. } => self.asked(event, &mut state),
            What::Ended { .. } => {
                state.told.remove(&place(event));
                self.line(serde_json::to_value(event)?)
            }
            _ => self.line(serde_json::to_value(event)?),
        }
    }

    fn asked(&self, event: &Event<'_>, state: &mut State) -> io::Result<()> {
        let What::Asked { step, model, provider, ask, sources } = event.what else { return Ok(()) };
        if state.said.len() > MAX_SAID {
            state.said.clear();
            state.clean.clear();
        }
        let State { said, clean, told, .. } = state;
        let mut say = |id: Id, masked: &mut dyn FnMut() -> Json| {
            if !said.contains(&id) {
                let mut line = masked();
                line["event"] = json!("said");
                line["id"] = json!(hex(&id));
                (self.sink)(&line.to_string())?;
                said.insert(id);
            }
            io::Result::Ok(id)
        };
        let mut sources = sources.iter().peekable();
        let mut messages = Vec::new();
        for (at, message) in ask.messages.iter().enumerate() {
            let mut own = Vec::new();
            while let Some(source) = sources.next_if(|it| it.message <= at) {
                own.push(source);
            }
            let mut masked = || json!({"message": message_json(message, &own, clean)});
            messages.push(say(message_id(message, &own), &mut masked)?);
        }
        let tools =
            ask.tools.iter().map(|it| say(tool_id(it), &mut || masked(json!({"tool": it}))));
        let tools = tools.collect::<io::Result<Vec<Id>>>()?;
        let told = told.entry(place(event)).or_default();
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

    fn line(&self, line: Json) -> io::Result<()> {
        (self.sink)(&masked(line).to_string())
    }
}

impl Layer for Trace {
    fn name(&self) -> &str {
        "trace"
    }

    fn note(&self, turn: &Turn, what: &What) {
        if what.is_piece() {
            return;
        }
        if let Err(error) = self.write(&turn.event(what))
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            turn.note(What::Warned { message: format!("the trace cannot be written: {error}") });
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

/// A message with its text in the parts that came from different places, masked.
fn message_json(message: &Message, sources: &[&Source], clean: &mut BTreeSet<Id>) -> Json {
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
    json = masked(json);
    let mut part =
        |from: &str, text: &str| json!({"from": mask(from), "text": masked_text(text, clean)});
    let text_of = |it: &Source| message.content.get(it.start..it.end).unwrap_or_default();
    json["parts"] = match sources {
        [] => json!([part(message.role.as_str(), &message.content)]),
        sources => sources.iter().map(|it| part(&it.from, text_of(it))).collect(),
    };
    json
}

fn masked(mut json: Json) -> Json {
    mask_json(&mut json);
    json
}

/// A text without its secrets. A long one is often told again, and is then known to have none.
fn masked_text<'t>(text: &'t str, clean: &mut BTreeSet<Id>) -> Cow<'t, str> {
    if text.len() < LONG {
        return mask(text);
    }
    let id = digest(&[text]);
    if clean.contains(&id) {
        return Cow::Borrowed(text);
    }
    let masked = mask(text);
    if let Cow::Borrowed(_) = masked {
        clean.insert(id);
    }
    masked
}

fn message_id(message: &Message, sources: &[&Source]) -> Id {
    let rest = json!([message.calls, message.call_id, message.parts, message.rest]).to_string();
    let from: String =
        sources.iter().map(|it| format!("{}-{} {}\n", it.start, it.end, it.from)).collect();
    digest(&[message.role.as_str(), &message.content, &rest, &from])
}

fn tool_id(tool: &Offered) -> Id {
    digest(&[&tool.name, &tool.description, &tool.input_schema.to_string()])
}

fn digest(texts: &[&str]) -> Id {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    let mut id = Id::default();
    id.copy_from_slice(&digest.finalize()[..16]);
    id
}

/// Which turn an event belongs to.
fn place(event: &Event<'_>) -> (String, usize) {
    (event.session.to_owned(), event.turn)
}

fn hex(id: &Id) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}
