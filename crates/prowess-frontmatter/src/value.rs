//! The content of a frontmatter: fields with values, each with its position.

use std::{borrow::Cow, ops::Range};

/// A `key: value` of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'a> {
    /// The key, unquoted.
    pub key: Cow<'a, str>,
    /// The value.
    pub value: Value<'a>,
    /// The line of the key, counted from 1 within the frontmatter.
    pub line: usize,
    /// The bytes of the key as written, within the frontmatter.
    pub key_span: Range<usize>,
    /// The bytes of the value as written, within the frontmatter; empty after the colon if there is
    /// none.
    pub span: Range<usize>,
}

/// A value, with scalars kept as the text that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// Nothing was written.
    Empty,
    /// A single text.
    Scalar(Scalar<'a>),
    /// A block or flow list.
    List(Vec<Self>),
    /// A block or flow map, in the order written, duplicate keys included.
    Map(Vec<Field<'a>>),
}

/// A scalar: its text, and its style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar<'a> {
    /// The text, unquoted, unescaped and folded.
    pub text: Cow<'a, str>,
    /// The style in which it was written.
    pub style: Style,
}

/// The style of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes; only such a scalar can be anything but text.
    Plain,
    /// In `'single'` or `"double"` quotes.
    Quoted,
    /// As a block: `|` or `>`.
    Block,
}

/// The type of a scalar in YAML 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// `null`, `~`.
    Null,
    /// `true`, `false`.
    Bool,
    /// An integer.
    Integer,
    /// A number with a fraction or exponent, an infinity or NaN.
    Float,
    /// Text in YAML 1.2, but a date, a boolean or a number in YAML 1.1.
    Ambiguous,
}

impl<'a> Value<'a> {
    /// Returns the text of a scalar.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Scalar(scalar) => Some(&scalar.text),
            Self::Empty | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Returns the value of the first field called `key`, when this is a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(fields) => fields.iter().find(|it| it.key == key).map(|it| &it.value),
            Self::Empty | Self::Scalar(_) | Self::List(_) => None,
        }
    }

    /// Whether there is no value: no text, or a plain `null` or `~`.
    pub fn is_null(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Scalar(scalar) => scalar.kind() == Kind::Null,
            Self::List(_) | Self::Map(_) => false,
        }
    }

    /// Copies borrowed data, so that the value outlives the text it was read from.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Empty => Value::Empty,
            Self::Scalar(it) => {
                Value::Scalar(Scalar { text: Cow::Owned(it.text.into_owned()), style: it.style })
            }
            Self::List(items) => Value::List(items.into_iter().map(Value::into_owned).collect()),
            Self::Map(fields) => Value::Map(fields.into_iter().map(Field::into_owned).collect()),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Scalar(Scalar { text: Cow::Borrowed(text), style: Style::Quoted })
    }
}

impl<'a> Field<'a> {
    /// Creates a field to be written, without a position in a text.
    pub fn new(key: impl Into<Cow<'a, str>>, value: Value<'a>) -> Self {
        Self { key: key.into(), value, line: 0, key_span: 0..0, span: 0..0 }
    }

    /// Copies borrowed data, so that the field outlives the text it was read from.
    pub fn into_owned(self) -> Field<'static> {
        let Self { key, value, line, key_span, span } = self;
        Field { key: Cow::Owned(key.into_owned()), value: value.into_owned(), line, key_span, span }
    }
}

impl Scalar<'_> {
    /// Returns the type of this scalar in YAML.
    pub fn kind(&self) -> Kind {
        if self.style == Style::Plain { plain_kind(&self.text) } else { Kind::Text }
    }
}

fn plain_kind(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => return Kind::Bool,
        ".nan" | ".NaN" | ".NAN" => return Kind::Float,
        "y" | "Y" | "yes" | "Yes" | "YES" | "n" | "N" | "no" | "No" | "NO" | "on" | "On" | "ON"
        | "off" | "Off" | "OFF" => return Kind::Ambiguous,
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Kind::Text;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        Kind::Float
    } else if !unsigned.is_empty() && unsigned.bytes().all(|it| it.is_ascii_digit()) {
        Kind::Integer
    } else if let Some(hex) = text.strip_prefix("0x") {
        if !hex.is_empty() && hex.bytes().all(|it| it.is_ascii_hexdigit()) {
            Kind::Integer
        } else {
            Kind::Text
        }
    } else if let Some(octal) = text.strip_prefix("0o") {
        if !octal.is_empty() && octal.bytes().all(|it| (b'0'..=b'7').contains(&it)) {
            Kind::Integer
        } else {
            Kind::Text
        }
    } else if is_float(unsigned) {
        Kind::Float
    } else if is_date(unsigned) || is_sexagesimal(unsigned) || is_grouped(unsigned) {
        Kind::Ambiguous
    } else {
        Kind::Text
    }
}

/// Whether it is digits with a fraction, an exponent or both.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent = exponent.is_none_or(|it| {
        let digits = it.strip_prefix(['+', '-']).unwrap_or(it);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let dots = mantissa.bytes().filter(|it| *it == b'.').count();
    exponent && digits > 0 && dots <= 1 && digits + dots == mantissa.len()
}

/// Whether it is a date such as `2026-11-15`, with or without a time after it.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let date = bytes.iter().take(10).enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    bytes.len() >= 10 && date && matches!(bytes.get(10), None | Some(b'T' | b't' | b' '))
}

/// Whether it is like `12:30:45`, a number to the base of 60 in YAML 1.1.
fn is_sexagesimal(text: &str) -> bool {
    text.contains(':')
        && text
            .split(':')
            .all(|it| (1..=2).contains(&it.len()) && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether it is like `1_000`, a number in YAML 1.1.
fn is_grouped(text: &str) -> bool {
    text.contains('_') && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        Scalar { text: text.into(), style: Style::Plain }.kind()
    }

    #[test]
    fn plain_scalars_have_kinds() {
        let kinds = |texts: &[&str], expected| {
            for text in texts {
                assert_eq!(kind(text), expected, "{text}");
            }
        };
        kinds(&["a", "1.2.3", "v1", "-", "+x", "0xg", "1.10.0", "12:", "."], Kind::Text);
        kinds(&["", "~", "null"], Kind::Null);
        kinds(&["true", "False"], Kind::Bool);
        kinds(&["0", "-12", "0x1f", "0o17"], Kind::Integer);
        kinds(&["1.10", ".5", "1e3", "-1.5e-3", ".inf", "-.inf", ".nan"], Kind::Float);
        kinds(
            &["yes", "NO", "on", "2026-11-15", "2026-11-15T10:00:00Z", "12:30:45", "1_000"],
            Kind::Ambiguous,
        );
    }

    #[test]
    fn quoted_scalars_are_text() {
        assert_eq!(Scalar { text: "1.10".into(), style: Style::Quoted }.kind(), Kind::Text);
    }
}
