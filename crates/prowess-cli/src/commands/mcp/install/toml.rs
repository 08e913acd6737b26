//! TOML, edited in place: the rest stays as it is written.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::Broken;

/// Adds a server at a path of keys. If one with a command exists, only the fields that differ are
/// written, so that its other fields stay.
pub(super) fn put(text: &str, way: &[&str], entry: &Map<String, Json>) -> Result<String, Broken> {
    edit(text, way, |servers, name| {
        let old = servers.get_mut(name).and_then(Item::as_table_like_mut);
        let Some(old) = old.filter(|it| it.contains_key("command")) else {
            let fields = entry.iter().map(|(field, value)| (field, toml(value)));
            servers.insert(name, Item::Table(Table::from_iter(fields)));
            return;
        };
        for (field, value) in entry {
            match old.get_mut(field).and_then(Item::as_value_mut) {
                Some(old) if json(old) == *value => {}
                Some(old) => {
                    let decor = old.decor().clone();
                    *old = toml(value);
                    *old.decor_mut() = decor;
                }
                None => drop(old.insert(field, toml(value).into())),
            }
        }
    })
}

/// Removes the value at a path of keys.
pub(super) fn remove(text: &str, way: &[&str]) -> Result<String, Broken> {
    edit(text, way, |servers, name| drop(servers.remove(name)))
}

/// Changes the value at a path of keys, if the rest can be preserved.
fn edit(
    text: &str,
    way: &[&str],
    change: impl FnOnce(&mut dyn TableLike, &str),
) -> Result<String, Broken> {
    let [above @ .., name] = way else { return Ok(text.to_owned()) };
    let parsed: Result<DocumentMut, _> = text.parse();
    let mut document = parsed.map_err(|error| {
        Broken::at(text, error.span().map_or(0, |it| it.start), error.message())
    })?;
    let before = to_text(&document, text);
    // A text that does not round-trip would change elsewhere too.
    if !before.strip_prefix(text).is_some_and(|it| matches!(it, "" | "\n" | "\r\n")) {
        return Err(Broken::whole("its formatting cannot be preserved"));
    }
    let mut servers: &mut dyn TableLike = document.as_table_mut();
    for name in above {
        let item = servers.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let what = format!("`{name}` is not a table");
        servers = item.as_table_like_mut().ok_or_else(|| Broken::whole(what))?;
    }
    change(servers, name);
    let after = to_text(&document, text);
    Ok(if after == before { text.to_owned() } else { after })
}

/// Formats a document, with line ends as in another text.
fn to_text(document: &DocumentMut, like: &str) -> String {
    match like.contains("\r\n") {
        true => document.to_string().replace('\n', "\r\n"),
        false => document.to_string(),
    }
}

fn toml(value: &Json) -> Value {
    match value {
        Json::Array(items) => Value::Array(Array::from_iter(items.iter().map(toml))),
        Json::Bool(value) => (*value).into(),
        value => value.as_str().unwrap_or_default().into(),
    }
}

fn json(value: &Value) -> Json {
    match value {
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Boolean(value) => (*value.value()).into(),
        value => value.as_str().map_or(Json::Null, Json::from),
    }
}
