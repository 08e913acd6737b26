//! A reply while it is being received.

use std::collections::BTreeMap;

use prowess::{Call, Message, Role};
use serde_json::{Map, Value as Json, json};

use crate::model::{ChatResponse, Delta, StopReason, TokenUsage};

/// A reply while it is being received: pieces ordered by index, in whichever order they arrive.
pub(super) struct Draft<'a> {
    pub(super) hear: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    pub(super) pieces: BTreeMap<u64, Piece>,
    pub(super) spent: TokenUsage,
    /// The reason it ended, once known.
    pub(super) stop: Option<StopReason>,
    /// The provider's explanation of the end.
    pub(super) why: String,
}

/// A piece of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Piece {
    pub(super) what: DraftPiece,
    /// The data that its provider expects back with it.
    pub(super) rest: Map<String, Json>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum DraftPiece {
    Text(String),
    Call(Call),
    /// Provider data that is not interpreted.
    Opaque(Json),
}

/// The field of a message that contains the provider's own data.
pub(super) const KEPT: &str = "kept";

impl Default for DraftPiece {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl<'a> Draft<'a> {
    pub(super) fn new(hear: &'a (dyn Fn(Delta<'_>) + Send + Sync)) -> Self {
        Self {
            hear,
            pieces: BTreeMap::new(),
            spent: TokenUsage::default(),
            stop: None,
            why: String::new(),
        }
    }

    /// Appends text to the piece at this index.
    pub(super) fn append_text(&mut self, place: u64, text: &str) {
        if let DraftPiece::Text(said) = &mut self.pieces.entry(place).or_default().what {
            said.push_str(text);
            if !text.is_empty() {
                (self.hear)(Delta::Text(text));
            }
        }
    }

    /// Reports reasoning of the model.
    pub(super) fn think(&self, text: &str) {
        if !text.is_empty() {
            (self.hear)(Delta::Thought(text));
        }
    }

    /// Begins a call at this index.
    pub(super) fn begin_call(&mut self, place: u64, id: &str, name: &str) -> &mut Piece {
        if !name.is_empty() {
            (self.hear)(Delta::Call(name));
        }
        let (id, name) = (id.to_owned(), name.to_owned());
        let what = DraftPiece::Call(Call { id, name, ..Call::default() });
        let piece = self.pieces.entry(place).or_default();
        *piece = Piece { what, rest: Map::new() };
        piece
    }

    /// Appends to the arguments of the call at this index.
    pub(super) fn add_arguments(&mut self, place: u64, text: &str) {
        if let Some(call) = self.call(place) {
            call.arguments.push_str(text);
        }
    }

    pub(super) fn call(&mut self, place: u64) -> Option<&mut Call> {
        self.pieces.get_mut(&place)?.call()
    }

    /// Returns the index after all others.
    pub(super) fn next(&self) -> u64 {
        self.pieces.last_key_value().map_or(0, |it| it.0.saturating_add(1))
    }

    /// Whether there is no text and no call.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.values().all(|it| match &it.what {
            DraftPiece::Text(text) => text.is_empty(),
            DraftPiece::Call(_) => false,
            DraftPiece::Opaque(_) => true,
        })
    }

    /// Returns the whole reply. Data that only this model understands is kept in its message.
    pub(super) fn reply(self, by: &str) -> ChatResponse {
        let mut message = Message::new(Role::Assistant, "");
        let mut parts = Vec::new();
        for Piece { what, mut rest } in self.pieces.into_values() {
            match what {
                DraftPiece::Text(text) => {
                    rest.insert("text".to_owned(), text.len().into());
                    message.content.push_str(&text);
                }
                DraftPiece::Call(call) => {
                    rest.insert("call".to_owned(), message.calls.len().into());
                    message.calls.push(call);
                }
                DraftPiece::Opaque(json) => drop(rest.insert("opaque".to_owned(), json)),
            }
            parts.push(Json::Object(rest));
        }
        // A part with one field adds nothing to the message, unless it is opaque.
        let is_own =
            |it: &Json| it.as_object().is_some_and(|it| it.len() > 1) || it["opaque"] != Json::Null;
        if parts.iter().any(is_own) {
            message.rest.insert(KEPT.to_owned(), json!({"by": by, "parts": parts}));
        }
        let stop = match self.stop.unwrap_or_default() {
            StopReason::Done if !message.calls.is_empty() => StopReason::Calls,
            StopReason::Calls if message.calls.is_empty() => StopReason::Done,
            stop => stop,
        };
        ChatResponse { message, stop, spent: self.spent, remark: None }
    }
}

impl Piece {
    pub(super) fn call(&mut self) -> Option<&mut Call> {
        match &mut self.what {
            DraftPiece::Call(call) => Some(call),
            _ => None,
        }
    }
}

/// Reads a field as text; empty if it is none.
pub(super) fn text<'j>(json: &'j Json, field: &str) -> &'j str {
    json[field].as_str().unwrap_or_default()
}

/// Reads a token count; capped so that sums cannot overflow.
pub(super) fn count(number: &Json) -> u64 {
    number.as_u64().unwrap_or_default().min(1 << 40)
}
