//! Messages, in the format that chat APIs have in common.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

/// A message. It is read and written in the format of OpenAI's chat API; unknown fields are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct Message {
    /// The role of its author.
    pub role: Role,
    /// Its text; other content is represented as `[image_url]` or similar.
    pub content: String,
    /// The tool calls of the model in it.
    pub calls: Vec<Call>,
    /// The id of the call whose result it is.
    pub call_id: Option<String>,
    /// The original parts of the content; if there are any, they are written instead of the text.
    pub parts: Vec<Json>,
    /// Unknown fields.
    pub rest: Map<String, Json>,
}

/// The role of the author of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Role {
    /// The host; `developer` is read as the same.
    System,
    /// A person.
    #[default]
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

/// A tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "CallWire", into = "CallWire")]
pub struct Call {
    /// The id that its result refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as JSON.
    pub arguments: String,
    /// Unknown fields.
    pub rest: Map<String, Json>,
}

impl Message {
    /// Creates a message from a text.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), ..Self::default() }
    }

    /// Returns the number of images and files in it.
    pub(super) fn attachments(&self) -> usize {
        self.parts.iter().filter(|it| it["type"] != "text").count()
    }
}

impl Role {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

impl TryFrom<String> for Role {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match word.as_str() {
            "system" | "developer" => Ok(Self::System),
            "user" => Ok(Self::User),
            "assistant" => Ok(Self::Assistant),
            "tool" => Ok(Self::Tool),
            _ => Err(format!(
                "unknown role `{word}`, expected `system`, `user`, `assistant` or `tool`"
            )),
        }
    }
}

impl From<Role> for &'static str {
    fn from(role: Role) -> Self {
        role.as_str()
    }
}

/// Returns the text of parts, one per line.
pub(super) fn text_of(parts: &[Json]) -> String {
    parts
        .iter()
        .map(|part: &Json| match part["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!("[{}]", part["type"].as_str().unwrap_or("part")),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "a message with `role` and `content`")]
struct Wire {
    role: Role,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<Call>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Json>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "`content` is neither a string, nor a list of parts, nor null")]
enum Content {
    Text(String),
    Parts(Vec<Json>),
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "a tool call with `id` and `function`")]
struct CallWire {
    #[serde(default)]
    id: String,
    #[serde(default = "function", rename = "type")]
    kind: String,
    function: Function,
    #[serde(flatten)]
    rest: Map<String, Json>,
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "a function with `name` and `arguments`")]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Json,
}

fn function() -> String {
    "function".to_owned()
}

impl From<Wire> for Message {
    fn from(wire: Wire) -> Self {
        let (content, parts) = match wire.content {
            None => (String::new(), Vec::new()),
            Some(Content::Text(text)) => (text, Vec::new()),
            Some(Content::Parts(parts)) => (text_of(&parts), parts),
        };
        Self {
            role: wire.role,
            content,
            calls: wire.tool_calls.unwrap_or_default(),
            call_id: wire.tool_call_id,
            parts,
            rest: wire.rest,
        }
    }
}

impl From<Message> for Wire {
    fn from(message: Message) -> Self {
        let content = if !message.parts.is_empty() {
            Some(Content::Parts(message.parts))
        } else if message.content.is_empty() && !message.calls.is_empty() {
            None
        } else {
            Some(Content::Text(message.content))
        };
        Self {
            role: message.role,
            content,
            tool_calls: (!message.calls.is_empty()).then_some(message.calls),
            tool_call_id: message.call_id,
            rest: message.rest,
        }
    }
}

impl From<CallWire> for Call {
    fn from(wire: CallWire) -> Self {
        // Some servers send the arguments as an object, most as a string.
        let arguments = match wire.function.arguments {
            Json::String(text) => text,
            Json::Null => "{}".to_owned(),
            other => other.to_string(),
        };
        Self { id: wire.id, name: wire.function.name, arguments, rest: wire.rest }
    }
}

impl From<Call> for CallWire {
    fn from(call: Call) -> Self {
        let function = Function { name: call.name, arguments: json!(call.arguments) };
        Self { id: call.id, kind: self::function(), function, rest: call.rest }
    }
}
