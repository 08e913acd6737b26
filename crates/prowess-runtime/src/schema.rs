//! Checks values against JSON schemas from outside, within limits and without fetching anything.

mod number;
mod pattern;
mod keywords;
mod validator;

use std::{cell::Cell, collections::HashMap, fmt};

use prowess::beginning;
use serde::Serialize;
use serde_json::{Map, Value};

use self::{keywords::find_draft, validator::Validator};

/// The maximum number of values of a schema with all references followed.
const MAX_VALUES: usize = 4096;
/// The maximum depth with all references followed. Validation is recursive.
const MAX_DEPTH: usize = 64;
/// The maximum number of patterns.
const MAX_PATTERNS: usize = 100;
/// The maximum number of parts visited before the schema is validated.
const MAX_READ: usize = 500;
/// The maximum number of reported mismatches.
const MAX_MISMATCHES: usize = 20;

/// A schema that values can be checked against in bounded time.
#[derive(Debug)]
pub(crate) struct Schema<'s> {
    root: &'s Value,
    validator: Validator<'s>,
}

/// A schema cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Checking values would take too long.
    #[error("the schema is too large: {what}")]
    TooLarge {
        /// The quantity that exceeds its limit.
        what: String,
    },
    /// It has an external reference, or a circular one.
    #[error("the schema cannot refer to `{reference}`: {reason}")]
    Reference {
        /// The reference.
        reference: String,
        /// The reason why it is not followed.
        reason: &'static str,
    },
    /// It is not a valid JSON schema.
    #[error("the schema is not valid: {message}")]
    Invalid {
        /// The error.
        message: String,
    },
}

/// A mismatch between a value and a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Mismatch {
    /// The part of the value, such as `items[0].name`; empty for all of it.
    pub parameter: String,
    /// The error message.
    pub message: String,
}

/// Fails if a JSON schema cannot be used to check parameters.
pub fn check_schema(schema: &Value) -> Result<(), SchemaError> {
    Schema::new(schema).map(drop)
}

impl<'s> Schema<'s> {
    /// Compiles a schema. External references are refused, not fetched.
    pub(crate) fn new(root: &'s Value) -> Result<Self, SchemaError> {
        Walk::new(root).measure(root, 0)?;
        let draft = find_draft(root).ok_or_else(|| {
            let reason = "only drafts 6, 7, 2019-09 and 2020-12 are supported";
            reference_error(text(root, "$schema").unwrap_or_default(), reason)
        })?;
        let validator = Validator::new(root, draft)
            .map_err(|message| SchemaError::Invalid { message: shortened(&message) })?;
        Ok(Self { root, validator })
    }

    /// Returns all mismatches of a value, sorted by place.
    pub(crate) fn mismatches(&self, value: &Value) -> Vec<Mismatch> {
        let mut mismatches = self.validator.mismatches(value);
        mismatches.sort();
        mismatches.dedup();
        if mismatches.len() > MAX_MISMATCHES {
            let message =
                format!("there are {} more mismatches", mismatches.len() - MAX_MISMATCHES);
            mismatches.truncate(MAX_MISMATCHES);
            mismatches.push(Mismatch { parameter: String::new(), message });
        }
        mismatches
    }

    /// Fills in missing values that have a default, also inside of given objects.
    pub(crate) fn fill_defaults(&self, values: &mut Map<String, Value>) {
        self.fill_in(self.root, values);
    }

    fn fill_in(&self, schema: &'s Value, values: &mut Map<String, Value>) {
        let Some(properties) =
            resolve(self.root, schema).get("properties").and_then(Value::as_object)
        else {
            return;
        };
        for (name, property) in properties {
            let resolved = resolve(self.root, property);
            let default = property.get("default").or_else(|| resolved.get("default"));
            if let (false, Some(default)) = (values.contains_key(name), default) {
                values.insert(name.clone(), default.clone());
            }
            if let Some(Value::Object(inner)) = values.get_mut(name) {
                self.fill_in(resolved, inner);
            }
        }
    }
}

/// Returns the schema of a property, as far as possible without evaluating the whole.
pub(crate) fn property<'s>(root: &'s Value, name: &str) -> Option<&'s Value> {
    let property = resolve(root, root).get("properties")?.get(name)?;
    Some(resolve(root, property))
}

/// Whether a schema declares a property to be a string, in any place. False if the schema is too
/// large to search.
pub(crate) fn is_text_property(root: &Value, name: &str) -> bool {
    SchemaCheck { root, left: Cell::new(MAX_READ) }.declares_text(root, name) == Some(true)
}

/// A schema that is searched before it is validated.
struct SchemaCheck<'s> {
    root: &'s Value,
    /// The number of parts that may still be visited.
    left: Cell<usize>,
}

impl SchemaCheck<'_> {
    /// Whether a schema declares a property to be a string; `None` if it does not mention it.
    fn declares_text(&self, schema: &Value, name: &str) -> Option<bool> {
        let schema = self.visit(schema)?;
        let own = applicable_schema(schema, name).map(|it| self.is_text(it));
        let [any, one, all] = ["anyOf", "oneOf", "allOf"].map(|key| {
            let parts = subschemas(schema, key).filter_map(|it| self.declares_text(it, name));
            parts.collect::<Vec<bool>>()
        });
        let choices = [any, one].into_iter().filter(|it| !it.is_empty());
        let choices = choices.map(|it| it.into_iter().all(|it| it));
        own.into_iter().chain(all).chain(choices).max()
    }

    /// Whether a schema requires a string or null.
    fn is_text(&self, schema: &Value) -> bool {
        let Some(schema) = self.visit(schema) else { return false };
        let own = match (schema.get("type"), schema.get("enum")) {
            (Some(Value::Array(types)), _) => types.iter().all(|it| it == "string" || it == "null"),
            (Some(kind), _) => kind == "string",
            (None, Some(Value::Array(values))) => values.iter().all(Value::is_string),
            (None, _) => schema.get("const").is_some_and(Value::is_string),
        };
        own || subschemas(schema, "allOf").any(|it| self.is_text(it))
            || self.are_texts(schema, "anyOf")
            || self.are_texts(schema, "oneOf")
    }

    /// Whether each of the choices in a list requires a string or null.
    fn are_texts(&self, schema: &Value, key: &str) -> bool {
        let mut choices = subschemas(schema, key).peekable();
        choices.peek().is_some()
            && choices.all(|it| {
                let is_null = resolve(self.root, it).get("type").is_some_and(|it| it == "null");
                is_null || self.is_text(it)
            })
    }

    fn visit<'v>(&'v self, schema: &'v Value) -> Option<&'v Value> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(resolve(self.root, schema))
    }
}

/// Returns the schema that applies to a property: its own, that of the first pattern that its name
/// matches, or that of additional properties.
fn applicable_schema<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    if let Some(own) = schema.get("properties").and_then(|it| it.get(name)) {
        return Some(own);
    }
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let mut patterns = patterns.into_iter().flatten().take(MAX_PATTERNS);
    let by_pattern =
        patterns.find(|(pattern, _)| pattern::compile(pattern).is_ok_and(|it| it.is_match(name)));
    by_pattern
        .map(|it| it.1)
        .or_else(|| schema.get("additionalProperties").filter(|it| it.is_object()))
}

/// Returns the schemas in a list of them.
pub(crate) fn subschemas<'s>(schema: &'s Value, key: &str) -> impl Iterator<Item = &'s Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.parameter {
            "" => f.write_str(&self.message),
            parameter => write!(f, "`{parameter}` {}", self.message),
        }
    }
}

/// Measures a schema with all of its references. A plain value cannot be distinguished from a
/// schema, so everything is treated as one.
struct Walk<'s> {
    root: &'s Value,
    /// The size and depth of each reference.
    measured: HashMap<&'s str, Extent>,
    /// The references that are being followed.
    open: Vec<&'s str>,
    patterns: usize,
}

/// The number of values, and their depth.
#[derive(Clone, Copy)]
struct Extent {
    size: usize,
    height: usize,
}

impl Extent {
    /// Adds another one inside of it.
    fn nest(self, inner: Self) -> Self {
        Self { size: self.size + inner.size, height: self.height.max(inner.height + 1) }
    }

    /// Fails if it exceeds the limits at this depth.
    fn check(self, depth: usize) -> Result<Self, SchemaError> {
        if depth + self.height > MAX_DEPTH {
            return Err(too_large(format!("it is more than {MAX_DEPTH} levels deep")));
        }
        if self.size > MAX_VALUES {
            return Err(too_large(format!("it has more than {MAX_VALUES} values")));
        }
        Ok(self)
    }
}

impl<'s> Walk<'s> {
    fn new(root: &'s Value) -> Self {
        Self { root, measured: HashMap::new(), open: Vec::new(), patterns: 0 }
    }

    fn measure(&mut self, value: &'s Value, depth: usize) -> Result<Extent, SchemaError> {
        let mut extent = Extent { size: 1, height: 1 }.check(depth)?;
        self.check_keywords(value, depth)?;
        let (items, members) = (value.as_array(), value.as_object());
        for it in items.into_iter().flatten().chain(members.into_iter().flat_map(Map::values)) {
            extent = extent.nest(self.measure(it, depth + 1)?).check(depth)?;
        }
        if let Some(reference) = text(value, "$ref") {
            extent = extent.nest(self.follow(reference, depth + 1)?).check(depth)?;
        }
        Ok(extent)
    }

    fn follow(&mut self, reference: &'s str, depth: usize) -> Result<Extent, SchemaError> {
        if self.open.contains(&reference) {
            return Err(reference_error(reference, "it is circular"));
        }
        if let Some(measured) = self.measured.get(reference) {
            return Ok(*measured);
        }
        if !reference.starts_with('#') {
            let reason = "only references inside the schema are supported";
            return Err(reference_error(reference, reason));
        }
        let target = find_target(self.root, reference)
            .ok_or_else(|| reference_error(reference, "it does not exist"))?;
        self.open.push(reference);
        let measured = self.measure(target, depth)?;
        self.open.pop();
        self.measured.insert(reference, measured);
        Ok(measured)
    }

    /// Refuses keywords that would make a reference mean something else than [`find_target`] finds.
    fn check_keywords(&mut self, value: &Value, depth: usize) -> Result<(), SchemaError> {
        for key in ["$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = text(value, key) {
                return Err(reference_error(reference, "only `$ref` is supported"));
            }
        }
        for key in ["$id", "$schema"].iter().filter(|_| depth > 0) {
            if let Some(reference) = text(value, key) {
                let reason = "a schema inside of a schema has no address of its own";
                return Err(reference_error(reference, reason));
            }
        }
        let by_name = value.get("patternProperties").and_then(Value::as_object);
        let pattern = text(value, "pattern");
        self.patterns += usize::from(pattern.is_some()) + by_name.map_or(0, Map::len);
        if self.patterns > MAX_PATTERNS {
            return Err(too_large(format!("it has more than {MAX_PATTERNS} patterns")));
        }
        Ok(())
    }
}

fn too_large(what: String) -> SchemaError {
    SchemaError::TooLarge { what }
}

fn reference_error(reference: &str, reason: &'static str) -> SchemaError {
    SchemaError::Reference { reference: shortened(reference), reason }
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Follows the references of a schema; returns itself if there are none.
pub(crate) fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        match text(schema, "$ref").and_then(|it| find_target(root, it)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// Returns the target of a reference inside of a schema.
fn find_target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Returns the beginning of a foreign text.
pub(crate) fn shortened(text: &str) -> String {
    beginning(text, 200).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(schema: &Value) -> String {
        Schema::new(schema).err().map(|it| it.to_string()).unwrap_or_default()
    }

    fn mismatches(schema: Value, value: Value) -> Vec<String> {
        let schema = Schema::new(&schema).expect("it is a schema");
        schema.mismatches(&value).iter().map(Mismatch::to_string).collect()
    }

    #[test]
    fn every_mismatch_is_told_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "count": {"type": "integer", "minimum": 1},
                "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                "mode": {"enum": ["fast", "slow"]},
            },
            "required": ["count", "name"],
            "additionalProperties": false,
            "$defs": {"item": {"type": "object", "properties": {"id": {"type": "string"}}}},
        });
        let value = json!({"count": "3", "items": [{}, {"id": 7}], "mode": "x", "nme": 1});
        assert_eq!(
            mismatches(schema, value),
            [
                "`count` is not of type \"integer\"",
                "`items[1].id` is not of type \"string\"",
                "`mode` is not one of \"fast\" or \"slow\"",
                "`name` is missing",
                "`nme` is not a parameter",
            ]
        );
    }

    #[test]
    fn no_reference_is_fetched_or_followed_without_end() {
        let outside = "only references inside the schema are supported";
        for (schema, reason) in [
            (json!({"$ref": "http://127.0.0.1:1/x.json"}), outside),
            (json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}), outside),
            (json!({"properties": {"a": {"$ref": "other.json"}}}), outside),
            (json!({"$ref": "#"}), "it is circular"),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}), "circular"),
            (json!({"$ref": "#/$defs/a"}), "it does not exist"),
            (json!({"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}}), "it does not exist"),
            (json!({"items": {"$dynamicRef": "#a"}}), "only `$ref` is supported"),
            (json!({"items": {"$id": "http://x/y"}}), "no address of its own"),
            (json!({"$schema": "http://x/own"}), "only drafts"),
            (json!({"$schema": "http://json-schema.org/draft-04/schema#"}), "only drafts"),
        ] {
            let message = refusal(&schema);
            assert!(message.contains(reason), "{schema}: {message}");
        }
        assert_eq!(
            refusal(&json!({"$schema": "https://json-schema.org/draft/2020-12/schema"})),
            ""
        );
    }

    #[test]
    fn what_would_take_long_is_refused() {
        let mut doubling = Map::new();
        for number in 0..40 {
            let next = json!({"$ref": format!("#/$defs/{}", number + 1)});
            doubling.insert(number.to_string(), json!({"allOf": [next, next]}));
        }
        doubling.insert("40".to_owned(), json!({}));
        let doubling = json!({"$ref": "#/$defs/0", "$defs": doubling});
        assert!(refusal(&doubling).contains("too large"), "{}", refusal(&doubling));

        let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
        assert!(refusal(&deep).contains("levels deep"), "{}", refusal(&deep));

        let many: Vec<Value> = (0..200).map(|it| json!({"pattern": format!("{it}")})).collect();
        assert!(refusal(&json!({"anyOf": many})).contains("patterns"));
        assert!(refusal(&json!({"pattern": "(\\w{500}){500}"})).contains("not valid"));
        assert!(refusal(&json!({"pattern": "(?=a)b"})).contains("not valid"));
        assert!(refusal(&json!({"type": "intger"})).contains("not valid"));
    }

    #[test]
    fn a_pattern_takes_linear_time() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let value = json!({"a": format!("{}b", "a".repeat(100_000))});
        assert_eq!(mismatches(schema, value).len(), 1);
    }

    #[test]
    fn defaults_are_filled_in_where_nothing_is_given() {
        let schema = json!({
            "properties": {
                "a": {"default": 1},
                "b": {"$ref": "#/$defs/b"},
                "c": {"properties": {"d": {"default": true}}},
                "e": {"properties": {"d": {"default": true}}},
            },
            "$defs": {"b": {"default": "two"}},
        });
        let mut values = Map::from_iter([("c".to_owned(), json!({})), ("a".to_owned(), json!(0))]);
        Schema::new(&schema).expect("it is a schema").fill_defaults(&mut values);
        assert_eq!(Value::from(values), json!({"c": {"d": true}, "a": 0, "b": "two"}));
    }
}
