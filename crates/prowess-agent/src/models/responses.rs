//! Responses, the newer API of OpenAI.

use prowess::{Message, Role};
use serde_json::{Value as Json, json};

use super::{
    adapter::{Flow, Protocol, ProviderQuirks},
    draft::{Draft, DraftPiece, Piece, count, text},
    history::{Content, HistoryPiece, PieceContent, contents, parameters, parts, split_system},
    openai::bearer,
    trouble::Trouble,
};
use crate::model::{ChatRequest, StopReason, TokenUsage, ToolDefinition};

/// The Responses API. Nothing is stored at the provider: reasoning is sent back encrypted, and no
/// other item has an id, because the provider would look it up.
#[derive(Debug)]
pub(super) struct Responses;

impl Protocol for Responses {
    fn path(&self, _: &str, _: bool) -> (&'static str, String) {
        ("/v1", "/responses".to_owned())
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, model: &str, by: &str, ask: &ChatRequest, quirks: ProviderQuirks) -> Json {
        let (system, messages) = split_system(&ask.messages);
        let input: Vec<Json> = messages.iter().flat_map(|it| items(it, by)).collect();
        let mut body = json!({"model": model, "input": input, "store": false});
        body["stream"] = (!quirks.no_stream).into();
        if !system.is_empty() {
            body["instructions"] = system.into();
        }
        if !quirks.no_thoughts {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        if !ask.tools.is_empty() {
            body["tools"] = ask.tools.iter().map(tool).collect();
        }
        if let Some(limit) = ask.max_output {
            body["max_output_tokens"] = limit.into();
        }
        if let Some(temperature) = ask.temperature {
            body["temperature"] = temperature.into();
        }
        body
    }

    fn take(&self, event: &Json, draft: &mut Draft<'_>) -> Result<Flow, Trouble> {
        let place = event["output_index"].as_u64().unwrap_or_default();
        let delta = text(event, "delta");
        match text(event, "type") {
            "error" => return Err(Trouble::in_stream(event)),
            "response.output_item.added" => begin_item(place, &event["item"], draft),
            "response.output_item.done" => end_item(place, &event["item"], draft),
            "response.output_text.delta" => draft.append_text(place, delta),
            "response.refusal.delta" => {
                draft.append_text(place, delta);
                draft.stop = Some(StopReason::Filtered);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                draft.think(delta);
            }
            "response.function_call_arguments.delta" => draft.add_arguments(place, delta),
            "response.completed" | "response.incomplete" | "response.failed" => {
                return take_whole(&event["response"], draft);
            }
            _ if event["object"] == "response" => return take_whole(event, draft),
            _ if event["error"].is_object() => return Err(Trouble::in_stream(event)),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn adapt(&self, mut quirks: ProviderQuirks, message: &str) -> ProviderQuirks {
        // A model without reasoning rejects the request for it.
        let message = message.to_lowercase();
        quirks.no_thoughts |= message.contains("encrypted content is not supported")
            || message.contains("reasoning.encrypted_content");
        quirks
    }
}

/// Returns the items that represent a message.
fn items(message: &Message, by: &str) -> Vec<Json> {
    match message.role {
        Role::Assistant => parts(message, by).into_iter().filter_map(item).collect(),
        Role::Tool => vec![json!({
            "type": "function_call_output",
            "call_id": message.call_id,
            "output": message.content,
        })],
        Role::System => {
            vec![json!({"type": "message", "role": "developer", "content": message.content})]
        }
        Role::User => {
            let content: Vec<Json> = contents(message).into_iter().map(input).collect();
            vec![json!({"type": "message", "role": "user", "content": content})]
        }
    }
}

fn input(content: Content<'_>) -> Json {
    match content {
        Content::Text(text) => json!({"type": "input_text", "text": text}),
        Content::Image(kind, data) => {
            json!({"type": "input_image", "image_url": format!("data:{kind};base64,{data}")})
        }
        Content::Link(url) => json!({"type": "input_image", "image_url": url}),
    }
}

fn item(part: HistoryPiece<'_>) -> Option<Json> {
    let mut item = match part.what {
        PieceContent::Opaque(item) => item.clone(),
        PieceContent::Text("") => return None,
        PieceContent::Text(text) => json!({
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        PieceContent::Call(call) => json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }),
    };
    part.rest.into_iter().for_each(|(name, value)| item[name] = value);
    Some(item)
}

fn tool(tool: &ToolDefinition) -> Json {
    // Schemas are strict by default, and ours may not be.
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters(tool),
        "strict": false,
    })
}

fn begin_item(place: u64, item: &Json, draft: &mut Draft<'_>) {
    if text(item, "type") == "function_call" {
        draft.begin_call(place, text(item, "call_id"), text(item, "name"));
        draft.add_arguments(place, text(item, "arguments"));
    }
}

/// Reads a completed item: earlier events contained its pieces.
fn end_item(place: u64, item: &Json, draft: &mut Draft<'_>) {
    match item["type"].as_str() {
        Some("function_call") => {
            if draft.call(place).is_none() {
                begin_item(place, item, draft);
            }
            let arguments = item["arguments"].as_str();
            if let (Some(call), Some(arguments)) = (draft.call(place), arguments) {
                call.arguments = arguments.to_owned();
            }
        }
        Some("message") => {
            let had = match draft.pieces.get(&place) {
                Some(Piece { what: DraftPiece::Text(text), .. }) => text.len(),
                _ => 0,
            };
            let content = item["content"].as_array().into_iter().flatten();
            let mut whole = String::new();
            for part in content {
                if let Some(refusal) = part["refusal"].as_str() {
                    whole.push_str(refusal);
                    draft.stop = Some(StopReason::Filtered);
                }
                whole.push_str(part["text"].as_str().unwrap_or_default());
            }
            // Text that was already reported is not reported again.
            draft.append_text(place, whole.get(had..).unwrap_or_default());
            if let (true, Some(piece)) = (item["phase"].is_string(), draft.pieces.get_mut(&place)) {
                piece.rest.insert("phase".to_owned(), item["phase"].clone());
            }
        }
        // Without its content the provider would look it up, but nothing is stored.
        Some("reasoning") if !item["encrypted_content"].is_string() => {}
        Some(_) => {
            let mut item = item.clone();
            if let Some(item) = item.as_object_mut() {
                item.remove("status");
            }
            draft
                .pieces
                .insert(place, Piece { what: DraftPiece::Opaque(item), ..Piece::default() });
        }
        None => {}
    }
}

fn take_whole(response: &Json, draft: &mut Draft<'_>) -> Result<Flow, Trouble> {
    for (place, item) in (0..).zip(response["output"].as_array().into_iter().flatten()) {
        if !draft.pieces.contains_key(&place) {
            end_item(place, item, draft);
        }
    }
    let usage = &response["usage"];
    draft.spent = TokenUsage {
        input: count(&usage["input_tokens"]),
        output: count(&usage["output_tokens"]),
        cached: count(&usage["input_tokens_details"]["cached_tokens"]),
        estimated: false,
    };
    match response["status"].as_str() {
        Some("failed" | "cancelled") => return Err(Trouble::in_stream(response)),
        Some("incomplete") => {
            let reason = &response["incomplete_details"]["reason"];
            let is_filtered = reason == "content_filter";
            draft.stop = Some(if is_filtered { StopReason::Filtered } else { StopReason::Length });
        }
        _ => drop(draft.stop.get_or_insert_default()),
    }
    Ok(Flow::Over)
}
