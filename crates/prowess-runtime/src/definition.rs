//! Definitions as JSON: `{"content"}`, `{"steps"}`, `{"script"}` or `{"template"}`, by type.

use prowess::{CompositeStep, Definition, Type};
use serde_json::{Map, Value, json};

/// A definition in JSON does not match its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// The type is unknown.
    #[error("unknown type `{word}`, expected one of {}", Type::ALL.map(Type::as_str).join(", "))]
    Type {
        /// The given word.
        word: String,
    },
    /// A required key is missing, or has the wrong type.
    #[error("a definition of type {kind} needs {what}")]
    Missing {
        /// The type.
        kind: Type,
        /// The required key.
        what: &'static str,
    },
    /// A key is unknown to the type.
    #[error("a definition of type {kind} has an unknown key `{key}`")]
    Unknown {
        /// The type.
        kind: Type,
        /// The key.
        key: String,
    },
    /// A step of a composite has an unknown key.
    #[error("step {number} has an unknown key `{key}`; it can have `tool` and `params`")]
    StepKey {
        /// The step, counted from 1.
        number: usize,
        /// The key.
        key: String,
    },
    /// A step of a composite is invalid.
    #[error("step {number} needs {what}")]
    Step {
        /// The step, counted from 1.
        number: usize,
        /// The required key.
        what: &'static str,
    },
}

/// Parses the name of a type.
pub fn type_from_word(word: &str) -> Result<Type, ShapeError> {
    Type::from_word(word).ok_or_else(|| ShapeError::Type { word: word.to_owned() })
}

/// Parses the definition of a type. An instruction may be empty.
pub fn definition_from_json(kind: Type, json: &Value) -> Result<Definition, ShapeError> {
    let object = match json {
        Value::Null => &Map::new(),
        Value::Object(object) => object,
        _ => return Err(ShapeError::Missing { kind, what: "to be an object" }),
    };
    let key = key(kind);
    if let Some(other) = object.keys().find(|it| *it != key) {
        return Err(ShapeError::Unknown { kind, key: other.clone() });
    }
    let text = |what| match object.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(ShapeError::Missing { kind, what }),
    };
    Ok(match kind {
        Type::Instruction if !object.contains_key(key) => {
            Definition::Instruction { content: String::new() }
        }
        Type::Instruction => Definition::Instruction { content: text("a `content` string")? },
        Type::Script => Definition::Script { script: text("a `script` string")? },
        Type::Template => Definition::Template { template: text("a `template` string")? },
        Type::Composite => {
            let steps = object.get(key).and_then(Value::as_array).filter(|it| !it.is_empty());
            let what = "a non-empty list of `steps`";
            let steps = steps.ok_or(ShapeError::Missing { kind, what })?;
            let steps = steps.iter().enumerate().map(|(at, it)| parse_step(at + 1, it));
            Definition::Composite { steps: steps.collect::<Result<_, _>>()? }
        }
    })
}

/// Converts a definition to the JSON that [`definition_from_json`] parses.
pub fn definition_to_json(definition: &Definition) -> Value {
    match definition {
        Definition::Instruction { content } => json!({ "content": content }),
        Definition::Script { script } => json!({ "script": script }),
        Definition::Template { template } => json!({ "template": template }),
        Definition::Composite { steps } => {
            let steps = steps.iter().map(|it| json!({ "tool": it.tool, "params": it.params }));
            json!({ "steps": steps.collect::<Vec<_>>() })
        }
    }
}

fn key(kind: Type) -> &'static str {
    match kind {
        Type::Instruction => "content",
        Type::Script => "script",
        Type::Template => "template",
        Type::Composite => "steps",
    }
}

fn parse_step(number: usize, json: &Value) -> Result<CompositeStep, ShapeError> {
    let tool = json.get("tool").and_then(Value::as_str).filter(|it| !it.is_empty());
    let tool = tool.ok_or(ShapeError::Step { number, what: "a `tool`" })?.to_owned();
    let mut keys = json.as_object().into_iter().flat_map(Map::keys);
    if let Some(key) = keys.find(|it| !["tool", "params"].contains(&it.as_str())) {
        return Err(ShapeError::StepKey { number, key: key.clone() });
    }
    let params = match json.get("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params.clone(),
        Some(_) => return Err(ShapeError::Step { number, what: "a `params` object" }),
    };
    Ok(CompositeStep { tool, params })
}
