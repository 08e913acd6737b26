//! The Gemini API.

use std::{cell::Cell, collections::BTreeMap};

use prowess::{Message, Role};
use serde_json::{Map, Value as Json, json};

use super::{
    adapter::{Flow, Protocol, ProviderQuirks},
    draft::{Draft, DraftPiece, Piece, count, text},
    history::{
        BEGIN, Content, HistoryPiece, PieceContent, arguments, contents, parts, split_system,
    },
    trouble::Trouble,
};
use crate::model::{ChatRequest, StopReason, TokenUsage, ToolDefinition};

/// Contents and parts: the model's role is `model`, and results are matched by the name of their
/// tool.
#[derive(Debug)]
pub(super) struct Gemini;

/// The field with the signature of a part, which has to be sent back with it.
const SIGNATURE: &str = "thoughtSignature";
/// The documented placeholder for a signature where another model made the call.
const FOREIGN: &str = "skip_thought_signature_validator";

impl Protocol for Gemini {
    fn path(&self, model: &str, stream: bool) -> (&'static str, String) {
        let encoded: String = model
            .bytes()
            .map(|byte: u8| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
                    char::from(byte).to_string()
                }
                _ => format!("%{byte:02X}"),
            })
            .collect();
        let place = if encoded.contains('/') { "" } else { "models/" };
        let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        ("/v1beta", format!("/{place}{encoded}:{verb}"))
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        if key.is_empty() { Vec::new() } else { vec![("x-goog-api-key", key.to_owned())] }
    }

    fn body(&self, model: &str, by: &str, ask: &ChatRequest, _: ProviderQuirks) -> Json {
        let (system, messages) = split_system(&ask.messages);
        let mut body = json!({"contents": turns(messages, model, by)});
        if !system.is_empty() {
            body["systemInstruction"] = json!({"parts": [{"text": system}]});
        }
        if !ask.tools.is_empty() {
            let tools: Vec<Json> = ask.tools.iter().map(tool).collect();
            body["tools"] = json!([{"functionDeclarations": tools}]);
        }
        if let Some(limit) = ask.max_output {
            body["generationConfig"]["maxOutputTokens"] = limit.into();
        }
        if let Some(temperature) = ask.temperature {
            body["generationConfig"]["temperature"] = temperature.into();
        }
        body
    }

    fn take(&self, event: &Json, draft: &mut Draft<'_>) -> Result<Flow, Trouble> {
        if event["error"].is_object() || event.is_array() {
            return Err(Trouble::in_stream(event));
        }
        if event["usageMetadata"].is_object() {
            draft.spent = read_usage(&event["usageMetadata"]);
        }
        let feedback = &event["promptFeedback"];
        if let Some(reason) = feedback["blockReason"].as_str() {
            draft.stop = Some(StopReason::Filtered);
            let message = feedback["blockReasonMessage"].as_str();
            draft.why = message.unwrap_or(&format!("the prompt was blocked: {reason}")).to_owned();
            return Ok(Flow::Over);
        }
        let candidate = &event["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            take_part(part, draft);
        }
        let Some(reason) = candidate["finishReason"].as_str() else { return Ok(Flow::More) };
        let said = candidate["finishMessage"].as_str().unwrap_or(reason);
        match reason {
            "STOP" | "FINISH_REASON_UNSPECIFIED" => draft.stop = Some(StopReason::Done),
            "MAX_TOKENS" => draft.stop = Some(StopReason::Length),
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
                // It may do better when it is asked again.
                let message = format!("the model made an invalid call: {said}");
                return Err(Trouble::in_stream(&json!({"message": message})));
            }
            reason if FILTERS.contains(&reason) => {
                draft.stop = Some(StopReason::Filtered);
                draft.why = match candidate["finishMessage"].as_str() {
                    Some(said) => format!("the reply was blocked ({reason}): {said}"),
                    None => format!("the reply was blocked: {reason}"),
                };
            }
            // Text and calls count, whatever the stop reason means.
            reason => {
                draft.stop = Some(StopReason::Done);
                draft.why = format!("the reply ended for an unknown reason: {reason}");
            }
        }
        Ok(Flow::Nearly)
    }
}

/// The stop reasons of a filtered reply.
const FILTERS: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "NO_IMAGE",
];

fn turns(messages: &[Message], model: &str, by: &str) -> Vec<Json> {
    // Results are matched by the name of the tool, and by an id if the call had one.
    let mut calls: BTreeMap<&str, (&str, Option<Json>)> = BTreeMap::new();
    let mut turns: Vec<(&str, Vec<Json>)> = Vec::new();
    for message in messages {
        let (role, parts) = match message.role {
            Role::Assistant => {
                let parts = parts(message, by);
                for part in &parts {
                    if let PieceContent::Call(call) = part.what {
                        calls.insert(&call.id, (&call.name, part.rest.get("id").cloned()));
                    }
                }
                ("model", message_parts(parts, model))
            }
            Role::Tool => {
                let id = message.call_id.as_deref().unwrap_or_default();
                let (name, id) = calls.get(id).cloned().unwrap_or((id, None));
                let mut response = json!({"name": name, "response": {"output": message.content}});
                if let Some(id) = id {
                    response["id"] = id;
                }
                ("user", vec![json!({"functionResponse": response})])
            }
            Role::System | Role::User => {
                ("user", contents(message).into_iter().filter_map(content).collect())
            }
        };
        if parts.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some(last) if last.0 == role => last.1.extend(parts),
            _ => turns.push((role, parts)),
        }
    }
    if turns.first().is_none_or(|it| it.0 == "model") {
        turns.insert(0, ("user", vec![json!({"text": BEGIN})]));
    }
    turns.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

fn content(content: Content<'_>) -> Option<Json> {
    Some(match content {
        Content::Text("") => return None,
        Content::Text(text) => json!({"text": text}),
        Content::Image(kind, data) => json!({"inlineData": {"mimeType": kind, "data": data}}),
        Content::Link(url) => json!({"fileData": {"fileUri": url}}),
    })
}

/// Returns the parts of a model's message, with their signatures.
fn message_parts(parts: Vec<HistoryPiece<'_>>, model: &str) -> Vec<Json> {
    let is_own = parts.iter().any(|it| it.rest.contains_key(SIGNATURE));
    let mut sent = Vec::new();
    let mut is_first_call = true;
    for part in parts {
        let mut rest = part.rest;
        let id = rest.remove("id");
        let mut json = match part.what {
            PieceContent::Text("") if rest.is_empty() => continue,
            PieceContent::Text(text) => json!({"text": text}),
            PieceContent::Opaque(part) => part.clone(),
            PieceContent::Call(call) => {
                let mut made = json!({"name": call.name, "args": arguments(call)});
                if let Some(id) = id {
                    made["id"] = id;
                }
                // From the third generation on, the first call of a step has to be signed.
                if std::mem::take(&mut is_first_call) && !is_own && wants_signatures(model) {
                    rest.insert(SIGNATURE.to_owned(), FOREIGN.into());
                }
                json!({"functionCall": made})
            }
        };
        rest.into_iter().for_each(|(name, value)| json[name] = value);
        sent.push(json);
    }
    sent
}

fn wants_signatures(model: &str) -> bool {
    !["gemini-1", "gemini-2", "gemma"].iter().any(|it| model.contains(it))
}

fn take_part(part: &Json, draft: &mut Draft<'_>) {
    let mut rest = Map::new();
    if let Some(signature) = part.get(SIGNATURE) {
        rest.insert(SIGNATURE.to_owned(), signature.clone());
    }
    if let Some(call) = part.get("functionCall").filter(|it| it.is_object()) {
        let (id, name) = (text(call, "id"), text(call, "name"));
        let place = draft.next();
        let piece = draft.begin_call(place, id, name);
        if !id.is_empty() {
            rest.insert("id".to_owned(), id.into());
        }
        piece.rest = rest;
        let arguments = call.get("args").map_or_else(|| "{}".to_owned(), Json::to_string);
        draft.add_arguments(place, &arguments);
    } else if let Some(text) = part["text"].as_str() {
        if part["thought"] == true {
            return draft.think(text);
        }
        // A signature belongs to its own part, not to the text around it.
        let last = draft.pieces.last_key_value().filter(|(_, piece)| {
            matches!(piece.what, DraftPiece::Text(_)) && piece.rest.is_empty() && rest.is_empty()
        });
        let place = last.map_or_else(|| draft.next(), |it| *it.0);
        draft.append_text(place, text);
        if let Some(piece) = draft.pieces.get_mut(&place) {
            piece.rest = rest;
        }
    } else if part.as_object().is_some_and(|it| !it.is_empty()) {
        let what = DraftPiece::Opaque(part.clone());
        draft.pieces.insert(draft.next(), Piece { what, ..Piece::default() });
    }
}

fn read_usage(usage: &Json) -> TokenUsage {
    TokenUsage {
        input: count(&usage["promptTokenCount"]) + count(&usage["toolUsePromptTokenCount"]),
        output: count(&usage["candidatesTokenCount"]) + count(&usage["thoughtsTokenCount"]),
        cached: count(&usage["cachedContentTokenCount"]),
        estimated: false,
    }
}

fn tool(tool: &ToolDefinition) -> Json {
    let mut told = json!({"name": tool.name, "description": tool.description});
    let schema = subset(&tool.input_schema, &tool.input_schema, 0, &Cell::new(MAX_SCHEMAS));
    // An object without properties is rejected for a tool without input.
    if schema["properties"].as_object().is_some_and(|it| !it.is_empty()) {
        told["parameters"] = schema;
    }
    told
}

/// The schema keywords that are copied unchanged.
const TAKEN: &[&str] = &[
    "description",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
];
/// The supported formats.
const FORMATS: &[&str] = &["date-time", "float", "double", "int32", "int64"];
/// The maximum depth and number of subschemas, because a recursive schema has no end.
const MAX_DEPTH: usize = 16;
const MAX_SCHEMAS: usize = 2000;

/// Translates as much of a JSON schema as the supported OpenAPI subset can express. The result is
/// weaker, never different: the complete schema is checked when the tool is called.
fn subset(schema: &Json, root: &Json, depth: usize, left: &Cell<usize>) -> Json {
    let schema = resolve(schema, root);
    let mut made = Map::new();
    left.set(left.get().saturating_sub(1));
    if depth > MAX_DEPTH || left.get() == 0 {
        return json!({"type": "object"});
    }
    let inner = |it: &Json| subset(it, root, depth + 1, left);
    for name in TAKEN {
        if let Some(value) = schema.get(name) {
            made.insert((*name).to_owned(), value.clone());
        }
    }
    let kind = kind(schema, &mut made);
    let choices = ["anyOf", "oneOf"].iter().find_map(|it| schema.get(it)?.as_array());
    if let Some(choices) = choices {
        let (none, some): (Vec<&Json>, Vec<&Json>) =
            choices.iter().partition(|it| it["type"] == "null");
        if !none.is_empty() {
            made.insert("nullable".to_owned(), true.into());
        }
        match &some[..] {
            [one] => add(&mut made, inner(one)),
            _ => {
                let some: Vec<Json> = some.into_iter().map(inner).collect();
                made.insert("anyOf".to_owned(), some.into());
            }
        }
        return made.into();
    }
    for all in schema["allOf"].as_array().into_iter().flatten() {
        add(&mut made, inner(all));
    }
    let constant = schema.get("const").map(std::slice::from_ref);
    let values = schema["enum"].as_array().map(Vec::as_slice).or(constant).unwrap_or_default();
    let values: Vec<&Json> = values.iter().filter(|it| !it.is_null()).collect();
    if !values.is_empty() && values.iter().all(|it| it.is_string()) {
        made.insert("type".to_owned(), "string".into());
        made.insert("enum".to_owned(), json!(values));
    }
    if schema["format"].as_str().is_some_and(|it| FORMATS.contains(&it)) {
        made.insert("format".to_owned(), schema["format"].clone());
    }
    if kind == Some("array") {
        let items = schema.get("items").map_or_else(|| json!({"type": "string"}), inner);
        made.insert("items".to_owned(), items);
    }
    if let Some(properties) = schema["properties"].as_object().filter(|it| !it.is_empty()) {
        let required: Vec<&Json> = schema["required"].as_array().into_iter().flatten().collect();
        let required: Vec<&Json> = required
            .into_iter()
            .filter(|it| it.as_str().is_some_and(|it| properties.contains_key(it)))
            .collect();
        if !required.is_empty() {
            made.insert("required".to_owned(), json!(required));
        }
        let properties: Map<String, Json> =
            properties.iter().map(|(name, it)| (name.clone(), inner(it))).collect();
        made.insert("properties".to_owned(), properties.into());
        made.entry("type").or_insert_with(|| "object".into());
    }
    made.into()
}

/// Adds the fields that are not set yet.
fn add(made: &mut Map<String, Json>, more: Json) {
    for (name, value) in more.as_object().into_iter().flatten() {
        made.entry(name).or_insert_with(|| value.clone());
    }
}

/// Writes the type of a schema; one of several, with null split_system.
fn kind<'s>(schema: &'s Json, made: &mut Map<String, Json>) -> Option<&'s str> {
    let kind = match &schema["type"] {
        Json::String(kind) => Some(kind.as_str()),
        Json::Array(kinds) => {
            if kinds.iter().any(|it| it == "null") {
                made.insert("nullable".to_owned(), true.into());
            }
            kinds.iter().filter_map(Json::as_str).find(|it| *it != "null")
        }
        _ => None,
    };
    if let Some(kind) = kind {
        made.insert("type".to_owned(), kind.into());
    }
    kind
}

/// Returns the schema that a `$ref` points to.
fn resolve<'s>(schema: &'s Json, root: &'s Json) -> &'s Json {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let Some(path) = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#')) else { break };
        let Some(there) = root.pointer(path) else { break };
        schema = there;
    }
    schema
}
