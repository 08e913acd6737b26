//! Renders a manifest and a body as a `SKILL.md`.

use std::fmt::Write as _;

use prowess_frontmatter::{Field, Scalar, Style, Value, write};
use serde_json::{Value as Json, json};

use crate::read::{
    definition::Definition,
    manifest::{Dialect, Manifest, Status, Type},
    manifest_field::{Content, FIELDS},
    parse::{canonical, is_own},
};

/// Renders a `SKILL.md`. Parsing the result and rendering it again gives the same bytes.
pub fn render(manifest: &Manifest, instructions: &str) -> String {
    let mut text = String::from("---\n");
    text.push_str(&write(&fields(manifest)));
    text.push_str("---\n");
    text.push_str(&body_text(instructions));
    text
}

/// Returns the text after the closing delimiter: a blank line and the instructions, if any.
pub(crate) fn body_text(instructions: &str) -> String {
    let instructions = instructions.trim_start_matches(['\n', '\r']);
    let end = if instructions.ends_with('\n') { "" } else { "\n" };
    if instructions.is_empty() { String::new() } else { format!("\n{instructions}{end}") }
}

/// Renders the body of a skill from its definition: code blocks for execution, plain text for a
/// model.
pub fn render_definition(definition: &Definition, parameters: Option<&Json>) -> String {
    let mut body = String::new();
    match definition {
        Definition::Instruction { content } => return content.clone(),
        Definition::Script { script } => block(&mut body, "sh", script),
        Definition::Template { template } => block(&mut body, "template", template),
        Definition::Composite { steps } => {
            for (number, step) in steps.iter().enumerate() {
                let _ = writeln!(body, "### Step {}\n", number + 1);
                block(
                    &mut body,
                    "json",
                    &to_pretty_json(&json!({ "tool": step.tool, "params": step.params })),
                );
                body.push('\n');
            }
            body.truncate(body.trim_end().len());
            body.push('\n');
        }
    }
    if let Some(parameters) = parameters {
        body.push_str("\n## Parameters\n\n");
        block(&mut body, "json", &to_pretty_json(parameters));
    }
    body
}

fn to_pretty_json(json: &Json) -> String {
    serde_json::to_string_pretty(json).expect("a JSON value can always be written")
}

/// Appends a code block whose fence is longer than any inside it.
fn block(body: &mut String, language: &str, text: &str) {
    let longest = text
        .lines()
        .map(|it| it.trim_start().len() - it.trim_start().trim_start_matches('`').len())
        .max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let _ = writeln!(body, "{fence}{language}\n{text}{end}{fence}");
}

/// Returns the fields of a manifest, in the order in which they are written.
pub(crate) fn fields(manifest: &Manifest) -> Vec<Field<'_>> {
    let mut out = Fields(Vec::new());
    out.text("name", Some(&manifest.name));
    out.text("description", Some(&manifest.description));
    let (mut nested, at_top) = own_fields(manifest);
    out.0.extend(at_top);
    for field in FIELDS.iter().filter(|it| !it.is_in_metadata()) {
        if let Content::Text { get, .. } = field.content {
            out.text(field.key, get(manifest));
        }
    }
    match manifest.allowed_tools.to_text() {
        Some(tools) if tools.is_empty() => {}
        Some(tools) => out.put("allowed-tools", text_value(tools)),
        None => out.list("allowed-tools", &manifest.allowed_tools.0),
    }
    nested.extend(manifest.metadata.iter().cloned());
    if !nested.is_empty() {
        out.put("metadata", Value::Map(nested));
    }
    let Dialect {
        disable_model_invocation,
        user_invocable,
        argument_hint,
        when_to_use,
        paths,
        context,
        agent,
        model,
        effort,
        hooks,
        requires,
        triggers,
    } = manifest.dialect();
    out.bool("disable-model-invocation", *disable_model_invocation);
    out.bool("user-invocable", *user_invocable);
    out.text("argument-hint", argument_hint.as_deref());
    out.text("when_to_use", when_to_use.as_deref());
    out.list("paths", paths);
    out.text("context", context.as_deref());
    out.text("agent", agent.as_deref());
    out.text("model", model.as_deref());
    out.text("effort", effort.as_deref());
    if let Some(hooks) = hooks {
        out.put("hooks", hooks.clone());
    }
    out.list("requires", requires);
    out.list("triggers", triggers);
    out.0.extend(manifest.unknown.iter().cloned());
    out.0
}

/// Returns the fields that the specification does not define: those written under `metadata`, and
/// those that must be at the top level because the author uses the key there for something else.
fn own_fields(manifest: &Manifest) -> (Vec<Field<'_>>, Vec<Field<'_>>) {
    let noted = |key: &str| manifest.metadata.iter().find(|it| canonical(&it.key) == key);
    let mut own = Fields(Vec::new());
    let are_plain = manifest
        .tags
        .iter()
        .all(|it| it.trim() == &**it && !it.is_empty() && !it.contains([',', '\n']));
    for field in FIELDS.iter().filter(|it| it.is_in_metadata()) {
        let key = field.key;
        // If the top level has no such field, the one under `metadata` would count.
        let is_noted = || noted(key).is_some_and(is_own);
        match field.content {
            Content::Text { get, .. } => own.text(key, get(manifest)),
            Content::Type if manifest.kind != Type::default() || is_noted() => {
                own.text(key, Some(manifest.kind.as_str()));
            }
            Content::Status if manifest.status() != Status::default() || is_noted() => {
                own.text(key, Some(manifest.status().as_str()));
            }
            Content::Tags if are_plain && !manifest.tags.is_empty() && noted(key).is_none() => {
                own.put(key, text_value(manifest.tags.join(", ")));
            }
            Content::RequiresApproval => {
                own.text(key, manifest.requires_approval.then_some("true"));
            }
            Content::Type | Content::Status | Content::Tags => {}
        }
    }
    let (mut at_top, nested): (Vec<_>, Vec<_>) =
        own.0.into_iter().partition(|it| noted(&it.key).is_some());
    if !are_plain || noted("tags").is_some() {
        let mut tags = Fields(Vec::new());
        tags.list("tags", &manifest.tags);
        at_top.extend(tags.0);
    }
    (nested, at_top)
}

struct Fields<'m>(Vec<Field<'m>>);

impl<'m> Fields<'m> {
    fn put(&mut self, key: &'static str, value: Value<'m>) {
        self.0.push(Field::new(key, value));
    }

    fn text(&mut self, key: &'static str, value: Option<&'m str>) {
        if let Some(value) = value {
            self.put(key, Value::from(value));
        }
    }

    fn list(&mut self, key: &'static str, values: &'m [Box<str>]) {
        if !values.is_empty() {
            self.put(key, Value::List(values.iter().map(|it| Value::from(&**it)).collect()));
        }
    }

    fn bool(&mut self, key: &'static str, value: Option<bool>) {
        if let Some(value) = value {
            let word = if value { "true" } else { "false" };
            self.put(key, Value::Scalar(Scalar { text: word.into(), style: Style::Plain }));
        }
    }
}

fn text_value(text: String) -> Value<'static> {
    Value::Scalar(Scalar { text: text.into(), style: Style::Quoted })
}
