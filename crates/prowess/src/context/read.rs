//! Reads a history from a file.

use serde_json::Value as Json;

use super::message::{Call, Message, Role, text_of};

/// The error for a text that is not a history.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// It is not JSON.
    #[error("line {line}, column {column}: the history is not JSON")]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// One of its entries is not a message.
    #[error("message {number} of the history cannot be read")]
    NotAMessage {
        /// The number of the entry, from 1.
        number: usize,
        /// The cause.
        source: serde_json::Error,
    },
}

/// Reads a history: a JSON array of messages, or one message per line. Calls and results in the
/// parts of a message, as in Anthropic's API, become calls and messages.
pub fn history(text: &str) -> Result<Vec<Message>, HistoryError> {
    let text = text.trim_start_matches('\u{FEFF}');
    let entries: Vec<Json> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(|error| not_json(error, 0))?
    } else {
        let lines = text.lines().enumerate().filter(|it| !it.1.trim().is_empty());
        lines
            .map(|(at, line)| serde_json::from_str(line).map_err(|error| not_json(error, at)))
            .collect::<Result<_, _>>()?
    };
    let mut messages = Vec::with_capacity(entries.len());
    for (at, entry) in entries.into_iter().enumerate() {
        let message: Message = serde_json::from_value(entry)
            .map_err(|source| HistoryError::NotAMessage { number: at + 1, source })?;
        unfold(message, &mut messages);
    }
    Ok(messages)
}

fn not_json(source: serde_json::Error, before: usize) -> HistoryError {
    HistoryError::NotJson { line: before + source.line(), column: source.column(), source }
}

/// Extracts calls and results from the parts of a message.
fn unfold(mut message: Message, messages: &mut Vec<Message>) {
    if !message.parts.iter().any(is_folded) {
        messages.push(message);
        return;
    }
    let (folded, parts): (Vec<Json>, Vec<Json>) = message.parts.into_iter().partition(is_folded);
    for part in folded {
        if part["type"] == "tool_use" {
            let (id, name) = (string(&part["id"]), string(&part["name"]));
            let arguments = part["input"].to_string();
            message.calls.push(Call { id, name, arguments, ..Call::default() });
        } else {
            let content = match &part["content"] {
                Json::Array(parts) => text_of(parts),
                other => string(other),
            };
            let result = Message::new(Role::Tool, content);
            messages.push(Message { call_id: Some(string(&part["tool_use_id"])), ..result });
        }
    }
    if !parts.is_empty() || !message.calls.is_empty() {
        messages.push(Message { content: text_of(&parts), parts, ..message });
    }
}

fn is_folded(part: &Json) -> bool {
    part["type"] == "tool_use" || part["type"] == "tool_result"
}

fn string(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
