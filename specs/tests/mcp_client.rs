//! A client of `prowess mcp` that speaks lines of JSON-RPC itself, so that no SDK hides what is said.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

use crate::world::{SKILLS, World};

/// Longer than any answer takes here.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which protocol a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    /// `initialize` comes first.
    Handshake(&'static str),
    /// Every request says for itself what `initialize` said: 2026-07-28.
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
    /// What came in while something else was waited for.
    waiting: VecDeque<Json>,
    /// What the server said of itself: the result of `initialize` or `server/discover`.
    pub(crate) server: Json,
}

/// How the server ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    /// What it had still to say.
    pub(crate) said: Vec<String>,
}

impl McpClient {
    /// Serves `skills/` of a world to a client of the last revision with a handshake.
    pub(crate) fn new(world: &World) -> Self {
        Self::with(world, V2025, &[])
    }

    /// The same in another revision, with more arguments.
    pub(crate) fn with(world: &World, revision: Revision, arguments: &[&str]) -> Self {
        let mut client = Self::silent(world, arguments);
        client.begin(revision);
        client
    }

    /// Starts the server and says nothing yet.
    pub(crate) fn silent(world: &World, arguments: &[&str]) -> Self {
        let stderr = NamedTempFile::new().unwrap();
        let mut child = world
            .command(["mcp"].iter().chain(&SKILLS).chain(arguments))
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

    /// Begins as a revision asks.
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

    /// Asks, and gives the result; an error is none.
    pub(crate) fn request(&mut self, method: &str, params: Json) -> Json {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Asks for what cannot be had, and gives the error.
    pub(crate) fn error(&mut self, method: &str, params: Json) -> Json {
        let mut answer = self.ask(method, params);
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].take()
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: Json) -> Json {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Asks, and gives the whole answer.
    pub(crate) fn ask(&mut self, method: &str, params: Json) -> Json {
        let id = self.post(method, params);
        self.answer(id)
    }

    /// Asks without waiting; the answer will have the id that is given.
    pub(crate) fn post(&mut self, method: &str, params: Json) -> u64 {
        self.asked += 1;
        let id = self.asked;
        let params = meant(self.revision, params);
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to what was asked.
    pub(crate) fn answer(&mut self, id: u64) -> Json {
        self.wait_for(|it| it["id"] == id && it.get("method").is_none())
            .unwrap_or_else(|| panic!("no answer to {id}: {}", self.stderr()))
    }

    pub(crate) fn notify(&mut self, method: &str, params: Json) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Waits for a notification of the server, and gives its params.
    pub(crate) fn notification(&mut self, method: &str) -> Json {
        let mut found = self
            .wait_for(|it| it["method"] == method)
            .unwrap_or_else(|| panic!("no {method}: {}", self.stderr()));
        found["params"].take()
    }

    /// Whatever the server says next.
    pub(crate) fn next(&mut self) -> Json {
        self.wait_for(|_| true).unwrap_or_else(|| panic!("nothing said: {}", self.stderr()))
    }

    /// Sends one message.
    pub(crate) fn say(&mut self, message: &Json) {
        self.write(format!("{message}\n"));
    }

    /// Sends bytes as they are, whatever they are.
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

    /// Leaves, and waits for the server to end.
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

    /// The first message that is meant, now or soon.
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

/// The params of a request as a revision wants them.
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
