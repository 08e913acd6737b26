//! A trace: everything that happens, one JSON line each.

use std::{
    collections::BTreeSet,
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
    mask::mask_json,
    model::{Ask, Offered},
    request::Turn,
};

/// Writes everything that happens as JSON lines, for [`Traced`](crate::Traced) to read.
///
/// What looks like a secret is masked. A message or tool that the model is told again and again is
/// written once, as `said`, and referred to by its digest. A line that cannot be written is warned of
/// once and is no fault of the turn.
pub struct Trace {
    sink: Box<Sink>,
    /// The digests of what was written.
    said: Mutex<BTreeSet<Id>>,
    has_begun: AtomicBool,
    has_failed: AtomicBool,
}

type Sink = dyn Fn(&str) -> io::Result<()> + Send + Sync;
type Id = [u8; 16];

/// The version of the lines that are written.
pub(crate) const VERSION: u32 = 1;
/// How many digests are remembered; whatever is said again after that is written again.
const MAX_SAID: usize = 1_000_000;

impl Trace {
    /// Gives every line to a function, which need not be quick about it but should be.
    pub fn new(sink: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self {
            sink: Box::new(sink),
            said: Mutex::default(),
            has_begun: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Adds every line to a journal, without waiting for the disk.
    pub fn journal(journal: Journal) -> Self {
        let journal = Mutex::new(journal.unsynced());
        Self::new(move |line| journal.lock().unwrap_or_else(PoisonError::into_inner).append(line))
    }

    fn write(&self, event: &Event<'_>) -> io::Result<()> {
        // One at a time, so that what is referred to stands before.
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.has_begun.load(Ordering::Relaxed) {
            self.line(json!({"event": "trace", "version": VERSION, "at": event.at}))?;
            self.has_begun.store(true, Ordering::Relaxed);
        }
        if said.len() > MAX_SAID {
            said.clear();
        }
        let What::Asked { step, model, provider, ask, sources } = event.what else {
            return self.line(serde_json::to_value(event)?);
        };
        let mut line = json!({
            "at": event.at, "session": event.session, "turn": event.turn, "step": step,
            "event": "asked", "model": model, "provider": provider,
            "messages": [], "tools": [],
            "max_output": ask.max_output, "temperature": ask.temperature,
        });
        let Ask { messages, tools, .. } = ask;
        let mut sources = sources.iter().peekable();
        for (at, message) in messages.iter().enumerate() {
            let mut own = Vec::new();
            while let Some(source) = sources.next_if(|it| it.message <= at) {
                own.push(source);
            }
            let id = message_id(message, &own);
            line["messages"].as_array_mut().into_iter().for_each(|it| it.push(json!(hex(id))));
            if !said.contains(&id) {
                let message = message_json(message, &own);
                self.line(json!({"event": "said", "id": hex(id), "message": message}))?;
                said.insert(id);
            }
        }
        for tool in tools {
            let id = tool_id(tool);
            line["tools"].as_array_mut().into_iter().for_each(|it| it.push(json!(hex(id))));
            if !said.contains(&id) {
                self.line(json!({"event": "said", "id": hex(id), "tool": tool}))?;
                said.insert(id);
            }
        }
        self.line(line)
    }

    fn line(&self, mut line: Json) -> io::Result<()> {
        mask_json(&mut line);
        (self.sink)(&line.to_string())
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

/// A message with its text in the parts that came from different places.
fn message_json(message: &Message, sources: &[&Source]) -> Json {
    let part = |it: &&Source| json!({"from": it.from, "text": message.content.get(it.start..it.end).unwrap_or_default()});
    let mut parts: Vec<Json> = sources.iter().map(part).collect();
    if parts.is_empty() {
        parts.push(json!({"from": message.role.as_str(), "text": message.content}));
    }
    let mut json = json!({"role": message.role.as_str(), "parts": parts});
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
    json
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

fn hex(id: Id) -> String {
    id.iter().map(|it| format!("{it:02x}")).collect()
}
