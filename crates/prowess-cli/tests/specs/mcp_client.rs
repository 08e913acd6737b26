//! Clients of `prowess mcp` that speak JSON-RPC and HTTP themselves, so that no SDK hides a
//! message.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

use crate::world::{SKILLS, World};

/// A timeout longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The protocol of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    /// `initialize` comes first.
    Handshake(&'static str),
    /// Every request carries the data of `initialize`: 2026-07-28.
    Stateless,
}

/// The last revision with a handshake.
pub(crate) const V2025: Revision = Revision::Handshake("2025-11-25");

/// The program, serving over its stdin and stdout, and its client. Ended when dropped.
pub(crate) struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: NamedTempFile,
    revision: Revision,
    asked: u64,
    /// Messages that arrived while another was waited for.
    waiting: VecDeque<Json>,
    /// The server's description: the result of `initialize` or `server/discover`.
    pub(crate) server: Json,
}

/// The end of the server.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    /// Its last messages.
    pub(crate) said: Vec<String>,
}

impl McpClient {
    /// Serves `skills/` of a world to a client of the last revision with a handshake.
    pub(crate) fn new(world: &World) -> Self {
        Self::with(world, V2025, &[])
    }

    /// Like [`new`](Self::new), in another revision, with more arguments.
    pub(crate) fn with(world: &World, revision: Revision, arguments: &[&str]) -> Self {
        let mut client = Self::silent(world, arguments);
        client.begin(revision);
        client
    }

    /// Starts the server without a message.
    pub(crate) fn silent(world: &World, arguments: &[&str]) -> Self {
        Self::of(world, &[&SKILLS, arguments].concat())
    }

    /// Like [`silent`](Self::silent), over the skills that the server finds by itself.
    pub(crate) fn of(world: &World, arguments: &[&str]) -> Self {
        let stderr = NamedTempFile::new().unwrap();
        let mut child = world
            .command(["mcp"].iter().chain(arguments))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr.reopen().unwrap())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut lines = stdout.lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line)).ok();
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr,
            revision: V2025,
            asked: 0,
            waiting: VecDeque::new(),
            server: Json::Null,
        }
    }

    /// Sends the first messages of a revision.
    pub(crate) fn begin(&mut self, revision: Revision) {
        self.revision = revision;
        self.server = match revision {
            Revision::Handshake(version) => {
                let server = self.request(
                    "initialize",
                    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client()}),
                );
                self.notify("notifications/initialized", json!({}));
                server
            }
            Revision::Stateless => self.request("server/discover", json!({})),
        };
    }

    /// Sends a request that succeeds, and returns its result.
    pub(crate) fn request(&mut self, method: &str, params: Json) -> Json {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Sends a request that fails, and returns its error.
    pub(crate) fn error(&mut self, method: &str, params: Json) -> Json {
        let mut answer = self.ask(method, params);
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].take()
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: Json) -> Json {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Sends a request, and returns the whole answer.
    pub(crate) fn ask(&mut self, method: &str, params: Json) -> Json {
        let id = self.post(method, params);
        self.answer(id)
    }

    /// Sends a request without waiting, and returns its id.
    pub(crate) fn post(&mut self, method: &str, params: Json) -> u64 {
        self.asked += 1;
        let id = self.asked;
        let params = meant(self.revision, params);
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Json {
        self.wait_for(|it| it["id"] == id && it.get("method").is_none())
            .unwrap_or_else(|| panic!("no answer to {id}: {}", self.stderr()))
    }

    pub(crate) fn notify(&mut self, method: &str, params: Json) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Waits for a notification of the server, and returns its params.
    pub(crate) fn notification(&mut self, method: &str) -> Json {
        let mut found = self
            .wait_for(|it| it["method"] == method)
            .unwrap_or_else(|| panic!("no {method}: {}", self.stderr()));
        found["params"].take()
    }

    /// Returns the next message of the server.
    pub(crate) fn next(&mut self) -> Json {
        self.wait_for(|_| true).unwrap_or_else(|| panic!("nothing said: {}", self.stderr()))
    }

    /// Sends one message.
    pub(crate) fn say(&mut self, message: &Json) {
        self.write(format!("{message}\n"));
    }

    /// Sends raw bytes.
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes.as_ref()).unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.stderr.path()).unwrap()
    }

    /// Disconnects, and waits for the server to end.
    pub(crate) fn leave(mut self) -> Ended {
        drop(self.stdin.take());
        self.end()
    }

    /// Waits for the server to end.
    pub(crate) fn end(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "the server did not end: {}", self.stderr());
            thread::sleep(Duration::from_millis(2));
        };
        let waiting = self.waiting.iter().map(Json::to_string);
        let said = waiting.chain(self.lines.iter()).collect();
        Ended { code: status.code(), stderr: self.stderr(), said }
    }

    /// Returns the first message that matches, now or soon.
    fn wait_for(&mut self, meant: impl Fn(&Json) -> bool) -> Option<Json> {
        if let Some(found) = self.waiting.iter().position(&meant) {
            return self.waiting.remove(found);
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let line = match self.lines.recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            };
            let message: Json = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("{error} in what the server said: {line}"));
            if meant(&message) {
                return Some(message);
            }
            self.waiting.push_back(message);
        }
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the params of a request for a revision.
pub(crate) fn meant(revision: Revision, mut params: Json) -> Json {
    if revision == Revision::Stateless {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientInfo"] = client();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    params
}

fn client() -> Json {
    json!({"name": "specs", "version": "1"})
}

/// The program, serving over HTTP. Ended when dropped.
pub(crate) struct McpHost {
    child: Child,
    stderr: NamedTempFile,
    pub(crate) at: At,
}

/// A server on this machine that is reached by HTTP, one request per connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct At {
    pub(crate) port: u16,
    /// The headers of every request.
    pub(crate) headers: Vec<(String, String)>,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// The lines of the head after the first, their names in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl McpHost {
    /// Serves `skills/` of a world at any port.
    pub(crate) fn new(world: &World, arguments: &[&str]) -> Self {
        let stderr = NamedTempFile::new().unwrap();
        let child = world
            .command(["mcp", "--http", "127.0.0.1:0"].iter().chain(&SKILLS).chain(arguments))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr.reopen().unwrap())
            .spawn()
            .unwrap();
        let mut host = Self { child, stderr, at: At::default() };
        let start = Instant::now();
        host.at.port = loop {
            let said = host.stderr();
            let port =
                said.split_once("http://127.0.0.1:").and_then(|it| it.1.split_once("/mcp\n"));
            if let Some((port, _)) = port {
                break port.parse().unwrap();
            }
            assert!(start.elapsed() < PATIENCE, "it is nowhere: {said}");
            thread::sleep(Duration::from_millis(2));
        };
        if arguments.contains(&"--run") && !arguments.contains(&"--token-file") {
            let token = loop {
                let said = host.stderr();
                let token = said.split_once("token: ").and_then(|it| it.1.split_once('\n'));
                if let Some((token, _)) = token {
                    break token.to_owned();
                }
                assert!(start.elapsed() < PATIENCE, "there is no token: {said}");
                thread::sleep(Duration::from_millis(2));
            };
            host.at = host.at.with("Authorization", &format!("Bearer {token}"));
        }
        host
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.stderr.path()).unwrap()
    }

    /// Waits for the server to end.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for McpHost {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl At {
    /// Returns the same with one more header.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut at = self.clone();
        at.headers.push((name.to_owned(), value.to_owned()));
        at
    }

    /// Begins a session, and returns its address.
    pub(crate) fn session(&self) -> Self {
        let Revision::Handshake(version) = V2025 else { unreachable!() };
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client()});
        let begun = self.ask("initialize", params);
        assert_eq!(begun.status, 200, "{begun:?}");
        let session = begun.header("mcp-session-id").unwrap();
        let at = self.with("Mcp-Session-Id", session).with("MCP-Protocol-Version", version);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(at.post(&initialized.to_string()).status, 202);
        at
    }

    /// Like [`ask`](Self::ask), for a client of 2026-07-28.
    pub(crate) fn ask_stateless(&self, method: &str, params: Json) -> Answered {
        let at = self.with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method);
        let at = match params["name"].as_str() {
            Some(name) => at.with("Mcp-Name", name),
            None => at,
        };
        at.ask(method, meant(Revision::Stateless, params))
    }

    pub(crate) fn ask(&self, method: &str, params: Json) -> Answered {
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&asked.to_string())
    }

    pub(crate) fn post(&self, body: &str) -> Answered {
        let at = self
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream");
        at.send("POST", "/mcp", body)
    }

    /// Sends a request, and reads the whole response.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Answered {
        let mut text = String::new();
        let mut stream = self.open(method, path, body);
        stream.read_to_string(&mut text).unwrap();
        Answered::read(&text)
    }

    /// Sends a request, and returns the stream of the response.
    pub(crate) fn open(&self, method: &str, path: &str, body: &str) -> TcpStream {
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

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

impl Answered {
    pub(crate) fn read(text: &str) -> Self {
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

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|it| it.split_once(": "));
        lines.into_iter().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Returns its one message, plain or as an event.
    pub(crate) fn json(&self) -> Json {
        let events = self.body.lines().filter_map(|it| it.strip_prefix("data:"));
        let event = events.map(str::trim).find(|it| !it.is_empty());
        let text = event.unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
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
