//! The rules about the fields of a frontmatter.

use prowess_frontmatter::{Field, Kind, Style, Value};

use super::{
    guidance::{is_in_brackets, is_template_text},
    hidden, name,
};
use crate::{
    finding::{
        Position, Report,
        rule::{self, Profile},
    },
    read::{
        manifest::{AllowedTools, Manifest},
        manifest_field::{FieldSupport, manifest_field},
        name::is_plain_name,
        parse::{SPELLINGS, SplitDocument, canonical},
    },
    spec::{MAX_COMPATIBILITY, MAX_DESCRIPTION},
};

/// The fields of the specification that are not in the table of [`manifest_field`].
const SPECIFIED: &[&str] = &["name", "description", "metadata", "allowed-tools"];

/// Client-specific fields, and the clients that read them: those of `Dialect`.
const VENDOR: &[(&str, &str)] = &[
    ("agent", "Claude Code"),
    ("argument-hint", "Claude Code and VS Code"),
    ("context", "Claude Code and VS Code"),
    ("disable-model-invocation", "Claude Code, Cursor, VS Code, OpenHands, OpenClaw and pi"),
    ("effort", "Claude Code"),
    ("hooks", "Claude Code"),
    ("model", "Claude Code"),
    ("paths", "Claude Code, Cursor and OpenHands"),
    ("requires", "OpenClaw and sisu"),
    ("triggers", "OpenHands"),
    ("user-invocable", "Claude Code, VS Code and OpenClaw"),
    ("when_to_use", "Claude Code"),
];

/// The shortest length to which a client truncates a description in its list.
const SHORTEST_LIST: usize = 250;

/// Returns the support for a key.
pub(crate) fn support_for(key: &str) -> FieldSupport {
    if SPECIFIED.contains(&key) {
        return FieldSupport::Specified;
    }
    // The spellings of fields that only Prowess reads are all fine.
    let own = manifest_field(canonical(key))
        .filter(|it| it.key == key || it.support == FieldSupport::Movable);
    if let Some(own) = own {
        return own.support;
    }
    let vendor = VENDOR.iter().find(|it| it.0 == key).map(|it| FieldSupport::Vendor(it.1));
    vendor
        .or_else(|| SPELLINGS.iter().find(|it| it.0 == key).map(|it| FieldSupport::Misspelt(it.1)))
        .unwrap_or(FieldSupport::Unknown)
}

/// Applies the rules that a library checks for every skill it loads: those about its name and
/// length.
pub(crate) fn check_at_load(reading: &SplitDocument<'_>, manifest: &Manifest, report: &mut Report) {
    let at = |key: &str| {
        let field = reading.fields.iter().flatten().find(|it| it.key == key);
        field.map_or(Position::FILE, |it| reading.at(it))
    };
    if !is_plain_name(&manifest.name) {
        name::check(&manifest.name, None, at("name"), report);
    }
    if manifest.description.len() > MAX_DESCRIPTION {
        check_description(&manifest.description, at("description"), report);
    }
    hidden::check_text(&manifest.description, || at("description"), report);
}

/// Applies every rule about fields; `folder` is the name of the folder if it is known.
pub(crate) fn check_fields(
    reading: &SplitDocument<'_>,
    manifest: Option<&Manifest>,
    folder: Option<&str>,
    report: &mut Report,
) {
    let Some(fields) = reading.fields.as_deref() else { return };
    check_unknown(reading, fields, report);
    for (number, field) in fields.iter().enumerate() {
        // Of two fields with the same key the first is used.
        if fields[..number].iter().any(|it| it.key == field.key) {
            continue;
        }
        let at = reading.at(field);
        match &*field.key {
            "name" => {
                // A name with control characters has already caused the skill to be rejected.
                if let Some(text) = text_of(field).filter(|it| !it.contains(char::is_control)) {
                    if text.trim() != text && report.profile != Profile::Reference {
                        report.note(
                            &rule::NAME_CHARACTERS,
                            at,
                            || "the name has spaces around it".to_owned(),
                            "remove them",
                        );
                    }
                    name::check(text.trim(), folder, at, report);
                }
                check_comment(reading, field, report);
            }
            "description" => {
                if let Some(text) = text_of(field) {
                    check_description(text.trim(), at, report);
                }
                check_comment(reading, field, report);
            }
            "when_to_use" => check_comment(reading, field, report),
            "compatibility" => check_compatibility(&field.value, at, report),
            "license" if matches!(field.value, Value::List(_) | Value::Map(_)) => {
                report.note(
                    &rule::LICENSE_NOT_TEXT,
                    at,
                    || "`license` is not text".to_owned(),
                    "name the license, such as `MIT`",
                );
            }
            "metadata" => check_metadata(reading, field, report),
            "allowed-tools" => allowed_tools(&field.value, at, report),
            _ => {}
        }
    }
    if let Some(manifest) = manifest {
        check_placeholder(manifest, reading, fields, report);
    }
}

fn text_of<'f>(field: &'f Field<'_>) -> Option<&'f str> {
    if field.value.is_null() {
        None
    } else {
        field.value.as_text().filter(|it| !it.trim().is_empty())
    }
}

fn check_unknown(reading: &SplitDocument<'_>, fields: &[Field<'_>], report: &mut Report) {
    let mut others: Vec<&Field<'_>> = Vec::new();
    for field in fields {
        let known = support_for(&field.key) == FieldSupport::Specified
            || others.iter().any(|it| it.key == field.key);
        if !known {
            others.push(field);
        }
    }
    if report.profile == Profile::Reference {
        let Some(first) = others.first() else { return };
        let mut names: Vec<&str> = others.iter().map(|it| &*it.key).collect();
        names.sort_unstable();
        names.dedup();
        report.note(
            &rule::UNKNOWN_FIELD,
            Position::line(reading.line(first)),
            || format!("fields that are not in the specification: {}", names.join(", ")),
            "move them under `metadata`",
        );
        return;
    }
    for field in others {
        let (at, key) = (Position::line(reading.line(field)), &field.key);
        match support_for(key) {
            FieldSupport::Specified => {}
            FieldSupport::Misspelt(right) => report.note(
                &rule::UNKNOWN_FIELD,
                at,
                || format!("`{key}` is a misspelling of `{right}`"),
                "correct it: most clients read only that spelling",
            ),
            FieldSupport::Vendor(clients) => report.note(
                &rule::VENDOR_FIELD,
                at,
                || {
                    format!(
                        "`{key}` is read by {clients}; others ignore it, and the reference validator rejects it"
                    )
                },
                "keep it if the skill is for those clients",
            ),
            FieldSupport::Movable => report.note(
                &rule::UNKNOWN_FIELD,
                at,
                || {
                    format!(
                        "`{key}` is not a field of the specification, and the reference validator rejects the skill"
                    )
                },
                "move it under `metadata`, where Prowess also reads it",
            ),
            FieldSupport::Unknown => report.note(
                &rule::UNKNOWN_FIELD,
                at,
                || format!("`{key}` is not a field of the specification"),
                match field.value {
                    Value::List(_) | Value::Map(_) => "move it under `metadata`, as a string",
                    Value::Scalar(_) | Value::Empty => "move it under `metadata`",
                },
            ),
        }
    }
}

fn check_description(text: &str, at: Position, report: &mut Report) {
    let length = text.chars().count();
    if length > MAX_DESCRIPTION {
        report.note(
            &rule::DESCRIPTION_TOO_LONG,
            at,
            || format!("the description has {length} characters, more than {MAX_DESCRIPTION}"),
            "say what it does and when to use it; move the rest to the instructions",
        );
    } else if length > SHORTEST_LIST {
        report.note(&rule::DESCRIPTION_CUT, at, || {
            format!(
                "the description has {length} characters; some clients list only the first {SHORTEST_LIST}"
            )
        }, "put the most important part first");
    }
    if text.contains(['<', '>']) {
        report.note(
            &rule::DESCRIPTION_BRACKETS,
            at,
            || {
                "the description has angle brackets, which the Claude API does not accept"
                    .to_owned()
            },
            "write it without them",
        );
    }
}

fn check_compatibility(value: &Value<'_>, at: Position, report: &mut Report) {
    let hint = "describe what the skill needs in 1 to 500 characters, or remove the field";
    let message = match value {
        Value::List(_) | Value::Map(_) => "`compatibility` is not text".to_owned(),
        Value::Empty | Value::Scalar(_) => {
            let length = value
                .as_text()
                .filter(|_| !value.is_null())
                .map_or(0, |it| it.trim().chars().count());
            match length {
                1..=MAX_COMPATIBILITY => return,
                // The reference library accepts an empty one.
                0 if report.profile == Profile::Reference => return,
                0 => "`compatibility` is empty".to_owned(),
                _ => format!(
                    "`compatibility` has {length} characters, more than {MAX_COMPATIBILITY}"
                ),
            }
        }
    };
    report.note(&rule::COMPATIBILITY, at, || message, hint);
}

fn check_metadata(reading: &SplitDocument<'_>, field: &Field<'_>, report: &mut Report) {
    let Value::Map(fields) = &field.value else { return };
    for nested in fields {
        let at = Position::line(reading.line(nested));
        match &nested.value {
            Value::List(_) | Value::Map(_) => report.note(
                &rule::METADATA_NESTED,
                at,
                || {
                    format!(
                        "the value of `metadata.{}` is not text; some clients then drop the skill",
                        nested.key
                    )
                },
                "write it as a quoted string",
            ),
            Value::Scalar(scalar) if !matches!(scalar.kind(), Kind::Text | Kind::Null) => report
                .note(
                    &rule::SCALAR_NOT_TEXT,
                    at,
                    || {
                        format!(
                            "not every reader treats the value of `metadata.{}` as text: `{}`",
                            nested.key, scalar.text
                        )
                    },
                    "put it in quotes",
                ),
            Value::Scalar(_) | Value::Empty => {}
        }
    }
}

fn allowed_tools(value: &Value<'_>, at: Position, report: &mut Report) {
    let hint = "write one string with spaces between the tools, such as `allowed-tools: Read Grep`";
    let message = match value {
        Value::List(_) => "`allowed-tools` is a list; the specification requires a string",
        Value::Scalar(scalar) if !is_spaced(&scalar.text) => {
            "`allowed-tools` has commas; the specification allows only spaces"
        }
        _ => return,
    };
    report.note(&rule::ALLOWED_TOOLS_FORM, at, || message.to_owned(), hint);
}

/// Whether the tools of a text are separated by spaces only.
fn is_spaced(text: &str) -> bool {
    let tools = AllowedTools::from_text(text).0.join(" ");
    tools.split_whitespace().eq(text.split_whitespace())
}

/// Reports a comment after a plain value, which is often meant as part of it.
fn check_comment(reading: &SplitDocument<'_>, field: &Field<'_>, report: &mut Report) {
    let Value::Scalar(scalar) = &field.value else { return };
    let Some(block) = reading.document.frontmatter else { return };
    if scalar.style != Style::Plain || field.span.is_empty() {
        return;
    }
    let behind = block.text.get(field.span.end..).unwrap_or("").lines().next().unwrap_or("");
    if behind.trim_start().starts_with('#') {
        report.note(
            &rule::COMMENT_CUT,
            reading.at(field),
            || {
                format!(
                    "the value of `{}` ends before `{}`, which YAML takes for a comment",
                    field.key,
                    behind.trim()
                )
            },
            "put the whole value in quotes",
        );
    }
}

/// Reports text that a template left for the author to fill in.
fn check_placeholder(
    manifest: &Manifest,
    reading: &SplitDocument<'_>,
    fields: &[Field<'_>],
    report: &mut Report,
) {
    for (key, text) in [("name", &manifest.name), ("description", &manifest.description)] {
        let is_unfilled = match key {
            "description" => is_template_text(text),
            _ => is_in_brackets(text) || text.starts_with("TODO"),
        };
        let field = fields.iter().find(|it| it.key == key).filter(|_| is_unfilled);
        if let Some(field) = field {
            report.note(
                &rule::PLACEHOLDER,
                reading.at(field),
                || format!("`{key}` still has template text"),
                "fill it in",
            );
        }
    }
}
