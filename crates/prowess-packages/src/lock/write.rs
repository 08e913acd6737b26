//! Writes a lock file: the same skills are the same bytes.

use std::fmt::Write as _;

use toml_edit::{Item, TableLike, Value};

use super::{Lock, LockedSkill, VERSION};

/// The fields of a skill, in the order they are written.
pub(super) const SKILL_FIELDS: [&str; 17] = [
    "name",
    "skill",
    "source",
    "url",
    "reference",
    "commit",
    "version",
    "published",
    "integrity",
    "path",
    "plugin",
    "signer",
    "digest",
    "files",
    "clients",
    "copy",
    "targets",
];

pub(super) fn write(lock: &Lock) -> String {
    let mut out = String::from(
        "# Written by `prowess`: edit `prowess.toml` and run `prowess sync` instead.\n",
    );
    let _ = writeln!(out, "version = {VERSION}");
    for (key, value) in &lock.unknown {
        let _ = writeln!(out, "{} = {value}", key_of(key));
    }
    for skill in &lock.skills {
        out.push_str("\n[[skill]]\n");
        write_skill(&mut out, skill);
    }
    out
}

fn write_skill(out: &mut String, skill: &LockedSkill) {
    text(out, "name", Some(&skill.name));
    text(out, "skill", skill.skill.as_deref());
    text(out, "source", Some(&skill.source.to_string()));
    text(out, "url", Some(&skill.url));
    text(out, "reference", skill.reference.as_deref());
    text(out, "commit", skill.commit.as_deref());
    text(out, "version", skill.version.as_deref());
    if let Some(published) = skill.published {
        let _ = writeln!(out, "published = {published}");
    }
    text(out, "integrity", skill.integrity.as_deref());
    text(out, "path", Some(&*skill.path).filter(|it| !it.is_empty()));
    text(out, "plugin", skill.plugin.as_deref());
    text(out, "signer", skill.signer.as_deref());
    text(out, "digest", Some(&skill.digest.to_string()));
    out.push_str("files = [\n");
    for file in &skill.files {
        out.push_str("    { path = ");
        quote(out, &file.path);
        let _ = write!(out, ", size = {}, ", file.size);
        if file.executable {
            out.push_str("executable = true, ");
        }
        let _ = writeln!(out, "digest = \"{}\" }},", file.digest);
    }
    out.push_str("]\n");
    if let Some(clients) = &skill.clients {
        out.push_str("clients = [");
        for (at, client) in clients.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { ", " });
            quote(out, client);
        }
        out.push_str("]\n");
    }
    if skill.copy {
        out.push_str("copy = true\n");
    }
    if !skill.targets.is_empty() {
        out.push_str("targets = [\n");
        for target in &skill.targets {
            out.push_str("    { path = ");
            quote(out, &target.path);
            let _ = writeln!(out, ", form = \"{}\" }},", target.form.name());
        }
        out.push_str("]\n");
    }
    for (key, value) in &skill.unknown {
        let _ = writeln!(out, "{} = {value}", key_of(key));
    }
}

fn text(out: &mut String, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        let _ = write!(out, "{key} = ");
        quote(out, text);
        out.push('\n');
    }
}

/// Returns the value of a field that is not known, in one form however it was written; `None` for nothing.
pub(super) fn unknown(item: &Item) -> Option<String> {
    let mut out = String::new();
    match item {
        Item::None => return None,
        Item::Value(Value::Array(array)) if array.len() > 1 => {
            out.push_str("[\n");
            for value in array {
                out.push_str("    ");
                write_value(&mut out, value);
                out.push_str(",\n");
            }
            out.push(']');
        }
        Item::Value(value) => write_value(&mut out, value),
        Item::Table(table) => write_table(&mut out, table),
        Item::ArrayOfTables(tables) => {
            out.push('[');
            for table in tables {
                out.push_str("\n    ");
                write_table(&mut out, table);
                out.push(',');
            }
            out.push_str(if tables.is_empty() { "]" } else { "\n]" });
        }
    }
    // One table alone reads back as a list of one value.
    Some(match item {
        Item::ArrayOfTables(tables) if tables.len() == 1 => {
            let mut out = String::from("[");
            tables.iter().for_each(|it| write_table(&mut out, it));
            out.push(']');
            out
        }
        _ => out,
    })
}

fn write_item(out: &mut String, item: &Item) {
    match item {
        Item::None => out.push_str("[]"),
        Item::Value(value) => write_value(out, value),
        Item::Table(table) => write_table(out, table),
        Item::ArrayOfTables(tables) => {
            out.push('[');
            for (at, table) in tables.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_table(out, table);
            }
            out.push(']');
        }
    }
}

fn write_table(out: &mut String, table: &dyn TableLike) {
    out.push('{');
    let mut fields: Vec<(&str, &Item)> = table.iter().collect();
    fields.sort_by_key(|it| it.0);
    for (at, (key, item)) in fields.iter().enumerate() {
        let _ = write!(out, "{}{} = ", if at == 0 { " " } else { ", " }, key_of(key));
        write_item(out, item);
    }
    out.push_str(if fields.is_empty() { "}" } else { " }" });
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => quote(out, text.value()),
        Value::Array(array) => {
            out.push('[');
            for (at, value) in array.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_value(out, value);
            }
            out.push(']');
        }
        Value::InlineTable(table) => write_table(out, table),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            let _ = write!(out, "{}", value.clone().decorated("", ""));
        }
    }
}

fn key_of(key: &str) -> String {
    let is_bare = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    if !key.is_empty() && key.bytes().all(is_bare) {
        return key.to_owned();
    }
    let mut out = String::new();
    quote(&mut out, key);
    out
}

/// Writes a text between quotes.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => drop(write!(out, "\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
