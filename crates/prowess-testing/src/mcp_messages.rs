//! What clients of MCP servers send and hear. They speak JSON-RPC and HTTP themselves, so that no SDK
//! hides a message.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value as Json, json};

use crate::world::{PATIENCE, World, unfenced};

/// The protocol of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// `initialize` comes first.
    Handshake(&'static str),
    /// Every request carries the data of `initialize`: 2026-07-28.
    Stateless,
}

/// The last revision with a handshake.
pub const V2025: Revision = Revision::Handshake("2025-11-25");

/// Returns the params of a request for a revision.
pub fn meant(revision: Revision, mut params: Json) -> Json {
    if revision == Revision::Stateless {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientInfo"] = client();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    params
}

/// Returns the information about a client.
pub fn client() -> Json {
    json!({"name": "specs", "version": "1"})
}

/// A server on this machine that is reached by HTTP, one request per connection.
#[derive(Debug, Clone, Default)]
pub struct At {
    pub port: u16,
    /// The headers of every request.
    pub headers: Vec<(String, String)>,
}

/// An HTTP response.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    /// The lines of the head after the first, their names in lower case.
    pub head: String,
    pub body: String,
}

impl At {
    /// Returns the same with one more header.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut at = self.clone();
        at.headers.push((name.to_owned(), value.to_owned()));
        at
    }

    /// Begins a session of the last revision, and returns its address.
    pub fn session(&self) -> Self {
        let Revision::Handshake(version) = V2025 else { unreachable!() };
        self.begin(version).0
    }

    /// Begins a session, and returns its address and the server's description.
    pub fn begin(&self, version: &str) -> (Self, Json) {
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client()});
        let begun = self.ask("initialize", params);
        assert_eq!(begun.status, 200, "{begun:?}");
        let session = begun.header("mcp-session-id").unwrap();
        let at = self.with("Mcp-Session-Id", session).with("MCP-Protocol-Version", version);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(at.post(&initialized.to_string()).status, 202);
        (at, begun.json()["result"].take())
    }

    /// Like [`ask`](Self::ask), for a client of 2026-07-28.
    pub fn ask_stateless(&self, method: &str, params: Json) -> Answered {
        let at = self.with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method);
        let named = if method == "resources/read" { "uri" } else { "name" };
        let at = match params[named].as_str() {
            Some(name) => at.with("Mcp-Name", &header(name)),
            None => at,
        };
        at.ask(method, meant(Revision::Stateless, params))
    }

    pub fn ask(&self, method: &str, params: Json) -> Answered {
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&asked.to_string())
    }

    pub fn post(&self, body: &str) -> Answered {
        let at = self
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream");
        at.send("POST", "/mcp", body)
    }

    /// Sends a request, and reads the whole response.
    pub fn send(&self, method: &str, path: &str, body: &str) -> Answered {
        let mut text = String::new();
        let mut stream = self.open(method, path, body);
        stream.read_to_string(&mut text).unwrap();
        Answered::read(&text)
    }

    /// Sends a request, and returns the stream of the response.
    pub fn open(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has_host = self.headers.iter().any(|it| it.0 == "Host");
        let own = ("Host".to_owned(), format!("127.0.0.1:{}", self.port));
        for (name, value) in self.headers.iter().chain((!has_host).then_some(&own)) {
            if value != "-" {
                head += &format!("{name}: {value}\r\n");
            }
        }
        let mut stream = self.connect();
        let length = body.len();
        stream
            .write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes())
            .unwrap();
        stream
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

impl Answered {
    pub fn read(text: &str) -> Self {
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let (line, head) = head.split_once("\r\n").unwrap_or((head, ""));
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let lower = |it: &str| match it.split_once(':') {
            Some((name, value)) => format!("{}:{value}\n", name.to_lowercase()),
            None => it.to_owned(),
        };
        let head: String = head.lines().map(lower).collect();
        let is_chunked = head.contains("transfer-encoding: chunked");
        let body = if is_chunked { joined(body) } else { body.to_owned() };
        Self { status, head, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|it| it.split_once(": "));
        lines.into_iter().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Returns its one message, plain or as an event.
    pub fn json(&self) -> Json {
        let events = self.body.lines().filter_map(|it| it.strip_prefix("data:"));
        let event = events.map(str::trim).find(|it| !it.is_empty());
        let text = event.unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Returns the next line of a stream that contains this; empty if the stream has ended before.
pub fn line_with(mut stream: &TcpStream, part: &str) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 {
        match byte[0] {
            b'\n' => {
                let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
                if text.contains(part) {
                    return text.trim_end().to_owned();
                }
            }
            other => line.push(other),
        }
    }
    String::new()
}

/// Returns a name as a header has it: plain, or encoded.
fn header(name: &str) -> String {
    let is_plain = name.bytes().all(|it| it.is_ascii_graphic()) && !name.is_empty();
    match is_plain {
        true => name.to_owned(),
        false => format!("=?base64?{}?=", BASE64_STANDARD.encode(name)),
    }
}

/// Joins the chunks of a body.
fn joined(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((length, behind)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body += &behind[..length];
        rest = behind.get(length + 2..).unwrap_or_default();
    }
    body
}

/// Returns a world with this many skills, each about a thing of its own.
pub fn many(count: usize) -> World {
    (0..count).fold(World::new(), |world, n| {
        let description =
            format!("Paints fence number {n} in a colour of its own. Use for fence {n}.");
        world.skill(&format!("skill-{n:03}"), &description)
    })
}

/// Returns the text of a result that is not an error.
pub fn told(result: &Json) -> String {
    assert_eq!(result["isError"], false, "{result}");
    unfenced(&texts(result))
}

/// Returns the text of a result that is an error.
pub fn wrong(result: &Json) -> String {
    assert_eq!(result["isError"], true, "{result}");
    texts(result)
}

/// Returns the text of a result.
pub fn texts(result: &Json) -> String {
    let content = result["content"].as_array().unwrap();
    content.iter().map(|it| it["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns the arguments of `use_skill` and the like.
pub fn named(name: &str) -> Json {
    json!({"name": name})
}

/// Returns the arguments of `read_skill_file`.
pub fn file(name: &str, path: &str) -> Json {
    json!({"name": name, "path": path})
}

/// Returns the names of a list.
pub fn names(list: &Json) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}
