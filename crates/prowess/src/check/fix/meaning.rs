//! The meaning of a text, independent of its spelling.

use prowess_frontmatter::{Kind, Value};

use crate::{
    check::validate::support_for,
    finding::{
        Report, Severity,
        rule::{self, Profile},
    },
    read::{
        manifest::AllowedTools,
        manifest_field::FieldSupport,
        parse::{SplitDocument, canonical, decode, is_own},
    },
};

/// The meaning of a text: equal before and after a fix.
#[derive(Debug)]
pub(super) struct Meaning {
    /// The values of the fields, sorted, by their canonical keys: an unknown field counts as one of
    /// `metadata`, one that Prowess also reads there as one of the top level. Empty and repeated
    /// values are left out.
    pub(super) fields: Vec<(String, String)>,
    /// The number of `#` characters: no comment is lost, and nothing becomes one.
    pub(super) hashes: usize,
    pub(super) instructions: String,
}

impl Meaning {
    /// Reads the meaning of a text; `None` if its fields cannot be read, or not all of them.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut report = Report::new(Profile::Lenient, Severity::Info);
        let decoded = decode(bytes);
        let SplitDocument { document, fields: read } = SplitDocument::new(&decoded, &mut report);
        if report.findings.iter().any(|it| std::ptr::eq(it.rule, &rule::YAML_RESCUED)) {
            return None;
        }
        let mut fields = Vec::new();
        let read = read?;
        let at_top: Vec<String> = read
            .iter()
            .filter(|it| !it.value.is_null())
            .map(|it| canonical(&it.key).to_owned())
            .collect();
        for field in read {
            let value = &field.value;
            match canonical(&field.key) {
                _ if is_empty(value) => {}
                key @ "allowed-tools" => {
                    let tools = tools(value).map(|it| format!("{:?}", it.0));
                    fields.push((key.to_owned(), tools.unwrap_or_else(|| format_value(value))));
                }
                key @ "tags" => {
                    fields.push((
                        key.to_owned(),
                        format_value(tags(value).as_ref().unwrap_or(value)),
                    ));
                }
                key => match value {
                    Value::Map(inner) if key == "metadata" => {
                        fields.extend(inner.iter().map(|it| {
                            let is_moved = support_for(&it.key) == FieldSupport::Movable
                                && is_own(it)
                                && !at_top.iter().any(|key| key == canonical(&it.key));
                            let key = match is_moved {
                                true => canonical(&it.key).to_owned(),
                                false => metadata_key(&it.key),
                            };
                            (key, format_value(&it.value))
                        }));
                    }
                    _ if support_for(key) == FieldSupport::Unknown => {
                        fields.push((metadata_key(key), format_value(value)));
                    }
                    _ => fields.push((key.to_owned(), format_value(value))),
                },
            }
        }
        fields.sort();
        fields.dedup();
        let hashes = document.frontmatter?.text.matches('#').count();
        Some(Self { fields, hashes, instructions: document.body.text.to_owned() })
    }
}

pub(super) fn is_empty(value: &Value<'_>) -> bool {
    value.is_null() || value.as_text().is_some_and(|it| it.trim().is_empty())
}

/// Returns the tools of `allowed-tools` in any of its spellings.
pub(super) fn tools(value: &Value<'_>) -> Option<AllowedTools> {
    match value {
        Value::Scalar(scalar) => Some(AllowedTools::from_text(&scalar.text)),
        Value::List(items) => {
            let tools = items.iter().map(|it| it.as_text().map(|it| it.trim().into()));
            tools.collect::<Option<_>>().map(AllowedTools)
        }
        Value::Empty | Value::Map(_) => None,
    }
}

/// Returns the list that comma-separated tags, or a single word, stand for.
pub(super) fn tags<'v>(value: &'v Value<'_>) -> Option<Value<'v>> {
    let text = value.as_text()?;
    let is_clear = text.contains(',') || !text.trim().contains(char::is_whitespace);
    if !is_clear || text.contains(['\n', '[', ']', '{', '}', '"', '\'']) {
        return None;
    }
    let tags = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    Some(Value::List(tags.map(Value::from).collect()))
}

fn metadata_key(key: &str) -> String {
    format!("metadata {key}")
}

/// Formats a value as text. The style of a scalar makes no difference, unless it is null.
fn format_value(value: &Value<'_>) -> String {
    match value {
        Value::Empty => "null".to_owned(),
        Value::Scalar(scalar) if scalar.kind() == Kind::Null => "null".to_owned(),
        Value::Scalar(scalar) => format!("{:?}", scalar.text),
        Value::List(items) => format!("{:?}", items.iter().map(format_value).collect::<Vec<_>>()),
        Value::Map(fields) => {
            let fields = fields.iter().map(|it| (&it.key, format_value(&it.value)));
            format!("{:?}", fields.collect::<Vec<_>>())
        }
    }
}
