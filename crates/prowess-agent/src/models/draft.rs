//! A reply while it is coming in, and what of it goes back with the next request.

use std::collections::BTreeMap;

use prowess::{Call, Message, Role};
use serde_json::{Map, Value as Json, json};

use crate::model::{Delta, Reply, Spent, Stop};

/// A reply while it is coming in: pieces in the order of their places, whichever came first.
pub(super) struct Draft<'a> {
    pub(super) hear: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    pub(super) pieces: BTreeMap<u64, Piece>,
    pub(super) spent: Spent,
    /// Why it ended, once that was said.
    pub(super) stop: Option<Stop>,
    /// What was said about the end.
    pub(super) why: String,
    /// Fields of the message that its provider may want back.
    pub(super) kept: BTreeMap<&'static str, Json>,
}

/// A piece of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Piece {
    pub(super) what: What,
    /// What its provider wants back with it.
    pub(super) rest: Map<String, Json>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    Text(String),
    Call(Call),
    /// Nothing that is for us to understand.
    Opaque(Json),
}

/// A part of a message that goes back to the provider that made it.
#[derive(Debug)]
pub(super) struct Part<'m> {
    pub(super) what: Said<'m>,
    pub(super) rest: Map<String, Json>,
}

#[derive(Debug)]
pub(super) enum Said<'m> {
    Text(&'m str),
    Call(&'m Call),
    Opaque(&'m Json),
}

/// The field of a message in which a provider's own stands.
const KEPT: &str = "kept";

impl Default for What {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl<'a> Draft<'a> {
    pub(super) fn new(hear: &'a (dyn Fn(Delta<'_>) + Send + Sync)) -> Self {
        Self {
            hear,
            pieces: BTreeMap::new(),
            spent: Spent::default(),
            stop: None,
            why: String::new(),
            kept: BTreeMap::new(),
        }
    }

    /// Adds text to the piece at this place.
    pub(super) fn say(&mut self, place: u64, text: &str) {
        if let What::Text(said) = &mut self.pieces.entry(place).or_default().what {
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
        (self.hear)(Delta::Call(name));
        let (id, name) = (id.to_owned(), name.to_owned());
        let what = What::Call(Call { id, name, ..Call::default() });
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
        self.pieces.last_key_value().map_or(0, |it| it.0 + 1)
    }

    /// Whether nothing was said and nothing called.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.values().all(|it| match &it.what {
            What::Text(text) => text.is_empty(),
            What::Call(_) => false,
            What::Opaque(_) => true,
        })
    }

    /// The whole reply. What only this model understands is kept in its message.
    pub(super) fn reply(self, by: &str) -> Reply {
        let mut message = Message::new(Role::Assistant, "");
        message.rest.extend(self.kept.into_iter().map(|(name, kept)| (name.to_owned(), kept)));
        let mut parts = Vec::new();
        for Piece { what, mut rest } in self.pieces.into_values() {
            match what {
                What::Text(text) => {
                    rest.insert("text".to_owned(), text.len().into());
                    message.content.push_str(&text);
                }
                What::Call(call) => {
                    rest.insert("call".to_owned(), message.calls.len().into());
                    message.calls.push(call);
                }
                What::Opaque(json) => drop(rest.insert("opaque".to_owned(), json)),
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
            Stop::Done if !message.calls.is_empty() => Stop::Calls,
            Stop::Calls if message.calls.is_empty() => Stop::Done,
            stop => stop,
        };
        Reply { message, stop, spent: self.spent }
    }
}

impl Piece {
    pub(super) fn call(&mut self) -> Option<&mut Call> {
        match &mut self.what {
            What::Call(call) => Some(call),
            _ => None,
        }
    }
}

/// The parts of a message: as they came, if this model made it and nobody has changed it since;
/// else its text and its calls.
pub(super) fn parts<'m>(message: &'m Message, by: &str) -> Vec<Part<'m>> {
    kept(message, by).unwrap_or_else(|| {
        let text = (!message.content.is_empty()).then_some(Said::Text(&message.content));
        let said = text.into_iter().chain(message.calls.iter().map(Said::Call));
        said.map(|what| Part { what, rest: Map::new() }).collect()
    })
}

fn kept<'m>(message: &'m Message, by: &str) -> Option<Vec<Part<'m>>> {
    let kept = message.rest.get(KEPT)?;
    if kept["by"] != by {
        return None;
    }
    let (mut text, mut calls) = (&*message.content, message.calls.iter());
    let mut parts = Vec::new();
    for part in kept["parts"].as_array()? {
        let mut rest = part.as_object()?.clone();
        let what = if let Some(length) = rest.remove("text") {
            let length = usize::try_from(length.as_u64()?).ok()?;
            let (own, others) = text.split_at_checked(length)?;
            text = others;
            Said::Text(own)
        } else if rest.remove("call").is_some() {
            Said::Call(calls.next()?)
        } else {
            rest.remove("opaque")?;
            Said::Opaque(&part["opaque"])
        };
        parts.push(Part { what, rest });
    }
    (text.is_empty() && calls.next().is_none()).then_some(parts)
}

/// What a call is given, as an object; what is none stands in one.
pub(super) fn arguments(call: &Call) -> Json {
    match call.arguments.trim() {
        "" => json!({}),
        text => match serde_json::from_str(text) {
            Ok(Json::Object(object)) => object.into(),
            _ => json!({"arguments": text}),
        },
    }
}

/// What a user's message is made of, where it is more than text.
pub(super) enum Content<'m> {
    Text(&'m str),
    /// An image: its type and its bytes in base64.
    Image(&'m str, &'m str),
    /// An image that lies elsewhere.
    Link(&'m str),
}

/// The contents of a message; what no provider takes alike is told by its name.
pub(super) fn contents(message: &Message) -> Vec<Content<'_>> {
    let images = message.parts.iter().any(|it| it["type"] == "image_url");
    if !images {
        return vec![Content::Text(&message.content)];
    }
    message.parts.iter().filter_map(content).collect()
}

fn content(part: &Json) -> Option<Content<'_>> {
    if let Some(text) = part["text"].as_str() {
        return Some(Content::Text(text));
    }
    let image = &part["image_url"];
    let url = image["url"].as_str().or(image.as_str())?;
    let Some(data) = url.strip_prefix("data:") else { return Some(Content::Link(url)) };
    let (kind, data) = data.split_once(";base64,")?;
    Some(Content::Image(kind, data))
}
