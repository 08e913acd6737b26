//! Configured servers: what the program says of them, and what they have written.

use std::{
    fs,
    net::ToSocketAddrs as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, LazyLock},
};

use prowess_cli::settings::{Config, Places};
use prowess_runtime::{Policy, approval::ApproverReply, policy::Decision};
use prowess_testing::{
    configured_server::{SERVER, virtual_environment},
    mcp_sdk::{self, SDK, python},
    skill_servers::{self, mcp_launcher},
    tools::Asked,
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::{
    ask::ask,
    model_server::{Answer, ModelServer},
    server::{Server as Listener, answer},
    world::{Ran, SETTINGS, World, program},
};

/// A home, a current project, and a server in a folder of its own.
struct Stage {
    world: World,
}

impl Stage {
    fn new() -> Self {
        Self { world: World::new().file("tools/server.py", SERVER).folder("project") }
    }

    fn path(&self, path: &str) -> String {
        self.world.path(path).display().to_string()
    }

    fn home(&self) -> PathBuf {
        fs::canonicalize(self.world.path("home")).unwrap()
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

    /// Runs the program in the project.
    fn prowess(&self, words: &[&str]) -> Ran {
        self.prowess_with(words, &[])
    }

    /// Like [`prowess`](Self::prowess), with more variables.
    fn prowess_with(&self, words: &[&str], variables: &[(&str, &Path)]) -> Ran {
        let mut command = self.world.command(words);
        command.envs(variables.iter().copied());
        let output = command.current_dir(self.world.path("project")).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        Ran { code: output.status.code(), out: output.stdout, stderr }
    }
}

mod a_server_is_given_what_its_entry_names {
    use super::*;

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
        let project = fs::canonicalize(world.path("project")).unwrap();
        let places =
            Places { from: Some(project.clone()), home: Some(stage.home()), ..Places::default() };
        let config = Config::load(&places).unwrap();
        let asked = Arc::new(Asked::new(ApproverReply::Once));
        let policy = Policy { secret_reads: Decision::Ask, ..config.policy(&project) };
        let launcher = mcp_launcher(policy, asked.clone());
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(launcher.connect(&config.servers.value.0[0])).unwrap();
        let read = |path: &str| {
            let code = format!("out = open({path:?}).read()");
            let outcome = skill_servers::call(&runtime, &server, "run", json!({ "code": code }));
            outcome.output.unwrap().as_str().unwrap().to_owned()
        };
        let is_denied = |path: &str| {
            let said = read(path);
            said.contains("FileNotFoundError") || said.contains("PermissionError")
        };
        assert_eq!(read("in.txt"), "project/in.txt");
        for path in [&*format!("{other}/out.txt"), "linked/out.txt", "../other/out.txt"] {
            assert!(is_denied(path), "{path}");
        }
        assert!(is_denied(".env") || read(".env").is_empty());
        let content = asked.questions().remove(0).content.unwrap();
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
        let notes = stage.home().join("notes");
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
        assert!(ran.stderr.contains("is not a package of a registry"), "{}", ran.stderr);
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
        let home = stage.home();
        let opens = format!("open({:?})", home.join("notes/a.txt"));
        let table = [
            (&*opens, "", "No such file", "add `read = [\"~/notes/a.txt\"]` in `[servers.x]`"),
            ("open('data/b.txt', 'w')", "args2", "Read-only", "add `write = ["),
            ("import none_such", "", "ModuleNotFoundError", "cannot find the module `none_such`"),
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
                "it tried to connect to `api.example.com`: add \"api.example.com\"",
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
        assert!(ran.stderr.contains("`--unsandboxed` does not apply to servers"), "{}", ran.stderr);
    }

    #[test]
    fn what_a_server_prints_does_no_harm() {
        let stage = Stage::new();
        stage.world.write("home/.ssh/id_ed25519", "x");
        let key = stage.home().join(".ssh/id_ed25519");
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
        let hint =
            "which may contain secrets: if the server needs it, add it to `read` in `[servers.x]`";
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
        let said = stage.prowess(&["servers", "--json"]).json().to_string();
        for text in [&*ran.stderr, &*said] {
            assert!(!text.contains("s3cret") && !text.contains("a1B2a1B2"), "{text}");
            assert!(!text.contains("add `read"), "{text}");
        }
        for path in
            [".config", ".config/prowess", ".mozilla", ".bash_history", ".local/state/prowess"]
        {
            let real = stage.home().join(path);
            match path {
                ".bash_history" => stage.world.write("home/.bash_history", "x"),
                path => fs::create_dir_all(stage.world.path("home").join(path)).unwrap(),
            }
            let code = format!("import sys; sys.exit('Permission denied: {}')", real.display());
            let toml =
                format!("[servers.x]\ncommand = {:?}\nargs = [\"-c\", {code:?}]\n", python());
            stage.world.write(SETTINGS, toml);
            let ran = stage.prowess(&["servers"]);
            let is_said = ["may contain secrets", "which servers cannot access"]
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
            (long, 0, "`deep` is left out: its schema is too large"),
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
        let entry = "[servers.x]\ncommand = \"uvx\"\nargs = [\"none-such\"]\n";
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
                let warning = format!("warning: `{option}` does not apply to servers");
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

    /// Runs the program with the packages of that store.
    fn prowess(stage: &Stage, words: &[&str]) -> Ran {
        let [data, state] = &*PREPARED;
        stage.prowess_with(words, &[("XDG_DATA_HOME", data), ("XDG_STATE_HOME", state)])
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
        let stage = Stage::new();
        let world = &stage.world;
        world.write("home/notes/today.md", "buy milk");
        world.write("project/a.txt", "x");
        world.write("home/memory/.keep", "");
        world.write("project/data.db", "");
        world.write("home/own/server.py", fs::read(mcp_sdk::SERVER).unwrap());
        for words in ["init -q", "add -A", "-c user.name=x -c user.email=x commit -qm one"] {
            let mut git = Command::new("git");
            let ran = git.args(words.split(' ')).current_dir(world.path("project")).status();
            assert!(ran.unwrap().success(), "{words}");
        }
        let hello = answer("200 OK", "content-type: text/plain\r\n", "hello from here");
        let listener = Listener::saying(hello);
        let page = "<html><body><h1>About tea</h1><ul><li>green</li></ul></body></html>";
        let page = Listener::saying(answer("200 OK", "content-type: text/html\r\n", page));
        let home = stage.home();
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
                let ran = prowess(&stage, &["prepare", "--server", name, "--yes"]);
                assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
            }
            let tool = format!("mcp__{name}__{tool}");
            let ran = prowess(&stage, &["tool", &tool, &input.to_string(), "--json"]);
            assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
            let said = ran.json()["outcome"]["output"].to_string();
            assert!(said.contains(words), "{name}: {said}");
        }
        assert_eq!(fs::read_to_string(stage.world.path("project/b.txt")).unwrap(), "new");
        assert!(fs::read_to_string(&memory).unwrap().contains("Ada"));
    }
}
