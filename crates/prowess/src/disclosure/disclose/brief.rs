//! The brief: the parameters of a skill, and the beginning of its instructions.

use serde_json::Value as Json;

use crate::{
    read::definition::{is_closing, opening, parameters},
    text::{
        shorten::{one_line, shorten_line},
        tokens::Tokenizer,
    },
};

/// The maximum number of tokens of parameters and instructions in a brief.
const BRIEF: usize = 160;
/// The maximum number of those for parameters.
const PARAMETERS: usize = 100;
/// The maximum number of tokens for one parameter.
const PARAMETER: usize = 25;

/// Returns the parameters and the first instructions, as much as fits; a cut is marked.
pub(super) fn brief(instructions: &str) -> String {
    let mut text = Text { text: String::from("\n"), room: BRIEF };
    if let Ok(Some(schema)) = parameters(instructions) {
        text.parameters(&schema);
    }
    let mut is_blank = true;
    for line in basic_lines(instructions) {
        let line = line.trim_end();
        // Saves room: of several blank lines one is kept, and none at the beginning.
        if line.is_empty() && is_blank {
            continue;
        }
        is_blank = line.is_empty();
        if !text.push(line) {
            text.text.push_str("… (truncated; ask for the full skill)\n");
            break;
        }
    }
    text.text
}

struct Text {
    text: String,
    /// The remaining tokens.
    room: usize,
}

impl Text {
    /// Lists the parameters of a JSON schema.
    fn parameters(&mut self, schema: &Json) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let after = self.room - PARAMETERS;
        for (number, (name, property)) in properties.iter().enumerate() {
            let kind = property["type"].as_str().unwrap_or("any");
            let need = if required.iter().any(|it| it == name) { ", required" } else { "" };
            let about = property["description"].as_str().unwrap_or("");
            let line = one_line(&format!("- `{name}` ({kind}{need}) {about}"));
            let line = shorten_line(&line, PARAMETER, count);
            if self.room < after + count(&line) {
                let more = properties.len() - number;
                self.push(&format!("- … (truncated: {more} more parameters)"));
                break;
            }
            self.push(&line);
        }
        self.push("");
    }

    /// Adds a line, or as many words of it as fit; returns whether the whole line fit.
    fn push(&mut self, line: &str) -> bool {
        let fitting = shorten_line(line, self.room.saturating_sub(1), count);
        if fitting.is_empty() && !line.is_empty() {
            self.room = 0;
            return false;
        }
        self.text.push_str(&fitting);
        self.text.push('\n');
        self.room = self.room.saturating_sub(count(&fitting) + 1);
        fitting == line
    }
}

fn count(text: &str) -> usize {
    Tokenizer::Estimate.count(text)
}

/// Returns the lines of the instructions without their title and the section of parameters, which
/// is already listed.
fn basic_lines(instructions: &str) -> impl Iterator<Item = &str> {
    let (mut fence, mut in_parameters) = (None, false);
    instructions.lines().filter(move |line| {
        match fence {
            Some(marks) if is_closing(line, marks) => fence = None,
            Some(_) => {}
            None => {
                fence = opening(line).map(|it| it.0);
                if line.starts_with("# ") || line.starts_with("## ") {
                    in_parameters = line[2..].trim().eq_ignore_ascii_case("parameters");
                }
            }
        }
        let is_title = fence.is_none() && line.starts_with("# ");
        !in_parameters && !is_title
    })
}
