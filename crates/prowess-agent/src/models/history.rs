//! The conversation so far, as it is sent to a provider.

use std::borrow::Cow;

use prowess::{Call, Message, Role};
use serde_json::{Map, Value as Json, json};

use super::draft::KEPT;
use crate::model::{ChatRequest, ToolDefinition};

/// A part of a message that is sent back to the provider that made it.
#[derive(Debug)]
pub(super) struct HistoryPiece<'m> {
    pub(super) what: PieceContent<'m>,
    pub(super) rest: Map<String, Json>,
}

#[derive(Debug)]
pub(super) enum PieceContent<'m> {
    Text(&'m str),
    Call(&'m Call),
    Opaque(&'m Json),
}

/// A part of a user message that is more than text.
#[derive(Debug)]
pub(super) enum Content<'m> {
    Text(&'m str),
    /// An image: its media type and its bytes in base64.
    Image(&'m str, &'m str),
    /// An image by URL.
    Link(&'m str),
}

/// The maximum length of a tool name in characters, and the replacement for an empty one.
const MAX_NAME: usize = 64;
const NAMELESS: &str = "unknown";

/// The opening message for a conversation that does not begin with the user, if the API requires
/// that.
pub(super) const BEGIN: &str = "(the conversation goes on)";

/// Returns the request without tool names that providers reject: models sometimes make up such
/// names, and a session that contains one would be rejected forever.
pub(super) fn without_invalid_names(ask: &ChatRequest) -> Cow<'_, ChatRequest> {
    let is_offered = |call: &Call| ask.tools.iter().any(|it| it.name == call.name);
    if ask
        .messages
        .iter()
        .flat_map(|it| &it.calls)
        .all(|call: &Call| is_offered(call) || name(&call.name) == call.name)
    {
        return Cow::Borrowed(ask);
    }
    let mut taken = ask.clone();
    let calls = taken.messages.iter_mut().flat_map(|it| &mut it.calls);
    calls.filter(|it| !is_offered(it)).for_each(|it| it.name = name(&it.name));
    Cow::Owned(taken)
}

/// Returns a name with only the characters that every provider accepts.
fn name(name: &str) -> String {
    match name
        .chars()
        .take(MAX_NAME)
        .map(|c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .collect::<String>()
    {
        name if name.is_empty() => NAMELESS.to_owned(),
        name => name,
    }
}

/// Splits off the leading system messages: returns their text, and the messages after them.
pub(super) fn split_system(messages: &[Message]) -> (String, &[Message]) {
    let count = messages.iter().take_while(|it| it.role == Role::System).count();
    let (system, rest) = messages.split_at(count);
    let system: Vec<&str> = system.iter().map(|it| &*it.content).collect();
    (system.join("\n\n"), rest)
}

/// Returns the parts of a message: as they arrived, if this model made it and it is unchanged; else
/// its text and its calls.
pub(super) fn parts<'m>(message: &'m Message, by: &str) -> Vec<HistoryPiece<'m>> {
    stored_pieces(message, by).unwrap_or_else(|| {
        let text = (!message.content.is_empty()).then_some(PieceContent::Text(&message.content));
        let said = text.into_iter().chain(message.calls.iter().map(PieceContent::Call));
        said.map(|what| HistoryPiece { what, rest: Map::new() }).collect()
    })
}

fn stored_pieces<'m>(message: &'m Message, by: &str) -> Option<Vec<HistoryPiece<'m>>> {
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
            PieceContent::Text(own)
        } else if rest.remove("call").is_some() {
            PieceContent::Call(calls.next()?)
        } else {
            rest.remove("opaque").filter(Json::is_object)?;
            PieceContent::Opaque(&part["opaque"])
        };
        parts.push(HistoryPiece { what, rest });
    }
    (text.is_empty() && calls.next().is_none()).then_some(parts)
}

/// Returns the arguments of a call as an object; any other value is wrapped in one.
pub(super) fn arguments(call: &Call) -> Json {
    match call.arguments.trim() {
        "" => json!({}),
        text => match serde_json::from_str(text) {
            Ok(Json::Object(object)) => object.into(),
            _ => json!({"arguments": text}),
        },
    }
}

/// Returns the contents of a message; kinds that providers handle differently are replaced by their
/// name.
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

/// Returns the schema of a tool's input, which is always an object.
pub(super) fn parameters(tool: &ToolDefinition) -> Json {
    let mut schema = match &tool.input_schema {
        Json::Object(schema) => schema.clone(),
        _ => Map::new(),
    };
    schema.retain(|name, _| name != "$schema");
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.into()
}
