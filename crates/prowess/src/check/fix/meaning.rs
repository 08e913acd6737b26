//! What a text says, however it says it.

use prowess_frontmatter::{Kind, Value};

use crate::{
    check::validate::{FieldSupport, standing},
    finding::{
        Report, Severity,
        rule::{self, Profile},
    },
    read::{
        manifest::AllowedTools,
        parse::{SplitDocument, canonical, decode, is_own},
    },
};

/// What a text says: equal before and after a fix.
#[derive(Debug)]
pub(super) struct Meaning {
    /// What the fields hold, sorted, each by the key that is meant: one that nobody knows is one of
    /// `metadata`, one that Prowess reads there too is one of the top level. What is empty says nothing, and neither does what says the same again.
    pub(super) fields: Vec<(String, String)>,
    /// How many `#` there are: no comment is lost, and none is made of what was not.
    pub(super) hashes: usize,
    pub(super) instructions: String,
}

impl Meaning {
    /// Reads what a text says; nothing when its fields cannot be read, or not all of them.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
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
                    fields.push((key.to_owned(), tools.unwrap_or_else(|| shown(value))));
                }
                key @ "tags" => {
                    fields.push((key.to_owned(), shown(tags(value).as_ref().unwrap_or(value))));
                }
                key => match value {
                    Value::Map(inner) if key == "metadata" => {
                        fields.extend(inner.iter().map(|it| {
                            let is_moved = standing(&it.key) == FieldSupport::Movable
                                && is_own(it)
                                && !at_top.iter().any(|key| key == canonical(&it.key));
                            let key = match is_moved {
                                true => canonical(&it.key).to_owned(),
                                false => nested(&it.key),
                            };
                            (key, shown(&it.value))
                        }));
                    }
                    _ if standing(key) == FieldSupport::Unknown => {
                        fields.push((nested(key), shown(value)));
                    }
                    _ => fields.push((key.to_owned(), shown(value))),
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

/// The tools of `allowed-tools` in any of its spellings.
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

/// The list that is meant by tags with commas between them, or by a single word.
pub(super) fn tags<'v>(value: &'v Value<'_>) -> Option<Value<'v>> {
    let text = value.as_text()?;
    let is_clear = text.contains(',') || !text.trim().contains(char::is_whitespace);
    if !is_clear || text.contains(['\n', '[', ']', '{', '}', '"', '\'']) {
        return None;
    }
    let tags = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    Some(Value::List(tags.map(Value::from).collect()))
}

fn nested(key: &str) -> String {
    format!("metadata {key}")
}

/// A value as text. How a scalar is written makes no difference, unless it is null.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Empty => "null".to_owned(),
        Value::Scalar(scalar) if scalar.kind() == Kind::Null => "null".to_owned(),
        Value::Scalar(scalar) => format!("{:?}", scalar.text),
        Value::List(items) => format!("{:?}", items.iter().map(shown).collect::<Vec<_>>()),
        Value::Map(fields) => {
            let fields = fields.iter().map(|it| (&it.key, shown(&it.value)));
            format!("{:?}", fields.collect::<Vec<_>>())
        }
    }
}
