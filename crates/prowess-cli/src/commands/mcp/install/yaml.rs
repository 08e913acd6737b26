//! YAML, edited line by line: only the lines of the entry change.
//!
//! Lines do not show everything that YAML can express. So the result of an edit is parsed again and
//! must have the intended value; otherwise the file is left alone.

use std::ops::Range;

use prowess::{FrontmatterError, frontmatter_json};
use serde_json::{Map, Value as Json};

use super::Broken;

/// The indent if a file does not show one.
const UNIT: usize = 2;

/// Adds a server at a path of keys. If one with a command exists, only the fields that differ are
/// written, so that its other fields stay.
pub(super) fn put(text: &str, way: &[&str], entry: &Map<String, Json>) -> Result<String, Broken> {
    let mut value = read(text)?;
    let server = value_at(&mut value, way)?;
    if server.get("cmd").is_none() {
        *server = Json::Object(entry.clone());
        let server = server.clone();
        return edit(text, &value, |lines| set(lines, 0..lines.len(), 0, way, &server));
    }
    let changed: Vec<_> = entry.iter().filter(|it| server.get(it.0) != Some(it.1)).collect();
    changed.iter().for_each(|(field, value)| server[field.as_str()] = (*value).clone());
    edit(text, &value, |lines| {
        for (field, value) in changed {
            let way = [way, &[field.as_str()]].concat();
            set(lines, 0..lines.len(), 0, &way, value);
        }
    })
}

/// Removes the value at a path of keys.
pub(super) fn remove(text: &str, way: &[&str]) -> Result<String, Broken> {
    let [above @ .., name] = way else { return Ok(text.to_owned()) };
    let mut value = read(text)?;
    let servers = value_at(&mut value, above)?.as_object_mut();
    let Some(servers) = servers.filter(|it| it.contains_key(*name)) else {
        return Ok(text.to_owned());
    };
    servers.remove(*name);
    let is_last = servers.is_empty();
    edit(text, &value, |lines| {
        let mut found = 0..lines.len();
        for (depth, key) in way.iter().enumerate() {
            let within = if depth == 0 { found } else { found.start + 1..found.end };
            let Some(child) = child(lines, within, key) else { return };
            found = child;
            if is_last && depth + 1 == above.len() {
                // A key without a value would not be a map any more.
                let end = lines[found.start].trim_end().len();
                lines[found.start].insert_str(end, " {}");
            }
        }
        lines.drain(found);
    })
}

/// Parses a text.
fn read(text: &str) -> Result<Json, Broken> {
    if !text.lines().any(has_content) {
        return Ok(Json::Object(Map::new()));
    }
    if let Some(at) = text.lines().position(|it| it.starts_with("---") || it.starts_with("...")) {
        return Err(Broken {
            line: Some(at + 1),
            what: "it contains several documents".to_owned(),
        });
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let read = frontmatter_json(format!("---\n{text}{end}---\n").as_bytes());
    read.map(Json::Object).map_err(|error| {
        let (line, what) = match error {
            FrontmatterError::Invalid { line, what } => (line, what),
            FrontmatterError::Unsafe { line, what } => (line, format!("it has {what}")),
            FrontmatterError::Duplicate { line, key } => (line, format!("`{key}` appears twice")),
            FrontmatterError::Key { line, key } => {
                (line, format!("the key `{key}` is not a string"))
            }
            error => return Broken::whole(error.to_string().replace("frontmatter", "file")),
        };
        Broken { line: Some(line), what }
    })
}

/// Returns the value at a path of keys, created if it is missing.
fn value_at<'a>(value: &'a mut Json, way: &[&str]) -> Result<&'a mut Json, Broken> {
    way.iter().try_fold(value, |value, key| {
        if value.is_null() {
            *value = Json::Object(Map::new());
        }
        let map = value.as_object_mut();
        let map = map.ok_or_else(|| Broken::whole(format!("there is no map for `{key}`")))?;
        Ok(map.entry(*key).or_insert(Json::Null))
    })
}

/// Changes lines, if the resulting text has the intended value. They end in `\n` meanwhile.
fn edit(text: &str, meant: &Json, change: impl FnOnce(&mut Vec<String>)) -> Result<String, Broken> {
    let mut lines: Vec<String> = text.lines().map(|it| format!("{it}\n")).collect();
    let is_unchanged = join_lines(&lines, text) == text;
    change(&mut lines);
    let edited = join_lines(&lines, text);
    match read(&edited) {
        Ok(value) if is_unchanged && value == *meant => Ok(edited),
        _ => Err(Broken::whole("it is not a block of `key: value` lines")),
    }
}

/// Joins lines, with line ends as in another text.
fn join_lines(lines: &[String], like: &str) -> String {
    let text = lines.concat();
    let has_last_end = like.is_empty() || like.ends_with('\n');
    let text = if has_last_end { &*text } else { text.trim_end_matches('\n') };
    if like.contains("\r\n") { text.replace('\n', "\r\n") } else { text.to_owned() }
}

/// Writes a value at a path of keys among some lines, at a column if there are none.
fn set(lines: &mut Vec<String>, within: Range<usize>, column: usize, way: &[&str], value: &Json) {
    let [key, inner @ ..] = way else { return };
    let first = lines[within.clone()].iter().find(|it| has_content(it));
    let column = first.map_or(column, |it| indent(it));
    match child(lines, within.clone(), key) {
        None => {
            let last = lines[within.clone()]
                .iter()
                .rposition(|it: &String| has_content(it) && indent(it) == column);
            let end = last.map_or(within.end, |it| end(lines, within.start + it, within.end));
            lines.splice(end..end, format_lines(way, value, column));
        }
        Some(found) if inner.is_empty() => {
            lines.splice(found, format_lines(way, value, column));
        }
        Some(found) => {
            // An empty map is replaced by one with entries.
            let line = lines[found.start].trim_end();
            if let Some(key) = line.strip_suffix("{}").or_else(|| line.strip_suffix("null")) {
                lines[found.start] = format!("{}\n", key.trim_end());
            }
            set(lines, found.start + 1..found.end, column + UNIT, inner, value);
        }
    }
}

/// Returns the lines of a key among others: its own and those indented further.
fn child(lines: &[String], within: Range<usize>, key: &str) -> Option<Range<usize>> {
    let all = &lines[within.clone()];
    let column = all.iter().find(|it| has_content(it)).map(|it| indent(it))?;
    let start = within.start
        + all.iter().position(|it: &String| {
            let (own, behind) = it.trim().split_once(':').unwrap_or_default();
            let is_own = own == key || own == format!("\"{key}\"") || own == format!("'{key}'");
            indent(it) == column && is_own && (behind.is_empty() || behind.starts_with(' '))
        })?;
    Some(start..end(lines, start, within.end))
}

/// Returns the end of the lines of a key: those below it that are indented further, whatever they
/// contain.
fn end(lines: &[String], key: usize, limit: usize) -> usize {
    let column = indent(&lines[key]);
    let mut end = key + 1;
    for (at, line) in lines.iter().enumerate().take(limit).skip(end) {
        // The items of a list may have the same indent as its key.
        let is_item = indent(line) == column && line.trim_start().starts_with("- ");
        let is_below = indent(line) > column || is_item;
        if !line.trim().is_empty() && is_below {
            end = at + 1;
        } else if has_content(line) {
            break;
        }
    }
    end
}

/// Returns the lines of a value at a path of keys, from a column on.
fn format_lines(way: &[&str], value: &Json, column: usize) -> Vec<String> {
    let indent = " ".repeat(column);
    match (way, value) {
        ([], Json::Object(fields)) => fields
            .iter()
            .map(|(field, value): (&String, &Json)| format!("{indent}{field}: {value}\n"))
            .collect(),
        ([], _) => Vec::new(),
        ([key], value) if !value.is_object() => vec![format!("{indent}{key}: {value}\n")],
        ([key, inner @ ..], value) => {
            let mut lines = vec![format!("{indent}{key}:\n")];
            lines.extend(format_lines(inner, value, column + UNIT));
            lines
        }
    }
}

/// Returns whether a line has content.
fn has_content(line: &str) -> bool {
    !matches!(line.trim_start().chars().next(), None | Some('#'))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}
