//! The instructions of a skill made from a plugin: its commands, its invocation, its needs.

use std::fmt::Write as _;

use prowess::ResourceKind;
use prowess_runtime::store::Files;
use serde_json::Value as Json;

use super::{
    LostItem,
    calls::{Piece, pieces},
    name::one_line,
    plugin::{Parameter, Plugin},
};

/// The most left-out items that are listed.
const SHOWN: usize = 100;

/// Returns the instructions of a skill made from a plugin.
pub(super) fn body(plugin: &Plugin, files: &Files, lost: &[LostItem]) -> String {
    let mut body = Body(String::new());
    let title = plugin.display_name.as_deref().or(plugin.name.as_deref()).unwrap_or_default();
    body.line(format_args!("# {}", one_line(title)));
    body.quote(&plugin.description());
    for command in &plugin.commands {
        let name = one_line(&command.name);
        // The heading `Parameters` has a meaning in a skill.
        let is_taken = name.trim_end_matches(['#', ' ']).eq_ignore_ascii_case("parameters");
        body.line(format_args!("## {}{name}", if is_taken { "The command " } else { "" }));
        body.quote(&command.description);
        body.list("It takes:", &command.parameters);
        if let Some(schema) = command.schema.as_ref().filter(|_| plugin.schema().is_none()) {
            let schema = json(schema);
            let lines: Vec<String> = schema.lines().map(|it| format!("> {it}")).collect();
            body.line("In full:");
            body.line(lines.join("\n"));
        }
        if !command.example.trim().is_empty() {
            body.line("For example:");
            body.quote(&command.example);
        }
    }
    if let Some(schema) = plugin.schema() {
        body.line(format_args!("## Parameters\n\n```json\n{}\n```", json(schema)));
    }
    body.run(plugin, files);
    body.list("## Settings\n\nIt reads these environment variables:", &plugin.settings);
    if !lost.is_empty() {
        body.line(
            "## Not carried over\n\nThis skill was converted from a plugin. It does not include:",
        );
        let mut items: String = lost
            .iter()
            .take(SHOWN)
            .map(|it: &LostItem| format!("- {}: {}\n", one_line(&it.what), one_line(&it.why)))
            .collect();
        if lost.len() > SHOWN {
            let _ = writeln!(items, "- {} more", lost.len() - SHOWN);
        }
        body.line(items.trim_end());
    }
    body.0
}

struct Body(String);

impl Body {
    /// Adds a paragraph.
    fn line(&mut self, text: impl std::fmt::Display) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.0, "{gap}{text}");
    }

    /// Adds text of the plugin as a quotation, so that none of its headings and code blocks becomes
    /// one of the skill. Calls of the old format are replaced by their arguments.
    fn quote(&mut self, text: &str) {
        let pieces = pieces(text);
        let has_calls = pieces.len() > 1;
        let mut quoted = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) if has_calls => {
                    // The fence around a call is left out.
                    let fences = ["```", "```text", "```json"];
                    let lines = text.lines().filter(|it| !fences.contains(&it.trim()));
                    quoted.push_str(&lines.collect::<Vec<_>>().join("\n"));
                }
                Piece::Text(text) => quoted.push_str(text),
                Piece::Call(values) => {
                    let json = serde_json::to_string_pretty(&values).unwrap_or_default();
                    let _ = write!(quoted, "\n```json\n{json}\n```\n");
                }
            }
        }
        let lines = quoted.trim().lines().map(|it| format!("> {it}"));
        let lines: Vec<String> = lines.map(|it| it.trim_end().to_owned()).collect();
        if !quoted.trim().is_empty() {
            self.line(lines.join("\n"));
        }
    }

    fn list(&mut self, title: &str, parameters: &[Parameter]) {
        if parameters.is_empty() {
            return;
        }
        self.line(title);
        self.line(
            parameters
                .iter()
                .map(|it: &Parameter| {
                    let kind = it.kind.as_ref().map(|it| format!(" ({})", one_line(it)));
                    let required = if it.required { ", required" } else { "" };
                    let default =
                        it.default.as_ref().map(|it| format!("; default: `{}`", one_line(it)));
                    let description = one_line(&it.description);
                    let colon = if description.is_empty() { "" } else { ": " };
                    let (kind, default) = (kind.unwrap_or_default(), default.unwrap_or_default());
                    format!(
                        "- `{}`{kind}{required}{colon}{description}{default}\n",
                        one_line(&it.name)
                    )
                })
                .collect::<String>()
                .trim_end(),
        );
    }

    fn run(&mut self, plugin: &Plugin, files: &Files) {
        let scripts: Vec<&String> =
            files.keys().filter(|it| ResourceKind::of(it) == ResourceKind::Script).collect();
        if plugin.command.is_none() && plugin.main.is_none() && scripts.is_empty() {
            return;
        }
        self.line("## How it was run");
        if let Some(command) = &plugin.command {
            let stdio = plugin.protocol.as_deref().unwrap_or("stdio") == "stdio";
            let how = match stdio {
                true => {
                    "read one JSON object with the parameters of a command from standard input, and printed one JSON object"
                }
                false => "was part of the program that loaded it",
            };
            let timeout = plugin.timeout.map(|it| format!(", within {it} ms"));
            let timeout = timeout.unwrap_or_default();
            self.line(format_args!(
                "It was started in its own folder with `{}`{timeout}. It {how}.",
                one_line(command).replace('`', "'")
            ));
        }
        if let Some(main) = &plugin.main {
            let main = one_line(main).replace('`', "'");
            self.line(format_args!("Its host loaded `{main}`."));
        }
        if !scripts.is_empty() {
            let names: Vec<String> = scripts.iter().map(|it| format!("`{it}`")).collect();
            self.line(format_args!("Its programs are next to this file: {}.", names.join(", ")));
        }
    }
}

/// Formats a value on several lines, unless these would be mostly spaces.
fn json(value: &Json) -> String {
    let (short, long) = (value.to_string(), serde_json::to_string_pretty(value));
    long.ok().filter(|it| it.len() <= 2 * short.len() + 200).unwrap_or(short)
}
