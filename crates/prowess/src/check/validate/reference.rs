//! YAML that the reference library `skills-ref` nevertheless rejects.
//!
//! It splits a text at the first two `---`, wherever they are, and parses the part between them
//! with StrictYAML: no flow style, no tabs between tokens, the same indentation for sibling maps.

use std::ops::Range;

use prowess_frontmatter::{Block, Field, Style, Value};

use super::is_repaired;
use crate::{
    finding::{
        Position, Report,
        rule::{self, Profile},
    },
    read::parse::{DecodedText, Encoding, SplitDocument, yaml_map},
};

const DASHES: &str = "---";

/// Reports why the reference library would reject a text; returns whether it would.
pub(super) fn check(
    decoded: &DecodedText<'_>,
    reading: &SplitDocument<'_>,
    report: &mut Report,
) -> bool {
    let Some(block) = reading.document.frontmatter else { return true };
    if report.profile == Profile::Reference {
        if decoded.encoding != Encoding::Utf8 || decoded.invalid.is_some() {
            return true;
        }
        if check_delimiters(&decoded.text, block, report) {
            return true;
        }
    }
    let Some(fields) = reading.fields.as_deref().filter(|_| !is_repaired(report)) else {
        return true;
    };
    let found = find_rejected_yaml(block.text, fields, report.profile).or_else(|| {
        find_tab(block.text, fields).map(|at| (at, "there is a tab between the values"))
    });
    let Some((at, what)) = found else { return false };
    let line = block.line + block.text[..at].matches('\n').count();
    report.note(
        &rule::YAML_STRICT,
        Position::line(line),
        || format!("{what}, which the reference validator rejects"),
        "write text on one line, and lists and maps with one value per line",
    );
    true
}

/// Whether the delimiters differ from those that the reference library looks for.
fn check_delimiters(text: &str, block: Block<'_>, report: &mut Report) -> bool {
    let hint = "write `---` alone on its line, the first one in line 1";
    let opening = text.get(..block.start).unwrap_or_default();
    let Some(rest) = text.strip_prefix(DASHES).filter(|_| !opening.contains('\t')) else {
        let message = "the file does not begin with a line `---`";
        report.note(&rule::FRONTMATTER_DELIMITER, Position::line(1), || message.to_owned(), hint);
        return true;
    };
    let end = block.start + block.text.len();
    let closing = rest.find(DASHES).map(|it| it + DASHES.len());
    // Blanks may precede the closing one.
    let Some(closing) =
        closing.filter(|it| text.get(end..*it).is_none_or(|it| it.trim().is_empty()))
    else {
        let line = block.line + block.text.matches('\n').count();
        let message = "the frontmatter is not closed by `---`";
        report.note(
            &rule::FRONTMATTER_DELIMITER,
            Position::line(line),
            || message.to_owned(),
            hint,
        );
        return true;
    };
    if closing >= end {
        return false;
    }
    // Dashes within a value end the frontmatter.
    let read = yaml_map(&text[DASHES.len()..closing]).unwrap_or_default();
    if ["name", "description"]
        .iter()
        .all(|key| read.iter().any(|it| it.key == *key && !it.value.is_null()))
    {
        return false;
    }
    let line = 1 + text[..closing].matches('\n').count();
    let message =
        "the reference validator takes the `---` in this line for the end of the frontmatter";
    report.note(
        &rule::YAML_STRICT,
        Position::line(line),
        || message.to_owned(),
        "avoid `---` inside values",
    );
    true
}

/// Returns the first thing that StrictYAML rejects, and its position.
fn find_rejected_yaml(
    text: &str,
    fields: &[Field<'_>],
    profile: Profile,
) -> Option<(usize, &'static str)> {
    let mut column = None;
    for field in fields {
        // In other profiles, all other fields have rules of their own for such values.
        let is_ignored = profile != Profile::Reference && field.key != "metadata";
        if field.key_span.is_empty() || is_ignored {
            continue;
        }
        let written = text.get(field.span.clone()).unwrap_or_default();
        let start = field.key_span.start;
        let found = match &field.value {
            Value::List(_) | Value::Map(_) if written.starts_with(['[', '{']) => {
                Some((start, "the value is in brackets (flow style)"))
            }
            Value::Map(inner) => {
                let indent = inner.first().map(|it| {
                    let before = &text[..it.key_span.start];
                    before.len() - before.rfind('\n').map_or(0, |it| it + 1)
                });
                if indent.is_some() && column.is_some() && indent != column {
                    return Some((start, "the map is indented differently from the one before it"));
                }
                column = column.or(indent);
                find_rejected_yaml(text, inner, Profile::Reference)
            }
            Value::List(items) => in_list(text, written, start, items),
            Value::Scalar(_) | Value::Empty => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn in_list(
    text: &str,
    written: &str,
    start: usize,
    items: &[Value<'_>],
) -> Option<(usize, &'static str)> {
    if items.iter().any(|it| matches!(it, Value::List(_) | Value::Map(_)))
        && written.lines().any(|line: &str| {
            let item = line.trim_start_matches([' ', '-']);
            line.trim_start().starts_with('-') && item.starts_with(['[', '{'])
        })
    {
        return Some((start, "an item is in brackets (flow style)"));
    }
    items.iter().find_map(|it| match it {
        Value::Map(fields) => find_rejected_yaml(text, fields, Profile::Reference),
        _ => None,
    })
}

/// Returns the first tab that is neither in a quoted or block scalar nor in a comment.
fn find_tab(text: &str, fields: &[Field<'_>]) -> Option<usize> {
    let mut free = Vec::new();
    collect_literal_ranges(fields, &mut free);
    text.match_indices('\t').map(|it| it.0).find(|at| {
        let line = &text[text[..*at].rfind('\n').map_or(0, |it| it + 1)..*at];
        let is_comment = line.trim_start().starts_with('#') || line.contains(" #");
        !is_comment && !free.iter().any(|it| it.contains(at))
    })
}

/// Collects the ranges in which characters are literal.
fn collect_literal_ranges(fields: &[Field<'_>], spans: &mut Vec<Range<usize>>) {
    for field in fields {
        match &field.value {
            Value::Scalar(it) if it.style != Style::Plain => spans.push(field.span.clone()),
            Value::Map(inner) => collect_literal_ranges(inner, spans),
            Value::List(items) => {
                if items
                    .iter()
                    .any(|it| matches!(it, Value::Scalar(it) if it.style != Style::Plain))
                {
                    spans.push(field.span.clone());
                }
            }
            Value::Scalar(_) | Value::Empty => {}
        }
    }
}
