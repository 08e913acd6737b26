//! The manifest of a plugin. Every field that is read is removed from it; the rest is reported as
//! lost.

use prowess_runtime::{parameters::check_schema, store::Files, text::strict_json};
use serde::{Deserialize as _, de::Error as _};
use serde_json::{Map, Value as Json};

use super::{
    LostItem,
    calls::{Piece, pieces},
    secret::redact_manifest,
};

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
    /// The event on which its host ran it.
    kind: Option<String>,
    /// The program that its host loaded.
    pub(super) main: Option<String>,
    /// The command by which its host started it.
    pub(super) command: Option<String>,
    /// The protocol that its host used.
    pub(super) protocol: Option<String>,
    pub(super) timeout: Option<u64>,
    pub(super) settings: Vec<Parameter>,
    pub(super) commands: Vec<Command>,
    needs: Vec<String>,
    lost: Vec<LostItem>,
}

/// A command of a plugin that a model could call.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) example: String,
    pub(super) parameters: Vec<Parameter>,
    /// The JSON schema of the parameters, if there is one.
    pub(super) schema: Option<Json>,
}

/// A parameter of a command or of the plugin.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) required: bool,
    pub(super) description: String,
    pub(super) default: Option<String>,
}

impl Plugin {
    /// Parses a `plugin-manifest.json`.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let mut plugin = Self::default();
        let text = str::from_utf8(bytes).map_err(serde_json::Error::custom)?;
        let mut manifest = Map::<String, Json>::deserialize(strict_json(text)?)?;
        plugin.lost = redact_manifest(&mut manifest);
        for (key, value) in manifest {
            plugin.take(&key, value);
        }
        Ok(plugin)
    }

    fn take(&mut self, key: &str, value: Json) {
        match key {
            "manifestVersion" => {}
            "name" => self.name = self.text_or_lose(key, &value),
            "displayName" => self.display_name = self.text_or_lose(key, &value),
            "description" => self.description = self.text_or_lose(key, &value),
            "version" => self.version = self.text_or_lose(key, &value),
            "author" => self.take_author(value),
            "license" => self.license = self.text_or_lose(key, &value),
            "tags" | "keywords" | "categories" | "category" => {
                let tags = self.texts(key, value);
                self.tags.extend(tags);
            }
            "pluginType" => self.kind = self.text_or_lose(key, &value),
            "entryPoint" => self.take_start(value),
            "communication" => {
                let mut parts = self.parts(key, value);
                self.protocol = text_of(&mut parts, "protocol");
                self.timeout = parts.get("timeout").and_then(Json::as_u64);
                if self.timeout.is_some() {
                    parts.shift_remove("timeout");
                }
                self.lose_rest(key, parts);
            }
            "main" => self.main = self.text_or_lose(key, &value),
            "tools" => self.take_tools(value),
            "permissions" => {
                let names: Vec<String> = match value {
                    Json::Object(named) => named.into_iter().map(|it| it.0).collect(),
                    value => self.texts(key, value),
                };
                for name in names {
                    self.lose(
                        format!("the permission `{name}`"),
                        "what a skill may do is up to the policy of the user who runs it",
                    );
                }
            }
            "configSchema" => self.settings = self.parameters(key, value),
            "capabilities" => self.take_capabilities(value),
            "dependencies" => self.take_needs(value),
            key => self.lose_value(key, &value),
        }
    }

    fn take_author(&mut self, value: Json) {
        let key = "author";
        match value {
            Json::Object(mut parts) => {
                self.author = text_of(&mut parts, "name");
                self.lose_rest(key, parts);
            }
            value => self.author = self.text_or_lose(key, &value),
        }
    }

    fn take_start(&mut self, value: Json) {
        let key = "entryPoint";
        let mut parts = self.parts(key, value);
        let (command, script) = (text_of(&mut parts, "command"), text_of(&mut parts, "script"));
        let script =
            script.filter(|it| command.as_ref().is_none_or(|command| !command.contains(it)));
        let words: Vec<String> = command.into_iter().chain(script).collect();
        self.command = Some(words.join(" ")).filter(|it| !it.is_empty());
        // The command shows what kind it is.
        if self.command.is_some() {
            text_of(&mut parts, "type");
        }
        self.lose_rest(key, parts);
    }

    /// Reads tools, in a list or by name.
    fn take_tools(&mut self, value: Json) {
        let tools: Vec<(Option<String>, Json)> = match value {
            Json::Array(listed) => listed.into_iter().map(|it| (None, it)).collect(),
            Json::Object(keyed) => keyed.into_iter().map(|it| (Some(it.0), it.1)).collect(),
            _ => return self.lose("`tools`".to_owned(), "it is not a list"),
        };
        for (at, (name, value)) in tools.into_iter().enumerate() {
            let place = format!("tools[{at}]");
            let name = name.or_else(|| text(&value));
            let mut parts = match value {
                Json::Object(parts) => parts,
                _ => Map::new(),
            };
            if let Some(Json::Object(inner)) = parts.get_mut("function") {
                let inner = std::mem::take(inner);
                parts.shift_remove("function");
                text_of(&mut parts, "type");
                self.lose_rest(&place, std::mem::replace(&mut parts, inner));
            }
            self.take_command(&place, "a tool", name, parts);
        }
    }

    fn take_capabilities(&mut self, value: Json) {
        let key = "capabilities";
        for (key, value) in self.parts(key, value) {
            match (key.as_str(), value) {
                ("invocationCommands", Json::Array(commands)) => {
                    for (at, value) in commands.into_iter().enumerate() {
                        let place = format!("capabilities.invocationCommands[{at}]");
                        match value {
                            Json::Object(parts) => {
                                self.take_command(&place, "a command", None, parts);
                            }
                            value => self.lose_value(&place, &value),
                        }
                    }
                }
                ("systemPromptPlaceholders", Json::Array(placeholders)) => {
                    for it in placeholders {
                        let name = it.get("placeholder").and_then(text).or_else(|| text(&it));
                        let name = name.unwrap_or_else(|| it.to_string());
                        self.lose(
                            format!("the placeholder `{name}`"),
                            "a skill cannot add to other prompts",
                        );
                    }
                }
                (key, value) => self.lose_value(&format!("capabilities.{key}"), &value),
            }
        }
    }

    /// Reads a command or tool; `name` is its name unless it has its own.
    fn take_command(
        &mut self,
        place: &str,
        what: &str,
        name: Option<String>,
        mut parts: Map<String, Json>,
    ) {
        let names = ["commandIdentifier", "command", "name"];
        let own = names.iter().find_map(|it| text_of(&mut parts, it));
        let Some(name) = own.or(name) else {
            return self.lose(what.to_owned(), "it has no name");
        };
        let description = text_of(&mut parts, "description").unwrap_or_default();
        let example = match parts.shift_remove("example") {
            None | Some(Json::Null) => String::new(),
            Some(string @ Json::String(_)) => text(&string).unwrap_or_default(),
            Some(other) => serde_json::to_string_pretty(&other).unwrap_or_default(),
        };
        let keys = ["parameters", "inputSchema", "input_schema"];
        let taken = keys.iter().find_map(|it| Some((it, parts.shift_remove(*it)?)));
        let schema = taken.as_ref().map(|it| &it.1);
        let schema = schema.filter(|it| it.get("properties").is_some_and(Json::is_object)).cloned();
        let is_documented_by_example = taken.is_none();
        let lost = self.lost.len();
        let mut parameters = taken.map_or_else(Vec::new, |(key, value)| {
            self.parameters(&format!("{place}.{key}"), value)
        });
        // A schema is carried over whole.
        if schema.is_some() {
            self.lost.truncate(lost);
        }
        // Most plugins document the parameters of a command only by an example call.
        for text in [&description, &example].into_iter().filter(|_| is_documented_by_example) {
            for call in pieces(text) {
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
        self.lose_rest(place, parts);
        self.commands.push(Command { name, description, example, parameters, schema });
    }

    /// Reads the parameters of a schema: a JSON schema, or a map from names to types or
    /// descriptions.
    fn parameters(&mut self, place: &str, value: Json) -> Vec<Parameter> {
        let mut all = self.parts(place, value);
        let mut required = Vec::new();
        if let Some(Json::Object(inner)) = all.get_mut("properties") {
            let inner = std::mem::take(inner);
            all.shift_remove("properties");
            required =
                all.shift_remove("required").map_or_else(Vec::new, |it| self.texts("required", it));
            text_of(&mut all, "type");
            self.lose_rest(place, std::mem::replace(&mut all, inner));
        }
        let mut parameters = Vec::new();
        for (name, value) in all {
            let place = format!("{place}.{name}");
            let required = required.contains(&name);
            let mut parameter = Parameter {
                name,
                kind: text(&value),
                required,
                description: String::new(),
                default: None,
            };
            match value {
                Json::Object(mut parts) => {
                    parameter.kind = text_of(&mut parts, "type");
                    parameter.description = text_of(&mut parts, "description").unwrap_or_default();
                    if let Some(Json::Bool(required)) = parts.get("required") {
                        parameter.required |= required;
                        parts.shift_remove("required");
                    }
                    let default = parts.shift_remove("default");
                    parameter.default =
                        default.map(|it| text(&it).unwrap_or_else(|| it.to_string()));
                    self.lose_rest(&place, parts);
                }
                value if parameter.kind.is_none() => self.lose_value(&place, &value),
                _ => {}
            }
            parameters.push(parameter);
        }
        parameters
    }

    /// Reads the programs and libraries of `{"python": ">=3.7", "libraries": ["numpy"]}`.
    fn take_needs(&mut self, value: Json) {
        let key = "dependencies";
        let Json::Object(named) = value else {
            self.needs = self.texts(key, value);
            return;
        };
        for (name, value) in named {
            match text(&value) {
                Some(version) => self.needs.push(format!("{name} {version}")),
                None => {
                    let needs = self.texts(&format!("{key}.{name}"), value);
                    self.needs.extend(needs);
                }
            }
        }
    }

    /// Returns the fields of an object; anything else is reported as lost.
    fn parts(&mut self, place: &str, value: Json) -> Map<String, Json> {
        match value {
            Json::Object(parts) => parts,
            value => {
                self.lose_value(place, &value);
                Map::new()
            }
        }
    }

    /// Returns a text, or the texts of a list; anything else is reported as lost.
    fn texts(&mut self, place: &str, value: Json) -> Vec<String> {
        let listed = match value {
            Json::Array(listed) => listed,
            value => return self.text_or_lose(place, &value).into_iter().collect(),
        };
        let mut texts = Vec::new();
        for (at, value) in listed.iter().enumerate() {
            match text(value) {
                Some(text) => texts.push(text),
                None => self.lose_value(&format!("{place}[{at}]"), value),
            }
        }
        texts
    }

    /// Reports all remaining fields of an object as lost.
    fn lose_rest(&mut self, place: &str, rest: Map<String, Json>) {
        for (key, value) in rest {
            self.lose_value(&format!("{place}.{key}"), &value);
        }
    }

    fn lose_value(&mut self, place: &str, value: &Json) {
        if !value.is_null() {
            self.lose(format!("`{place}`"), "its meaning is unknown");
        }
    }

    /// Returns a text; anything else is reported as lost.
    fn text_or_lose(&mut self, key: &str, value: &Json) -> Option<String> {
        let text = text(value);
        if text.is_none() && !value.is_null() {
            self.lose(format!("`{key}`"), "it is not a text");
        }
        text
    }

    fn lose(&mut self, what: String, why: &str) {
        self.lost.push(LostItem::new(what, why));
    }

    /// Returns its description, otherwise those of its commands.
    pub(super) fn description(&self) -> String {
        let own = self.description.as_deref().filter(|it| !it.trim().is_empty());
        own.map(str::to_owned)
            .or_else(|| {
                let first =
                    self.commands.iter().map(|it| it.description.lines().next().unwrap_or(""));
                Some(first.collect::<Vec<_>>().join(" ")).filter(|it| !it.trim().is_empty())
            })
            .or_else(|| self.display_name.clone().or_else(|| self.name.clone()))
            .unwrap_or_default()
    }

    /// Returns the schema of its parameters, if it has only one command.
    pub(super) fn schema(&self) -> Option<&Json> {
        match &self.commands[..] {
            [Command { schema: Some(schema), .. }] if check_schema(schema).is_ok() => Some(schema),
            _ => None,
        }
    }

    /// Returns its requirements.
    pub(super) fn needs(&self) -> Option<String> {
        (!self.needs.is_empty()).then(|| format!("Needs {}", self.needs.join(", ")))
    }

    /// Returns the items that have no place in a skill, except files.
    pub(super) fn lost_items(&self, files: &Files) -> Vec<LostItem> {
        let mut lost = self.lost.clone();
        let mut lose = |what: &str, why: &str| lost.push(LostItem::new(what, why));
        match self.kind.as_deref().unwrap_or("synchronous") {
            "synchronous" => {}
            "asynchronous" => lose("its asynchronous answer", "a skill answers directly"),
            "static" => lose("its run at startup", "a skill is used on request"),
            "messagePreprocessor" => {
                lose("its run before every message", "a skill is used on request");
            }
            "service" | "hybridservice" => {
                lose("its background service", "a skill is used on request");
            }
            kind => lose(&format!("the type `{kind}`"), "its meaning is unknown"),
        }
        match self.protocol.as_deref().unwrap_or("stdio") {
            "stdio" => {}
            "direct" => {
                lose("its loading into the host", "its program only runs inside that host");
            }
            protocol => lose(&format!("the protocol `{protocol}`"), "it is not supported"),
        }
        for Command { name, schema, .. } in &self.commands {
            if let Some(Err(error)) = schema.as_ref().map(check_schema) {
                lose(&format!("the schema of `{name}`"), &error.to_string());
            }
        }
        for path in self.programs().filter(|it| !files.contains_key(*it)) {
            lose(&format!("`{path}`"), "it is not among the files that were carried over");
        }
        lost
    }

    /// Returns the files in the command by which its host started it.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        let words = self.command.as_deref().unwrap_or_default().split_whitespace();
        let words = words.map(|it| it.trim_matches(['"', '\'', ';']));
        let started = words.skip(1).chain(self.main.as_deref());
        started
            .map(|it| it.strip_prefix("./").unwrap_or(it))
            .filter(|it: &&str| !it.starts_with('-') && it.contains(['/', '\\', '.']))
    }
}

/// Removes a text from an object and returns it; anything else stays.
fn text_of(parts: &mut Map<String, Json>, key: &str) -> Option<String> {
    let text = parts.get(key).and_then(text)?;
    parts.shift_remove(key);
    Some(text)
}

/// Returns a text without control characters; a number is formatted.
fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(
            text.chars()
                .map(|c: char| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c })
                .collect(),
        ),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
