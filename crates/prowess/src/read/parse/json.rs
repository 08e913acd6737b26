//! Converts a frontmatter to JSON, by one mapping: the core schema of YAML 1.2.
//!
//! It is described in `docs/frontmatter-json.md`. Programs that compare what one reports of a skill
//! with what another reads in its file need the same value from both, so nothing here is repaired
//! or guessed: anything that two readers could structure differently is rejected.

use std::collections::HashSet;

use prowess_frontmatter::{Field, Kind, Scalar, Style, Value, read, split};
use serde_json::{Map, Number, Value as Json};

use super::{Encoding, Fault, MAX_FRONTMATTER, decode, yaml_fields};

/// The error for a frontmatter that has no unambiguous form in JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontmatterError {
    /// The bytes are not UTF-8, or begin with a byte order mark.
    #[error("the file is not UTF-8, or begins with a byte order mark")]
    Encoding,
    /// There is no frontmatter, or not one that every reader finds.
    #[error("the file does not begin with a frontmatter between two lines of exactly `---`")]
    Delimiters,
    /// It exceeds the size limit.
    #[error("the frontmatter has more than {MAX_FRONTMATTER} bytes")]
    TooLarge,
    /// It is not valid YAML. It is not repaired.
    #[error("line {line} of the frontmatter is not YAML: {what}")]
    Invalid {
        /// The line, counted from 1 within the frontmatter.
        line: usize,
        /// A description of the fault.
        what: String,
    },
    /// It contains something that readers treat differently: an alias, a tag, a merge key.
    #[error("line {line} of the frontmatter has {what}")]
    Unsafe {
        /// The line, counted from 1 within the frontmatter.
        line: usize,
        /// A description of it.
        what: &'static str,
    },
    /// It is YAML, but not a map.
    #[error("the frontmatter is not a map of `key: value` lines")]
    NotMap,
    /// A key occurs twice in one map.
    #[error("the key `{key}` appears a second time in line {line} of the frontmatter")]
    Duplicate {
        /// The key.
        key: String,
        /// The line, counted from 1 within the frontmatter.
        line: usize,
    },
    /// JSON has no representation of infinity, NaN, or a number that does not fit a double.
    #[error("the number `{text}` in the frontmatter cannot be represented in JSON")]
    Number {
        /// The number, as written.
        text: String,
    },
    /// A key is a number, boolean or null, or one that some languages keep for themselves.
    #[error(
        "the key `{key}` in line {line} of the frontmatter is not a string in every YAML reader"
    )]
    Key {
        /// The key.
        key: String,
        /// The line, counted from 1 within the frontmatter.
        line: usize,
    },
}

/// Converts the frontmatter of a `SKILL.md` to JSON, every field, in the order written.
///
/// ```
/// let text = b"---\nname: a\nversion: 1.10\nreleased: 2026-01-01\n---\n";
/// let json = prowess::frontmatter_json(text)?;
/// assert_eq!(serde_json::Value::Object(json).to_string(),
///     r#"{"name":"a","version":1.1,"released":"2026-01-01"}"#);
/// # Ok::<(), prowess::FrontmatterError>(())
/// ```
pub fn frontmatter_json(bytes: &[u8]) -> Result<Map<String, Json>, FrontmatterError> {
    let decoded = decode(bytes);
    if decoded.invalid.is_some() || decoded.encoding != Encoding::Utf8 {
        return Err(FrontmatterError::Encoding);
    }
    let document = split(&decoded.text);
    let is_usual = !decoded.lone_cr && document.quirks.is_empty();
    let block = document.frontmatter.filter(|it| is_usual && !has_lone_cr(it.text));
    let text = block.ok_or(FrontmatterError::Delimiters)?.text;
    if text.len() > MAX_FRONTMATTER {
        return Err(FrontmatterError::TooLarge);
    }
    let fields = match read(text) {
        Ok(fields) => fields,
        Err(_) => yaml_fields(text).map_err(|fault| match fault {
            Fault::Invalid { line, what } => FrontmatterError::Invalid { line, what },
            Fault::Unsafe { line, what } => FrontmatterError::Unsafe { line, what },
            Fault::NotMap { .. } => FrontmatterError::NotMap,
        })?,
    };
    map(text, &fields)
}

/// Converts a value of a text to JSON; `None` if it cannot be represented.
pub(crate) fn yaml_json(text: &str, value: &Value<'_>) -> Option<Json> {
    self::value(text, value).ok()
}

/// Whether there is a lone CR: it ends a line in YAML, but not for every reader that splits lines.
fn has_lone_cr(text: &str) -> bool {
    text.contains('\r') && text.replace("\r\n", "").contains('\r')
}

fn map(text: &str, fields: &[Field<'_>]) -> Result<Map<String, Json>, FrontmatterError> {
    let mut seen = HashSet::with_capacity(fields.len());
    let mut map = Map::with_capacity(fields.len());
    for field in fields {
        let (key, line) = (field.key.to_string(), field.line);
        if !is_text(text, field) {
            return Err(FrontmatterError::Key { key, line });
        }
        if !seen.insert(&*field.key) {
            return Err(FrontmatterError::Duplicate { key, line });
        }
        map.insert(key, value(text, &field.value)?);
    }
    Ok(map)
}

/// Whether every reader sees a key as the same text: quoted, or unambiguous without quotes.
fn is_text(text: &str, field: &Field<'_>) -> bool {
    let written = text.get(field.key_span.clone()).unwrap_or_default();
    let key = Scalar { text: (&*field.key).into(), style: Style::Plain };
    // Every JavaScript object already has it.
    field.key != "__proto__"
        && (written.starts_with(['"', '\'']) || matches!(key.kind(), Kind::Text | Kind::Ambiguous))
}

fn value(text: &str, value: &Value<'_>) -> Result<Json, FrontmatterError> {
    Ok(match value {
        Value::Empty => Json::Null,
        Value::Scalar(it) => scalar(it)?,
        Value::List(items) => {
            items.iter().map(|it| self::value(text, it)).collect::<Result<_, _>>()?
        }
        Value::Map(fields) => map(text, fields)?.into(),
    })
}

fn scalar(scalar: &Scalar<'_>) -> Result<Json, FrontmatterError> {
    let text = &*scalar.text;
    Ok(match scalar.kind() {
        Kind::Null => Json::Null,
        Kind::Bool => text.eq_ignore_ascii_case("true").into(),
        Kind::Integer => integer(text)?,
        Kind::Float => double(text, text.parse().ok())?,
        Kind::Text | Kind::Ambiguous => text.into(),
    })
}

/// Converts an integer that fits in 64 bits, signed or unsigned, exactly; a larger one to the
/// nearest double.
fn integer(text: &str) -> Result<Json, FrontmatterError> {
    let (digits, radix) = match text.get(..2) {
        Some("0x") => (&text[2..], 16),
        Some("0o") => (&text[2..], 8),
        _ => (text, 10),
    };
    if let Ok(number) = i64::from_str_radix(digits, radix) {
        return Ok(number.into());
    }
    if let Ok(number) = u64::from_str_radix(digits, radix) {
        return Ok(number.into());
    }
    double(text, if radix == 10 { text.parse().ok() } else { Some(wide(digits, radix)) })
}

/// Returns the double of a non-decimal integer that does not fit in 64 bits.
fn wide(digits: &str, radix: u32) -> f64 {
    let digits = digits.chars().filter_map(|it| it.to_digit(radix));
    digits.fold(0.0, |sum, it| sum * f64::from(radix) + f64::from(it))
}

fn double(text: &str, number: Option<f64>) -> Result<Json, FrontmatterError> {
    let number = number.and_then(Number::from_f64).map(Json::Number);
    number.ok_or_else(|| FrontmatterError::Number { text: text.to_owned() })
}

#[cfg(test)]
mod tests;
