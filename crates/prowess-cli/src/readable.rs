//! Results of tools, formatted for people.

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

/// Formats a value for people: text as it is, tables in columns, objects line by line. The result
/// is not safe for a terminal yet.
pub(crate) fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Servers give the same result twice: for people, and for programs.
        Value::Object(fields) if is_text_and_structured(value) => format_field(&fields["text"]),
        Value::Object(fields) => match (value["columns"].as_array(), value["rows"].as_array()) {
            (Some(columns), Some(rows)) if !columns.is_empty() => table(columns, rows),
            _ => {
                let fields = fields.iter().map(|(name, value)| (name, format_field(value)));
                let (blocks, lines): (Vec<_>, Vec<_>) = fields.partition(|it| is_block(&it.1));
                let lines = lines.iter().map(|(name, text)| format!("{name}: {text}\n"));
                let blocks =
                    blocks.iter().map(|(name, text)| format!("\n{name}:\n{}\n", text.trim_end()));
                lines.chain(blocks).collect()
            }
        },
        _ => format!("{value:#}"),
    }
}

/// Returns whether a value is a result of an MCP server with both text and structured content.
pub(crate) fn is_text_and_structured(value: &Value) -> bool {
    let fields = value.as_object().filter(|it| it.len() == 2);
    fields.is_some_and(|it| {
        it.contains_key("structured") && it.get("text").is_some_and(Value::is_string)
    })
}

/// Returns whether a text needs lines of its own.
fn is_block(text: &str) -> bool {
    text.contains('\n') || text.len() > 100
}

fn format_field(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        // One line each, which makes them a block.
        Value::Array(items) if items.iter().all(Value::is_object) => items
            .iter()
            .map(|item: &Value| {
                let values: Vec<String> =
                    item.as_object().into_iter().flat_map(|it| it.values()).map(cell).collect();
                format!("{}\n", values.join("  "))
            })
            .collect(),
        _ => value.to_string(),
    }
}

fn table(columns: &[Value], rows: &[Value]) -> String {
    let head = columns.iter().map(|it| cell(&it["name"])).collect();
    let rows = rows.iter().map(|row| row.as_array().into_iter().flatten().map(cell).collect());
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| lines.iter().filter_map(|it| Some(it.get(at)?.width())).max().unwrap_or(0))
        .collect();
    lines
        .iter()
        .map(|cells: &Vec<String>| {
            let cells = cells.iter().zip(&widths);
            let padded = cells.map(|(cell, width)| {
                format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
            });
            format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
        })
        .collect()
}

/// Formats a value on one line.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.replace('\n', "\\n"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::format_value;

    #[test]
    fn a_table_stands_in_columns() {
        let value = json!({
            "columns": [{"name": "id", "type": "int"}, {"name": "名", "type": "text"}],
            "rows": [[1, "one"], [22, null], [3, "a\nb"]],
        });
        assert_eq!(format_value(&value), "id  名\n1   one\n22  NULL\n3   a\\nb\n");
    }

    #[test]
    fn what_has_several_lines_comes_last() {
        let value = json!({"text": "a\nb\n", "name": "one", "files": ["x", "y"], "size": 3});
        assert_eq!(format_value(&value), "name: one\nfiles: x, y\nsize: 3\n\ntext:\na\nb\n");
        assert_eq!(format_value(&json!("plain")), "plain");
        let value =
            json!({"entries": [{"name": "x", "size": 1}, {"name": "y", "size": 2}], "total": 2});
        assert_eq!(format_value(&value), "total: 2\n\nentries:\nx  1\ny  2\n");
    }
}
