//! Edits the entries of `[skills]` in a text, and nothing else of it.

use std::ops::Range;

use prowess::is_plain_name;
use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Key, TableLike, Value};

use super::{ManifestError, WantedSkill, read};

/// Fails if a skill cannot be an entry.
pub(super) fn check(skill: &WantedSkill) -> Result<(), ManifestError> {
    match is_plain_name(&skill.name) {
        true => Ok(()),
        false => Err(ManifestError::Name { line: 0, column: 0, name: skill.name.clone() }),
    }
}

/// Returns the text with entries added or changed, which are in the order of their names; `None` if
/// that is not possible.
pub(super) fn set(text: &str, skills: &[&WantedSkill]) -> Option<String> {
    let (mark, body) = mark(text);
    let document = Document::parse(body).ok()?;
    let table = document.get("skills");
    let is_there = |it: &&WantedSkill| {
        table.and_then(Item::as_table_like).is_some_and(|table| table.contains_key(&it.name))
    };
    let (known, new): (Vec<&WantedSkill>, Vec<&WantedSkill>) =
        skills.iter().partition(|it| is_there(it));
    let edited = match table {
        _ if new.is_empty() => change(body, &known)?,
        // Without a header of its own, there is no line to add one below.
        None => append(body, &new),
        Some(Item::Table(table)) if table.is_implicit() && !table.is_dotted() => {
            changed(append(body, &new), &known)?
        }
        Some(Item::Table(table)) if !table.is_dotted() => {
            changed(insert(body, table.span()?, entries(table), &new)?, &known)?
        }
        Some(_) => change(body, skills)?,
    };
    Some(format!("{mark}{edited}"))
}

/// Changes entries, if there are any.
fn changed(text: String, skills: &[&WantedSkill]) -> Option<String> {
    if skills.is_empty() { Some(text) } else { change(&text, skills) }
}

/// Returns the text without an entry; `None` if that is not possible.
pub(super) fn remove(text: &str, name: &str) -> Option<String> {
    let (mark, body) = mark(text);
    let document = Document::parse(body).ok()?;
    let skills = document.get("skills")?;
    if skills.as_inline_table().is_some() {
        let edited =
            edit(body, |it| it.get_mut("skills")?.as_table_like_mut()?.remove(name).map(drop))?;
        return Some(format!("{mark}{edited}"));
    }
    let (key, item) = skills.as_table_like()?.get_key_value(name)?;
    let mut ranges = Vec::new();
    spans(key, item, &mut ranges);
    let mut lines: Vec<Range<usize>> = ranges.into_iter().map(|it| lines_of(body, it)).collect();
    lines.sort_by_key(|it| it.start);
    let mut out = String::with_capacity(text.len());
    out.push_str(mark);
    let mut from = 0;
    for line in lines {
        out.push_str(body.get(from..line.start.max(from))?);
        from = from.max(line.end);
    }
    out.push_str(body.get(from..)?);
    Some(out)
}

/// Splits off a byte order mark.
fn mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 })
}

fn line_end(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn append(text: &str, skills: &[&WantedSkill]) -> String {
    let end = line_end(text);
    let (first, gap) = match text {
        "" => ("", ""),
        _ if text.ends_with('\n') => ("", end),
        _ => (end, end),
    };
    let lines: String = skills.iter().map(|it| line(it) + end).collect();
    format!("{text}{first}{gap}[skills]{end}{lines}")
}

/// Returns the names that have lines of their own below the header, in the order of the lines, each
/// with what it takes up.
fn entries(table: &toml_edit::Table) -> Vec<(&str, Range<usize>)> {
    let mut entries = Vec::new();
    for (name, item) in table.iter() {
        let has_header =
            item.as_table().is_some_and(|it| !it.is_dotted()) || item.is_array_of_tables();
        if let (Some(key), false) = (table.key(name), has_header) {
            let mut ranges = Vec::new();
            spans(key, item, &mut ranges);
            let start = ranges.iter().map(|it| it.start).min();
            let end = ranges.iter().map(|it| it.end).max();
            entries.extend(start.zip(end).map(|(start, end)| (name, start..end)));
        }
    }
    entries.sort_by_key(|it| it.1.start);
    entries
}

/// Adds lines at their places in the alphabet, or behind the last one if they have another order.
fn insert(
    text: &str,
    header: Range<usize>,
    entries: Vec<(&str, Range<usize>)>,
    skills: &[&WantedSkill],
) -> Option<String> {
    let is_sorted = entries.is_sorted_by(|a, b| a.0 < b.0);
    let end = line_end(text);
    let mut out = String::with_capacity(text.len() + skills.len() * 64);
    let mut from = 0;
    for skill in skills {
        let before = match is_sorted {
            true => entries.partition_point(|it| it.0 < skill.name.as_str()),
            false => entries.len(),
        };
        let before = before.checked_sub(1).map(|it| entries[it].1.clone());
        let lines = lines_of(text, before.clone().unwrap_or_else(|| header.clone()));
        let indent = before.and_then(|it| text.get(lines.start..it.start));
        let indent = indent.filter(|it| it.trim().is_empty()).unwrap_or_default();
        // Entries in several parts can overlap.
        let behind = lines.end.max(from);
        out.push_str(text.get(from..behind)?);
        from = behind;
        if !out.ends_with('\n') {
            out.push_str(end);
        }
        out.extend([indent, &line(skill), end]);
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// Returns the line of a new entry.
fn line(skill: &WantedSkill) -> String {
    format!("{} = {}", skill.name, value(skill))
}

fn value(skill: &WantedSkill) -> Value {
    let source = skill.source.to_string();
    if skill.skill.is_none() && skill.clients.is_none() && !skill.copy {
        return source.into();
    }
    let mut table = InlineTable::new();
    table.insert("source", source.into());
    if let Some(name) = &skill.skill {
        table.insert("skill", name.into());
    }
    if let Some(clients) = &skill.clients {
        table.insert("clients", Value::Array(Array::from_iter(clients)));
    }
    if skill.copy {
        table.insert("copy", true.into());
    }
    table.into()
}

/// Adds or changes entries where there are no lines to add or replace.
fn change(text: &str, skills: &[&WantedSkill]) -> Option<String> {
    edit(text, |document| {
        let table = document.get_mut("skills")?.as_table_like_mut()?;
        skills.iter().try_for_each(|it| change_entry(table, it))
    })
}

fn change_entry(skills: &mut dyn TableLike, skill: &WantedSkill) -> Option<()> {
    let Some(item) = skills.get_mut(&skill.name) else {
        skills.insert(&skill.name, Item::Value(value(skill)));
        return Some(());
    };
    let old = read::entry(&skill.name, item)?;
    let keeps_source = old.source == skill.source && old.skill == skill.skill;
    match item {
        Item::Value(old_value @ Value::String(_)) => {
            let mut new = value(skill);
            if let (true, Value::InlineTable(table)) = (keeps_source, &mut new) {
                // The spelling of the source stays, and so does the name in it.
                table.insert("source", old_value.clone().decorated(" ", " "));
                if old_value
                    .as_str()?
                    .parse()
                    .is_ok_and(|it: crate::source::SkillSource| !it.skills.is_empty())
                {
                    table.remove("skill");
                }
                table.fmt();
            }
            let decor = old_value.decor().clone();
            *old_value = new;
            *old_value.decor_mut() = decor;
        }
        _ => {
            let table = item.as_table_like_mut()?;
            if !keeps_source {
                put(table, "source", Some(skill.source.to_string().into()));
                put(table, "skill", skill.skill.as_ref().map(Value::from));
            }
            if old.clients != skill.clients {
                let clients = skill.clients.as_ref().map(|it| Value::Array(Array::from_iter(it)));
                put(table, "clients", clients);
            }
            if old.copy != skill.copy {
                put(table, "copy", skill.copy.then(|| true.into()));
            }
            if let Some(table) = item.as_inline_table_mut() {
                table.fmt();
            }
        }
    }
    Some(())
}

fn put(table: &mut dyn TableLike, key: &str, value: Option<Value>) {
    match (table.get_mut(key), value) {
        (Some(Item::Value(old)), Some(new)) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        (_, Some(new)) => drop(table.insert(key, Item::Value(new))),
        (_, None) => drop(table.remove(key)),
    }
}

/// Edits a document; lines that are the same stay byte for byte, with their line ends.
fn edit(text: &str, change: impl FnOnce(&mut DocumentMut) -> Option<()>) -> Option<String> {
    let plain = text.replace("\r\n", "\n");
    let mut document: DocumentMut = plain.parse().ok()?;
    // It writes some rare forms in another way, which would change what is not to be edited.
    if document.to_string() != plain {
        return None;
    }
    change(&mut document)?;
    let edited = document.to_string();
    let (old, new): (Vec<&str>, Vec<&str>) =
        (text.split_inclusive('\n').collect(), edited.split_inclusive('\n').collect());
    let is_same = |it: &(&&str, &&str)| {
        it.0.strip_suffix("\r\n")
            .map_or(**it.0 == **it.1, |line| it.1.strip_suffix('\n') == Some(line))
    };
    let head = old.iter().zip(&new).take_while(is_same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(is_same).count();
    let end = line_end(text);
    let mut out = old[..head].concat();
    for line in &new[head..new.len() - tail] {
        match line.strip_suffix('\n') {
            Some(line) => out.extend([line, end]),
            None => out.push_str(line),
        }
    }
    out.push_str(&old[old.len() - tail..].concat());
    Some(out)
}

/// Collects what an entry takes up: from its keys to its values, and its headers.
fn spans(key: &Key, item: &Item, out: &mut Vec<Range<usize>>) {
    let children = |table: &toml_edit::Table, out: &mut Vec<Range<usize>>| {
        for (name, item) in table.iter() {
            if let Some(key) = table.key(name) {
                spans(key, item, out);
            }
        }
    };
    match item {
        Item::None => {}
        Item::Value(value) => {
            let start = key.span().map(|it| it.start);
            let end = value.span().map(|it| it.end);
            out.extend(start.zip(end).map(|(start, end)| start..end.max(start)));
        }
        Item::Table(table) => {
            if !table.is_implicit() && !table.is_dotted() {
                out.extend(table.span());
            }
            children(table, out);
        }
        Item::ArrayOfTables(tables) => {
            for table in tables {
                out.extend(table.span());
                children(table, out);
            }
        }
    }
}

/// Returns the range of the whole lines of a range.
fn lines_of(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text.as_bytes()[..range.start.min(text.len())].iter().rposition(|it| *it == b'\n');
    let behind = range.end.min(text.len());
    let end = text.as_bytes()[behind..].iter().position(|it| *it == b'\n');
    start.map_or(0, |it| it + 1)..end.map_or(text.len(), |it| behind + it + 1)
}
