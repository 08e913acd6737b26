//! The parameters of a skill: parsed, checked against its schema, and passed to a script.

use std::collections::{BTreeMap, BTreeSet};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    outcome::{Outcome, OutcomeStatus},
    schema::{Schema, is_text_property, property},
    strict_json::strict_json,
};
pub use crate::{
    schema::{Mismatch, SchemaError, check_schema},
    tool_parameters::{ToolParameter, tool_parameters, unknown_parameters},
};

/// The maximum length of an environment variable with its name; the system allows no more.
const MAX_VARIABLE: usize = 128 * 1024;
/// The maximum total length of all variables; the system allows a few times that.
const MAX_VARIABLES: usize = 512 * 1024;
/// The maximum size of all parameters as JSON.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The message if the parameters are not an object.
const WANTED: &str = "parameters must be a JSON object, such as `{\"name\": \"value\"}`";
/// The message for a value that exceeds the depth limit of JSON parsers.
const TOO_DEEP: &str = "is nested too deeply";
/// The number of digits that every number preserves.
const EXACT_DIGITS: usize = 15;

/// The parameters of a skill, by name. Numbers are also kept as written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    values: Map<String, Value>,
    /// The JSON text of parameters that were given as JSON.
    texts: BTreeMap<String, String>,
    /// The exact text of parameters that were typed as `KEY=VALUE`.
    typed: BTreeMap<String, String>,
}

/// The parameters of a skill are invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParametersError {
    /// They do not match the schema.
    #[error("{}", join_mismatches(.0))]
    Mismatches(Vec<Mismatch>),
    /// The schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// The environment variables for a script, and the parameters that are too large for one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    pub(crate) variables: BTreeMap<String, String>,
    /// The parameters that are only in the file.
    pub(crate) too_large: Vec<String>,
}

impl Parameters {
    /// Returns their values.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Adds a parameter typed as `KEY=VALUE`. A value that is JSON is parsed as JSON, unless the
    /// schema says that it is a string, or it is a number with more digits than numbers preserve.
    pub fn add_pair(&mut self, pair: &str, schema: Option<&Value>) -> Result<(), Mismatch> {
        let Some((name, text)) = pair.split_once('=').filter(|it| !it.0.is_empty()) else {
            return Err(mismatch(pair, "is not KEY=VALUE"));
        };
        let property = schema.and_then(|it| property(it, name));
        let is_text = schema.is_some_and(|it| is_text_property(it, name));
        let value = match strict_json(text) {
            Ok(Value::Null) if property.is_some_and(is_nullable) => Value::Null,
            _ if is_text => Value::from(text),
            Ok(value) if is_exact(text, &value) => value,
            Err(error) if is_deep(&error) => return Err(mismatch(name, TOO_DEEP)),
            Err(error) if error.is_data() => return Err(mismatch(name, &describe_error(&error))),
            Ok(_) | Err(_) => Value::from(text),
        };
        self.insert(name.to_owned(), value, text.trim())?;
        self.typed.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    /// Adds the members of a JSON object.
    pub fn add_json(&mut self, json: &str) -> Result<(), Mismatch> {
        let Members(members) = serde_json::from_str(json).map_err(|error: serde_json::Error| {
            match serde_json::from_str(json) {
                Err(error) if is_deep(&error) => mismatch("", "this is nested too deeply"),
                Err(error) => mismatch("", &format!("{WANTED}, but this is not JSON: {error}")),
                Ok(Value::Object(_)) => mismatch("", &error.to_string()),
                Ok(other) => {
                    mismatch("", &format!("{WANTED}, but this is {}", describe_type(&other)))
                }
            }
        })?;
        for (name, text) in members {
            let value = strict_json(text.get()).map_err(|error| match is_deep(&error) {
                true => mismatch(&name, TOO_DEEP),
                false => mismatch(&name, &describe_error(&error)),
            })?;
            if !is_exact(text.get(), &value) {
                return Err(mismatch(
                    &name,
                    "has too many digits for a number: write it as a string",
                ));
            }
            self.insert(name, value, text.get())?;
        }
        Ok(())
    }

    /// Fills in the defaults of a schema and checks everything against it. Without a schema
    /// anything is allowed that is not too large.
    pub fn checked(mut self, schema: Option<&Value>) -> Result<Self, ParametersError> {
        let size = self.json().len();
        if size > MAX_BYTES {
            let message = format!("the parameters have {size} bytes, more than {MAX_BYTES}");
            return Err(ParametersError::Mismatches(vec![mismatch("", &message)]));
        }
        if let Some(schema) = schema {
            let schema = Schema::new(schema)?;
            let before = self.values.clone();
            schema.fill_defaults(&mut self.values);
            // The text of a parameter lacks the defaults inside of it.
            let is_same = |name: &String, _: &mut String| before.get(name) == self.values.get(name);
            self.texts.retain(is_same);
            self.typed.retain(is_same);
            let mismatches = schema.mismatches(&Value::Object(self.values.clone()));
            if !mismatches.is_empty() {
                return Err(ParametersError::Mismatches(mismatches));
            }
        }
        Ok(self)
    }

    /// Returns all of them as a JSON object, with every number as written.
    pub(crate) fn json(&self) -> String {
        format!(
            "{{{}}}",
            self.values
                .iter()
                .map(|(name, value): (&String, &Value)| {
                    let value = self.texts.get(name).cloned().unwrap_or_else(|| value.to_string());
                    format!("{}:{value}", Value::from(name.as_str()))
                })
                .collect::<Vec<_>>()
                .join(",")
        )
    }

    /// Returns each of them as an environment variable `PARAM_<NAME>`: typed text unchanged,
    /// otherwise strings unchanged and the rest as JSON. A name without any ASCII letter or digit
    /// has no variable.
    pub(crate) fn variables(&self) -> Result<Variables, ParametersError> {
        let mut mismatches = Vec::new();
        let (mut variables, mut too_large) = (BTreeMap::new(), Vec::new());
        let mut owners: BTreeMap<String, &String> = BTreeMap::new();
        let mut size = 0;
        for (name, value) in &self.values {
            let variable = variable_name(name);
            if let Some(variable) = &variable
                && let Some(other) = owners.insert(variable.clone(), name)
            {
                mismatches.push(mismatch(
                    name,
                    &format!(
                        "becomes the variable `{variable}` for a script, and so does `{other}`"
                    ),
                ));
            }
            let text = match (self.typed.get(name).or(self.texts.get(name)), value) {
                (Some(text), _) | (None, Value::String(text)) => text.clone(),
                (None, value) => value.to_string(),
            };
            if text.contains('\0') || name.contains('\0') {
                mismatches
                    .push(mismatch(name, "contains a NUL character, which no variable can have"));
            }
            let Some(variable) = variable else { continue };
            let length = variable.len() + text.len() + 2;
            if length > MAX_VARIABLE || size + length > MAX_VARIABLES {
                too_large.push(name.clone());
            } else {
                size += length;
                variables.insert(variable, text);
            }
        }
        if mismatches.is_empty() {
            Ok(Variables { variables, too_large })
        } else {
            Err(ParametersError::Mismatches(mismatches))
        }
    }

    fn insert(&mut self, name: String, value: Value, text: &str) -> Result<(), Mismatch> {
        if self.values.contains_key(&name) {
            return Err(mismatch(&name, "is given twice"));
        }
        if !value.is_string() {
            self.texts.insert(name.clone(), text.to_owned());
        }
        self.values.insert(name, value);
        Ok(())
    }
}

impl From<Map<String, Value>> for Parameters {
    fn from(values: Map<String, Value>) -> Self {
        Self { values, ..Self::default() }
    }
}

impl From<&ParametersError> for Outcome {
    fn from(error: &ParametersError) -> Self {
        let outcome = Self::error(OutcomeStatus::Invalid, error);
        match error {
            ParametersError::Mismatches(mismatches) => {
                Self { output: Some(json!({ "mismatches": mismatches })), ..outcome }
            }
            ParametersError::Schema(_) => outcome.hint("see the schema under `## Parameters`"),
        }
    }
}

/// The members of a JSON object, each as written. Names are unique.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members: Vec<(String, Box<RawValue>)> = Vec::new();
                let mut names = BTreeSet::new();
                while let Some((name, text)) = map.next_entry::<String, _>()? {
                    if !names.insert(name.clone()) {
                        return Err(de::Error::custom(format!("`{name}` appears twice")));
                    }
                    members.push((name, text));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// Returns the variable of a parameter; `None` if its name has no usable characters.
fn variable_name(name: &str) -> Option<String> {
    let upper = name.chars().map(|c| match c.to_ascii_uppercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    });
    let has_any = name.contains(|c: char| c.is_ascii_alphanumeric());
    has_any.then(|| "PARAM_".chars().chain(upper).collect())
}

/// Describes the type of a value.
fn describe_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "`null`",
        Value::Bool(_) => "`true` or `false`",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether parsing failed because of the depth, which only the message says.
fn is_deep(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit exceeded")
}

/// Describes an error inside of a parameter, without the line, which does not refer to the given
/// text.
fn describe_error(error: &serde_json::Error) -> String {
    let error = error.to_string();
    format!("cannot be used: {}", error.split(" at line ").next().unwrap_or(&error))
}

fn is_nullable(schema: &Value) -> bool {
    let types = schema.get("type").and_then(Value::as_array);
    types.is_some_and(|it| it.iter().any(|it| it == "null"))
}

/// Whether a value equals its text: a number may have lost digits.
fn is_exact(text: &str, value: &Value) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    !value.is_number() || value.is_i64() || value.is_u64() || digits <= EXACT_DIGITS
}

fn mismatch(parameter: &str, message: &str) -> Mismatch {
    Mismatch { parameter: parameter.to_owned(), message: message.to_owned() }
}

fn join_mismatches(mismatches: &[Mismatch]) -> String {
    mismatches.iter().map(Mismatch::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(pairs: &[&str], schema: Option<Value>) -> Parameters {
        let mut parameters = Parameters::default();
        for pair in pairs {
            parameters.add_pair(pair, schema.as_ref()).expect("it is KEY=VALUE");
        }
        parameters
    }

    #[test]
    fn what_is_json_is_taken_as_json_unless_the_schema_says_string() {
        let pairs = ["items=[\"a\",\"b\"]", "n=3", "flag=true", "word=x y", "none=", "v=1.10"];
        let parameters = typed(&pairs, None);
        let values = Value::from(parameters.values().clone());
        let expected =
            json!({"items": ["a", "b"], "n": 3, "flag": true, "word": "x y", "none": "", "v": 1.1});
        assert_eq!(values, expected);
        let schema = json!({"properties": {
            "v": {"type": "string"}, "zip": {"type": ["string", "null"]}, "q": {"enum": ["1", "2"]},
            "gone": {"$ref": "#/properties/zip"}, "either": {"type": ["string", "array"]},
        }});
        let pairs = ["v=1.10", "zip=01234", "q=1", "gone=null", "either=[1]", "other=1"];
        let values = Value::from(typed(&pairs, Some(schema)).values().clone());
        let expected = json!({
            "v": "1.10", "zip": "01234", "q": "1", "gone": null, "either": [1], "other": 1,
        });
        assert_eq!(values, expected);
    }

    #[test]
    fn numbers_reach_a_script_as_they_were_written() {
        let pairs = [
            "a=9223372036854775808",
            "b=18446744073709551616",
            "c=1e400",
            "d=-0",
            "e=NaN",
            "f=1.10",
            "g=3.14159265358979323846",
            "h= [1.0, 2e5] ",
        ];
        let parameters = typed(&pairs, None);
        let Variables { variables, .. } = parameters.variables().expect("all fit");
        let texts: Vec<&str> = variables.values().map(String::as_str).collect();
        assert_eq!(
            texts,
            [
                "9223372036854775808",
                "18446744073709551616",
                "1e400",
                "-0",
                "NaN",
                "1.10",
                "3.14159265358979323846",
                " [1.0, 2e5] ",
            ]
        );
        assert_eq!(
            parameters.json(),
            r#"{"a":9223372036854775808,"b":"18446744073709551616","c":"1e400","d":-0,"e":"NaN","f":1.10,"g":"3.14159265358979323846","h":[1.0, 2e5]}"#
        );
        let schema = json!({"properties": {"n": {"type": "number"}}});
        for text in ["n=1e400", "n=NaN", "n=18446744073709551616"] {
            let checked = typed(&[text], None).checked(Some(&schema));
            let message = checked.expect_err("it is no number").to_string();
            assert_eq!(message, "`n` is not of type \"number\"");
        }
    }

    #[test]
    fn a_json_object_is_read_as_written_and_never_twice() {
        let mut parameters = Parameters::default();
        let mut add = |json: &str| {
            let added = parameters.add_json(json).map_err(|it| it.to_string());
            added.err().unwrap_or_else(|| parameters.json())
        };
        assert_eq!(add(r#"{"a": 1.50, "b": [1e2]}"#), r#"{"a":1.50,"b":[1e2]}"#);
        assert_eq!(add(r#"{"a": 2}"#), "`a` is given twice");
        assert!(add(r#"{"c": 1, "c": 2}"#).contains("`c` appears twice"));
        assert_eq!(add(r#"{"d": 1e400}"#), "`d` cannot be used: number out of range");
        assert!(add(r#"{"d": "\ud800"}"#).contains("hex escape"));
        assert!(add(r#"{"d": [{"x": 1, "x": 1}]}"#).contains("`x` appears twice"));
        assert!(add(r#"{"e": 123456789012345678901}"#).starts_with("`e` has too many digits"));
        assert!(add("[1]").ends_with("`{\"name\": \"value\"}`, but this is a list"));
        assert!(add("{").contains("but this is not JSON: EOF"));
    }

    #[test]
    fn names_become_variables_and_may_not_collide() {
        let values = Map::from_iter([("über-größe.2".to_owned(), json!({"a": 1}))]);
        let Variables { variables, .. } =
            Parameters::from(values).variables().expect("there is only one");
        assert_eq!(
            Vec::from_iter(variables),
            [("PARAM__BER_GR__E_2".to_owned(), "{\"a\":1}".to_owned())]
        );
        let found = typed(&["城市=a", "日期=b", "-=c"], None).variables().expect("none is one");
        assert_eq!(found, Variables::default());
        let error = typed(&["a-b=1", "A_B=2", "c=a"], None).variables().expect_err("they collide");
        assert_eq!(
            error.to_string(),
            "`A_B` becomes the variable `PARAM_A_B` for a script, and so does `a-b`"
        );
        let values = Map::from_iter([("a".to_owned(), json!("x\0y"))]);
        let error = Parameters::from(values).variables().expect_err("it has a NUL");
        assert!(error.to_string().contains("NUL"), "{error}");
    }

    #[test]
    fn what_is_too_large_for_a_variable_stands_in_the_file() {
        let pairs: Vec<String> = ["a", "b", "c", "d", "e"]
            .map(|letter: &str| format!("{letter}={}", letter.repeat(MAX_VARIABLE - 10)))
            .into();
        let mut pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
        let larger = format!("f={}", "f".repeat(MAX_VARIABLE));
        pairs.push(&larger);
        let parameters = typed(&pairs, None);
        let found = parameters.variables().expect("nothing is wrong with them");
        assert_eq!(found.too_large, ["e", "f"]);
        assert_eq!(found.variables.len(), 4);
        let file: Value = serde_json::from_str(&parameters.json()).expect("it is JSON");
        assert_eq!(file["f"].as_str().map(str::len), Some(MAX_VARIABLE));
        let huge = Map::from_iter([("a".to_owned(), Value::from("x".repeat(MAX_BYTES)))]);
        assert!(Parameters::from(huge).checked(None).is_err());
    }

    #[test]
    fn pairs_that_are_none_are_refused() {
        let mut parameters = Parameters::default();
        let mut refused =
            |pair: &str| parameters.add_pair(pair, None).err().map(|it| it.to_string());
        assert_eq!(refused("x").as_deref(), Some("`x` is not KEY=VALUE"));
        assert_eq!(refused("=x").as_deref(), Some("`=x` is not KEY=VALUE"));
        assert_eq!(refused("a=1=2"), None);
        assert_eq!(refused("a=2").as_deref(), Some("`a` is given twice"));
    }

    #[test]
    fn a_default_inside_of_a_parameter_reaches_the_script_too() {
        let schema = json!({"properties": {"a": {"properties": {"b": {"default": 1}}}}});
        let parameters = typed(&["a={}"], None).checked(Some(&schema)).expect("it is right");
        assert_eq!(parameters.json(), r#"{"a":{"b":1}}"#);
    }
}
