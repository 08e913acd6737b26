//! The keywords of JSON schemas, and what their values must be.

use std::collections::{HashMap, HashSet};

use regex::Regex;
use serde_json::{Map, Value};

use super::{find_target, pattern, text};

/// A version of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Six,
    Seven,
    Year2019,
    Year2020,
}

/// What the value of a keyword must be.
#[derive(Clone, Copy)]
enum Kind {
    Schema,
    /// A list with at least one schema.
    Schemas,
    /// A schema or, before 2020-12, a list of them.
    Items,
    /// Schemas by name.
    SchemasByName,
    /// Schemas by pattern.
    SchemasByPattern,
    /// Schemas or names by name.
    Dependencies,
    /// Names by name.
    NamesByName,
    Names,
    Types,
    Text,
    Pattern,
    Reference,
    Flag,
    List,
    Number,
    Positive,
    Count,
}

/// All keywords whose values are checked, with the first draft that knows them.
const KEYWORDS: &[(&str, Kind, Draft)] = &[
    ("$anchor", Kind::Text, Draft::Year2019),
    ("$comment", Kind::Text, Draft::Seven),
    ("$defs", Kind::SchemasByName, Draft::Year2019),
    ("$id", Kind::Text, Draft::Six),
    ("$ref", Kind::Reference, Draft::Six),
    ("$schema", Kind::Text, Draft::Six),
    ("additionalItems", Kind::Schema, Draft::Six),
    ("additionalProperties", Kind::Schema, Draft::Six),
    ("allOf", Kind::Schemas, Draft::Six),
    ("anyOf", Kind::Schemas, Draft::Six),
    ("contains", Kind::Schema, Draft::Six),
    ("contentEncoding", Kind::Text, Draft::Seven),
    ("contentMediaType", Kind::Text, Draft::Seven),
    ("contentSchema", Kind::Schema, Draft::Year2019),
    ("definitions", Kind::SchemasByName, Draft::Six),
    ("dependencies", Kind::Dependencies, Draft::Six),
    ("dependentRequired", Kind::NamesByName, Draft::Year2019),
    ("dependentSchemas", Kind::SchemasByName, Draft::Year2019),
    ("deprecated", Kind::Flag, Draft::Year2019),
    ("description", Kind::Text, Draft::Six),
    ("else", Kind::Schema, Draft::Seven),
    ("enum", Kind::List, Draft::Six),
    ("examples", Kind::List, Draft::Six),
    ("exclusiveMaximum", Kind::Number, Draft::Six),
    ("exclusiveMinimum", Kind::Number, Draft::Six),
    ("format", Kind::Text, Draft::Six),
    ("if", Kind::Schema, Draft::Seven),
    ("items", Kind::Items, Draft::Six),
    ("maxContains", Kind::Count, Draft::Year2019),
    ("maxItems", Kind::Count, Draft::Six),
    ("maxLength", Kind::Count, Draft::Six),
    ("maxProperties", Kind::Count, Draft::Six),
    ("maximum", Kind::Number, Draft::Six),
    ("minContains", Kind::Count, Draft::Year2019),
    ("minItems", Kind::Count, Draft::Six),
    ("minLength", Kind::Count, Draft::Six),
    ("minProperties", Kind::Count, Draft::Six),
    ("minimum", Kind::Number, Draft::Six),
    ("multipleOf", Kind::Positive, Draft::Six),
    ("not", Kind::Schema, Draft::Six),
    ("oneOf", Kind::Schemas, Draft::Six),
    ("pattern", Kind::Pattern, Draft::Six),
    ("patternProperties", Kind::SchemasByPattern, Draft::Six),
    ("prefixItems", Kind::Schemas, Draft::Year2020),
    ("properties", Kind::SchemasByName, Draft::Six),
    ("propertyNames", Kind::Schema, Draft::Six),
    ("readOnly", Kind::Flag, Draft::Seven),
    ("required", Kind::Names, Draft::Six),
    ("then", Kind::Schema, Draft::Seven),
    ("title", Kind::Text, Draft::Six),
    ("type", Kind::Types, Draft::Six),
    ("unevaluatedItems", Kind::Schema, Draft::Year2019),
    ("unevaluatedProperties", Kind::Schema, Draft::Year2019),
    ("uniqueItems", Kind::Flag, Draft::Six),
    ("writeOnly", Kind::Flag, Draft::Seven),
];

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Checks that a schema is one; collects what validation needs of it.
pub(super) struct Reader<'s> {
    root: &'s Value,
    draft: Draft,
    pub(super) patterns: HashMap<&'s str, Regex>,
    /// Whether it asks which parts of a value were evaluated.
    pub(super) has_unevaluated: bool,
    followed: HashSet<&'s str>,
    /// Whether values are checked against what is being read. Patterns need not be usable if not.
    is_used: bool,
}

impl<'s> Reader<'s> {
    pub(super) fn new(root: &'s Value, draft: Draft) -> Self {
        let (patterns, followed) = (HashMap::new(), HashSet::new());
        Self { root, draft, patterns, has_unevaluated: false, followed, is_used: true }
    }

    /// Reads a schema, and those it refers to. The recursion ends, because the schema was measured.
    pub(super) fn read(&mut self, schema: &'s Value) -> Result<(), String> {
        let members = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(members) => members,
            other => return Err(format!("{other} is neither an object nor a boolean")),
        };
        let is_used = self.is_used;
        let is_reference = self.draft <= Draft::Seven && members.contains_key("$ref");
        for (keyword, value) in members {
            let Ok(index) = KEYWORDS.binary_search_by(|it| it.0.cmp(keyword)) else { continue };
            let (_, kind, first) = KEYWORDS[index];
            let last = if keyword == "additionalItems" { Draft::Year2019 } else { Draft::Year2020 };
            if (first..=last).contains(&self.draft) {
                self.has_unevaluated |= keyword.starts_with("unevaluated");
                let is_ignored = matches!(&**keyword, "$defs" | "definitions" | "contentSchema")
                    || is_reference && keyword != "$ref";
                self.is_used = is_used && !is_ignored;
                self.read_value(kind, value).map_err(|error| match error {
                    Fault::Here(what) => format!("`{keyword}` is {value}, not {what}"),
                    Fault::Below(message) => message,
                })?;
            }
        }
        self.is_used = is_used;
        Ok(())
    }

    fn read_value(&mut self, kind: Kind, value: &'s Value) -> Result<(), Fault> {
        let holds = match kind {
            Kind::Schema => return Ok(self.read(value)?),
            Kind::Items if !value.is_array() => return Ok(self.read(value)?),
            Kind::Items if self.draft >= Draft::Year2020 => {
                return Err(Fault::Here("a schema (a list is `prefixItems`)"));
            }
            Kind::Items | Kind::Schemas => {
                let schemas = value.as_array().filter(|it| !it.is_empty());
                let schemas = schemas.ok_or(Fault::Here("a list of schemas"))?;
                return Ok(schemas.iter().try_for_each(|it| self.read(it))?);
            }
            Kind::SchemasByName | Kind::SchemasByPattern => {
                let schemas = value.as_object().ok_or(Fault::Here("an object of schemas"))?;
                if matches!(kind, Kind::SchemasByPattern) {
                    schemas.keys().try_for_each(|it| self.read_pattern(it))?;
                }
                return Ok(schemas.values().try_for_each(|it| self.read(it))?);
            }
            Kind::Dependencies => {
                let by_name = value.as_object().ok_or(Fault::Here("an object of schemas"))?;
                for it in by_name.values() {
                    match it.is_array() {
                        true => self.read_value(Kind::Names, it)?,
                        false => self.read(it)?,
                    }
                }
                return Ok(());
            }
            Kind::NamesByName => {
                let by_name = value.as_object().map(Map::values);
                let mut by_name = by_name.ok_or(Fault::Here("an object of lists of names"))?;
                return by_name.try_for_each(|it| self.read_value(Kind::Names, it));
            }
            Kind::Pattern => match value.as_str() {
                Some(pattern) => return Ok(self.read_pattern(pattern)?),
                None => false,
            },
            Kind::Reference => match value.as_str() {
                Some(reference) => return Ok(self.read_reference(reference)?),
                None => false,
            },
            Kind::Names => value.as_array().is_some_and(|it| are_names(it)),
            Kind::Types => match value {
                Value::Array(types) => {
                    !types.is_empty() && types.iter().all(is_type) && are_names(types)
                }
                one => is_type(one),
            },
            Kind::Text => value.is_string(),
            Kind::Flag => value.is_boolean(),
            Kind::List => value.is_array(),
            Kind::Number => value.is_number(),
            Kind::Positive => value.as_f64().is_some_and(|it| it > 0.0),
            Kind::Count => count(value).is_some(),
        };
        if holds { Ok(()) } else { Err(Fault::Here(kind.description())) }
    }

    fn read_pattern(&mut self, pattern: &'s str) -> Result<(), String> {
        if self.is_used && !self.patterns.contains_key(pattern) {
            let compiled = pattern::compile(pattern)
                .map_err(|error| format!("the pattern `{pattern}` cannot be used: {error}"))?;
            self.patterns.insert(pattern, compiled);
        }
        Ok(())
    }

    fn read_reference(&mut self, reference: &'s str) -> Result<(), String> {
        match find_target(self.root, reference) {
            Some(target) if self.is_used && self.followed.insert(reference) => self.read(target),
            _ => Ok(()),
        }
    }
}

/// What is wrong: with this value, or with one inside of it.
enum Fault {
    Here(&'static str),
    Below(String),
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Below(message)
    }
}

impl Kind {
    fn description(self) -> &'static str {
        match self {
            Self::Schema => "a schema",
            Self::Schemas | Self::Items => "a list of schemas",
            Self::SchemasByName | Self::SchemasByPattern | Self::Dependencies => {
                "an object of schemas"
            }
            Self::NamesByName => "an object of lists of names",
            Self::Names => "a list of different names",
            Self::Types => "a type",
            Self::Text | Self::Pattern | Self::Reference => "a string",
            Self::Flag => "true or false",
            Self::List => "a list",
            Self::Number => "a number",
            Self::Positive => "a number above zero",
            Self::Count => "a whole number from zero",
        }
    }
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|it| TYPES.contains(&it))
}

fn are_names(names: &[Value]) -> bool {
    let mut seen = HashSet::new();
    names.iter().all(|it| it.as_str().is_some_and(|it| seen.insert(it)))
}

/// Returns a whole number from zero, which may be written with a fraction of zero.
pub(super) fn count(value: &Value) -> Option<u64> {
    let float = value.as_f64().filter(|it| *it >= 0.0 && it.fract() == 0.0);
    value.as_u64().or_else(|| float.map(|it| it as u64))
}

/// Returns the draft that a schema declares; the newest if it declares none.
pub(super) fn find_draft(root: &Value) -> Option<Draft> {
    let Some(address) = text(root, "$schema") else { return Some(Draft::Year2020) };
    // Draft 4 declares addresses by `id`, which many plain values have, too.
    let known = [
        ("draft-06/", Draft::Six),
        ("draft-07/", Draft::Seven),
        ("draft/2019-09/", Draft::Year2019),
        ("draft/2020-12/", Draft::Year2020),
    ];
    known.into_iter().find(|(part, _)| address.contains(part)).map(|it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_are_not_used_may_be_anything() {
        let definitions =
            serde_json::json!({"a": {"pattern": "(?=a)"}, "b": {"$ref": "#/$defs/a"}});
        for (reference, is_ok) in [("#/$defs/c", true), ("#/$defs/b", false)] {
            let schema = serde_json::json!({"$ref": reference, "$defs": definitions});
            let read = Reader::new(&schema, Draft::Year2020).read(&schema);
            assert_eq!(read.is_ok(), is_ok, "{reference}");
        }
    }

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted_by_key(|it| it.0));
    }
}
