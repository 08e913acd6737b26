//! Chat completions: the API of OpenAI that most other servers implement.

use prowess::{Call, Message, Role};
use serde_json::{Map, Value as Json, json};

use super::{
    adapter::{Flow, Protocol, ProviderQuirks},
    draft::{Draft, DraftPiece, Piece, count, text},
    history::{HistoryPiece, PieceContent, parameters, parts},
    trouble::{Trouble, contains_any},
};
use crate::model::{ChatRequest, Delta, StopReason, TokenUsage, ToolDefinition};

/// Chat completions. Servers differ in the fields they accept.
#[derive(Debug)]
pub(super) struct OpenAi {
    /// Whether the output limit has its newer field name.
    pub(super) is_newer: bool,
}

/// The usual field for reasoning.
const THOUGHT: &str = "reasoning_content";
/// The field of a call that contains Gemini's signature.
const EXTRA: &str = "extra_content";
/// The indexes of reasoning, text and calls in a draft.
const THOUGHTS: u64 = 0;
const TEXT: u64 = 1;
const FIRST_CALL: u64 = 2;

impl OpenAi {
    pub(super) fn new(base: &str) -> Self {
        let is_newer = ["api.openai.com", ".openai.azure.com"].iter().any(|it| base.contains(it));
        Self { is_newer }
    }
}

impl Protocol for OpenAi {
    fn path(&self, _: &str, _: bool) -> (&'static str, String) {
        ("/v1", "/chat/completions".to_owned())
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, model: &str, by: &str, ask: &ChatRequest, quirks: ProviderQuirks) -> Json {
        let messages: Vec<Json> = ask.messages.iter().map(|it| message(it, by, quirks)).collect();
        let mut body = json!({"model": model, "messages": messages});
        if !ask.tools.is_empty() {
            body["tools"] = ask.tools.iter().map(tool).collect();
        }
        if let Some(limit) = ask.max_output {
            let is_newer = self.is_newer != quirks.other_limit;
            body[if is_newer { "max_completion_tokens" } else { "max_tokens" }] = limit.into();
        }
        if let Some(temperature) = ask.temperature {
            body["temperature"] = temperature.into();
        }
        body["stream"] = (!quirks.no_stream).into();
        if !quirks.no_stream && !quirks.no_usage {
            body["stream_options"] = json!({"include_usage": true});
        }
        body
    }

    fn take(&self, event: &Json, draft: &mut Draft<'_>) -> Result<Flow, Trouble> {
        if event.get("error").is_some_and(|it| !it.is_null()) || event["object"] == "error" {
            return Err(Trouble::in_stream(event));
        }
        if event["usage"].is_object() {
            draft.spent = read_usage(&event["usage"]);
        }
        let choice = &event["choices"][0];
        let said = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        take_message(said, draft);
        let reason = choice["finish_reason"].as_str().filter(|it| !it.is_empty());
        if let Some(reason) = reason {
            draft.stop = Some(match reason {
                "length" | "max_tokens" | "model_length" => StopReason::Length,
                "content_filter" => StopReason::Filtered,
                // A refusal that came as text ends like any other text.
                _ => draft.stop.unwrap_or_default(),
            });
        }
        let is_over = reason.is_some() || draft.stop.is_some() && event["choices"] == json!([]);
        Ok(if is_over { Flow::Nearly } else { Flow::More })
    }

    fn adapt(&self, mut quirks: ProviderQuirks, message: &str) -> ProviderQuirks {
        let message = message.to_lowercase();
        let is_unknown = contains_any(&message, UNKNOWN);
        if message.contains("stream_options") {
            quirks.no_usage = true;
        } else if contains_any(&message, &["max_tokens", "max_completion_tokens"]) {
            quirks.other_limit |= is_unknown;
        } else if message.contains("reasoning_content") {
            quirks.empty_thoughts = true;
        } else if message.contains("stream") {
            quirks.no_stream |= is_unknown;
        }
        quirks
    }
}

/// The phrases of an error about an unknown, rather than invalid, setting.
const UNKNOWN: &[&str] =
    &["support", "unknown", "unrecognized", "permitted", "not allowed", "unexpected"];

pub(super) fn bearer(key: &str) -> Vec<(&'static str, String)> {
    if key.is_empty() { Vec::new() } else { vec![("authorization", format!("Bearer {key}"))] }
}

/// Returns a message with only the fields of the API, because some servers reject others. Reasoning
/// is sent back with calls only.
fn message(message: &Message, by: &str, quirks: ProviderQuirks) -> Json {
    let mut sent = json!(Message { rest: Map::new(), ..message.clone() });
    let mut calls = sent.get_mut("tool_calls").and_then(Json::as_array_mut).into_iter().flatten();
    let mut thoughts = Map::new();
    for HistoryPiece { what, rest } in parts(message, by) {
        match what {
            PieceContent::Opaque(Json::Object(it)) if !message.calls.is_empty() => {
                thoughts = it.clone();
            }
            PieceContent::Call(_) => {
                let call = calls.next().and_then(Json::as_object_mut);
                call.into_iter().for_each(|it| it.extend(rest.clone()));
            }
            PieceContent::Opaque(_) | PieceContent::Text(_) => {}
        }
    }
    thoughts.into_iter().for_each(|(name, thought)| sent[name] = thought);
    if quirks.empty_thoughts && message.role == Role::Assistant && sent.get(THOUGHT).is_none() {
        sent[THOUGHT] = "".into();
    }
    sent
}

fn tool(tool: &ToolDefinition) -> Json {
    json!({"type": "function", "function": {
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters(tool),
    }})
}

fn read_usage(usage: &Json) -> TokenUsage {
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
    TokenUsage {
        input: count(&usage["prompt_tokens"]),
        output: count(&usage["completion_tokens"]),
        cached: cached.max(count(&usage["prompt_cache_hit_tokens"])),
        estimated: false,
    }
}

fn take_message(said: &Json, draft: &mut Draft<'_>) {
    take_thoughts(said, draft);
    match &said["content"] {
        Json::String(text) => draft.append_text(TEXT, text),
        Json::Array(parts) => parts.iter().for_each(|it| take_part(it, draft)),
        _ => {}
    }
    if let Some(refusal) = said["refusal"].as_str().filter(|it| !it.is_empty()) {
        draft.append_text(TEXT, refusal);
        draft.stop = Some(StopReason::Filtered);
    }
    for call in said["tool_calls"].as_array().into_iter().flatten() {
        take_call(call, draft);
    }
    if said["function_call"].is_object() {
        take_call(&json!({"index": 0, "function": said["function_call"]}), draft);
    }
}

/// Reads a part of a content list: some servers send reasoning and text as parts of one content.
fn take_part(part: &Json, draft: &mut Draft<'_>) {
    match part["type"].as_str() {
        Some("thinking") => {
            let thoughts = part["thinking"].as_array().into_iter().flatten();
            thoughts.filter_map(|it| it["text"].as_str()).for_each(|it| draft.think(it));
        }
        _ => draft.append_text(TEXT, part["text"].as_str().unwrap_or_default()),
    }
}

/// Reads reasoning, and keeps it under its original field names.
fn take_thoughts(said: &Json, draft: &mut Draft<'_>) {
    let thought = [THOUGHT, "reasoning"].into_iter().find_map(|it| Some((it, said[it].as_str()?)));
    if let Some((name, text)) = thought.filter(|it| !it.1.is_empty()) {
        draft.think(text);
        if let Some(Json::String(kept)) = stored_field(draft, name, || "".into()) {
            kept.push_str(text);
        }
    }
    for detail in said["reasoning_details"].as_array().into_iter().flatten() {
        if let Some(Json::Array(kept)) = stored_field(draft, "reasoning_details", || json!([])) {
            add_detail(kept, detail);
        }
    }
}

fn stored_field<'d>(
    draft: &'d mut Draft<'_>,
    name: &str,
    empty: fn() -> Json,
) -> Option<&'d mut Json> {
    match &mut draft
        .pieces
        .entry(THOUGHTS)
        .or_insert_with(|| Piece { what: DraftPiece::Opaque(json!({})), ..Piece::default() })
        .what
    {
        DraftPiece::Opaque(Json::Object(kept)) => Some(kept.entry(name).or_insert_with(empty)),
        _ => None,
    }
}

/// Appends a piece of a reasoning detail to the previous piece, if both belong to the same detail.
fn add_detail(kept: &mut Vec<Json>, detail: &Json) {
    let Some(last) = kept
        .last_mut()
        .filter(|it: &&mut Json| {
            it["type"] == detail["type"]
                && it["index"] == detail["index"]
                && !detail["index"].is_null()
        })
        .and_then(Json::as_object_mut)
    else {
        return kept.push(detail.clone());
    };
    for (name, value) in detail.as_object().into_iter().flatten() {
        match (last.get_mut(name), value) {
            (Some(Json::String(had)), Json::String(more))
                if ["text", "summary", "data"].contains(&&**name) =>
            {
                had.push_str(more);
            }
            (_, Json::Null) => {}
            _ => drop(last.insert(name.clone(), value.clone())),
        }
    }
}

/// Reads a piece of a call, or a whole one: assigned by its index, by its id, or to the last call.
fn take_call(piece: &Json, draft: &mut Draft<'_>) {
    let (id, name) = (text(piece, "id").to_owned(), text(&piece["function"], "name").to_owned());
    let arguments = match &piece["function"]["arguments"] {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        whole => whole.to_string(),
    };
    let last = draft.pieces.keys().next_back().copied().filter(|it| *it >= FIRST_CALL);
    let place = match piece["index"].as_u64() {
        Some(index) => Some(index.saturating_add(FIRST_CALL)),
        None => last.filter(|_| id.is_empty() && name.is_empty()),
    };
    let place = place.and_then(|it| {
        let begun = match draft.call(it) {
            Some(call) => !is_another(call, &id, &name),
            None => true,
        };
        begun.then_some(it)
    });
    let place = place.unwrap_or_else(|| draft.next().max(FIRST_CALL));
    match draft.call(place) {
        Some(call) => {
            if call.id.is_empty() {
                call.id = id;
            }
            if call.name.is_empty() && !name.is_empty() {
                call.name.clone_from(&name);
                (draft.hear)(Delta::Call(&name));
            }
        }
        None => drop(draft.begin_call(place, &id, &name)),
    }
    draft.add_arguments(place, &arguments);
    // A proxy for another provider may expect a field back with the call.
    if let (Some(extra), Some(call)) = (piece.get(EXTRA), draft.pieces.get_mut(&place)) {
        call.rest.insert(EXTRA.to_owned(), extra.clone());
    }
}

/// Whether a piece begins another call although it has the same index: some servers give every
/// whole call the index 0.
fn is_another(call: &Call, id: &str, name: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    match (id.is_empty(), call.id.is_empty()) {
        (false, false) => id != call.id,
        // Its arguments are complete.
        _ => serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(pieces: &[Json]) -> Vec<(String, String, String)> {
        let mut draft = Draft::new(&|_| {});
        pieces.iter().for_each(|it| take_call(it, &mut draft));
        let call = |what| match what {
            DraftPiece::Call(Call { id, name, arguments, .. }) => (id, name, arguments),
            other => panic!("{other:?} is no call"),
        };
        draft.pieces.into_values().map(|it| call(it.what)).collect()
    }

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: Json) -> Json {
        let mut piece = json!({"function": {"arguments": arguments}});
        if let Some(index) = index {
            piece["index"] = index.into();
        }
        if !id.is_empty() {
            piece["id"] = id.into();
        }
        if !name.is_empty() {
            piece["function"]["name"] = name.into();
        }
        piece
    }

    #[test]
    fn calls_are_put_together_however_a_server_sends_them() {
        let owned = |id: &str, name: &str, arguments: &str| {
            (id.to_owned(), name.to_owned(), arguments.to_owned())
        };
        let two = [owned("a", "f", "{\"x\":1}"), owned("b", "g", "{}")];
        // In pieces, one after the other and interleaved.
        let by_index = [
            piece(Some(0), "a", "f", json!("")),
            piece(Some(1), "b", "g", json!("{")),
            piece(Some(0), "", "", json!("{\"x\"")),
            piece(Some(0), "", "", json!(":1}")),
            piece(Some(1), "", "", json!("}")),
        ];
        assert_eq!(calls(&by_index), two);
        // Whole, all of them at index 0.
        let whole =
            [piece(Some(0), "a", "f", json!("{\"x\":1}")), piece(Some(0), "b", "g", json!({}))];
        assert_eq!(calls(&whole), two);
        // Whole, without an index.
        let bare = [piece(None, "a", "f", json!({"x": 1})), piece(None, "b", "g", json!("{}"))];
        assert_eq!(calls(&bare), two);
        // In pieces, without an index.
        let on = [
            piece(None, "a", "f", json!("{\"x\"")),
            piece(None, "", "", json!(":1}")),
            piece(None, "b", "g", json!("{}")),
        ];
        assert_eq!(calls(&on), two);
        // Id and name with every piece.
        let again = [
            piece(Some(0), "a", "f", json!("{\"x\"")),
            piece(Some(0), "a", "f", json!(":1}")),
            piece(Some(1), "b", "g", json!("{}")),
        ];
        assert_eq!(calls(&again), two);
        // No ids at all.
        let nameless = [
            piece(Some(0), "", "f", json!("{\"x\"")),
            piece(Some(0), "", "f", json!(":1}")),
            piece(Some(0), "", "g", json!("{}")),
        ];
        assert_eq!(calls(&nameless), [owned("", "f", "{\"x\":1}"), owned("", "g", "{}")]);
    }
}
