//! Secrets with known values, such as API keys: detected in outgoing data.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde_json::Value;

/// A secret that the host knows. Redacted in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct KnownSecret {
    /// Its name, such as the variable it comes from.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl KnownSecret {
    /// Creates a secret from its name and value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

impl fmt::Debug for KnownSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KnownSecret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The minimum length of a secret, with digits and without.
const SHORTEST: (usize, usize) = (8, 20);
/// The minimum number of different characters.
const LEAST_DIFFERENT: usize = 5;
/// The minimum number of letters and digits for finding a secret with other characters in between.
const SPREAD: usize = 12;
/// The number of decoding rounds: an encoded text may be encoded again.
const ROUNDS: usize = 3;
/// The minimum length of a run of base64 or hexadecimal to decode.
const SHORTEST_RUN: usize = 16;
/// The maximum number of bytes decoded from one text.
const MOST_DECODED: usize = 4 * 1024 * 1024;

/// Whether a value is distinct from ordinary words, so that finding it in a text is significant:
/// `ollama` and `no-key-required` are keys too, but not secrets.
pub fn is_secret_value(value: &str) -> bool {
    let length = value.chars().count();
    let mut different: Vec<char> = value.chars().collect();
    different.sort_unstable();
    different.dedup();
    let has_digit = value.contains(|it: char| it.is_ascii_digit());
    let has_letter = value.contains(char::is_alphabetic);
    let shortest = if has_digit && has_letter { SHORTEST.0 } else { SHORTEST.1 };
    length >= shortest && different.len() >= LEAST_DIFFERENT && !value.contains(char::is_whitespace)
}

/// Returns the first of these secrets that a text contains, as it is, percent-encoded, in base64,
/// in hexadecimal, in several of these combined, or with other characters between its letters.
pub fn secret_in<'a>(secrets: &'a [KnownSecret], text: &str) -> Option<&'a KnownSecret> {
    let mut texts = vec![text.to_owned()];
    if let Ok(json) = serde_json::from_str(text) {
        strings(&json, &mut texts);
    }
    for round in 0..ROUNDS {
        let decoded: Vec<String> = texts.iter().map(|it| decode_percent(it)).collect();
        if round > 0 && decoded.iter().all(|it| texts.contains(it)) {
            break;
        }
        texts.extend(decoded);
    }
    texts.dedup();
    let mut room = MOST_DECODED;
    let mut last = 0;
    for _ in 0..ROUNDS {
        let decoded: Vec<String> =
            texts[last..].iter().flat_map(|it| decode_runs(it, &mut room)).collect();
        last = texts.len();
        texts.extend(decoded);
    }
    // A host is converted to lower case.
    texts.iter_mut().for_each(|it| it.make_ascii_lowercase());
    let plain: Vec<String> = texts.iter().map(|it| letters(it)).collect();
    let known = secrets.iter().filter(|it| is_secret_value(&it.value));
    known.into_iter().find(|secret| {
        let has = |part: &str| !part.is_empty() && texts.iter().any(|it| it.contains(part));
        let own = letters(&secret.value.to_ascii_lowercase());
        has(&secret.value.to_ascii_lowercase())
            || spellings(&secret.value).iter().any(|it| has(it))
            || own.chars().count() >= SPREAD && plain.iter().any(|it| it.contains(&own))
    })
}

/// Collects the strings in a JSON value, and the names of its fields.
fn strings(json: &Value, into: &mut Vec<String>) {
    match json {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|it| strings(it, into)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            into.push(name.clone());
            strings(value, into);
        }),
        _ => {}
    }
}

/// Returns the encodings of a value in hexadecimal and in base64, in lower case: in base64 at each
/// possible offset in a longer text, without the digits that depend on its surroundings.
fn spellings(value: &str) -> Vec<String> {
    let mut spellings = vec![value.bytes().map(|it| format!("{it:02x}")).collect()];
    for before in 0..3 {
        let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(value.bytes()).collect();
        let whole = bytes.len() / 3 * 4;
        let encoded = STANDARD_NO_PAD.encode(&bytes);
        // The first digits contain bits of the preceding bytes, the last ones of those that follow.
        let first = [0, 2, 3][before];
        let Some(inside) = encoded.get(first..whole) else { continue };
        let inside = inside.to_ascii_lowercase();
        spellings.push(inside.replace('+', "-").replace('/', "_"));
        spellings.push(inside);
    }
    spellings
}

/// Returns the value of a digit in some encoding.
type Digit = fn(u8) -> Option<u8>;

/// Decodes the runs of base64 and hexadecimal in a text, at each possible offset in a run. White
/// space is ignored.
fn decode_runs(text: &str, room: &mut usize) -> Vec<String> {
    let signs: Vec<u8> = text.bytes().filter(|it| !it.is_ascii_whitespace()).collect();
    let mut decoded = Vec::new();
    let digits: [Digit; 2] = [base64_digit, hex_digit];
    for (digit, (bits, starts)) in digits.into_iter().zip([(6, 4), (4, 2)]) {
        for run in signs.split(|it| digit(*it).is_none()).filter(|it| it.len() >= SHORTEST_RUN) {
            let digits: Vec<u8> = run.iter().filter_map(|it| digit(*it)).collect();
            for start in 0..starts {
                let bytes = join_bits(&digits[start..], bits);
                let Some(left) = room.checked_sub(bytes.len()) else { return decoded };
                *room = left;
                decoded.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    decoded
}

fn base64_digit(sign: u8) -> Option<u8> {
    Some(match sign {
        b'A'..=b'Z' => sign - b'A',
        b'a'..=b'z' => sign - b'a' + 26,
        b'0'..=b'9' => sign - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

fn hex_digit(sign: u8) -> Option<u8> {
    char::from(sign).to_digit(16).map(|it| it as u8)
}

/// Returns the bytes that digits of so many bits encode.
fn join_bits(digits: &[u8], bits: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(digits.len());
    let (mut held, mut count) = (0_u32, 0);
    for digit in digits {
        held = held << bits | u32::from(*digit);
        count += bits;
        if count >= 8 {
            count -= 8;
            bytes.push((held >> count) as u8);
            held &= (1 << count) - 1;
        }
    }
    bytes
}

/// Decodes every percent sign that is followed by two digits, whatever the result is.
fn decode_percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digit = |it: usize| bytes.get(it).and_then(|it| char::from(*it).to_digit(16));
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Returns the letters and digits of a text.
fn letters(text: &str) -> String {
    text.chars().filter(|it| it.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;

    const KEY: &str = "sk-proj-aB3dE6gH9kL2";

    fn is_found(text: &str) -> bool {
        let secrets = [KnownSecret { name: "KEY".to_owned(), value: KEY.to_owned() }];
        secret_in(&secrets, text).is_some()
    }

    #[test]
    fn a_secret_is_found_however_it_is_spelled() {
        let all: String = KEY.bytes().map(|it| format!("%{it:02X}")).collect();
        let hex: String = KEY.bytes().map(|it| format!("{it:02x}")).collect();
        let spread: Vec<String> = KEY.chars().map(String::from).collect();
        let escaped: String = KEY.chars().map(|it| format!("\\u{:04x}", it as u32)).collect();
        for text in [
            format!("http://x.test/?q={KEY}"),
            format!("http://{}.x.test/", KEY.to_lowercase()),
            format!("http://x.test/{all}"),
            format!("http://x.test/{}", all.replace('%', "%25")),
            format!("http://x.test/{hex}"),
            format!("{{\"a\":[{{\"b\":\"{escaped}\"}}]}}"),
            spread.join("."),
            STANDARD.encode(KEY),
            URL_SAFE_NO_PAD.encode(format!("a{KEY}")),
            STANDARD.encode(format!("ab{KEY}?>")),
            STANDARD.encode(format!("user:{KEY}")),
            STANDARD.encode(STANDARD.encode(KEY)),
            URL_SAFE_NO_PAD.encode(format!("x{}", STANDARD.encode(format!("ab{KEY}")))),
            STANDARD.encode(STANDARD.encode(STANDARD.encode(KEY))),
            STANDARD.encode(&hex),
            STANDARD.encode(KEY).bytes().map(|it| format!("{it:02x}")).collect(),
            STANDARD.encode(STANDARD.encode(KEY)).replace('=', "%3D").replacen('T', "\nT", 2),
        ] {
            assert!(is_found(&text), "{text}");
        }
        for text in ["http://x.test/?q=sk-proj", "", "%", "a quiet text", "c2stcHJvag=="] {
            assert!(!is_found(text), "{text}");
        }
    }

    #[test]
    fn a_word_is_no_secret() {
        for value in [
            "",
            "ollama",
            "not-needed",
            "no-key-required",
            "test1",
            "aaaaaaaa1111",
            "key with 1 space",
        ] {
            assert!(!is_secret_value(value), "{value}");
        }
        for value in [KEY, "hunter2x", "correct-horse-battery-staple", "AIzaSyA1234567"] {
            assert!(is_secret_value(value), "{value}");
        }
        let secrets = [KnownSecret { name: "KEY".to_owned(), value: "ollama".to_owned() }];
        assert_eq!(secret_in(&secrets, "http://x.test/ollama"), None);
        assert!(!format!("{secrets:?}").contains("ollama"));
    }
}
