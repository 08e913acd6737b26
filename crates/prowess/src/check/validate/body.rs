//! The rules about the instructions.

use crate::{
    finding::{Position, Report, rule},
    read::{
        definition::{definition, is_closing, opening, parameters},
        manifest::{Manifest, Type},
        parse::SplitDocument,
    },
    spec::{MAX_LINES, MAX_TOKENS},
    text::tokens::Tokenizer,
};

pub(super) fn check(reading: &SplitDocument<'_>, manifest: Option<&Manifest>, report: &mut Report) {
    let body = reading.document.body;
    if body.text.trim().is_empty() {
        report.note(
            &rule::BODY_EMPTY,
            Position::line(body.line),
            || "there are no instructions".to_owned(),
            "describe how to do the task",
        );
    }
    let lines = body.text.lines().count();
    let tokens = Tokenizer::Estimate.count(body.text);
    if lines > MAX_LINES || tokens > MAX_TOKENS {
        let blank = body.text.lines().take_while(|it| it.trim().is_empty()).count();
        report.note(
            &rule::BODY_LONG,
            Position::line(body.line + blank),
            || match lines > MAX_LINES {
                true => format!("the instructions have {lines} lines, more than {MAX_LINES}"),
                false => {
                    format!("the instructions have about {tokens} tokens, more than {MAX_TOKENS}")
                }
            },
            "move details to files in `references/`",
        );
    }
    for (number, line) in prose(body.text) {
        let text = line.trim_start_matches(['#', '-', '*', ' ', '[', '>']);
        if text.starts_with("TODO:") || text.starts_with("TODO]") || line.trim() == "TODO" {
            report.note(
                &rule::PLACEHOLDER,
                Position::line(body.line + number),
                || "this line still has template text".to_owned(),
                "fill it in",
            );
        }
    }
    let kind = manifest.map_or(Type::Instruction, |it| it.kind);
    let executed =
        definition(kind, body.text).map(drop).and_then(|()| parameters(body.text).map(drop));
    if let Err(error) = executed {
        let at = Position::line(body.line + error.line - 1);
        report.note(
            &rule::DEFINITION,
            at,
            || error.message,
            "a script is a `sh` block, a template a `template` block, a step `{\"tool\": …, \"params\": {…}}` in a `json` block",
        );
    }
}

/// Returns the lines outside code blocks, numbered from 0.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter(move |(_, line)| match fence {
        Some(marks) => {
            if is_closing(line, marks) {
                fence = None;
            }
            false
        }
        None => {
            fence = opening(line).map(|it| it.0);
            fence.is_none()
        }
    })
}
