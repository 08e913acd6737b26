//! A tool of a server.

use std::{borrow::Cow, collections::BTreeSet, sync::atomic::Ordering};

use prowess::{escape_tags, visible};
use prowess_runtime::{
    Action, Outcome, OutcomeStatus, Tool, parameters::check_schema, tool::ToolFuture,
};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    cause::shorten,
    connection::{CallToolResult, ContentBlock, ResourceContents, ToolDescription},
    ending::explain_failure,
    failure::Failure,
    name,
    source::Source,
};
use crate::config::plain_name;

/// A tool of a server.
#[derive(Debug)]
pub(super) struct ServerTool {
    name: String,
    /// The server's description of it.
    description: String,
    /// A note on its origin, for a model.
    origin: String,
    schema: Value,
    /// The server's name of it.
    own_name: String,
    /// Its server.
    source: Source,
}

/// The maximum length of a tool's summary for a person.
const SUMMARY: usize = 200;
/// The maximum size of a tool's description and schema for a model, and of all schemas of a server.
const DESCRIPTION: usize = 2048;
const SCHEMA: usize = 16 * 1024;
const SCHEMAS: usize = 256 * 1024;
/// The maximum length of a server's error message, in one line.
const MESSAGE: usize = 2048;

/// Creates the tools that a server lists, and returns the reasons for omitted ones.
pub(super) fn tools(
    source: &Source,
    listed: Vec<ToolDescription>,
) -> (Vec<ServerTool>, Vec<String>) {
    let mut taken = BTreeSet::new();
    if source.skill.is_none() {
        // No tool of it can pose as the one that activates its skills.
        taken.insert(source.skill_tool());
    }
    let mut room = SCHEMAS;
    let (mut tools, mut left_out) = (Vec::new(), Vec::new());
    for listed in listed {
        let name = shorten(&listed.name, 64);
        match ServerTool::new(source, listed, &mut room, &mut taken) {
            Ok(tool) => tools.push(tool),
            Err(why) => left_out.push(format!("its tool `{name}` is left out: {why}")),
        }
    }
    (tools, left_out)
}

impl ServerTool {
    fn new(
        source: &Source,
        listed: ToolDescription,
        room: &mut usize,
        taken: &mut BTreeSet<String>,
    ) -> Result<Self, String> {
        if plain_name(&listed.name).is_empty() {
            return Err("its name has no letters or digits".to_owned());
        }
        let mut schema = Map::clone(&listed.input_schema);
        schema.entry("type").or_insert_with(|| json!("object"));
        let mut schema = Value::Object(schema);
        rewrite_strings(
            &mut schema,
            |key| matches!(key, "description" | "title" | "$comment"),
            sanitize,
        );
        let size = schema.to_string().len();
        if size > SCHEMA.min(*room) {
            return Err(format!("its schema is too large ({size} bytes)"));
        }
        check_schema(&schema).map_err(|error| error.to_string())?;
        *room -= size;
        let Source { server, skill, prefix, .. } = source;
        let description =
            listed.description.as_deref().or(listed.title.as_deref()).unwrap_or_default();
        let by = skill.as_ref().map(|it| format!(", which the skill `{it}` brought"));
        Ok(Self {
            name: name::tool(prefix, &listed.name, taken),
            description: shorten(&sanitize(description), DESCRIPTION).trim().to_owned(),
            origin: format!("(A tool of the server `{server}`{}.)", by.unwrap_or_default()),
            schema,
            own_name: listed.name.into_owned(),
            source: source.clone(),
        })
    }

    async fn ask(&self, input: Value) -> Outcome {
        let Source { server, caller, process, patience, .. } = &self.source;
        let input = match input {
            Value::Object(input) => input,
            _ => Map::new(),
        };
        self.source.was_called.store(true, Ordering::Relaxed);
        let before = process.as_ref().map_or(0, |it| it.permissions.refusals());
        let helped = |mut outcome: Outcome| {
            let message = outcome.message.as_deref().filter(|_| !outcome.is_ok());
            let hint = process.as_ref().zip(message);
            let hint = hint.and_then(|(it, message)| it.permissions.hint(message, before));
            outcome.hint = outcome.hint.or(hint);
            outcome
        };
        match timeout(*patience, caller.call(&self.own_name, input)).await {
            Ok(Ok(result)) => helped(outcome(result)),
            Ok(Err(Failure::Error(message))) => {
                helped(Outcome::bad(OutcomeStatus::Failed, shorten(&visible(&message), MESSAGE)))
            }
            Ok(Err(failure)) => explain_failure(server, failure, process.as_ref()).await,
            Err(_) => {
                let message = format!(
                    "the server `{server}` did not answer for {} s",
                    patience.as_secs_f64()
                );
                helped(Outcome::bad(OutcomeStatus::TimedOut, message))
            }
        }
    }
}

impl Tool for ServerTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> Cow<'_, str> {
        let Self { description, origin, .. } = self;
        Cow::Owned(format!("{description}\n\n{origin}").trim_start().to_owned())
    }

    fn summary(&self) -> String {
        let line =
            self.description.lines().map(str::trim).find(|it| !it.is_empty()).unwrap_or_default();
        let sentence = line.find(". ").map_or(line, |end| &line[..=end]);
        shorten(sentence, SUMMARY)
    }

    fn input_schema(&self) -> Value {
        self.schema.clone()
    }

    fn action(&self, _: &Value) -> Result<Action, Box<Outcome>> {
        let Source { server, skill, .. } = &self.source;
        Ok(Action::Serve {
            server: server.clone(),
            skill: skill.clone(),
            tool: self.own_name.clone(),
        })
    }

    fn perform<'a>(&'a self, _: Action, input: Value) -> ToolFuture<'a> {
        Box::pin(self.ask(input))
    }
}

/// Creates the outcome of a call: its text, or the structured content if that has more.
fn outcome(result: CallToolResult) -> Outcome {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let text = content.iter().map(format_content).collect::<Vec<_>>().join("\n");
    let text = visible(&text).into_owned();
    let mut structured = structured_content.filter(|it| !it.is_null());
    structured
        .iter_mut()
        .for_each(|it| rewrite_strings(it, |_| true, |it| visible(it).into_owned()));
    if is_error == Some(true) {
        let message = if text.is_empty() { "the tool failed without a message" } else { &text };
        let mut outcome = Outcome::bad(OutcomeStatus::Failed, shorten(message, MESSAGE));
        outcome.output = structured;
        return outcome;
    }
    Outcome::ok(match structured {
        None => Value::String(text),
        Some(structured) if text.is_empty() => structured,
        Some(structured) if is_same_content(&text, &structured) => Value::String(text),
        Some(structured) => json!({"text": text, "structured": structured}),
    })
}

/// Whether a text is the same as a structured value, as servers send it for clients that only
/// support text. Anything but an object is wrapped as `result`.
fn is_same_content(text: &str, structured: &Value) -> bool {
    let read: Option<Value> = serde_json::from_str(text).ok();
    let only = structured.as_object().filter(|it| it.len() == 1).and_then(|it| it.get("result"));
    let mut values = [structured].into_iter().chain(only);
    values.any(|it| it.as_str() == Some(text) || read.as_ref() == Some(it))
}

/// Formats a part of an answer for a model; other parts than text are only mentioned.
fn format_content(content: &ContentBlock) -> String {
    let (kind, name, data) = match content {
        ContentBlock::Text(it) => return it.text.clone(),
        ContentBlock::Image(it) => ("image", &it.mime_type, &it.data),
        ContentBlock::Audio(it) => ("audio", &it.mime_type, &it.data),
        ContentBlock::Resource(it) => match &it.resource {
            ResourceContents::TextResourceContents { text, .. } => return text.clone(),
            ResourceContents::BlobResourceContents { uri, blob, .. } => ("resource", uri, blob),
            _ => return "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(it) => return format!("[resource {}]", it.uri),
        _ => return "[something else]".to_owned(),
    };
    format!("[{kind} {name}, {} bytes]", data.len() / 4 * 3)
}

/// Sanitizes a text of a server for a model.
fn sanitize(text: &str) -> String {
    escape_tags(&visible(text)).into_owned()
}

/// Rewrites the strings of a value below certain keys, at any depth.
fn rewrite_strings(value: &mut Value, is_meant: fn(&str) -> bool, rewrite: fn(&str) -> String) {
    match value {
        Value::Array(values) => {
            values.iter_mut().for_each(|it| rewrite_strings(it, is_meant, rewrite));
        }
        Value::Object(values) => {
            for (key, value) in values {
                match value {
                    Value::String(text) if is_meant(key) => *text = rewrite(text),
                    value => rewrite_strings(value, is_meant, rewrite),
                }
            }
        }
        Value::String(text) if is_meant("") => *text = rewrite(text),
        _ => {}
    }
}
