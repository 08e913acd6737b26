//! Repair: reads a frontmatter that is not valid YAML as it was meant.
//!
//! First the values that are invalid in YAML are quoted, line by line, so that every line keeps its
//! number. If that is not enough, only the name and the description are recovered.

use std::borrow::Cow;

use prowess_frontmatter::{Block, Field, Value, read};

use super::yaml_fields;
use crate::finding::{Position, Report, rule};

/// Returns the fields of a repaired frontmatter, with findings that say what was done; `None` if it
/// is beyond repair.
pub(super) fn repair<'t>(
    block: Block<'t>,
    line: usize,
    what: &str,
    report: &mut Report,
) -> Option<Vec<Field<'t>>> {
    let (text, changes) = mend_entries(block.text);
    if let Some(fields) = fields(&text) {
        for change in changes {
            let line = block.line + change.line - 1;
            let at = colon(block.text, change.line).filter(|_| change.is_colon);
            let at = at.map_or(Position::line(line), |it| Position::columns(line, it, it + 1));
            report.note(&rule::YAML_REPAIRED, at, || change.message, change.hint);
        }
        return Some(fields);
    }
    if let Some(fields) = rescue(block.text) {
        report.note(
            &rule::YAML_RESCUED,
            Position::line(block.line + line - 1),
            || format!("the frontmatter is not YAML ({what}); only name and description were read"),
            "quote or indent the value of this line, or close the frontmatter above it with `---`",
        );
        return Some(fields);
    }
    report.fatal(
        &rule::YAML_INVALID,
        Position::line(block.line + line - 1),
        format!("the frontmatter is not YAML: {what}"),
        "quote values that have `: ` or ` #` in them or begin with a bracket, and indent with spaces",
    );
    None
}

/// Returns a frontmatter with only the values quoted that need it, and every other line unchanged;
/// `None` if it is beyond repair, or the extent of a value is uncertain.
pub(crate) fn quote_values(text: &str) -> Option<String> {
    let (text, changes) = mend_entries(text);
    (changes.iter().all(|it| it.is_sure) && fields(&text).is_some()).then_some(text)
}

fn fields(text: &str) -> Option<Vec<Field<'static>>> {
    let fields = read(text).ok().or_else(|| yaml_fields(text).ok())?;
    // Positions in the repaired text differ from those in the file; only the lines are the same.
    let fields =
        fields.into_iter().map(|it| Field { key_span: 0..0, span: 0..0, ..it.into_owned() });
    Some(fields.collect())
}

/// One repair.
struct Change {
    /// The line, counted from 1.
    line: usize,
    /// Whether a colon is the cause, so that the finding can point at it.
    is_colon: bool,
    /// Whether the extent of the value is certain.
    is_sure: bool,
    message: String,
    hint: &'static str,
}

/// Returns the position of the colon that is out of place in a line: the first one after that of
/// the key.
fn colon(text: &str, line: usize) -> Option<usize> {
    let line = text.lines().nth(line - 1)?.trim_end();
    let margin = line.len() - line.trim_start().len();
    let value = value_of(&line[margin..]).map_or(0, |(head, _)| margin + head.len());
    [value, 0].into_iter().find_map(|start| {
        let at = line[start..].find(": ").map(|it| start + it);
        at.or_else(|| line.ends_with(':').then(|| line.len() - 1))
    })
}

/// A repaired entry, and the change made to it.
type MendedLine = (String, Option<Change>);

/// Repairs every top-level entry that cannot be parsed by itself; the others stay byte for byte.
fn mend_entries(text: &str) -> (String, Vec<Change>) {
    let mut out = String::with_capacity(text.len() + 16);
    let mut changes = Vec::new();
    let mut before = 0;
    for entry in entries(text) {
        let whole = normalize_line_ends(entry);
        // Trailing blanks and blank lines are not part of a value.
        let (content, behind) = entry.split_at(entry.trim_end_matches(BLANK).len());
        match (!is_readable(&whole)).then(|| mend(&normalize_line_ends(content))) {
            Some((mended, Some(change))) => {
                let mended = mended.strip_suffix('\n').unwrap_or(&mended);
                out.push_str(&mended.replace('\n', line_end(entry)));
                out.push_str(behind);
                changes.push(Change { line: before + change.line, ..change });
            }
            _ => out.push_str(entry),
        }
        before += whole.lines().count();
    }
    (out, changes)
}

const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

fn is_readable(entry: &str) -> bool {
    read(entry).is_ok() || yaml_fields(entry).is_ok()
}

/// Returns the top-level entries: a key at the margin, and the lines under it.
fn entries(text: &str) -> Vec<&str> {
    let (mut starts, mut at) = (vec![0], 0);
    for line in text.split_inclusive(['\n', '\r']) {
        if at > 0 && (key_length(line).is_some() || line.starts_with('#')) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

/// Normalizes the line ends of an entry to LF, including the last one.
fn normalize_line_ends(entry: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(entry);
    if plain.contains('\r') {
        plain = Cow::Owned(plain.replace("\r\n", "\n").replace('\r', "\n"));
    }
    if !plain.is_empty() && !plain.ends_with('\n') {
        plain.to_mut().push('\n');
    }
    plain
}

/// Returns the line end that an entry uses.
fn line_end(entry: &str) -> &'static str {
    match entry.find(['\n', '\r']).map(|at| &entry[at..]) {
        Some(end) if end.starts_with("\r\n") => "\r\n",
        Some(end) if end.starts_with('\r') => "\r",
        _ => "\n",
    }
}

/// Returns the length of the key at the start of a line, if there is something that looks like one.
fn key_length(line: &str) -> Option<usize> {
    let colon = line.find(':')?;
    let key = &line[..colon];
    let behind = line[colon + 1..].chars().next();
    (!key.is_empty()
        && key.chars().all(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && behind.is_none_or(char::is_whitespace))
    .then_some(colon)
}

/// Repairs one entry; one that has no key is left as it is.
fn mend(entry: &str) -> MendedLine {
    let first = entry.lines().next().unwrap_or_default();
    let Some(colon) = key_length(first) else { return (entry.to_owned(), None) };
    let key = &first[..colon];
    let value = first[colon + 1..].trim();
    let rest: Vec<&str> = entry.lines().skip(1).collect();
    if key == "name" {
        return mend_name(entry, value, &rest);
    }
    if value.is_empty() {
        return mend_nested(entry);
    }
    if is_block_header(value) {
        return mend_block(first, key, &rest);
    }
    let closed = format!("{}]\n", entry.trim_end());
    if value.starts_with('[') && key != "description" && is_readable(&closed) {
        let message =
            format!("the brackets of `{key}` are not closed; they were read as if closed");
        return (
            closed,
            Some(Change {
                line: 1,
                message,
                is_colon: false,
                is_sure: true,
                hint: "close the list with `]`",
            }),
        );
    }
    quote(key, value, &rest)
}

/// Repairs a name. A name is one line; lines under it belong to no field.
fn mend_name(entry: &str, value: &str, rest: &[&str]) -> MendedLine {
    // Brackets around a name are a leftover placeholder, not a name.
    if value.starts_with(['[', '{']) {
        return (entry.to_owned(), None);
    }
    let (mut text, mut change) = quote("name", value, &[]);
    for line in rest {
        text.push_str(&format!("# {line}\n"));
    }
    let stray = rest.iter().position(|it| !it.trim().is_empty());
    if let (Some(change), Some(at)) = (&mut change, stray) {
        change.is_sure = false;
        if is_readable(&format!("name: {value}\n")) {
            change.line = 2 + at;
            change.message =
                "this line is not a field, and a name has only one line; it was ignored".into();
            change.hint = stray_hint(rest[at]);
        }
    }
    (text, change)
}

/// Returns a hint for a line that belongs to no field.
fn stray_hint(line: &str) -> &'static str {
    let key = line.trim().split(':').next().unwrap_or_default();
    match line.trim().len() > key.len() && !key.contains(char::is_whitespace) {
        true => "write a field at the margin: a plain word, a colon and a space",
        false => "remove it, or indent it if it belongs to the value above",
    }
}

/// Repairs lines under `key: >` that are not indented, or less than the first of them.
fn mend_block(first: &str, key: &str, rest: &[&str]) -> MendedLine {
    let mut text = format!("{first}\n");
    let lines = rest.iter().map(|it| indentation(it, usize::MAX));
    let least = lines.clone().find(|it| !it.1.is_empty()).map_or(0, |it| it.0);
    let more = if least == 0 { 2 } else { 0 };
    for (indent, content) in lines {
        let indent = if content.is_empty() { 0 } else { indent.max(least) + more };
        text.push_str(&format!("{}{content}\n", " ".repeat(indent)));
    }
    let message = format!("the lines under `{key}` are not indented; they were read as its text");
    let hint = "indent them by two spaces";
    (text, Some(Change { line: 1, message, is_colon: false, is_sure: true, hint }))
}

/// Whether a value consists only of the indicators of a block scalar.
fn is_block_header(value: &str) -> bool {
    value.starts_with(['|', '>'])
        && value[1..].chars().all(|it| matches!(it, '-' | '+' | '1'..='9'))
}

/// Quotes a value, together with its continuation lines.
fn quote(key: &str, value: &str, rest: &[&str]) -> MendedLine {
    let fault = fault(value, rest);
    // An indicator followed by text on the same line was meant as the start of that text.
    let misplaced = value.starts_with(['|', '>']) && value[1..].starts_with([' ', '-', '+']);
    let value =
        if misplaced { value[1..].trim_start_matches(['-', '+']).trim_start() } else { value };
    let text = std::iter::once(value)
        .chain(rest.iter().map(|it| it.trim()))
        .collect::<Vec<_>>()
        .join("\n  ");
    let message =
        format!("the value of `{key}` is not YAML {}; it was read as if in quotes", fault.why);
    let Fault { line, is_colon, hint, .. } = fault;
    let is_sure = !is_anchored(value)
        && rest.iter().all(|it: &&str| it.is_empty() || it.starts_with([' ', '\t']));
    let change = Change { line: 1 + line, is_colon, is_sure, message, hint };
    (format!("{key}: '{}'\n", strip_quotes(&text).replace('\'', "''")), Some(change))
}

/// Whether a value begins with an anchor: then it is not all text.
fn is_anchored(value: &str) -> bool {
    let name = value.strip_prefix('&').and_then(|it| it.split(char::is_whitespace).next());
    name.is_some_and(|it| !it.is_empty())
}

/// Strips the quotes around a text, or an unclosed one before it.
fn strip_quotes(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).filter(|it| !it.is_empty()) {
            return match inner.strip_suffix(quote) {
                Some(inner) => inner.replace("\\\"", "\""),
                None if inner.contains(quote) => text.to_owned(),
                None => inner.to_owned(),
            };
        }
    }
    text.to_owned()
}

/// The reason why YAML cannot parse a value.
struct Fault {
    /// The line within the value, counted from 0.
    line: usize,
    is_colon: bool,
    why: &'static str,
    hint: &'static str,
}

fn fault(value: &str, rest: &[&str]) -> Fault {
    let hint = "put the value in quotes";
    if value.starts_with(['"', '\'']) {
        let hint = "put the value in single quotes, and write a single quote inside it twice";
        return Fault {
            line: 0,
            is_colon: false,
            why: "because of its quotes or a backslash",
            hint,
        };
    }
    if value.starts_with(['[', '{', '@', '`', '%', '*', '&', '!', '?', '|', '>', '-']) {
        return Fault { line: 0, is_colon: false, why: "because of its first character", hint };
    }
    let mut lines = std::iter::once(&value).chain(rest);
    if let Some(line) = lines.position(|it| it.contains(": ") || it.trim_end().ends_with(':')) {
        return Fault { line, is_colon: true, why: "because of the colon in it", hint };
    }
    match rest.iter().position(|it: &&str| !it.is_empty() && !it.starts_with([' ', '\t'])) {
        Some(at) => Fault {
            line: 1 + at,
            is_colon: false,
            why: "because of this line, which is neither indented nor a field",
            hint: stray_hint(rest[at]),
        },
        None => Fault { line: 0, is_colon: false, why: "as it stands", hint },
    }
}

/// Repairs the lines under a key: tabs become spaces, values that cannot be parsed are quoted.
fn mend_nested(entry: &str) -> MendedLine {
    let mut out = String::new();
    let mut change = None;
    // The indentation of a block's key, and that of its text.
    let mut block: Option<(usize, Option<usize>)> = None;
    for (number, line) in entry.lines().enumerate() {
        // A tab after the indentation of a block is text.
        let most = block.and_then(|it| it.1).unwrap_or(usize::MAX);
        let (indent, content) = indentation(line, most);
        let lead = " ".repeat(indent);
        if lead.len() + content.len() != line.len() && change.is_none() {
            let message =
                "a tab in the indentation is not YAML; it was read as two spaces".to_owned();
            change = Some(Change {
                line: number + 1,
                is_colon: false,
                is_sure: true,
                message,
                hint: "indent with spaces",
            });
        }
        let in_block = block.is_some_and(|it| content.is_empty() || indent > it.0);
        block = block.filter(|_| in_block);
        if let Some((_, text @ None)) = &mut block {
            *text = (!content.is_empty()).then_some(indent);
        }
        let Some((head, value)) = value_of(content).filter(|_| !in_block) else {
            out.push_str(&format!("{lead}{content}\n"));
            continue;
        };
        if is_block_header(value) {
            block = Some((indent, None));
        }
        if block.is_some() || is_readable(&format!("k: {value}\n")) {
            out.push_str(&format!("{lead}{content}\n"));
            continue;
        }
        let fault = fault(value, &[]);
        out.push_str(&format!("{lead}{head}'{}'\n", strip_quotes(value).replace('\'', "''")));
        let change = change.get_or_insert_with(|| {
            let message =
                format!("this value is not YAML {}; it was read as if in quotes", fault.why);
            let Fault { is_colon, hint, .. } = fault;
            Change { line: number + 1, is_colon, is_sure: true, message, hint }
        });
        change.is_sure &= !is_anchored(value);
    }
    (out, change)
}

/// Returns the indentation of a line, up to `most` columns, with a tab counting as two; and the
/// rest.
fn indentation(line: &str, most: usize) -> (usize, &str) {
    let mut columns = 0;
    let content = line.trim_start_matches(|c| {
        let is_indent = matches!(c, ' ' | '\t') && columns < most;
        columns += if !is_indent {
            0
        } else if c == '\t' {
            2
        } else {
            1
        };
        is_indent
    });
    (columns, content)
}

/// Returns the value of a nested line, and the part before it: a dash, a key, or both.
fn value_of(content: &str) -> Option<(&str, &str)> {
    let dash = if content.starts_with("- ") { 2 } else { 0 };
    let key = key_length(&content[dash..]).map_or(0, |colon| colon + 1);
    let value = content[dash + key..].trim();
    let start = content.len() - content[dash + key..].trim_start().len();
    (dash + key > 0 && !value.is_empty() && !value.starts_with('#'))
        .then(|| (&content[..start], value))
}

/// Recovers the name and the description from their lines.
fn rescue(text: &str) -> Option<Vec<Field<'static>>> {
    let mut rescued = Vec::new();
    let mut line = 1;
    for entry in entries(text) {
        let entry = normalize_line_ends(entry);
        let first = entry.lines().next().unwrap_or_default();
        let key = key_length(first).map_or("", |colon| &first[..colon]);
        if matches!(key, "name" | "description")
            && !rescued.iter().any(|it: &Field<'_>| it.key == key)
        {
            let value = first[key.len() + 1..].trim();
            let value = value.trim_start_matches(['|', '>', '-', '+']).trim();
            let rest = entry
                .lines()
                .skip(1)
                .map(str::trim)
                .filter(|it| key == "description" && !it.is_empty());
            let words: Vec<&str> =
                std::iter::once(value).chain(rest).filter(|it| !it.is_empty()).collect();
            let joined = words.join(" ");
            let text = joined.trim_matches(['"', '\'']);
            // A name with control characters is rejected, not repaired.
            let text =
                if key == "name" { text.to_owned() } else { text.replace(['\t', '\0'], " ") };
            let placeholder = key == "name" && text.starts_with(['[', '{']);
            if !text.is_empty() && !placeholder {
                let mut field = Field::new(key.to_owned(), Value::from(text.as_str())).into_owned();
                field.line = line;
                rescued.push(field);
            }
        }
        line += entry.lines().count();
    }
    (rescued.len() == 2).then_some(rescued)
}
