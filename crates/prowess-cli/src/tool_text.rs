//! A tool with its parameters, as text and as JSON.

use anyhow::Result;
use prowess_runtime::{
    Tool,
    parameters::{ToolParameter, tool_parameters},
};
#[cfg(feature = "mcp")]
use serde_json::{Value as Json, json};

use crate::{markdown::wrap, printer::Printer, safe};

/// The least width of a text, however narrow the terminal is.
const NARROWEST: usize = 20;

/// Prints the name of a tool, its description in one line, and below it each parameter.
pub(crate) fn print(
    tool: &dyn Tool,
    indent: &str,
    with_parameters: bool,
    printer: &mut Printer,
) -> Result<()> {
    let name = printer.name(&safe::line(tool.name()));
    text(&format!("{indent}{name}"), &tool.summary(), indent, printer)?;
    if with_parameters {
        let indent = format!("{indent}  ");
        for ToolParameter { name, kind, is_required, description, .. } in
            tool_parameters(&tool.input_schema())
        {
            let required = if is_required { ", required" } else { "" };
            let head = format!("{name} ({kind}{required})");
            let head = safe::line(&head);
            let head = match printer.width {
                Some(width) => wrap(&head, room(width, &indent), "  "),
                None => vec![head.into_owned()],
            };
            let head = head.join(&format!("\n{indent}"));
            text(&format!("{indent}{head}"), &description, &indent, printer)?;
        }
    }
    Ok(())
}

/// Returns a tool as JSON, with its whole input schema.
#[cfg(feature = "mcp")]
pub(crate) fn document(tool: &dyn Tool) -> Json {
    json!({
        "name": tool.name(),
        "description": tool.description(),
        "input_schema": tool.input_schema(),
    })
}

/// Prints a text after its head, or at a terminal below it.
fn text(head: &str, text: &str, indent: &str, printer: &mut Printer) -> Result<()> {
    let text = safe::line(text);
    match printer.width.filter(|_| !text.is_empty()) {
        _ if text.is_empty() => printer.line(head),
        None => printer.line(format_args!("{head}  {text}")),
        Some(width) => {
            printer.line(head)?;
            for line in wrap(&text, room(width, indent) - 2, "") {
                printer.line(format_args!("{indent}  {}", printer.dim(&line)))?;
            }
            Ok(())
        }
    }
}

/// Returns the columns left after an indent.
fn room(width: usize, indent: &str) -> usize {
    width.saturating_sub(indent.len()).max(NARROWEST)
}
