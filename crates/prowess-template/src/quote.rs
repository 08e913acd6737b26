//! Quotes and unquotes Go strings.

use crate::unicode::{Rune, is_print, runes};

/// Quotes a text as a Go string.
pub(crate) fn quote(bytes: &[u8]) -> String {
    quote_with(bytes, Charset::Any)
}

/// The printable characters that are not escaped.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Charset {
    Any,
    Ascii,
}

pub(crate) fn quote_with(bytes: &[u8], charset: Charset) -> String {
    let mut quoted = String::from('"');
    for rune in runes(bytes) {
        match rune {
            Rune::Char(c) => escape(&mut quoted, c, '"', charset),
            Rune::Byte(byte) => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// Quotes a character as a Go rune.
pub(crate) fn quote_char(c: char, charset: Charset) -> String {
    let mut quoted = String::from('\'');
    escape(&mut quoted, c, '\'', charset);
    quoted.push('\'');
    quoted
}

fn escape(quoted: &mut String, c: char, quote: char, charset: Charset) {
    match c {
        _ if c == quote || c == '\\' => quoted.extend(['\\', c]),
        _ if (c.is_ascii() || charset == Charset::Any) && is_print(c) => quoted.push(c),
        '\x07' => quoted.push_str("\\a"),
        '\x08' => quoted.push_str("\\b"),
        '\x0c' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\x0b' => quoted.push_str("\\v"),
        '\0'..' ' | '\x7f' => quoted.push_str(&format!("\\x{:02x}", c as u32)),
        ..'\u{10000}' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
        _ => quoted.push_str(&format!("\\U{:08x}", c as u32)),
    }
}

/// Whether a text can be between backquotes unchanged.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    runes(bytes).all(|it| match it {
        Rune::Char(c) => c == '\t' || !(c < ' ' || matches!(c, '`' | '\x7f' | '\u{feff}')),
        Rune::Byte(_) => false,
    })
}

/// Returns the bytes of a quoted Go string; `None` if it is malformed.
pub(crate) fn unquote(quoted: &str) -> Option<Vec<u8>> {
    if let Some(raw) = quoted.strip_prefix('`').and_then(|it| it.strip_suffix('`')) {
        return Some(raw.bytes().filter(|it| *it != b'\r').collect());
    }
    let mut rest = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    while !rest.is_empty() {
        let (unit, behind) = unquote_unit(rest, '"')?;
        match unit {
            Rune::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Rune::Byte(byte) => bytes.push(byte),
        }
        rest = behind;
    }
    Some(bytes)
}

/// Returns the first character or escape, and the rest.
pub(crate) fn unquote_unit(text: &str, quote: char) -> Option<(Rune, &str)> {
    let mut chars = text.chars();
    let first = chars.next().filter(|it| *it != quote)?;
    if first != '\\' {
        return Some((Rune::Char(first), chars.as_str()));
    }
    let letter = chars.next()?;
    let rest = chars.as_str();
    let plain = |c| Some((Rune::Char(c), rest));
    match letter {
        'a' => plain('\x07'),
        'b' => plain('\x08'),
        'f' => plain('\x0c'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\x0b'),
        '\\' => plain('\\'),
        '"' | '\'' if letter == quote => plain(letter),
        'x' => digits(rest, 2, 16).map(|(code, rest)| (Rune::Byte(code as u8), rest)),
        'u' => digits(rest, 4, 16).and_then(|it| Some((Rune::Char(char::from_u32(it.0)?), it.1))),
        'U' => digits(rest, 8, 16).and_then(|it| Some((Rune::Char(char::from_u32(it.0)?), it.1))),
        '0'..='7' => {
            let (code, rest) = digits(&text[1..], 3, 8)?;
            Some((Rune::Byte(u8::try_from(code).ok()?), rest))
        }
        _ => None,
    }
}

fn digits(text: &str, count: usize, base: u32) -> Option<(u32, &str)> {
    let digits = text.get(..count)?;
    let all = digits.chars().all(|it| it.is_digit(base));
    let code = u32::from_str_radix(digits, base).ok().filter(|_| all)?;
    Some((code, &text[count..]))
}
