//! The parameters of a tool, from its input schema.

use std::fmt;

use prowess::{beginning, visible};
use serde::Serialize;
use serde_json::Value;

use crate::schema::{resolve, subschemas};

/// A parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolParameter {
    /// Its name.
    pub name: String,
    /// A description of its type, such as `string` or `array of integer`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it is required.
    pub is_required: bool,
    /// Its description, in one line; empty if there is none.
    pub description: String,
}

/// The maximum number of parameters, and the maximum length of a name, a type and a description.
const MAX_PARAMETERS: usize = 100;
const MAX_NAME: usize = 64;
const MAX_KIND: usize = 100;
const MAX_DESCRIPTION: usize = 500;
/// The maximum number of named values of an enumeration, and of alternatives.
const MAX_CHOICES: usize = 6;
/// The maximum depth of nested types.
const MAX_DEPTH: usize = 3;

/// Returns the parameters of an input schema, required ones first. Their texts come from the author
/// of the schema, in one line and without invisible characters.
pub fn tool_parameters(schema: &Value) -> Vec<ToolParameter> {
    let root = resolve(schema, schema);
    let properties = root.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut parameters: Vec<ToolParameter> = properties
        .take(MAX_PARAMETERS)
        .map(|(name, property)| {
            let own = resolve(schema, property);
            let description = property.get("description").or_else(|| own.get("description"));
            let description = description.and_then(Value::as_str).unwrap_or_default();
            ToolParameter {
                name: to_line(name, MAX_NAME),
                kind: to_line(&describe_type(schema, own, 0), MAX_KIND),
                is_required: subschemas(root, "required").any(|it| it == name),
                description: to_line(description, MAX_DESCRIPTION),
            }
        })
        .collect();
    parameters.sort_by_key(|it| !it.is_required);
    parameters
}

/// Returns the names in an input that are not parameters of the tool, if its schema lists them.
pub fn unknown_parameters<'i>(schema: &Value, input: &'i Value) -> Vec<&'i str> {
    let root = resolve(schema, schema);
    let Some(properties) = root.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let others = ["patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref"];
    let takes_others = others.iter().any(|it| root.get(it).is_some())
        || root.get("additionalProperties").is_some_and(|it| *it != Value::Bool(false));
    let names = input.as_object().into_iter().flatten().map(|it| it.0.as_str());
    names.filter(|it| !takes_others && !properties.contains_key(*it)).collect()
}

impl fmt::Display for ToolParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kind, is_required, .. } = self;
        let required = if *is_required { ", required" } else { "" };
        write!(f, "`{name}` ({kind}{required})")
    }
}

/// Describes the type of a schema.
fn describe_type(root: &Value, schema: &Value, depth: usize) -> String {
    let schema = resolve(root, schema);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return join_with_or(values.iter().map(Value::to_string));
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    let inner = |it: &Value| describe_type(root, it, depth + 1);
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" && depth < MAX_DEPTH => {
            match schema.get("items").filter(|it| it.is_object()) {
                Some(items) => format!("array of {}", inner(items)),
                None => kind.clone(),
            }
        }
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => join_with_or(kinds.iter().filter_map(Value::as_str)),
        _ => {
            let choices = ["anyOf", "oneOf"].into_iter().find(|it| schema.get(it).is_some());
            match choices.filter(|_| depth < MAX_DEPTH) {
                Some(key) => join_with_or(subschemas(schema, key).take(MAX_CHOICES + 1).map(inner)),
                None => "any".to_owned(),
            }
        }
    }
}

/// Joins a few words with `or`.
fn join_with_or(words: impl Iterator<Item = impl Into<String>>) -> String {
    let mut named: Vec<String> = words.take(MAX_CHOICES + 1).map(Into::into).collect();
    if named.len() > MAX_CHOICES {
        named[MAX_CHOICES] = "…".to_owned();
    }
    named.join(" or ")
}

/// Returns a text as one line of at most so many characters.
fn to_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().take(most).collect();
    let text = words.join(" ");
    beginning(&visible(&text), most).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_described_by_type_and_whether_they_are_required() {
        let schema = json!({
            "type": "object",
            "properties": {
                "any": {},
                "edits": { "type": "array", "items": { "$ref": "#/$defs/edit" } },
                "head": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                "path": { "type": "string", "description": "Where\n  it lies\u{1b}[2J" },
                "sort": { "enum": ["name", "size"] },
                "when": { "type": ["string", "null"] },
            },
            "required": ["path"],
            "$defs": { "edit": { "type": "object" } },
        });
        let described: Vec<String> =
            tool_parameters(&schema).iter().map(ToString::to_string).collect();
        assert_eq!(
            described,
            [
                "`path` (string, required)",
                "`any` (any)",
                "`edits` (array of object)",
                "`head` (integer or null)",
                "`sort` (\"name\" or \"size\")",
                "`when` (string or null)",
            ]
        );
        let description = &tool_parameters(&schema)[0].description;
        assert!(description.starts_with("Where it lies"), "{description}");
        assert!(!description.contains('\u{1b}'), "{description:?}");
    }

    #[test]
    fn the_description_of_a_hostile_schema_is_short() {
        let deep = (0..60).fold(json!({}), |it, _| json!({ "type": "array", "items": it }));
        let wide: Vec<Value> = (0..100).map(|it| json!({ "const": it })).collect();
        let wide = (0..3).fold(json!({ "oneOf": wide }), |it, _| json!({ "anyOf": vec![it; 8] }));
        let names: serde_json::Map<String, Value> =
            (0..500).map(|it| (format!("{it}{}", "x".repeat(1000)), json!({}))).collect();
        assert_eq!(tool_parameters(&json!({ "properties": names })).len(), MAX_PARAMETERS);
        for schema in [deep, wide, json!({ "type": "x\u{1b}]0;y\u{7}" }), json!(7), json!(null)] {
            let text = tool_parameters(&json!({ "properties": { "a": schema } }))[0].to_string();
            assert!(text.chars().count() < MAX_KIND + MAX_NAME, "{text}");
            assert!(!text.contains('\u{1b}'), "{text:?}");
        }
        assert_eq!(tool_parameters(&json!({ "properties": 7, "required": 7 })), []);
    }

    #[test]
    fn what_a_schema_does_not_list_is_unknown_unless_it_takes_more() {
        let own = json!({ "properties": { "path": {} } });
        let input = json!({ "path": 1, "dir": 2 });
        assert_eq!(unknown_parameters(&own, &input), ["dir"]);
        for open in [
            json!({}),
            json!({ "properties": { "path": {} }, "additionalProperties": true }),
            json!({ "properties": { "path": {} }, "patternProperties": {} }),
            json!({ "properties": { "path": {} }, "anyOf": [] }),
        ] {
            assert!(unknown_parameters(&open, &input).is_empty(), "{open}");
        }
    }
}
