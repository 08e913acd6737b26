//! Changes that need approval, and their undo.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    sync::Arc,
};

use prowess::{AllowedTools, Manifest};
use prowess_runtime::{
    Action, Authorizer, DenyAll, OutcomeStatus, Policy, Tool as _,
    approval::{ActionRequest, ApproverReply},
    policy::{Decision, PolicyRule},
};
use prowess_testing::tools::{WorkFolder, wait_for};
use serde_json::{Value as Json, json};

use crate::{
    model_server::{Answer, ModelServer},
    world::{Ran, SKILLS, World, call},
};

/// The user's own settings.
const USER: &str = "home/.config/prowess/prowess.toml";

/// Returns the input with which `file_operations` writes a file.
fn writing(path: &str, content: &str) -> Json {
    json!({ "operation": "write", "path": path, "content": content })
}

/// Calls a tool by the program, without a terminal.
fn tool(world: &World, name: &str, input: &Json, more: &[&str]) -> Ran {
    world.run([&["tool", name, &input.to_string()], more].concat())
}

fn write(world: &World, path: &str, content: &str, more: &[&str]) -> Ran {
    tool(world, "file_operations", &writing(path, content), more)
}

fn command(world: &World, line: &str, more: &[&str]) -> Ran {
    tool(world, "execute_command", &json!({ "command": line }), more)
}

/// Calls a tool by the program at a terminal, with this typed input.
fn at_terminal(world: &World, typed: &str, name: &str, input: &Json, more: &str) -> Ran {
    world.write("input.json", input.to_string());
    world.run_at_terminal(typed, &format!("tool {name} @input.json {more}"))
}

fn read(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap_or_else(|error| format!("{path}: {error}"))
}

/// Returns the number of questions.
fn questions(ran: &Ran) -> usize {
    ran.stdout().matches("May prowess").count()
}

mod a_file_is_written_only_after_a_yes {
    use super::*;

    #[test]
    fn every_write_asks_and_shows_what_would_change() {
        let world = World::new().file("notes.txt", "one\ntwo\nthree\n");
        let input = writing("notes.txt", "one\n2\nthree\n");
        for typed in ["n\n", "\n", "yess\n", ""] {
            let ran = at_terminal(&world, typed, "file_operations", &input, "");
            let said = ran.stdout();
            assert_eq!((ran.code, questions(&ran)), (Some(1), 1), "{said}");
            for part in ["May prowess overwrite `", "/notes.txt`", "-two", "+2", "[s]ession"] {
                assert!(said.contains(part), "{part}: {said}");
            }
            assert_eq!(read(&world, "notes.txt"), "one\ntwo\nthree\n");
        }
        let ran = at_terminal(&world, "y\n", "file_operations", &input, "");
        assert_eq!(ran.code, Some(0), "{}", ran.stdout());
        assert_eq!(read(&world, "notes.txt"), "one\n2\nthree\n");
        let new = writing("new/file.txt", "fresh line\n");
        let ran = at_terminal(&world, "n\n", "file_operations", &new, "");
        let said = ran.stdout();
        assert!(said.contains("May prowess create `") && said.contains("  fresh line"), "{said}");
        assert!(!world.path("new").exists());
        let ran = at_terminal(&world, "y\n", "file_operations", &new, "");
        assert_eq!((ran.code, &*read(&world, "new/file.txt")), (Some(0), "fresh line\n"));
    }

    #[test]
    fn where_nobody_can_be_asked_nothing_is_written() {
        let world = World::new().file("precious.txt", "precious");
        let ran = write(&world, "precious.txt", "gone", &["--json"]);
        let outcome = &ran.json()["outcome"];
        assert_eq!((ran.code, &outcome["status"]), (Some(1), &json!("refused")), "{outcome:#}");
        let text = outcome.to_string();
        for part in ["approval is needed to overwrite", "there was no one to ask", "`--yes`"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(read(&world, "precious.txt"), "precious");
        let ran = write(&world, "precious.txt", "new", &["--yes"]);
        assert_eq!((ran.code, &*read(&world, "precious.txt")), (Some(0), "new"), "{}", ran.stderr);
        let calls = || Answer::calls([("file_operations", writing("precious.txt", "by a model"))]);
        let server =
            ModelServer::start([calls(), Answer::text("No."), calls(), Answer::text("Ok.")]);
        let url = server.url();
        let ask = ["ask", "Write it", "--model", "m", "--base-url", &url];
        let ran = world.run(ask);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "No.\n"), "{}", ran.stderr);
        assert!(ran.stderr.contains("note: refused to overwrite `"), "{}", ran.stderr);
        assert!(server.last().to_string().contains("approval is needed to overwrite"));
        assert_eq!(read(&world, "precious.txt"), "new");
        let ran = world.run([&ask[..], &["--yes"]].concat());
        assert_eq!((ran.code, &*read(&world, "precious.txt")), (Some(0), "by a model"));
    }

    #[test]
    fn a_write_that_is_refused_says_why_once() {
        let deny = "[policy]\nwrites = \"deny\"\n";
        let rule = "[[policy.rules]]\ntool = \"file_operations\"\ndecision = \"deny\"\n";
        let deep = format!("{}/x", ["a-long-name-of-a-folder"; 5].join("/"));
        for (settings, path, why) in [
            ("", &*deep, "because `policy.writes` is `ask`"),
            ("", "AGENTS.md", "because agents follow its instructions"),
            ("", "prowess.toml", "`prowess.toml` is protected: other programs or agents act on it"),
            (deny, &*deep, "`policy.writes` is `deny`"),
            (rule, &*deep, "a rule with the decision `deny`"),
        ] {
            let world = World::new().file("home/.config/prowess/prowess.toml", settings);
            let call = || Answer::calls([("file_operations", writing(path, "by a model"))]);
            let server = ModelServer::start([call(), call(), Answer::text("No.")]);
            let url = server.url();
            let ran = world.run(["ask", "Write it", "--model", "m", "--base-url", &url]);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "No.\n"), "{}", ran.stderr);
            assert_eq!(ran.stderr.matches(why).count(), 1, "{path}: {}", ran.stderr);
            let calls = ran.stderr.lines().filter(|it| !it.starts_with("note: "));
            assert_eq!(calls.filter(|it| it.contains(": refused")).count(), 2, "{}", ran.stderr);
        }
        let world = World::new();
        let call = Answer::calls([("file_operations", writing("x", "by a model"))]);
        let server = ModelServer::start([call, Answer::text("No.")]);
        let ask = format!("ask Write --model m --base-url {}", server.url());
        let ran = world.run_at_terminal("n\n", &ask);
        let said = ran.stdout();
        assert_eq!(said.matches("because the answer was no").count(), 1, "{said}");
    }

    #[test]
    fn a_yes_can_hold_for_the_session_or_for_the_file() {
        let world = World::new();
        let calls = Answer::calls([
            ("file_operations", writing("a.txt", "a")),
            ("file_operations", writing("sub/b.txt", "b")),
            ("file_operations", writing("a.txt", "c")),
        ]);
        let server = ModelServer::start([calls, Answer::text("Done.")]);
        let ask = format!("ask Write --model m --base-url {}", server.url());
        let ran = world.run_at_terminal("s\n", &ask);
        assert_eq!((ran.code, questions(&ran)), (Some(0), 1), "{}", ran.stdout());
        assert_eq!((&*read(&world, "a.txt"), &*read(&world, "sub/b.txt")), ("c", "b"));
        // The next session asks again, and `always` applies to one file only.
        let input = writing("a.txt", "d");
        let ran = at_terminal(&world, "a\n", "file_operations", &input, "");
        assert_eq!((ran.code, questions(&ran)), (Some(0), 1), "{}", ran.stdout());
        let absolute = world.path("a.txt").display().to_string();
        for (path, passes) in [
            ("a.txt", true),
            ("./a.txt", true),
            (".//a.txt", true),
            (&*absolute, true),
            ("A.txt", false),
            ("sub/a.txt", false),
            ("sub/b.txt", false),
        ] {
            let ran = write(&world, path, "again", &[]);
            assert_eq!(ran.code == Some(0), passes, "{path}: {}", ran.stderr);
        }
        assert_eq!(write(&world, "other.txt", "x", &["--yes"]).code, Some(0));
        assert_eq!(write(&world, "other.txt", "y", &[]).code, Some(1));
        // After the approval is forgotten, the user is asked again.
        fs::remove_file(world.path("home/.local/state/prowess/approvals.json")).unwrap();
        assert_eq!(write(&world, "a.txt", "more", &[]).code, Some(1));
    }

    #[test]
    fn secrets_hidden_files_startup_files_and_instructions_for_agents_always_ask() {
        let world = World::new().file(USER, "[policy]\nwrites = \"allow\"\n");
        let ran = write(&world, "notes.txt", "x", &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for path in [
            ".env",
            "sub/.env.local",
            "server.pem",
            "tls/site.key",
            "id_ed25519",
            ".xprofile",
            ".vimrc",
            ".tmux.conf",
            ".gdbinit",
            "usercustomize.py",
            "bin/tool",
            ".oh-my-zsh/custom/x.zsh",
            "AGENTS.md",
            "docs/CLAUDE.md",
            ".agents/skills/x/SKILL.md",
            ".idea/misc.xml",
            ".config/Code/User/settings.json",
        ] {
            for more in [&[][..], &["--yes"]] {
                let ran = write(&world, path, "x", more);
                assert_eq!(ran.code, Some(1), "{path}: {}", ran.stderr);
                assert!(
                    ran.stderr.contains("`--yes` is not enough: answer at a terminal"),
                    "{}",
                    ran.stderr
                );
                assert!(!world.path(path).exists(), "{path}");
            }
        }
        // With a flag, the person at the terminal is still asked.
        let ran = at_terminal(&world, "n\n", "file_operations", &writing(".env", "x"), "--yes");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 1), "{}", ran.stdout());
        assert!(ran.stdout().contains("it may contain secrets"), "{}", ran.stdout());
        let ran = at_terminal(&world, "a\n", "file_operations", &writing(".env", "x"), "--yes");
        assert_eq!((ran.code, &*read(&world, ".env")), (Some(0), "x"), "{}", ran.stdout());
        assert_eq!(write(&world, ".env", "y", &[]).code, Some(0));
        assert_eq!(write(&world, ".env.local", "y", &[]).code, Some(1));
        // An answer for the session does not cover them.
        let calls = Answer::calls([
            ("file_operations", writing("a.txt", "a")),
            ("file_operations", writing("AGENTS.md", "b")),
        ]);
        let server = ModelServer::start([calls, Answer::text("Done.")]);
        world.write(USER, "");
        let ask = format!("ask Write --model m --base-url {}", server.url());
        let ran = world.run_at_terminal("s\nn\n", &ask);
        assert_eq!(questions(&ran), 2, "{}", ran.stdout());
        assert!(world.path("a.txt").exists() && !world.path("AGENTS.md").exists());
        let rule = "[policy]\nrules = [{ decision = \"allow\", path = \"AGENTS.md\" }]\n";
        world.write(USER, rule);
        assert_eq!(write(&world, "AGENTS.md", "mine", &[]).code, Some(1), "it names another file");
        let named = format!("path = \"{}\"", world.path("AGENTS.md").display());
        world.write(USER, rule.replace("path = \"AGENTS.md\"", &named));
        let ran = write(&world, "AGENTS.md", "mine", &[]);
        assert_eq!((ran.code, &*read(&world, "AGENTS.md")), (Some(0), "mine"), "{}", ran.stderr);
    }

    #[test]
    fn a_question_hides_nothing_of_what_would_be_written() {
        let world = World::new().file("x", "plain\n").file("binary", [0, 159, 146, 150]);
        let hidden =
            format!("plain\nsafe\u{1b}[2J\u{202e}\u{200b}evil\u{e0041}{}end\n", " ".repeat(300));
        let shown = |input: &Json| {
            let ran = at_terminal(&world, "n\n", "file_operations", input, "");
            assert_eq!((ran.code, questions(&ran)), (Some(1), 1), "{}", ran.stdout());
            let said = ran.stdout().to_owned();
            assert!(!said.contains("\u{1b}[2J") && !said.contains('\u{202e}'), "{said:?}");
            said
        };
        let said = shown(&writing("x", &hidden));
        for part in ["+safe\\u{1b}[2J\\u{202e}\\u{200b}evil\\u{e0041}", "more characters"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = shown(&writing("new", &hidden));
        assert!(said.contains("  safe\\u{1b}[2J\\u{202e}"), "{said}");
        let long: String = (0..5000).map(|it| format!("line {it}\n")).collect();
        let said = shown(&writing("x", &long));
        assert!(said.contains("more with +") && said.lines().count() < 300, "{said}");
        let said = shown(&writing("new", &long));
        assert!(said.contains("… and 4800 more lines") && said.lines().count() < 300, "{said}");
        let said = shown(&writing("binary", "text"));
        assert!(said.contains("not text: 4 → 4 bytes"), "{said}");
        let said = shown(&writing("x", &"a".repeat(3 << 20)));
        assert!(said.contains("6 → 3145728 bytes"), "{said}");
        let said = shown(&writing("x\u{1b}[2J\u{202e}.txt", "text"));
        assert!(said.contains("x\\u{1b}[2J\\u{202e}.txt"), "{said}");
    }

    #[test]
    fn nothing_is_drawn_over_a_question() {
        let world = World::new();
        let paths: Vec<String> = (0..8).map(|it| format!("{it}.txt")).collect();
        let calls = Answer::calls(paths.iter().map(|it| ("file_operations", writing(it, "x"))));
        let server = ModelServer::start([calls, Answer::text("Done.")]);
        let ask = format!("ask Write --model m --base-url {}", server.url());
        let ran = world.run_at_xterm(&"y\n".repeat(8), &ask);
        let said = ran.stdout();
        assert_eq!((ran.code, questions(&ran)), (Some(0), 8), "{said:?}");
        for question in said.split("[y]es, [n]o").skip(1) {
            let line = question.lines().next().unwrap();
            assert!(line.ends_with(": y") && !line.contains('\x1b'), "{said:?}");
        }
    }

    #[test]
    fn the_policy_can_allow_or_deny_writes() {
        let world = World::new().file(USER, "[policy]\nwrites = \"deny\"\n");
        let ran = at_terminal(&world, "y\n", "file_operations", &writing("x", "x"), "--yes");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 0), "{}", ran.stdout());
        assert!(ran.stdout().contains("`policy.writes` is `deny`"), "{}", ran.stdout());
        let setting = |world: &World, key: &str| {
            let ran = world.run(["config", key, "--json"]);
            (ran.json()["settings"][0]["value"].as_str().unwrap().to_owned(), ran.stderr)
        };
        let loose = "[policy]\nwrites = \"allow\"\nunlisted_commands = \"ask\"\n";
        let strict = "[policy]\nwrites = \"deny\"\nunlisted_commands = \"deny\"\n";
        for (user, project, writes, unlisted) in [
            ("", "", "ask", "ask"),
            ("", loose, "ask", "ask"),
            ("", strict, "deny", "deny"),
            (loose, "", "allow", "ask"),
            (strict, loose, "deny", "deny"),
        ] {
            let world = World::new().file(USER, user).file("prowess.toml", project);
            let (is, told) = setting(&world, "policy.writes");
            assert_eq!(is, writes, "{user} {project}");
            let is_set_aside = project == loose;
            assert_eq!(told.contains("ignored `policy.writes`"), is_set_aside, "{told}");
            assert_eq!(setting(&world, "policy.unlisted_commands").0, unlisted, "{user} {project}");
        }
        // Settings of a project do not approve anything either.
        let world = World::new().file("prowess.toml", loose);
        assert_eq!(write(&world, "x", "x", &[]).code, Some(1));
        let stage = WorkFolder(&world);
        let listing = Manifest {
            allowed_tools: AllowedTools::from_text("Write Bash"),
            ..Manifest::default()
        };
        for policy in [stage.policy(), Policy { writes: Decision::Allow, ..stage.policy() }] {
            let is_asked = policy.writes == Decision::Ask;
            let commands = stage.commands(&policy);
            let authorizer = Authorizer::new(policy, Arc::new(DenyAll));
            let files = stage.files().action(&writing("x", "x")).unwrap();
            let touch = commands.action(&json!({ "command": "touch x" })).unwrap();
            let active = std::slice::from_ref(&listing);
            let authorize = |tool: &str, action: &Action| {
                wait_for(authorizer.authorize(&ActionRequest { tool, action, active, given: None }))
                    .is_ok()
            };
            assert_eq!(authorize("file_operations", &files), !is_asked);
            assert!(!authorize("execute_command", &touch));
        }
        // The default of the library.
        let policy = Policy { roots: vec![stage.root()], ..Policy::default() };
        let mut authorizer = Authorizer::new(policy, Arc::new(DenyAll));
        let action = stage.files().action(&writing("x", "x")).unwrap();
        let requested =
            ActionRequest { tool: "file_operations", action: &action, active: &[], given: None };
        assert!(wait_for(authorizer.authorize(&requested)).is_ok());
        let tool = PolicyRule { tool: Some("*".into()), ..PolicyRule::new(Decision::Allow) };
        authorizer.policy = Policy { rules: vec![tool], ..stage.policy() };
        assert!(
            wait_for(authorizer.authorize(&requested)).is_ok(),
            "a rule decides before the setting"
        );
        let action = stage.files().action(&writing(".env", "x")).unwrap();
        assert!(
            wait_for(authorizer.authorize(&ActionRequest { action: &action, ..requested }))
                .is_err()
        );
    }

    #[test]
    fn a_write_replaces_one_name_and_follows_no_link() {
        let world = World::new().file("x", "old").file("outside", "old");
        fs::hard_link(world.path("x"), world.path("y")).unwrap();
        symlink(world.path("outside"), world.path("link")).unwrap();
        assert_eq!(write(&world, "x", "new", &["--yes"]).code, Some(0));
        assert_eq!((&*read(&world, "x"), &*read(&world, "y")), ("new", "old"));
        let ran = at_terminal(&world, "y\n", "file_operations", &writing("link", "new"), "");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 0), "{}", ran.stdout());
        assert_eq!(read(&world, "outside"), "old");
    }
}

mod what_a_tool_wrote_can_be_undone {
    use super::*;

    fn undo(world: &World, more: &[&str]) -> Ran {
        world.run([&["undo"], more].concat())
    }

    #[test]
    fn undo_restores_what_was_written_over() {
        let world = World::new().file("x.sh", "old\0bytes");
        fs::set_permissions(world.path("x.sh"), fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(write(&world, "x.sh", "new", &["--yes"]).code, Some(0));
        assert_eq!(write(&world, "made/by.txt", "tool", &["--yes"]).code, Some(0));
        let kept = world.path("home/.local/state/prowess/changes");
        let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&kept), 0o700);
        for entry in fs::read_dir(&kept).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
        let ran = undo(&world, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("by.txt` is removed"), "{}", ran.stderr);
        assert!(!world.path("made/by.txt").exists());
        // A file that is gone altogether is restored with its mode.
        fs::remove_file(world.path("x.sh")).unwrap();
        let ran = undo(&world, &["--json"]);
        assert_eq!((ran.code, &ran.json()["change"]), (Some(0), &json!("restored")));
        assert_eq!(read(&world, "x.sh"), "old\0bytes");
        assert_eq!(mode(&world.path("x.sh")), 0o750);
        let ran = undo(&world, &[]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("nothing to undo"), "{}", ran.stderr);
    }

    #[test]
    fn undo_loses_nothing_and_needs_no_settings_of_the_project() {
        let world = World::new();
        assert_eq!(write(&world, "new.txt", "precious", &["--yes"]).code, Some(0));
        assert_eq!(world.run(["config"]).code, Some(0));
        fs::write(world.path("prowess.toml"), "x").unwrap();
        assert_eq!(world.run(["config"]).code, Some(2));
        let ran = undo(&world, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!world.path("new.txt").exists());
        assert!(ran.stderr.contains("settings of the project are ignored"), "{}", ran.stderr);
        let kept = ran.stderr.split("its content is in `").nth(1).unwrap();
        let kept = kept.replace("\n  ", "").split('`').next().unwrap().to_owned();
        assert_eq!(fs::read_to_string(kept).unwrap(), "precious");
    }

    #[test]
    fn undo_removes_the_folders_that_were_made_for_a_file() {
        let world = World::new().folder("there");
        for path in ["notes/old/plan.md", "there/plan.md", "notes/old/more.md"] {
            assert_eq!(write(&world, path, "x", &["--yes"]).code, Some(0));
        }
        let ran = undo(&world, &["-q"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        assert!(world.path("notes/old/plan.md").exists());
        assert_eq!(undo(&world, &[]).code, Some(0));
        assert!(world.path("there").exists());
        assert_eq!(undo(&world, &[]).code, Some(0));
        assert!(!world.path("notes").exists());
    }

    #[test]
    fn undo_takes_the_last_change_whatever_it_was() {
        let world = World::new().skill("one", "a").file("a", "a1").file("b", "b1");
        assert_eq!(write(&world, "a", "a2", &["--yes"]).code, Some(0));
        assert_eq!(world.run(["remove", "one", "--dir", "skills"]).code, Some(0));
        assert_eq!(write(&world, "b", "b2", &["--yes"]).code, Some(0));
        assert_eq!(write(&world, "a", "a3", &["--yes"]).code, Some(0));
        let ran = undo(&world, &["--list", "--dir", "skills", "--json"]);
        let all: Vec<String> =
            ran.json()["changes"].as_array().unwrap().iter().map(named).collect();
        assert_eq!(all, ["a", "b", "one", "a"]);
        let ran = undo(&world, &["--list", "--dir", "skills"]);
        assert_eq!(ran.stdout().lines().count(), 4, "{}", ran.stdout());
        assert!(ran.stdout().contains("removed the skill one"), "{}", ran.stdout());
        assert_eq!(undo(&world, &["b", "--dir", "skills"]).code, Some(0));
        assert_eq!((&*read(&world, "a"), &*read(&world, "b")), ("a3", "b1"));
        for (a, is_back) in [("a2", false), ("a2", true), ("a1", true)] {
            let ran = undo(&world, &["--dir", "skills"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!(read(&world, "a"), a);
            assert_eq!(world.path("skills/one/SKILL.md").exists(), is_back);
        }
        assert_eq!(undo(&world, &SKILLS).code, Some(1));
    }

    /// Returns the target of a change.
    fn named(change: &Json) -> String {
        let path = change["path"].as_str().map(|it| it.rsplit('/').next().unwrap());
        path.or_else(|| change["skill"].as_str()).unwrap().to_owned()
    }

    #[test]
    fn undo_leaves_alone_what_has_changed_since() {
        let world = World::new().file("sub/x", "old").file("elsewhere/x", "precious");
        assert_eq!(write(&world, "sub/x", "new", &["--yes"]).code, Some(0));
        world.write("sub/x", "my own work");
        let ran = undo(&world, &[]);
        assert_eq!((ran.code, &*read(&world, "sub/x")), (Some(1), "my own work"));
        let said = &ran.stderr;
        assert!(said.contains("has changed since then"), "{said}");
        let kept = said.split("content is in `").nth(1).unwrap().split('`').next().unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), "old");
        fs::rename(world.path("sub"), world.path("moved")).unwrap();
        world.write("elsewhere/x", "new");
        symlink("elsewhere", world.path("sub")).unwrap();
        let ran = undo(&world, &[]);
        assert_eq!((ran.code, &*read(&world, "elsewhere/x")), (Some(1), "new"), "{}", ran.stderr);
        // A created file that changed since is not removed, and does not block other changes.
        let world = world.file("before", "old");
        assert_eq!(write(&world, "before", "new", &["--yes"]).code, Some(0));
        assert_eq!(write(&world, "fresh", "by a tool", &["--yes"]).code, Some(0));
        world.write("fresh", "mine");
        let ran = undo(&world, &[]);
        assert_eq!((ran.code, &*read(&world, "fresh")), (Some(1), "mine"));
        assert!(ran.stderr.contains("`prowess undo --skip`"), "{}", ran.stderr);
        let ran = undo(&world, &["--skip"]);
        assert_eq!((ran.code, &*read(&world, "before")), (Some(0), "old"), "{}", ran.stderr);
        let ran = undo(&world, &["--skip"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("has changed since"), "{}", ran.stderr);
    }

    #[test]
    fn without_an_argument_only_this_project_is_undone() {
        let world = World::new().file("one/x", "old").file("two/y", "old").folder("three/.git");
        let within =
            |folder: &str, more: &str| world.run_script(&format!("cd {folder} && \"$0\" {more}"));
        let write = |folder: &str, name: &str| {
            let input = json!({ "operation": "write", "path": name, "content": "new" });
            let ran = within(folder, &format!("tool file_operations '{input}' --yes"));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        };
        write("one", "x");
        write("two", "y");
        let ran = within("one", "undo");
        assert_eq!((ran.code, &*read(&world, "one/x"), &*read(&world, "two/y")), {
            (Some(0), "old", "new")
        });
        for folder in ["one", "three"] {
            let ran = within(folder, "undo");
            assert_eq!((ran.code, &*read(&world, "two/y")), (Some(1), "new"));
            assert!(ran.stderr.contains("nothing to undo in `"), "{}", ran.stderr);
            assert!(ran.stderr.contains("overwrote") && ran.stderr.contains("two/y"));
        }
        let id = undo(&world, &["--list", "--json"]).json()["changes"][0]["id"].take();
        let ran = within("three", &format!("undo {}", id.as_str().unwrap()));
        assert_eq!((ran.code, &*read(&world, "two/y")), (Some(0), "old"), "{}", ran.stderr);
    }

    /// Runs the program in a folder of the world.
    fn within(world: &World, folder: &str, more: &str) -> Ran {
        world.run_script(&format!("cd {folder} && \"$0\" {more}"))
    }

    #[test]
    fn undo_tells_of_a_newer_change_outside_of_the_project() {
        let world = World::new()
            .file("one/x", "old")
            .skill_in("two/skills", "broken", "a")
            .skill_in("two/skills", "other", "a");
        let input = json!({ "operation": "write", "path": "x", "content": "new" });
        let write = || within(&world, "one", &format!("tool file_operations '{input}' --yes"));
        let noted = |ran: &Ran| {
            let notes = ran.stderr.lines().filter(|it| it.contains("outside this project"));
            notes.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(write().code, Some(0));
        assert_eq!(noted(&within(&world, "one", "undo")), [""; 0]);
        // A fix of two files.
        assert_eq!(write().code, Some(0));
        for name in ["broken", "other"] {
            let text = format!("\u{feff}---\nname: {name}\ndescription: a\n---\n");
            world.write(format!("two/skills/{name}/SKILL.md"), text);
        }
        assert_eq!(within(&world, "two", "check skills --fix").code, Some(0));
        let ran = within(&world, "one", "undo");
        assert_eq!((ran.code, &*read(&world, "one/x")), (Some(0), "old"), "{}", ran.stderr);
        let list = undo(&world, &["--list", "--json"]).json();
        let group = list["changes"][0]["group"].as_str().unwrap();
        let told = noted(&ran);
        assert_eq!(told.len(), 1, "{}", ran.stderr);
        assert!(told[0].contains(&format!("`prowess undo {group}`")), "{}", told[0]);
        assert!(told[0].contains("overwrote") && told[0].contains("two/skills/"), "{}", told[0]);
        // A removal.
        assert_eq!(write().code, Some(0));
        for name in ["broken", "other"] {
            let ran = within(&world, "two", &format!("remove {name} --dir skills"));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        let ran = within(&world, "one", "undo");
        assert_eq!((ran.code, &*read(&world, "one/x")), (Some(0), "old"), "{}", ran.stderr);
        let told = noted(&ran);
        assert_eq!(told.len(), 1, "{}", ran.stderr);
        assert!(told[0].contains("2 newer changes"), "{}", told[0]);
        assert!(told[0].contains("`prowess undo other`"), "{}", told[0]);
        let ran = within(&world, "one", "undo");
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(!world.path("two/skills/other").exists());
        assert!(ran.stderr.contains("removed the skill other"), "{}", ran.stderr);
        assert_eq!(within(&world, "one", "undo other").code, Some(0));
        assert!(world.path("two/skills/other/SKILL.md").exists());
    }

    #[test]
    fn skipping_takes_back_the_rest_of_a_fix() {
        let text = |name: &str| format!("\u{feff}---\nname: {name}\ndescription: a\n---\n");
        let names = ["One", "two", "Three"];
        let world = names.iter().fold(World::new(), |it, name| it.document(name, text(name)));
        let held = |name: &str| read(&world, &format!("skills/{name}/SKILL.md"));
        let fix = ["check", "skills", "--fix", "--rename", "lowercase"];
        assert_eq!(world.run(fix).code, Some(0));
        world.write("skills/two/SKILL.md", "mine");
        // A later change, also changed since.
        assert_eq!(write(&world, "fresh", "by a tool", &["--yes"]).code, Some(0));
        world.write("fresh", "mine");
        let ran = undo(&world, &["--skip"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for name in ["One", "Three"] {
            assert_eq!(held(name), text(name));
            assert!(!world.path("skills").join(name.to_lowercase()).exists(), "{name}");
        }
        assert_eq!((&*held("two"), &*read(&world, "fresh")), ("mine", "mine"));
        let skipped: Vec<_> = ran.stderr.lines().filter(|it| it.contains("skipped")).collect();
        assert_eq!(skipped.len(), 1, "{}", ran.stderr);
        assert!(skipped[0].contains("skills/two/SKILL.md`"), "{}", ran.stderr);
        assert!(skipped[0].contains("fresh`"), "{}", ran.stderr);
        let ran = undo(&world, &["--skip"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("has changed since"), "{}", ran.stderr);
        let left = undo(&world, &["--list", "--json"]).json();
        assert_eq!(left["changes"].as_array().unwrap().len(), 2);

        assert_eq!(write(&world, "other", "by a tool", &["--yes"]).code, Some(0));
        let ran = undo(&world, &["--skip", "--json"]);
        assert_eq!((ran.code, &ran.json()["skipped"]), (Some(0), &json!([])), "{}", ran.stderr);
    }

    #[test]
    fn the_list_has_the_id_of_a_group() {
        let text = |name: &str| format!("\u{feff}---\nname: {name}\ndescription: a\n---\n");
        let world = World::new().document("one", text("one")).document("two", text("two"));
        assert_eq!(write(&world, "alone", "x", &["--yes"]).code, Some(0));
        assert_eq!(world.run(["check", "skills", "--fix"]).code, Some(0));
        let list = undo(&world, &["--list", "--json"]).json();
        let groups: Vec<_> = (0..3).map(|at| list["changes"][at]["group"].clone()).collect();
        assert!(groups[0].is_string() && groups[0] == groups[1], "{list}");
        assert_eq!(groups[2], Json::Null);
        let group = groups[0].as_str().unwrap();
        let ran = undo(&world, &["--list"]);
        let lines: Vec<_> = ran.stdout().lines().map(|it| it.contains(group)).collect();
        assert_eq!(lines, [true, true, false], "{}", ran.stdout());
        assert!(ran.stderr.contains("`prowess undo GROUP`"), "{}", ran.stderr);
        assert_eq!(undo(&world, &[group]).code, Some(0));
        for name in ["one", "two"] {
            assert_eq!(read(&world, &format!("skills/{name}/SKILL.md")), text(name));
        }
    }

    #[test]
    fn a_write_that_changes_nothing_is_not_kept() {
        let world = World::new().file("x", "same");
        assert_eq!(write(&world, "x", "same", &["--yes"]).code, Some(0));
        assert_eq!(undo(&world, &["--list", "--json"]).json()["changes"], json!([]));
    }

    #[test]
    fn what_check_fixed_can_be_undone() {
        let text = "\u{feff}---\nname: one\ndescription: a\n---\n";
        let world = World::new().document("one", text);
        assert_eq!(world.run(["check", "skills", "--fix", "--dry-run"]).code, Some(0));
        assert_eq!(undo(&world, &[]).code, Some(1));
        assert_eq!(world.run(["check", "skills", "--fix"]).code, Some(0));
        assert!(!read(&world, "skills/one/SKILL.md").starts_with('\u{feff}'));
        let ran = undo(&world, &[]);
        assert_eq!((ran.code, &*read(&world, "skills/one/SKILL.md")), (Some(0), text));

        let names = ["one", "two", "three"];
        let world = names
            .iter()
            .fold(World::new(), |world, name| world.document(name, text.replace("one", name)));
        let held = |name: &str| read(&world, &format!("skills/{name}/SKILL.md"));
        assert_eq!(world.run(["check", "skills", "--fix"]).code, Some(0));
        assert_eq!(undo(&world, &[]).code, Some(0));
        assert!(names.iter().all(|it| held(it) == text.replace("one", it)));
        assert_eq!(undo(&world, &[]).code, Some(1));

        assert_eq!(world.run(["check", "skills", "--fix"]).code, Some(0));
        assert_eq!(undo(&world, &["skills/one/SKILL.md"]).code, Some(0));
        assert_eq!((held("one").as_str(), held("two").starts_with('\u{feff}')), (text, false));
        world.write("skills/two/SKILL.md", "mine");
        let ran = undo(&world, &["--json"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert_eq!(ran.json()["changes"][0]["change"], "restored");
        assert!(ran.stderr.contains("skills/two/SKILL.md` has changed since"), "{}", ran.stderr);
        assert_eq!((held("two").as_str(), held("three").starts_with('\u{feff}')), ("mine", true));

        let home = |name: &str| format!("home/.claude/skills/{name}/SKILL.md");
        let world = names
            .iter()
            .fold(World::new(), |world, name| world.file(home(name), text.replace("one", name)));
        let fixed = world.run(["check", "home/.claude/skills", "--fix"]);
        assert_eq!(undo(&world, &[]).code, Some(1));
        let id = fixed.stderr.split("`prowess undo ").nth(1).and_then(|it| it.split('`').next());
        assert_eq!(undo(&world, &[id.unwrap()]).code, Some(0), "{}", fixed.stderr);
        assert!(names.iter().all(|it| read(&world, &home(it)) == text.replace("one", it)));
    }

    #[test]
    fn a_skill_that_was_renamed_is_undone_by_any_of_its_names() {
        let text = |name: &str| format!("---\nname: {name}\ndescription: Use it\n---\n\nDo it.\n");
        let world =
            World::new().document("Broken", text("Broken")).document("Other", text("Other"));
        let fix = || world.run(["check", "skills", "--fix", "--rename", "lowercase"]).code;
        let held = |folder: &str| read(&world, &format!("skills/{folder}/SKILL.md"));
        for name in [
            "broken",
            "Broken",
            "skills/broken",
            "skills/broken/SKILL.md",
            "skills/Broken/SKILL.md",
        ] {
            assert_eq!(fix(), Some(0));
            assert_eq!(held("broken"), text("broken"));
            let ran = undo(&world, &[name]);
            assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
            assert_eq!(held("Broken"), text("Broken"), "{name}");
            assert!(!world.path("skills/broken").exists(), "{name}");
            assert_eq!(held("other"), text("other"), "{name}");
        }
        assert_eq!(fix(), Some(0));
        let later = format!("\u{feff}{}", text("broken"));
        world.write("skills/broken/SKILL.md", &later);
        assert_eq!(world.run(["check", "skills", "--fix"]).code, Some(0));
        assert_eq!(undo(&world, &["broken"]).code, Some(0));
        assert_eq!(held("broken"), later);
        assert_eq!(undo(&world, &["nosuch"]).code, Some(1));
        world.write("elsewhere/.git/x", "");
        assert_eq!(world.run(["--cwd", "elsewhere", "undo", "other"]).code, Some(1));
        assert_eq!(held("other"), text("other"));
    }

    #[test]
    fn what_is_not_kept_is_told() {
        let world = World::new();
        let none = undo(&world, &[]);
        assert_eq!(none.code, Some(1));
        let told = "changes by scripts and commands are not recorded";
        assert!(none.stderr.contains(told), "{}", none.stderr);
        assert!(undo(&world, &["--list"]).stderr.contains(told));
        let help =
            undo(&world, &["--help"]).stdout().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            help.contains(
                "Files written by scripts (`run --write`) and effects of commands cannot"
            )
        );
        let call = "tool execute_command '{\"command\":\"touch made\"}'";
        let asked = world.run_at_terminal("n\n", call).stdout().replace("\r\n", " ");
        assert!(asked.contains("`prowess undo` cannot restore what it changes"), "{asked}");
    }
}

mod a_command_that_is_not_listed_is_asked_about {
    use super::*;

    #[test]
    fn the_question_shows_the_command_and_what_it_could_reach() {
        let world = World::new();
        let input = json!({ "command": "ls; touch  'made' && mkdir folder" });
        let ran = at_terminal(&world, "n\n", "execute_command", &input, "");
        let said = ran.stdout();
        assert_eq!((ran.code, questions(&ran)), (Some(1), 1), "{said}");
        let root = world.path("").display().to_string();
        let root = root.trim_end_matches('/');
        for part in [
            "  ls; touch  'made' && mkdir folder",
            &format!("in `{root}`"),
            "sandbox: ",
            "no network",
            &format!("read and write `{root}`"),
            "`touch` is not listed",
            "`mkdir` is not listed",
            "this command in this directory",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("`ls` is not listed"), "{said}");
        assert!(!world.path("made").exists() && !world.path("folder").exists());
        let ran = at_terminal(&world, "y\n", "execute_command", &input, "");
        assert_eq!(ran.code, Some(0), "{}", ran.stdout());
        assert!(world.path("made").exists() && world.path("folder").is_dir());
        let ran = at_terminal(&world, "", "execute_command", &json!({ "command": "ls" }), "");
        assert_eq!((ran.code, questions(&ran)), (Some(0), 0), "{}", ran.stdout());
        // An option that writes makes a listed program another one.
        let input = json!({ "command": "sort -o sorted input.json" });
        let ran = at_terminal(&world, "y\n", "execute_command", &input, "");
        assert_eq!((ran.code, questions(&ran)), (Some(0), 1), "{}", ran.stdout());
        assert!(world.path("sorted").exists());
    }

    #[test]
    fn where_nobody_can_be_asked_it_is_refused() {
        let world = World::new();
        let ran = command(&world, "touch made", &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        for part in ["approval is needed to run `touch made`", "`--yes`", "`policy.commands`"] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        assert!(!world.path("made").exists());
        let ran = command(&world, "touch made", &["--yes"]);
        assert!(ran.code == Some(0) && world.path("made").exists(), "{}", ran.stderr);
        // The flag has approved that one time only.
        assert_eq!(command(&world, "touch made", &[]).code, Some(1));
        let ran = command(&world, "touch other", &["--yes", "--unsandboxed"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`--yes` is not enough: answer at a terminal"),
            "{}",
            ran.stderr
        );
        assert!(!world.path("other").exists());
        let world = world.file(USER, "[policy]\nunlisted_commands = \"deny\"\n");
        let input = json!({ "command": "touch other" });
        let ran = at_terminal(&world, "y\n", "execute_command", &input, "--yes");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 0), "{}", ran.stdout());
        let stage = WorkFolder(&world);
        let policy = Policy { roots: vec![stage.root()], ..Policy::default() };
        let (outcome, asked) = stage.run("touch other", policy, ApproverReply::Always);
        assert_eq!((outcome.status, asked.len()), (OutcomeStatus::Refused, 0), "{outcome:?}");
        // Without an authorizer it is refused as well.
        let outcome = call(&stage.commands(&stage.policy()), json!({ "command": "touch other" }));
        assert_eq!(outcome.status, OutcomeStatus::Refused, "{outcome:?}");
    }

    #[test]
    fn a_command_is_no_way_around_the_question_about_sensitive_files() {
        let world = World::new()
            .file("AGENTS.md", "mine\n")
            .file("sub/.env", "KEY=mine\n")
            .file("evil.md", "evil\n")
            .file("node_modules/x/y.txt", "");
        let lines = [
            "cp evil.md AGENTS.md",
            "cp evil.md CRUSH.md",
            "cp evil.md sub/.env",
            "cp evil.md sub/.windsurfrules",
            "cp evil.md mcp.json",
            "mv sub/.env notes.txt",
            "sed -i s/mine/evil/ AGENTS.md sub/.env",
        ];
        let is_whole = || {
            for (path, text) in [("AGENTS.md", "mine\n"), ("sub/.env", "KEY=mine\n")] {
                assert_eq!(read(&world, path), text);
            }
            for path in ["CRUSH.md", "sub/.windsurfrules", "mcp.json"] {
                assert!(!world.path(path).exists(), "{path}");
            }
        };
        for line in lines {
            let ran = command(&world, line, &["--yes", "--json"]);
            let said = format!("{}{}", ran.stdout(), ran.stderr);
            // A command that names secrets needs a person; the rest runs, and changes nothing.
            assert_eq!(ran.code, Some(1), "{line}: {said}");
            is_whole();
        }
        let ran = command(&world, "cp evil.md CRUSH.md", &["--yes"]);
        for part in ["protected or sensitive files were changed", "CRUSH.md`: it was moved to `"] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        world.write(USER, "[policy]\ncommands = [\"cp\"]\n");
        assert_eq!(command(&world, "cp evil.md CRUSH.md", &[]).code, Some(1));
        is_whole();
        for line in ["cp evil.md node_modules/x/AGENTS.md", "cp evil.md .hidden"] {
            let ran = command(&world, line, &["--yes"]);
            assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
        }
        world.write(USER, "");
        let input = json!({ "command": "cp evil.md AGENTS.md" });
        let ran = at_terminal(&world, "y\n", "execute_command", &input, "");
        assert_eq!(
            (ran.code, &*read(&world, "AGENTS.md")),
            (Some(0), "evil\n"),
            "{}",
            ran.stdout()
        );
        assert!(ran.stdout().contains("sensitive files have changed: `"), "{}", ran.stdout());
    }
}

mod a_file_with_secrets_is_read_only_after_a_yes {
    use super::*;

    const SECRET: &str = "hunter2-the-secret";

    fn read_file(path: &str) -> Json {
        json!({ "path": path })
    }

    #[test]
    fn a_tool_that_reads_secrets_asks() {
        let mut world = World::new().link("notes.txt", ".env");
        let files = [
            ".env",
            "sub/.env.production",
            "tls/site.key",
            "id_ed25519",
            ".netrc",
            ".npmrc",
            "credentials.json",
            ".aws/config",
            ".ssh/config",
            "kubeconfig",
        ];
        for path in files {
            world = world.file(path, SECRET);
        }
        for path in files.iter().chain(&["notes.txt"]) {
            for more in [&[][..], &["--yes"]] {
                let reading = json!({ "operation": "read", "path": path });
                let rans = [
                    tool(&world, "read_file", &read_file(path), more),
                    tool(&world, "file_operations", &reading, more),
                ];
                for ran in rans {
                    let said = format!("{}{}", ran.stdout(), ran.stderr);
                    assert_eq!(ran.code, Some(1), "{path}: {said}");
                    assert!(!said.contains(SECRET), "{path}: {said}");
                    let what = "`--yes` is not enough: answer at a terminal, or add a rule that allows this `path`";
                    assert!(said.contains(what), "{path}: {said}");
                }
            }
        }
        for path in [".env.example", "src/credentials.rs", "id_ed25519.pub"] {
            world.write(path, "plain");
            let ran = tool(&world, "read_file", &read_file(path), &[]);
            assert_eq!(ran.code, Some(0), "{path}: {}", ran.stderr);
        }
        let asked =
            |typed, path| at_terminal(&world, typed, "read_file", &read_file(path), "--yes");
        let ran = asked("n\n", ".env");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 1), "{}", ran.stdout());
        assert!(ran.stdout().contains("May prowess read `"), "{}", ran.stdout());
        assert!(!ran.stdout().contains(SECRET), "{}", ran.stdout());
        let ran = asked("y\n", ".env");
        assert!(ran.code == Some(0) && ran.stdout().contains(SECRET), "{}", ran.stdout());
        // A permanent answer applies to the file, and to no other.
        assert_eq!(asked("a\n", ".env").code, Some(0));
        let reading = json!({ "operation": "read", "path": "./.env" });
        assert_eq!(tool(&world, "file_operations", &reading, &[]).code, Some(0));
        assert_eq!(tool(&world, "read_file", &read_file("notes.txt"), &[]).code, Some(0));
        assert_eq!(command(&world, "cat .env", &[]).code, Some(0));
        assert_eq!(tool(&world, "read_file", &read_file(".netrc"), &[]).code, Some(1));
        // Approval to read is not approval to write.
        assert_eq!(write(&world, ".env", "x", &[]).code, Some(1));
    }

    #[test]
    fn a_command_that_names_secrets_asks() {
        let world = World::new()
            .file(".env", SECRET)
            .file("sub/server.pem", SECRET)
            .link("notes.txt", ".env")
            .file("plain.txt", "plain");
        for line in [
            "cat .env",
            "cat plain.txt ./sub/../.env",
            "head -n 1 notes.txt",
            "grep --file=.env x plain.txt",
            "grep -f.env x plain.txt",
            "cat sub/server.pem | wc -c",
            "find . -name plain.txt -exec cat .env +",
            "dd if=.env",
            "base64 .env",
            "sh -c 'cat .env'",
            r#"python3 -c "print(open('sub/server.pem').read())""#,
            "cp .en* copy.txt",
        ] {
            for more in [&[][..], &["--yes"]] {
                let ran = command(&world, line, more);
                let said = format!("{}{}", ran.stdout(), ran.stderr);
                assert_eq!(ran.code, Some(1), "{line}: {said}");
                assert!(said.contains("which may contain secrets"), "{line}: {said}");
                assert!(
                    said.contains("`--yes` is not enough: answer at a terminal"),
                    "{line}: {said}"
                );
                assert!(!said.contains(SECRET), "{line}: {said}");
            }
        }
        for line in ["ls -l .env", "find . -name .env", "cat plain.txt", "echo .env"] {
            let ran = command(&world, line, &[]);
            assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
        }
        let input = json!({ "command": "cat .env" });
        let ran = at_terminal(&world, "n\n", "execute_command", &input, "--yes");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 1), "{}", ran.stdout());
        let ran = at_terminal(&world, "a\n", "execute_command", &input, "");
        assert!(ran.code == Some(0) && ran.stdout().contains(SECRET), "{}", ran.stdout());
        assert_eq!(command(&world, "cat .env", &[]).code, Some(0));
        assert_eq!(command(&world, "head .env", &[]).code, Some(1));
        world.write(USER, "[policy]\ncommands = [\"head .env\"]\n");
        let ran = command(&world, "head .env", &[]);
        assert!(ran.code == Some(0) && ran.stdout().contains(SECRET), "{}", ran.stderr);
    }

    #[test]
    fn a_command_that_only_reads_sees_no_secrets_that_it_does_not_name() {
        let world = World::new()
            .file(".env", SECRET)
            .file("a/b/.netrc", SECRET)
            .file("a/.aws/config", SECRET)
            .file("plain.txt", "hunter2 in a plain file\n");
        for line in ["grep -r hunter2 .", "find . -type f -exec cat {} +", "cat .e* plain.txt"] {
            let ran = command(&world, line, &["--json"]);
            let said = format!("{}{}", ran.stdout(), ran.stderr);
            assert!(said.contains("hunter2 in a plain file"), "{line}: {said}");
            assert!(!said.contains(SECRET), "{line}: {said}");
            assert!(
                said.contains("which may contain secrets; a command that names one"),
                "{line}: {said}"
            );
        }
        let ran = command(&world, "tar cf all.tar .", &["--yes"]);
        assert!(ran.stderr.contains("the sandbox refused reading `"), "{}", ran.stderr);
        let packed = fs::read(world.path("all.tar")).unwrap();
        let packed = String::from_utf8_lossy(&packed);
        assert!(packed.contains("plain file") && !packed.contains(SECRET));
    }

    #[test]
    fn the_policy_can_allow_or_deny_reading_secrets() {
        let world = World::new().file(".env", SECRET).file("other.env", SECRET);
        let reads = |path: &str| tool(&world, "read_file", &read_file(path), &[]).code == Some(0);
        world.write(USER, "[policy]\nsecret_reads = \"allow\"\n");
        assert!(reads(".env"));
        assert_eq!(command(&world, "cat .env", &[]).code, Some(0));
        world.write("prowess.toml", "[policy]\nsecret_reads = \"ask\"\n");
        assert!(!reads(".env"));
        world.write(USER, "");
        let project = "[policy]\nsecret_reads = \"allow\"\nrules = [{ decision = \"ask\", path = \".env\" }, { decision = \"allow\", path = \".env\" }]\n";
        world.write("prowess.toml", project);
        assert!(!reads(".env"));
        let ran = tool(&world, "read_file", &read_file(".env"), &["--yes"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        world.remove("prowess.toml");
        let path = world.path(".env").display().to_string();
        let rule = format!("rules = [{{ decision = \"allow\", path = \"{path}\" }}]\n");
        world.write(USER, format!("[policy]\n{rule}"));
        assert!(reads(".env") && !reads("other.env"));
        world.write(USER, "[policy]\nsecret_reads = \"deny\"\n");
        let ran = at_terminal(&world, "y\n", "read_file", &read_file(".env"), "");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 0), "{}", ran.stdout());
        // The library asks nobody by default.
        let stage = WorkFolder(&world);
        fs::write(stage.root().join(".env"), SECRET).unwrap();
        let reading = json!({ "operation": "read", "path": ".env" });
        let toolbox = |policy| stage.toolbox(policy, Arc::new(DenyAll));
        let outcome = wait_for(toolbox(stage.policy()).call("file_operations", reading.clone()));
        assert!(outcome.is_ok(), "{outcome:?}");
        let policy = Policy { secret_reads: Decision::Ask, ..stage.policy() };
        let allowed = AllowedTools([Box::from("Read"), "file_operations".into()].into());
        let manifest = Manifest { allowed_tools: allowed, ..Manifest::default() };
        let authorizer = Authorizer::new(policy, Arc::new(DenyAll));
        let action = Action::Read(stage.root().join(".env"));
        let requested = ActionRequest {
            tool: "file_operations",
            action: &action,
            active: &[manifest],
            given: None,
        };
        assert!(wait_for(authorizer.authorize(&requested)).is_err());
    }
}

mod something_is_sent_only_to_hosts_that_somebody_has_listed {
    use super::*;

    /// A host with a public name at which nobody answers: nothing is sent in a test.
    const URL: &str = "https://example.invalid/x";

    fn posting() -> Json {
        json!({ "url": URL, "method": "POST", "body": "0123456789" })
    }

    #[test]
    fn a_request_that_sends_something_asks() {
        let world = World::new();
        let ran = tool(&world, "http_request", &posting(), &[]);
        assert_eq!(ran.code, Some(1));
        for part in [
            "send POST with a body of 10 bytes to `https://example.invalid/x`",
            "there was no one to ask",
            "`--yes`",
            "`policy.hosts`",
        ] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        let is_tried = |ran: &Ran| {
            let said = format!("{}{}", ran.stdout(), ran.stderr);
            said.contains("cannot resolve `example.invalid`")
        };
        assert!(is_tried(&tool(&world, "http_request", &posting(), &["--yes"])));
        let asked = |typed| at_terminal(&world, typed, "http_request", &posting(), "");
        let ran = asked("n\n");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 1), "{}", ran.stdout());
        for part in
            ["May prowess send POST", "10 bytes", URL, "every request to `https://example.invalid`"]
        {
            assert!(ran.stdout().contains(part), "{part}: {}", ran.stdout());
        }
        assert!(!is_tried(&ran) && is_tried(&asked("y\n")) && !is_tried(&asked("n\n")));
        assert!(is_tried(&asked("a\n")));
        let other = json!({ "url": "https://example.invalid/y", "method": "DELETE" });
        assert!(is_tried(&tool(&world, "http_request", &other, &[])), "it is the same host");
        for url in [
            "http://example.invalid/x",
            "https://b.example.invalid/",
            "https://example.invalid:8443/",
        ] {
            let other = json!({ "url": url, "method": "POST" });
            let ran = tool(&world, "http_request", &other, &[]);
            assert!(ran.stderr.contains("there was no one to ask"), "{url}: {}", ran.stderr);
        }
    }

    #[test]
    fn what_the_user_lists_and_what_only_gets_is_not_asked_about() {
        let world = World::new();
        let is_asked = |input: &Json| {
            tool(&world, "http_request", input, &[]).stderr.contains("there was no one to ask")
        };
        for method in ["GET", "HEAD"] {
            assert!(!is_asked(&json!({ "url": URL, "method": method })));
        }
        world.write("prowess.toml", "[policy]\nhosts = [\"example.invalid\"]\n");
        assert!(is_asked(&posting()), "only the project lists it");
        world.remove("prowess.toml");
        world.write(USER, "[policy]\nhosts = [\"example.invalid\"]\n");
        assert!(!is_asked(&posting()));
        world.write(USER, "[policy]\nsends = \"allow\"\n");
        assert!(!is_asked(&posting()));
        world.write("prowess.toml", "[policy]\nsends = \"ask\"\n");
        assert!(is_asked(&posting()));
    }
}

mod a_composite_skill_runs_step_by_step {
    use super::*;

    /// Returns a world with a composite skill of these steps, in `skills/`.
    fn composite(steps: &[Json]) -> World {
        let fences: String = steps.iter().map(|it| format!("```json\n{it}\n```\n\n")).collect();
        let text = format!("---\nname: all\ndescription: d\ntype: composite\n---\n\n{fences}");
        World::new().document("all", text)
    }

    fn step(tool: &str, params: Json) -> Json {
        json!({ "tool": tool, "params": params })
    }

    fn greeting() -> [Json; 2] {
        [
            step("file_operations", writing("{{.who}}.txt", "hello {{.who}}")),
            step(
                "file_operations",
                json!({ "operation": "read", "path": "{{.who}}.txt", "limit": "{{.most}}" }),
            ),
        ]
    }

    #[test]
    fn the_plan_is_filled_in_and_runs_once_somebody_agrees() {
        let world = composite(&greeting());
        let run = ["run", "all", "who=Ada", "most=5", "--dir", "skills"];
        let ran = world.run([&run[..], &["--yes", "--json"]].concat());
        let outcome = &ran.json()["outcome"];
        assert_eq!((ran.code, &outcome["status"]), (Some(0), &json!("ok")), "{outcome:#}");
        let second = &outcome["plan"][1]["params"];
        assert_eq!((&second["path"], &second["limit"]), (&json!("Ada.txt"), &json!(5)));
        assert_eq!(outcome["plan"][0]["params"]["content"], "hello Ada");
        let steps = outcome["steps"].as_array().unwrap();
        let said: Vec<Json> =
            steps.iter().map(|it| json!([it["step"], it["outcome"]["status"]])).collect();
        assert_eq!(said, [json!([1, "ok"]), json!([2, "ok"])]);
        assert_eq!(steps[1]["outcome"]["output"]["content"], "hello");
        // At a terminal the plan is asked about, then each write by itself.
        fs::remove_file(world.path("Ada.txt")).unwrap();
        let ran = world.run_at_terminal("y\ny\n", "run all who=Ada most=5 --dir skills");
        let said = ran.stdout();
        assert_eq!((ran.code, questions(&ran)), (Some(0), 2), "{said}");
        for part in ["\"path\":\"Ada.txt\"", "May prowess run these 2 steps?", "May prowess create"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(read(&world, "Ada.txt"), "hello Ada");
    }

    #[test]
    fn a_value_that_is_filled_into_a_command_stays_a_value() {
        let value = "it's \"x\"; touch pwned & $(touch pwned) `touch pwned`";
        for (text, is_filled) in [
            ("printf %s {{.x}}", true),
            ("printf %s '{{.x}}'", true),
            ("printf %s \"{{.x}}\"", true),
            ("printf %s \"$(echo {{.x}})\"", false),
        ] {
            let world = composite(&[step("execute_command", json!({ "command": text }))]);
            let given = json!({ "x": value }).to_string();
            let run = |more: &str| {
                world
                    .run(["run", "all", "--dir", "skills", "--params", &given, "--json", more])
                    .json()
            };
            let plan = run("--plan")["outcome"]["plan"][0].take();
            assert_eq!(plan["params"]["command"] != text, is_filled, "{plan:#}");
            let outcome = run("--yes")["outcome"].take();
            assert_eq!(outcome["status"] == "ok", is_filled, "{outcome:#}");
            let printed = outcome["steps"][0]["outcome"].to_string();
            assert_eq!(printed.contains(json!(value).to_string().trim_matches('"')), is_filled);
            assert!(!world.path("pwned").exists());
        }
    }

    #[test]
    fn a_step_that_fails_or_is_refused_ends_it() {
        let last = || step("file_operations", writing("last.txt", "x"));
        for (bad, status, said) in [
            (
                step("file_operations", json!({ "operation": "read", "path": "nowhere" })),
                "not_found",
                "step 2 (`file_operations`) failed: ",
            ),
            (
                step("execute_command", json!({ "command": "rm -rf /" })),
                "refused",
                "step 2 (`execute_command`) was refused: ",
            ),
            (
                step("file_operations", writing(".env", "x")),
                "refused",
                "step 2 (`file_operations`) was refused: ",
            ),
            (
                step("execute_command", json!({ "command": "ls nowhere" })),
                "failed",
                "step 2 (`execute_command`) failed: exited with code 2",
            ),
            (step("no_such_tool", json!({})), "not_found", "step 2 (`no_such_tool`) failed: "),
        ] {
            let world = composite(&[
                step("file_operations", writing("first.txt", "x")),
                bad,
                last(),
                last(),
            ]);
            let run = ["run", "all", "--dir", "skills", "--yes"];
            let ran = world.run([&run[..], &["--json"]].concat());
            let outcome = &ran.json()["outcome"];
            assert_eq!((ran.code, &outcome["status"]), (Some(1), &json!(status)), "{outcome:#}");
            let message = outcome["message"].as_str().unwrap();
            assert!(message.starts_with(said), "{message}");
            let hint = outcome["hint"].as_str().unwrap();
            assert!(hint.contains("the 2 steps after it were not run"), "{hint}");
            assert_eq!(outcome["plan"].as_array().unwrap().len(), 4);
            assert_eq!(outcome["steps"].as_array().unwrap().len(), 2);
            assert!(world.path("first.txt").exists() && !world.path("last.txt").exists());
            let ran = world.run(run);
            assert!(ran.code == Some(1) && ran.stderr.contains(said), "{}", ran.stderr);
        }
    }

    #[test]
    fn without_a_yes_only_the_plan_is_printed() {
        let world = composite(&greeting());
        let run = ["run", "all", "who=Ada", "most=5", "--dir", "skills"];
        let ran = world.run(run);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout().starts_with("1. file_operations {"), "{}", ran.stdout());
        assert!(ran.stderr.contains("nothing was run; use `--yes`"), "{}", ran.stderr);
        let planned = world.run([&run[..], &["--plan", "--yes"]].concat());
        assert_eq!((planned.code, planned.stdout()), (Some(0), ran.stdout()));
        let ran = world.run_at_terminal("", "run all who=Ada most=5 --dir skills --plan");
        assert_eq!((ran.code, questions(&ran)), (Some(0), 0), "{}", ran.stdout());
        let ran = world.run_at_terminal("n\n", "run all who=Ada most=5 --dir skills");
        assert_eq!((ran.code, questions(&ran)), (Some(1), 1), "{}", ran.stdout());
        assert!(!world.path("Ada.txt").exists());
        let script = "---\nname: s\ndescription: d\ntype: script\n---\n```sh\necho ran\n```\n";
        let world = world.document("s", script);
        let ran = world.run(["run", "s", "--plan", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("has no plan"), "{}", ran.stderr);
    }

    #[test]
    fn what_cannot_be_filled_in_is_not_run() {
        let world = composite(&greeting());
        let run = ["run", "all", "who=Ada", "--dir", "skills"];
        let ran = world.run([&run[..], &["--yes", "--json"]].concat());
        let outcome = &ran.json()["outcome"];
        assert_eq!((ran.code, &outcome["status"]), (Some(1), &json!("invalid")), "{outcome:#}");
        let message = outcome["message"].as_str().unwrap();
        assert!(message.contains("step 2") && message.contains("`{{.most}}`"), "{message}");
        assert_eq!(outcome["plan"][0]["params"]["path"], "Ada.txt");
        assert_eq!(outcome["plan"][1]["params"]["limit"], "{{.most}}");
        assert!(!world.path("Ada.txt").exists());
        let ran = world.run([&run[..], &["--plan"]].concat());
        assert!(ran.stderr.contains("step 2 is not filled in"), "{}", ran.stderr);
    }
}

mod the_home_directory_is_not_used_unless_it_is_named {
    use super::*;

    #[test]
    fn working_in_the_home_gives_tools_no_files() {
        let world = World::new().file("home/notes.txt", "mine").folder("home/project");
        let at_home = |input: &Json, tool: &str, more: &str| {
            world.write("input.json", input.to_string());
            world.run_script(&format!(
                "cd home && exec \"$0\" tool {tool} @../repo/input.json {more}"
            ))
        };
        let read = json!({ "operation": "read", "path": "notes.txt" });
        let ls = json!({ "command": "ls" });
        let refused = || {
            for (tool, input) in [
                ("file_operations", &read),
                ("file_operations", &writing("x", "x")),
                ("execute_command", &ls),
                ("read_file", &json!({ "path": "notes.txt" })),
            ] {
                let ran = at_home(input, tool, "--yes");
                assert_eq!(ran.code, Some(1), "{tool}: {} {}", ran.stdout(), ran.stderr);
                assert!(
                    ran.stderr.contains("the working directory is your home"),
                    "{}",
                    ran.stderr
                );
            }
            assert!(!world.path("home/x").exists());
        };
        refused();
        world.write("home/prowess.toml", "[policy]\nroots = [\".\"]\n");
        refused();
        let ran = at_home(&read, "file_operations", "--root .");
        assert!(ran.code == Some(0) && ran.stdout().contains("mine"), "{}", ran.stderr);
        let ran = at_home(&writing("x", "x"), "file_operations", "--root project --yes");
        assert!(ran.code == Some(0) && world.path("home/project/x").exists(), "{}", ran.stderr);
        fs::remove_file(world.path("home/prowess.toml")).unwrap();
        world.write(USER, "[policy]\nroots = [\"~\"]\n");
        let ran = at_home(&ls, "execute_command", "");
        assert!(ran.code == Some(0) && ran.stdout().contains("notes.txt"), "{}", ran.stderr);
        // So is a directory that contains the home directory, whoever it belongs to.
        let world = World::new().folder("homes/of/me").file("homes/x", "x");
        let home = world.path("homes/of/me").display().to_string();
        let line =
            format!("cd homes && HOME={home} \"$0\" tool execute_command '{{\"command\":\"ls\"}}'");
        let ran = world.run_script(&line);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(ran.stderr.contains("or a directory above it"), "{}", ran.stderr);
    }
}
