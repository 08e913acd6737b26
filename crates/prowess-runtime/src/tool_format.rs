//! Tools as those who offer models want to be told about them.

use serde_json::{Map, Value, json};

use crate::tool::Tool;

/// How tools are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolFormat {
    /// `name`, `description` and `input_schema`, as Anthropic takes them.
    #[default]
    Anthropic,
    /// Functions with `parameters`, as OpenAI takes them; strict where the schema can be.
    OpenAi,
    /// `name`, `description`, `inputSchema` and `outputSchema`, as in the Model Context Protocol.
    Mcp,
}

impl ToolFormat {
    /// Tells about a tool; nothing if its name is not one that can be told, or its input no object.
    pub fn tell(self, tool: &dyn Tool) -> Option<Value> {
        let (name, description) = (tool.name(), tool.description());
        let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
        let most = if self == Self::OpenAi { 64 } else { 128 };
        if name.is_empty() || name.len() > most || !name.bytes().all(is_letter) {
            return None;
        }
        let schema = plain_schema(tool.input_schema());
        if schema.get("type")? != "object" {
            return None;
        }
        let told = if self == Self::Mcp { schema.clone() } else { flat(schema.clone()) };
        // What is left out of a schema cannot be kept strictly.
        let strict = strict(&schema).filter(|_| told == schema);
        let schema = told;
        Some(match self {
            Self::Anthropic => {
                json!({"name": name, "description": description, "input_schema": schema})
            }
            Self::Mcp => {
                let mut told =
                    json!({"name": name, "description": description, "inputSchema": schema});
                if let Some(schema) = tool.output_schema() {
                    told["outputSchema"] = plain(schema);
                }
                told
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

/// The schema of a tool's input as a model is told it, always that of an object: without what it says about
/// itself as a whole, the sizes of numbers, and that what may be left out may be null as well.
pub fn plain_schema(mut schema: Value) -> Value {
    lean(&mut schema);
    plain(schema)
}

/// A schema without what it says about itself as a whole; always that of an object.
fn plain(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return json!({"type": "object"}) };
    for noise in ["$schema", "title", "description"] {
        schema.remove(noise);
    }
    schema.entry("type").or_insert_with(|| "object".into());
    schema.into()
}

/// The formats that say how large a number may be in the memory of some program.
const SIZES: &[&str] =
    &["uint", "uint8", "uint16", "uint32", "uint64", "int", "int32", "int64", "float", "double"];

fn lean(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    if schema.get("format").and_then(Value::as_str).is_some_and(|it| SIZES.contains(&it)) {
        schema.remove("format");
    }
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        lean(property);
        if required.iter().all(|it| it != name) {
            without_null(property);
        }
    }
    for inner in ["items", "additionalProperties"] {
        schema.get_mut(inner).into_iter().for_each(lean);
    }
    for choice in ["allOf", "anyOf", "oneOf"] {
        let choices = schema.get_mut(choice).and_then(Value::as_array_mut);
        choices.into_iter().flatten().for_each(lean);
    }
}

/// Takes null out of what a property can be, and what it is when it is not there.
fn without_null(property: &mut Value) {
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

/// The same schema without alternatives at its top, which these providers refuse: with the properties of
/// all of them. What is called is checked against the schema itself.
fn flat(schema: Value) -> Value {
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

/// What a strict schema may say beside its type.
const KEPT: &[&str] = &["description", "enum", "const", "pattern", "minimum", "maximum"];

/// The same schema as a strict one: every property is required, and one that was not may be null.
/// Nothing if it leaves open what a value is.
fn strict(schema: &Value) -> Option<Value> {
    let kept = || {
        let kept =
            KEPT.iter().filter_map(|key| Some(((*key).to_owned(), schema.get(key)?.clone())));
        kept.collect::<Map<String, Value>>()
    };
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    if let Some(choices) = choices {
        let choices: Option<Vec<Value>> = choices.as_array()?.iter().map(strict).collect();
        let mut made = kept();
        made.insert("anyOf".to_owned(), choices?.into());
        return Some(made.into());
    }
    // What these say is not taken over, so the schema would say less.
    if ["$ref", "allOf", "not", "if", "patternProperties"].iter().any(|it| schema.get(it).is_some())
    {
        return None;
    }
    let kind = schema.get("type")?;
    let mut made = kept();
    made.insert("type".to_owned(), kind.clone());
    match kind.as_str() {
        Some("object") => {
            if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
                return None;
            }
            let none = Map::new();
            let properties = schema.get("properties").map_or(Some(&none), Value::as_object)?;
            let required = schema.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
            let property = |(name, schema): (&String, &Value)| {
                let schema = strict(schema)?;
                let schema = if is_required(name) { schema } else { nullable(schema) };
                Some((name.clone(), schema))
            };
            let names: Vec<&String> = properties.keys().collect();
            made.insert("required".to_owned(), json!(names));
            let properties: Option<Map<String, Value>> = properties.iter().map(property).collect();
            made.insert("properties".to_owned(), properties?.into());
            made.insert("additionalProperties".to_owned(), false.into());
        }
        Some("array") => {
            made.insert("items".to_owned(), strict(schema.get("items")?)?);
        }
        _ => {}
    }
    Some(made.into())
}

/// The same schema, which also takes null.
fn nullable(schema: Value) -> Value {
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
