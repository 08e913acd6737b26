//! A reply while it is coming in.

use std::collections::BTreeMap;

use prowess::{Call, Message, Role};
use serde_json::{Map, Value as Json, json};

use crate::model::{ChatResponse, Delta, StopReason, TokenUsage};

/// A reply while it is coming in: pieces in the order of their places, whichever came first.
pub(super) struct Draft<'a> {
    pub(super) hear: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    pub(super) pieces: BTreeMap<u64, Piece>,
    pub(super) spent: TokenUsage,
    /// Why it ended, once that was said.
    pub(super) stop: Option<StopReason>,
    /// What was said about the end.
    pub(super) why: String,
}

/// A piece of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Piece {
    pub(super) what: DraftPiece,
    /// What its provider wants back with it.
    pub(super) rest: Map<String, Json>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum DraftPiece {
    Text(String),
    Call(Call),
    /// Nothing that is for us to understand.
    Opaque(Json),
}

/// The field of a message in which a provider's own stands.
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

    /// Adds text to the piece at this place.
    pub(super) fn say(&mut self, place: u64, text: &str) {
        if let DraftPiece::Text(said) = &mut self.pieces.entry(place).or_default().what {
            said.push_str(text);
            if !text.is_empty() {
                (self.hear)(Delta::Text(text));
            }
        }
    }

    /// Tells what the model thinks.
    pub(super) fn think(&self, text: &str) {
        if !text.is_empty() {
            (self.hear)(Delta::Thought(text));
        }
    }

    /// Begins a call at this place.
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

    /// Adds to what the call at this place is given.
    pub(super) fn add_arguments(&mut self, place: u64, text: &str) {
        if let Some(call) = self.call(place) {
            call.arguments.push_str(text);
        }
    }

    pub(super) fn call(&mut self, place: u64) -> Option<&mut Call> {
        self.pieces.get_mut(&place)?.call()
    }

    /// The place behind all others.
    pub(super) fn next(&self) -> u64 {
        self.pieces.last_key_value().map_or(0, |it| it.0.saturating_add(1))
    }

    /// Whether nothing was said and nothing called.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.values().all(|it| match &it.what {
            DraftPiece::Text(text) => text.is_empty(),
            DraftPiece::Call(_) => false,
            DraftPiece::Opaque(_) => true,
        })
    }

    /// The whole reply. What only this model understands is kept in its message.
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
        // A part with one field says nothing that the message does not say, unless that is opaque.
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

/// What is counted in tokens; never so much that adding it up could go wrong.
pub(super) fn count(number: &Json) -> u64 {
    number.as_u64().unwrap_or_default().min(1 << 40)
}
