//! Decodes bytes to text.

use std::borrow::Cow;

/// A decoded text, with how its bytes had to be decoded.
#[derive(Debug)]
pub(crate) struct DecodedText<'b> {
    /// The text, without a byte order mark; an invalid byte becomes U+FFFD.
    pub(crate) text: Cow<'b, str>,
    pub(crate) encoding: Encoding,
    /// Whether lines ended with a lone CR, which becomes LF in the text.
    pub(crate) lone_cr: bool,
    /// The first invalid byte.
    pub(crate) invalid: Option<Invalid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16,
}

/// A byte that cannot be decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Invalid {
    pub(crate) at: usize,
    pub(crate) byte: u8,
    pub(crate) line: usize,
}

/// Decodes UTF-8 with or without a byte order mark, and UTF-16 in either byte order.
pub(crate) fn decode(bytes: &[u8]) -> DecodedText<'_> {
    let mut decoded = decode_lines(bytes);
    let first = decoded.text.bytes().find(|byte| matches!(byte, b'\n' | b'\r'));
    if first == Some(b'\r') && !decoded.text.contains('\n') {
        decoded.text = Cow::Owned(decoded.text.replace('\r', "\n"));
        decoded.lone_cr = true;
    }
    decoded
}

fn decode_lines(bytes: &[u8]) -> DecodedText<'_> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [b'-', 0, b'-', 0, ..] => utf16(bytes, u16::from_le_bytes),
        [0, b'-', 0, b'-', ..] => utf16(bytes, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest, Encoding::Utf8Bom),
        _ => utf8(bytes, Encoding::Utf8),
    }
}

fn utf8(bytes: &[u8], encoding: Encoding) -> DecodedText<'_> {
    match str::from_utf8(bytes) {
        Ok(text) => {
            DecodedText { text: Cow::Borrowed(text), encoding, lone_cr: false, invalid: None }
        }
        Err(error) => {
            let at = error.valid_up_to();
            let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
            let invalid = Some(Invalid { at, byte: bytes[at], line });
            DecodedText { text: String::from_utf8_lossy(bytes), encoding, lone_cr: false, invalid }
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> DecodedText<'_> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String =
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let bad = text.find(char::REPLACEMENT_CHARACTER);
    let invalid = bad.map(|at| Invalid {
        at,
        byte: bytes.get(at * 2).copied().unwrap_or_default(),
        line: 1 + text[..at].matches('\n').count(),
    });
    DecodedText { text: Cow::Owned(text), encoding: Encoding::Utf16, lone_cr: false, invalid }
}
