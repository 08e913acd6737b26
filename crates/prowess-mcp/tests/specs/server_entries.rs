//! Configured servers, with the files, hosts and programs that their entries name.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use prowess_mcp::{
    client::{McpLauncher, McpServer},
    config::ServerSetting,
};
use prowess_runtime::{
    Authorizer, Outcome, OutcomeStatus, Policy,
    approval::{ApproveAll, Approver, ApproverReply},
    environment::InterpreterSearch,
    policy::Decision,
    sandbox::{RunLimits, SandboxLevel},
};
use prowess_testing::{
    configured_server::{SERVER, executable, virtual_environment},
    mcp_sdk::python,
    skill_servers::{PATIENCE, call, mcp_launcher, message, sandbox, setting},
    tools::Asked,
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::{
    server::{Server as Listener, answer},
    world::{SETTINGS, World},
};

/// A home, a current project, and a server in a folder of its own.
struct Stage {
    world: World,
    runtime: Runtime,
    level: SandboxLevel,
    search: InterpreterSearch,
}

impl Stage {
    fn new() -> Self {
        let world = World::new().file("tools/server.py", SERVER).folder("project");
        let world = world.file(SETTINGS, "").file("project/prowess.toml", "");
        let home = Some(fs::canonicalize(world.path("home")).unwrap());
        let search = InterpreterSearch { home, ..InterpreterSearch::default() };
        let runtime = Runtime::new().unwrap();
        Self { world, runtime, level: SandboxLevel::Strong, search }
    }

    fn path(&self, path: &str) -> String {
        self.world.path(path).display().to_string()
    }

    /// Returns the entry of the server, with more arguments and keys.
    fn entry(&self, arguments: &[&str], keys: Json) -> Json {
        let script = self.path("tools/server.py");
        let arguments: Vec<&str> =
            [&*script].into_iter().chain(arguments.iter().copied()).collect();
        let mut entry = json!({"command": "python3", "args": arguments});
        let Json::Object(keys) = keys else { panic!("{keys}") };
        entry.as_object_mut().unwrap().extend(keys);
        entry
    }

    /// Starts a server as the user sets it.
    fn start(&self, entry: &Json) -> Result<McpServer, Box<Outcome>> {
        let place = Some((self.world.path(SETTINGS), 1));
        let setting = ServerSetting { place, ..setting("x", entry) };
        self.runtime.block_on(self.launcher(Arc::new(ApproveAll)).connect(&setting))
    }

    /// Returns a server as the file of the project sets it.
    fn of_project(&self, entry: &Json) -> ServerSetting {
        let file = self.project().join("prowess.toml");
        ServerSetting { is_trusted: false, place: Some((file, 1)), ..setting("x", entry) }
    }

    fn project(&self) -> PathBuf {
        fs::canonicalize(self.world.path("project")).unwrap()
    }

    fn launcher(&self, approver: Arc<dyn Approver>) -> McpLauncher {
        let project = self.project();
        let policy = Policy {
            roots: vec![project.clone()],
            secret_reads: Decision::Ask,
            withheld: vec![self.world.path("home/.local/state/prowess")],
            protected: vec![self.world.path(SETTINGS), project.join("prowess.toml")],
            ..Policy::default()
        };
        let authorizer = Arc::new(Authorizer::new(policy, approver));
        McpLauncher::new(authorizer, sandbox().at_most(self.level), RunLimits::default())
            .with_interpreters(self.search.clone())
            .with_directory(project)
            .with_patience(PATIENCE)
    }

    /// Returns the result of a piece of Python in a running server.
    fn probe(&self, server: &McpServer, code: &str) -> String {
        let outcome = call(&self.runtime, server, "run", json!({ "code": code }));
        assert_eq!(outcome.status, OutcomeStatus::Ok, "{outcome:?}");
        outcome.output.unwrap().as_str().unwrap().to_owned()
    }

    /// Returns the content of a file as the server reads it, or its error.
    fn read(&self, server: &McpServer, path: &str) -> String {
        self.probe(server, &format!("out = open({path:?}).read()"))
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
        let arguments =
            ["data", "--file=b.txt", "~/notes", &other, "https://example.com/x", "stdio"];
        let entry = stage.entry(&arguments, json!({}));
        for level in levels() {
            stage.level = level;
            let server = stage.start(&entry).unwrap();
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
            let server = stage.start(&stage.entry(&["~", ".", ".env"], json!({}))).unwrap();
            assert!(is_denied(&stage.read(&server, &stage.path("home/diary.txt"))), "{level}");
            assert_eq!(stage.read(&server, "a.txt"), "project/a.txt");
            for path in [".env", "sub/id_rsa"] {
                let said = stage.read(&server, path);
                assert!(said.is_empty() || is_denied(&said), "{level} {path}: {said}");
            }
            let server = stage
                .start(
                    &stage.entry(&["."], json!({"read": [".env", "~", "~/.local/state/prowess"]})),
                )
                .unwrap();
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
        let server = stage.start(&stage.entry(&[], json!({"write": ["."]}))).unwrap();
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
        let server = stage.start(&stage.entry(&[], json!({"write": [".", ".git"]}))).unwrap();
        assert_eq!(write(&server, ".git/index"), "None");
        for path in [".git/hooks/pre-commit", ".git/config"] {
            let said = write(&server, path);
            assert!(is_denied(&said), "{path}: {said}");
        }
        drop(server);
        let server = stage.start(&stage.entry(&[], json!({"write": ["~"]}))).unwrap();
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
            let server = stage
                .start(&stage.entry(&[], json!({"hosts": [format!("127.0.0.1:{}", host.port())]})))
                .unwrap();
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
            let server = stage.start(&stage.entry(&[], json!({}))).unwrap();
            let said = stage.probe(&server, &get(&host.url("/")));
            assert!(said.contains("Error"), "{level}: {said}");
        }
        assert_eq!((host.asked().len(), other.connections()), (2, 0));
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
        let (asked, library) = (Arc::new(Asked::new(ApproverReply::Once)), world.load());
        let launcher = mcp_launcher(Policy::default(), asked.clone())
            .with_directory(fs::canonicalize(world.path("project")).unwrap());
        let skill = library.get("tool").unwrap();
        let server = stage.runtime.block_on(async {
            let described = launcher.servers_of(skill).await;
            assert_eq!(described.faults, [""; 0]);
            launcher.start(skill, &described.servers[0], "x", &[]).await.unwrap()
        });
        let at = |path: &str| stage.path(&format!("project/{path}"));
        assert_eq!(stage.read(&server, &at("a.txt")), "project/a.txt");
        assert!(is_denied(&stage.read(&server, &at("c.txt"))));
        for (path, may) in [("out/new", true), ("a.txt", false)] {
            let said = stage.probe(&server, &format!("open({:?}, 'w').write('x')", at(path)));
            assert_eq!(said == "None", may, "{path}: {said}");
        }
        let content = asked.questions().remove(0).content.unwrap();
        assert!(
            content.contains("# read: a.txt\n# write: out\n# hosts: api.example.com"),
            "{content}"
        );
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
        let module = |command: &Path| json!({"command": command, "args": ["-m", "own_server"]});
        for (entry, is_active) in [
            (module(&venv.join("bin/python")), false),
            (json!({"command": venv.join("bin/own-server")}), false),
            (module(Path::new("~/venv/bin/python")), false),
            (module(Path::new("python")), true),
            (module(Path::new("python3")), true),
        ] {
            stage.search.virtual_env = is_active.then(|| venv.clone());
            for level in levels() {
                stage.level = level;
                let server = stage.start(&entry);
                let server = server.unwrap_or_else(|it| panic!("{entry} {level}: {it:?}"));
                let own = stage.probe(&server, "import own_server_none");
                assert!(own.contains("ModuleNotFoundError"), "{own}");
                let path = stage.probe(&server, "out = sys.prefix");
                assert_eq!(Path::new(&path), venv, "{entry} {level}");
            }
        }
        stage.search.virtual_env = None;
        let outcome = stage.start(&module(Path::new("python3"))).unwrap_err();
        assert!(message(&outcome).contains("the module `own_server`"), "{outcome:?}");
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
        for entry in [
            json!({"command": "node", "args": [stage.path("home/beside/server.js")]}),
            json!({"command": "node", "args": [stage.path("home/hoisted/packages/one/dist/server.js")]}),
            json!({"command": stage.path("home/beside/node_modules/.bin/one")}),
        ] {
            let server = stage.start(&entry).unwrap_or_else(|it| panic!("{entry}: {it:?}"));
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
        let entries =
            [json!({"command": "node", "args": [script]}), json!({"command": "own-server"})];
        for entry in entries {
            let server = stage.start(&entry).unwrap_or_else(|it| panic!("{entry}: {it:?}"));
            assert_eq!(stage.probe(&server, "out = 1 + 1"), "2");
        }
        let outcome = stage.start(&json!({"command": "nobody-has-it"})).unwrap_err();
        assert_eq!(outcome.status, OutcomeStatus::Refused);
        let said = message(&outcome);
        assert!(said.contains("no program `nobody-has-it`") && said.contains("`PATH`"), "{said}");
    }

    #[test]
    fn uv_runs_what_the_environment_of_a_project_has() {
        let stage = Stage::new();
        stage.world.write("home/weather/main.py", "import own_server\n");
        let arguments = ["--directory", "~/weather", "run", "main.py"];
        let entry = json!({"command": "uv", "args": arguments});
        let outcome = stage.start(&entry).unwrap_err();
        assert!(message(&outcome).contains("run `uv sync` in `"), "{outcome:?}");
        virtual_environment(&stage.world, "home/weather/.venv");
        let server = stage.start(&entry).unwrap();
        assert!(stage.probe(&server, "out = os.getcwd()").ends_with("/home/weather"));
    }
}

mod why_a_server_did_not_start_is_told {
    use super::*;

    #[test]
    fn a_call_that_fails_says_what_would_help() {
        let stage = Stage::new();
        stage.world.write("project/data/a.txt", "x");
        let server = stage.start(&stage.entry(&["data"], json!({}))).unwrap();
        let code = "open('data/a.txt', 'w')";
        let outcome = call(&stage.runtime, &server, "run", json!({"code": code, "fails": true}));
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
                let server = stage.start(&stage.entry(&[], json!({}))).unwrap();
                let input = json!({"code": get("http://api.example.com"), failing: true});
                let said = message(&call(&stage.runtime, &server, "run", input));
                let file = "`~/.config/prowess/prowess.toml`";
                let key = format!("`hosts = […]` in `[servers.x]` of {file}");
                assert!(said.contains(&key), "{level}: {said}");
                let server =
                    stage.start(&stage.entry(&[], json!({"hosts": ["example.org"]}))).unwrap();
                let input = json!({"code": get(&other.url("/")), failing: true});
                let said = message(&call(&stage.runtime, &server, "run", input));
                let file = stage.path(SETTINGS);
                let reason =
                    format!("add `127.0.0.1:{}` to `servers.x.hosts` in `{file}`", other.port());
                assert!(said.contains(&reason), "{level}: {said}");
                // An earlier refusal does not explain a later failure.
                let input = json!({"code": "raise ValueError('no')", failing: true});
                assert_eq!(call(&stage.runtime, &server, "run", input).hint, None);
            }
        }
    }

    #[test]
    fn nobody_is_asked_about_a_server_that_cannot_start() {
        let stage = Stage::new();
        let asked = Arc::new(Asked::new(ApproverReply::Once));
        let launcher = stage.launcher(asked.clone());
        let unprepared = stage.of_project(&json!({"command": "uvx", "args": ["none-such"]}));
        let outcome = stage.runtime.block_on(launcher.connect(&unprepared)).unwrap_err();
        let said = message(&outcome);
        assert!(said.contains("not prepared / run `prowess prepare --server x`"), "{said}");
        assert_eq!(asked.questions(), []);
        stage.world.write("project/server.py", SERVER);
        let own = stage.of_project(&json!({"command": "python3", "args": ["server.py"]}));
        stage.runtime.block_on(launcher.connect(&own)).unwrap();
        assert_eq!(asked.questions()[0].why, "this project's file wants to start a program");
    }

    #[test]
    fn whoever_says_no_is_not_asked_again() {
        let stage = Stage::new();
        stage.world.write("project/server.py", SERVER);
        let own = stage.of_project(&json!({"command": "python3", "args": ["server.py"]}));
        let no = Arc::new(Asked::new(ApproverReply::No));
        let launcher = stage.launcher(no.clone());
        for hint in ["nothing was done", "you denied it earlier"] {
            let outcome = stage.runtime.block_on(launcher.connect(&own)).unwrap_err();
            assert_eq!(outcome.status, OutcomeStatus::Refused);
            assert!(message(&outcome).contains(hint), "{outcome:?}");
            assert_eq!(no.questions().len(), 1);
        }
        let changed =
            json!({"command": "python3", "args": ["server.py"], "hosts": ["example.com"]});
        let changed = stage.of_project(&changed);
        let _ = stage.runtime.block_on(launcher.connect(&changed)).unwrap_err();
        assert_eq!(no.questions().len(), 2);
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
            let server = stage
                .start(&stage.entry(
                    &["project", "key.txt", "root", "../project"],
                    json!({"hosts": ["example.com"]}),
                ))
                .unwrap();
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
