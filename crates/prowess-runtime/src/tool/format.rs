//! Formats tools for the APIs of model providers.

use serde_json::{Map, Value, json};

use crate::tool::Tool;

/// A format of tool definitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolFormat {
    /// `name`, `description` and `input_schema`, as for Anthropic.
    #[default]
    Anthropic,
    /// Functions with `parameters`, as for OpenAI; strict if the schema permits it.
    OpenAi,
    /// `name`, `description`, `inputSchema` and `outputSchema`, as in the Model Context Protocol.
    Mcp,
}

impl ToolFormat {
    /// Formats a tool; `None` if its name is unsupported, or its input is not an object.
    pub fn format(self, tool: &dyn Tool) -> Option<Value> {
        let (name, description) = (tool.name(), tool.description());
        let most = if self == Self::OpenAi { 64 } else { 128 };
        if name.is_empty()
            || name.len() > most
            || !name.bytes().all(|it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-')
        {
            return None;
        }
        let schema = simplify_schema(tool.input_schema());
        if schema.get("type")? != "object" {
            return None;
        }
        let reduced = if self == Self::Mcp { schema.clone() } else { flatten(schema.clone()) };
        // A reduced schema cannot be strict.
        let strict = to_strict(&schema).filter(|_| reduced == schema);
        let schema = reduced;
        Some(match self {
            Self::Anthropic => {
                json!({"name": name, "description": description, "input_schema": schema})
            }
            Self::Mcp => {
                let mut definition =
                    json!({"name": name, "description": description, "inputSchema": schema});
                if let Some(schema) = tool.output_schema() {
                    definition["outputSchema"] = object_schema(schema);
                }
                definition
            }
            Self::OpenAi => {
                json!({"type": "function", "function": {
                    "name": name,
                    "description": description,
                    "strict": strict.is_some(),
                    "parameters": strict.unwrap_or(schema),
                }})
            }
        })
    }
}

/// Simplifies the input schema of a tool for a model, always as that of an object: without its own
/// title and description, the sizes of numbers, and null for optional values.
pub fn simplify_schema(mut schema: Value) -> Value {
    remove_details(&mut schema);
    object_schema(schema)
}

/// Removes the title and description of a schema; always returns that of an object.
fn object_schema(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return json!({"type": "object"}) };
    for noise in ["$schema", "title", "description"] {
        schema.remove(noise);
    }
    schema.entry("type").or_insert_with(|| "object".into());
    schema.into()
}

/// The formats that specify the size of a number in memory.
const SIZES: &[&str] =
    &["uint", "uint8", "uint16", "uint32", "uint64", "int", "int32", "int64", "float", "double"];

fn remove_details(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    if schema.get("format").and_then(Value::as_str).is_some_and(|it| SIZES.contains(&it)) {
        schema.remove("format");
    }
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        remove_details(property);
        if required.iter().all(|it| it != name) {
            remove_null(property);
        }
    }
    for inner in ["items", "additionalProperties"] {
        schema.get_mut(inner).into_iter().for_each(remove_details);
    }
    for choice in ["allOf", "anyOf", "oneOf"] {
        let choices = schema.get_mut(choice).and_then(Value::as_array_mut);
        choices.into_iter().flatten().for_each(remove_details);
    }
}

/// Removes null from the types of a property, and a null default.
fn remove_null(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
    if let Some(kinds) = property.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|it| it != "null");
        if let [kind] = &kinds[..] {
            let kind = kind.clone();
            property.insert("type".to_owned(), kind);
        }
    }
    if let Some(values) = property.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|it| !it.is_null());
    }
    let choices = property.get_mut("anyOf").and_then(Value::as_array_mut);
    let Some(choices) = choices else { return };
    choices.retain(|it| *it != json!({"type": "null"}));
    if let [Value::Object(only)] = &choices[..] {
        let only = only.clone();
        property.remove("anyOf");
        for (name, value) in only {
            property.entry(name).or_insert(value);
        }
    }
}

/// Removes alternatives at the top of a schema, which these providers refuse, and merges their
/// properties. Calls are checked against the original schema.
fn flatten(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    for choice in ["allOf", "anyOf", "oneOf"] {
        for part in schema.remove(choice).as_ref().and_then(Value::as_array).into_iter().flatten() {
            let named = part.get("properties").and_then(Value::as_object).into_iter().flatten();
            let known = schema.entry("properties").or_insert_with(|| json!({}));
            for (name, property) in named {
                if let Some(known) = known.as_object_mut() {
                    known.entry(name).or_insert_with(|| property.clone());
                }
            }
        }
    }
    schema.into()
}

/// The keywords of a strict schema besides its type.
const STRICT_KEYWORDS: &[&str] = &["description", "enum", "const", "pattern", "minimum", "maximum"];

/// Converts a schema to a strict one: every property is required, and an optional one may be null.
/// `None` if the type of a value is open.
fn to_strict(schema: &Value) -> Option<Value> {
    let mut strict: Map<String, Value> = STRICT_KEYWORDS
        .iter()
        .filter_map(|key: &&str| Some(((*key).to_owned(), schema.get(key)?.clone())))
        .collect();
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    if let Some(choices) = choices {
        let choices: Option<Vec<Value>> = choices.as_array()?.iter().map(to_strict).collect();
        strict.insert("anyOf".to_owned(), choices?.into());
        return Some(strict.into());
    }
    // These are not supported, so the result would be less precise.
    if ["$ref", "allOf", "not", "if", "patternProperties"].iter().any(|it| schema.get(it).is_some())
    {
        return None;
    }
    let kind = schema.get("type")?;
    strict.insert("type".to_owned(), kind.clone());
    match kind.as_str() {
        Some("object") => {
            if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
                return None;
            }
            let none = Map::new();
            let properties = schema.get("properties").map_or(Some(&none), Value::as_object)?;
            let required = schema.get("required").and_then(Value::as_array);
            let names: Vec<&String> = properties.keys().collect();
            strict.insert("required".to_owned(), json!(names));
            let properties: Option<Map<String, Value>> = properties
                .iter()
                .map(|(name, schema): (&String, &Value)| {
                    let schema = to_strict(schema)?;
                    let is_required = required.is_some_and(|it| it.iter().any(|it| it == name));
                    let schema = if is_required { schema } else { accept_null(schema) };
                    Some((name.clone(), schema))
                })
                .collect();
            strict.insert("properties".to_owned(), properties?.into());
            strict.insert("additionalProperties".to_owned(), false.into());
        }
        Some("array") => {
            strict.insert("items".to_owned(), to_strict(schema.get("items")?)?);
        }
        _ => {}
    }
    Some(strict.into())
}

/// Makes a schema accept null, too.
fn accept_null(schema: Value) -> Value {
    match schema.get("type") {
        Some(Value::String(kind)) if schema.get("enum").or(schema.get("const")).is_none() => {
            let kinds = json!([kind, "null"]);
            let Value::Object(mut schema) = schema else { return schema };
            schema.insert("type".to_owned(), kinds);
            schema.into()
        }
        Some(Value::Array(kinds)) if kinds.iter().any(|it| it == "null") => schema,
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}
