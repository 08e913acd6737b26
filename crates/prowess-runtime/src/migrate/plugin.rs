//! What a plugin says about itself. What is of another type than expected is passed over, and told.

use serde_json::{Map, Value as Json};

use super::{
    Lost,
    calls::{Piece, pieces},
};
use crate::{schema::Schema, store::Files};

/// A plugin, as its manifest describes it.
#[derive(Debug, Default)]
pub(super) struct Plugin {
    pub(super) name: Option<String>,
    pub(super) display_name: Option<String>,
    description: Option<String>,
    pub(super) version: Option<String>,
    pub(super) author: Option<String>,
    pub(super) license: Option<String>,
    pub(super) tags: Vec<String>,
    /// When its host ran it.
    kind: Option<String>,
    /// The program that its host loaded.
    pub(super) main: Option<String>,
    /// How its host started it.
    pub(super) command: Option<String>,
    /// How its host talked to it.
    pub(super) protocol: Option<String>,
    pub(super) timeout: Option<u64>,
    pub(super) settings: Vec<Parameter>,
    pub(super) commands: Vec<Command>,
    needs: Vec<String>,
    lost: Vec<Lost>,
}

/// Something that a model could ask a plugin for.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) example: String,
    pub(super) parameters: Vec<Parameter>,
    /// All that is said of them, where that is a JSON schema.
    pub(super) schema: Option<Json>,
}

/// Something that a command or the plugin itself was given.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) required: bool,
    pub(super) description: String,
    pub(super) default: Option<String>,
}

impl Plugin {
    /// Reads a `plugin-manifest.json`.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let mut plugin = Self::default();
        for (key, value) in serde_json::from_slice::<Map<String, Json>>(bytes)? {
            plugin.take(&key, &value);
        }
        Ok(plugin)
    }

    fn take(&mut self, key: &str, value: &Json) {
        match key {
            "manifestVersion" => {}
            "name" => self.name = self.told(key, value),
            "displayName" => self.display_name = self.told(key, value),
            "description" => self.description = self.told(key, value),
            "version" => self.version = self.told(key, value),
            "author" => {
                let named = value.get("name").unwrap_or(value);
                self.author = self.told(key, named);
            }
            "license" => self.license = self.told(key, value),
            "tags" | "keywords" | "categories" => self.tags.extend(texts(value)),
            "category" => self.tags.extend(text(value)),
            "pluginType" => self.kind = text(value),
            "entryPoint" => {
                let part = |key| value.get(key).and_then(text);
                let script = part("script").filter(|it| {
                    part("command").is_none_or(|command| !command.contains(it.as_str()))
                });
                let words: Vec<String> = part("command").into_iter().chain(script).collect();
                self.command = Some(words.join(" ")).filter(|it| !it.is_empty());
            }
            "communication" => {
                self.protocol = value.get("protocol").and_then(text);
                self.timeout = value.get("timeout").and_then(Json::as_u64);
            }
            "main" => self.main = self.told(key, value),
            "tools" => self.take_tools(value),
            "permissions" => {
                let named = value.as_object().into_iter().flatten().map(|it| it.0.clone());
                let names: Vec<String> = text(value).into_iter().chain(texts(value)).collect();
                for name in names.into_iter().chain(named) {
                    self.lose(
                        format!("the permission `{name}`"),
                        "what a skill may do is said by the policy of whoever runs it",
                    );
                }
            }
            "configSchema" => self.settings = properties(value),
            "capabilities" => self.take_capabilities(value),
            "dependencies" => self.needs = needs(value),
            key => self.lose(format!("`{key}`"), "nothing here knows what it means"),
        }
    }

    /// Tools in a list, or by their names.
    fn take_tools(&mut self, value: &Json) {
        let listed = value.as_array().into_iter().flatten().map(|it| (None, it));
        let keyed = value.as_object().into_iter().flatten().map(|it| (Some(it.0), it.1));
        for (name, value) in listed.chain(keyed) {
            let inner = value.get("function").filter(|it| it.is_object()).unwrap_or(value);
            let other = || name.cloned().or_else(|| text(value)).map(|it| named(it, inner));
            match command(inner).or_else(other) {
                Some(command) => self.commands.push(command),
                None => self.lose("a tool".to_owned(), "it has no name"),
            }
        }
        if !value.is_array() && !value.is_object() {
            self.lose("`tools`".to_owned(), "it is no list");
        }
    }

    fn take_capabilities(&mut self, value: &Json) {
        for (key, value) in value.as_object().into_iter().flatten() {
            match key.as_str() {
                "invocationCommands" => {
                    for value in value.as_array().into_iter().flatten() {
                        match command(value) {
                            Some(command) => self.commands.push(command),
                            None => self.lose("a command".to_owned(), "it has no name"),
                        }
                    }
                }
                "systemPromptPlaceholders" => {
                    for it in value.as_array().into_iter().flatten() {
                        let name = it.get("placeholder").and_then(text).or_else(|| text(it));
                        let name = name.unwrap_or_else(|| it.to_string());
                        self.lose(
                            format!("the placeholder `{name}`"),
                            "a skill puts nothing into other prompts",
                        );
                    }
                }
                key => {
                    self.lose(format!("`capabilities.{key}`"), "nothing here knows what it means");
                }
            }
        }
    }

    /// A text, or word that there is none.
    fn told(&mut self, key: &str, value: &Json) -> Option<String> {
        let text = text(value);
        if text.is_none() && !value.is_null() {
            self.lose(format!("`{key}`"), "it is not a text");
        }
        text
    }

    fn lose(&mut self, what: String, why: &str) {
        self.lost.push(Lost { what, why: why.to_owned() });
    }

    /// What it is for: what it says, else what its commands say.
    pub(super) fn description(&self) -> String {
        let own = self.description.as_deref().filter(|it| !it.trim().is_empty());
        let commands = || {
            let first = self.commands.iter().map(|it| it.description.lines().next().unwrap_or(""));
            Some(first.collect::<Vec<_>>().join(" ")).filter(|it| !it.trim().is_empty())
        };
        let title = || self.display_name.clone().or_else(|| self.name.clone());
        own.map(str::to_owned).or_else(commands).or_else(title).unwrap_or_default()
    }

    /// The schema of what it takes, where it can do only one thing.
    pub(super) fn schema(&self) -> Option<&Json> {
        match &self.commands[..] {
            [Command { schema: Some(schema), .. }] if Schema::new(schema).is_ok() => Some(schema),
            _ => None,
        }
    }

    /// What has to be there for it to run.
    pub(super) fn needs(&self) -> Option<String> {
        (!self.needs.is_empty()).then(|| format!("Needs {}", self.needs.join(", ")))
    }

    /// What a skill has no place for, the files set aside.
    pub(super) fn lost(&self, files: &Files) -> Vec<Lost> {
        let mut lost = self.lost.clone();
        let mut lose = |what: &str, why: &str| {
            lost.push(Lost { what: what.to_owned(), why: why.to_owned() });
        };
        match self.kind.as_deref().unwrap_or("synchronous") {
            "synchronous" => {}
            "asynchronous" => lose("answers that come later", "whoever runs it waits for it"),
            "static" => lose("being run at the start", "a skill is used when it is asked for"),
            "messagePreprocessor" => {
                lose("being run before every message", "a skill is used when it is asked for");
            }
            "service" | "hybridservice" => {
                lose("running all the time", "a skill is used when it is asked for");
            }
            kind => lose(&format!("the type `{kind}`"), "nothing here knows what it means"),
        }
        match self.protocol.as_deref().unwrap_or("stdio") {
            "stdio" => {}
            "direct" => {
                lose(
                    "being loaded into its host",
                    "its program was written for the inside of that host",
                );
            }
            protocol => lose(&format!("the protocol `{protocol}`"), "nothing here speaks it"),
        }
        for Command { name, schema, .. } in &self.commands {
            if let Some(Err(error)) = schema.as_ref().map(|it| Schema::new(it).map(drop)) {
                lose(&format!("the schema of `{name}`"), &error.to_string());
            }
        }
        for path in self.programs().filter(|it| !files.contains_key(*it)) {
            lose(&format!("`{path}`"), "it is not among the files that were carried over");
        }
        lost
    }

    /// The files that its host started, by what it typed.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        let words = self.command.as_deref().unwrap_or_default().split_whitespace();
        let words = words.map(|it| it.trim_matches(['"', '\'', ';']));
        let is_path = |it: &&str| !it.starts_with('-') && it.contains(['/', '\\', '.']);
        let started = words.skip(1).chain(self.main.as_deref());
        started.map(|it| it.strip_prefix("./").unwrap_or(it)).filter(is_path)
    }
}

fn command(value: &Json) -> Option<Command> {
    let part = |key| value.get(key).and_then(text);
    let name = part("commandIdentifier").or_else(|| part("command")).or_else(|| part("name"));
    name.map(|it| named(it, value))
}

fn named(name: String, value: &Json) -> Command {
    let part = |key| value.get(key).and_then(text);
    let description = part("description").unwrap_or_default();
    let example = match value.get("example") {
        None | Some(Json::Null) => String::new(),
        Some(string @ Json::String(_)) => text(string).unwrap_or_default(),
        Some(other) => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let taken = ["parameters", "inputSchema", "input_schema"].iter().find_map(|it| value.get(it));
    let mut parameters = taken.map(properties).unwrap_or_default();
    let is_schema = |it: &&Json| it.get("properties").is_some_and(Json::is_object);
    let schema = taken.filter(is_schema).cloned();
    // Most plugins say what a command takes only by showing a call.
    for said in [&description, &example].into_iter().filter(|_| taken.is_none()) {
        for call in pieces(said) {
            let Piece::Call(values) = call else { continue };
            for (name, value) in values {
                if parameters.iter().all(|it| it.name != name) {
                    let description = value.as_str().unwrap_or_default().to_owned();
                    let (kind, required, default) = (None, false, None);
                    parameters.push(Parameter { name, kind, required, description, default });
                }
            }
        }
    }
    Command { name, description, example, parameters, schema }
}

/// What a schema asks for: a JSON schema, or a map from names to types or to what is said of them.
fn properties(value: &Json) -> Vec<Parameter> {
    let inner = value.get("properties").filter(|it| it.is_object());
    let required: Vec<String> = value.get("required").map(texts).unwrap_or_default();
    let all = inner.unwrap_or(value).as_object().into_iter().flatten();
    let parameter = |(name, value): (&String, &Json)| Parameter {
        name: name.clone(),
        kind: text(value).or_else(|| text(value.get("type")?)),
        required: required.contains(name)
            || value.get("required").and_then(Json::as_bool) == Some(true),
        description: value.get("description").and_then(text).unwrap_or_default(),
        default: value.get("default").map(|it| text(it).unwrap_or_else(|| it.to_string())),
    };
    all.map(parameter).collect()
}

/// The programs and libraries of `{"python": ">=3.7", "libraries": ["numpy"]}`.
fn needs(value: &Json) -> Vec<String> {
    let all = value.as_object().into_iter().flatten();
    let listed = value.as_array().map(|_| texts(value)).unwrap_or_default();
    let named = all.flat_map(|(name, value)| match value {
        Json::String(version) => vec![format!("{name} {version}")],
        other => texts(other),
    });
    listed.into_iter().chain(named).collect()
}

/// A text without what no text should hold; a number as it is written.
fn text(value: &Json) -> Option<String> {
    let plain = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c };
    match value {
        Json::String(text) => Some(text.chars().map(plain).collect()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn texts(value: &Json) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(text).collect()
}
