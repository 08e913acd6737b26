//! Clients of `prowess mcp`, well-behaved and not.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::{
    mcp_client::{McpClient, Revision, V2025},
    world::{SKILLS, World},
};

/// What is done at once, on a busy machine.
const SOON: Duration = Duration::from_secs(3);

mod a_client_speaks_with_the_program_over_its_standard_input_and_output {
    use super::*;

    #[test]
    fn both_kinds_of_client_are_answered() {
        let world = world();
        let mut told = Vec::new();
        for revision in [Revision::Handshake("2025-06-18"), V2025, Revision::Stateless] {
            let mut client = McpClient::with(&world, revision, &[]);
            assert_eq!(client.server["serverInfo"]["name"], server_name(revision));
            told.push(client.request("tools/list", json!({}))["tools"].take());
            let ended = client.leave();
            assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{revision:?}");
        }
        assert!(told[0].as_array().is_some_and(|it| !it.is_empty()));
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0], told[2]);
    }

    #[test]
    fn more_requests_than_are_worked_at_at_once_are_all_answered() {
        let mut client = McpClient::new(&world());
        let asked: Vec<u64> = (0..500)
            .map(|_| {
                let arguments = json!({"query": "one"});
                client.post("tools/call", json!({"name": "find_skills", "arguments": arguments}))
            })
            .collect();
        for id in asked {
            assert_eq!(client.answer(id)["result"]["isError"], false);
        }
        assert_eq!(client.leave().said, [""; 0]);
    }

    #[test]
    fn what_was_asked_before_leaving_is_answered() {
        let mut client = McpClient::new(&world());
        let asked: BTreeSet<u64> = (0..100).map(|_| client.post("tools/list", json!({}))).collect();
        let ended = client.leave();
        assert_eq!(ended.code, Some(0));
        let answered = ended.said.iter().map(|it| {
            let answer: Json = serde_json::from_str(it).unwrap();
            answer["id"].as_u64().unwrap()
        });
        assert_eq!(answered.collect::<BTreeSet<u64>>(), asked);
    }

    #[test]
    fn the_server_ends_when_somebody_ends_it() {
        let world = world();
        for signal in [Signal::INT, Signal::TERM] {
            for has_begun in [false, true] {
                let mut client = McpClient::silent(&world, &[]);
                // It listens for signals before it answers anything.
                client.write("?\n");
                assert_eq!(client.next()["error"]["code"], -32700);
                if has_begun {
                    client.begin(V2025);
                }
                let start = Instant::now();
                kill_process(Pid::from_raw(client.pid().cast_signed()).unwrap(), signal).unwrap();
                let ended = client.end();
                assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{signal:?} {has_begun}");
                assert!(start.elapsed() < SOON, "{signal:?} {has_begun}");
            }
        }
    }

    #[test]
    fn a_client_that_dies_takes_the_server_with_it() {
        let mut server = start(&world());
        let mut stdin = server.stdin.take().unwrap();
        stdin.write_all(BEGINNING).unwrap();
        for id in 0..200 {
            stdin.write_all(call(id).as_bytes()).unwrap();
        }
        // This is what is left of a process that was killed: nothing, at either end.
        drop((stdin, server.stdout.take()));
        let start = Instant::now();
        while server.try_wait().unwrap().is_none() {
            if start.elapsed() > SOON {
                server.kill().unwrap();
                panic!("the server lives on");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

mod what_is_no_message_is_answered_with_what_is_wrong_with_it {
    use super::*;

    #[test]
    fn every_malformed_line_gets_the_error_that_belongs_to_it() {
        let mut client = McpClient::new(&world());
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let deep_params =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{deep}}}}}"#);
        let cases: Vec<(&[u8], i64, Json)> = vec![
            (b"hello", -32700, Json::Null),
            (b"{\"jsonrpc\":\"2.0\",", -32700, Json::Null),
            (b"\0\0\0", -32700, Json::Null),
            (b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\xfe\",\"method\":\"ping\"}", -32700, Json::Null),
            (deep.as_bytes(), -32700, Json::Null),
            (deep_params.as_bytes(), -32700, Json::Null),
            (b"Content-Length: 12", -32700, Json::Null),
            (b"42", -32600, Json::Null),
            (b"null", -32600, Json::Null),
            (b"\"ping\"", -32600, Json::Null),
            (b"[]", -32600, Json::Null),
            (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Json::Null),
            (b"{}", -32600, Json::Null),
            (br#"{"id":"a","method":"ping"}"#, -32600, json!("a")),
            (br#"{"jsonrpc":"1.0","id":"b","method":"ping"}"#, -32600, json!("b")),
            (br#"{"jsonrpc":2.0,"id":"c","method":"ping"}"#, -32600, json!("c")),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Json::Null),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, Json::Null),
            (br#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600, Json::Null),
            (br#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600, Json::Null),
            (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Json::Null),
            (br#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#, -32600, Json::Null),
            (br#"{"jsonrpc":"2.0","id":"d","method":7}"#, -32600, json!("d")),
            (br#"{"jsonrpc":"2.0","id":"e"}"#, -32600, json!("e")),
            (br#"{"jsonrpc":"2.0","id":"f","method":"ping","result":{}}"#, -32600, json!("f")),
            (br#"{"jsonrpc":"2.0","id":"g","method":"tools/call"}"#, -32602, json!("g")),
            (
                br#"{"jsonrpc":"2.0","id":"h","method":"tools/call","params":[1]}"#,
                -32602,
                json!("h"),
            ),
            (
                br#"{"jsonrpc":"2.0","id":"i","method":"tools/call","params":{"name":5}}"#,
                -32602,
                json!("i"),
            ),
            (br#"{"jsonrpc":"2.0","id":"j","method":"no/such/method"}"#, -32601, json!("j")),
            (br#"{"jsonrpc":"2.0","id":"","method":"no/such/method"}"#, -32601, json!("")),
            (br#"{"jsonrpc":"2.0","id":-7,"method":"no/such/method"}"#, -32601, json!(-7)),
        ];
        for (line, code, id) in &cases {
            client.write([*line, b"\n"].concat());
            let answer = client.next();
            let line = String::from_utf8_lossy(line);
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{line}");
            assert!(answer["error"]["message"].as_str().is_some_and(|it| !it.is_empty()), "{line}");
        }
        for line in [
            "",
            "   ",
            "\r",
            r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/unheard"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":"what"}"#,
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","error":"no"}"#,
        ] {
            client.write(format!("{line}\n"));
            client.write("{\"jsonrpc\":\"2.0\",\"id\":\"still\",\"method\":\"ping\"}\r\n");
            assert_eq!(
                client.next(),
                json!({"jsonrpc": "2.0", "id": "still", "result": {}}),
                "{line}"
            );
        }
        let ended = client.leave();
        assert_eq!((ended.code, &*ended.stderr, ended.said.len()), (Some(0), "", 0));
    }

    #[test]
    fn nothing_that_comes_before_the_beginning_ends_the_server() {
        for revision in [V2025, Revision::Stateless] {
            let mut client = McpClient::silent(&world(), &[]);
            client.notify("notifications/initialized", json!({}));
            client.notify("notifications/cancelled", json!({"requestId": 1}));
            client.say(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
            client.say(&json!({"jsonrpc": "2.0", "error": {"code": 1, "message": "no"}}));
            client.say(&json!({"jsonrpc": "2.0", "id": "early", "method": "tools/list"}));
            assert_eq!(client.next()["id"], "early");
            client
                .say(&json!({"jsonrpc": "2.0", "id": "bad", "method": "initialize", "params": {}}));
            assert_eq!(client.next()["error"]["code"], -32602);
            client.notify("notifications/initialized", json!({}));
            client.begin(revision);
            assert!(!client.request("tools/list", json!({}))["tools"][0].is_null());
        }
    }

    #[test]
    fn a_request_with_an_id_that_is_in_use_is_refused() {
        let mut client = McpClient::new(&world());
        let twice = json!({"jsonrpc": "2.0", "id": "twin", "method": "tools/call",
            "params": {"name": "find_skills", "arguments": {"query": "one"}}});
        client.write(format!("{twice}\n{twice}\n"));
        let (first, second) = (client.next(), client.next());
        let (refused, answered) =
            if first["error"].is_null() { (second, first) } else { (first, second) };
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Json::Null));
        assert_eq!(
            (&answered["id"], &answered["result"]["isError"]),
            (&json!("twin"), &json!(false))
        );
        // It is free again.
        client.say(&twice);
        assert_eq!(client.next()["id"], "twin");
    }

    #[test]
    fn half_a_line_is_no_message() {
        let mut client = McpClient::new(&world());
        client.write(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
        let ended = client.leave();
        assert_eq!((ended.code, &*ended.stderr, ended.said.len()), (Some(0), "", 0));
    }
}

mod no_client_makes_the_server_take_much_memory {
    use super::*;

    #[test]
    fn a_giant_message_is_refused_and_not_kept() {
        let mut client = McpClient::new(&world());
        let before = peak(client.pid());
        client.write(r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":""#);
        let block = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            client.write(&block);
        }
        client.write("\"}}\n");
        let refused = client.next();
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Json::Null));
        assert_eq!(client.request("ping", json!({})), json!({}));
        let grown = peak(client.pid()) - before;
        assert!(grown < 12 << 10, "{grown} KiB more");
    }

    #[test]
    fn a_client_that_does_not_read_is_not_read_from() {
        const MANY: usize = 10_000;
        let mut server = start(&world());
        let mut stdin = server.stdin.take().unwrap();
        let written = Arc::new(AtomicUsize::new(0));
        let count = written.clone();
        let writer = thread::spawn(move || {
            stdin.write_all(BEGINNING).unwrap();
            for id in 0..MANY {
                stdin.write_all(call(id).as_bytes()).unwrap();
                count.store(id + 1, Ordering::Relaxed);
            }
        });
        let mut last = usize::MAX;
        while last != written.load(Ordering::Relaxed) {
            last = written.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(700));
        }
        assert!(last < MANY / 5, "{last} requests were taken in");
        let taken = peak(server.id());
        let answers = BufReader::new(server.stdout.take().unwrap()).lines();
        let answered = answers.map_while(Result::ok).take(MANY + 1).count();
        assert_eq!(answered, MANY + 1);
        writer.join().unwrap();
        server.wait().unwrap();
        assert!(taken < 80 << 10, "{taken} KiB");
    }
}

fn world() -> World {
    World::new().skill("one", "Does one thing. Use when one thing is to be done.")
}

/// What `initialize` and `server/discover` say about who serves.
fn server_name(revision: Revision) -> Json {
    match revision {
        Revision::Handshake(_) => json!("prowess"),
        Revision::Stateless => Json::Null,
    }
}

/// The server, spoken with by hand.
fn start(world: &World) -> Child {
    world
        .command(["mcp"].iter().chain(&SKILLS))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

const BEGINNING: &[u8] = br#"{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"specs","version":"1"}}}
"#;

fn call(id: usize) -> String {
    let params = json!({"name": "find_skills", "arguments": {"query": "one"}});
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    format!("{call}\n")
}

/// How much memory a process has taken at the most, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
