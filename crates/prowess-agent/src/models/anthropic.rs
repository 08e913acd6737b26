//! The Messages API of Anthropic.

use prowess::{Message, Role};
use serde_json::{Value as Json, json};

use super::{
    adapter::{Flow, Protocol, ProviderQuirks},
    draft::{Draft, DraftPiece, Piece, count, text},
    history::{BEGIN, Content, PieceContent, arguments, contents, parameters, parts, split_system},
    trouble::Trouble,
};
use crate::model::{ChatRequest, IS_ERROR, StopReason, ToolDefinition};

/// The Messages API: the system prompt is separate, roles alternate, and tool results are user
/// messages.
#[derive(Debug)]
pub(super) struct Anthropic;

/// The default limit of output tokens, which the API requires.
const MAX_OUTPUT: usize = 32_000;

impl Protocol for Anthropic {
    fn path(&self, _: &str, _: bool) -> (&'static str, String) {
        ("/v1", "/messages".to_owned())
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", "2023-06-01".to_owned())];
        if !key.is_empty() {
            headers.push(("x-api-key", key.to_owned()));
        }
        headers
    }

    fn usual_output(&self) -> Option<usize> {
        Some(MAX_OUTPUT)
    }

    fn body(&self, model: &str, by: &str, ask: &ChatRequest, quirks: ProviderQuirks) -> Json {
        let (system, messages) = split_system(&ask.messages);
        let max_tokens = ask.max_output.unwrap_or(MAX_OUTPUT);
        let mut body = json!({"model": model, "max_tokens": max_tokens});
        if !system.trim().is_empty() {
            body["system"] = json!([{"type": "text", "text": system}]);
            mark_cached(body["system"].get_mut(0));
        }
        if !ask.tools.is_empty() {
            body["tools"] = ask.tools.iter().map(|it: &ToolDefinition| json!({"name": it.name, "description": it.description, "input_schema": parameters(it)})).collect();
            mark_cached(body["tools"].as_array_mut().and_then(|it| it.last_mut()));
        }
        let mut turns = turns(messages, by);
        // The conversation so far is read again with every step.
        let last = turns.last_mut().and_then(|it| it["content"].as_array_mut()?.last_mut());
        mark_cached(last.filter(|it| matches!(it["type"].as_str(), Some("text" | "tool_result"))));
        body["messages"] = turns.into();
        if let Some(temperature) = ask.temperature {
            body["temperature"] = temperature.into();
        }
        body["stream"] = (!quirks.no_stream).into();
        body
    }

    fn take(&self, event: &Json, draft: &mut Draft<'_>) -> Result<Flow, Trouble> {
        let place = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str() {
            Some("error") => return Err(Trouble::in_stream(event)),
            Some("message_start") => take_usage(&event["message"]["usage"], draft),
            Some("content_block_start") => take_block(place, &event["content_block"], draft),
            Some("content_block_delta") => take_delta(place, &event["delta"], draft),
            Some("message_delta") => {
                take_usage(&event["usage"], draft);
                return Ok(take_stop(&event["delta"], draft));
            }
            Some("message_stop") => {
                draft.stop.get_or_insert_default();
                return Ok(Flow::Over);
            }
            Some("message") => {
                take_usage(&event["usage"], draft);
                for (place, block) in (0..).zip(event["content"].as_array().into_iter().flatten()) {
                    take_block(place, block, draft);
                }
                return Ok(take_stop(event, draft));
            }
            // More kinds of events may be added at any time.
            _ => {}
        }
        Ok(Flow::More)
    }
}

/// Marks everything up to here to be cached for the next request.
fn mark_cached(block: Option<&mut Json>) {
    if let Some(block) = block {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// Returns the turns of a conversation: roles alternate, the user begins, and results come before
/// text. Reasoning is sent back until the next user message: it is signed together with everything
/// before it, and the system prompt may have changed by then.
fn turns(messages: &[Message], by: &str) -> Vec<Json> {
    let asked = messages.iter().rposition(|it| it.role == Role::User).unwrap_or_default();
    let mut turns: Vec<(&str, Vec<Json>)> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let blocks = blocks(message, if index < asked { "" } else { by });
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some(last) if last.0 == role => last.1.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    if turns.first().is_none_or(|it| it.0 == "assistant") {
        turns.insert(0, ("user", vec![json!({"type": "text", "text": BEGIN})]));
    }
    turns
        .into_iter()
        .map(|(role, mut blocks): (&str, Vec<Json>)| {
            if role == "user" {
                blocks.sort_by_key(|it| it["type"] != "tool_result");
            }
            json!({"role": role, "content": blocks})
        })
        .collect()
}

fn blocks(message: &Message, by: &str) -> Vec<Json> {
    match message.role {
        Role::Assistant => parts(message, by).into_iter().filter_map(|it| block(it.what)).collect(),
        Role::Tool => {
            let call_id = id(message.call_id.as_deref().unwrap_or_default());
            let mut result = json!({"type": "tool_result", "tool_use_id": call_id});
            if !message.content.is_empty() {
                result["content"] = message.content.as_str().into();
            }
            if message.rest.get(IS_ERROR) == Some(&Json::Bool(true)) {
                result["is_error"] = true.into();
            }
            vec![result]
        }
        Role::System | Role::User => contents(message)
            .into_iter()
            .filter_map(|content| match content {
                Content::Text(it) => text_block(it),
                Content::Image(kind, data) => Some(json!({"type": "image", "source": {
                    "type": "base64", "media_type": kind, "data": data,
                }})),
                Content::Link(url) => {
                    Some(json!({"type": "image", "source": {"type": "url", "url": url}}))
                }
            })
            .collect(),
    }
}

fn block(content: PieceContent<'_>) -> Option<Json> {
    match content {
        PieceContent::Text(it) => text_block(it),
        PieceContent::Opaque(block) => Some(block.clone()),
        PieceContent::Call(call) => Some(json!({
            "type": "tool_use",
            "id": id(&call.id),
            "name": call.name,
            "input": arguments(call),
        })),
    }
}

/// Returns a text as a block; an empty one would be rejected.
fn text_block(text: &str) -> Option<Json> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// Returns an id with accepted characters only; other providers use dots and colons.
fn id(id: &str) -> String {
    id.chars().map(|c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

fn take_block(place: u64, block: &Json, draft: &mut Draft<'_>) {
    match text(block, "type") {
        "text" => draft.append_text(place, text(block, "text")),
        "tool_use" => {
            draft.begin_call(place, text(block, "id"), text(block, "name"));
            if block["input"].as_object().is_some_and(|it| !it.is_empty()) {
                draft.add_arguments(place, &block["input"].to_string());
            }
        }
        kind if block.is_object() => {
            if kind == "thinking" {
                draft.think(text(block, "thinking"));
            }
            let what = DraftPiece::Opaque(block.clone());
            draft.pieces.insert(place, Piece { what, ..Piece::default() });
        }
        _ => {}
    }
}

fn take_delta(place: u64, delta: &Json, draft: &mut Draft<'_>) {
    match text(delta, "type") {
        "text_delta" => draft.append_text(place, text(delta, "text")),
        "input_json_delta" => draft.add_arguments(place, text(delta, "partial_json")),
        "thinking_delta" => {
            draft.think(text(delta, "thinking"));
            add(place, "thinking", text(delta, "thinking"), draft);
        }
        "signature_delta" => add(place, "signature", text(delta, "signature"), draft),
        _ => {}
    }
}

/// Appends to a field of an opaque block.
fn add(place: u64, field: &str, text: &str, draft: &mut Draft<'_>) {
    if let Some(Piece { what: DraftPiece::Opaque(block), .. }) = draft.pieces.get_mut(&place) {
        let had = block[field].as_str().unwrap_or_default();
        block[field] = format!("{had}{text}").into();
    }
}

fn take_stop(said: &Json, draft: &mut Draft<'_>) -> Flow {
    let Some(reason) = said["stop_reason"].as_str() else { return Flow::More };
    draft.stop = Some(match reason {
        "tool_use" => StopReason::Calls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Filtered,
        _ => StopReason::Done,
    });
    let details = &said["stop_details"];
    let why = details["explanation"].as_str().or(details["category"].as_str());
    draft.why = why.unwrap_or_default().to_owned();
    Flow::Nearly
}

/// Reads the token usage: the numbers are totals, and the input excludes cached tokens.
fn take_usage(usage: &Json, draft: &mut Draft<'_>) {
    if usage["output_tokens"].is_u64() {
        draft.spent.output = count(&usage["output_tokens"]);
    }
    if usage["input_tokens"].is_u64() {
        let read = count(&usage["cache_read_input_tokens"]);
        let written = count(&usage["cache_creation_input_tokens"]);
        draft.spent.input = count(&usage["input_tokens"]) + read + written;
        draft.spent.cached = read;
    }
}
