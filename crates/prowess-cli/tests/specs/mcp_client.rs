//! Clients of `prowess mcp` that speak JSON-RPC and HTTP themselves, so that no SDK hides a
//! message.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Instant,
};

use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

use crate::{
    mcp_messages::{At, Revision, V2025, client, meant},
    world::{PATIENCE, SKILLS, World, until},
};

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
        until("the server has ended", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
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

/// The program, serving over HTTP. Ended when dropped.
pub(crate) struct McpHost {
    child: Child,
    stderr: NamedTempFile,
    pub(crate) at: At,
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
        host.at.port = host.said_between("http://127.0.0.1:", "/mcp\n").parse().unwrap();
        if arguments.contains(&"--run") && !arguments.contains(&"--token-file") {
            let token = host.said_between("token: ", "\n");
            host.at = host.at.with("Authorization", &format!("Bearer {token}"));
        }
        host
    }

    /// Waits until it has said these, and returns what is between them.
    fn said_between(&self, before: &str, after: &str) -> String {
        let mut between = String::new();
        until(&format!("it has said `{before}`"), || {
            let said = self.stderr();
            let found = said.split_once(before).and_then(|it| it.1.split_once(after));
            between = found.map_or_else(String::new, |it| it.0.to_owned());
            found.is_some()
        });
        between
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
