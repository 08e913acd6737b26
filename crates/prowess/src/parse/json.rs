//! From a frontmatter to JSON, by one mapping: the core schema of YAML 1.2.
//!
//! `docs/frontmatter-json.md` is its description. Whoever compares what one program says of a skill
//! with what another reads in its file needs the same value from both, so that nothing here is
//! repaired or guessed: what two readers could see differently in structure is refused.

use std::collections::HashSet;

use prowess_frontmatter::{Field, Kind, Scalar, Value, read, split};
use serde_json::{Map, Number, Value as Json};

use super::{Encoding, Fault, MAX_FRONTMATTER, decode, yaml_fields};

/// A frontmatter has no form in JSON that everybody would agree on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontmatterError {
    /// The bytes are no UTF-8, or have a mark before it.
    #[error("the file is not UTF-8, or begins with a byte order mark")]
    Encoding,
    /// There is no frontmatter, or not one that every reader finds.
    #[error("the file does not begin with a frontmatter between two lines of exactly `---`")]
    Delimiters,
    /// It has more bytes than are read.
    #[error("the frontmatter has more than {MAX_FRONTMATTER} bytes")]
    TooLarge,
    /// It is not YAML, whatever a repair would make of it.
    #[error("line {line} of the frontmatter is not YAML: {what}")]
    Invalid {
        /// The line, counted from 1 within the frontmatter.
        line: usize,
        /// What stands there.
        what: String,
    },
    /// It has something that readers treat differently: an alias, a tag, a merge key.
    #[error("line {line} of the frontmatter has {what}")]
    Unsafe {
        /// The line, counted from 1 within the frontmatter.
        line: usize,
        /// What stands there.
        what: &'static str,
    },
    /// It is YAML, but no map.
    #[error("the frontmatter is not a map of `key: value` lines")]
    NotMap,
    /// A key stands twice in one map.
    #[error("the key `{key}` stands a second time in line {line} of the frontmatter")]
    Duplicate {
        /// The key.
        key: String,
        /// The line, counted from 1 within the frontmatter.
        line: usize,
    },
}

/// Maps the frontmatter of a `SKILL.md` to JSON, every field of it, in the order written.
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
    map(&fields)
}

/// Whether a CR stands alone: it ends a line to YAML, but not to everybody who splits one off.
fn has_lone_cr(text: &str) -> bool {
    text.contains('\r') && text.replace("\r\n", "").contains('\r')
}

fn map(fields: &[Field<'_>]) -> Result<Map<String, Json>, FrontmatterError> {
    let mut seen = HashSet::with_capacity(fields.len());
    let mut map = Map::with_capacity(fields.len());
    for field in fields {
        if !seen.insert(&*field.key) {
            let (key, line) = (field.key.to_string(), field.line);
            return Err(FrontmatterError::Duplicate { key, line });
        }
        map.insert(field.key.to_string(), value(&field.value)?);
    }
    Ok(map)
}

fn value(value: &Value<'_>) -> Result<Json, FrontmatterError> {
    Ok(match value {
        Value::Empty => Json::Null,
        Value::Scalar(it) => scalar(it),
        Value::List(items) => items.iter().map(self::value).collect::<Result<_, _>>()?,
        Value::Map(fields) => map(fields)?.into(),
    })
}

fn scalar(scalar: &Scalar<'_>) -> Json {
    let text = &*scalar.text;
    match scalar.kind() {
        Kind::Null => Json::Null,
        Kind::Bool => text.eq_ignore_ascii_case("true").into(),
        Kind::Integer => integer(text),
        Kind::Float => float(text),
        Kind::Text | Kind::Ambiguous => text.into(),
    }
}

/// An integer as it is in 64 bits, with or without a sign; a larger one is the nearest double.
fn integer(text: &str) -> Json {
    let based = |radix: u32| {
        let digits = &text[2..];
        u64::from_str_radix(digits, radix).map_or_else(|_| wide(digits, radix), Json::from)
    };
    match text.get(..2) {
        Some("0x") => based(16),
        Some("0o") => based(8),
        _ => {
            let small = text.parse::<i64>().map(Json::from);
            small.or_else(|_| text.parse::<u64>().map(Json::from)).unwrap_or_else(|_| float(text))
        }
    }
}

/// The double of an integer of another base than ten that 64 bits do not hold.
fn wide(digits: &str, radix: u32) -> Json {
    let digits = digits.chars().filter_map(|it| it.to_digit(radix));
    let value = digits.fold(0.0, |sum, it| sum * f64::from(radix) + f64::from(it));
    Number::from_f64(value).into()
}

/// A number with a fraction or an exponent. What JSON has no number for is null: infinities, what
/// is no number, and what no double holds.
fn float(text: &str) -> Json {
    text.parse().ok().and_then(Number::from_f64).into()
}

#[cfg(test)]
mod tests;
