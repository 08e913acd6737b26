//! The requests of evaluation files, as written: JSON, JSON lines, CSV or YAML.
//!
//! There is no standard for the names of fields, so every spelling in use is read:
//! `should_trigger`, `shouldTrigger` and `should-trigger` are the same.

use std::{collections::BTreeMap, path::Path};

use prowess_frontmatter::Value;
use serde_json::{Map, Value as Json, value::RawValue};

use super::csv::Table;
use crate::read::parse;

/// Names of the field of a request, and of the skill that it is for.
const REQUEST: [&str; 9] = [
    "query",
    "prompt",
    "request",
    "question",
    "input",
    "utterance",
    "userprompt",
    "usermessage",
    "trigger",
];
pub(super) const SKILL: [&str; 5] =
    ["expectedskill", "expectedskills", "skill", "skillname", "skills"];
const SHOULD: [&str; 3] = ["shouldtrigger", "shouldactivate", "expecttrigger"];
/// Names of the field that says which list a request belongs to.
const SORT: [&str; 2] = ["type", "kind"];
/// Names of a list of requests that state themselves what is expected; and of those that should
/// match, or should not.
const LISTS: [&str; 6] = ["evals", "cases", "testcases", "queries", "tests", "prompts"];
const POSITIVE: [&str; 4] =
    ["shouldtrigger", "shouldtriggerprompts", "shouldtriggerqueries", "positive"];
const NEGATIVE: [&str; 4] =
    ["shouldnottrigger", "shouldnottriggerprompts", "shouldnottriggerqueries", "negative"];

/// A file of requests.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) entries: Vec<RequestEntry>,
    /// The skill that the whole file is about.
    pub(super) skill: Option<Json>,
    /// The parts that cannot be read.
    pub(super) faults: Vec<Fault>,
}

/// A request as written in a file.
pub(super) struct RequestEntry {
    pub(super) json: Json,
    /// The line, counted from 1.
    pub(super) line: usize,
    /// Whether it is in a list of those that should match, or of those that should not.
    should: Option<bool>,
}

/// The line and a description of a fault.
pub(super) type Fault = (Option<usize>, String);

impl Requests {
    /// Reads a file in the format that its content suggests, or else its name.
    pub(super) fn read(text: &str, path: &Path) -> Self {
        let is_called = |endings: &[&str]| {
            path.extension()
                .is_some_and(|own| endings.iter().any(|it| own.eq_ignore_ascii_case(it)))
        };
        let read = match text.trim_start().chars().next() {
            None => Err((None, "it is empty".to_owned())),
            Some('{' | '[') => read_json(text),
            Some(_) if is_called(&["yaml", "yml"]) => read_yaml(text),
            Some(_) => match Table::read(text, |cell: &str| is_key(&REQUEST, cell)) {
                Some(table) => Ok(read_csv(table)),
                None if is_called(&["csv", "tsv"]) => {
                    Err((Some(1), "there is no column `query` or `prompt`".to_owned()))
                }
                None => read_yaml(text).map_err(|_| {
                    (None, "it is neither JSON, nor CSV or YAML with requests".to_owned())
                }),
            },
        };
        match read {
            Ok(requests) if requests.entries.is_empty() && requests.faults.is_empty() => {
                Self { faults: vec![(None, "it has no requests".to_owned())], ..requests }
            }
            Ok(requests) => requests,
            Err(fault) => Self { faults: vec![fault], ..Self::default() },
        }
    }
}

impl RequestEntry {
    /// Returns the text of the request.
    pub(super) fn request(&self) -> Option<&str> {
        self.json
            .as_str()
            .or_else(|| REQUEST.iter().find_map(|it| self.field(&[it])?.as_str()))
            .filter(|it| !it.trim().is_empty())
    }

    /// Returns the first field that has one of these names.
    pub(super) fn field(&self, names: &[&str]) -> Option<&Json> {
        let fields = self.json.as_object()?;
        names.iter().find_map(|name| fields.iter().find(|it| is_key(&[name], it.0)).map(|it| it.1))
    }

    /// Whether the request should match; `None` if the field is neither true nor false.
    pub(super) fn should_match(&self) -> Option<bool> {
        if let Some(own) = self.field(&SHOULD) {
            return own.as_bool();
        }
        let sort = self.field(&SORT).and_then(Json::as_str).unwrap_or_default();
        let by_sort = list_kind(sort).flatten();
        Some(by_sort.or(self.should).unwrap_or(true))
    }
}

/// Whether a key is one of these, however its words are joined.
fn is_key(names: &[&str], key: &str) -> bool {
    let letters = key.bytes().filter(|it| !matches!(it, b'_' | b'-' | b' '));
    let letters = letters.map(|it| it.to_ascii_lowercase());
    names.iter().any(|it| letters.clone().eq(it.bytes()))
}

/// Whether a key is that of a list of requests, and what that implies for them.
fn list_kind(key: &str) -> Option<Option<bool>> {
    let lists = [(&LISTS[..], None), (&POSITIVE[..], Some(true)), (&NEGATIVE[..], Some(false))];
    lists.into_iter().find(|it| is_key(it.0, key)).map(|it| it.1)
}

fn no_list_fault() -> Fault {
    (None, "it has no list of requests, such as `evals`".to_owned())
}

fn read_json(text: &str) -> Result<Requests, Fault> {
    if is_lines(text) {
        return Ok(read_lines(text));
    }
    let fault = |error: serde_json::Error| (Some(error.line()), not_json(&error));
    if text.trim_start().starts_with('[') {
        let list: Vec<&RawValue> = serde_json::from_str(text).map_err(fault)?;
        return Ok(Requests {
            entries: entries_with_lines(text, vec![(list, None)]),
            ..Requests::default()
        });
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(fault)?;
    let skill = fields.iter().find(|it| is_key(&SKILL, it.0));
    let skill = skill.and_then(|it| serde_json::from_str(it.1.get()).ok());
    let lists: Vec<_> = fields
        .iter()
        .filter_map(|(key, raw)| Some((serde_json::from_str(raw.get()).ok()?, list_kind(key)?)))
        .collect();
    if lists.is_empty() {
        return Err(no_list_fault());
    }
    Ok(Requests { entries: entries_with_lines(text, lists), skill, ..Requests::default() })
}

/// Whether a text has one object per line: the first line is complete, and not the only one.
fn is_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|it| !it.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let is_object = first.trim_start().starts_with('{');
    is_object
        && serde_json::from_str::<BTreeMap<String, &RawValue>>(first).is_ok_and(|fields| {
            // A single line can also be a whole file with lists in it.
            lines.next().is_some() || fields.keys().any(|it| is_key(&REQUEST, it))
        })
}

fn read_lines(text: &str) -> Requests {
    let mut requests = Requests::default();
    for (text, line) in text.lines().zip(1..).filter(|it| !it.0.trim().is_empty()) {
        match serde_json::from_str(text) {
            Ok(json) => requests.entries.push(RequestEntry { json, line, should: None }),
            Err(error) => requests.faults.push((Some(line), not_json(&error))),
        }
    }
    requests
}

/// Returns the requests of lists that were read from a text, with their lines.
fn entries_with_lines(text: &str, lists: Vec<(Vec<&RawValue>, Option<bool>)>) -> Vec<RequestEntry> {
    let ends: Vec<usize> = text.match_indices('\n').map(|it| it.0).collect();
    let raws =
        lists.into_iter().flat_map(|(list, should)| list.into_iter().map(move |it| (it, should)));
    let mut entries: Vec<RequestEntry> = raws
        .map(|(raw, should): (&RawValue, _)| {
            let at = raw.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
            let line = ends.partition_point(|it| *it < at) + 1;
            RequestEntry { json: serde_json::from_str(raw.get()).unwrap_or_default(), line, should }
        })
        .collect();
    entries.sort_by_key(|it| it.line);
    entries
}

/// Returns the message of a JSON error, without the position, which is reported separately.
fn not_json(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    format!("it is not JSON: {words}")
}

fn read_csv(table: Table) -> Requests {
    let open = table.open.map(|line| (Some(line), "a quote is not closed".to_owned()));
    Requests {
        entries: table
            .rows
            .into_iter()
            .map(|(line, cells): (usize, Vec<String>)| {
                let fields = table.header.iter().zip(cells);
                let fields =
                    fields.filter_map(|(name, cell)| Some((name.clone(), cell_value(name, cell)?)));
                RequestEntry {
                    json: Json::Object(fields.collect::<Map<_, _>>()),
                    line,
                    should: None,
                }
            })
            .collect(),
        skill: None,
        faults: open.into_iter().collect(),
    }
}

fn cell_value(column: &str, cell: String) -> Option<Json> {
    match &*cell.to_ascii_lowercase() {
        "" if is_key(&SKILL, column) => Some(Json::Null),
        "" => None,
        "true" | "yes" | "1" if is_key(&SHOULD, column) => Some(true.into()),
        "false" | "no" | "0" if is_key(&SHOULD, column) => Some(false.into()),
        _ => Some(cell.into()),
    }
}

fn read_yaml(text: &str) -> Result<Requests, Fault> {
    // A list is made a field, which only shifts the lines.
    let text = text.strip_prefix("---").unwrap_or(text);
    let is_list = text.trim_start().starts_with("- ");
    let text = if is_list { format!("evals:\n{text}") } else { text.to_owned() };
    let above = usize::from(is_list);
    let fields = parse::yaml_map(&text).map_err(|(line, what): (usize, String)| {
        (Some(line.saturating_sub(above).max(1)), format!("it cannot be read as YAML: {what}"))
    })?;
    let mut requests = Requests::default();
    let mut has_list = false;
    for field in &fields {
        if is_key(&SKILL, &field.key) {
            requests.skill = parse::yaml_json(&text, &field.value);
        }
        let (Some(should), Value::List(items)) = (list_kind(&field.key), &field.value) else {
            continue;
        };
        has_list = true;
        for item in items {
            let line = match item {
                Value::Map(fields) => fields.first().map(|it| it.line),
                Value::Empty | Value::Scalar(_) | Value::List(_) => None,
            };
            let json = parse::yaml_json(&text, item).unwrap_or_default();
            let line = line.unwrap_or(field.line).saturating_sub(above).max(1);
            requests.entries.push(RequestEntry { json, line, should });
        }
    }
    if has_list { Ok(requests) } else { Err(no_list_fault()) }
}
