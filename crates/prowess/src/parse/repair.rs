//! Repair: what a frontmatter that is no YAML was meant to say.
//!
//! First the values that YAML trips over are put in quotes, line for line, so that every line keeps
//! its number. Where that is not enough, name and description are rescued alone.

use prowess_frontmatter::{Block, Field, Value, read};

use super::yaml_fields;
use crate::{
    finding::{At, Report},
    rule,
};

/// The fields of a repaired frontmatter, with findings that say what was done; nothing when it is
/// beyond repair.
pub(super) fn repaired<'t>(
    block: Block<'t>,
    line: usize,
    what: &str,
    report: &mut Report,
) -> Option<Vec<Field<'t>>> {
    let (text, changes) = requote(block.text);
    if let Some(fields) = fields(&text) {
        for change in changes {
            report.note(
                &rule::YAML_REPAIRED,
                At::line(block.line + change.line - 1),
                || format!("{} so it was read as if in quotes", change.why),
                "put the value in quotes",
            );
        }
        return Some(fields);
    }
    if let Some(fields) = rescue(block.text) {
        report.note(
            &rule::YAML_RESCUED,
            At::line(block.line + line - 1),
            || format!("the frontmatter is not YAML ({what}); only name and description were read"),
            "quote or indent the value of this line",
        );
        return Some(fields);
    }
    report.fatal(
        &rule::YAML_INVALID,
        At::line(block.line + line - 1),
        format!("the frontmatter is not YAML: {what}"),
        "quote values that hold `: `, ` #` or begin with a bracket, and indent with spaces",
    );
    None
}

fn fields(text: &str) -> Option<Vec<Field<'static>>> {
    let fields = read(text).ok().or_else(|| yaml_fields(text).ok())?;
    // The places in the repaired text are not those in the file, only the lines are.
    let unplaced = |it: Field<'_>| Field { key_span: 0..0, span: 0..0, ..it.into_owned() };
    Some(fields.into_iter().map(unplaced).collect())
}

/// One thing that was repaired.
struct Change {
    line: usize,
    why: String,
}

/// Quotes every top-level entry that cannot be read by itself.
fn requote(text: &str) -> (String, Vec<Change>) {
    let mut out = String::with_capacity(text.len() + 16);
    let mut changes = Vec::new();
    let mut line = 1;
    for entry in entries(text) {
        let fixed = if readable(&entry) { (entry.clone(), None) } else { fix(&entry) };
        out.push_str(&fixed.0);
        changes.extend(fixed.1.map(|(offset, why)| Change { line: line + offset, why }));
        line += entry.lines().count();
    }
    (out, changes)
}

fn readable(entry: &str) -> bool {
    read(entry).is_ok() || yaml_fields(entry).is_ok()
}

/// The top-level entries: a key at the margin, and the lines under it. Line ends become LF.
fn entries(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines() {
        let own = key_length(line).is_some() || line.starts_with('#') || entries.is_empty();
        if own {
            entries.push(String::new());
        }
        if let Some(entry) = entries.last_mut() {
            entry.push_str(line);
            entry.push('\n');
        }
    }
    entries
}

/// How long the key at the start of a line is, when there is one that looks like a key.
fn key_length(line: &str) -> Option<usize> {
    let colon = line.find(':')?;
    let key = &line[..colon];
    let word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let behind = line[colon + 1..].chars().next();
    (!key.is_empty() && key.chars().all(word) && behind.is_none_or(char::is_whitespace))
        .then_some(colon)
}

/// An entry in quotes, with the line within it that was at fault and why.
fn fix(entry: &str) -> (String, Option<(usize, String)>) {
    let first = entry.lines().next().unwrap_or_default();
    let Some(colon) = key_length(first) else { return (entry.to_owned(), None) };
    let key = &first[..colon];
    let value = first[colon + 1..].trim();
    // Brackets around a name are a placeholder that somebody forgot, not a name.
    if key == "name" && value.starts_with(['[', '{']) {
        return (entry.to_owned(), None);
    }
    if value.is_empty() {
        return fix_nested(entry);
    }
    // An indicator with text behind it on the same line was meant as the start of that text.
    let misplaced = value.starts_with(['|', '>']) && value[1..].starts_with([' ', '-', '+']);
    let header_only = value.trim_matches(['|', '>', '-', '+']).is_empty();
    if misplaced && header_only {
        return fix_nested(entry);
    }
    let value =
        if misplaced { value[1..].trim_start_matches(['-', '+']).trim_start() } else { value };
    let rest: Vec<&str> = entry.lines().skip(1).collect();
    let why = format!("the value of `{key}` is not YAML {},", reason(value, &rest));
    let mut out = format!("{key}: '{}", quote_inner(value, rest.is_empty()));
    for line in &rest {
        // A line at the margin was meant to go on with the value above it.
        out.push_str("\n  ");
        out.push_str(line.trim().replace('\'', "''").as_str());
    }
    out.push_str("'\n");
    (out, Some((0, why)))
}

/// The text of a value for single quotes; quotes around all of it are those of the writer.
fn quote_inner(value: &str, alone: bool) -> String {
    let stripped = ['"', '\''].iter().find_map(|quote| {
        let inner = value.strip_prefix(*quote)?.strip_suffix(*quote)?;
        (alone && !inner.is_empty()).then(|| inner.replace("\\\"", "\""))
    });
    stripped.as_deref().unwrap_or(value).replace('\'', "''")
}

/// Why YAML cannot read a value.
fn reason(value: &str, rest: &[&str]) -> &'static str {
    let colon = |line: &str| line.contains(": ") || line.ends_with(':');
    if value.starts_with(['"', '\'']) {
        "because of its quotes"
    } else if value.starts_with(['[', '{', '@', '`', '%', '*', '&', '!', '?', '|', '>', '-']) {
        "because of its first character"
    } else if colon(value) || rest.iter().any(|it| colon(it.trim())) {
        "because of the colon in it"
    } else {
        "as it stands"
    }
}

/// Repairs the lines under a key: tabs become spaces, values that cannot be read are quoted.
fn fix_nested(entry: &str) -> (String, Option<(usize, String)>) {
    let mut out = String::new();
    let mut change = None;
    let mut block: Option<usize> = None;
    for (number, line) in entry.lines().enumerate() {
        let content = line.trim_start_matches([' ', '\t']);
        let lead = line[..line.len() - content.len()].replace('\t', "  ");
        if lead.len() + content.len() != line.len() && change.is_none() {
            change = Some((number, "a tab in the indentation is not YAML,".to_owned()));
        }
        if block.is_some_and(|indent| content.is_empty() || lead.len() > indent) {
            out.push_str(&format!("{lead}{content}\n"));
            continue;
        }
        block = None;
        let dash = if content.starts_with("- ") { "- " } else { "" };
        let bare = &content[dash.len()..];
        let head = match key_length(bare) {
            Some(colon) if number == 0 || !bare[colon + 1..].trim().is_empty() => colon + 1,
            Some(_) => bare.len(),
            None => 0,
        };
        let value = bare[head..].trim();
        if value.starts_with(['|', '>']) && value.trim_matches(['|', '>', '-', '+']).is_empty() {
            block = Some(lead.len());
        } else if !value.is_empty()
            && !value.starts_with('#')
            && (head > 0 || !dash.is_empty())
            && !readable(&format!("k: {value}\n"))
        {
            let gap = if head > 0 { " " } else { "" };
            out.push_str(&format!(
                "{lead}{dash}{}{gap}'{}'\n",
                &bare[..head],
                quote_inner(value, true)
            ));
            change.get_or_insert_with(|| {
                (number, format!("this value is not YAML {},", reason(value, &[])))
            });
            continue;
        }
        out.push_str(&format!("{lead}{content}\n"));
    }
    (out, change)
}

/// Name and description, taken from their lines.
fn rescue(text: &str) -> Option<Vec<Field<'static>>> {
    let mut rescued = Vec::new();
    let mut line = 1;
    for entry in entries(text) {
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
            let text = joined.trim_matches(['"', '\'']).replace(['\t', '\0'], " ");
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
