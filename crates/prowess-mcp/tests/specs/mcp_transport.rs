//! Clients over HTTP, well-behaved and not.

use std::{
    borrow::Cow,
    io::{Read as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use prowess_mcp::server::{Http, ServeOptions, ServerState, SkillServer};
use prowess_runtime::{
    Action, Authorizer, DenyAll, Outcome, Policy, Tool, Toolbox, tool::ToolFuture, toolbox::Calls,
};
use prowess_testing::serving::{McpHost, Serving};
use serde_json::{Value as Json, json};

use crate::{
    mcp_messages::{At, Revision, line_with, meant},
    world::{World, until},
};

/// The timeout of a server that does not wait for long.
const BRIEF: Duration = Duration::from_secs(2);

mod any_number_of_clients_are_served_over_http {
    use super::*;

    #[test]
    fn both_kinds_of_client_are_answered_over_http() {
        let world = world();
        let host = McpHost::new(&world, Serving::default());
        let session = host.at.session();
        let told = session.ask("tools/list", json!({})).json();
        assert!(!told["result"]["tools"][0].is_null());
        let stateless = host.at.ask_stateless("tools/list", json!({}));
        assert_eq!((stateless.status, stateless.header("mcp-session-id")), (200, None));
        let stateless = stateless.json();
        assert_eq!(stateless["result"]["tools"], told["result"]["tools"]);
        assert_eq!(stateless["result"]["resultType"], "complete");
        let discovered = host.at.ask_stateless("server/discover", json!({})).json();
        assert!(!discovered["result"]["capabilities"]["tools"].is_null());

        let stream = session.with("Accept", "text/event-stream").open("GET", "/mcp", "");
        assert_eq!(line_with(&stream, "HTTP/1.1"), "HTTP/1.1 200 OK");
        line_with(&stream, "data:");
        assert_eq!(session.send("DELETE", "/mcp", "").status, 204);
        assert_eq!(session.ask("tools/list", json!({})).status, 404);
        assert_eq!(session.send("DELETE", "/mcp", "").status, 404);
        // Its stream is over too.
        assert_eq!(line_with(&stream, "no such line"), "");
    }

    #[test]
    fn there_are_only_so_many_sessions_and_connections() {
        let http = Http { sessions: 3, ..Http::default() };
        let host = within(http, Toolbox::new(authorizer()));
        let mut sessions: Vec<At> = (0..3).map(|_| host.at.session()).collect();
        let begin = |host: &McpHost| {
            host.at.ask(
                "initialize",
                json!({"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "specs", "version": "1"}}),
            )
        };
        let refused = begin(&host);
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("60")));
        assert_eq!(sessions[0].ask("ping", json!({})).json()["result"], json!({}));
        assert_eq!(sessions.remove(0).send("DELETE", "/mcp", "").status, 204);
        until("the place of the session is free", || begin(&host).status == 200);
        assert_eq!(begin(&host).status, 503);

        let http = Http { sessions: 3, connections: 2, idle: BRIEF, ..Http::default() };
        let host = within(http, Toolbox::new(authorizer()));
        let sessions: Vec<At> = (0..3).map(|_| host.at.session()).collect();
        until("silent sessions make room", || begin(&host).status == 200);
        let is_gone = |it: &At| it.ask("ping", json!({})).status == 404;
        assert!(sessions.iter().any(is_gone));

        let held = [host.at.connect(), host.at.connect()];
        until("there is no room for another connection", || {
            let mut said = String::new();
            let _ = host.at.connect().read_to_string(&mut said);
            said.starts_with("HTTP/1.1 503")
        });
        drop(held);
        until("there is room again", || {
            let asked = std::panic::catch_unwind(|| host.at.ask_stateless("tools/list", json!({})));
            asked.is_ok_and(|it| it.status == 200)
        });
    }

    #[test]
    fn one_client_does_not_take_all_sessions() {
        let http = Http { sessions: 5, sessions_per_client: 3, ..Http::default() };
        let host = within(http, Toolbox::new(authorizer()));
        let begin = || {
            let client = json!({"name": "specs", "version": "1"});
            let params =
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
            host.at.ask("initialize", params)
        };
        let mut sessions: Vec<At> = (0..3).map(|_| host.at.session()).collect();
        let refused = begin();
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("60")));
        assert_eq!(sessions.remove(0).send("DELETE", "/mcp", "").status, 204);
        until("the place of the session is free", || begin().status == 200);
        assert_eq!(begin().status, 503);
        assert_eq!(sessions[0].ask("ping", json!({})).status, 200);
        // Requests without a session are answered all the same.
        assert_eq!(host.at.ask_stateless("tools/list", json!({})).status, 200);
    }

    #[test]
    fn a_call_that_is_cancelled_is_stopped() {
        let slow = Arc::new(Slow::default());
        let host = within(Http::default(), Toolbox::new(authorizer()).with(slow.clone()));
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "slow", "arguments": {}}});
        let session = host.at.session();
        let asked = session.clone();
        let waiting = thread::spawn(move || asked.post(&call.to_string()));
        until("the call runs", || slow.running.load(Ordering::SeqCst) == 1);
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 7}});
        assert_eq!(session.post(&cancel.to_string()).status, 202);
        until("the call is stopped", || slow.running.load(Ordering::SeqCst) == 0);
        assert_eq!(waiting.join().unwrap().status, 200);

        let at = host.at.with("MCP-Protocol-Version", "2026-07-28");
        let at = at.with("Mcp-Method", "tools/call").with("Mcp-Name", "slow");
        let at = at.with("Content-Type", "application/json");
        let at = at.with("Accept", "application/json, text/event-stream");
        let params = meant(Revision::Stateless, json!({"name": "slow", "arguments": {}}));
        let call = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params});
        let stream = at.open("POST", "/mcp", &call.to_string());
        until("the call runs", || slow.running.load(Ordering::SeqCst) == 1);
        drop(stream);
        until("the call is stopped", || slow.running.load(Ordering::SeqCst) == 0);
    }
}

mod no_client_over_http_brings_the_server_down {
    use super::*;

    #[test]
    fn what_is_no_request_gets_the_status_that_belongs_to_it() {
        let host = McpHost::new(&world(), Serving::default());
        let at = &host.at;
        for (body, code) in [
            ("", -32700),
            ("hello", -32700),
            ("{", -32700),
            ("42", -32600),
            ("[]", -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, -32602),
        ] {
            let answered = at.post(body);
            assert_eq!(answered.status, 400, "{body}");
            assert_eq!(answered.header("content-type"), Some("application/json"), "{body}");
            assert_eq!(answered.json()["error"]["code"], code, "{body}");
        }
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(at.post(ping).status, 400, "no session");
        assert_eq!(at.with("Mcp-Session-Id", "nobody").post(ping).status, 404);
        assert_eq!(at.with("Mcp-Session-Id", "../../etc").post(ping).status, 404);
        assert_eq!(at.with("MCP-Protocol-Version", "1999-01-01").post(ping).status, 400);
        assert_eq!(at.send("POST", "/mcp", ping).status, 406);
        let accepting = at.with("Accept", "application/json, text/event-stream");
        assert_eq!(accepting.send("POST", "/mcp", ping).status, 415);
        assert_eq!(at.send("GET", "/mcp", "").status, 406);
        assert_eq!(at.with("Accept", "text/event-stream").send("GET", "/mcp", "").status, 400);
        assert_eq!(at.send("DELETE", "/mcp", "").status, 400);
        for method in ["PUT", "PATCH", "TRACE"] {
            assert_eq!(at.send(method, "/mcp", "").status, 405, "{method}");
        }
        for path in ["/", "/mcp/", "/mcp/../mcp", "/etc/passwd", "/MCP", "//mcp"] {
            assert_eq!(at.send("POST", path, ping).status, 404, "{path}");
        }
        let unknown = at.ask_stateless("no/such/method", json!({}));
        assert_eq!((unknown.status, unknown.json()["error"]["code"].clone()), (404, json!(-32601)));
        let mismatched = at.with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "ping");
        let params = meant(Revision::Stateless, json!({}));
        assert_eq!(mismatched.ask("tools/list", params).status, 400);

        for nonsense in [
            "hello\r\n\r\n".to_owned(),
            "\0\0\0\0\r\n\r\n".to_owned(),
            "GET /mcp HTTP/9.9\r\n\r\n".to_owned(),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".to_owned(),
            format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)),
            format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(5000)),
        ] {
            let mut stream = at.connect();
            // The server may have hung up before it has read everything.
            let _ = stream.write_all(nonsense.as_bytes());
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said);
            let said = String::from_utf8_lossy(&said);
            let is_refused = said.is_empty() || said.starts_with("HTTP/1.1 4");
            assert!(is_refused, "{said} to {nonsense:.40}");
        }
        assert_eq!(at.ask_stateless("tools/list", json!({})).status, 200);
    }

    #[test]
    fn a_client_that_takes_its_time_is_not_waited_for() {
        let host = within(Http { patience: BRIEF, ..Http::default() }, Toolbox::new(authorizer()));
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
        let body = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
        for (sent, expected) in [
            (String::new(), ""),
            ("POST /mcp HT".to_owned(), ""),
            (head.to_owned(), ""),
            (format!("{head}{body}"), "HTTP/1.1 408 Request Timeout"),
        ] {
            let mut stream = host.at.connect();
            stream.write_all(sent.as_bytes()).unwrap();
            assert_eq!(host.at.ask_stateless("tools/list", json!({})).status, 200);
            let mut said = String::new();
            stream.read_to_string(&mut said).unwrap();
            assert_eq!(said.lines().next().unwrap_or_default(), expected, "{sent}");
        }
    }

    #[test]
    fn a_client_that_does_not_read_its_answer_is_cut_off() {
        let calls = Calls { output: 1 << 26, ..Calls::default() };
        let toolbox = Toolbox::new(authorizer()).with(Arc::new(Long)).with_calls(calls);
        let host = within(Http { connections: 1, patience: BRIEF, ..Http::default() }, toolbox);
        let at = host.at.with("MCP-Protocol-Version", "2026-07-28");
        let at = at.with("Mcp-Method", "tools/call").with("Mcp-Name", "long");
        let at = at.with("Content-Type", "application/json");
        let at = at.with("Accept", "application/json, text/event-stream");
        let params = meant(Revision::Stateless, json!({"name": "long", "arguments": {}}));
        let call = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params});
        let stream = at.open("POST", "/mcp", &call.to_string());
        assert_eq!(line_with(&stream, "HTTP/1.1"), "HTTP/1.1 200 OK");
        // While it exists, there is no room for another.
        until("there is room again", || {
            let asked = std::panic::catch_unwind(|| host.at.ask_stateless("tools/list", json!({})));
            asked.is_ok_and(|it| it.status == 200)
        });
        drop(stream);
    }
}

mod clients_are_told_what_changes {
    use super::*;

    const URI: &str = "skill://project/one/SKILL.md";

    #[test]
    fn a_change_is_told_on_the_stream_of_a_session() {
        let world = world();
        let host = McpHost::new(&world, Serving { watches: true, ..Serving::default() });
        let session = host.at.session();
        let stream = session.with("Accept", "text/event-stream").open("GET", "/mcp", "");
        assert_eq!(line_with(&stream, "HTTP/1.1"), "HTTP/1.1 200 OK");
        let subscribed = session.ask("resources/subscribe", json!({"uri": URI})).json();
        assert_eq!(subscribed["result"], json!({}));
        // Others come and go meanwhile.
        drop((host.at.session(), host.at.session().send("DELETE", "/mcp", "")));
        world.write("skills/one/SKILL.md", "---\nname: one\ndescription: Another.\n---\n");
        line_with(&stream, "list_changed");
        assert!(line_with(&stream, "resources/updated").contains(URI));
        let read = session.ask("resources/read", json!({"uri": URI})).json();
        assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("Another."));
    }
}

/// Serves a toolbox.
fn within(http: Http, toolbox: Toolbox) -> McpHost {
    let library = Arc::new(world().load());
    let served = ServerState::new(Arc::new(library), toolbox, ServeOptions::default());
    McpHost::of(SkillServer::new(Arc::new(served)), http)
}

fn authorizer() -> Arc<Authorizer> {
    Arc::new(Authorizer::new(Policy::default(), Arc::new(DenyAll)))
}

/// A tool that never ends by itself.
#[derive(Debug, Default)]
struct Slow {
    running: Arc<AtomicUsize>,
}

impl Tool for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn description(&self) -> Cow<'_, str> {
        "Takes its time.".into()
    }

    fn input_schema(&self) -> Json {
        json!({"type": "object"})
    }

    fn action(&self, _: &Json) -> Result<Action, Box<Outcome>> {
        Ok(Action::Tell)
    }

    fn perform<'a>(&'a self, _: Action, _: Json) -> ToolFuture<'a> {
        struct Work(Arc<AtomicUsize>);
        impl Drop for Work {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        Box::pin(async {
            self.running.fetch_add(1, Ordering::SeqCst);
            let _work = Work(self.running.clone());
            std::future::pending().await
        })
    }
}

/// A tool with a long output.
#[derive(Debug)]
struct Long;

impl Tool for Long {
    fn name(&self) -> &str {
        "long"
    }

    fn description(&self) -> Cow<'_, str> {
        "Says much.".into()
    }

    fn input_schema(&self) -> Json {
        json!({"type": "object"})
    }

    fn action(&self, _: &Json) -> Result<Action, Box<Outcome>> {
        Ok(Action::Tell)
    }

    fn perform<'a>(&'a self, _: Action, _: Json) -> ToolFuture<'a> {
        Box::pin(async { Outcome::ok("x".repeat(1 << 25)) })
    }
}

fn world() -> World {
    World::new().skill("one", "Does one thing. Use when one thing is to be done.")
}
