//! Messages of a server as bytes: what is checked, read or changed before the SDK reads them.

use std::borrow::Cow;

use rmcp::model::{Implementation, ProtocolVersion};
use serde_json::Value;

/// How deep a message may be nested.
pub(super) const DEPTH: usize = 120;
/// The id of the request that asks for the revision.
pub(super) const PROBE: &str = "discover";

/// Whether a message is nested deeper than JSON is read.
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

/// Whether a message says that a program knows 2026-07-28; nothing where it is no answer to that.
pub(super) fn discovered(message: &[u8]) -> Option<bool> {
    // No other message has this id, and few have the word: only those are worth reading here as well.
    let text = std::str::from_utf8(message).ok().filter(|it| it.contains(PROBE))?;
    let message: Value = serde_json::from_str(text).ok()?;
    if message["id"] != PROBE || !message["method"].is_null() {
        return None;
    }
    let versions = message["result"]["supportedVersions"].as_array();
    let own = ProtocolVersion::V_2026_07_28.as_str();
    Some(versions.is_some_and(|it| it.iter().any(|it| it == own)))
}

/// A message without the `_meta` of a result about skills, for which the SDK would take it for the
/// result of a tool and lose the rest.
pub(super) fn without_meta(message: &[u8]) -> Cow<'_, [u8]> {
    // Few messages have both, and only those are worth reading here as well.
    let has_both = |it: &str| it.contains("\"_meta\"") && it.contains("\"skill");
    if !std::str::from_utf8(message).is_ok_and(has_both) {
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

/// Names this client to servers.
pub(super) fn client_info() -> Implementation {
    Implementation::new("prowess", env!("CARGO_PKG_VERSION"))
}
