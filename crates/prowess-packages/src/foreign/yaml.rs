//! Reads YAML of bounded size to the values of JSON, and writes it.

use std::{borrow::Cow, collections::HashMap};

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Value};

use super::ForeignError;

/// The maximum nesting depth of collections.
const MAX_DEPTH: usize = 32;
/// The maximum number of scalars and collections, those of aliases each time.
const MAX_NODES: usize = 2_000_000;
/// The maximum number of bytes that aliases add.
const MAX_ALIASED: usize = 16 << 20;

/// Reads the one document of a text. Scalars are texts, but for those that are nothing: `1.10` stays `1.10`.
pub(super) fn read(bytes: &[u8]) -> Result<Value, ForeignError> {
    let text = std::str::from_utf8(bytes).map_err(|it| fault(None, &it.to_string()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut options = Options::default();
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { parser, nodes: 0, aliased: 0, anchors: HashMap::new() };
    let mut value = Value::Null;
    let mut documents = 0;
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(value),
            (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
            (_, span) if documents > 0 => return Err(fault(Some(span), "a second document")),
            (event, span) => {
                documents += 1;
                value = reader.node(event, span, 0)?;
            }
        }
    }
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    nodes: usize,
    aliased: usize,
    anchors: HashMap<usize, Value>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), ForeignError> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                let message = format!("line {}: {}", error.marker().line().max(1), error.info());
                Err(ForeignError::Syntax { message })
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Value, ForeignError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(fault(Some(span), "too many values"));
        }
        if depth > MAX_DEPTH {
            return Err(fault(Some(span), "values nested too deep"));
        }
        let anchor = event.anchor_id();
        let value = match event {
            Event::Alias(id) => {
                let Some(value) = self.anchors.get(&id) else {
                    return Err(fault(Some(span), "an alias of nothing"));
                };
                let (nodes, bytes) = size(value);
                self.nodes = self.nodes.saturating_add(nodes);
                self.aliased = self.aliased.saturating_add(bytes);
                if self.nodes > MAX_NODES || self.aliased > MAX_ALIASED {
                    return Err(fault(Some(span), "too many values"));
                }
                value.clone()
            }
            Event::Scalar(text, style, _, _) => scalar(text, style),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break Value::Array(items),
                        (event, span) => items.push(self.node(event, span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut map = Map::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, _) => break Value::Object(map),
                        (event, span) => {
                            let Value::String(key) = self.node(event, span, depth + 1)? else {
                                return Err(fault(Some(span), "a key that is not a text"));
                            };
                            let (event, value_span) = self.next()?;
                            let value = self.node(event, value_span, depth + 1)?;
                            if map.insert(key, value).is_some() {
                                return Err(fault(Some(span), "a key that is there twice"));
                            }
                        }
                    }
                }
            }
            _ => return Err(fault(Some(span), "an unexpected end")),
        };
        if let Some(id) = anchor {
            self.anchors.insert(id, value.clone());
        }
        Ok(value)
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Value {
    match style {
        ScalarStyle::Plain if matches!(&*text, "" | "~" | "null" | "Null" | "NULL") => Value::Null,
        _ => Value::String(text.into_owned()),
    }
}

/// Returns the number of values and of bytes.
fn size(value: &Value) -> (usize, usize) {
    let add = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
    match value {
        Value::Array(items) => items.iter().map(size).fold((1, 0), add),
        Value::Object(map) => {
            map.iter().map(|it| add((0, it.0.len()), size(it.1))).fold((1, 0), add)
        }
        Value::String(text) => (1, text.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => (1, 0),
    }
}

fn fault(span: Option<Span>, what: &str) -> ForeignError {
    let line = span.map(|it| format!("line {}: ", it.start.line().max(1))).unwrap_or_default();
    ForeignError::Syntax { message: format!("{line}{what}") }
}

/// Returns a value as YAML in block style.
pub(super) fn write(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, 0);
    out
}

fn write_value(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (at, (key, value)) in map.iter().enumerate() {
                // The first key is behind the hyphen of a list, or on its own line.
                if at > 0 || !out.ends_with("- ") {
                    out.push_str(&"  ".repeat(depth));
                }
                write_text(out, key);
                out.push(':');
                write_behind(out, value, depth);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&"  ".repeat(depth));
                out.push_str("- ");
                match item {
                    Value::Object(map) if !map.is_empty() => write_value(out, item, depth + 1),
                    Value::Array(inner) if !inner.is_empty() => {
                        out.push('\n');
                        write_value(out, item, depth + 1);
                    }
                    _ => write_value(out, item, depth),
                }
            }
        }
        Value::Object(_) => out.push_str("{}\n"),
        Value::Array(_) => out.push_str("[]\n"),
        Value::String(text) => {
            write_text(out, text);
            out.push('\n');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            out.push_str(&value.to_string());
            out.push('\n');
        }
    }
}

fn write_behind(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            write_value(out, value, depth + 1);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_value(out, value, depth);
        }
        _ => {
            out.push(' ');
            write_value(out, value, depth);
        }
    }
}

/// Writes a text, quoted unless every reader takes it for a text.
fn write_text(out: &mut String, text: &str) {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_safe = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.' | b'/');
    let is_plain = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && text.bytes().all(is_safe)
        && !words.iter().any(|it| it.eq_ignore_ascii_case(text));
    if is_plain {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<String>().prop_map(Value::String),
            "[a-z0-9:#\\-\\[\\]{}&*!|>'\"%@` .]{0,12}".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in values()) {
            let text = write(&value);
            let back = read(text.as_bytes());
            prop_assert_eq!(back.ok(), Some(value), "{}", text);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[-a:&*\\[\\]{}, \n\"'|>?!%#]{0,60}") {
            let _ = (read(&bytes), read(text.as_bytes()));
        }
    }

    #[test]
    fn aliases_are_bounded() {
        let text = "a: &a [1, 2]\nb: *a\n";
        assert_eq!(read(text.as_bytes()).unwrap(), json!({"a": ["1", "2"], "b": ["1", "2"]}));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..20 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{items}]\n");
        }
        assert!(read(bomb.as_bytes()).unwrap_err().to_string().contains("too many values"));
        assert!(read("[".repeat(5000).as_bytes()).is_err());
    }
}
