//! Secrets in a plugin: they are left out.

use prowess_runtime::secret::{is_secret_name, is_service_token};
use serde_json::{Map, Value as Json};

use super::LostItem;

/// Keys of a schema that list values.
const VALUES: &[&str] =
    &["const", "default", "defaultValue", "enum", "example", "examples", "value"];
/// The types in a map from names to types.
const TYPES: &[&str] =
    &["any", "array", "bool", "boolean", "float", "int", "integer", "number", "object", "string"];
/// The text in place of a secret.
const LEFT_OUT: &str = "…";

/// Removes the secrets from a manifest, and returns their places.
pub(super) fn redact_manifest(manifest: &mut Map<String, Json>) -> Vec<LostItem> {
    let mut lost = Vec::new();
    for (key, value) in manifest.iter_mut() {
        redact(key, key, value, &mut lost);
    }
    lost
}

/// Returns whether a file begins with a private key, whatever its name.
pub(super) fn is_private_key(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    head.lines().any(|it| {
        let line = it.trim_start_matches('\u{feff}').trim();
        (line.starts_with("-----BEGIN ") && line.contains("PRIVATE KEY"))
            || line.starts_with("PuTTY-User-Key-File-")
    })
}

fn redact(place: &str, key: &str, value: &mut Json, lost: &mut Vec<LostItem>) {
    let is_secret = names_secret(key);
    match value {
        Json::String(text) if is_secret && may_be_secret(text) => {
            *text = LEFT_OUT.to_owned();
            lost.push(lost_secret(place));
        }
        Json::String(text) => {
            if let Some(redacted) = redact_text(text) {
                *text = redacted;
                lost.push(lost_secret(place));
            }
        }
        Json::Array(values) => {
            for (at, value) in values.iter_mut().enumerate() {
                redact(&format!("{place}[{at}]"), key, value, lost);
            }
        }
        Json::Object(parts) => {
            for key in VALUES.iter().filter(|_| is_secret) {
                if parts.shift_remove(*key).is_some() {
                    lost.push(lost_secret(&format!("{place}.{key}")));
                }
            }
            for (key, value) in parts.iter_mut() {
                redact(&format!("{place}.{key}"), key, value, lost);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn lost_secret(place: &str) -> LostItem {
    let why = "it may be a secret; the user who runs the skill sets it";
    LostItem::new(format!("a value in `{place}`"), why)
}

/// Returns whether a name is that of a secret.
fn names_secret(name: &str) -> bool {
    // Token counts of models are not secrets.
    is_secret_name(name) && !name.to_ascii_lowercase().contains("tokens")
}

/// Returns whether a text may be a secret, rather than a description of one.
fn may_be_secret(text: &str) -> bool {
    let text = text.trim();
    let is_place = text.starts_with(['$', '<', '{', '%']);
    !text.is_empty()
        && !text.contains(char::is_whitespace)
        && !is_place
        && text != LEFT_OUT
        && !TYPES.contains(&text)
}

/// Redacts the secrets in a text; `None` if there are none.
fn redact_text(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut found, mut next) = (false, Next::Other);
    for piece in text.split_inclusive(is_edge) {
        let word = piece.trim_end_matches(is_edge);
        let edge = &piece[word.len()..];
        if word.is_empty() {
            out.push_str(piece);
            continue;
        }
        let (name, value) = word.split_once(['=', ':']).unwrap_or((word, ""));
        let is_next = match next {
            Next::Secret => may_be_secret(word) && !word.starts_with('-'),
            Next::MaybeSecret => may_be_secret(word) && word.bytes().any(|it| it.is_ascii_digit()),
            Next::Colon | Next::Other => false,
        };
        next = match next {
            Next::Colon if word == ":" => Next::Secret,
            _ if names_secret(name) && edge.starts_with('"') => Next::Colon,
            _ if names_secret(name) && word.starts_with("--") => Next::Secret,
            _ if names_secret(name) && word.ends_with([':', '=']) => Next::MaybeSecret,
            _ => Next::Other,
        };
        if is_next || is_service_token(word) {
            (found, next) = (true, Next::Other);
            out.push_str(LEFT_OUT);
        } else if names_secret(name) && may_be_secret(value) {
            (found, next) = (true, Next::Other);
            out.push_str(&word[..=name.len()]);
            out.push_str(LEFT_OUT);
        } else {
            out.push_str(word);
        }
        out.push_str(edge);
    }
    found.then_some(out)
}

/// Returns whether a character separates the words of a text.
fn is_edge(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '`' | '&' | '?')
}

/// The kind of the next word of a text.
enum Next {
    /// After `--token`, and after `"token":`.
    Secret,
    /// After `token:`, where a description may follow too.
    MaybeSecret,
    /// The colon after `"token"`, if there is one.
    Colon,
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_and_words_about_them_stay() {
        let secret = [
            ("node x.js --token=abc123", "node x.js --token=…"),
            ("node x.js --api-key abc123 -v", "node x.js --api-key … -v"),
            ("API_KEY=abc123 node x.js", "API_KEY=… node x.js"),
            ("{\"apiKey\": \"abc123\"}", "{\"apiKey\": \"…\"}"),
            ("call sk-abcdef0123456789abcdef now", "call … now"),
        ];
        for (text, plain) in secret {
            assert_eq!(redact_text(text).as_deref(), Some(plain));
        }
        for text in [
            "Sets the password of the user",
            "Takes a token: the one from your account",
            "--max-tokens=4000",
            "API_KEY=$API_KEY node x.js",
            "a secret, if any",
        ] {
            assert_eq!(redact_text(text), None, "{text}");
        }
    }
}
