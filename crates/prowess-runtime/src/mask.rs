//! Masking of secrets, wherever text is logged, traced or printed: the patterns of secrets, the
//! names they are kept under, and the values that are known.

use std::{borrow::Cow, fmt, iter::zip, sync::LazyLock};

use regex::{Captures, Regex, RegexSet};
use serde_json::Value as Json;

use crate::known_secret::is_secret_value;

/// The replacement for a secret.
pub const MASK: &str = "[masked]";

/// A pattern of secrets. The groups `before` and `after` stay; `secret` is replaced.
struct Shape {
    regex: Regex,
    /// Whether ordinary words match it too.
    is_vague: bool,
}

/// The names under which secrets are kept, in lower case, each as its words. Those in the second
/// list are also names of other things, and count only where nothing else can be meant.
const NAMES: &[&str] = &[
    "access key",
    "access token",
    "api key",
    "auth key",
    "auth token",
    "client secret",
    "passphrase",
    "passwd",
    "password",
    "private key",
    "refresh token",
    "secret",
    "secret key",
];
const VAGUE_NAMES: &[&str] = &["authorization", "cookie", "credential", "token"];
/// Endings of names that give the place of a secret, not the secret.
const PLACES: &[&str] = &["file", "path", "dir", "url", "envvar"];
/// The beginnings of the tokens of well-known services, and the rest of one.
const TOKEN: &str = r"(?P<before>\b(?:sk|rk|pk)[-_]|\bgh[opusr]_|\bgithub_pat_|\bglpat-|\bxox[abeprs]-|\bhf_|\bnpm_|\bpypi-|\bAIza|\b(?:AKIA|ASIA)|\bya29\.)(?P<secret>[A-Za-z0-9_.-]{12,})";

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let names = names();
    let quoted =
        format!(r#"(?i)(?P<before>(?:{names})\\*["']?\s*[:=]\s*\\*["'])(?P<secret>[^"'\\\r\n]+)"#);
    let bare =
        format!(r#"(?i)(?P<before>(?:{names})\s*[:=]\s*)(?P<secret>[^\s"'\\,;&()\[\]{{}}]{{6,}})"#);
    [
        (
            false,
            r"(?s)(?P<before>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?P<secret>.*?)(?P<after>-----END|\z)",
        ),
        // Headers, also as JSON, and as JSON within JSON.
        (
            false,
            r#"(?i)(?P<before>\b(?:(?:proxy-)?authorization|x-[a-z-]*(?:key|token)|api-key|(?:set-)?cookie)\\*["']?\s*[:=]\s*\\*["']?)(?P<secret>[^"'\\\r\n]+)"#,
        ),
        (true, r"(?i)(?P<before>\b(?:bearer|basic)\s+)(?P<secret>[A-Za-z0-9._~+/=-]{6,})"),
        (
            false,
            r#"(?i)(?P<before>[?&;](?:[a-z_-]*key|[a-z_-]*token|auth|password|passwd|pwd|[a-z_-]*secret|sig|[a-z-]*signature|[a-z-]*credential)=)(?P<secret>[^&#\s"'<>\\]+)"#,
        ),
        (false, r#"(?P<before>://[^/\s:@"']*:)(?P<secret>[^@/\s"']+)(?P<after>@)"#),
        (true, TOKEN),
        (
            false,
            r"(?P<before>\beyJ)(?P<secret>[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+)",
        ),
        (false, &quoted),
        (true, &bare),
    ]
    .map(|(is_vague, pattern)| Shape { regex: compile(pattern), is_vague })
    .into()
});

/// Compiles a pattern of this file.
fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant that a test has compiled")
}

/// Returns the pattern of the names of secrets, as the end of a variable or field name:
/// `OPENAI_API_KEY`, `password`.
fn names() -> String {
    NAMES.join("|").replace(' ', "[_-]?")
}

/// Whether a variable, field or option of this name keeps a secret: `API_KEY`, `--token`,
/// `accessToken`. The name of a file or URL with a secret does not.
pub fn is_secret_name(name: &str) -> bool {
    let letters: String = name.chars().filter(|it| it.is_alphanumeric()).collect();
    let letters = letters.to_ascii_lowercase();
    let mut parts = NAMES.iter().chain(VAGUE_NAMES);
    parts.any(|it| letters.contains(&it.replace(' ', "")))
        && !PLACES.iter().any(|it| letters.ends_with(it))
}

/// Whether a word begins like the token of a well-known service.
pub fn is_service_token(word: &str) -> bool {
    static REGEX: LazyLock<Regex> = LazyLock::new(|| compile(TOKEN));
    REGEX.captures(word).is_some_and(|it| it.get_match().start() == 0 && is_random(&it["secret"]))
}

/// Finds texts that may contain a secret in a single pass, since few do. Word boundaries are ASCII,
/// which is faster and finds no fewer places.
static ANY: LazyLock<RegexSet> = LazyLock::new(|| {
    let patterns = SHAPES.iter().map(|it| it.regex.as_str().replace(r"\b", r"(?-u:\b)"));
    RegexSet::new(patterns).expect("the patterns are constants that a test has compiled")
});

/// Replaces everything that looks like a secret: keys, tokens and passwords in headers, in URLs,
/// after their names, or with the prefixes of known vendors. Text that matches no pattern is left
/// unchanged.
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

/// Secrets that are known by their value, such as the API key of a model.
///
/// A value that could be an ordinary word is not treated as a secret: local servers are often given
/// `x`, `none` or `ollama` as a key, and masking that would alter normal text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KnownSecrets {
    values: Vec<String>,
}

impl KnownSecrets {
    /// Keeps those values that can be distinguished from ordinary words.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        Self { values: values.into_iter().filter(|it| is_secret_value(it)).collect() }
    }

    /// Returns a text with these secrets masked.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace(text, MASK)
    }

    /// Returns a line of JSON with these secrets masked, also in their JSON-escaped form.
    pub fn mask_line<'t>(&self, line: &'t str) -> Cow<'t, str> {
        let mut masked = self.replace(line, MASK);
        for secret in &self.values {
            let quoted = Json::from(secret.as_str()).to_string();
            let quoted = quoted.trim_matches('"');
            if quoted != secret && masked.contains(quoted) {
                masked = masked.replace(quoted, MASK).into();
            }
        }
        masked
    }

    /// Returns a text with these secrets replaced by `by`.
    pub fn replace<'t>(&self, text: &'t str, by: &str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        for secret in self.values.iter().filter(|it| text.contains(it.as_str())) {
            masked = masked.replace(secret.as_str(), by).into();
        }
        masked
    }
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownSecrets").field("values", &self.values.len()).finish()
    }
}

/// Masks a text that arrives in pieces: known secrets, and anything that looks like one. Text that
/// the next piece may turn into a secret is held back until that piece arrives.
#[derive(Debug, Clone, Default)]
pub struct Masking {
    secrets: KnownSecrets,
    /// The text received; everything before some place in it has been emitted.
    text: String,
    /// The number of bytes of its masked form that were emitted.
    said: usize,
    /// The length in bytes from which scanning again is worthwhile.
    due: usize,
}

/// A suffix that turns every possible beginning of a secret into a secret.
const PROBE: &str = "A1b2C3d4E5f6G7h8.A1b2C3d4E5f6G7h8.A1b2C3d4@";
/// The size in bytes above which emitted text is discarded.
const ROOM: usize = 512;

impl Masking {
    /// Creates a masker for these secrets and all known patterns.
    pub fn new(secrets: KnownSecrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// Adds a piece, and returns the text that can be shown now.
    pub fn take(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        if self.text.len() < self.due {
            return String::new();
        }
        let masked = self.mask(&self.text);
        let probed = self.mask(&format!("{}{PROBE}", self.text));
        let same = zip(masked.bytes(), probed.bytes()).take_while(|(a, b)| a == b).count();
        let open = self.open_end();
        let kept = if masked.ends_with(open) { open.len() } else { 0 };
        let sure = masked.floor_char_boundary(same.min(masked.len() - kept));
        let shown = masked.get(self.said..sure).unwrap_or_default().to_owned();
        self.said = self.said.max(sure);
        self.forget(&probed);
        shown
    }

    /// Returns the text that was held back, when no more pieces will come.
    pub fn finish(&mut self) -> String {
        let masked = self.mask(&self.text);
        let shown = masked.get(self.said..).unwrap_or_default().to_owned();
        (self.said, self.due) = (0, 0);
        self.text.clear();
        shown
    }

    fn mask(&self, text: &str) -> String {
        mask(&self.secrets.mask(text)).into_owned()
    }

    /// Returns the end of the text that may be the beginning of a known secret.
    fn open_end(&self) -> &str {
        let most = self
            .secrets
            .values
            .iter()
            .map(|secret: &String| {
                let ends = secret.char_indices().map(|it| it.0).rev();
                ends.into_iter().find(|at| self.text.ends_with(&secret[..*at])).unwrap_or(0)
            })
            .max()
            .unwrap_or(0);
        &self.text[self.text.len() - most..]
    }

    /// Discards text emitted long ago, at a place where later text cannot change what is masked.
    fn forget(&mut self, probed: &str) {
        let length = self.text.len();
        if length <= ROOM {
            return;
        }
        self.due = length + length / 8;
        let old = &self.text[..self.text.floor_char_boundary(length - ROOM / 2)];
        let Some(at) = old.rfind(char::is_whitespace) else { return };
        let before = self.mask(&self.text[..at]);
        let behind = self.mask(&format!("{}{PROBE}", &self.text[at..]));
        if self.said >= before.len() && probed.strip_prefix(&*before) == Some(&behind) {
            self.text.drain(..at);
            self.said -= before.len();
            self.due = 0;
        }
    }
}

/// Applies [`mask`] to every text in a JSON value.
pub fn mask_json(json: &mut Json) {
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        compile(&format!(
            "(?i)^(?:[a-z0-9_-]*(?:{})|(?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]*(?:key|token))$",
            names()
        ))
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

/// Whether it looks random rather than like a word.
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
    fn what_comes_in_pieces_is_masked_as_if_it_came_at_once() {
        let key = "hunter2-Two";
        let long = format!("{} password: hunter2x and {}", "words ".repeat(150), "y ".repeat(300));
        for text in [
            "use ghp_abcdefghij1234567890 now",
            "Authorization: Bearer abc.def ghi\nAccept: all",
            "ask https://me:pass@x.test/a?key=abc&b=1 for it",
            "\"password\": \"my long phrase\", \"user\": \"me\"",
            "eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln",
            "-----BEGIN RSA PRIVATE KEY-----\nMII\nabc def\n-----END RSA PRIVATE KEY-----\nend",
            "the key is hunter2-Two, not hunter2-T",
            "ä ö password=äöü123456 ü",
            &long,
        ] {
            let whole = mask(&text.replace(key, MASK)).into_owned();
            for size in [1, 3, 100] {
                let mut masking = Masking::new(KnownSecrets::new([key.to_owned()]));
                let chars: Vec<char> = text.chars().collect();
                let mut shown = String::new();
                for piece in chars.chunks(size) {
                    shown.push_str(&masking.take(&piece.iter().collect::<String>()));
                    assert!(whole.starts_with(&shown), "{shown}");
                }
                shown.push_str(&masking.finish());
                assert_eq!(shown, whole, "in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_can_be_no_secret_is_not_held_back() {
        let mut masking = Masking::new(KnownSecrets::new(["hunter2x".to_owned()]));
        for piece in ["slow ", "words", " and", "\nmore, of ", "the h", "ouse"] {
            let held = if piece == "the h" { 1 } else { 0 };
            let shown = masking.take(piece);
            let more = if piece == "ouse" { 1 } else { 0 };
            assert_eq!(shown.len(), piece.len() - held + more, "{piece}");
        }
        for number in 0..500 {
            masking.take(&format!("{number} "));
        }
        assert!(masking.text.len() <= ROOM + ROOM / 8 + 8, "{}", masking.text.len());
    }

    #[test]
    fn a_key_that_is_a_word_rewrites_nothing() {
        let text = "Unexpected value: Hello, none of the local ollama servers said x.";
        for key in ["x", "value", "Hello", "none", "local", "ollama", "no-key-required", ""] {
            let secrets = KnownSecrets::new([key.to_owned()]);
            assert_eq!(secrets.mask(text), text, "{key}");
            let mut masking = Masking::new(secrets);
            assert_eq!(masking.take(text) + &masking.finish(), text, "{key}");
        }
        let secrets = KnownSecrets::new(["se\"cret1x".to_owned(), "sk-0123456789".to_owned()]);
        assert_eq!(secrets.mask("a se\"cret1x and sk-0123456789"), "a [masked] and [masked]");
        assert_eq!(secrets.mask_line(r#"{"a":"se\"cret1x"}"#), r#"{"a":"[masked]"}"#);
        assert!(!format!("{secrets:?}").contains("0123"));
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
