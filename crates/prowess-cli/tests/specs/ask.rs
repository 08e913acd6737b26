//! Asking an agent at the command line.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process},
};
use serde_json::{Value as Json, json};

use crate::{
    model_server::{Answer, KEY, ModelServer},
    server::answer,
    world::{Ran, World, program, until, with_code},
};

/// Runs `ask` with a server and a key.
pub(crate) fn ask(world: &World, server: &ModelServer, arguments: &[&str]) -> Ran {
    run(world, server, "ask", arguments)
}

fn run(world: &World, server: &ModelServer, command: &str, arguments: &[&str]) -> Ran {
    let url = server.url();
    let named = [command, "--base-url", &url, "--model", "test-model"];
    let all: Vec<&str> = named.iter().chain(arguments).copied().collect();
    world.run_with_env(&[("OPENAI_API_KEY", KEY)], &all)
}

/// Returns an answer that is streamed in exactly these pieces.
fn said_in(pieces: impl Iterator<Item = String>) -> Answer {
    let event = |delta: Json, end: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": end});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let said = pieces.map(|it| event(json!({"content": it}), None));
    let body: String = said.chain([event(json!({}), Some("stop"))]).collect();
    Answer::bytes(answer("200 OK", "content-type: text/event-stream\r\n", &body))
}

/// Starts `ask` with a server, without waiting for it.
fn start(world: &World, server: &ModelServer, arguments: &[&str]) -> Child {
    Command::new(program())
        .args(["ask", "--base-url", &server.url(), "--model", "test-model"])
        .args(arguments)
        .current_dir(world.path(""))
        .env_clear()
        .env("HOME", world.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("OPENAI_API_KEY", KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads the output of a child until it contains this; fails after a timeout.
pub(crate) fn hear(source: &mut impl std::io::Read, what: &str) -> String {
    let mut heard = Vec::new();
    let mut piece = [0; 256];
    while !String::from_utf8_lossy(&heard).contains(what) {
        let length = source.read(&mut piece).unwrap();
        assert!(length > 0, "it ended with {:?}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&piece[..length]);
    }
    String::from_utf8_lossy(&heard).into_owned()
}

/// Waits until a child ends.
fn ended(child: &mut Child) -> Option<i32> {
    until("it has ended", || child.try_wait().unwrap().is_some());
    child.wait().unwrap().code()
}

/// Returns whether a child can write to its standard output, which is a pipe.
fn is_writable(child: &Child) -> bool {
    let pipe = File::options().write(true).open(format!("/proc/{}/fd/1", child.id())).unwrap();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&pipe, PollFlags::OUT)], Some(&now)).unwrap() > 0
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Returns the texts of all files below a folder.
fn texts(world: &World, folder: &str) -> String {
    let mut text = String::new();
    let mut folders = vec![world.path(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => text.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap())),
            }
        }
    }
    text
}

fn sessions(world: &World) -> usize {
    fs::read_dir(world.path("home/.local/state/prowess/sessions")).map_or(0, Iterator::count)
}

/// Returns the messages of a request in the OpenAI protocol.
fn messages(body: &Json) -> Vec<(&str, &str)> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .map(|it| (it["role"].as_str().unwrap(), it["content"].as_str().unwrap_or_default()))
        .collect()
}

/// Returns a world with a skill that tries what it can reach.
fn script_skill(more: &str) -> World {
    let script = "echo \"hello $PARAM_WHO\"; touch ran; getent hosts example.com || echo alone";
    let head = format!("name: probe\ndescription: Tries what can be reached\ntype: script\n{more}");
    World::new().document("probe", format!("---\n{head}---\n\n```sh\n{script}\n```\n"))
}

/// Returns a call of that skill.
fn probe() -> Answer {
    Answer::calls([("run_skill", json!({"name": "probe", "parameters": {"who": "Ada"}}))])
}

mod what_is_asked_is_answered {
    use super::*;

    #[test]
    fn the_answer_goes_to_stdout() {
        let server = ModelServer::start([(); 3].map(|()| Answer::text("It is ä well.")));
        let world = World::new();
        let ran = ask(&world, &server, &["How is it?"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "It is ä well.\n"), "{}", ran.stderr);
        let request = &server.requests()[0];
        assert_eq!(request.header("authorization"), Some(&*format!("bearer {KEY}")));
        assert_eq!(messages(&request.body).last(), Some(&("user", "How is it?")));
        assert_eq!(request.body["model"], "test-model");
        assert!(request.body["tools"].to_string().contains("\"use_skill\""));
        let quiet = ask(&world, &server, &["How is it?", "-q", "--system", "Speak as a pirate."]);
        assert!(messages(&server.last())[0].1.starts_with("Speak as a pirate."));
        assert_eq!((quiet.stdout(), &*quiet.stderr), ("It is ä well.\n", ""));
        let verbose = ask(&world, &server, &["How is it?", "-v"]);
        assert_eq!(verbose.stdout(), "It is ä well.\n");
        for line in ["asks `test-model` (step 1)", "25 tokens read, 7 written"] {
            assert!(verbose.stderr.contains(line), "{}", verbose.stderr);
        }
    }

    #[test]
    fn what_the_model_says_is_heard_while_it_says_it() {
        let server = ModelServer::start([Answer::text("first words").then_hang()]);
        let world = World::new();
        let line = format!("exec {} ask Speak --base-url {} --model m", program(), server.url());
        let mut child = Command::new("script")
            .args(["-qefc", &line, "/dev/null"])
            .current_dir(world.path(""))
            .env("HOME", world.path("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        hear(child.stdout.as_mut().unwrap(), "first words");
        assert_eq!(child.try_wait().unwrap(), None, "it still waits");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_broke_off_is_not_among_what_is_captured() {
        let half = || Answer::text("half an ans").then_cut();
        let server = ModelServer::start([half(), Answer::text("At last.")]);
        let ran = ask(&World::new(), &server, &["Hi", "-v"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "At last.\n"), "{}", ran.stderr);
        let call = Answer::calls([("use_skill", json!({"name": "debug"}))]).saying("Let me see.");
        let server = ModelServer::start([call, half(), Answer::status(404)]);
        let ran = ask(&World::new(), &server, &["Hi"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), "Let me see.\n"), "{}", ran.stderr);
    }

    #[test]
    fn the_model_is_told_where_and_when_it_is_asked() {
        let server = ModelServer::start([Answer::text("Well.")]);
        let world = World::new();
        ask(&world, &server, &["Hi"]);
        let body = server.last();
        let system = messages(&body)[0].1;
        let directory = world.path("").canonicalize().unwrap();
        let line = format!("Working directory: {}. Date: ", directory.display());
        let behind = system.split_once(&line).unwrap_or_else(|| panic!("{system}")).1;
        let is_day = |it: &str| it.chars().all(|c| c.is_ascii_digit() || c == '-');
        assert!(is_day(&behind[..10]) && behind[10..].starts_with(". System: linux."), "{behind}");
    }

    #[test]
    fn always_shows_all_skills_that_have_room() {
        let world = World::new();
        let shown = |more: &[&str]| {
            let all = [&["ask", "--dry-run", "Hi", "--json"], more].concat();
            let skills = world.run(&all).json()["skills"].clone();
            skills.as_array().unwrap().iter().filter(|it| !it["level"].is_null()).count()
        };
        assert_eq!(shown(&["--strategy", "always"]), 7);
        assert_eq!(shown(&["--strategy", "always", "--top", "2"]), 2);
        world.write("prowess.toml", "[matching]\nmax_active = 4\n");
        assert_eq!(shown(&["--strategy", "always"]), 4);
    }

    #[test]
    fn a_skill_that_does_something_is_run_when_it_is_invoked() {
        let world = script_skill("");
        let dry = |prompt: &str| {
            world.run(["ask", prompt, "--dry-run", "--json", "--dir", "skills"]).json()
        };
        let run = "call `run_skill` with the name `probe`";
        let invoked = dry("/probe who=Ada");
        assert!(messages(&invoked["body"])[0].1.contains(run), "{invoked}");
        assert_eq!(invoked["skills"][0]["why"][0], "it is invoked");
        let mentioned = dry("what does @probe do?");
        assert!(!messages(&mentioned["body"])[0].1.contains(run), "{mentioned}");
        assert_eq!(mentioned["skills"][0]["why"][0], "it is mentioned");
    }

    #[test]
    fn a_skill_that_is_not_there_cannot_be_invoked() {
        let server = ModelServer::answering(|_| Answer::text("Well."));
        let ran = ask(&World::new(), &server, &["/creat-pr to main"]);
        assert_eq!((ran.code, server.requests().len()), (Some(1), 0), "{}", ran.stderr);
        assert!(ran.stderr.contains("did you mean `/create-pr`?"), "{}", ran.stderr);
        for fine in ["/create-pr to main", "/etc/hosts is what?"] {
            assert_eq!(ask(&World::new(), &server, &[fine]).code, Some(0));
        }
    }

    #[test]
    fn a_limit_of_a_reply_is_typed_or_set() {
        let server = ModelServer::answering(|_| Answer::text("Well."));
        let world = World::new().file("set.toml", "[model]\nmax_output = 700\n");
        ask(&world, &server, &["Hi"]);
        assert!(server.last().get("max_tokens").is_none());
        ask(&world, &server, &["Hi", "--config", "set.toml"]);
        assert_eq!(server.last()["max_tokens"], 700);
        ask(&world, &server, &["Hi", "--config", "set.toml", "--max-output", "99"]);
        assert_eq!(server.last()["max_tokens"], 99);
    }

    #[test]
    fn an_answer_that_was_cut_off_is_told_as_such() {
        let server = ModelServer::start([Answer::text("And so").cut_short(), Answer::text("All.")]);
        for (said, is_told) in [("And so\n", true), ("All.\n", false)] {
            let ran = ask(&World::new(), &server, &["Hi"]);
            assert_eq!((ran.code, ran.stdout()), (Some(0), said), "{}", ran.stderr);
            assert_eq!(ran.stderr.contains("was cut off"), is_told, "{}", ran.stderr);
        }
    }

    #[test]
    fn without_a_stream_the_answer_comes_alone() {
        let call =
            || Answer::calls([("use_skill", json!({"name": "debug"}))]).saying("Let me see.");
        let server =
            ModelServer::start([call(), Answer::text("Done."), call(), Answer::text("Done.")]);
        let world = World::new();
        let ran = ask(&world, &server, &["Go", "--no-stream"]);
        assert_eq!(ran.stdout(), "Done.\n", "{}", ran.stderr);
        assert_ne!(server.last()["stream"], true);
        let ran = ask(&world, &server, &["Go"]);
        assert_eq!(ran.stdout(), "Let me see.\nDone.\n");
    }

    #[test]
    fn m_34_the_model_takes_up_a_skill_by_a_call_like_any_other() {
        let call = Answer::calls([("use_skill", json!({"name": "create-pr"}))]);
        let server = ModelServer::start([call, Answer::text("Opened.")]);
        let ran = ask(&World::new(), &server, &["Do it"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "Opened.\n"), "{}", ran.stderr);
        let body = server.last();
        let said = messages(&body);
        let (role, result) = said.last().unwrap();
        assert_eq!(*role, "tool");
        assert!(result.contains("# Skill: create-pr") && result.contains("scripts/gather.sh"));
    }

    #[test]
    fn a_script_of_a_skill_runs_in_the_sandbox() {
        let server = ModelServer::start([probe(), Answer::text("It ran.")]);
        let world = script_skill("");
        let ran = ask(&world, &server, &["Probe", "--dir", "skills", "--yes"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "It ran.\n"), "{}", ran.stderr);
        let body = server.last();
        let result = messages(&body).last().unwrap().1;
        assert!(result.contains("hello Ada") && result.contains("alone"), "{result}");
        assert!(!world.path("ran").exists());
    }

    #[test]
    fn what_needs_a_yes_is_not_run_without_one() {
        let server = ModelServer::start([probe(), Answer::text("I may not.")]);
        let ran =
            ask(&script_skill("requires_approval: true\n"), &server, &["Probe", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "I may not.\n"), "{}", ran.stderr);
        let body = server.last();
        let result = messages(&body).last().unwrap().1;
        assert!(result.contains("refused") && !result.contains("hello"), "{result}");
        let last = ran.stderr.lines().last().unwrap();
        let is_told = last.starts_with("warning: 1 action was refused: ") && last.contains("--yes");
        assert!(is_told, "{}", ran.stderr);
    }

    #[test]
    fn a_server_of_a_skill_starts_when_the_skill_is_taken_up() {
        let take_up = || Answer::calls([("use_skill", json!({"name": "notes"}))]);
        let call = Answer::calls([("mcp__files__echo", json!({"text": "Ada"}))]);
        let server = ModelServer::start([take_up(), call, Answer::text("Well.")]);
        let source = "import json, sys\nfor line in sys.stdin:\n  asked = json.loads(line)\n  tools = [{'name': 'echo', 'inputSchema': {'type': 'object'}}]\n  said = {'initialize': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}}, 'tools/list': {'tools': tools}, 'tools/call': {'content': [{'type': 'text', 'text': 'heard ' + json.dumps(asked.get('params'))}]}}\n  if 'id' in asked: print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': said.get(asked['method'], {})}), flush=True)\n";
        let described = json!({"files": {"command": "python3", "args": ["server.py"]}});
        let world = World::new()
            .skill("notes", "Takes notes")
            .file("skills/notes/server.py", source)
            .file("skills/notes/.mcp.json", described.to_string());
        let ran = ask(&world, &server, &["Hello", "--dir", "skills", "--yes", "-v"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "Well.\n"), "{}", ran.stderr);
        let bodies: Vec<Json> = server.requests().into_iter().map(|it| it.body).collect();
        let offers = |it: &Json| it["tools"].to_string().contains("mcp__files__echo");
        assert_eq!(bodies.iter().map(offers).collect::<Vec<_>>(), [false, true, true]);
        assert!(messages(&bodies[2]).last().unwrap().1.contains("heard"), "{}", ran.stderr);
        let dry = world.run(["ask", "@notes", "--dry-run", "--dir", "skills", "--yes"]);
        assert!(dry.code == Some(0) && !dry.stdout().contains("mcp__"), "a dry run starts nothing");
        // Without approval it does not start, everything else goes on, and the user is told.
        let server = ModelServer::start([take_up(), Answer::text("Without.")]);
        world.write("skills/notes/server.py", format!("{source}# other"));
        let ran = ask(&world, &server, &["Hello", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "Without.\n"), "{}", ran.stderr);
        assert!(!offers(&server.last()));
        let warned = "warning: the server `files` of skill `notes` is not started: ";
        assert!(ran.stderr.contains(warned) && ran.stderr.contains("`--yes`"), "{}", ran.stderr);
        let body = server.last();
        let missed = "The server `files` of the skill `notes` does not run";
        assert!(messages(&body).iter().any(|it| it.1.contains(missed)), "{body}");
    }

    #[test]
    fn somebody_at_a_terminal_is_asked() {
        for (typed, ran_it) in [("y\n", true), ("n\n", false)] {
            let server = ModelServer::start([probe(), Answer::text("Well.")]);
            let world = script_skill("requires_approval: true\n");
            let arguments = format!("ask Probe --dir skills --model m --base-url {}", server.url());
            let ran = world.run_at_terminal(typed, &arguments);
            assert_eq!(ran.code, Some(0), "{}", ran.stdout());
            for part in ["echo \"hello $PARAM_WHO\"", "May prowess run the skill `probe`", "Well."]
            {
                assert!(ran.stdout().contains(part), "{part}: {}", ran.stdout());
            }
            let body = server.last();
            assert_eq!(messages(&body).last().unwrap().1.contains("hello Ada"), ran_it);
            // The outcome stays in the output.
            let status = if ran_it { "ok" } else { "refused" };
            let done =
                r#"run the skill `probe` with {"name":"probe","parameters":{"who":"Ada"}}: "#;
            assert!(ran.stdout().contains(&format!("{done}{status}")), "{}", ran.stdout());
        }
    }

    #[test]
    fn what_is_asked_can_come_from_stdin_and_from_files() {
        let server = ModelServer::answering(|_| Answer::text("Read."));
        let url = server.url();
        let base = ["ask", "--base-url", &url, "--model", "m"];
        let world =
            World::new().file("notes.md", "# Notes\nbuy milk\n").file("big", vec![b'a'; 9 << 20]);
        let reading = |text: &str, more: &[&str]| {
            world.run_reading(text, &base.iter().chain(more).copied().collect::<Vec<_>>())
        };
        let ran = reading("unread\n", &["Hi"]);
        assert_eq!(ran.stdout(), "Read.\n");
        assert!(ran.stderr.contains("`--file -`"), "{}", ran.stderr);
        assert!(!world.run([&base[..], &["Hi"]].concat()).stderr.contains("stdin"));
        assert_eq!(world.run([&base[..], &["make", "a", "deck"]].concat()).code, Some(0));
        assert!(server.last().to_string().contains("make a deck"), "{}", server.last());
        for arguments in [&["-"][..], &[]] {
            let ran = reading("from a pipe\n", arguments);
            assert_eq!(ran.stdout(), "Read.\n", "{}", ran.stderr);
            assert_eq!(messages(&server.last()).last().unwrap().1, "from a pipe");
        }
        reading("piped text", &["Look", "--file", "notes.md", "--file", "-"]);
        let body = server.last();
        let asked = messages(&body).last().unwrap().1;
        for part in ["Look\n", "name=\"notes.md\"", "buy milk", "name=\"stdin\"", "piped text"] {
            assert!(asked.contains(part), "{asked}");
        }
        let before = server.requests().len();
        for arguments in [&[" "][..], &[], &["-", "--file", "-"]] {
            let ran = reading("", arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        }
        for file in ["nowhere", "big", "skills"] {
            assert_eq!(reading("", &["x", "--file", file]).code, Some(2), "{file}");
        }
        assert_eq!(server.requests().len(), before);
    }

    #[test]
    fn a_base_url_without_a_scheme_is_asked_about() {
        let world = World::new();
        for host in ["127.0.0.1:18765", "localhost:18765"] {
            let ran = world.run(["ask", "Hi", "--base-url", host, "--model", "m", "-q"]);
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
            let wanted = format!("`{host}` is not a URL; did you mean `http://{host}`?");
            let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(&wanted), "{said}");
        }
    }

    #[test]
    fn every_provider_is_spoken_to_in_its_own_way() {
        let ways = [
            ("openai", "OPENAI_API_KEY", "/chat/completions", "authorization"),
            ("responses", "OPENAI_API_KEY", "/responses", "authorization"),
            ("anthropic", "ANTHROPIC_API_KEY", "/v1/messages", "x-api-key"),
            ("gemini", "GEMINI_API_KEY", ":streamGenerateContent", "x-goog-api-key"),
            ("gemini", "GOOGLE_API_KEY", ":streamGenerateContent", "x-goog-api-key"),
        ];
        for (provider, variable, path, header) in ways {
            let server = ModelServer::start([Answer::text("Here.")]);
            let url = server.url();
            let arguments =
                ["ask", "Who?", "--provider", provider, "--base-url", &url, "--model", "m"];
            let ran = World::new().run_with_env(&[(variable, KEY)], &arguments);
            assert_eq!(
                (ran.code, ran.stdout()),
                (Some(0), "Here.\n"),
                "{provider}: {}",
                ran.stderr
            );
            let request = &server.requests()[0];
            assert!(request.path.contains(path), "{}", request.path);
            assert!(request.header(header).unwrap().ends_with(KEY), "{provider}");
            assert!(!request.path.contains(KEY));
        }
    }

    #[test]
    fn a_scripted_model_says_what_stands_in_a_file() {
        let script = "{\"says\": \"One moment. \", \"calls\": [{\"name\": \"use_skill\", \"input\": {\"name\": \"debug\"}}]}\n\n{\"says\": \"Done.\"}\n";
        let world = World::new()
            .file("good.jsonl", script)
            .file("bad.jsonl", "{\"says\": \"a\"}\n{\"say\": 1}\n");
        let with = |file: &str| world.run(["ask", "x", "--provider", "scripted", "--model", file]);
        let ran = with("good.jsonl");
        assert_eq!((ran.code, ran.stdout()), (Some(0), "One moment. \nDone.\n"), "{}", ran.stderr);
        let ran = with("bad.jsonl");
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("line 2 of `bad.jsonl`"), "{}", ran.stderr);
    }
}

mod what_happens_can_be_seen {
    use super::*;

    #[test]
    fn markdown_is_rendered_where_there_are_colours() {
        let text = "# Tea\n\nUse `hot` water:\n\n```sh\nboil\n```\n";
        let colored = "\x1b[1m\x1b[4mTea\x1b[0m\n\nUse \x1b[36mhot\x1b[0m water:\n\n    \x1b[36mboil\x1b[0m\n";
        let server =
            ModelServer::answering(move |_| said_in(text.split_inclusive('e').map(str::to_owned)));
        let world =
            World::new().document("tea", format!("---\nname: tea\ndescription: a\n---\n\n{text}"));
        for flags in [&[][..], &["--no-stream"]] {
            let paint = [flags, &["--color", "always"]].concat();
            assert_eq!(
                run(&world, &server, "ask", &[&["Hi"], &paint[..]].concat()).stdout(),
                colored
            );
            assert_eq!(run(&world, &server, "ask", &[&["Hi"], flags].concat()).stdout(), text);
        }
        let url = server.url();
        let talk =
            format!("printf 'Hi\\n' | \"$0\" chat --color always --base-url {url} --model m");
        let said = world.run_script(&talk);
        assert!(said.stdout().contains(colored), "{:?}", said.stdout());
        let show = ["show", "tea", "--dir", "skills"];
        let shown = world.run([&show[..], &["--color", "always"]].concat());
        assert!(shown.stdout().ends_with(colored), "{:?}", shown.stdout());
        assert!(world.run(show).stdout().ends_with(text));
    }

    #[test]
    fn a_block_of_an_answer_is_shown_before_it_is_finished() {
        let text = "# Tea\n\nPour *hot* water over the leaves in the pot, and wait.\n\n1. green: 2 minutes\n2. black &#27;[2J: \x1b[2J4 minutes\n\n| tea | minutes |\n|---|--:|\n| green | 2 |\n\nDone";
        let expected = "Tea\n\nPour hot water over the leaves in the\npot, and wait.\n\n1. green: 2 minutes\n2. black \\u{1b}[2J: \\u{1b}[2J4 minutes\n\ntea   │ minutes\n──────┼────────\ngreen │       2\n\nDone\n";
        for length in [1, 7, 1000] {
            let server = ModelServer::answering(move |_| {
                let signs: Vec<char> = text.chars().collect();
                let pieces: Vec<String> =
                    signs.chunks(length).map(|it| it.iter().collect()).collect();
                said_in(pieces.into_iter())
            });
            let ask = format!("ask Hi -q --color always --base-url {} --model m", server.url());
            let line = format!("stty rows 10 cols 40; TERM=xterm exec {} {ask}", program());
            let ran = World::new().run_script(&format!("script -qefc '{line}' /dev/null"));
            assert_eq!(ran.code, Some(0), "{}", ran.stdout());
            assert_eq!(screen(ran.stdout()), expected, "{length}: {:?}", ran.stdout());
            let drafts = ran.stdout().matches("A\r\x1b[J").count();
            assert_eq!(drafts > 60, length == 1, "{length}: {drafts}");
        }
    }

    /// The lines that a terminal shows in the end, after all that was drawn again, without styles.
    fn screen(output: &str) -> String {
        let output = output.replace("\r\n", "\n");
        let mut lines: Vec<String> = vec![String::new()];
        for (number, piece) in output.split("\x1b[").enumerate() {
            let end = piece.find(|it: char| it.is_ascii_alphabetic()).filter(|_| number > 0);
            let (code, text) = end.map_or(("m", piece), |it| piece.split_at(it + 1));
            if let Some(up) = code.strip_suffix('A') {
                lines.truncate(lines.len() - up.parse::<usize>().unwrap());
                *lines.last_mut().unwrap() = String::new();
            }
            assert!(code.ends_with(['A', 'J', 'K', 'm']), "{code}");
            let mut rows = text.split('\n');
            lines.last_mut().unwrap().push_str(rows.next().unwrap().trim_start_matches('\r'));
            lines.extend(rows.map(str::to_owned));
        }
        lines.join("\n")
    }

    #[test]
    fn the_log_has_no_key_that_is_known() {
        let call = json!({"command": format!("ls {KEY}")});
        let server = ModelServer::start([
            Answer::calls([("execute_command", call.clone())]),
            Answer::text("Well."),
            Answer::calls([("execute_command", call)]),
            Answer::text("Well."),
        ]);
        let world = World::new().file("key", KEY);
        fs::set_permissions(world.path("key"), fs::Permissions::from_mode(0o600)).unwrap();
        let url = server.url();
        let typed = ["ask", "Hi", "--base-url", &url, "--model", "m"];
        world.run_with_env(&[("OPENAI_API_KEY", KEY)], &typed);
        world.run([&typed[..], &["--key-file", "key"]].concat());
        let log = world.path("home/.local/state/prowess/audit.jsonl");
        let log = fs::read_to_string(log).unwrap();
        assert_eq!((log.matches("ls [masked]").count(), log.matches(KEY).count()), (2, 0), "{log}");
    }

    fn calls() -> [Answer; 3] {
        [
            Answer::calls([("use_skill", json!({"name": "create-pr"}))]),
            Answer::calls([("read_file", json!({"path": "scripts/gather.sh"}))]),
            Answer::text("All done."),
        ]
    }

    #[test]
    fn m_32_a_26_one_document_has_the_answer_and_all_that_happened() {
        let server = ModelServer::start(calls());
        let ran = ask(&World::new(), &server, &["open a PR", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let json = ran.json();
        assert_eq!((&json["answer"], &json["steps"]), (&json!("All done."), &json!(3)));
        assert_eq!(json["usage"], json!({"input": 75, "output": 21, "cached": 15}));
        assert_eq!(json["error"], Json::Null);
        assert!(json["session"].is_string());
        let events = json["events"].as_array().unwrap();
        let of =
            |name: &str| -> Vec<&Json> { events.iter().filter(|it| it["event"] == name).collect() };
        assert_eq!(of("discovered")[0]["skills"], 7);
        assert_eq!(of("matched")[0]["scores"][0]["name"], "create-pr");
        assert_eq!(of("disclosed")[0]["skill"], "create-pr");
        assert!(of("disclosed").iter().any(|it| it["by"] == "read_file"), "{:#?}", of("disclosed"));
        assert_eq!(
            [of("asked").len(), of("replied").len(), of("called").len(), of("returned").len()],
            [3, 3, 2, 2]
        );
        assert_eq!(of("ended")[0]["answer"], "All done.");
    }

    #[test]
    fn events_come_as_they_happen() {
        let server = ModelServer::start([Answer::text("slow words").then_hang()]);
        let world = World::new();
        let mut child = start(&world, &server, &["Speak", "--events"]);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = String::new();
        for line in lines {
            let event: Json = serde_json::from_str(&line.unwrap()).unwrap();
            heard.push_str(
                event["text"].as_str().filter(|_| event["event"] == "heard").unwrap_or_default(),
            );
            if heard == "slow words" {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let server = ModelServer::start([Answer::text("words")]);
        let ran = ask(&world, &server, &["Speak", "--events"]);
        let last: Json = serde_json::from_str(ran.stdout().lines().last().unwrap()).unwrap();
        assert_eq!((&last["event"], &last["answer"]), (&json!("ended"), &json!("words")));
    }

    #[test]
    fn a_pipe_is_told_what_was_done() {
        let acting = || {
            let write = json!({"operation": "write", "path": "out.txt", "content": "x"});
            ModelServer::start([
                Answer::calls([("use_skill", json!({"name": "create-pr"}))]),
                Answer::calls([("file_operations", write)]),
                Answer::calls([("read_file", json!({"path": "out.txt"}))]),
                Answer::text("It is written."),
            ])
        };
        let world = World::new();
        let server = acting();
        let ran = ask(&world, &server, &["write a note", "--yes"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "It is written.\n"), "{}", ran.stderr);
        let told: Vec<&str> = ran.stderr.lines().collect();
        let count = |words: &str| told.iter().filter(|it| it.contains(words)).count();
        assert_eq!(count("uses skill `create-pr`"), 1, "{told:?}");
        assert_eq!(count("create `") + count("read `"), 1, "{told:?}");
        assert!(count("out.txt`: ok") > 0, "{told:?}");
        let ran = ask(&world, &acting(), &["write a note", "--yes", "-q"]);
        assert_eq!((ran.code, ran.stdout(), &*ran.stderr), (Some(0), "It is written.\n", ""));
    }

    #[test]
    fn a_key_that_is_a_word_rewrites_nothing() {
        let said = "Hello, an unexpected value: none of the local ones.";
        for key in ["x", "value", "Hello", "none", "local"] {
            let body = r#"{"error": {"message": "Unsupported value: temperature, unexpected"}}"#;
            let server = ModelServer::start([Answer::text(said), Answer::status(400).body(body)]);
            let (world, url) = (World::new(), server.url());
            let run = |more: &str| {
                let arguments = ["ask", "Hi", "--base-url", &url, "--model", "m", more];
                world.run_with_env(&[("OPENAI_API_KEY", key)], &arguments)
            };
            let ran = run("--events");
            let last: Json = serde_json::from_str(ran.stdout().lines().last().unwrap()).unwrap();
            assert_eq!(last["answer"], said, "{key}");
            assert!(!ran.stdout().contains("[masked]"), "{key}: {}", ran.stdout());
            let ran = run("--json");
            let wanted = "Unsupported value: temperature, unexpected";
            assert!(ran.stdout().contains(wanted), "{key}: {}", ran.stdout());
        }
    }

    #[test]
    fn no_secret_is_in_what_happened_not_even_in_pieces() {
        let own = "quite-a-plain-key-7";
        let said = format!("The key is {own}, or {KEY}, and password: hunter2x for all.");
        let masked = "The key is [masked], or sk-[masked], and password: [masked] for all.";
        for size in [1, 3, 8] {
            let chars: Vec<char> = said.chars().collect();
            let pieces = chars.chunks(size).map(|it| it.iter().collect::<String>());
            let answer = said_in(pieces);
            let server = ModelServer::answering(move |_| answer.clone());
            let world = World::new().file("key", own);
            fs::set_permissions(world.path("key"), fs::Permissions::from_mode(0o600)).unwrap();
            let ask = |more: &[&str]| {
                let named = ["Hi", "--key-file", "key", "--trace", "trace.jsonl"];
                ask(&world, &server, &[&named, more].concat())
            };
            let ran = ask(&["--events"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let events: Vec<Json> =
                ran.stdout().lines().map(|it| serde_json::from_str(it).unwrap()).collect();
            let heard = events.iter().filter(|it| it["event"] == "heard");
            let heard: Vec<&str> = heard.map(|it| it["text"].as_str().unwrap()).collect();
            assert_eq!(heard.concat(), masked);
            assert!(heard.len() > said.len() / size / 2, "{heard:?}");
            let kinds: Vec<&str> = events.iter().map(|it| it["event"].as_str().unwrap()).collect();
            let last = kinds.iter().rposition(|it| *it == "heard").unwrap();
            assert!(last < kinds.iter().position(|it| *it == "replied").unwrap(), "{kinds:?}");
            let json = ask(&["--json"]);
            assert_eq!(json.code, Some(0), "{}", json.stderr);
            let trace = fs::read_to_string(world.path("trace.jsonl")).unwrap();
            for text in [ran.stdout(), json.stdout(), &trace] {
                assert!(!text.contains(own), "{text}");
            }
            for text in [ran.stdout(), &trace] {
                assert!(!text.contains("hunter2x") && !text.contains(KEY), "{text}");
            }
        }
    }

    #[test]
    fn a_trace_is_written_to_a_file() {
        let server = ModelServer::start(calls());
        let world = World::new();
        let ran = ask(&world, &server, &["open a PR", "--trace", "trace.jsonl"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "All done.\n"), "{}", ran.stderr);
        let summary = world.run(["trace", "trace.jsonl", "--json"]);
        assert_eq!(summary.code, Some(0), "{}", summary.stderr);
        assert!(summary.stdout().contains("use_skill"), "{}", summary.stdout());
        let mode = fs::metadata(world.path("trace.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "what was said is nobody else's");
        let ran = world.run(["trace", "trace.jsonl", "--json", "-o", "page.html"]);
        assert_eq!((ran.code, world.path("page.html").exists()), (Some(2), false));
    }

    #[test]
    fn a_trace_is_added_to_nothing_but_a_trace() {
        let server = ModelServer::answering(|_| Answer::text("Well."));
        let world = World::new().file("notes.md", "# Notes\n").file("empty", "");
        for name in ["empty", "new.jsonl", "new.jsonl"] {
            let ran = ask(&world, &server, &["Hi", "--trace", name]);
            assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        }
        let before = server.requests().len();
        ask(&world, &server, &["Hi", "--session", "./session.jsonl"]);
        for name in ["notes.md", "session.jsonl"] {
            let kept = fs::read(world.path(name)).unwrap();
            let ran = ask(&world, &server, &["Hi", "--trace", name]);
            assert_eq!(ran.code, Some(1), "{name}: {}", ran.stderr);
            assert!(ran.stderr.contains("is not a trace"), "{}", ran.stderr);
            assert!(fs::read(world.path(name)).unwrap() == kept, "{name} is as it was");
        }
        let ran = ask(&world, &server, &["Hi", "--session", "./a.jsonl", "--trace", "a.jsonl"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("both the session and the trace"), "{}", ran.stderr);
        assert_eq!((server.requests().len(), world.path("a.jsonl").exists()), (before + 1, false));
    }

    #[test]
    fn a_session_and_a_trace_that_are_named_are_out_of_reach() {
        let tried = |path: &str| {
            [
                ("read_file", json!({ "path": path })),
                ("file_operations", json!({ "operation": "read", "path": path })),
                ("execute_command", json!({ "command": format!("cat {path}") })),
                (
                    "file_operations",
                    json!({ "operation": "write", "path": path, "content": "forged" }),
                ),
            ]
        };
        let calls = Answer::calls(tried("s.jsonl").into_iter().chain(tried("t.jsonl")));
        let server = ModelServer::start([calls, Answer::text("Done.")]);
        let world = World::new();
        let ran = ask(&world, &server, &["Secretly", "--session", "s.jsonl", "--trace", "t.jsonl"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let body = server.last();
        let results: Vec<_> = messages(&body).into_iter().filter(|it| it.0 == "tool").collect();
        assert_eq!(results.len(), 8);
        for (_, text) in results {
            assert!(!text.contains("Secretly"), "{text}");
        }
        for path in ["s.jsonl", "t.jsonl"] {
            let kept = fs::read_to_string(world.path(path)).unwrap();
            assert!(kept.contains("Secretly") && kept.lines().count() > 5, "{kept}");
        }
    }

    #[test]
    fn what_a_model_says_cannot_move_the_cursor() {
        let text = "a\u{1b}[2J\u{1b}]0;title\u{7}b\r\nc\u{202e}d ä\u{9b}31m";
        for piece in [1, 3, 64] {
            let call = Answer::calls([("x\u{1b}[2J", json!({"a": "\u{1b}[2J"}))]);
            let server = ModelServer::start([call, Answer::text(text).in_pieces(piece)]);
            let ran = ask(&World::new(), &server, &["Say it", "-v"]);
            ran.assert_safe();
            assert!(
                ran.stdout().starts_with("a\\u{1b}[2J")
                    && ran.stdout().contains("b\nc\\u{202e}d ä"),
                "{}",
                ran.stdout()
            );
        }
    }

    #[test]
    fn whoever_has_read_enough_ends_it() {
        let pause = Duration::from_millis(20);
        let words = Answer::text(&"many words ".repeat(200)).then_drip();
        let server = ModelServer::start([words.in_pieces(1024).slowly(pause)]);
        let world = World::new();
        let script = format!(
            "OPENAI_API_KEY=x \"$0\" ask Speak --base-url {} --model m | sleep 3",
            server.url()
        );
        let ran = world.run_script(&script);
        assert_eq!(ran.stdout(), "");
        assert!(!ran.stderr.contains("error") && !ran.stderr.contains("panic"), "{}", ran.stderr);
        server.until_hung_up();
    }
}

mod keys_go_where_their_owner_says {
    use super::*;

    #[test]
    fn a_key_that_is_not_taken_stands_nowhere() {
        let body = format!("{{\"error\": {{\"message\": \"Incorrect API key provided: {KEY}\"}}}}");
        let server = ModelServer::answering(move |_| Answer::status(401).body(&body));
        let world = World::new();
        for more in [&[][..], &["--json"], &["--events"], &["-v"]] {
            let arguments: Vec<&str> =
                ["Hi", "--trace", "trace.jsonl"].iter().chain(more).copied().collect();
            let ran = ask(&world, &server, &arguments);
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
            for text in [ran.stdout(), &ran.stderr] {
                assert!(!text.contains(KEY), "{text}");
            }
            if more.is_empty() {
                assert!(ran.stderr.contains("`OPENAI_API_KEY`"), "{}", ran.stderr);
            }
        }
        assert_eq!(server.requests().len(), 4, "what does not pass is not tried again");
        assert!(fs::read_to_string(world.path("trace.jsonl")).unwrap().contains("asked"));
        assert_eq!(sessions(&world), 4);
        for text in [texts(&world, "home"), texts(&world, "")] {
            assert!(!text.contains(KEY));
        }
    }

    #[test]
    fn a_key_in_a_file_is_taken_if_nobody_else_can_read_it() {
        let server = ModelServer::answering(|_| Answer::text("In."));
        let url = server.url();
        let world =
            World::new().file("key", format!("{KEY}\n")).file("two", "a\nb\n").folder("folder");
        let mode = |path: &str, mode: u32| {
            fs::set_permissions(world.path(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        let with = |file: &str| {
            world.run(["ask", "Hi", "--base-url", &url, "--model", "m", "--key-file", file])
        };
        for open in [0o644, 0o640, 0o620, 0o604] {
            mode("key", open);
            let ran = with("key");
            assert_eq!(ran.code, Some(2));
            assert!(ran.stderr.contains("chmod 600 key"), "{}", ran.stderr);
        }
        mode("two", 0o600);
        for bad in ["two", "folder", "nowhere"] {
            let ran = with(bad);
            assert_eq!(ran.code, Some(2), "{bad}: {}", ran.stderr);
        }
        assert_eq!(server.requests().len(), 0);
        mode("key", 0o600);
        let ran = with("key");
        assert_eq!((ran.code, ran.stdout()), (Some(0), "In.\n"), "{}", ran.stderr);
        let sent = format!("bearer {KEY}");
        assert_eq!(server.requests()[0].header("authorization"), Some(&*sent));
        let toml = format!(
            "[model]\nkey_file = \"../../../repo/key\"\nbase_url = \"{url}\"\nname = \"m\"\n"
        );
        world.write("home/.config/prowess/prowess.toml", toml);
        let ran = world.run(["ask", "Hi"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "In.\n"), "{}", ran.stderr);
        assert_eq!(server.requests()[1].header("authorization"), Some(&*sent));
        let shown = world.run(["config", "model"]);
        assert!(
            shown.stdout().contains("key\"") && !shown.stdout().contains(KEY),
            "{}",
            shown.stdout()
        );
    }

    #[test]
    fn a_key_that_others_could_read_on_its_way_is_warned_of() {
        let server = ModelServer::answering(|_| Answer::text("In."));
        // It leads to this machine as well, and is none of its own addresses.
        let open = server.url().replace("127.0.0.1", "0.0.0.0");
        for (url, key, is_warned) in
            [(&open, KEY, true), (&open, "", false), (&server.url(), KEY, false)]
        {
            let arguments = ["ask", "Hi", "--base-url", url, "--model", "m"];
            let ran = World::new().run_with_env(&[("OPENAI_API_KEY", key)], &arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "In.\n"), "{}", ran.stderr);
            assert_eq!(
                ran.stderr.contains("the key is sent unencrypted"),
                is_warned,
                "{}",
                ran.stderr
            );
        }
    }

    #[test]
    fn a_project_cannot_say_where_keys_go() {
        let theirs = ModelServer::answering(|_| Answer::text("Caught."));
        let own = ModelServer::answering(|_| Answer::text("Own."));
        let toml = format!("[model]\nbase_url = \"{}\"\nkey_file = \"key\"\n", theirs.url());
        let world = World::new().file("prowess.toml", toml).file("key", "x");
        let ran = world.run_with_env(
            &[("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", &own.url())],
            &["ask", "Hi", "--model", "m"],
        );
        assert_eq!(ran.stdout(), "Own.\n", "{}", ran.stderr);
        let ignored = "ignored `model.base_url`, `model.key_file` (";
        assert!(ran.stderr.contains(ignored), "{}", ran.stderr);
        let ran = world.run(["ask", "Hi", "--model", "m"]);
        assert_eq!(ran.code, Some(2), "without a key nothing is sent either: {}", ran.stderr);
        assert_eq!(theirs.requests().len(), 0);
        let ran = world.run(["ask", "Hi", "--model", "m", "--config", "prowess.toml"]);
        assert_eq!(ran.code, Some(2), "the key can be read by others: {}", ran.stderr);
    }

    #[test]
    fn what_is_set_for_one_provider_is_not_for_another() {
        let server = ModelServer::answering(|_| Answer::text("Here."));
        let other = ModelServer::answering(|_| Answer::text("There."));
        let toml = format!(
            "[model]\nprovider = \"openai\"\nname = \"m\"\nbase_url = \"{}\"\n",
            server.url()
        );
        let world = World::new().file("home/.config/prowess/prowess.toml", toml);
        let ran = world.run(["ask", "Hi"]);
        assert_eq!(ran.stdout(), "Here.\n", "{}", ran.stderr);
        let url = other.url();
        let arguments =
            ["ask", "Hi", "--provider", "anthropic", "--base-url", &url, "--model", "claude"];
        let keys = [("OPENAI_API_KEY", "sk-openai"), ("ANTHROPIC_API_KEY", "sk-anthropic")];
        let ran = world.run_with_env(&keys, &arguments);
        assert_eq!(ran.stdout(), "There.\n", "{}", ran.stderr);
        let request = &other.requests()[0];
        assert_eq!(request.header("x-api-key"), Some("sk-anthropic"));
        assert!(!format!("{request:?}").contains("sk-openai"));
        let ran = world.run_with_env(&keys, &["ask", "Hi", "--provider", "gemini"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("`GEMINI_API_KEY`"), "{}", ran.stderr);
        assert_eq!(server.requests().len(), 1);
    }

    #[test]
    fn without_a_model_it_is_said_how_one_is_had() {
        let world = World::new();
        let ran = world.run(["ask", "Hi"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        for way in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "--base-url http://127.0.0.1:11434/v1"] {
            assert!(ran.stderr.contains(way), "{}", ran.stderr);
        }
        let ran = world.run(["ask", "Hi", "--provider", "antropic"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("did you mean `anthropic`?"), "{}", ran.stderr);
        let ran = world.run(["ask", "Hi", "--base-url", "http://127.0.0.1:9/v1"]);
        assert!(ran.code == Some(2) && ran.stderr.contains("`--model NAME`"), "{}", ran.stderr);
        assert_eq!(sessions(&world), 0);
    }

    #[test]
    fn a_model_is_reached_through_the_proxy_of_the_network() {
        let world = World::new();
        let proxy = ModelServer::answering(|_| Answer::text("Hello through a proxy."));
        let address =
            proxy.url().trim_start_matches("http://").split('/').next().unwrap().to_owned();
        let ask = |base: &str, variables: &[(&str, &str)]| {
            let key = ("OPENAI_API_KEY", KEY);
            let variables: Vec<_> = variables.iter().copied().chain([key]).collect();
            let arguments = ["ask", "--base-url", base, "--model", "test-model", "Hi"];
            world.run_with_env(&variables, &arguments)
        };
        let named = format!("http://ann:pa%40ss@{address}");
        let ran = ask("http://model.example/v1", &[("HTTP_PROXY", &named)]);
        assert_eq!(ran.stdout(), "Hello through a proxy.\n", "{}", ran.stderr);
        let asked = proxy.requests();
        assert_eq!(asked.len(), 1);
        assert!(asked[0].path.starts_with("http://model.example/v1/"), "{}", asked[0].path);
        let authorization = asked[0].header("proxy-authorization").unwrap();
        assert!(authorization.eq_ignore_ascii_case("Basic YW5uOnBhQHNz"), "{authorization}");

        let direct = [("ALL_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "model.example")];
        let ran = ask("http://model.example/v1", &direct);
        assert!(ran.code == Some(2) && !ran.stderr.contains("proxy"), "{}", ran.stderr);
        let ran = ask(&proxy.url(), &direct[..1]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let ran = ask("https://model.example/v1", &direct[..1]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("cannot connect through the proxy `127.0.0.1:1`"),
            "{}",
            ran.stderr
        );

        let ran = ask("https://model.example/v1", &[("HTTPS_PROXY", "socks5://ann:s3cret@h:1")]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("`HTTPS_PROXY` cannot be used"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    }
}

mod a_dry_run_sends_nothing {
    use super::*;

    #[test]
    fn what_would_be_sent_is_shown_without_a_key() {
        let world = World::new();
        let ran = world.run(["ask", "--dry-run", "open a PR"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for part in [
            "[system]",
            "## Skill: create-pr",
            "[user]\nopen a PR",
            "use_skill",
            " tokens",
            "create-pr 100 %",
            "full: ",
        ] {
            assert!(ran.stdout().contains(part), "{part}: {}", ran.stdout());
        }
        assert_eq!(sessions(&world), 0);
        let json = world.run(["ask", "--dry-run", "open a PR", "--json"]).json();
        assert_eq!(json["skills"][0]["name"], "create-pr");
        assert!(json["tokens"]["total"].as_u64().unwrap() > 1000);
        assert!(json["tools"][0]["tokens"].as_u64().unwrap() > 10);
        let ran = world.run(["ask", "--dry-run", "x", "--provider", "opnai"]);
        assert_eq!(ran.code, Some(2), "what is typed wrong is said all the same");
    }

    #[test]
    fn it_shows_what_would_be_sent_to_the_letter() {
        let providers = [
            ("openai", "OPENAI_API_KEY"),
            ("responses", "OPENAI_API_KEY"),
            ("anthropic", "ANTHROPIC_API_KEY"),
            ("gemini", "GEMINI_API_KEY"),
        ];
        for (provider, variable) in providers {
            let server = ModelServer::start([Answer::text("Sent.")]);
            let url = server.url();
            let arguments =
                ["ask", "open a PR", "--provider", provider, "--base-url", &url, "--model", "m"];
            let world = World::new();
            let dry: Vec<&str> = arguments.iter().copied().chain(["--dry-run", "--json"]).collect();
            let shown = world.run(&dry).json();
            assert_eq!((server.requests().len(), &shown["provider"]), (0, &json!(provider)));
            let ran = world.run_with_env(&[(variable, KEY)], &arguments);
            assert_eq!(ran.stdout(), "Sent.\n", "{}", ran.stderr);
            // Every session has its own markers.
            let same = |it: &Json| with_code(&it.to_string(), "bcdfghjkmn");
            assert_eq!(same(&server.last()), same(&shown["body"]), "{provider}");
        }
    }

    #[test]
    fn a_dry_run_reads_a_session_and_leaves_it_as_it_is() {
        let server = ModelServer::answering(|_| Answer::text("Noted."));
        let world = World::new();
        assert_eq!(ask(&world, &server, &["I am Ada", "--session", "plan"]).code, Some(0));
        let before = texts(&world, "home/.local/state/prowess/sessions");
        for which in [&["--session", "plan"][..], &["--resume", "plan"], &["--resume"]] {
            let shown =
                ask(&world, &server, &[&["--dry-run", "Who am I?", "--json"], which].concat());
            let body = &shown.json()["body"];
            let said = [("user", "I am Ada"), ("assistant", "Noted."), ("user", "Who am I?")];
            assert_eq!(messages(body)[1..], said, "{which:?}");
        }
        let shown = ask(&world, &server, &["--dry-run", "Hi", "--json", "--session", "new"]);
        assert_eq!(messages(&shown.json()["body"])[1..], [("user", "Hi")]);
        let ran = ask(&world, &server, &["--dry-run", "Hi", "--resume", "plam"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{}", ran.stderr);
        let ran = ask(&World::new(), &server, &["--dry-run", "Hi", "--resume"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{}", ran.stderr);
        assert_eq!(texts(&world, "home/.local/state/prowess/sessions"), before);
        assert_eq!((sessions(&world), server.requests().len()), (1, 1));
    }

    #[test]
    fn a_model_is_named_where_nobody_names_one() {
        for (provider, begins) in [
            ("openai", "gpt-"),
            ("responses", "gpt-"),
            ("anthropic", "claude-"),
            ("gemini", "gemini-"),
        ] {
            let world = World::new();
            let ran = world.run(["ask", "--dry-run", "Hi", "--provider", provider]);
            let told = format!("Would send `{begins}");
            let last = ran.stdout().lines().last().unwrap_or_default();
            assert!(last.starts_with(&told) && last.contains(provider), "{last} {}", ran.stderr);
        }
    }
}

mod trouble_is_told_and_passes_where_it_can {
    use super::*;

    #[test]
    fn what_passes_is_tried_again() {
        let server = ModelServer::start([
            Answer::status(429).header("retry-after", "0"),
            Answer::status(500),
            Answer::text("half an ans").then_cut(),
            Answer::text("At last."),
        ]);
        let ran = ask(&World::new(), &server, &["Hi", "--json"]);
        assert_eq!(
            (ran.code, &ran.json()["answer"]),
            (Some(0), &json!("At last.")),
            "{}",
            ran.stderr
        );
        assert_eq!(server.requests().len(), 4);
    }

    #[test]
    fn what_does_not_pass_is_told_with_what_to_do() {
        let world = World::new();
        let server = ModelServer::start([Answer::status(404), Answer::text("no").held_back()]);
        let ran = ask(&world, &server, &["Hi"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("`--model`"), "{}", ran.stderr);
        let ran = ask(&world, &server, &["Hi"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{port}/v1");
        let ran = world.run(["ask", "Hi", "--base-url", &url, "--model", "m", "-v"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        for words in ["cannot be reached", "start the server", "`--base-url`", "--resume"] {
            assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        }
        // It is retried once, not a third time.
        assert!(
            ran.stderr.contains("attempt 2") && !ran.stderr.contains("attempt 3"),
            "{}",
            ran.stderr
        );
    }

    #[test]
    fn whoever_waits_is_told_what_for() {
        let server = ModelServer::start([
            Answer::status(429).header("retry-after", "5.1"),
            Answer::text("At last."),
        ]);
        let ran = ask(&World::new(), &server, &["Hi"]);
        assert_eq!(ran.stdout(), "At last.\n", "{}", ran.stderr);
        let said = ["it says 429", "it asks to wait 6 s", "retrying in 5 s"];
        assert!(said.iter().all(|it| ran.stderr.contains(it)), "{}", ran.stderr);
        // A server that sends nothing is waited for until the timeout.
        let server = ModelServer::answering(|_| Answer::hang());
        let url = server.url();
        let world = World::new().file("set.toml", "[model]\ntimeout = \"100ms\"\n");
        for timeout in [["--model-timeout", "100ms"], ["--config", "set.toml"]] {
            let mut arguments = vec!["ask", "Hi", "--base-url", &url, "--model", "m"];
            arguments.extend(timeout);
            let ran = world.run(&arguments);
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
            assert!(ran.stderr.contains("sent nothing for 0.1 s"), "{}", ran.stderr);
            assert!(ran.stderr.contains("`--model-timeout`"), "{}", ran.stderr);
        }
    }

    #[test]
    fn what_of_a_request_is_not_told_is_said() {
        let server = ModelServer::answering(|_| Answer::text("Well."));
        let world = World::new().file("long.txt", "some words ".repeat(20_000));
        let asking = |more: &[&str]| {
            ask(&world, &server, &[&["Sum up", "--file", "long.txt"], more].concat())
        };
        let ran = asking(&["--window", "9000"]);
        assert_eq!(ran.stdout(), "Well.\n", "{}", ran.stderr);
        let said = ran
            .stderr
            .split_once("warning: the request is too long for the window: of 220")
            .unwrap();
        assert!(said.1.contains(" are left out"), "{}", ran.stderr);
        assert!(!asking(&[]).stderr.contains("warning"));
    }

    #[test]
    fn no_further_step_is_taken_once_enough_was_spent() {
        let endless =
            || ModelServer::answering(|_| Answer::calls([("use_skill", json!({"name": "debug"}))]));
        let world =
            World::new().file("priced.toml", "[model]\ninput_price = 2\noutput_price = 10.0\n");
        let server = endless();
        let ran = ask(&world, &server, &["Hi", "--max-tokens", "60"]);
        assert_eq!((ran.code, server.requests().len()), (Some(2), 2), "{}", ran.stderr);
        assert!(ran.stderr.contains("60 tokens"), "{}", ran.stderr);
        let server = endless();
        let ran = ask(&world, &server, &["Hi", "--max-cost", "0.0002"]);
        assert_eq!((ran.code, server.requests().len()), (Some(2), 0), "{}", ran.stderr);
        assert!(ran.stderr.contains("`model.input_price`"), "{}", ran.stderr);
        let ran = ask(
            &world,
            &server,
            &["Hi", "--max-cost", "0.0002", "--config", "priced.toml", "--json"],
        );
        assert_eq!((ran.code, server.requests().len()), (Some(2), 2), "{}", ran.stderr);
        let cost = ran.json()["cost"].as_f64().unwrap();
        assert_eq!(cost.to_string(), "0.00024");
        for nothing in
            [["--max-tokens", "0"], ["--steps", "0"], ["--max-cost", "-1"], ["--window", "0"]]
        {
            let ran = ask(&world, &server, &[&["Hi"], &nothing[..]].concat());
            assert_eq!((ran.code, server.requests().len()), (Some(2), 2), "{}", ran.stderr);
            assert!(ran.stderr.contains(nothing[0]), "{}", ran.stderr);
        }
        let server = endless();
        let ran = ask(&world, &server, &["Hi", "--steps", "2"]);
        assert_eq!((ran.code, server.requests().len()), (Some(2), 2), "{}", ran.stderr);
    }
}

mod a_session_is_kept {
    use super::*;

    #[test]
    fn a_session_of_a_name_goes_on() {
        let server = ModelServer::answering(|_| Answer::text("Noted."));
        let world = World::new();
        for (first, next) in [
            (["--session", "plan"], ["--resume", "plan"]),
            (["--session", "./own.jsonl"], ["--session", "./own.jsonl"]),
        ] {
            assert_eq!(ask(&world, &server, &["I am Ada", first[0], first[1]]).code, Some(0));
            let ran = ask(&world, &server, &["Who am I?", next[0], next[1]]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let body = server.last();
            let said = &messages(&body)[1..];
            assert_eq!(
                said,
                [("user", "I am Ada"), ("assistant", "Noted."), ("user", "Who am I?")]
            );
        }
        ask(&world, &server, &["And now?", "--resume"]);
        assert_eq!(messages(&server.last()).len(), 6, "the last one of those with a name goes on");
        let file = world.path("home/.local/state/prowess/sessions/plan.jsonl");
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o077, 0);
        let before = server.requests().len();
        for bad in ["plam", "../x", "a b", ".hidden"] {
            let ran = ask(&world, &server, &["x", "--resume", bad]);
            assert_eq!(ran.code, Some(1), "{bad}: {}", ran.stderr);
        }
        assert_eq!(ask(&world, &server, &["x", "--session", "a b"]).code, Some(1));
        let ran = ask(&World::new(), &server, &["x", "--resume"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert_eq!(server.requests().len(), before);
        let ran = ask(&world, &server, &["--resume", "plan"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), ""), "there is nothing to go on with");
    }

    #[test]
    fn a_session_goes_on_after_the_program_was_killed() {
        let write = json!({"operation": "write", "path": "once.txt", "content": "x"});
        let server = ModelServer::start([
            Answer::calls([("file_operations", write)]),
            Answer::text("half").then_hang(),
            Answer::text("whole"),
        ]);
        let world = World::new();
        let mut child = start(&world, &server, &["Write it", "--session", "s", "--yes"]);
        server.until_asked(2);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(world.path("once.txt").exists());
        world.remove("once.txt");
        let ran = ask(&world, &server, &["--resume", "s", "--yes"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "whole\n"), "{}", ran.stderr);
        assert!(!world.path("once.txt").exists(), "what was done is not done again");
        let bodies: Vec<Json> = server.requests().into_iter().map(|it| it.body).collect();
        assert_eq!(bodies[1]["messages"], bodies[2]["messages"]);
    }

    #[test]
    fn whoever_interrupts_keeps_what_was_said() {
        for (kind, why) in [(Signal::INT, "interrupted"), (Signal::TERM, "terminated")] {
            let half = || Answer::text("half").then_drip();
            let server = ModelServer::start([half(), half(), Answer::text("whole")]);
            let world = World::new();
            let mut child = start(&world, &server, &["Speak", "--json"]);
            server.until_asked(1);
            signal(&child, kind);
            assert_eq!(ended(&mut child), Some(1));
            let document: Json = serde_json::from_reader(child.stdout.unwrap()).unwrap();
            assert_eq!(document["answer"], Json::Null);
            assert_eq!(document["error"], why);

            let mut child = start(&world, &server, &["Speak"]);
            server.until_asked(2);
            signal(&child, kind);
            assert_eq!(ended(&mut child), Some(1));
            server.until_hung_up();
            let mut stderr = String::new();
            child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
            assert!(stderr.contains("prowess ask --resume 2"), "{stderr}");
            let ran = ask(&world, &server, &["--resume"]);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "whole\n"), "{}", ran.stderr);
        }
    }

    #[test]
    fn the_command_that_goes_on_asks_the_same_model() {
        let server = ModelServer::answering(|_| Answer::text("Noted."));
        let (world, url) = (World::new().folder("my skills"), server.url());
        let flags = ["--base-url", &url, "--model", "test model", "--dir", "my skills"];
        let ran = world.run_reading("Hi\n", &[&["chat"], &flags[..]].concat());
        let typed = format!(" --base-url {url} --model 'test model' --dir 'my skills'`");
        let (_, command) = ran.stderr.split_once("`prowess chat --resume ").unwrap();
        assert!(command.contains(&typed), "{command}");

        let nobody = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
        let ran = world.run([&["ask", "Hi"], &nobody[..]].concat());
        let (_, command) = ran.stderr.split_once("`prowess ask --resume ").unwrap();
        assert!(command.contains(" --base-url http://127.0.0.1:9/v1 --model m`"), "{command}");
    }

    #[test]
    fn sessions_are_listed_and_removed() {
        let server = ModelServer::answering(|_| Answer::text("Noted."));
        let world = World::new();
        assert!(world.run(["sessions"]).stderr.contains("there are no saved sessions"));
        for (name, said) in [("one", "First\nwords"), ("two", "Other words\u{1b}[2J")] {
            assert_eq!(ask(&world, &server, &[said, "--session", name]).code, Some(0));
        }
        let ran = world.run(["sessions"]);
        ran.assert_safe();
        let lines: Vec<&str> = ran.stdout().lines().collect();
        assert!(lines[0].starts_with("two ") && lines[0].contains("Other words"), "{lines:?}");
        assert!(lines[1].starts_with("one ") && lines[1].ends_with("First words"), "{lines:?}");
        let ran = ask(&world, &server, &["Hi", "--resume", "nosuch"]);
        assert!(ran.stderr.contains("`prowess sessions`"), "{}", ran.stderr);
        let ran = world.run(["sessions", "--remove", "tow"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("did you mean `two`?"), "{}", ran.stderr);
        let removed = world.run(["sessions", "--remove", "two", "--json"]);
        assert_eq!(removed.json(), json!({"removed": ["two"]}));
        let left = world.run(["sessions", "--json"]).json();
        assert_eq!(left["sessions"].as_array().unwrap().len(), 1);
        assert_eq!(left["sessions"][0]["begins"], "First words");
        for (time, count) in [("30d", 1), ("1ms", 0)] {
            assert_eq!(world.run(["sessions", "--remove-older", time]).code, Some(0));
            assert_eq!(sessions(&world), count);
        }
    }

    #[test]
    fn a_second_interrupt_ends_it_at_once() {
        let much = said_in(["many words ".repeat(50_000)].into_iter());
        let server = ModelServer::start([much, Answer::text("whole")]);
        let world = World::new();
        let mut child = start(&world, &server, &["Speak"]);
        hear(child.stdout.as_mut().unwrap(), "many");
        until("all output blocks until it is read", || !is_writable(&child));
        signal(&child, Signal::INT);
        // Time to end, if it could.
        thread::sleep(Duration::from_millis(500));
        assert_eq!(child.try_wait().unwrap(), None, "it is held up");
        signal(&child, Signal::INT);
        assert_eq!(ended(&mut child), Some(130));
        let ran = ask(&world, &server, &["Go on", "--resume"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "whole\n"), "{}", ran.stderr);
        let body = server.last();
        let messages = messages(&body);
        assert!(messages.contains(&("user", "Speak")), "{messages:?}");
        assert_eq!(messages.last(), Some(&("user", "Go on")));
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_to_be() {
        let server = ModelServer::answering(|_| Answer::text("Yes."));
        let world = World::new().file("none.toml", "[agent]\nkeep_sessions = 0\n");
        for more in [&["--no-session"][..], &["--config", "none.toml"]] {
            let ran = ask(&world, &server, &[&["Hi"], more].concat());
            assert_eq!((ran.code, ran.stdout()), (Some(0), "Yes.\n"), "{}", ran.stderr);
            assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
            assert_eq!(sessions(&world), 0);
        }
        let chat = a_conversation_goes_on_line_by_line::chat;
        let ran = chat(&world, &server, "Hi\n/clear\nHi\n", &["--no-session"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(sessions(&world), 0);
        let ran = ask(&world, &server, &["Hi", "--no-session", "--session", "s"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    }

    #[test]
    fn a_home_that_cannot_be_written_stops_nobody() {
        let server = ModelServer::answering(|_| Answer::text("Yes."));
        let (world, url) = (World::new().file("file", ""), server.url());
        let state = world.path("file").join("state").display().to_string();
        let run = |more: &[&str]| {
            let arguments = ["ask", "Hi", "--base-url", &url, "--model", "m"];
            let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
            world.run_with_env(&[("OPENAI_API_KEY", KEY), ("XDG_STATE_HOME", &state)], &arguments)
        };
        let ran = run(&[]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "Yes.\n"), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("this session is not saved: ").count(), 1, "{}", ran.stderr);
        assert!(!run(&["--no-session"]).stderr.contains("not saved"));
        // A session named explicitly is required.
        assert_ne!(run(&["--session", "mine"]).code, Some(0));
    }

    #[test]
    fn old_sessions_that_nobody_named_make_room() {
        let server = ModelServer::answering(|it| match it.body.to_string().contains("Wait") {
            true => Answer::text("half").then_hang(),
            false => Answer::text("Yes."),
        });
        let world = World::new().file("few.toml", "[agent]\nkeep_sessions = 3\n");
        let mut held = start(&world, &server, &["Wait"]);
        server.until_asked(1);
        let few = ["--config", "few.toml"];
        assert_eq!(
            ask(&world, &server, &["Mine", "--session", "mine", few[0], few[1]]).code,
            Some(0)
        );
        for number in 1..=6 {
            let ran = ask(&world, &server, &[&format!("Number {number}"), few[0], few[1]]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        // Three, the named one, and the open one.
        assert_eq!(sessions(&world), 5);
        let texts = texts(&world, "home/.local/state/prowess/sessions");
        for kept in ["Wait", "Mine", "Number 4", "Number 5", "Number 6"] {
            assert!(texts.contains(kept), "{kept}: {texts}");
        }
        assert!(!texts.contains("Number 3"), "{texts}");
        let ran = ask(&world, &server, &["Again", "--resume", few[0], few[1]]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let body = server.last();
        assert!(body.to_string().contains("Number 6"), "{body}");
        held.kill().unwrap();
        held.wait().unwrap();
        let world = world.file("prowess.toml", "[agent]\nkeep_sessions = 1\n");
        let ran = ask(&world, &server, &["Once more"]);
        assert!(ran.stderr.contains("ignored `agent.keep_sessions`"), "{}", ran.stderr);
        assert_eq!(sessions(&world), 6);
    }

    #[test]
    fn a_skill_of_an_earlier_request_is_told_from_one_that_fits() {
        let server = ModelServer::answering(|_| Answer::text("Yes."));
        let world = World::new();
        let session = ["--session", "s", "--json"];
        let matched = |prompt: &str| {
            let ran = ask(&world, &server, &[&[prompt], &session[..]].concat());
            let events = ran.json()["events"].as_array().unwrap().clone();
            let matched = events.into_iter().find(|it| it["event"] == "matched").unwrap();
            let scores = matched["scores"].as_array().unwrap().clone();
            scores.into_iter().filter(|it| it["level"].is_string()).collect::<Vec<Json>>()
        };
        let first = matched("open a PR");
        assert_eq!(first[0]["name"], "create-pr");
        assert!(first.iter().all(|it| it.get("carried").is_none()), "{first:#?}");
        let second = matched("why does this test fail");
        let of = |name: &str| second.iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(of("create-pr")["carried"], true, "{second:#?}");
        assert_eq!(of("write-tests").get("carried"), None, "{second:#?}");
        let ran = ask(&world, &server, &["why does this test fail", "--session", "s", "-v"]);
        assert!(ran.stderr.contains("; carried over: create-pr"), "{}", ran.stderr);
    }

    #[test]
    fn two_programs_are_not_in_one_session() {
        let server = ModelServer::start([Answer::text("half").then_hang()]);
        let world = World::new();
        let mut child = start(&world, &server, &["Speak", "--session", "s"]);
        server.until_asked(1);
        let ran = ask(&world, &server, &["Me too", "--session", "s"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("another process"), "{}", ran.stderr);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

mod a_conversation_goes_on_line_by_line {
    use super::*;

    pub(super) fn chat(world: &World, server: &ModelServer, text: &str, more: &[&str]) -> Ran {
        let url = server.url();
        let named = ["chat", "--base-url", &url, "--model", "test-model"];
        world.run_reading(text, &named.iter().chain(more).copied().collect::<Vec<_>>())
    }

    #[test]
    fn a_conversation_that_goes_on_says_where_it_was() {
        let server = ModelServer::answering(|_| Answer::text("Noted."));
        let world = World::new();
        ask(&world, &server, &["I am Ada", "--session", "s"]);
        let ran = chat(&world, &server, "/why\n/budget\n", &["--resume", "s"]);
        let said = "continuing after 1 request; the last one was: I am Ada";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert!(ran.stdout().starts_with("no request yet"), "{}", ran.stdout());
        assert!(
            ran.stdout().contains("before that: 25 tokens read, 7 written"),
            "{}",
            ran.stdout()
        );
        assert_eq!(server.requests().len(), 1);
    }

    #[test]
    fn lines_that_cannot_be_edited_are_read_as_they_are() {
        let server = ModelServer::answering(|_| Answer::text("Well."));
        let world = World::new().file("typed", "Hello\n/quit\n");
        let ran = world.run_script(&format!(
            "exec env TERM=dumb script -qec \"$0 chat --base-url {} --model m\" /dev/null < typed",
            server.url()
        ));
        assert_eq!(ran.code, Some(0), "{}", ran.stdout());
        assert!(ran.stdout().contains("> ") && ran.stdout().contains("Well."), "{}", ran.stdout());
    }

    #[test]
    fn each_line_of_a_pipe_is_a_request() {
        let server = ModelServer::start(["One.", "Two.", "Three."].map(Answer::text));
        let text = "open a PR\n/why\n/budget\n/trace\n\n/skills\n/create-pr to main\n/creat-pr\n/etc/hosts is what?\n/help\n/clear\n/quit\nnever asked\n";
        let ran = chat(&World::new(), &server, text, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let bodies: Vec<Json> = server.requests().into_iter().map(|it| it.body).collect();
        let asked: Vec<&str> = bodies.iter().map(|it| messages(it).last().unwrap().1).collect();
        assert_eq!(asked, ["open a PR", "/create-pr to main", "/etc/hosts is what?"]);
        assert_eq!(messages(&bodies[2]).len(), 6);
        assert!(messages(&bodies[1])[0].1.contains("## Skill: create-pr"));
        for part in [
            "One.\n",
            "create-pr 100 %",
            "full: ",
            "tools ",
            "so far: 25 tokens read, 7 written (5 cached)",
            "asks `test-model`",
            "write-tests",
            "/budget",
        ] {
            assert!(ran.stdout().contains(part), "{part}: {}", ran.stdout());
        }
        assert!(ran.stderr.contains("did you mean `/create-pr`?"), "{}", ran.stderr);
    }

    #[test]
    fn each_request_of_a_pipe_can_have_a_document() {
        let server = ModelServer::start([Answer::text("One."), Answer::status(401)]);
        let ran = chat(&World::new(), &server, "First\nSecond\n", &["--json"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        let lines: Vec<Json> =
            ran.stdout().lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let [first, second] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((&first["answer"], &first["error"]), (&json!("One."), &Json::Null));
        assert!(second["answer"].is_null() && second["error"].is_string(), "{second}");
        assert_eq!(first["session"], second["session"]);
        assert!(first["events"].as_array().unwrap().len() > 1, "{first}");
        let ran = chat(&World::new(), &server, "/help\n/skills\n/why\n/budget\n", &["--json"]);
        let lines = ran.stdout().lines().map(|it| serde_json::from_str::<Json>(it).unwrap());
        let told =
            lines.map(|it| (it["command"].clone(), !it["lines"].as_array().unwrap().is_empty()));
        let wanted = ["help", "skills", "why", "budget"].map(|it| (json!(it), true));
        assert_eq!(told.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn a_conversation_is_taken_up_again() {
        let server = ModelServer::answering(|_| Answer::text("Noted."));
        let world = World::new();
        let ran = chat(&world, &server, "I am Ada\n", &[]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "Noted.\n"), "{}", ran.stderr);
        assert!(ran.stderr.contains("prowess chat --resume"), "{}", ran.stderr);
        let ran = chat(&world, &server, "/help\n", &[]);
        assert_eq!((ran.code, sessions(&world)), (Some(0), 1), "nothing was said: {}", ran.stderr);
        let ran = chat(&world, &server, "Who am I?", &["--resume"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "Noted.\n"), "{}", ran.stderr);
        let body = server.last();
        assert_eq!(
            messages(&body)[1..],
            [("user", "I am Ada"), ("assistant", "Noted."), ("user", "Who am I?")]
        );
    }

    #[test]
    fn at_a_terminal_names_are_completed() {
        let server = ModelServer::answering(|_| Answer::text("Right."));
        let world = World::new();
        let mut terminal = Terminal::start(&world, &server);
        terminal.hear("> ");
        terminal.type_in("use @create-p\t to\r");
        terminal.hear("Right.");
        terminal.hear("> ");
        // Input typed ahead is not lost.
        terminal.type_in("/bud\t\r/wh\t\r/quit\r");
        terminal.hear("tokens read");
        terminal.hear("create-pr 100 %");
        assert_eq!(terminal.ended(), Some(0));
        let bodies: Vec<Json> = server.requests().into_iter().map(|it| it.body).collect();
        assert_eq!(
            messages(&bodies[0]).last().unwrap().1.split_whitespace().collect::<Vec<_>>(),
            ["use", "@create-pr", "to"]
        );
        assert_eq!(bodies.len(), 1);
    }

    #[test]
    fn whoever_ends_the_program_ends_it_at_the_prompt() {
        let server = ModelServer::answering(|_| Answer::text("Right."));
        let world = World::new();
        let mut terminal = Terminal::start(&world, &server);
        terminal.hear("> ");
        terminal.type_in("half a li");
        terminal.hear("half a li");
        let children = format!("/proc/{0}/task/{0}/children", terminal.child.id());
        let pid = fs::read_to_string(children).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
        assert_eq!(terminal.ended(), Some(0));
        assert_eq!(server.requests().len(), 0);
    }

    #[test]
    fn an_interrupt_ends_the_step_and_a_second_one_the_conversation() {
        let server = ModelServer::start([Answer::text("half").then_hang(), Answer::text("whole")]);
        let world = World::new();
        let mut terminal = Terminal::start(&world, &server);
        terminal.hear("> ");
        terminal.type_in("first\r");
        terminal.hear("half");
        terminal.type_in("\u{3}");
        terminal.hear("interrupted");
        terminal.hear("> ");
        terminal.type_in("second\r");
        terminal.hear("whole");
        terminal.hear("> ");
        terminal.type_in("\u{3}");
        terminal.hear("again or Ctrl-D");
        terminal.type_in("\u{3}");
        assert_eq!(terminal.ended(), Some(0));
        let body = server.last();
        assert_eq!(messages(&body).last(), Some(&("user", "second")));
    }

    #[test]
    fn a_question_that_is_interrupted_takes_no_line() {
        let server = ModelServer::start([probe(), Answer::text("whole")]);
        let world = script_skill("requires_approval: true\n");
        let mut terminal = Terminal::start_with(&world, &server, "--dir skills");
        terminal.hear("> ");
        terminal.type_in("probe\r");
        terminal.hear("[a]lways, with any input: ");
        terminal.type_in("\u{3}");
        terminal.hear("interrupted");
        terminal.hear("> ");
        terminal.type_in("second\r");
        terminal.hear("whole");
        terminal.type_in("/quit\r");
        assert_eq!(terminal.ended(), Some(0));
        let body = server.last();
        assert_eq!(messages(&body).last(), Some(&("user", "second")));
        assert!(!body.to_string().contains("hello Ada"));
    }

    /// A terminal with a chat.
    struct Terminal {
        child: Child,
        heard: String,
        /// Dropped with it, which ends the watch.
        _watched: Sender<()>,
    }

    impl Terminal {
        fn start(world: &World, server: &ModelServer) -> Self {
            Self::start_with(world, server, "")
        }

        fn start_with(world: &World, server: &ModelServer, more: &str) -> Self {
            // Without `exec` the shell would get the interrupts as well.
            let line = format!(
                "exec {} chat --base-url {} --model test-model {more}",
                program(),
                server.url()
            );
            let child = Command::new("script")
                .args(["-qefc", &line, "/dev/null"])
                .current_dir(world.path(""))
                .env_clear()
                .envs([("PATH", "/usr/bin:/bin"), ("TERM", "xterm"), ("OPENAI_API_KEY", KEY)])
                .env("HOME", world.path("home"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let pid = Pid::from_child(&child);
            let (sender, receiver) = channel();
            // A terminal that stays silent is killed.
            thread::spawn(move || {
                let waited = receiver.recv_timeout(Duration::from_secs(60));
                if waited == Err(RecvTimeoutError::Timeout) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            });
            Self { child, heard: String::new(), _watched: sender }
        }

        fn type_in(&mut self, text: &str) {
            self.heard.clear();
            let stdin = self.child.stdin.as_mut().unwrap();
            stdin.write_all(text.as_bytes()).unwrap();
            stdin.flush().unwrap();
        }

        /// Waits until this is printed, after the text waited for before.
        fn hear(&mut self, what: &str) {
            let at = self.heard.find(what);
            let at = at.unwrap_or_else(|| {
                let more = super::hear(self.child.stdout.as_mut().unwrap(), what);
                self.heard.push_str(&more);
                self.heard.find(what).unwrap()
            });
            self.heard.drain(..at + what.len());
        }

        fn ended(mut self) -> Option<i32> {
            drop(self.child.stdin.take());
            let mut rest = String::new();
            let _ = self.child.stdout.take().unwrap().read_to_string(&mut rest);
            super::ended(&mut self.child)
        }
    }
}
