//! Configured servers, with the files, hosts and programs that their entries name.

use std::{
    fs,
    net::ToSocketAddrs as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use prowess_cli::settings::{Config, Places};
use prowess_mcp::{
    client::{McpLauncher, McpServer, ServerTimeouts},
    config::ServerSetting,
};
use prowess_runtime::{
    ApprovalStore, AuditLog, Authorizer, Launcher, Outcome, OutcomeStatus, Policy, Sandbox,
    approval::{ApproveAll, Approver, ApproverFuture, ApproverReply, Question},
    environment::InterpreterSearch,
    policy::Decision,
    preparation::EnvironmentStore,
    sandbox::{RunLimits, SandboxLevel},
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::{
    ask::ask,
    model_server::{Answer, ModelServer},
    server::{Server as Listener, answer},
    servers::{SDK, python},
    world::{Ran, World, program},
};

/// The settings of the user.
const SETTINGS: &str = "home/.config/prowess/prowess.toml";

/// A server whose only tool runs a piece of Python and returns the value of `out`.
const SERVER: &str = r#"import json, os, subprocess, sys, urllib.request
def run(code):
    own = {**globals(), 'out': None}
    try: exec(code, own)
    except BaseException as error: return f'{type(error).__name__}: {error}'
    return str(own['out'])
tool = {'name': 'run', 'inputSchema': {'type': 'object'}}
for line in sys.stdin:
    asked = json.loads(line)
    said = {
        'initialize': lambda it: {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}},
        'tools/list': lambda it: {'tools': [tool]},
        'tools/call': lambda it: {'content': [{'type': 'text', 'text': run(it['arguments']['code'])}], 'isError': it['arguments'].get('fails', False)},
    }.get(asked['method'])
    if 'id' in asked:
        answer = {'result': said(asked['params'])} if said else {'error': {'code': -32601, 'message': 'no such method'}}
        if asked['params'].get('arguments', {}).get('is_error'): answer = {'error': {'code': -32603, 'message': answer['result']['content'][0]['text']}}
        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **answer}), flush=True)
"#;

const PATIENCE: ServerTimeouts = ServerTimeouts {
    start: Duration::from_secs(30),
    discovery: Duration::from_secs(15),
    call: Duration::from_secs(30),
    stop: Duration::from_millis(500),
};

/// A home, a current project, and a server in a folder of its own.
struct Stage {
    world: World,
    runtime: Runtime,
    level: SandboxLevel,
    search: InterpreterSearch,
    environments: Option<EnvironmentStore>,
}

impl Stage {
    fn new() -> Self {
        let world = World::new().file("tools/server.py", SERVER).folder("project");
        let home = Some(fs::canonicalize(world.path("home")).unwrap());
        let search = InterpreterSearch { home, ..InterpreterSearch::default() };
        let runtime = Runtime::new().unwrap();
        Self { world, runtime, level: SandboxLevel::Strong, search, environments: None }
    }

    fn path(&self, path: &str) -> String {
        self.world.path(path).display().to_string()
    }

    /// Returns settings with the server, and more arguments and keys of it.
    fn settings(&self, arguments: &[&str], keys: &str) -> String {
        let script = self.path("tools/server.py");
        let arguments: Vec<&str> =
            [&*script].into_iter().chain(arguments.iter().copied()).collect();
        format!("[servers.x]\ncommand = \"python3\"\nargs = {arguments:?}\n{keys}\n")
    }

    fn set(&self, arguments: &[&str], keys: &str) {
        self.world.write(SETTINGS, self.settings(arguments, keys));
    }

    fn start(&self) -> Result<McpServer, Box<Outcome>> {
        self.start_asking(Arc::new(ApproveAll))
    }

    /// Starts the first configured server.
    fn start_asking(&self, approver: Arc<dyn Approver>) -> Result<McpServer, Box<Outcome>> {
        let (starter, set) = self.starter(approver);
        self.runtime.block_on(starter.connect(&set))
    }

    /// Returns the launcher, and the first configured server.
    fn starter(&self, approver: Arc<dyn Approver>) -> (McpLauncher, ServerSetting) {
        let project = fs::canonicalize(self.world.path("project")).unwrap();
        let places = Places {
            user: Some(self.world.path("home/.config/prowess")),
            from: Some(project.clone()),
            home: self.search.home.clone(),
            ..Places::default()
        };
        let config = Config::load(&places).unwrap();
        let withheld = vec![self.world.path("home/.local/state/prowess")];
        let policy = Policy { secret_reads: Decision::Ask, withheld, ..config.policy(&project) };
        let authorizer = Arc::new(Authorizer::new(policy, approver));
        let sandbox = Sandbox::new(Launcher::program(program()), SandboxLevel::Landlock);
        let starter =
            McpLauncher::new(authorizer, sandbox.at_most(self.level), RunLimits::default())
                .with_interpreters(self.search.clone())
                .with_environments(self.environments.clone())
                .with_directory(project)
                .with_patience(PATIENCE);
        (starter, config.servers.value.0[0].clone())
    }

    fn call(&self, server: &McpServer, tool: &str, input: Json) -> Outcome {
        let name = format!("__{tool}");
        let tools = server.tools();
        let found = tools.iter().find(|it| it.name().ends_with(&name));
        let found = found.unwrap_or_else(|| panic!("no tool `{tool}` of `{}`", server.name()));
        self.runtime.block_on(found.call(input))
    }

    /// Returns the result of a piece of Python in a running server.
    fn probe(&self, server: &McpServer, code: &str) -> String {
        let outcome = self.call(server, "run", json!({ "code": code }));
        assert_eq!(outcome.status, OutcomeStatus::Ok, "{outcome:?}");
        outcome.output.unwrap().as_str().unwrap().to_owned()
    }

    /// Returns the content of a file as the server reads it, or its error.
    fn read(&self, server: &McpServer, path: &str) -> String {
        self.probe(server, &format!("out = open({path:?}).read()"))
    }

    /// Runs the program in the project.
    fn prowess(&self, words: &[&str]) -> Ran {
        let mut command = self.world.command(words);
        let output = command.current_dir(self.world.path("project")).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        Ran { code: output.status.code(), out: output.stdout, stderr }
    }
}

fn levels() -> [SandboxLevel; 2] {
    [SandboxLevel::Strong, SandboxLevel::Landlock]
}

fn is_denied(said: &str) -> bool {
    ["FileNotFoundError", "PermissionError", "Read-only file system", "OSError: [Errno 16]"]
        .iter()
        .any(|it| said.contains(it))
}

fn message(outcome: &Outcome) -> String {
    format!(
        "{} / {}",
        outcome.message.clone().unwrap_or_default(),
        outcome.hint.clone().unwrap_or_default()
    )
}

/// Approves, and remembers the questions.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<Question>>);

impl Approver for Asked {
    fn who(&self) -> &str {
        "person"
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        self.0.lock().unwrap().push(question.clone());
        Box::pin(async { ApproverReply::Once })
    }
}

mod a_server_is_given_what_its_entry_names {
    use super::*;

    #[test]
    fn what_an_argument_names_can_be_read_and_not_written() {
        let mut stage = Stage::new();
        let world = &stage.world;
        for path in [
            "project/data/a.txt",
            "project/b.txt",
            "project/c.txt",
            "home/notes/d.txt",
            "other/e.txt",
        ] {
            world.write(path, path);
        }
        let other = stage.path("other");
        stage.set(
            &["data", "--file=b.txt", "~/notes", &other, "https://example.com/x", "stdio"],
            "",
        );
        for level in levels() {
            stage.level = level;
            let server = stage.start().unwrap();
            assert_eq!(stage.read(&server, "data/a.txt"), "project/data/a.txt", "{level}");
            assert_eq!(stage.read(&server, "b.txt"), "project/b.txt");
            assert_eq!(stage.read(&server, &format!("{other}/e.txt")), "other/e.txt");
            let notes = "out = open(sys.argv[3] + '/d.txt').read()";
            assert_eq!(stage.probe(&server, notes), "home/notes/d.txt");
            assert!(is_denied(&stage.read(&server, "c.txt")));
            for path in ["data/a.txt", "data/new", "b.txt", &format!("{other}/new")] {
                let said = stage.probe(&server, &format!("open({path:?}, 'w').write('x')"));
                assert!(is_denied(&said), "{level} {path}: {said}");
            }
        }
    }

    #[test]
    fn an_argument_gives_away_neither_a_home_nor_secrets() {
        let mut stage = Stage::new();
        let world = &stage.world;
        let approvals = "home/.local/state/prowess/approvals.json";
        for path in
            ["home/diary.txt", "project/a.txt", "project/.env", "project/sub/id_rsa", approvals]
        {
            world.write(path, path);
        }
        for level in levels() {
            stage.level = level;
            stage.set(&["~", ".", ".env"], "");
            let server = stage.start().unwrap();
            assert!(is_denied(&stage.read(&server, &stage.path("home/diary.txt"))), "{level}");
            assert_eq!(stage.read(&server, "a.txt"), "project/a.txt");
            for path in [".env", "sub/id_rsa"] {
                let said = stage.read(&server, path);
                assert!(said.is_empty() || is_denied(&said), "{level} {path}: {said}");
            }
            stage.set(&["."], "read = [\".env\", \"~\", \"~/.local/state/prowess\"]");
            let server = stage.start().unwrap();
            assert_eq!(stage.read(&server, ".env"), "project/.env", "{level}");
            assert_eq!(stage.read(&server, &stage.path("home/diary.txt")), "home/diary.txt");
            assert!(is_denied(&stage.read(&server, &stage.path(approvals))), "{level}");
        }
    }

    #[test]
    fn a_server_writes_what_write_names() {
        let stage = Stage::new();
        let git = |words: &[&str]| {
            let ran =
                Command::new("git").args(words).current_dir(stage.world.path("project")).output();
            assert!(ran.unwrap().status.success(), "{words:?}");
        };
        git(&["init", "-q"]);
        for path in ["prowess.toml", ".vscode/tasks.json", "sub/.git/config", "a.txt"] {
            stage.world.write(format!("project/{path}"), "");
        }
        stage.set(&[], "write = [\".\"]");
        let server = stage.start().unwrap();
        let write = |server: &McpServer, path: &str| {
            let path = stage.path(&format!("project/{path}"));
            stage.probe(server, &format!("open({path:?}, 'w').write('new')"))
        };
        assert_eq!([write(&server, "a.txt"), write(&server, "new.txt")], ["None", "None"]);
        for path in [
            ".git/index",
            ".git/hooks/pre-commit",
            ".vscode/tasks.json",
            "prowess.toml",
            "sub/.git/config",
        ] {
            let said = write(&server, path);
            assert!(is_denied(&said), "{path}: {said}");
        }
        for path in [".git", ".vscode", "sub"] {
            let path = stage.path(&format!("project/{path}"));
            let said = stage.probe(&server, &format!("os.rename({path:?}, {path:?} + '2')"));
            assert!(is_denied(&said), "{path}: {said}");
        }
        drop(server);
        stage.set(&[], "write = [\".\", \".git\"]");
        let server = stage.start().unwrap();
        assert_eq!(write(&server, ".git/index"), "None");
        for path in [".git/hooks/pre-commit", ".git/config"] {
            let said = write(&server, path);
            assert!(is_denied(&said), "{path}: {said}");
        }
        drop(server);
        stage.set(&[], "write = [\"~\"]");
        let server = stage.start().unwrap();
        let home = |path: &str| stage.search.home.clone().unwrap().join(path);
        let said = stage.probe(&server, &format!("open({:?}, 'w').write('x')", home("new.txt")));
        assert_eq!(said, "None");
        for code in [
            format!("open({:?}, 'a').write('x')", home(".config/prowess/prowess.toml")),
            format!("os.rename({:?}, {:?})", home(".config/prowess"), home(".config/moved")),
            format!("os.rename({:?}, {:?})", home(".config"), home("moved")),
        ] {
            let said = stage.probe(&server, &code);
            assert!(is_denied(&said), "{code}: {said}");
        }
        drop(server);
        let read =
            |path: &str| fs::read_to_string(stage.world.path(format!("project/{path}"))).unwrap();
        assert_eq!(
            (read("a.txt"), read("new.txt"), read("prowess.toml")),
            ("new".into(), "new".into(), "".into())
        );
        assert!(!stage.world.path("project/.git/hooks/pre-commit").exists());
    }

    #[test]
    fn a_server_reaches_the_hosts_of_its_entry_and_no_others() {
        let mut stage = Stage::new();
        let host = Listener::saying(answer("200 OK", "", "words"));
        let other = Listener::saying(answer("200 OK", "", "other words"));
        let get = |url: &str| {
            format!("out = urllib.request.urlopen({url:?}, timeout=10).read().decode()")
        };
        for level in levels() {
            stage.level = level;
            stage.set(&[], &format!("hosts = [\"127.0.0.1:{}\"]", host.port()));
            let server = stage.start().unwrap();
            assert_eq!(stage.probe(&server, &get(&host.url("/"))), "words", "{level}");
            let said = stage.probe(&server, &get(&other.url("/")));
            assert!(said.contains("403"), "{level}: {said}");
            for listener in [&host, &other] {
                let past = format!(
                    "import socket\nsocket.create_connection(('127.0.0.1', {}), timeout=5)",
                    listener.port()
                );
                let said = stage.probe(&server, &past);
                assert!(said.contains("Error"), "{level}: {said}");
            }
            stage.set(&[], "");
            let server = stage.start().unwrap();
            let said = stage.probe(&server, &get(&host.url("/")));
            assert!(said.contains("Error"), "{level}: {said}");
        }
        assert_eq!((host.asked().len(), other.connections()), (2, 0));
    }

    #[test]
    fn a_project_s_entry_gives_nothing_outside_of_the_project() {
        let stage = Stage::new();
        let world = &stage.world;
        for path in ["project/server.py", "project/in.txt", "project/.env", "other/out.txt"] {
            world.write(path, if path.ends_with(".py") { SERVER } else { path });
        }
        symlink(world.path("other"), world.path("project/linked")).unwrap();
        let other = stage.path("other");
        let entry = |arguments: &[&str], keys: &str| {
            let arguments: Vec<&str> =
                ["server.py"].into_iter().chain(arguments.iter().copied()).collect();
            world.write(
                "project/prowess.toml",
                format!("[servers.x]\ncommand = \"python3\"\nargs = {arguments:?}\n{keys}\n"),
            );
        };
        entry(&[".", &other, "linked", "../other"], "read = [\".\"]");
        let asked = Arc::new(Asked::default());
        let server = stage.start_asking(asked.clone()).unwrap();
        assert_eq!(stage.read(&server, "in.txt"), "project/in.txt");
        for path in [&*format!("{other}/out.txt"), "linked/out.txt", "../other/out.txt"] {
            assert!(is_denied(&stage.read(&server, path)), "{path}");
        }
        let said = stage.read(&server, ".env");
        assert!(said.is_empty() || is_denied(&said), "{said}");
        let questions = asked.0.lock().unwrap();
        let content = questions[0].content.as_deref().unwrap();
        let project = fs::canonicalize(world.path("project")).unwrap();
        assert!(content.contains(&format!("\n# read: {}", project.display())), "{content}");
        for (key, path) in
            [("read", &*other), ("write", "linked"), ("read", "../other"), ("cwd", "linked")]
        {
            let value = if key == "cwd" { format!("{path:?}") } else { format!("[{path:?}]") };
            entry(&[], &format!("{key} = {value}"));
            let place = fs::canonicalize(world.path("project/prowess.toml")).unwrap();
            let warned = format!(
                "warning: ignored `x` in `servers` ({}:4): its `{key}` names what is outside",
                place.display()
            );
            let list = stage.prowess(&["list"]);
            assert_eq!(list.code, Some(0), "{}", list.stderr);
            assert!(list.stderr.contains(&warned), "{}", list.stderr);
            let ran = stage.prowess(&["servers", "x"]);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            let hint = "move `[servers.x]` to your own file (`";
            assert!(ran.stderr.contains(hint) && ran.stderr.contains(SETTINGS), "{}", ran.stderr);
        }
        // Nor does a program that leads there: by its first line, or by a link.
        world.write("other/pyvenv.cfg", "home = /usr/bin\n");
        fs::create_dir(world.path("other/bin")).unwrap();
        symlink("/usr/bin/python3", world.path("other/bin/python3")).unwrap();
        let print = format!("cat {other}/out.txt >&2; cat {other}/pyvenv.cfg >&2\n");
        let lines = [
            format!("#!/usr/bin/env -S --unset {other}/out.txt sh\n{print}"),
            format!("#!{other}/out.txt\n{print}"),
            format!(
                "#!/bin/sh\nexec ./linked/bin/python3 -c 'import sys; sys.stderr.write(open(\"{other}/out.txt\").read())'\n"
            ),
        ];
        let python = format!("import sys; sys.stderr.write(open('{other}/out.txt').read())");
        for line in &lines {
            world.write("project/start", line);
            fs::set_permissions(world.path("project/start"), fs::Permissions::from_mode(0o755))
                .unwrap();
            world.write("project/prowess.toml", "[servers.x]\ncommand = \"./start\"\n");
            let ran = stage.prowess(&["servers", "--yes"]);
            assert!(!ran.stderr.contains("| other/out.txt"), "{line}: {}", ran.stderr);
        }
        for command in ["./linked/bin/python3", "../other/bin/python3"] {
            let text = format!("[servers.x]\ncommand = {command:?}\nargs = [\"-c\", {python:?}]\n");
            world.write("project/prowess.toml", text);
            let ran = stage.prowess(&["servers", "--yes"]);
            assert!(!ran.stderr.contains("| other/out.txt"), "{command}: {}", ran.stderr);
        }
        // An approval is for the keys as they are.
        entry(&[], "");
        assert_eq!(stage.prowess(&["servers", "--yes"]).code, Some(0));
        assert_eq!(stage.prowess(&["servers"]).code, Some(0));
        for keys in ["read = [\".\"]", "write = [\".\"]", "hosts = [\"example.com\"]"] {
            entry(&[], keys);
            let ran = stage.prowess(&["servers"]);
            assert_eq!(ran.code, Some(1), "{keys}");
            assert!(ran.stderr.contains("--yes"), "{keys}: {}", ran.stderr);
        }
    }

    #[test]
    fn what_a_project_s_entry_cannot_have_is_for_the_user_s_own_file() {
        let stage = Stage::new();
        let world = &stage.world;
        world.write("home/notes/a.txt", "x");
        let notes = stage.search.home.clone().unwrap().join("notes");
        let venv = virtual_environment(world, "home/venv");
        virtual_environment(world, "home/own/.venv");
        symlink(&venv, world.path("project/linked")).unwrap();
        let says = format!("import sys; sys.exit('ENOENT: no such file, stat {notes:?}')");
        for (command, arguments, words) in [
            ("python3", vec!["-c", &*says], "it tried to open `~/notes`, which a project's file"),
            (venv.join("bin/python").to_str().unwrap(), vec!["-m", "own_server"], "bin/python`"),
            ("~/venv/bin/python", vec!["-m", "own_server"], "bin/python`, which is outside"),
            ("../home/venv/bin/python", vec!["-m", "own_server"], "bin/python`, which is outside"),
            ("./linked/bin/python", vec!["-m", "own_server"], "bin/python`, which is outside"),
            ("uv", vec!["--directory", "~/own", "run", "x.py"], "own`, which is outside"),
        ] {
            let entry = format!("[servers.x]\ncommand = {command:?}\nargs = {arguments:?}\n");
            world.write("project/prowess.toml", entry);
            let ran = stage.prowess(&["servers", "--yes"]);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            let hint = "move `[servers.x]` to your own file (`~/.config/prowess/prowess.toml`)";
            for it in [words, hint] {
                assert!(ran.stderr.contains(it), "{command}: {}", ran.stderr);
            }
            assert!(!ran.stderr.contains("add `read"), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_server_of_a_skill_is_given_what_somebody_has_approved() {
        let stage = Stage::new();
        let world = &stage.world;
        for path in ["project/a.txt", "project/out/b.txt", "project/c.txt"] {
            world.write(path, path);
        }
        world.write("skills/tool/SKILL.md", "---\nname: tool\ndescription: does it\n---\n");
        world.write("skills/tool/server.py", SERVER);
        let secret = stage.path("project/c.txt");
        let entry = json!({"mcpServers": {"x": {
            "command": "python3", "args": ["server.py", secret],
            "read": ["a.txt"], "write": ["out"], "hosts": ["api.example.com"],
        }}});
        world.write("skills/tool/.mcp.json", entry.to_string());
        let (asked, library) = (Arc::new(Asked::default()), world.load());
        let authorizer = Authorizer::new(Policy::default(), asked.clone());
        let sandbox = Sandbox::new(Launcher::program(program()), SandboxLevel::Landlock);
        let starter = McpLauncher::new(Arc::new(authorizer), sandbox, RunLimits::default())
            .with_directory(fs::canonicalize(world.path("project")).unwrap());
        let skill = library.get("tool").unwrap();
        let server = stage.runtime.block_on(async {
            let described = starter.described(skill).await;
            assert_eq!(described.faults, [""; 0]);
            starter.start(skill, &described.servers[0], "x", &[]).await.unwrap()
        });
        let at = |path: &str| stage.path(&format!("project/{path}"));
        assert_eq!(stage.read(&server, &at("a.txt")), "project/a.txt");
        assert!(is_denied(&stage.read(&server, &at("c.txt"))));
        for (path, may) in [("out/new", true), ("a.txt", false)] {
            let said = stage.probe(&server, &format!("open({:?}, 'w').write('x')", at(path)));
            assert_eq!(said == "None", may, "{path}: {said}");
        }
        let questions = asked.0.lock().unwrap();
        let content = questions[0].content.as_deref().unwrap();
        assert!(
            content.contains("# read: a.txt\n# write: out\n# hosts: api.example.com"),
            "{content}"
        );
    }

    #[test]
    fn keys_that_make_no_sense_are_told() {
        let stage = Stage::new();
        for (keys, code, words) in [
            ("read = \"x\"", 2, "`read` is not a list of texts"),
            ("write = [1]", 2, "`write` is not a list of texts"),
            ("hosts = [\"\"]", 2, "`hosts` has an empty text"),
            ("reads = [\"x\"]", 2, "it has no key `reads`"),
            ("read = [\"none\"]", 1, "`read` names `"),
            ("write = [\"~/none\"]", 1, "`write` names `"),
            ("hosts = [\"a b\"]", 1, "`hosts` cannot be used"),
        ] {
            stage.set(&[], keys);
            let ran = stage.prowess(&["servers"]);
            assert_eq!(ran.code, Some(code), "{keys}: {}", ran.stderr);
            assert!(ran.stderr.contains(words), "{keys}: {}", ran.stderr);
        }
        stage
            .world
            .write(SETTINGS, "[servers.x]\nurl = \"https://example.com/mcp\"\nread = [\".\"]\n");
        let ran = stage.prowess(&["servers"]);
        assert!(ran.stderr.contains("`read` is for a server with a `command`"), "{}", ran.stderr);
    }
}

/// Creates a virtual environment of the Python on the path, with a module of its own.
fn virtual_environment(world: &World, path: &str) -> PathBuf {
    let folder = world.path(path);
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&folder).status();
    assert!(made.unwrap().success());
    let libraries = fs::read_dir(folder.join("lib")).unwrap().next().unwrap().unwrap().path();
    let module = SERVER.replace("{'name': 'run'", &format!("{{'name': 'run', 'title': '{path}'"));
    fs::write(libraries.join("site-packages/own_server.py"), module).unwrap();
    folder
}

fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

mod what_a_server_writes_that_others_act_on_is_told {
    use super::*;

    #[test]
    fn files_that_others_act_on_are_told_and_can_be_undone() {
        let stage = Stage::new();
        stage.world.write("project/a.txt", "old");
        let mut git = Command::new("git");
        let git = git.args(["init", "-q"]).current_dir(stage.world.path("project"));
        assert!(git.status().unwrap().success());
        stage.set(&[], "write = [\".\", \".git\"]");
        let project = stage.path("project");
        let call = |code: &str| {
            let code = format!("os.chdir({project:?})\n{code}");
            stage.prowess(&["tool", "mcp__x__run", &json!({ "code": code }).to_string()])
        };
        let ran = call(
            "os.makedirs('.claude')\nos.makedirs('sub')\n\
             for it in ['AGENTS.md', '.claude/settings.json', '.git/commondir', 'sub/.cursorrules', 'a.txt', 'b.txt']: open(it, 'w').write('new')",
        );
        assert_eq!((ran.code, ran.stdout()), (Some(0), "None\n"), "{}", ran.stderr);
        let warning = ran.stderr.lines().find(|it| it.starts_with("warning: "));
        let warning = warning.unwrap_or_else(|| panic!("{}", ran.stderr));
        for path in ["AGENTS.md", ".claude/settings.json", ".git/commondir", "sub/.cursorrules"] {
            assert!(warning.contains(&format!("{path}` (new)")), "{path}: {warning}");
        }
        assert!(!warning.contains(".txt") && warning.contains("the server `x`"), "{warning}");
        let log = stage.world.path("home/.local/state/prowess/audit.jsonl");
        assert!(fs::read_to_string(log).unwrap().contains("AGENTS.md` (new)"));
        let id = warning.split("`prowess undo ").nth(1).unwrap().split('`').next().unwrap();
        let ran = stage.prowess(&["undo", id]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let there =
            |path: &str| fs::read_to_string(stage.world.path(format!("project/{path}"))).ok();
        assert_eq!([there("AGENTS.md"), there(".git/commondir")], [None, None]);
        assert_eq!(
            [there("a.txt"), there("b.txt")],
            [Some("new".to_owned()), Some("new".to_owned())]
        );
        let ran = call("open('b.txt', 'w').write('newer')");
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        for path in [
            ".devcontainer.json",
            ".idea/workspace.xml",
            ".gitattributes",
            ".gitmodules",
            ".nvim.lua",
            "lefthook.yml",
            "x.code-workspace",
            ".hermes.md",
            ".tool-versions",
        ] {
            let folder = "os.makedirs('.idea', exist_ok=True)";
            let ran = call(&format!("{folder}\nopen({path:?}, 'w').write('x')"));
            assert!(ran.stderr.contains(&format!("{path}` (new)")), "{path}: {}", ran.stderr);
        }
        let ran = call("os.makedirs('\\x1b[2J')\nos.symlink('/etc/passwd', '\\x1b[2J/CLAUDE.md')");
        assert!(ran.stderr.contains("CLAUDE.md` (new)"), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("check each") && !ran.stderr.contains('\x1b'),
            "{}",
            ran.stderr
        );
    }

    #[test]
    fn what_was_there_before_comes_back_whatever_was_made_beside_it() {
        let stage = Stage::new();
        stage.world.write("project/sub/AGENTS.md", "mine");
        stage.set(&[], "write = [\".\"]");
        let code = format!(
            "os.chdir({:?})\nopen('sub/AGENTS.md', 'w').write('theirs')\nos.symlink('x', 'GEMINI.md')\n\
             for it in range(2100): os.makedirs(f'.d{{it}}')\n\
             for it in range(40):\n os.makedirs(f'`z{{it}}` (new); `')\n \
             open(f'`z{{it}}` (new); `/AGENTS.md', 'w').write('theirs')",
            stage.path("project")
        );
        let ran = stage.prowess(&["tool", "mcp__x__run", &json!({ "code": code }).to_string()]);
        let warning = ran.stderr.lines().find(|it| it.starts_with("warning: "));
        let warning = warning.unwrap_or_else(|| panic!("{}", ran.stderr));
        let first = warning.split("can write: ").nth(1).unwrap();
        assert!(first.starts_with(&format!("`{}/sub/AGENTS.md` (changed)", stage.path("project"))));
        assert!(!warning.contains("`z") && warning.contains("; check the others"), "{warning}");
        let id = warning.split("`prowess undo ").nth(1).unwrap().split('`').next().unwrap();
        let ran = stage.prowess(&["undo", id]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let back = fs::read_to_string(stage.world.path("project/sub/AGENTS.md"));
        assert_eq!(back.unwrap(), "mine");
    }

    #[test]
    fn what_a_link_leads_to_counts_as_what_it_is() {
        let stage = Stage::new();
        let project = stage.world.path("project");
        for (path, to) in [
            ("AGENTS.md", "between"),
            ("between", "sub/notes.txt"),
            ("CLAUDE.md", "later.txt"),
            (".vscode", "editor"),
            ("GEMINI.md", "."),
            (".env", "values.txt"),
        ] {
            symlink(to, project.join(path)).unwrap();
        }
        for path in ["sub/notes.txt", "editor/tasks.json", "values.txt", "other.txt"] {
            stage.world.write(format!("project/{path}"), "mine");
        }
        stage.set(&[], "write = [\".\"]");
        let call = |code: &str| {
            let code = format!("os.chdir({project:?})\n{code}");
            stage.prowess(&["tool", "mcp__x__run", &json!({ "code": code }).to_string()])
        };
        let ran = call(
            "for it in ['sub/notes.txt', 'later.txt', 'editor/tasks.json', 'values.txt', 'other.txt']: open(it, 'w').write('theirs')",
        );
        let warning = ran.stderr.lines().find(|it| it.starts_with("warning: "));
        let warning = warning.unwrap_or_else(|| panic!("{}", ran.stderr));
        for (path, what, link) in [
            ("sub/notes.txt", "changed", "AGENTS.md"),
            ("later.txt", "new", "CLAUDE.md"),
            ("editor/tasks.json", "changed", ".vscode"),
        ] {
            let [path, link] = [path, link].map(|it| project.join(it).display().to_string());
            let words = format!("`{path}` ({what}, linked from `{link}`)");
            assert!(warning.contains(&words), "{words}: {warning}");
        }
        let is_ordinary = |it: &str| !warning.contains(it);
        assert!(is_ordinary("values.txt") && is_ordinary("other.txt"), "{warning}");
        let undo = |warning: &str| {
            let id = warning.split("`prowess undo ").nth(1).unwrap().split('`').next().unwrap();
            let ran = stage.prowess(&["undo", id]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        };
        undo(warning);
        let there = |path: &str| fs::read_to_string(project.join(path)).ok();
        assert_eq!(there("sub/notes.txt").as_deref(), Some("mine"));
        assert_eq!(there("editor/tasks.json").as_deref(), Some("mine"));
        assert_eq!((there("later.txt"), there("values.txt").as_deref()), (None, Some("theirs")));
        // A file that existed before its link was not created by the server.
        let ran = call(
            "os.makedirs('.cursor')\nos.symlink('../other.txt', '.cursor/mcp.json')\nopen('QWEN.md', 'w').write('x')",
        );
        assert!(ran.stderr.contains("mcp.json` (new)"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("other.txt"), "{}", ran.stderr);
        undo(&ran.stderr);
        assert_eq!((there("other.txt").as_deref(), there("QWEN.md")), (Some("theirs"), None));
    }

    #[test]
    fn undo_puts_back_modes_and_removes_empty_folders() {
        let stage = Stage::new();
        let project = stage.world.path("project");
        let own = ["a/b/.husky/pre-commit", "a/b/AGENTS.md"];
        let mode = |it: &str| fs::metadata(project.join(it)).unwrap().permissions().mode() & 0o777;
        for path in own {
            stage.world.write(format!("project/{path}"), "mine");
            fs::set_permissions(project.join(path), fs::Permissions::from_mode(0o640)).unwrap();
        }
        fs::create_dir(project.join("empty")).unwrap();
        stage.set(&[], "write = [\".\"]");
        let code = format!(
            "os.chdir({project:?})\n\
             for it in ['.claude/x', 'new/sub', 'full/sub']: os.makedirs(it)\n\
             for it in ['.claude/x/a.json', '.claude/b.json', 'new/sub/AGENTS.md', 'full/sub/AGENTS.md', 'full/other.txt', 'empty/AGENTS.md', 'a/b/AGENTS.md']: open(it, 'w').write('theirs')\n\
             os.chmod('a/b/AGENTS.md', 0o666)\nos.chmod('a/b/.husky/pre-commit', 0o755)"
        );
        let ran = stage.prowess(&["tool", "mcp__x__run", &json!({ "code": code }).to_string()]);
        let said = "a/b/.husky/pre-commit` (made executable)";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        let id = ran.stderr.split("`prowess undo ").nth(1).unwrap().split('`').next().unwrap();
        let ran = stage.prowess(&["undo", id]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(own.map(mode), [0o640, 0o640]);
        for path in own {
            assert_eq!(fs::read_to_string(project.join(path)).unwrap(), "mine");
        }
        let there = [".claude", "new", "full/sub", "full/other.txt", "empty"];
        let there = there.map(|it| project.join(it).exists());
        assert_eq!(there, [false, false, false, true, true]);
    }

    #[test]
    fn a_session_tells_what_its_servers_have_written() {
        let stage = Stage::new();
        stage.set(&[], "write = [\"project\"]");
        let code = format!(
            "import atexit\nos.chdir({:?})\nopen('AGENTS.md', 'w').write('x')\n\
             atexit.register(lambda: open('CLAUDE.md', 'w').write('x'))",
            stage.path("project")
        );
        let call = Answer::calls([("mcp__x__run", json!({ "code": code }))]);
        let model = ModelServer::start([call, Answer::text("Written.")]);
        let ran = ask(&stage.world, &model, &["Hello", "--trace", "trace.jsonl"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "Written.\n"), "{}", ran.stderr);
        let told: Vec<&str> = ran.stderr.lines().filter(|it| it.starts_with("warning: ")).collect();
        assert_eq!(told.len(), 2, "{}", ran.stderr);
        assert!(told[0].contains("AGENTS.md` (new)") && !told[0].contains("CLAUDE.md"), "{told:?}");
        assert!(told[1].contains("CLAUDE.md` (new)") && !told[1].contains("AGENTS.md"), "{told:?}");
        let trace = fs::read_to_string(stage.world.path("trace.jsonl")).unwrap();
        assert!(trace.contains("AGENTS.md` (new)"), "{trace}");
    }
}

mod a_server_runs_with_the_programs_of_its_user {
    use super::*;

    #[test]
    fn python_comes_from_a_virtual_environment() {
        let mut stage = Stage::new();
        let venv = virtual_environment(&stage.world, "home/venv");
        executable(
            &venv.join("bin/own-server"),
            &format!("#!{}/bin/python\nimport own_server\n", venv.display()),
        );
        let module = "args = [\"-m\", \"own_server\"]";
        let entry =
            |command: &Path, rest: &str| format!("[servers.x]\ncommand = {command:?}\n{rest}\n");
        for (toml, is_active) in [
            (entry(&venv.join("bin/python"), module), false),
            (entry(&venv.join("bin/own-server"), ""), false),
            (entry(Path::new("~/venv/bin/python"), module), false),
            (entry(Path::new("python"), module), true),
            (entry(Path::new("python3"), module), true),
        ] {
            stage.search.virtual_env = is_active.then(|| venv.clone());
            stage.world.write(SETTINGS, &toml);
            for level in levels() {
                stage.level = level;
                let server = stage.start().unwrap_or_else(|it| panic!("{toml} {level}: {it:?}"));
                let own = stage.probe(&server, "import own_server_none");
                assert!(own.contains("ModuleNotFoundError"), "{own}");
                let path = stage.probe(&server, "out = sys.prefix");
                assert_eq!(Path::new(&path), venv, "{toml} {level}");
            }
        }
        stage.search.virtual_env = None;
        stage.world.write(SETTINGS, entry(Path::new("python3"), module));
        let outcome = stage.start().unwrap_err();
        assert!(message(&outcome).contains("no module `own_server`"), "{outcome:?}");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs node")]
    fn node_finds_the_modules_around_a_script() {
        let stage = Stage::new();
        let library = "exports.serve = () => { let buffer = ''; process.stdin.on('data', it => { buffer += it; let at; while ((at = buffer.indexOf('\\n')) >= 0) { const asked = JSON.parse(buffer.slice(0, at)); buffer = buffer.slice(at + 1); const said = { initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }, 'tools/list': { tools: [{ name: 'run', inputSchema: { type: 'object' } }] }, 'tools/call': asked.params && asked.params.arguments && { content: [{ type: 'text', text: (() => { try { return String(eval(asked.params.arguments.code)) } catch (error) { return String(error) } })() }] } }[asked.method]; if ('id' in asked) console.log(JSON.stringify({ jsonrpc: '2.0', id: asked.id, ...(said ? { result: said } : { error: { code: -32601, message: 'no' } }) })) } }) }\n";
        let script = "#!/usr/bin/env node\nrequire('serving').serve()\n";
        for folder in ["beside", "hoisted"] {
            stage.world.write(format!("home/{folder}/node_modules/serving/index.js"), library);
            stage.world.write(
                format!("home/{folder}/node_modules/serving/package.json"),
                "{\"name\": \"serving\", \"main\": \"index.js\"}",
            );
        }
        stage.world.write("home/beside/server.js", script);
        stage.world.write("home/hoisted/packages/one/package.json", "{}");
        stage.world.write("home/hoisted/packages/one/dist/server.js", script);
        executable(&stage.world.path("home/beside/node_modules/one/cli.js"), script);
        fs::create_dir(stage.world.path("home/beside/node_modules/.bin")).unwrap();
        symlink("../one/cli.js", stage.world.path("home/beside/node_modules/.bin/one")).unwrap();
        for (command, arguments) in [
            ("node", format!("[{:?}]", stage.path("home/beside/server.js"))),
            ("node", format!("[{:?}]", stage.path("home/hoisted/packages/one/dist/server.js"))),
            (&*stage.path("home/beside/node_modules/.bin/one"), "[]".to_owned()),
        ] {
            stage.world.write(
                SETTINGS,
                format!("[servers.x]\ncommand = {command:?}\nargs = {arguments}\n"),
            );
            let server = stage.start().unwrap_or_else(|it| panic!("{command} {arguments}: {it:?}"));
            assert_eq!(stage.probe(&server, "1 + 1"), "2");
            let path = stage.path("home/beside/node_modules/serving/index.js");
            let said = stage.probe(&server, &format!("require('fs').writeFileSync({path:?}, 'x')"));
            assert!(
                said.contains("EROFS") || said.contains("EACCES") || said.contains("ENOENT"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_program_of_a_version_manager_or_on_the_path_is_found() {
        let mut stage = Stage::new();
        let own = format!("#!/bin/sh\nexec {} \"$@\"\n", python());
        executable(&stage.world.path("home/.nvm/versions/node/v99.1.0/bin/node"), &own);
        stage.world.write("home/.nvm/alias/default", "99");
        executable(&stage.world.path("home/bin/own-server"), &format!("#!{}\n{SERVER}", python()));
        stage.search.path = vec![stage.world.path("home/bin")];
        let script = stage.path("tools/server.py");
        for toml in [
            format!("command = \"node\"\nargs = [{script:?}]"),
            "command = \"own-server\"".to_owned(),
        ] {
            stage.world.write(SETTINGS, format!("[servers.x]\n{toml}\n"));
            let server = stage.start().unwrap_or_else(|it| panic!("{toml}: {it:?}"));
            assert_eq!(stage.probe(&server, "out = 1 + 1"), "2");
        }
        stage.world.write(SETTINGS, "[servers.x]\ncommand = \"nobody-has-it\"\n");
        let outcome = stage.start().unwrap_err();
        assert_eq!(outcome.status, OutcomeStatus::Refused);
        let said = message(&outcome);
        assert!(said.contains("no program `nobody-has-it`") && said.contains("`PATH`"), "{said}");
    }

    #[test]
    fn uv_runs_what_the_environment_of_a_project_has() {
        let stage = Stage::new();
        stage.world.write("home/weather/main.py", "import own_server\n");
        stage.world.write(SETTINGS, "[servers.x]\ncommand = \"uv\"\nargs = [\"--directory\", \"~/weather\", \"run\", \"main.py\"]\n");
        let outcome = stage.start().unwrap_err();
        assert!(message(&outcome).contains("run `uv sync` in `"), "{outcome:?}");
        virtual_environment(&stage.world, "home/weather/.venv");
        let server = stage.start().unwrap();
        assert!(stage.probe(&server, "out = os.getcwd()").ends_with("/home/weather"));
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs node")]
    fn packages_are_not_fetched_without_a_yes() {
        let stage = Stage::new();
        let entry = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let (command, arguments) = (words[0], &words[1..]);
            stage.world.write(
                SETTINGS,
                format!("[servers.x]\ncommand = {command:?}\nargs = {arguments:?}\n"),
            );
            let ran = stage.prowess(&["servers", "--json"]);
            assert_eq!(ran.code, Some(1), "{line}: {}", ran.stderr);
            let said = ran.json()["servers"][0].clone();
            assert_eq!(said["status"], "refused", "{line}: {said}");
            (
                said["message"].as_str().unwrap().to_owned(),
                said["hint"].as_str().unwrap().to_owned(),
            )
        };
        for line in [
            "npx -y @a/server /tmp",
            "uvx server --x",
            "pnpm dlx server",
            "bunx server",
            "pipx run server",
        ] {
            let (message, hint) = entry(line);
            assert!(message.contains("which is not prepared"), "{line}: {message}");
            assert!(hint.contains("prowess prepare --server x"), "{line}: {hint}");
        }
        for line in [
            "npx --registry https://example.com server",
            "uvx --from git+https://example.com/x y",
            "npx ./server",
            "docker run -i server",
        ] {
            let (message, hint) = entry(line);
            assert!(message.contains("is not started"), "{line}: {message}");
            assert!(hint.contains("install the server"), "{line}: {hint}");
        }
        entry("npx -y server");
        let ran = stage.prowess(&["prepare", "--server", "x"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("that was not approved"), "{}", ran.stderr);
        let ran = stage.prowess(&["prepare", "--server", "y"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("there is no server `y`"), "{}", ran.stderr);
        entry("npx ./server");
        let ran = stage.prowess(&["prepare", "--server", "x", "--yes"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("no package of a registry"), "{}", ran.stderr);
        stage.set(&[], "");
        let ran = stage.prowess(&["prepare", "--server", "x"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("`x` needs no packages"), "{}", ran.stderr);
        assert!(!stage.world.path("home/.npm").exists());
    }
}

mod why_a_server_did_not_start_is_told {
    use super::*;

    #[test]
    fn the_last_words_the_cause_and_the_key_that_would_help_are_told() {
        let stage = Stage::new();
        stage.world.write("home/notes/a.txt", "x");
        stage.world.write("project/data/a.txt", "x");
        let home = stage.search.home.clone().unwrap();
        let opens = format!("open({:?})", home.join("notes/a.txt"));
        let table = [
            (&*opens, "", "No such file", "add `read = [\"~/notes/a.txt\"]` in `[servers.x]`"),
            ("open('data/b.txt', 'w')", "args2", "Read-only", "add `write = ["),
            ("import none_such", "", "ModuleNotFoundError", "no module `none_such`"),
            (
                "import urllib.request as u; u.urlopen('http://api.example.com')",
                "",
                "name resolution",
                "`hosts = […]`",
            ),
            (
                "import urllib.request as u; u.urlopen('http://api.example.com')",
                "hosts = [\"example.org\"]",
                "403",
                "it asked for `api.example.com`: add \"api.example.com\"",
            ),
            (
                "import sys; sys.exit('OWN_API_KEY is not set')",
                "",
                "OWN_API_KEY is not set",
                "`env = { OWN_API_KEY = \"${OWN_API_KEY}\" }`",
            ),
            (
                "import sys, time; print('OWN_API_KEY is missing', file=sys.stderr, flush=True); sys.stdout.close(); time.sleep(100)",
                "",
                "is missing",
                "`OWN_API_KEY`",
            ),
            (
                "import sys; sys.exit('for no reason')",
                "",
                "for no reason",
                "`read`, `write`, `hosts` and `env`",
            ),
        ];
        for (code, keys, words, hint) in table {
            let (data, keys) = if keys == "args2" { (", \"data\"", "") } else { ("", keys) };
            let toml = format!(
                "[servers.x]\ncommand = {:?}\nargs = [\"-c\", {code:?}{data}]\n{keys}\n",
                python()
            );
            stage.world.write(SETTINGS, toml);
            let ran = stage.prowess(&["servers"]);
            assert_eq!(ran.code, Some(1), "{code}: {}", ran.stderr);
            let last = ran.stderr.lines().filter(|it| it.starts_with("  | "));
            assert!(last.into_iter().any(|it| it.contains(words)), "{code}: {}", ran.stderr);
            assert!(ran.stderr.contains(hint), "{code}: {}", ran.stderr);
            let said = stage.prowess(&["servers", "--json"]).json()["servers"][0].clone();
            assert!(said["stderr"].as_str().unwrap().contains(words), "{said}");
            assert!(said["hint"].as_str().unwrap().contains(hint), "{said}");
        }
        let ran = stage.prowess(&["servers", "--unsandboxed"]);
        assert!(ran.stderr.contains("`--unsandboxed` is not for servers"), "{}", ran.stderr);
    }

    #[test]
    fn what_a_server_prints_does_no_harm() {
        let stage = Stage::new();
        stage.world.write("home/.ssh/id_ed25519", "x");
        let key = stage.search.home.clone().unwrap().join(".ssh/id_ed25519");
        let code = format!(
            "import os, sys\nfor i in range(200000): print('line', i, file=sys.stderr)\nsys.exit('\\x1b[2J\\x1b]0;title\\x07\\u202eTOKEN ' + os.environ['TOKEN'] + ' ghp_' + 'a1B2' * 9 + '\\nNo such file or directory: {}')",
            key.display()
        );
        let toml = format!(
            "[servers.x]\ncommand = {:?}\nargs = [\"-c\", {code:?}]\nenv = {{ TOKEN = \"s3cret-s3cret-s3cret\" }}\n",
            python()
        );
        stage.world.write(SETTINGS, toml);
        let ran = stage.prowess(&["servers"]);
        let plain = |it: char| it == '\n' || !it.is_control() && it != '\u{202e}';
        assert!(ran.stderr.chars().all(plain), "{:?}", ran.stderr);
        assert!(
            ran.stderr.lines().filter(|it| it.starts_with("  | ")).count() <= 20,
            "{}",
            ran.stderr
        );
        let by_hand = "which may contain secrets: add it to `read` in `[servers.x]` by hand if";
        assert!(ran.stderr.contains(by_hand), "{}", ran.stderr);
        let said = stage.prowess(&["servers", "--json"]).json().to_string();
        for text in [&*ran.stderr, &*said] {
            assert!(!text.contains("s3cret") && !text.contains("a1B2a1B2"), "{text}");
            assert!(!text.contains("add `read"), "{text}");
        }
        for path in
            [".config", ".config/prowess", ".mozilla", ".bash_history", ".local/state/prowess"]
        {
            let real = stage.search.home.clone().unwrap().join(path);
            match path {
                ".bash_history" => stage.world.write("home/.bash_history", "x"),
                path => fs::create_dir_all(stage.world.path("home").join(path)).unwrap(),
            }
            let code = format!("import sys; sys.exit('Permission denied: {}')", real.display());
            let toml =
                format!("[servers.x]\ncommand = {:?}\nargs = [\"-c\", {code:?}]\n", python());
            stage.world.write(SETTINGS, toml);
            let ran = stage.prowess(&["servers"]);
            let is_said = ["may contain secrets", "kept from servers"]
                .iter()
                .any(|it| ran.stderr.contains(it));
            assert!(is_said && !ran.stderr.contains("add `read"), "{path}: {}", ran.stderr);
        }
    }

    #[test]
    fn a_list_of_tools_that_cannot_be_read_to_its_end_is_told() {
        let stage = Stage::new();
        let listed = |tools: &str| {
            let server = SERVER.replace("{'tools': [tool]}", tools);
            stage.world.write("tools/server.py", server);
            stage.set(&[], "");
            stage.prowess(&["servers", "x"])
        };
        let deep = |levels: usize| {
            let levels = (0..levels).fold("{}".to_owned(), |it, _| format!("{{'not': {it}}}"));
            let schema = format!("{{'type': 'object', 'not': {levels}}}");
            format!("{{'tools': [tool, {{'name': 'deep', 'inputSchema': {schema}}}]}}")
        };
        let long = "{'tools': [tool, {'name': 'deep', 'inputSchema': {'type': 'object', 'a' * 10**6: {}}}]}";
        let table = [
            (
                "{'tools': [tool], 'nextCursor': str(asked['id'])}",
                0,
                "its list of tools does not end; the first 64 were taken",
            ),
            (
                "{'tools': [tool], 'nextCursor': 'same'}",
                0,
                "its list of tools does not end; the first 2 were taken",
            ),
            (&deep(70), 0, "`deep` is left out: the schema is too large"),
            (long, 0, "`deep` is left out: its schema has"),
            (&deep(150), 1, "its answer is nested more than 120 levels deep"),
        ];
        for (tools, code, words) in table {
            let ran = listed(tools);
            assert_eq!(ran.code, Some(code), "{words}: {}", ran.stderr);
            assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
            assert_eq!(ran.stdout().contains("mcp__x__run"), code == 0, "{}", ran.stdout());
        }
    }

    #[test]
    fn a_call_that_fails_says_what_would_help() {
        let stage = Stage::new();
        stage.world.write("project/data/a.txt", "x");
        stage.set(&["data"], "");
        let server = stage.start().unwrap();
        let code = "open('data/a.txt', 'w')";
        let outcome = stage.call(&server, "run", json!({"code": code, "fails": true}));
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        let said = message(&outcome);
        assert!(said.contains("Read-only") && said.contains("add `write = ["), "{said}");
    }

    #[test]
    fn a_call_that_lacks_the_network_names_the_key_for_it() {
        let mut stage = Stage::new();
        let other = Listener::saying(answer("200 OK", "", "words"));
        let get = |url: &str| {
            format!("out = urllib.request.urlopen({url:?}, timeout=10).read().decode()")
        };
        for level in levels() {
            stage.level = level;
            for failing in ["fails", "is_error"] {
                stage.set(&[], "");
                let server = stage.start().unwrap();
                let input = json!({"code": get("http://api.example.com"), failing: true});
                let said = message(&stage.call(&server, "run", input));
                let file = "`~/.config/prowess/prowess.toml`";
                let key = format!("`hosts = […]` in `[servers.x]` of {file}");
                assert!(said.contains(&key), "{level}: {said}");
                stage.set(&[], "hosts = [\"example.org\"]");
                let server = stage.start().unwrap();
                let input = json!({"code": get(&other.url("/")), failing: true});
                let said = message(&stage.call(&server, "run", input));
                let file = stage.path(SETTINGS);
                let reason =
                    format!("add `127.0.0.1:{}` to `servers.x.hosts` in `{file}`", other.port());
                assert!(said.contains(&reason), "{level}: {said}");
                // An earlier refusal does not explain a later failure.
                let input = json!({"code": "raise ValueError('no')", failing: true});
                assert_eq!(stage.call(&server, "run", input).hint, None);
            }
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs node")]
    fn the_person_at_the_terminal_is_told_what_would_help() {
        let stage = Stage::new();
        stage.world.write("data/a.txt", "x");
        let data = stage.path("data");
        stage.set(&[&data], "");
        let code = format!("open({:?}, 'w')", format!("{data}/a.txt"));
        for flags in [&["Hello"][..], &["Hello", "-v"]] {
            let call = Answer::calls([("mcp__x__run", json!({"code": code, "fails": true}))]);
            let model = ModelServer::start([call, Answer::text("It failed.")]);
            let ran = ask(&stage.world, &model, flags);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "It failed.\n"), "{}", ran.stderr);
            let hints = ran.stderr.lines().filter(|it| it.starts_with("hint: it tried to write"));
            let hints: Vec<&str> = hints.filter(|it| it.contains("add `write = [")).collect();
            assert_eq!(hints.len(), 1, "{}", ran.stderr);
        }
        // A server that does not start has refused nothing, and is named once.
        let entry = "[servers.x]\ncommand = \"npx\"\nargs = [\"-y\", \"none-such\"]\n";
        stage.world.write(SETTINGS, entry);
        let model = ModelServer::start([Answer::text("Without.")]);
        let ran = ask(&stage.world, &model, &["Hello"]);
        let warned =
            "warning: the server `x` is not started: it needs `none-such`, which is not prepared";
        assert!(ran.stderr.contains(warned), "{}", ran.stderr);
    }

    #[test]
    fn a_tool_of_a_server_can_be_called_by_hand() {
        let stage = Stage::new();
        stage.set(&[], "");
        let ran = stage.prowess(&["tool", "mcp__x__run", r#"{"code": "out = 6 * 7"}"#]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "42\n"), "{}", ran.stderr);
        let sleep = r#"{"code": "import time; time.sleep(60)"}"#;
        let ran = stage.prowess(&["tool", "mcp__x__run", sleep, "--timeout", "1s"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("did not answer for 1 s"), "{}", ran.stderr);
        let ran = stage.prowess(&["tool", "mcp__x__rum", "{}"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("did you mean `mcp__x__run`?"), "{}", ran.stderr);
        let ran = stage.prowess(&["tool", "mcp__y__run", "{}"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("did you mean `mcp__x__run`?"), "{}", ran.stderr);
        let ran = stage.prowess(&["tool", "mcp__elsewhere__run", "{}"]);
        assert!(
            ran.stderr.contains("`prowess servers` lists the configured servers"),
            "{}",
            ran.stderr
        );
        let ran = stage.prowess(&["tools"]);
        let note = "`prowess servers LABEL` lists the tools of a server (`x`)";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        // A server of a project's file is started once it is approved.
        stage.world.write("project/prowess.toml", stage.settings(&[], "").replace(".x]", ".p]"));
        let ran = stage.prowess(&["tool", "mcp__p__run", "{}"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
        stage.world.remove("project/prowess.toml");
        stage.world.remove(SETTINGS);
        assert!(!stage.prowess(&["tools"]).stderr.contains("servers"));
    }

    /// The server with a tool that takes a path, and an optional number.
    const TOOL: &str = r#"tool = {'name': 'list', 'description': 'Lists a directory.\x1b[2J Slowly. And more.', 'inputSchema': {'type': 'object',
    'properties': {'depth': {'type': 'integer', 'description': 'How deep\nto \x1b[31mlook'}, 'path': {'type': 'string'}}, 'required': ['path']}}
run = lambda it: it
for line in"#;

    fn listing(stage: &Stage) {
        let server = SERVER.replacen("for line in", TOOL, 1);
        let server = server.replace("run(it['arguments']['code'])", "json.dumps(it['arguments'])");
        stage.world.write("tools/server.py", server);
        stage.set(&[], "");
    }

    #[test]
    fn the_parameters_of_a_server_s_tools_are_shown() {
        let stage = Stage::new();
        listing(&stage);
        let ran = stage.prowess(&["servers", "x"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let lines: Vec<&str> = ran.stdout().lines().skip(1).collect();
        let [tool, path, depth] = lines[..] else { panic!("{lines:?}") };
        assert!(tool.starts_with("  mcp__x__list  Lists a directory."), "{tool}");
        assert!(!tool.contains("more"), "{tool}");
        assert_eq!(path, "    path (string, required)");
        assert!(depth.starts_with("    depth (integer)  How deep to "), "{depth}");
        ran.assert_safe();
        let all = stage.prowess(&["servers"]);
        assert_eq!(all.stdout().lines().skip(1).collect::<Vec<_>>(), [tool]);
        let told = stage.prowess(&["servers", "x", "--json"]).json();
        let schema = &told["servers"][0]["tools"][0]["input_schema"];
        assert_eq!(schema["properties"]["depth"]["type"], "integer");
        assert_eq!(schema["required"], json!(["path"]));
    }

    #[test]
    fn a_wrong_argument_names_the_parameters_of_the_tool() {
        let stage = Stage::new();
        listing(&stage);
        let takes = "`mcp__x__list` takes `path` (string, required), `depth` (integer)";
        let ran = stage.prowess(&["tool", "mcp__x__list", "dir=."]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(
            ran.stderr.contains("`path` is missing; `dir` is not a parameter"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(&format!("hint: {takes}")), "{}", ran.stderr);
        let ran = stage.prowess(&["tool", "mcp__x__list", "pth=."]);
        let meant = format!("hint: did you mean `path`? {takes}");
        assert!(ran.stderr.contains(&meant), "{}", ran.stderr);
        let ran = stage.prowess(&["tool", "mcp__x__list", "path=.", "dir=."]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let warning = format!("warning: `dir` is not a parameter; {takes}");
        assert!(ran.stderr.contains(&warning), "{}", ran.stderr);
        let ran = stage.prowess(&["tool", "mcp__x__list", "path=.", "depth=1"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    }

    #[test]
    fn options_that_are_not_for_servers_are_told() {
        let stage = Stage::new();
        listing(&stage);
        for words in [&["servers", "x"][..], &["tool", "mcp__x__list", "path=."]] {
            let ran = stage.prowess(&[words, &["--write", ".", "--unsandboxed"]].concat());
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            for option in ["--write", "--unsandboxed"] {
                let warning = format!("warning: `{option}` is not for servers");
                assert!(ran.stderr.contains(&warning), "{}", ran.stderr);
            }
            assert!(ran.stderr.contains("`write = [\"DIR\"]` in `[servers.LABEL]`"));
        }
    }

    #[test]
    fn what_a_server_says_twice_is_printed_once() {
        let stage = Stage::new();
        let content = "'content': [";
        assert!(SERVER.contains(content));
        let both = format!("'structuredContent': {{'degrees': 21}}, {content}");
        stage.world.write("tools/server.py", SERVER.replace(content, &both));
        stage.set(&[], "");
        let call = ["tool", "mcp__x__run", r#"{"code": "out = 'It is warm: 21 degrees'"}"#];
        let ran = stage.prowess(&call);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "It is warm: 21 degrees\n"));
        assert!(ran.stderr.contains("`--json` prints the structured content"), "{}", ran.stderr);
        let said = stage.prowess(&[&call[..], &["--json"]].concat()).json();
        let both = json!({"text": "It is warm: 21 degrees", "structured": {"degrees": 21}});
        assert_eq!(said["outcome"]["output"], both);
    }

    #[test]
    fn what_a_server_takes_decides_how_a_value_is_read() {
        let stage = Stage::new();
        let kinds = "'string', 'integer', 'boolean', 'array', 'object', ['string', 'number']";
        let schema = format!(
            "tool = {{'name': 'run', 'inputSchema': {{'type': 'object', 'properties': \
             {{f'p{{at}}': {{'type': it}} for at, it in enumerate([{kinds}])}}}}}}\n\
             run = lambda it: it\nfor line in"
        );
        let server = SERVER.replacen("for line in", &schema, 1);
        let server = server.replace("run(it['arguments']['code'])", "json.dumps(it['arguments'])");
        stage.world.write("tools/server.py", server);
        stage.set(&[], "");
        let given = |pairs: &[&str]| {
            let ran = stage.prowess(&[&["tool", "mcp__x__run"][..], pairs].concat());
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            serde_json::from_str::<Json>(ran.stdout()).unwrap()
        };
        let read = given(&["p1=7", "p2=true", "p3=[1]", "p4={\"a\": 1}", "p5=8", "other={}"]);
        let meant = json!({"p1": 7, "p2": true, "p3": [1], "p4": {"a": 1}, "p5": 8, "other": {}});
        assert_eq!(read, meant);
        assert_eq!(given(&["p5=eight", "other={"]), json!({"p5": "eight", "other": "{"}));
        for text in ["{}", "7", "null", " true ", "{\"a\": 1, \"a\": 2}", &"[".repeat(300)] {
            assert_eq!(given(&[&format!("p0={text}")]), json!({ "p0": text }));
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs node")]
    fn nobody_is_asked_about_a_server_that_cannot_start() {
        let stage = Stage::new();
        let entry = "[servers.x]\ncommand = \"npx\"\nargs = [\"-y\", \"none-such\"]\n";
        stage.world.write("project/prowess.toml", entry);
        let asked = Arc::new(Asked::default());
        let said = message(&stage.start_asking(asked.clone()).unwrap_err());
        assert!(said.contains("not prepared / run `prowess prepare --server x`"), "{said}");
        assert!(asked.0.lock().unwrap().is_empty());
        let entry = "[servers.x]\ncommand = \"python3\"\nargs = [\"server.py\"]\n";
        stage.world.write("project/prowess.toml", entry);
        stage.world.write("project/server.py", SERVER);
        stage.start_asking(asked.clone()).unwrap();
        let asked = asked.0.lock().unwrap();
        assert_eq!(asked[0].why, "this project's file wants to start a program");
    }

    #[test]
    fn whoever_says_no_is_not_asked_again() {
        /// Denies, and counts the questions.
        #[derive(Debug, Default)]
        struct Refuses(Mutex<usize>);

        impl Approver for Refuses {
            fn who(&self) -> &str {
                "person"
            }

            fn ask<'a>(&'a self, _: &'a Question) -> ApproverFuture<'a> {
                *self.0.lock().unwrap() += 1;
                Box::pin(async { ApproverReply::No })
            }
        }

        let stage = Stage::new();
        stage.world.write("project/server.py", SERVER);
        let entry = "[servers.x]\ncommand = \"python3\"\nargs = [\"server.py\"]\n";
        stage.world.write("project/prowess.toml", entry);
        let refuses = Arc::new(Refuses::default());
        let (starter, set) = stage.starter(refuses.clone());
        for hint in ["nothing was done", "you denied it earlier"] {
            let outcome = stage.runtime.block_on(starter.connect(&set)).unwrap_err();
            assert_eq!(outcome.status, OutcomeStatus::Refused);
            assert!(message(&outcome).contains(hint), "{outcome:?}");
            assert_eq!(*refuses.0.lock().unwrap(), 1);
        }
        stage.world.write("project/prowess.toml", format!("{entry}hosts = [\"example.com\"]\n"));
        let (_, changed) = stage.starter(refuses.clone());
        let _ = stage.runtime.block_on(starter.connect(&changed)).unwrap_err();
        assert_eq!(*refuses.0.lock().unwrap(), 2);
    }
}

mod a_hostile_server_gets_nothing {
    use super::*;

    #[test]
    fn a_hostile_server_reads_writes_and_reaches_nothing_of_its_user() {
        let mut stage = Stage::new();
        let world = &stage.world;
        for path in
            ["home/.ssh/id_rsa", "home/.env", "project/a.txt", "project/.env", "other/secret.txt"]
        {
            world.write(path, "SECRET");
        }
        symlink(world.path("other"), world.path("project/linked")).unwrap();
        symlink(world.path("home/.ssh/id_rsa"), world.path("project/key.txt")).unwrap();
        symlink("/", world.path("project/root")).unwrap();
        let listener = Listener::saying(answer("200 OK", "", "x"));
        for level in levels() {
            stage.level = level;
            stage.set(&["project", "key.txt", "root", "../project"], "hosts = [\"example.com\"]");
            let server = stage.start().unwrap();
            let folder = stage.path("");
            for path in [
                "home/.ssh/id_rsa",
                "home/.env",
                "project/.env",
                "project/key.txt",
                "project/linked/secret.txt",
                "other/secret.txt",
                "project/root/etc/shadow",
                "home/.config/prowess/prowess.toml",
            ] {
                let said = stage.read(&server, &format!("{folder}{path}"));
                assert!(said.is_empty() || is_denied(&said), "{level} {path}: {said}");
            }
            for path in [
                "project/a.txt",
                "project/new",
                "tools/server.py",
                "tools/new",
                "home/new",
                "home/.config/prowess/prowess.toml",
            ] {
                let said = stage.probe(
                    &server,
                    &format!("open({:?}, 'a').write('x')", format!("{folder}{path}")),
                );
                assert!(is_denied(&said), "{level} {path}: {said}");
            }
            for code in [
                format!("out = urllib.request.urlopen({:?}, timeout=5).read()", listener.url("/")),
                format!("out = urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open({:?}, timeout=5).read()", listener.url("/")),
                "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53)); out = 'sent'".to_owned(),
            ] {
                let said = stage.probe(&server, &code);
                assert!(said.contains("Error") || said.contains("403"), "{level} {code}: {said}");
            }
            let said =
                stage.probe(&server, "out = [it for it in os.environ.values() if 'SECRET' in it]");
            assert_eq!(said, "[]");
        }
        assert_eq!(listener.connections(), 0);
        assert_eq!(fs::read_to_string(stage.world.path("project/a.txt")).unwrap(), "SECRET");
    }
}

mod servers_that_others_wrote_run {
    use super::*;

    /// The store of packages of servers that tests have prepared, and the approvals: fetching them
    /// takes a minute.
    static PREPARED: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
        let target = Path::new(program()).ancestors().nth(2).unwrap().canonicalize().unwrap();
        ["data", "state"].map(|it| target.join("server-environments").join(it))
    });

    /// Returns the addresses of the public registries: a mirror in their place may have one that is
    /// not public.
    fn registries() -> Vec<String> {
        let hosts = ["registry.npmjs.org", "pypi.org", "files.pythonhosted.org"];
        let found = hosts.iter().filter_map(|it| (*it, 443).to_socket_addrs().ok()).flatten();
        found.map(|it| it.ip().to_string()).collect()
    }

    /// Installs the packages of a configured server.
    fn prepare(stage: &Stage, label: &str) {
        let [data, state] = &*PREPARED;
        let mut command = stage.world.command(["prepare", "--server", label, "--yes"]);
        command.env("XDG_DATA_HOME", data).env("XDG_STATE_HOME", state);
        let output = command.current_dir(stage.world.path("project")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{label}: {said}");
    }

    /// Returns the virtual environment of a server: a link to the SDK, which is fetched once.
    fn sdk_environment(stage: &Stage) -> PathBuf {
        let folder = stage.world.path("home/venv");
        let made =
            Command::new(python()).args(["-m", "venv", "--without-pip"]).arg(&folder).status();
        assert!(made.unwrap().success());
        let libraries = fs::read_dir(folder.join("lib")).unwrap().next().unwrap().unwrap().path();
        fs::write(libraries.join("site-packages/sdk.pth"), SDK.to_str().unwrap()).unwrap();
        folder
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn well_known_servers_start_and_answer() {
        let mut stage = Stage::new();
        stage.search.path = vec!["/usr/bin".into(), "/bin".into()];
        let [data, state] = &*PREPARED;
        let state = state.join("prowess");
        let approvals = Arc::new(ApprovalStore::at(&state));
        let audit = Arc::new(AuditLog::at(state));
        let store = EnvironmentStore::new(data.join("prowess/environments"), approvals, audit);
        stage.environments = Some(store);
        let world = &stage.world;
        world.write("home/notes/today.md", "buy milk");
        world.write("project/a.txt", "x");
        world.write("home/memory/.keep", "");
        world.write("project/data.db", "");
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/servers/sdk.py");
        world.write("home/own/server.py", fs::read(own).unwrap());
        for words in ["init -q", "add -A", "-c user.name=x -c user.email=x commit -qm one"] {
            let mut git = Command::new("git");
            let ran = git.args(words.split(' ')).current_dir(world.path("project")).status();
            assert!(ran.unwrap().success(), "{words}");
        }
        let hello = answer("200 OK", "content-type: text/plain\r\n", "hello from here");
        let listener = Listener::saying(hello);
        let page = "<html><body><h1>About tea</h1><ul><li>green</li></ul></body></html>";
        let page = Listener::saying(answer("200 OK", "content-type: text/html\r\n", page));
        let home = stage.search.home.clone().unwrap();
        let project = fs::canonicalize(world.path("project")).unwrap();
        let npx = |package: &str, rest: &str| {
            let package = format!("@modelcontextprotocol/server-{package}@2026.8.31");
            format!("command = \"npx\"\nargs = [\"-y\", {package:?}{rest}]")
        };
        let uvx = |words: &[&str]| format!("command = \"uvx\"\nargs = {words:?}");
        let memory = home.join("memory/memory.jsonl");
        let venv = sdk_environment(&stage).join("bin/python");
        let git = uvx(&["mcp-server-git@2026.10.19", "--repository", "."]);
        let fetch =
            uvx(&["mcp-server-fetch@2026.10.24", "--ignore-robots-txt", "--allow-private-ips"]);
        let table: Vec<(&str, String, &str, Json, &str)> = vec![
            (
                "filesystem",
                npx("filesystem", ", \"~/notes\""),
                "read_text_file",
                json!({"path": home.join("notes/today.md")}),
                "buy milk",
            ),
            (
                "filesystem",
                format!("{}\nwrite = [\".\"]", npx("filesystem", ", \".\"")),
                "write_file",
                json!({"path": project.join("b.txt"), "content": "new"}),
                "b.txt",
            ),
            (
                "memory",
                format!(
                    "{}\nenv = {{ MEMORY_FILE_PATH = {memory:?} }}\nwrite = [\"~/memory\"]",
                    npx("memory", "")
                ),
                "create_entities",
                json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]}),
                "likes tea",
            ),
            ("everything", npx("everything", ""), "echo", json!({"message": "hello"}), "hello"),
            (
                "thinking",
                npx("sequential-thinking", ""),
                "sequentialthinking",
                json!({"thought": "x", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}),
                "thoughtHistoryLength",
            ),
            (
                "time",
                uvx(&["mcp-server-time@2026.10.19", "--local-timezone=UTC"]),
                "get_current_time",
                json!({"timezone": "UTC"}),
                "datetime",
            ),
            ("git", git.clone(), "git_log", json!({"repo_path": project}), "one"),
            (
                "git",
                format!("{git}\nwrite = [\".\", \".git\"]"),
                "git_add",
                json!({"repo_path": project, "files": ["b.txt"]}),
                "staged",
            ),
            (
                "fetch",
                format!("{fetch}\nhosts = [\"127.0.0.1:{}\"]", listener.port()),
                "fetch",
                json!({"url": listener.url("/")}),
                "hello from here",
            ),
            (
                "fetch",
                format!("{fetch}\nhosts = [\"127.0.0.1:{}\"]", page.port()),
                "fetch",
                json!({"url": page.url("/")}),
                "# About tea\\n\\n* green",
            ),
            (
                "sqlite",
                format!(
                    "{}\nwrite = [\".\"]",
                    uvx(&[
                        "--with",
                        "mcp<2",
                        "mcp-server-sqlite@2025.4.25",
                        "--db-path",
                        "data.db"
                    ])
                ),
                "create_table",
                json!({"query": "CREATE TABLE t (a)"}),
                "success",
            ),
            (
                "sdk",
                format!(
                    "command = {venv:?}\nargs = [\"~/own/server.py\"]\nenv = {{ SITE = \"\" }}\nread = [{:?}]",
                    *SDK
                ),
                "add",
                json!({"a": 2, "b": 40}),
                "42",
            ),
        ];
        let settings = format!("prepare.hosts = {:?}\n", registries());
        for (name, toml, tool, input, words) in table {
            stage.world.write(SETTINGS, format!("{settings}[servers.{name}]\n{toml}\n"));
            if name != "sdk" {
                prepare(&stage, name);
            }
            let server = stage.start().unwrap_or_else(|it| panic!("{name}: {it:#?}"));
            let outcome = stage.call(&server, tool, input);
            assert_eq!(outcome.status, OutcomeStatus::Ok, "{name}: {outcome:?}");
            let said = outcome.output.unwrap().to_string();
            assert!(said.contains(words), "{name}: {said}");
        }
        assert_eq!(fs::read_to_string(stage.world.path("project/b.txt")).unwrap(), "new");
        assert!(fs::read_to_string(&memory).unwrap().contains("Ada"));
    }
}
