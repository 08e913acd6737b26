//! Secrets, taken out of what is written down.

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex, RegexSet};
use serde_json::Value as Json;

/// What stands where a secret stood.
const MASK: &str = "[masked]";

/// A shape that secrets have. The groups `before` and `after` stay; `secret` goes.
struct Shape {
    regex: Regex,
    /// Whether words that are no secret have this shape, too.
    is_vague: bool,
}

/// What a secret is called, as the end of a name: `OPENAI_API_KEY`, `password`.
const NAMES: &str = "api[_-]?key|access[_-]?key|access[_-]?token|auth[_-]?token|refresh[_-]?token|\
                     client[_-]?secret|secret[_-]?key|private[_-]?key|password|passwd|secret";

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let shape = |is_vague: bool, pattern: &str| Shape {
        regex: Regex::new(pattern).expect("the pattern is a constant that a test has compiled"),
        is_vague,
    };
    vec![
        shape(
            false,
            r"(?s)(?P<before>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?P<secret>.*?)(?P<after>-----END|\z)",
        ),
        // Headers, also as JSON, and as JSON within JSON.
        shape(
            false,
            r#"(?i)(?P<before>\b(?:(?:proxy-)?authorization|x-[a-z-]*(?:key|token)|api-key|(?:set-)?cookie)\\*["']?\s*[:=]\s*\\*["']?)(?P<secret>[^"'\\\r\n]+)"#,
        ),
        shape(true, r"(?i)(?P<before>\b(?:bearer|basic)\s+)(?P<secret>[A-Za-z0-9._~+/=-]{6,})"),
        shape(
            false,
            r#"(?i)(?P<before>[?&;](?:[a-z_-]*key|[a-z_-]*token|auth|password|passwd|pwd|[a-z_-]*secret|sig|[a-z-]*signature|[a-z-]*credential)=)(?P<secret>[^&#\s"'<>\\]+)"#,
        ),
        shape(false, r#"(?P<before>://[^/\s:@"']*:)(?P<secret>[^@/\s"']+)(?P<after>@)"#),
        shape(
            true,
            r"(?P<before>\b(?:sk|rk|pk)[-_]|\bgh[opusr]_|\bgithub_pat_|\bglpat-|\bxox[abeprs]-|\bhf_|\bnpm_|\bpypi-|\bAIza|\b(?:AKIA|ASIA)|\bya29\.)(?P<secret>[A-Za-z0-9_.-]{12,})",
        ),
        shape(
            false,
            r"(?P<before>\beyJ)(?P<secret>[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+)",
        ),
        shape(
            false,
            &format!(
                r#"(?i)(?P<before>(?:{NAMES})\\*["']?\s*[:=]\s*\\*["'])(?P<secret>[^"'\\\r\n]+)"#
            ),
        ),
        shape(
            true,
            &format!(
                r#"(?i)(?P<before>(?:{NAMES})\s*[:=]\s*)(?P<secret>[^\s"'\\,;&()\[\]{{}}]{{6,}})"#
            ),
        ),
    ]
});

/// Finds texts that may have a secret, in one go: few do. A word begins where its ASCII does, which is
/// found faster and in no fewer places.
static ANY: LazyLock<RegexSet> = LazyLock::new(|| {
    let patterns = SHAPES.iter().map(|it| it.regex.as_str().replace(r"\b", r"(?-u:\b)"));
    RegexSet::new(patterns).expect("the patterns are constants that a test has compiled")
});

/// Replaces what looks like a secret: keys, tokens and passwords in headers, in addresses, behind their
/// names, or with the first letters that their makers give them. What it does not know it leaves.
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    if !ANY.is_match(text) {
        return masked;
    }
    for shape in &*SHAPES {
        let replaced = shape.regex.replace_all(&masked, |found: &Captures<'_>| {
            let group = |name| found.name(name).map_or("", |it| it.as_str());
            let secret = group("secret");
            if secret.contains(MASK) || (shape.is_vague && !is_random(secret)) {
                return found[0].to_owned();
            }
            format!("{}{MASK}{}", group("before"), group("after"))
        });
        if let Cow::Owned(text) = replaced {
            masked = Cow::Owned(text);
        }
    }
    masked
}

/// Does the same to every text in a JSON value.
pub(crate) fn mask_json(json: &mut Json) {
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = format!(
            "(?i)^(?:[a-z0-9_-]*(?:{NAMES})|(?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]*(?:key|token))$"
        );
        Regex::new(&pattern).expect("the pattern is a constant that a test has compiled")
    });
    match json {
        Json::String(text) => {
            if let Cow::Owned(masked) = mask(text) {
                *text = masked;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(mask_json),
        Json::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Json::String(text) if NAME.is_match(name) => *text = MASK.to_owned(),
                    value => mask_json(value),
                }
            }
        }
        _ => {}
    }
}

/// Whether nobody would write it as a word.
fn is_random(text: &str) -> bool {
    text.len() >= 32 || text.bytes().any(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked() {
        for (text, masked) in [
            ("sk-proj-abc123def456ghi7", "sk-[masked]"),
            ("use ghp_abcdefghij1234567890 now", "use ghp_[masked] now"),
            ("Authorization: Bearer abc.def", "Authorization: [masked]"),
            ("curl -H 'X-Api-Key: hunter'", "curl -H 'X-Api-Key: [masked]'"),
            ("Bearer hunter2", "Bearer [masked]"),
            ("https://x.test/a?key=abc&b=1", "https://x.test/a?key=[masked]&b=1"),
            ("postgres://me:pass@db/x", "postgres://me:[masked]@db/x"),
            (r#"{"Authorization":"Token a"}"#, r#"{"Authorization":"[masked]"}"#),
            (r#"{\"password\":\"abc\"}"#, r#"{\"password\":\"[masked]\"}"#),
            ("OPENAI_API_KEY=abcdef123", "OPENAI_API_KEY=[masked]"),
            ("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln", "eyJ[masked]"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII", "-----BEGIN RSA PRIVATE KEY-----[masked]"),
        ] {
            assert_eq!(mask(text), masked);
            assert_eq!(mask(masked), masked, "it is masked once");
        }
        let mut json =
            json!({"headers": {"authorization": "a", "accept": "b"}, "n": [1, "Bearer x1y2z3"]});
        mask_json(&mut json);
        let masked =
            json!({"headers": {"authorization": MASK, "accept": "b"}, "n": [1, "Bearer [masked]"]});
        assert_eq!(json, masked);
    }

    #[test]
    fn words_are_not() {
        for text in [
            "a basic understanding of sk-learn and bearer bonds",
            "let password = ask_for_password();",
            "key=value, but not in an address",
            "see https://example.com/path:8080/x?page=2",
            "`\"password\":{\"type\":\"string\"}`",
            "",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
