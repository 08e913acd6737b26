//! The servers that a skill configures, in `.mcp.json` and in `mcp/*.json`.

use std::{collections::BTreeMap, io::Read as _, path::Path};

use prowess::Skill;
use prowess_sandbox::{FileType, Links, Root, RootError};
use serde_json::{Map, Value};

use super::{oauth_settings::OauthSettings, package_command::PackageCommand};

/// The configuration of a server, as written: nothing is expanded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// Its name.
    pub name: String,
    /// Its transport.
    pub transport: Transport,
}

/// The transport of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started for it.
    Program(ServerProgram),
    /// HTTP, wherever it runs.
    Http(ServerAddress),
}

/// A server that is a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerProgram {
    /// The program: a name on the search path, or a path within the skill's folder.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment variables.
    pub environment: BTreeMap<String, String>,
    /// Its working directory, within the skill's folder.
    pub directory: String,
    /// Additional files and directories that it may read.
    pub reads: Vec<String>,
    /// Files and directories that it may also write.
    pub writes: Vec<String>,
    /// The hosts that it may connect to.
    pub hosts: Vec<String>,
}

/// A remote server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerAddress {
    /// Its URL.
    pub url: String,
    /// The headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The settings for its login. A skill cannot configure these.
    pub oauth: OauthSettings,
}

/// All servers of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillServers {
    /// The valid ones.
    pub servers: Vec<McpServerConfig>,
    /// Errors in the others, and unknown keys, one line each.
    pub faults: Vec<String>,
}

/// The file next to a `SKILL.md`, and the folder of such files.
const FILE: &str = ".mcp.json";
const FOLDER: &str = "mcp";
/// The maximum number of servers of a skill, and the maximum size of their configuration.
const SERVERS: usize = 16;
const BYTES: u64 = 64 * 1024;
/// The maximum number of arguments, variables and headers of a server.
const WORDS: usize = 128;

/// Keys that are known, including those of other clients, which may have no effect here.
const KNOWN: &[&str] = &[
    "type",
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "read",
    "write",
    "hosts",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "oauth",
    "disabled",
    "description",
];
/// The keys for the URL of a remote server.
const ADDRESSES: &[&str] = &["url", "httpUrl", "serverUrl"];

impl SkillServers {
    /// Reads the servers that a skill configures.
    pub fn of(skill: &Skill) -> Self {
        let mut described = Self::default();
        for (file, read) in documents(skill) {
            match read {
                Ok(bytes) => described.take(&file, &bytes),
                Err(why) => described.fault(&file, &why),
            }
        }
        described
    }

    fn take(&mut self, file: &str, bytes: &[u8]) {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let document = match serde_json::from_slice(bytes) {
            Ok(Value::Object(document)) => document,
            Ok(_) => return self.fault(file, "it is not a JSON object"),
            Err(error) => return self.fault(file, &format!("it is not JSON: {error}")),
        };
        if ADDRESSES.iter().chain(&["command"]).any(|it| document.contains_key(*it)) {
            let stem = Path::new(file).file_stem().and_then(|it| it.to_str()).unwrap_or_default();
            return self.add(file, stem.trim_start_matches('.'), &document);
        }
        let named = ["mcpServers", "servers"].iter().find(|it| document.contains_key(**it));
        let servers = match named {
            Some(key) => {
                let others = document.keys().filter(|it| it != key);
                others.for_each(|it| self.fault(file, &format!("unknown key `{it}`")));
                match &document[*key] {
                    Value::Object(servers) => servers,
                    _ => return self.fault(file, &format!("`{key}` is not a JSON object")),
                }
            }
            None => &document,
        };
        for (name, server) in servers {
            match server {
                Value::Object(server) => self.add(file, name, server),
                _ => self.fault(file, &format!("`{name}` is not a server")),
            }
        }
    }

    fn add(&mut self, file: &str, name: &str, server: &Map<String, Value>) {
        let unknown: Vec<String> = McpServerConfig::unknown(server)
            .map(|it| format!("`{name}`: unknown key `{it}`"))
            .collect();
        let read = match McpServerConfig::read(name, server) {
            Ok(None) => return,
            Ok(Some(_)) if self.servers.len() == SERVERS => {
                Err(format!("a skill has no more than {SERVERS} servers"))
            }
            Ok(Some(it))
                if self.servers.iter().any(|other| plain_name(&other.name) == plain_name(name)) =>
            {
                Err(format!("there is another server named `{}`", it.name))
            }
            Ok(Some(it)) => Ok(it),
            Err(why) => Err(why),
        };
        match read {
            Ok(description) => {
                unknown.iter().for_each(|it| self.fault(file, it));
                self.servers.push(description);
            }
            Err(why) => self.fault(file, &format!("`{name}` is not started: {why}")),
        }
    }

    fn fault(&mut self, file: &str, why: &str) {
        self.faults.push(format!("`{file}`: {why}"));
    }
}

impl McpServerConfig {
    /// Parses a server; `None` if it is disabled.
    pub fn read(name: &str, server: &Map<String, Value>) -> Result<Option<Self>, String> {
        if server.get("disabled") == Some(&Value::Bool(true)) {
            return Ok(None);
        }
        if plain_name(name).is_empty() || name.len() > 64 {
            return Err("its name needs letters or digits, at most 64 characters".to_owned());
        }
        let address = ADDRESSES.iter().find(|it| server.contains_key(**it));
        if let Some(address) = address.filter(|_| server.contains_key("command")) {
            return Err(format!("it has both `command` and `{address}`"));
        }
        let transport = match kind(server)? {
            "stdio" => Transport::Program(ServerProgram::read(server)?),
            "http" | "streamable-http" | "streamableHttp" => {
                Transport::Http(ServerAddress::read(server)?)
            }
            "sse" => {
                let why = "`sse` is deprecated and not supported; use `http`";
                return Err(why.to_owned());
            }
            other => return Err(format!("unknown transport `{other}`")),
        };
        Ok(Some(Self { name: name.to_owned(), transport }))
    }

    /// Returns the unknown keys of a server.
    pub fn unknown(server: &Map<String, Value>) -> impl Iterator<Item = &String> {
        server.keys().filter(|it| !KNOWN.contains(&it.as_str()))
    }

    /// Returns the command line or URL for a question: every variable and word as written.
    pub fn line(&self) -> String {
        match &self.transport {
            Transport::Program(program) => program.line(),
            Transport::Http(address) => address.line(),
        }
    }
}

/// Returns the name of the transport; if it is missing, it is inferred from other keys.
fn kind(server: &Map<String, Value>) -> Result<&str, String> {
    match server.get("type").or(server.get("transport")) {
        Some(Value::String(kind)) => Ok(kind),
        Some(_) => Err("`type` is not a text".to_owned()),
        None if ADDRESSES.iter().any(|it| server.contains_key(*it)) => Ok("http"),
        None => Ok("stdio"),
    }
}

impl ServerProgram {
    fn read(server: &Map<String, Value>) -> Result<Self, String> {
        let command = text(server, "command")?.ok_or("it has no `command`")?;
        let arguments = list(server, "args")?;
        let environment = texts(server, "env")?;
        let directory = text(server, "cwd")?.unwrap_or_default();
        let [reads, writes, hosts] = ["read", "write", "hosts"].map(|key| {
            let values = list(server, key)?;
            match values.iter().any(String::is_empty) {
                true => Err(format!("`{key}` has an empty text in it")),
                false => Ok(values),
            }
        });
        let (reads, writes, hosts) = (reads?, writes?, hosts?);
        Ok(Self { command, arguments, environment, directory, reads, writes, hosts })
    }

    /// Returns the packages that it downloads, if it does; an error if it does so in an unsupported
    /// way.
    pub fn packages(&self) -> Option<Result<PackageCommand, String>> {
        PackageCommand::of(&self.command, &self.arguments)
    }

    fn line(&self) -> String {
        let variables =
            self.environment.iter().map(|(name, value)| format!("{name}={}", shell_quote(value)));
        let words = std::iter::once(&self.command).chain(&self.arguments);
        let words = variables.chain(words.map(|it| shell_quote(it)));
        let line = words.collect::<Vec<_>>().join(" ");
        let line = match &*self.directory {
            "" => format!("{line}\n"),
            directory => format!("cd {}\n{line}\n", shell_quote(directory)),
        };
        let access = [("read", &self.reads), ("write", &self.writes), ("hosts", &self.hosts)];
        let access = access.into_iter().filter(|it| !it.1.is_empty()).map(|(key, values)| {
            let values = values.iter().map(|it| shell_quote(it)).collect::<Vec<_>>();
            format!("# {key}: {}\n", values.join(" "))
        });
        std::iter::once(line).chain(access).collect()
    }
}

/// Quotes a word for a shell, on one line: a line break would look like another command.
fn shell_quote(word: &str) -> String {
    if !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c))
    {
        return word.to_owned();
    }
    if !word.contains(char::is_control) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = "$'".to_owned();
    for c in word.replace('\\', r"\\").replace('\'', r"\'").chars() {
        match c.is_control() {
            true => quoted.extend(c.escape_default()),
            false => quoted.push(c),
        }
    }
    quoted + "'"
}

impl ServerAddress {
    fn read(server: &Map<String, Value>) -> Result<Self, String> {
        let urls = ADDRESSES.iter().map(|it| text(server, it));
        let urls: Vec<String> = urls.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let [url] = <[String; 1]>::try_from(urls).map_err(|it| match it.len() {
            0 => "it has no `url`",
            _ => "it has more than one address",
        })?;
        if let Some(key) = ["read", "write", "hosts"].iter().find(|it| server.contains_key(**it)) {
            return Err(format!("`{key}` is for a server with a `command`"));
        }
        let headers = texts(server, "headers")?;
        // A question shows one per line.
        let texts = headers.iter().flat_map(|(name, value)| [name, value]);
        if texts.chain([&url]).any(|it| it.contains(char::is_control)) {
            return Err("`url` and `headers` must not contain line breaks".to_owned());
        }
        Ok(Self { url, headers, oauth: OauthSettings::default() })
    }

    fn line(&self) -> String {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        std::iter::once(format!("{}\n", self.url))
            .chain(headers)
            .chain([self.oauth.line()])
            .collect()
    }
}

/// Returns a string of a server; `None` if it is empty.
fn text(server: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    let Some(value) = server.get(key) else { return Ok(None) };
    let text = word(value).ok_or_else(|| format!("`{key}` is not a text"))?;
    Ok(Some(text).filter(|it| !it.is_empty()))
}

/// Returns a list of strings.
fn list(server: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let Some(value) = server.get(key) else { return Ok(Vec::new()) };
    let words = value.as_array().filter(|it| it.len() <= WORDS);
    let words = words.and_then(|it| it.iter().map(word).collect());
    words.ok_or_else(|| format!("`{key}` is not a list of texts"))
}

/// Returns a map of strings.
fn texts(server: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, String> {
    let Some(value) = server.get(key) else { return Ok(BTreeMap::new()) };
    let values = value.as_object().filter(|it| it.len() <= WORDS);
    let pairs = values.and_then(|it| {
        it.iter()
            .map(|(name, value): (&String, &Value)| Some((name.clone(), word(value)?)))
            .collect()
    });
    pairs.ok_or_else(|| format!("`{key}` is not an object of texts"))
}

fn word(value: &Value) -> Option<String> {
    value.as_str().filter(|it| !it.contains('\0')).map(str::to_owned)
}

/// Returns the files of a skill that configure servers, sorted by path, each with its content or an
/// error.
fn documents(skill: &Skill) -> Vec<(String, Result<Vec<u8>, String>)> {
    let Some(folder) = skill.absolute_folder() else {
        let paths = skill.resources().iter().map(|it| &*it.path);
        return paths
            .filter(|it| *it == FILE || is_in_folder(it))
            .map(|it| (it.to_owned(), skill.read(it).map_err(|error| error.to_string())))
            .collect();
    };
    let Ok(root) = Root::open(&folder) else { return Vec::new() };
    let listed = root.list(Path::new(FOLDER), Links::Never).unwrap_or_default();
    let names = listed.iter().filter(|it| it.kind != FileType::Directory);
    let paths = names.filter_map(|it| Some(format!("{FOLDER}/{}", it.name.to_str()?)));
    let paths = std::iter::once(FILE.to_owned()).chain(paths.filter(|it| is_in_folder(it)));
    let documents = paths.take(SERVERS + 2).enumerate().filter_map(|(number, path)| {
        let read = match number <= SERVERS {
            true => read(&root, &path)?,
            false => Err("it and what follows are too many files to be looked at".to_owned()),
        };
        Some((path, read))
    });
    documents.collect()
}

fn is_in_folder(path: &str) -> bool {
    path.strip_prefix(FOLDER)
        .and_then(|it| it.strip_prefix('/'))
        .is_some_and(|it| it.ends_with(".json") && !it.contains('/'))
}

/// Reads a file; `None` if it does not exist.
fn read(root: &Root, path: &str) -> Option<Result<Vec<u8>, String>> {
    let bytes = root.file(Path::new(path), Links::Never).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| RootError::Io { path: path.into(), source })?;
        Ok(bytes)
    });
    match bytes {
        Err(error) if error.is_missing() => None,
        Err(error) => Some(Err(error.to_string())),
        Ok(bytes) if bytes.len() as u64 > BYTES => {
            Some(Err(format!("it has more than {BYTES} bytes")))
        }
        Ok(bytes) => Some(Ok(bytes)),
    }
}

/// Replaces all characters but letters, digits, `_` and `-`; may return an empty name.
pub(crate) fn plain_name(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let name = words.filter(|it| !it.is_empty()).collect::<Vec<_>>().join("_");
    if name.contains(|c: char| c.is_ascii_alphanumeric()) { name } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain() {
        assert_eq!(plain_name("a b/../c"), "a_b_c");
        assert_eq!(plain_name("__x__"), "x");
        assert_eq!(plain_name("-ä-"), "");
    }
}
