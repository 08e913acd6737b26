//! Checks values against a schema whose references are all inside of it and end.
//!
//! What a format, an encoding or a media type demands is not checked; drafts since 2019 do not ask
//! for it.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap, HashSet},
    fmt::Write as _,
};

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::{
    Mismatch, find_target,
    keywords::{Draft, Reader, count},
    number::{canonical, compare, is_equal, is_multiple, is_whole},
    resolve, shortened,
};

/// The maximum number of mismatches that are collected.
const MAX_COLLECTED: usize = 1000;

/// A schema that was read.
#[derive(Debug)]
pub(super) struct Validator<'s> {
    root: &'s Value,
    draft: Draft,
    patterns: HashMap<&'s str, Regex>,
    has_unevaluated: bool,
}

/// The place of a value in those around it.
#[derive(Clone, Copy)]
enum Place<'p> {
    Root,
    Item(&'p Self, usize),
    Member(&'p Self, &'p str),
}

/// Whether a value fits, and the reasons if somebody asks for them.
struct Report {
    fits: bool,
    mismatches: Option<Vec<Mismatch>>,
}

/// The parts of a value that a schema has a say about.
#[derive(Default)]
struct Coverage<'v> {
    all_names: bool,
    names: HashSet<&'v str>,
    all_items: bool,
    items: BTreeSet<usize>,
}

impl<'s> Validator<'s> {
    /// Reads a schema. It must have been measured: the recursion ends where its references do.
    pub(super) fn new(root: &'s Value, draft: Draft) -> Result<Self, String> {
        let mut reader = Reader::new(root, draft);
        reader.read(root)?;
        let Reader { patterns, has_unevaluated, .. } = reader;
        Ok(Self { root, draft, patterns, has_unevaluated })
    }

    /// Returns the mismatches of a value in the order of the schema, no more than a thousand.
    pub(super) fn mismatches(&self, value: &Value) -> Vec<Mismatch> {
        let mut report = Report { fits: true, mismatches: Some(Vec::new()) };
        self.check(self.root, value, Place::Root, &mut report);
        report.mismatches.unwrap_or_default()
    }

    /// Whether a name matches a pattern of the schema.
    pub(super) fn matches(&self, pattern: &str, text: &str) -> bool {
        self.patterns.get(pattern).is_some_and(|it| it.is_match(text))
    }

    fn check<'v>(
        &self,
        schema: &Value,
        value: &'v Value,
        place: Place<'_>,
        report: &mut Report,
    ) -> Coverage<'v> {
        let mut evaluated = Coverage::default();
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => {
                report.add(place, "is not allowed");
                return evaluated;
            }
            _ => return evaluated,
        };
        if let (Draft::Six | Draft::Seven, Some(reference)) = (self.draft, schema.get("$ref")) {
            self.follow(reference, value, place, report, &mut evaluated);
            return evaluated;
        }
        for (keyword, expected) in schema {
            if report.is_settled() {
                return evaluated;
            }
            if keyword == "$ref" {
                self.follow(expected, value, place, report, &mut evaluated);
            }
            self.check_choices(schema, keyword, value, place, report, &mut evaluated);
            match value {
                Value::Number(number) => check_number(keyword, number, expected, place, report),
                Value::String(text) => self.check_text(keyword, text, expected, place, report),
                Value::Array(items) => {
                    let found = self.check_items(schema, keyword, items, place, report);
                    evaluated.extend(found);
                }
                Value::Object(members) => {
                    let found = self.check_members(schema, keyword, members, place, report);
                    evaluated.extend(found);
                    self.check_dependencies(
                        keyword,
                        expected,
                        value,
                        place,
                        report,
                        &mut evaluated,
                    );
                }
                Value::Null | Value::Bool(_) => {}
            }
        }
        if self.has_unevaluated && self.draft >= Draft::Year2019 {
            self.check_unevaluated(schema, value, place, report, &mut evaluated);
        }
        evaluated
    }

    fn follow<'v>(
        &self,
        reference: &Value,
        value: &'v Value,
        place: Place<'_>,
        report: &mut Report,
        evaluated: &mut Coverage<'v>,
    ) {
        if let Some(target) = reference.as_str().and_then(|it| find_target(self.root, it)) {
            evaluated.extend(self.check(target, value, place, report));
        }
    }

    /// Checks without reasons; what was evaluated counts only if the value fits.
    fn try_check<'v>(&self, schema: &Value, value: &'v Value) -> Option<Coverage<'v>> {
        let mut report = Report { fits: true, mismatches: None };
        let evaluated = self.check(schema, value, Place::Root, &mut report);
        report.fits.then_some(evaluated)
    }

    /// Checks the keywords that apply to values of every type.
    fn check_choices<'v>(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        value: &'v Value,
        place: Place<'_>,
        report: &mut Report,
        evaluated: &mut Coverage<'v>,
    ) {
        let expected = &schema[keyword];
        let choices = expected.as_array().map(Vec::as_slice).unwrap_or_default();
        match keyword {
            "type" => {
                let types =
                    if choices.is_empty() { std::slice::from_ref(expected) } else { choices };
                if !types.iter().any(|it| it.as_str().is_some_and(|it| is_of_type(value, it))) {
                    report.add(place, &format!("is not of type {}", list(types)));
                }
            }
            "const" if !is_equal(value, expected) => {
                report.add(place, &format!("is not {expected}"));
            }
            "enum" if !choices.iter().any(|it| is_equal(value, it)) => {
                report.add(place, &format!("is not one of {}", list(choices)));
            }
            "allOf" => {
                for it in choices {
                    evaluated.extend(self.check(it, value, place, report));
                }
            }
            "anyOf" => {
                let mut fits = false;
                for found in choices.iter().filter_map(|it| self.try_check(it, value)) {
                    fits = true;
                    evaluated.extend(found);
                    if !self.has_unevaluated {
                        break;
                    }
                }
                if !fits {
                    report.add(place, &self.no_choice(choices));
                }
            }
            "oneOf" => {
                let mut fitting = choices.iter().filter_map(|it| self.try_check(it, value));
                match (fitting.next(), fitting.next()) {
                    (Some(found), None) => evaluated.extend(found),
                    (None, _) => report.add(place, &self.no_choice(choices)),
                    _ => report.add(place, "fits more than one of the alternatives"),
                }
            }
            "not" if self.try_check(expected, value).is_some() => {
                report.add(place, "has a form that is not allowed");
            }
            "if" if self.draft >= Draft::Seven => {
                let found = self.try_check(expected, value);
                let next = if found.is_some() { "then" } else { "else" };
                evaluated.extend(found.unwrap_or_default());
                if let Some(next) = schema.get(next) {
                    evaluated.extend(self.check(next, value, place, report));
                }
            }
            _ => {}
        }
    }

    /// Returns the message that no choice fits: with the values, if each is a single one.
    fn no_choice(&self, choices: &[Value]) -> String {
        let constants = choices.iter().map(|it| resolve(self.root, it).get("const").cloned());
        match constants.collect::<Option<Vec<Value>>>() {
            Some(constants) => format!("is not one of {}", list(&constants)),
            None => "fits none of the alternatives".to_owned(),
        }
    }

    fn check_text(
        &self,
        keyword: &str,
        text: &str,
        expected: &Value,
        place: Place<'_>,
        report: &mut Report,
    ) {
        let check_length = |is_wrong: fn(u64, u64) -> bool, word: &str, report: &mut Report| {
            let limit = count(expected).unwrap_or_default();
            if is_wrong(text.chars().count() as u64, limit) {
                let plural = plural(limit, "", "s");
                report.add(place, &format!("is {word} than {limit} character{plural}"));
            }
        };
        match keyword {
            "minLength" => check_length(|length, limit| length < limit, "shorter", report),
            "maxLength" => check_length(|length, limit| length > limit, "longer", report),
            "pattern" => {
                let pattern = expected.as_str().unwrap_or_default();
                if !self.matches(pattern, text) {
                    report.add(place, &format!("does not match \"{pattern}\""));
                }
            }
            _ => {}
        }
    }

    fn check_items<'v>(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        items: &'v [Value],
        place: Place<'_>,
        report: &mut Report,
    ) -> Coverage<'v> {
        let mut evaluated = Coverage::default();
        let expected = &schema[keyword];
        let first_key = if self.draft >= Draft::Year2020 { "prefixItems" } else { "items" };
        let first = schema.get(first_key).and_then(Value::as_array);
        match keyword {
            "minItems" | "maxItems" => {
                check_count(keyword, items.len(), expected, ["item", "items"], place, report);
            }
            "uniqueItems" if expected == true && !are_unique(items) => {
                report.add(place, "has the same item more than once");
            }
            "prefixItems" | "items" if let Some(first) = first.filter(|_| keyword == first_key) => {
                for (index, (item, schema)) in items.iter().zip(first).enumerate() {
                    self.check(schema, item, Place::Item(&place, index), report);
                    evaluated.add_item(index, self.has_unevaluated);
                }
            }
            "items" | "additionalItems" => {
                // Without a list before, further items are those that `items` is about.
                let is_other = keyword == "additionalItems";
                if is_other && (self.draft >= Draft::Year2020 || first.is_none()) {
                    return evaluated;
                }
                evaluated.all_items = true;
                for (index, item) in items.iter().enumerate().skip(first.map_or(0, Vec::len)) {
                    if report.is_settled() {
                        break;
                    }
                    self.check(expected, item, Place::Item(&place, index), report);
                }
            }
            "contains" => {
                let counts = self.draft >= Draft::Year2020 && self.has_unevaluated;
                let limit = |key: &str| {
                    schema.get(key).filter(|_| self.draft >= Draft::Year2019).and_then(count)
                };
                let mut fitting = 0;
                for (index, item) in items.iter().enumerate() {
                    if self.try_check(expected, item).is_some() {
                        fitting += 1;
                        evaluated.add_item(index, counts);
                    }
                }
                let min = limit("minContains").unwrap_or(1);
                if fitting < min {
                    let what = plural(min, "item that fits", "items that fit");
                    report.add(place, &format!("has less than {min} {what}"));
                }
                if let Some(max) = limit("maxContains").filter(|it| fitting > *it) {
                    let what = plural(max, "item that fits", "items that fit");
                    report.add(place, &format!("has more than {max} {what}"));
                }
            }
            _ => {}
        }
        evaluated
    }

    fn check_members<'v>(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        members: &'v Map<String, Value>,
        place: Place<'_>,
        report: &mut Report,
    ) -> Coverage<'v> {
        let mut evaluated = Coverage::default();
        let expected = &schema[keyword];
        let by_name = expected.as_object().into_iter().flatten();
        match keyword {
            "minProperties" | "maxProperties" => {
                let words = ["property", "properties"];
                check_count(keyword, members.len(), expected, words, place, report);
            }
            "required" => require(members, expected, place, report),
            "properties" => {
                for (name, schema) in by_name {
                    if let Some((name, value)) = members.get_key_value(name) {
                        self.check(schema, value, Place::Member(&place, name), report);
                        evaluated.add_name(name, self.has_unevaluated);
                    }
                }
            }
            "patternProperties" => {
                for (pattern, schema) in by_name {
                    for (name, value) in members.iter().filter(|it| self.matches(pattern, it.0)) {
                        self.check(schema, value, Place::Member(&place, name), report);
                        evaluated.add_name(name, self.has_unevaluated);
                    }
                }
            }
            "additionalProperties" => {
                let named = schema.get("properties").and_then(Value::as_object);
                let patterns = schema.get("patternProperties").and_then(Value::as_object);
                for (name, value) in members {
                    let is_named = named.is_some_and(|it| it.contains_key(name))
                        || patterns.is_some_and(|it| it.keys().any(|it| self.matches(it, name)));
                    if !is_named && !report.is_settled() {
                        self.check_other(expected, name, value, place, report);
                        evaluated.add_name(name, self.has_unevaluated);
                    }
                }
            }
            "propertyNames" => {
                for name in members.keys() {
                    let mut of_name = Report {
                        fits: true,
                        mismatches: report.mismatches.is_some().then(Vec::new),
                    };
                    self.check(expected, &Value::from(&**name), Place::Root, &mut of_name);
                    if !of_name.fits && !report.is_settled() {
                        let why = of_name.mismatches.into_iter().flatten().next();
                        let why = why.map(|it| it.message).unwrap_or_default();
                        report.add(place, &format!("has the property `{name}`, whose name {why}"));
                    }
                }
            }
            _ => {}
        }
        evaluated
    }

    /// Checks a member that no other schema is about.
    fn check_other(
        &self,
        schema: &Value,
        name: &str,
        value: &Value,
        place: Place<'_>,
        report: &mut Report,
    ) {
        let place = Place::Member(&place, name);
        match schema {
            Value::Bool(false) => report.add(place, "is not a parameter"),
            schema => {
                self.check(schema, value, place, report);
            }
        }
    }

    /// Checks what members demand of the object they are in.
    fn check_dependencies<'v>(
        &self,
        keyword: &str,
        expected: &Value,
        value: &'v Value,
        place: Place<'_>,
        report: &mut Report,
        evaluated: &mut Coverage<'v>,
    ) {
        let is_known = match keyword {
            "dependencies" => true,
            "dependentRequired" | "dependentSchemas" => self.draft >= Draft::Year2019,
            _ => false,
        };
        let (Some(members), Some(expected)) = (value.as_object(), expected.as_object()) else {
            return;
        };
        for (_, demanded) in expected.iter().filter(|it| is_known && members.contains_key(it.0)) {
            match demanded.is_array() {
                true => require(members, demanded, place, report),
                false => evaluated.extend(self.check(demanded, value, place, report)),
            }
        }
    }

    /// Checks the parts of a value that no other keyword, here or in a choice, had a say about.
    fn check_unevaluated<'v>(
        &self,
        schema: &Map<String, Value>,
        value: &'v Value,
        place: Place<'_>,
        report: &mut Report,
        evaluated: &mut Coverage<'v>,
    ) {
        if let (Some(schema), Value::Array(items)) = (schema.get("unevaluatedItems"), value) {
            if !evaluated.all_items {
                for (index, item) in items.iter().enumerate() {
                    if !evaluated.items.contains(&index) && !report.is_settled() {
                        self.check(schema, item, Place::Item(&place, index), report);
                    }
                }
            }
            evaluated.all_items = true;
        }
        if let (Some(schema), Value::Object(members)) = (schema.get("unevaluatedProperties"), value)
        {
            if !evaluated.all_names {
                for (name, value) in members {
                    if !evaluated.names.contains(&**name) && !report.is_settled() {
                        self.check_other(schema, name, value, place, report);
                    }
                }
            }
            evaluated.all_names = true;
        }
    }
}

impl<'v> Coverage<'v> {
    fn add_name(&mut self, name: &'v str, counts: bool) {
        if counts {
            self.names.insert(name);
        }
    }

    fn add_item(&mut self, index: usize, counts: bool) {
        if counts {
            self.items.insert(index);
        }
    }

    fn extend(&mut self, other: Self) {
        self.all_names |= other.all_names;
        self.all_items |= other.all_items;
        self.names.extend(other.names);
        self.items.extend(other.items);
    }
}

impl Report {
    fn add(&mut self, place: Place<'_>, message: &str) {
        self.fits = false;
        if let Some(mismatches) = self.mismatches.as_mut().filter(|it| it.len() < MAX_COLLECTED) {
            let parameter = shortened(&place.to_text());
            mismatches.push(Mismatch { parameter, message: shortened(message) });
        }
    }

    /// Whether nothing that follows can change it.
    fn is_settled(&self) -> bool {
        !self.fits && self.mismatches.as_ref().is_none_or(|it| it.len() >= MAX_COLLECTED)
    }
}

impl Place<'_> {
    /// Returns the place as text: `items[0].name`.
    fn to_text(self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Item(outer, index) => format!("{}[{index}]", outer.to_text()),
            Self::Member(Self::Root, name) => name.to_owned(),
            Self::Member(outer, name) => format!("{}.{name}", outer.to_text()),
        }
    }
}

fn check_number(
    keyword: &str,
    number: &Number,
    expected: &Value,
    place: Place<'_>,
    report: &mut Report,
) {
    let Value::Number(limit) = expected else { return };
    let found = compare(number, limit);
    let message = match keyword {
        "minimum" if found == Ordering::Less => "is less than the minimum of",
        "maximum" if found == Ordering::Greater => "is greater than the maximum of",
        "exclusiveMinimum" if found != Ordering::Greater => "is not greater than",
        "exclusiveMaximum" if found != Ordering::Less => "is not less than",
        "multipleOf" if !is_multiple(number, limit) => "is not a multiple of",
        _ => return,
    };
    report.add(place, &format!("{message} {limit}"));
}

/// Checks a number of parts against `minX` or `maxX`.
fn check_count(
    keyword: &str,
    found: usize,
    expected: &Value,
    [one, many]: [&str; 2],
    place: Place<'_>,
    report: &mut Report,
) {
    let limit = count(expected).unwrap_or_default();
    let (is_wrong, word) = match keyword.starts_with("min") {
        true => ((found as u64) < limit, "less"),
        false => (found as u64 > limit, "more"),
    };
    if is_wrong {
        report.add(place, &format!("has {word} than {limit} {}", plural(limit, one, many)));
    }
}

/// Checks that there are members of these names.
fn require(members: &Map<String, Value>, names: &Value, place: Place<'_>, report: &mut Report) {
    for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            report.add(Place::Member(&place, name), "is missing");
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && is_whole(number),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

fn are_unique(items: &[Value]) -> bool {
    let mut seen = HashSet::new();
    items.iter().all(|it| {
        let mut written = String::new();
        canonical(it, &mut written);
        seen.insert(written)
    })
}

/// Writes values as `a, b or c`.
fn list(values: &[Value]) -> String {
    let mut list = String::new();
    for (index, value) in values.iter().enumerate() {
        let separator = match index {
            0 => "",
            _ if index + 1 == values.len() => " or ",
            _ => ", ",
        };
        write!(list, "{separator}{value}").expect("a string takes everything");
    }
    list
}

fn plural<'w>(count: u64, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use serde_json::json;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let plain = select(vec![
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(1.0),
            json!(2.5),
            json!(-3),
            json!(1e40),
            json!(""),
            json!("a"),
            json!("abc"),
            json!("1"),
        ]);
        plain.prop_recursive(3, 20, 3, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                members(inner).prop_map(Value::from),
            ]
        })
    }

    fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
        let name = select(vec!["a", "b", "abc", "1"]);
        vec((name.prop_map(str::to_owned), value), 0..4).prop_map(Map::from_iter)
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let types = ["null", "boolean", "integer", "number", "string", "array", "object", "any"];
        let number = select(vec![json!(0), json!(1), json!(2), json!(2.0), json!(0.5), json!(-1)]);
        let names = vec(select(vec!["a", "b", "abc"]), 0..3).prop_map(Value::from);
        let pattern = select(vec!["^a", r"\d", "[^b]$", "^.?$"]).prop_map(Value::from);
        let flag = any::<bool>().prop_map(Value::from);
        let counted = select(vec![
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minContains",
            "maxContains",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ]);
        let leaf = prop_oneof![
            select(types.to_vec()).prop_map(|it| ("type", Value::from(it))),
            vec(select(types[..7].to_vec()), 0..3).prop_map(|it| ("type", Value::from(it))),
            (counted, number),
            values().prop_map(|it| ("const", it)),
            vec(values(), 0..3).prop_map(|it| ("enum", Value::from(it))),
            names.prop_map(|it| ("required", it)),
            pattern.prop_map(|it| ("pattern", it)),
            flag.prop_map(|it| ("uniqueItems", it)),
        ];
        let leaf = vec(leaf, 0..3).prop_map(object);
        leaf.prop_recursive(4, 30, 3, |inner| {
            let inner = prop_oneof![4 => inner, 1 => any::<bool>().prop_map(Value::from)];
            let one = select(vec![
                "not",
                "if",
                "then",
                "else",
                "contains",
                "items",
                "additionalItems",
                "additionalProperties",
                "propertyNames",
                "unevaluatedItems",
                "unevaluatedProperties",
            ]);
            let many = select(vec!["allOf", "anyOf", "oneOf", "prefixItems", "items"]);
            let by_name = select(vec!["properties", "dependentSchemas", "dependencies", "$defs"]);
            let keyword = prop_oneof![
                3 => (one, inner.clone()),
                2 => (many, vec(inner.clone(), 0..3).prop_map(Value::from)),
                2 => (by_name, members(inner.clone()).prop_map(Value::from)),
                1 => members(inner.clone()).prop_map(|it| ("patternProperties", Value::from(it))),
                1 => Just(("$ref", json!("#/$defs/a"))),
                1 => Just(("dependentRequired", json!({"a": ["b"]}))),
                2 => inner.prop_map(|it| ("allOf", json!([it]))),
            ];
            vec(keyword, 0..4).prop_map(object)
        })
    }

    fn object(members: Vec<(&str, Value)>) -> Value {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn other_validators_agree(
            schema in schemas(),
            values in vec(values(), 4),
            draft in select(vec!["draft-06/", "draft-07/", "draft/2019-09/", "draft/2020-12/"]),
        ) {
            let mut schema = schema;
            if let Some(members) = schema.as_object_mut() {
                let scheme = if draft.starts_with("draft-") { "http" } else { "https" };
                let address = format!("{scheme}://json-schema.org/{draft}schema");
                members.insert("$schema".to_owned(), Value::from(address));
            }
            // Circular references and those to nothing are refused before a schema is read.
            let Ok(()) = super::super::Walk::new(&schema).measure(&schema, 0).map(drop) else {
                return Ok(());
            };
            let draft = super::super::find_draft(&schema).expect("it is one of the four");
            let own = Validator::new(&schema, draft);
            let other = jsonschema::options()
                .with_pattern_options(jsonschema::PatternOptions::regex())
                .should_validate_formats(false)
                .build(&schema);
            prop_assert_eq!(own.is_ok(), other.is_ok(), "{:?}", (own.err(), other.err()));
            if let (Ok(own), Ok(other)) = (own, other) {
                for value in &values {
                    let mismatches = own.mismatches(value);
                    prop_assert_eq!(mismatches.is_empty(), other.is_valid(value), "{} {:?}", value, mismatches);
                    prop_assert_eq!(own.try_check(&schema, value).is_some(), mismatches.is_empty());
                }
            }
        }
    }

    #[test]
    fn mismatches_are_sentences() {
        for (schema, value, expected) in [
            (json!(false), json!(1), "is not allowed"),
            (
                json!({"type": ["string", "null"]}),
                json!(1),
                "is not of type \"string\" or \"null\"",
            ),
            (json!({"const": "a"}), json!(1), "is not \"a\""),
            (json!({"minLength": 2}), json!("a"), "is shorter than 2 characters"),
            (json!({"maxItems": 1}), json!([1, 2]), "has more than 1 item"),
            (json!({"uniqueItems": true}), json!([1, 1.0]), "has the same item more than once"),
            (json!({"not": {}}), json!(1), "has a form that is not allowed"),
            (json!({"anyOf": [false]}), json!(1), "fits none of the alternatives"),
            (json!({"oneOf": [true, true]}), json!(1), "fits more than one of the alternatives"),
            (json!({"contains": {"type": "null"}}), json!([1]), "has less than 1 item that fits"),
            (json!({"exclusiveMinimum": 1}), json!(1), "is not greater than 1"),
            (
                json!({"propertyNames": {"maxLength": 1}}),
                json!({"ab": 1}),
                "has the property `ab`, whose name is longer than 1 character",
            ),
            (json!({"pattern": "^a"}), json!("b"), "does not match \"^a\""),
        ] {
            let validator = Validator::new(&schema, Draft::Year2020).expect("it is a schema");
            let mismatches = validator.mismatches(&value);
            let messages: Vec<&str> = mismatches.iter().map(|it| &*it.message).collect();
            assert_eq!(messages, [expected], "{schema}");
        }
    }

    #[test]
    fn the_number_of_collected_mismatches_is_limited() {
        let schema = json!({"items": {"allOf": [{"type": "string"}, {"type": "null"}]}});
        let value = Value::from(vec![1; 100_000]);
        let validator = Validator::new(&schema, Draft::Year2020).expect("it is a schema");
        assert_eq!(validator.mismatches(&value).len(), MAX_COLLECTED);
    }
}
