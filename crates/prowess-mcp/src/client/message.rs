//! Messages of a server as bytes: checks and changes before the SDK parses them.

use std::borrow::Cow;

use rmcp::model::{Implementation, ProtocolVersion};
use serde_json::Value;

/// The maximum nesting depth of a message.
pub(super) const DEPTH: usize = 120;
/// The ID of the request that asks for the revision.
pub(super) const PROBE: &str = "discover";

/// Whether a message is nested deeper than the JSON parser allows.
pub(super) fn is_deep(message: &[u8]) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in message {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth += 1,
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            return true;
        }
    }
    false
}

/// Whether a message says that a program supports 2026-07-28; `None` if it is not an answer to
/// that.
pub(super) fn discovery_answer(message: &[u8]) -> Option<bool> {
    // No other message has this ID, and few contain the word: only those are parsed here.
    let text = std::str::from_utf8(message).ok().filter(|it| it.contains(PROBE))?;
    let message: Value = serde_json::from_str(text).ok()?;
    if message["id"] != PROBE || !message["method"].is_null() {
        return None;
    }
    let versions = message["result"]["supportedVersions"].as_array();
    let own = ProtocolVersion::V_2026_07_28.as_str();
    Some(versions.is_some_and(|it| it.iter().any(|it| it == own)))
}

/// Removes the `_meta` of a result about skills, because of which the SDK would parse it as the
/// result of a tool and lose the rest.
pub(super) fn without_meta(message: &[u8]) -> Cow<'_, [u8]> {
    // Few messages contain both, and only those are parsed here.
    let text = std::str::from_utf8(message).unwrap_or_default();
    if !text.contains("\"_meta\"") || !text.contains("\"skill") {
        return message.into();
    }
    let Ok(mut parsed) = serde_json::from_slice::<Value>(message) else { return message.into() };
    let result = parsed.get_mut("result").and_then(Value::as_object_mut);
    let result = result.filter(|it| it.contains_key("skills") || it.contains_key("skill"));
    match result.and_then(|it| it.remove("_meta")) {
        Some(_) => format!("{parsed}\n").into_bytes().into(),
        None => message.into(),
    }
}

/// Returns the name and version of this client, for servers.
pub(super) fn client_info() -> Implementation {
    Implementation::new("prowess", env!("CARGO_PKG_VERSION"))
}
