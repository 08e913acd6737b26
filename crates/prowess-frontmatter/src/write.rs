//! The writer: writes fields as lines that [`read`](crate::read()) returns unchanged.

use std::{borrow::Cow, fmt::Write as _};

use crate::{
    scan,
    value::{Field, Kind, Scalar, Style, Value},
};

/// Writes fields as the lines of a frontmatter. The same fields always result in the same text.
pub fn write(fields: &[Field<'_>]) -> String {
    let mut text = String::new();
    map(&mut text, fields, 0);
    text
}

/// Writes a text as a scalar on one line: plain if every YAML reader reads it as the same text,
/// else in double quotes.
pub fn scalar(text: &str) -> Cow<'_, str> {
    let plain = Scalar { text: Cow::Borrowed(text), style: Style::Plain };
    if is_plain(text) && plain.kind() == Kind::Text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(double_quote(text))
    }
}

/// Writes a value on one line, collections in brackets.
pub(crate) fn inline(value: &Value<'_>) -> String {
    match value {
        Value::Empty => String::new(),
        Value::Scalar(scalar) => flow_safe(one_line(scalar)),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(inline_or_null).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|it| format!("{}: {}", flow_safe(scalar(&it.key)), inline_or_null(&it.value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

fn inline_or_null(value: &Value<'_>) -> String {
    if *value == Value::Empty { "null".to_owned() } else { inline(value) }
}

/// Quotes a text that brackets would split.
fn flow_safe(text: Cow<'_, str>) -> String {
    let quoted_already = text.starts_with('"');
    if !quoted_already
        && (text.contains([',', '[', ']', '{', '}', ':']) || text.starts_with(['-', '?']))
    {
        return double_quote(&text);
    }
    text.into_owned()
}

fn map(out: &mut String, fields: &[Field<'_>], indent: usize) {
    for (number, field) in fields.iter().enumerate() {
        // The first field of a list item follows its dash.
        let inline = number == 0 && out.ends_with("- ");
        let width = if inline { 0 } else { indent };
        let _ = write!(out, "{:width$}{}:", "", scalar(&field.key));
        value(out, &field.value, indent);
    }
}

/// Writes the value after a colon or dash, including the line end.
fn value(out: &mut String, value: &Value<'_>, indent: usize) {
    match value {
        Value::Empty => out.push('\n'),
        Value::Scalar(scalar) if is_block(scalar) => block(out, &scalar.text, indent + 2),
        Value::Scalar(scalar) => {
            let _ = writeln!(out, " {}", one_line(scalar));
        }
        Value::List(items) if items.is_empty() => out.push_str(" []\n"),
        Value::Map(fields) if fields.is_empty() => out.push_str(" {}\n"),
        Value::List(items) => {
            out.push('\n');
            for it in items {
                item(out, it, indent + 2);
            }
        }
        Value::Map(fields) => {
            out.push('\n');
            map(out, fields, indent + 2);
        }
    }
}

fn item(out: &mut String, it: &Value<'_>, indent: usize) {
    let _ = write!(out, "{:indent$}-", "");
    match it {
        Value::Map(fields) if !fields.is_empty() => {
            out.push(' ');
            map(out, fields, indent + 2);
        }
        other => value(out, other, indent),
    }
}

/// Writes a scalar on one line, outside of brackets.
pub(crate) fn one_line<'a>(it: &'a Scalar<'_>) -> Cow<'a, str> {
    // A value that is not text to a YAML reader must not become text, nor the reverse.
    if it.style == Style::Plain && is_plain(&it.text) {
        Cow::Borrowed(&*it.text)
    } else {
        scalar(&it.text)
    }
}

/// Whether a text can be written unquoted.
fn is_plain(text: &str) -> bool {
    scan::can_start_plain(text)
        && text.trim() == text
        && !text.contains(['\n', '\r'])
        && scan::key_colon(text).is_none()
        && scan::comment(text).is_none()
        && scan::find_forbidden(text).is_none()
        && !text.starts_with("---")
        && !text.starts_with("...")
        && text != "<<"
}

/// Whether a text of several lines is more readable as a block, and is read back from one
/// unchanged.
fn is_block(it: &Scalar<'_>) -> bool {
    let text = &it.text;
    let body = text.strip_suffix('\n').unwrap_or(text);
    text.contains('\n')
        && !body.is_empty()
        && !body.ends_with('\n')
        && !text.contains('\r')
        && !text.starts_with([' ', '\t', '\n'])
        && scan::find_forbidden(text).is_none()
        && body
            .split('\n')
            .all(|line| line.is_empty() || !line.trim_matches([' ', '\t']).is_empty())
}

fn block(out: &mut String, text: &str, indent: usize) {
    out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        let width = if line.is_empty() { 0 } else { indent };
        let _ = writeln!(out, "{:width$}{line}", "");
    }
}

/// Writes a text in double quotes.
pub(crate) fn double_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}') =>
            {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
