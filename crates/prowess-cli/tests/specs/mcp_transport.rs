//! Clients of `prowess mcp`, well-behaved and not.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::{
    mcp_client::{McpClient, McpHost},
    mcp_messages::{At, Revision, V2025, line_with},
    world::{SKILLS, World, until},
};

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
    fn what_there_is_to_say_about_the_server_is_said_on_stderr() {
        let world = world().skill("two", "Does two things. Use when two things are to be done.");
        let mut client = McpClient::with(&world, V2025, &["--verbose"]);
        assert_eq!(client.call("find_skills", json!({"query": "one"}))["isError"], false);
        let ended = client.leave();
        assert_eq!(ended.stderr, "note: loaded 2 skills\n");
        assert_eq!((ended.code, ended.said.len()), (Some(0), 0));
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
                // Signal handlers are installed before the first answer.
                client.write("?\n");
                assert_eq!(client.next()["error"]["code"], -32700);
                if has_begun {
                    client.begin(V2025);
                }
                kill_process(Pid::from_raw(client.pid().cast_signed()).unwrap(), signal).unwrap();
                let ended = client.end();
                assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{signal:?} {has_begun}");
            }
        }
    }

    #[test]
    fn a_client_that_dies_takes_the_server_with_it() {
        let world = world();
        let mut server = start(&world);
        let mut stdin = server.stdin.take().unwrap();
        stdin.write_all(BEGINNING).unwrap();
        for id in 0..200 {
            stdin.write_all(call(id).as_bytes()).unwrap();
        }
        // This is what remains of a killed process: nothing, at either end.
        drop((stdin, server.stdout.take()));
        until("the server has ended", || server.try_wait().unwrap().is_some());
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
            let world = world();
            let mut client = McpClient::silent(&world, &[]);
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
        // The id is free again.
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
        let world = world();
        let mut server = start(&world);
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

mod any_number_of_clients_are_served_over_http {
    use super::*;

    #[test]
    fn hundreds_of_sessions_are_open_at_once() {
        let host = McpHost::new(&world(), &[]);
        let clients: Vec<_> = (0..200)
            .map(|_| {
                let session = host.at.session();
                let stream = session.with("Accept", "text/event-stream").open("GET", "/mcp", "");
                (session, stream)
            })
            .collect();
        let names: BTreeSet<&String> = clients.iter().map(|it| &it.0.headers[0].1).collect();
        assert_eq!(names.len(), 200, "each has a session of its own");
        thread::scope(|scope| {
            for clients in clients.chunks(25) {
                scope.spawn(move || {
                    for (session, stream) in clients {
                        assert_eq!(line_with(stream, "HTTP/1.1"), "HTTP/1.1 200 OK");
                        let query = json!({"name": "find_skills", "arguments": {"query": "one"}});
                        let found = session.ask("tools/call", query).json();
                        assert_eq!(found["result"]["isError"], false, "{found}");
                    }
                });
            }
        });
        let taken = peak(host.pid());
        assert!(taken < 120 << 10, "{taken} KiB");
    }

    #[test]
    fn the_server_says_where_it_is_and_stops_in_good_order() {
        for signal in [Signal::INT, Signal::TERM] {
            let host = McpHost::new(&world(), &[]);
            let said = format!("note: serving at http://127.0.0.1:{}/mcp\n", host.at.port);
            assert_eq!(host.stderr(), said);
            let session = host.at.session();
            let stream = session.with("Accept", "text/event-stream").open("GET", "/mcp", "");
            line_with(&stream, "data:");
            kill_process(Pid::from_raw(host.pid().cast_signed()).unwrap(), signal).unwrap();
            assert_eq!(line_with(&stream, "no such line"), "");
            assert_eq!(host.end(), Some(0));
        }
    }
}

mod nobody_is_let_in_over_http_who_should_not_be {
    use super::*;

    #[test]
    fn other_machines_are_served_only_with_a_token() {
        let world = world();
        for address in ["0.0.0.0:0", "[::]:0", "0.0.0.0"] {
            let ran = world.run(["mcp", "--http", address].iter().chain(&SKILLS));
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{address}");
            assert!(ran.stderr.contains("can be reached from other machines"), "{}", ran.stderr);
            assert!(ran.stderr.contains("use `--token-file FILE`"), "{}", ran.stderr);
        }
        let ran = world.run(["mcp", "--token-file", "token"]);
        assert_eq!(ran.code, Some(2));
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ran = world.run(["mcp", "--http", &taken.local_addr().unwrap().to_string()]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("cannot listen on"), "{}", ran.stderr);
        for nonsense in ["", "here", "127.0.0.1:99999", "example.com:80"] {
            assert_eq!(world.run(["mcp", "--http", nonsense]).code, Some(2), "{nonsense}");
        }
    }

    #[test]
    fn whoever_has_not_the_token_is_turned_away() {
        let world = world().file("token", "open-sesame\n");
        let ran = world.run(["mcp", "--http", "--token-file", "token"].iter().chain(&SKILLS));
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("chmod 600"), "{}", ran.stderr);
        let only_own = fs::Permissions::from_mode(0o600);
        fs::set_permissions(world.path("token"), only_own).unwrap();
        let host = McpHost::new(&world, &["--token-file", "token"]);
        let at = &host.at;
        for (with, challenge) in [
            (at.clone(), "Bearer realm=\"prowess\""),
            (at.with("Authorization", "open-sesame"), "Bearer realm=\"prowess\""),
            (at.with("Authorization", "Basic b3Blbi1zZXNhbWU="), "Bearer realm=\"prowess\""),
            (at.with("Authorization", "Bearer"), "Bearer realm=\"prowess\""),
            (at.with("Authorization", "Bearer open-sesam"), WRONG),
            (at.with("Authorization", "Bearer open-sesame!"), WRONG),
            (at.with("Authorization", "Bearer OPEN-SESAME"), WRONG),
        ] {
            for method in ["GET", "POST", "DELETE", "PUT"] {
                let answered = with.send(method, "/mcp", "{}");
                let wanted = answered.header("www-authenticate");
                assert_eq!((answered.status, wanted), (401, Some(challenge)), "{with:?}");
            }
        }
        let right = at.with("Authorization", "Bearer open-sesame");
        let twice = right.with("Authorization", "Bearer open-sesame");
        assert_eq!(twice.send("POST", "/mcp", "{}").status, 401);
        let session = right.session();
        assert_eq!(session.ask("ping", json!({})).json()["result"], json!({}));
        let lower = at.with("authorization", "bearer open-sesame");
        assert_eq!(lower.ask_stateless("tools/list", json!({})).status, 200);
        // The id of a session alone gives no access.
        let id = &session.headers[1];
        assert_eq!(at.with(&id.0, &id.1).ask("ping", json!({})).status, 401);
    }

    #[test]
    fn a_name_that_is_not_ours_is_refused() {
        let host = McpHost::new(&world(), &["--allow-host", "skills.example.com"]);
        let port = host.at.port;
        let status =
            |name: &str| host.at.with("Host", name).ask_stateless("tools/list", json!({})).status;
        for own in
            ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "127.0.0.9", "skills.example.com"]
        {
            assert_eq!(status(own), 200, "{own}");
            assert_eq!(status(&format!("{own}:{port}")), 200, "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "192.168.0.7",
            "0.0.0.0",
            "evil.example:80",
            "a@127.0.0.1",
            "localhost:evil",
            "",
            "-",
        ] {
            assert!([400, 403].contains(&status(other)), "{other}");
        }
        let twice = host.at.with("Host", "localhost").with("Host", "evil.example");
        assert!([400, 403].contains(&twice.ask_stateless("tools/list", json!({})).status));
        let named = host.at.send("GET", "http://evil.example/mcp", "");
        assert_eq!(named.status, 403);
    }

    #[test]
    fn a_website_that_is_not_welcome_is_refused() {
        let host = McpHost::new(&world(), &["--allow-origin", "https://app.example.com"]);
        let from = |origin: &str| host.at.with("Origin", origin);
        for origin in [
            "https://evil.example",
            "https://app.example.com.evil.example",
            "http://app.example.com",
            "https://app.example.com:8443",
            "http://localhost.evil.example",
            "http://127.0.0.1.nip.io",
            "null",
            "file://",
            "chrome-extension://localhost",
            "",
            "http://localhost http://evil.example",
        ] {
            for method in ["GET", "POST", "OPTIONS", "DELETE"] {
                let answered = from(origin).send(method, "/mcp", "{}");
                let allowed = answered.header("access-control-allow-origin");
                assert_eq!((answered.status, allowed), (403, None), "{method} {origin}");
            }
        }
        let own = format!("http://127.0.0.1:{}", host.at.port);
        for origin in ["https://app.example.com", &own] {
            let host = host.at.with("Host", own.strip_prefix("http://").unwrap());
            let from = |origin: &str| host.with("Origin", origin);
            let asked = from(origin)
                .with("Access-Control-Request-Method", "POST")
                .with("Access-Control-Request-Headers", "content-type,mcp-session-id")
                .send("OPTIONS", "/mcp", "");
            assert_eq!(asked.status, 204, "{origin}");
            assert_eq!(asked.header("access-control-allow-origin"), Some(origin));
            assert_eq!(asked.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
            let headers = asked.header("access-control-allow-headers");
            assert_eq!(headers, Some("content-type,mcp-session-id"));
            let told = from(origin).ask_stateless("tools/list", json!({}));
            assert_eq!(told.status, 200, "{origin}");
            assert_eq!(told.header("access-control-allow-origin"), Some(origin));
            assert_eq!(told.header("vary"), Some("Origin"));
        }
        assert_eq!(host.at.send("OPTIONS", "/mcp", "").header("access-control-allow-origin"), None);
        let world = world().file("token", "open-sesame\n");
        fs::set_permissions(world.path("token"), fs::Permissions::from_mode(0o600)).unwrap();
        let host = McpHost::new(&world, &["--token-file", "token"]);
        let right = host.at.with("Authorization", "Bearer open-sesame");
        for origin in ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:1"] {
            let told = right.with("Origin", origin).ask_stateless("tools/list", json!({}));
            assert_eq!(told.status, 200, "{origin}");
            assert_eq!(told.header("access-control-allow-origin"), Some(origin));
            let told = host.at.with("Origin", origin).ask_stateless("tools/list", json!({}));
            assert_eq!(told.status, 401, "{origin}");
        }
        let evil = right.with("Origin", "http://localhost.evil.example");
        assert_eq!(evil.ask_stateless("tools/list", json!({})).status, 403);
    }

    #[test]
    fn a_server_that_runs_skills_always_has_a_token() {
        let made = |arguments: &[&str]| {
            let host = McpHost::new(&world(), arguments);
            let said = host.stderr();
            let token = said.lines().find_map(|it| it.strip_prefix("token: ")).unwrap().to_owned();
            let bare = At { headers: Vec::new(), ..host.at.clone() };
            assert_eq!(bare.ask_stateless("tools/list", json!({})).status, 401);
            let right = bare.with("Authorization", &format!("Bearer {token}"));
            assert_eq!(right.ask_stateless("tools/list", json!({})).status, 200);
            (token, said)
        };
        let (one, said) = made(&["--run"]);
        assert!(one.len() >= 32, "{one}");
        let line = format!("--header \"Authorization: Bearer {one}\"");
        assert!(
            said.contains("claude mcp add --transport http prowess http://127.0.0.1:"),
            "{said}"
        );
        assert!(said.contains(&line), "{said}");
        assert_ne!(made(&["--run"]).0, one);

        let world = world().file("token", "open-sesame\n");
        fs::set_permissions(world.path("token"), fs::Permissions::from_mode(0o600)).unwrap();
        let host = McpHost::new(&world, &["--run", "--token-file", "token"]);
        assert_eq!(host.at.ask_stateless("tools/list", json!({})).status, 401);
        assert!(!host.stderr().contains("token"), "{}", host.stderr());
        let ran = world.run(["mcp", "--run", "--http", "0.0.0.0:0"].iter().chain(&SKILLS));
        assert_eq!(ran.code, Some(2), "other machines are served with a token that is set");
    }
}

mod no_client_over_http_brings_the_server_down {
    use super::*;

    #[test]
    fn a_giant_body_is_refused_and_not_kept() {
        let host = McpHost::new(&world(), &[]);
        host.at.session();
        let before = peak(host.pid());
        for how in
            ["Content-Length: 67108864\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n4000000\r\n"]
        {
            let mut stream = host.at.connect();
            let mut reading = stream.try_clone().unwrap();
            write!(stream, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{how}").unwrap();
            let writing = thread::spawn(move || {
                let block = vec![b' '; 1 << 20];
                for _ in 0..64 {
                    if stream.write_all(&block).is_err() {
                        break;
                    }
                }
            });
            assert_eq!(line_with(&reading, "HTTP/1.1"), "HTTP/1.1 413 Payload Too Large");
            let _ = reading.read_to_end(&mut Vec::new());
            writing.join().unwrap();
        }
        assert_eq!(host.at.ask_stateless("tools/list", json!({})).status, 200);
        let grown = peak(host.pid()) - before;
        assert!(grown < 16 << 10, "{grown} KiB more");
    }
}

mod clients_are_told_what_changes {
    use super::*;

    const URI: &str = "skill://project/one/SKILL.md";

    #[test]
    fn a_change_is_told_while_the_server_watches() {
        let world = world();
        let mut old = McpClient::with(&world, V2025, &["--watch"]);
        let mut new = McpClient::with(&world, Revision::Stateless, &["--watch"]);
        let declared = json!({"subscribe": true, "listChanged": true});
        assert_eq!(old.server["capabilities"]["resources"], declared);
        assert_eq!(new.server["capabilities"]["resources"], declared);
        assert_eq!(old.request("resources/subscribe", json!({"uri": URI})), json!({}));
        let unknown =
            old.error("resources/subscribe", json!({"uri": "skill://project/no/SKILL.md"}));
        assert_eq!(unknown["code"], -32002);
        let wanted = json!({"resourcesListChanged": true, "toolsListChanged": true, "resourceSubscriptions": [URI]});
        let listening = new.post("subscriptions/listen", json!({"notifications": wanted}));
        let accepted = new.notification("notifications/subscriptions/acknowledged");
        let heard = json!({"resourcesListChanged": true, "resourceSubscriptions": [URI]});
        assert_eq!(accepted["notifications"], heard);

        world.write("skills/one/SKILL.md", "---\nname: one\ndescription: Another.\n---\n\nNew.\n");
        for client in [&mut old, &mut new] {
            client.notification("notifications/resources/list_changed");
            let updated = client.notification("notifications/resources/updated");
            assert_eq!(updated["uri"], URI);
            let read = client.request("resources/read", json!({"uri": URI}));
            assert!(read["contents"][0]["text"].as_str().unwrap().ends_with("New.\n"), "{read}");
        }
        // The number of subscriptions is limited.
        let long = json!({"uri": format!("skill://project/one/{}", "x".repeat(600))});
        assert_eq!(old.error("resources/subscribe", long)["code"], -32602);
        let forms = (0..256u32).map(|form| -> String {
            let letters = "SKILL.md".chars().enumerate();
            let written = letters.map(|(place, letter)| match form >> place & 1 {
                1 => format!("%{:02x}", u32::from(letter)),
                _ => letter.to_string(),
            });
            format!("skill://project/one/{}", written.collect::<String>())
        });
        let taken = forms
            .filter(|it| old.ask("resources/subscribe", json!({"uri": it})).get("error").is_none());
        let taken: Vec<String> = taken.collect();
        assert_eq!(taken.len(), 128);
        for uri in taken {
            assert_eq!(old.request("resources/unsubscribe", json!({"uri": uri})), json!({}));
        }
        new.notify("notifications/cancelled", json!({"requestId": listening}));

        world.write("skills/two/SKILL.md", "---\nname: two\ndescription: Two.\n---\n");
        world.remove("skills/one/SKILL.md");
        old.notification("notifications/resources/list_changed");
        until("only the other skill is listed", || {
            let listed = old.request("resources/list", json!({}));
            listed["resources"].as_array().is_some_and(|it| it.len() == 1 && it[0]["name"] == "two")
        });
        thread::sleep(Duration::from_millis(500));
        let is_updated = |it: &String| it.contains("resources/updated");
        assert!(!old.leave().said.iter().any(is_updated));
        assert_eq!(new.leave().said, [""; 0]);
    }

    #[test]
    fn without_watching_nothing_is_promised() {
        let world = world();
        let mut old = McpClient::new(&world);
        let mut new = McpClient::with(&world, Revision::Stateless, &[]);
        for client in [&old, &new] {
            assert_eq!(client.server["capabilities"]["resources"], json!({}));
        }
        let uri = json!({"uri": URI});
        assert_eq!(old.error("resources/subscribe", uri.clone())["code"], -32601);
        assert_eq!(old.error("resources/unsubscribe", uri.clone())["code"], -32601);
        let listen = json!({"notifications": {"resourcesListChanged": true}});
        assert_eq!(new.error("subscriptions/listen", listen)["code"], -32601);
        world.write("skills/two/SKILL.md", "---\nname: two\ndescription: Two.\n---\n");
        thread::sleep(Duration::from_millis(1200));
        let listed = old.request("resources/list", json!({}));
        assert_eq!(listed["resources"].as_array().unwrap().len(), 1);
        assert_eq!(old.leave().said, [""; 0]);
        assert_eq!(new.leave().said, [""; 0]);
    }
}

/// The header for a wrong token.
const WRONG: &str = "Bearer realm=\"prowess\", error=\"invalid_token\"";

fn world() -> World {
    World::new().skill("one", "Does one thing. Use when one thing is to be done.")
}

/// Returns the server info of `initialize` or `server/discover`.
fn server_name(revision: Revision) -> Json {
    match revision {
        Revision::Handshake(_) => json!("prowess"),
        Revision::Stateless => Json::Null,
    }
}

/// Starts the server, to be used by hand.
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

/// Returns the peak memory of a process, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
