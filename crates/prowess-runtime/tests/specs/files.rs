//! Files that tools read and write.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use prowess::{Library, Memory, Options, Scope, mcp_clients};
use prowess_runtime::{
    Action, Outcome, OutcomeStatus, Tool as _,
    policy::Roots,
    sandbox::Root,
    skill::ActiveSkills,
    tools::{FileOperations, ReadFile},
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value as Json, json};

use crate::world::{Counting, PATIENCE, World, call};

/// Creates the tool for the folders `work` and `config` of a world.
fn tool(world: &World) -> FileOperations {
    FileOperations::new(roots(world))
}

fn roots(world: &World) -> Arc<Roots> {
    let open = |path: &str| {
        fs::create_dir_all(world.path(path)).unwrap();
        Root::open(&world.path(path)).unwrap()
    };
    Arc::new(Roots::new(vec![open("work"), open("config")]))
}

fn read(tool: &FileOperations, path: &str) -> Outcome {
    call(tool, json!({ "operation": "read", "path": path }))
}

fn write(tool: &FileOperations, path: &str, content: &str) -> Outcome {
    call(tool, json!({ "operation": "write", "path": path, "content": content }))
}

fn list(tool: &FileOperations, path: &str) -> Outcome {
    call(tool, json!({ "operation": "list", "path": path }))
}

/// Returns the output of a successful outcome.
fn output(outcome: Outcome) -> Json {
    assert!(outcome.is_ok(), "{outcome:?}");
    outcome.output.unwrap()
}

/// Returns the content of a file as read by the tool.
fn content(tool: &FileOperations, path: &str) -> String {
    output(read(tool, path))["content"].as_str().unwrap().to_owned()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

mod files_inside_the_roots_are_read_written_and_listed {
    use super::*;

    #[test]
    fn q_23_what_was_written_is_read_and_listed() {
        let world = World::new();
        let tool = tool(&world);
        let written = output(write(&tool, "notes/today.md", "first\n"));
        assert_eq!(fs::read_to_string(world.path("work/notes/today.md")).unwrap(), "first\n");
        let told = output(read(&tool, "notes/today.md"));
        assert_eq!(
            told,
            json!({
                "path": "notes/today.md",
                "size": 6,
                "offset": 0,
                "content": "first\n",
                "sha256": "b640e840b19d378660b32fb51ae18d67dccb4a8596a29e7bd72c1b2ae5928f41",
            })
        );
        assert_eq!(written["sha256"], told["sha256"]);
        let path = world.path("work/notes/today.md");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        output(write(&tool, "./notes/today.md", "second"));
        assert_eq!(content(&tool, "notes/today.md"), "second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
        let world = world.file("work/a.txt", "abc").link("work/z", "a.txt").pipe("work/pipe");
        assert_eq!(
            output(list(&tool, "."))["entries"],
            json!([
                { "name": "a.txt", "kind": "file", "size": 3 },
                { "name": "notes", "kind": "directory" },
                { "name": "pipe", "kind": "special" },
                { "name": "z", "kind": "link" },
            ])
        );
        assert_eq!(list(&tool, "a.txt").status, OutcomeStatus::Failed);
        assert_eq!(read(&tool, "missing").status, OutcomeStatus::NotFound);
        assert_eq!(read(&tool, "notes").hint.unwrap(), "it is a directory: list it");
        drop(world);
    }

    #[test]
    fn q_23_the_working_directory_comes_first_and_the_others_are_reached_from_the_root_of_the_disk()
    {
        let world = World::new().file("work/x", "of work").file("config/x", "of config");
        let world = world.link("other", "work");
        let tool = tool(&world);
        let absolute = |path: &str| text(&world.path(path));
        assert_eq!(content(&tool, "x"), "of work");
        assert_eq!(content(&tool, "./x"), "of work");
        assert_eq!(content(&tool, &absolute("work/x")), "of work");
        assert_eq!(content(&tool, &absolute("config/x")), "of config");
        output(write(&tool, &absolute("config/new/y"), "new"));
        assert_eq!(content(&tool, &absolute("config/new/y")), "new");
        assert_eq!(output(list(&tool, &absolute("config")))["total"], 2);
        let linked = Roots::new(vec![Root::open(&world.path("other")).unwrap()]);
        let linked = FileOperations::new(Arc::new(linked));
        assert_eq!(content(&linked, &absolute("other/x")), "of work");
        assert_eq!(content(&linked, &absolute("work/x")), "of work");
        let action = linked.action(&json!({ "operation": "read", "path": "x" })).unwrap();
        assert!(
            matches!(action, Action::Read(it) if it == world.path("work/x").canonicalize().unwrap())
        );
        let nowhere = FileOperations::new(Arc::new(Roots::new(Vec::new())));
        assert_eq!(read(&nowhere, "x").status, OutcomeStatus::Refused);
    }

    #[test]
    fn a_long_file_is_read_part_by_part() {
        let lines: String = (0..30_000).map(|it| format!("line {it} with ünicode\n")).collect();
        let world = World::new().file("work/long.txt", &lines).sparse("work/huge", 5_000_000_000);
        let tool = tool(&world);
        let end = json!({ "operation": "read", "path": "long.txt", "offset": u64::MAX });
        assert_eq!(output(call(&tool, end))["content"], "");
        let (mut all, mut offset, mut parts) = (String::new(), Json::from(0), 0);
        while !offset.is_null() {
            let part = output(call(
                &tool,
                json!({ "operation": "read", "path": "long.txt", "offset": offset }),
            ));
            let text = part["content"].as_str().unwrap();
            assert!(text.ends_with('\n') && json!(text).to_string().len() <= 24 * 1024 + 2);
            assert_eq!(part["size"], lines.len());
            all.push_str(text);
            offset = part["next_offset"].clone();
            parts += 1;
        }
        assert_eq!(all, lines);
        let told = json!(lines).to_string().len();
        assert!(parts >= told.div_ceil(24 * 1024) && parts <= told.div_ceil(24 * 1024 - 40));
        let huge = |offset: u64| {
            let limit = 256 * 1024;
            output(call(
                &tool,
                json!({ "operation": "read", "path": "huge", "offset": offset, "limit": limit }),
            ))
        };
        let middle = huge(4_294_967_296);
        assert_eq!(middle["next_offset"], 4_294_967_296_u64 + 256 * 1024);
        assert_eq!(middle["size"], 5_000_000_000_u64);
        assert_eq!(
            middle["content_base64"].as_str().unwrap().len(),
            (256 * 1024_usize).div_ceil(3) * 4
        );
        let last = huge(4_999_999_997);
        assert_eq!((&last["content_base64"], &last["next_offset"]), (&json!("AAAA"), &Json::Null));
        assert_eq!(huge(6_000_000_000)["content"], "");
        let expecting = call(
            &tool,
            json!({ "operation": "write", "path": "huge", "content": "", "expected": "none" }),
        );
        assert_eq!(expecting.status, OutcomeStatus::Failed);
    }

    #[test]
    fn what_is_no_text_comes_in_base64() {
        let world = World::new()
            .file("work/image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
            .file("work/latin.txt", b"caf\xe9");
        let tool = tool(&world);
        let image = output(read(&tool, "image.png"));
        assert_eq!(image["content_base64"], "iVBORw0KGgoAAAANSUhEUg==");
        assert!(image.get("content").is_none());
        assert_eq!(output(read(&tool, "latin.txt"))["content_base64"], "Y2Fm6Q==");
    }

    #[test]
    fn a_large_directory_is_listed_part_by_part() {
        let world = World::new().folder("work/many");
        for number in 0..2500 {
            world.write(format!("work/many/{number:04}"), "");
        }
        let tool = tool(&world);
        let first = output(list(&tool, "many"));
        assert_eq!(first["entries"].as_array().unwrap().len(), 200);
        assert_eq!((&first["total"], &first["next_offset"]), (&json!(2500), &json!(200)));
        let mut names = Vec::new();
        let mut offset = Json::from(0);
        while !offset.is_null() {
            let page = output(call(
                &tool,
                json!({ "operation": "list", "path": "many", "offset": offset, "limit": 1000 }),
            ));
            for entry in page["entries"].as_array().unwrap() {
                names.push(entry["name"].as_str().unwrap().to_owned());
            }
            offset = page["next_offset"].clone();
        }
        assert_eq!(names, (0..2500).map(|it| format!("{it:04}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_write_is_whole_or_not_at_all() {
        let world = World::new().file("work/x", "a".repeat(100_000));
        let tool = tool(&world);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let seen = fs::read(world.path("work/x")).unwrap();
                        assert_eq!(seen.len(), 100_000);
                        assert!(seen.iter().all(|it| *it == seen[0]));
                    }
                });
            }
            for letter in "bcdefghij".repeat(10).chars() {
                output(write(&tool, "x", &letter.to_string().repeat(100_000)));
            }
            done.store(true, Ordering::Relaxed);
        });
        let names = |world: &World| fs::read_dir(world.path("work")).unwrap().count();
        assert_eq!(names(&world), 1);
        // A name that no file system accepts, and a directory of the same name.
        let world = world.folder("work/folder");
        assert_eq!(write(&tool, &"n".repeat(300), "x").status, OutcomeStatus::Failed);
        assert_eq!(write(&tool, "folder", "x").status, OutcomeStatus::Refused);
        assert_eq!(write(&tool, "x/below", "x").status, OutcomeStatus::Failed);
        assert!(fs::read_to_string(world.path("work/x")).unwrap().starts_with('j'));
        assert_eq!(names(&world), 2);
    }

    #[test]
    fn what_has_changed_meanwhile_is_not_overwritten() {
        let world = World::new().file("work/x", "one");
        let tool = tool(&world);
        let expecting = |expected: &str, content: &str| {
            let input = json!({ "operation": "write", "path": "x", "content": content, "expected": expected });
            call(&tool, input)
        };
        let digest = output(read(&tool, "x"))["sha256"].as_str().unwrap().to_owned();
        world.write("work/x", "two");
        let refused = expecting(&digest, "three");
        assert_eq!(refused.status, OutcomeStatus::Refused);
        let now = output(read(&tool, "x"))["sha256"].as_str().unwrap().to_owned();
        assert!(refused.hint.unwrap().contains(&now));
        assert_eq!(content(&tool, "x"), "two");
        assert_eq!(expecting("none", "three").status, OutcomeStatus::Refused);
        output(expecting(&now.to_uppercase(), "three"));
        world.remove("work/x");
        assert_eq!(expecting(&now, "four").status, OutcomeStatus::Refused);
        assert!(!world.path("work/x").exists());
        output(expecting("none", "0"));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut counted = 0;
                    while counted < 10 {
                        let read = output(read(&tool, "x"));
                        let number: u32 = read["content"].as_str().unwrap().parse().unwrap();
                        let next = (number + 1).to_string();
                        let outcome = expecting(read["sha256"].as_str().unwrap(), &next);
                        counted += u32::from(outcome.is_ok());
                    }
                });
            }
        });
        assert_eq!(content(&tool, "x"), "80");
    }

    #[test]
    fn wrong_input_is_told() {
        let world = World::new().file("work/x", "as it was");
        let tool = tool(&world);
        for (input, told) in [
            (json!({ "operation": "delete", "path": "x" }), "unknown variant `delete`"),
            (json!({ "operation": "write", "path": "x" }), "`write` needs `content`"),
            (json!({ "operation": "read" }), "missing field `path`"),
            (json!({ "operation": "read", "path": 1 }), "invalid type"),
            (json!({ "operation": "read", "path": "x", "file": "y" }), "unknown field `file`"),
            (json!({ "operation": "read", "path": "x", "limit": 0 }), "from 1 to 262144"),
            (json!({ "operation": "read", "path": "x", "limit": 262_145 }), "from 1 to 262144"),
            (json!({ "operation": "read", "path": "x", "offset": -1 }), "invalid value"),
            (json!({ "operation": "list", "path": ".", "limit": 1001 }), "from 1 to 1000"),
            (json!({ "operation": "list", "path": ".", "offset": 1_000_000 }), "at most 100000"),
            (json!("read"), "invalid type"),
        ] {
            let outcome = call(&tool, input.clone());
            assert_eq!(outcome.status, OutcomeStatus::Invalid, "{input}");
            assert!(outcome.message.as_ref().unwrap().contains(told), "{input}: {outcome:?}");
        }
        for path in ["x/", "new/", "new/.", "x/.", "."] {
            let outcome = write(&tool, path, "y");
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{path}");
            assert!(outcome.message.unwrap().contains("is a directory"), "{path}");
        }
        assert!(!world.path("work/new").exists());
        assert_eq!(content(&tool, "x"), "as it was");
        let schema = tool.input_schema();
        assert_eq!(schema["properties"]["operation"]["oneOf"].as_array().unwrap().len(), 3);
        assert_eq!(schema["additionalProperties"], false);
    }

    #[test]
    fn unusual_names_and_places_work() {
        let world = World::new();
        let tool = tool(&world);
        let deep = "d/".repeat(200) + "leaf";
        for path in ["with a space", "🎉 party", "..foo", "a..b/...", "-rf", "%2e%2e", "~", &deep]
        {
            output(write(&tool, path, "in it"));
            assert_eq!(content(&tool, path), "in it", "{path}");
        }
        output(write(&tool, "empty", ""));
        assert_eq!(content(&tool, "empty"), "");
        assert!(world.path(format!("work/{deep}")).exists());
        let names: Vec<Json> = output(list(&tool, "."))["entries"].as_array().unwrap().to_vec();
        assert!(names.iter().any(|it| it["name"] == "🎉 party"));
    }
}

mod nothing_leads_out_of_the_roots {
    use super::*;

    /// Creates a world in which `outside` and `work-secret` are next to the roots, and `work` has
    /// links out.
    fn outside() -> World {
        World::new()
            .file("outside/secret", "secret")
            .file("work-secret/x", "secret")
            .file("work/a", "inside")
            .link("work/file", "../outside/secret")
            .link("work/folder", "../outside")
            .link("work/dangling", "../outside/missing")
            .link("work/chain", "file")
            .link("work/root", "/")
            .link("work/process", "/proc/self/root")
            .link("work/own", "/proc/self/cwd")
    }

    fn ways_out(world: &World) -> Vec<String> {
        let absolute = |path: &str| text(&world.path(path));
        let mut ways = vec![
            absolute("outside/secret"),
            absolute("work-secret/x"),
            absolute("work/../outside/secret"),
            absolute("work/../work/a"),
            format!("root{}", absolute("outside/secret")),
            format!("process{}", absolute("outside/secret")),
            format!("/proc/self/root{}", absolute("outside/secret")),
            format!("/{}", absolute("work/../outside/secret")),
        ];
        let more = [
            "../outside/secret",
            "a/../../outside/secret",
            "./../outside/secret",
            "nothing/../../outside/secret",
            "..",
            "/",
            "/etc/passwd",
            "/dev/zero",
            "file",
            "folder",
            "folder/secret",
            "folder/../../outside/secret",
            "dangling",
            "dangling/x",
            "chain",
            "own/outside",
            "C:\\Windows\\win.ini",
            "c:x",
            "..\\outside\\secret",
            "\\\\server\\share",
            "a::$DATA",
            "a\0b",
        ];
        ways.extend(more.map(str::to_owned));
        ways
    }

    #[test]
    fn q_23_paths_that_lead_out_are_refused() {
        let world = outside();
        let tool = tool(&world);
        for path in ways_out(&world) {
            for outcome in
                [read(&tool, &path), list(&tool, &path), write(&tool, &path, "overwritten")]
            {
                assert_eq!(outcome.status, OutcomeStatus::Refused, "{path}: {outcome:?}");
                assert_eq!(outcome.output, None);
            }
            for operation in ["read", "write", "list"] {
                let action =
                    tool.action(&json!({ "operation": operation, "path": path, "content": "" }));
                let refused = action.as_ref().is_err_and(|it| it.status == OutcomeStatus::Refused);
                // Whether there is a link in the path of a write is checked when it is written.
                assert!(refused || operation == "write", "{operation} {path}: {action:?}");
            }
        }
        for path in ["folder/new", "folder/new/deep", "root/tmp/new", "dangling/new"] {
            assert_eq!(write(&tool, path, "new").status, OutcomeStatus::Refused, "{path}");
        }
        assert_eq!(fs::read_to_string(world.path("outside/secret")).unwrap(), "secret");
        assert_eq!(fs::read_to_string(world.path("work-secret/x")).unwrap(), "secret");
        assert_eq!(fs::read_dir(world.path("outside")).unwrap().count(), 1);
        assert!(fs::symlink_metadata(world.path("work/file")).unwrap().is_symlink());
        assert_eq!(fs::read_dir(world.path("work")).unwrap().count(), 8);
    }

    #[test]
    fn whether_something_is_there_outside_is_not_told() {
        let world = outside();
        let tool = tool(&world);
        let absolute = |path: &str| text(&world.path(path));
        for (there, missing) in [
            ("../outside/secret".to_owned(), "../outside/nothing".to_owned()),
            (absolute("outside/secret"), absolute("outside/nothing")),
            ("folder/secret".to_owned(), "folder/nothing".to_owned()),
            ("file".to_owned(), "dangling".to_owned()),
            ("root/etc".to_owned(), "root/nothing".to_owned()),
            ("..".to_owned(), "../..".to_owned()),
        ] {
            for operation in [read, list, |tool: &_, path: &_| write(tool, path, "x")] {
                let [there, missing] = [&there, &missing].map(|path| {
                    let outcome = operation(&tool, path);
                    let message = outcome.message.unwrap().replace(&format!("`{path}`"), "PATH");
                    (outcome.status, message, outcome.hint)
                });
                assert_eq!(there, missing);
            }
        }
    }

    #[test]
    fn links_inside_are_followed_to_read_and_never_to_write() {
        let world = World::new()
            .file("work/real/x", "inside")
            .link("work/file", "real/x")
            .link("work/folder", "real")
            .link("work/up/back", "../real/../real/x")
            .link("work/again", "folder/x")
            .link("work/missing", "real/nothing")
            .link("work/a", "b")
            .link("work/b", "a");
        let world = {
            let target = world.path("work/real/x");
            world.link("work/absolute", target)
        };
        let tool = tool(&world);
        for path in ["file", "folder/x", "up/back", "again", "absolute"] {
            assert_eq!(content(&tool, path), "inside", "{path}");
            assert_eq!(write(&tool, path, "overwritten").status, OutcomeStatus::Refused, "{path}");
        }
        assert_eq!(output(list(&tool, "folder"))["total"], 1);
        assert_eq!(write(&tool, "folder/new", "x").status, OutcomeStatus::Refused);
        assert_eq!(read(&tool, "missing").status, OutcomeStatus::NotFound);
        assert_eq!(write(&tool, "missing", "x").status, OutcomeStatus::Refused);
        assert_eq!(read(&tool, "a").status, OutcomeStatus::Refused);
        assert_eq!(fs::read_to_string(world.path("work/real/x")).unwrap(), "inside");
        assert_eq!(fs::read_dir(world.path("work/real")).unwrap().count(), 1);
        // The policy gets the target of the link.
        let action = tool.action(&json!({ "operation": "read", "path": "again" })).unwrap();
        assert!(matches!(action, Action::Read(it) if it.ends_with("work/real/x")));
    }

    #[test]
    fn a_pipe_or_device_is_not_waited_for() {
        let world = World::new()
            .pipe("work/pipe")
            .socket("work/socket")
            .link("work/zero", "/dev/zero")
            .link("work/tty", "/dev/tty")
            .link("work/to-pipe", "pipe");
        let tool = tool(&world);
        for path in ["pipe", "socket", "zero", "tty", "to-pipe"] {
            for outcome in [read(&tool, path), write(&tool, path, "x")] {
                assert!(
                    matches!(outcome.status, OutcomeStatus::Refused | OutcomeStatus::Failed),
                    "{path}: {outcome:?}"
                );
            }
        }
    }

    #[test]
    fn what_git_keeps_for_itself_is_not_told() {
        let world = World::new()
            .file("work/.git/config", "url = https://token@example.com")
            .file("work/.git/hooks/pre-commit", "")
            .file("config/skills/x/.git/config", "token")
            .file("work/.gitignore", "fine")
            .link("work/other", ".git")
            .link("work/config", ".git/config");
        let tool = tool(&world);
        let absolute = text(&world.path("config/skills/x/.git/config"));
        let paths = [
            ".git/config",
            ".git",
            "./.git/config",
            ".GIT/config",
            "other/config",
            "config",
            &absolute,
        ];
        for path in paths {
            assert_eq!(read(&tool, path).status, OutcomeStatus::Refused, "{path}");
        }
        for path in
            [".git/hooks/pre-commit", ".git/new", ".Git/hooks/x", "sub/.git/config", "other/x"]
        {
            assert_eq!(write(&tool, path, "x").status, OutcomeStatus::Refused, "{path}");
        }
        assert_eq!(list(&tool, ".git").status, OutcomeStatus::Refused);
        assert_eq!(content(&tool, ".gitignore"), "fine");
        assert_eq!(fs::read_dir(world.path("work/.git")).unwrap().count(), 2);
    }

    #[test]
    fn what_says_what_an_agent_may_do_is_not_written() {
        let world = World::new().file("work/prowess.toml", "[policy]\n");
        let tool = tool(&world);
        for path in [
            "prowess.toml",
            "sub/prowess.toml",
            "Prowess.TOML",
            ".prowess/approvals.json",
            ".mcp.json",
            ".claude/settings.json",
            "sub/.claude/settings.local.json",
            ".claude/skills/x/SKILL.md",
            ".cursor/mcp.json",
            "sub/.vscode/tasks.json",
            ".codex",
            "opencode.json",
            ".envrc",
            ".husky/pre-commit",
            ".Cargo/Config.toml",
            "sub/.github/workflows/ci.yml",
            ".ssh/authorized_keys",
            "home/.bashrc",
            ".zshrc",
            ".gitconfig",
            ".config/git/config",
            ".config/autostart/x.desktop",
            ".netrc",
            ".zshenv",
            ".bash_aliases",
            ".config/fish/config.fish",
            ".config/systemd/user/x.service",
            ".local/bin/ls",
            ".gnupg/gpg.conf",
            ".aws/credentials",
            ".kube/config",
            ".docker/config.json",
            ".pgpass",
            ".cargo/credentials.toml",
            ".claude.json",
            ".zed/settings.json",
            ".devcontainer/devcontainer.json",
            ".devcontainer.json",
            ".idea/workspace.xml",
            ".exrc",
            "sub/.nvim.lua",
            ".dir-locals.el",
            "Lefthook.yml",
            "mise.toml",
            ".junie/guidelines.md",
            ".augment/rules/x.md",
            ".trae/rules/x.md",
            ".aider.conf.yml",
            ".pre-commit-config.yaml",
            ".gitlab-ci.yml",
            "venv/lib/python3.12/site-packages/X.PTH",
        ] {
            let outcome = write(&tool, path, "[policy]\nhosts = ['*']\n");
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{path}");
            assert!(outcome.message.unwrap().contains("protected"), "{path}");
        }
        assert_eq!(content(&tool, "prowess.toml"), "[policy]\n");
        for path in [
            "my-prowess.toml",
            "venv/lib/python3.12/site-packages/x.py",
            "raider.md",
            "docs/x.pth",
            "settings.json",
            ".agents/skills/x/SKILL.md",
            ".github/dependabot.yml",
            ".cargo/notes",
            ".config/other",
            "config.toml",
            "claude/x",
        ] {
            output(write(&tool, path, "fine"));
        }
        assert!(!world.path("work/sub").exists());
    }

    #[test]
    fn no_tool_writes_the_mcp_servers_of_a_project() {
        let files: Vec<&str> = mcp_clients().iter().flat_map(|it| it.1.project).copied().collect();
        assert!(files.len() > 10);
        let mcp = "{\"mcpServers\": {}}";
        let world =
            files.iter().fold(World::new(), |it, path| it.file(format!("work/{path}"), mcp));
        let tool = tool(&world);
        for path in files {
            for path in [path.to_owned(), path.to_uppercase(), format!("sub/{path}")] {
                let outcome = write(&tool, &path, "{}");
                assert_eq!(outcome.status, OutcomeStatus::Refused, "{path}");
                assert!(outcome.message.unwrap().contains("protected"), "{path}");
            }
            assert_eq!(content(&tool, path), mcp);
        }
        assert!(!world.path("work/sub").exists());
    }

    #[test]
    fn what_the_host_withholds_is_in_no_root() {
        let world = World::new()
            .file("work/state/own/book.json", "approved")
            .file("work/state/x", "fine")
            .file("work/ci.toml", "mine")
            .link("work/short", "state/own")
            .link("other", "work");
        let root = Root::open(&world.path("work")).unwrap();
        let withheld = ["other/state/own", "work/short/../gone", "work/new"];
        let withheld: Vec<PathBuf> = withheld.iter().map(|it| world.path(it)).collect();
        let roots = Roots::new(vec![root]).without(&withheld);
        let tool = FileOperations::new(Arc::new(roots.protecting(&[world.path("other/ci.toml")])));
        let absolute = world.path("work/state/own/book.json").display().to_string();
        for path in ["state/own/book.json", "short/book.json", "State/./OWN/book.json", &absolute] {
            assert_ne!(read(&tool, path).status, OutcomeStatus::Ok, "{path}");
            assert_ne!(write(&tool, path, "forged").status, OutcomeStatus::Ok, "{path}");
        }
        for path in ["state/own", "short"] {
            assert_eq!(list(&tool, path).status, OutcomeStatus::Refused, "{path}");
        }
        for path in ["state/own/new", "state/gone", "new/book.json", "new"] {
            assert_eq!(write(&tool, path, "forged").status, OutcomeStatus::Refused, "{path}");
        }
        for path in ["ci.toml", "./ci.toml", "Ci.toml"] {
            assert_eq!(write(&tool, path, "forged").status, OutcomeStatus::Refused, "{path}");
        }
        assert_eq!((&*content(&tool, "ci.toml"), &*content(&tool, "state/x")), ("mine", "fine"));
        output(write(&tool, "state/x", "other"));
        let book = fs::read_to_string(world.path("work/state/own/book.json")).unwrap();
        assert_eq!(book, "approved");
    }

    #[test]
    fn no_repository_is_made_file_by_file() {
        let files = ["HEAD", "objects/x", "refs/x", "config"];
        for first in 0..files.len() {
            let world = World::new();
            let tool = tool(&world);
            let order = files.iter().cycle().skip(first).take(files.len());
            let refused: Vec<&&str> =
                order.filter(|it| !write(&tool, &format!("sub/{it}"), "x").is_ok()).collect();
            assert!(!refused.is_empty(), "{first}");
            let is_there = |it: &&str| world.path("work/sub").join(it).exists();
            assert!(!files.iter().all(is_there), "{first}");
        }
        let world = World::new()
            .file("work/bare/HEAD", "x")
            .folder("work/bare/objects")
            .folder("work/bare/refs");
        for path in ["bare/config", "bare/hooks/pre-receive"] {
            assert_eq!(write(&tool(&world), path, "x").status, OutcomeStatus::Refused, "{path}");
        }
        output(write(&tool(&world), "bare/notes", "fine"));
    }

    #[test]
    fn what_git_would_read_as_settings_is_not_written() {
        let settings = "[core]\n\trepositoryformatversion = 0\n\tpager = touch PWNED\n";
        let files = [
            ("docs/HEAD", "ref: refs/heads/main\n"),
            ("docs/commondir", "../assets\n"),
            ("docs/config.worktree", settings),
            ("assets/objects/.keep", ""),
            ("assets/refs/.keep", ""),
            ("assets/config", settings),
        ];
        let pager = |world: &World| {
            let mut git = std::process::Command::new("git");
            git.current_dir(world.path("work/docs")).args(["config", "core.pager"]);
            git.env("HOME", world.path("nowhere")).env("GIT_CEILING_DIRECTORIES", world.path("."));
            String::from_utf8(git.output().unwrap().stdout).unwrap()
        };
        // Git would use it from there.
        let world = World::new();
        for (path, text) in files {
            world.write(format!("work/{path}"), text);
        }
        assert_eq!(pager(&world), "touch PWNED\n");
        for first in 0..files.len() {
            let world = World::new().folder("work/docs");
            let tool = tool(&world);
            for (path, text) in files.iter().cycle().skip(first).take(files.len()) {
                write(&tool, path, text);
            }
            assert_eq!(pager(&world), "", "{first}");
            assert!(!world.path("work/docs/commondir").exists());
            let is_there = |it: &str| world.path("work/assets").join(it).exists();
            assert!(!(is_there("config") && is_there("objects") && is_there("refs")), "{first}");
            let world = World::new().folder("work/docs");
            let tool = FileOperations::new(roots(&world));
            thread::scope(|scope| {
                for (path, text) in ["HEAD", "objects/x", "refs/x", "config"].map(|it| (it, "x")) {
                    let tool = &tool;
                    scope.spawn(move || write(tool, &format!("bare/{path}"), text));
                }
            });
            let is_there = |it: &str| world.path("work/bare").join(it).exists();
            assert!(!["HEAD", "objects", "refs", "config"].into_iter().all(is_there));
        }
        // Half of it exists already, as in a cloned repository.
        let world = World::new().file("work/docs/commondir", "../assets\n");
        assert_eq!(
            write(&tool(&world), "docs/HEAD", "ref: refs/heads/x").status,
            OutcomeStatus::Refused
        );
        let world = World::new()
            .file(
                "work/.git/config",
                "[include]\n\tpath = ../more.cfg\n[core]\n\thooksPath = tools/hooks\n",
            )
            .file("work/.git/HEAD", "ref: refs/heads/main\n");
        let tool = tool(&world);
        for path in ["more.cfg", "tools/hooks/pre-commit", "Tools/hooks/x", "sub/config.worktree"] {
            let outcome = write(&tool, path, "x");
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{path}");
        }
        let told = write(&tool, "more.cfg", "x").message.unwrap();
        assert_eq!(told, "`more.cfg` is protected: git would read it as settings");
        for path in ["config", "src/config", "src/objects/a", "lib/config/refs", "HEAD", "tools/x"]
        {
            output(write(&tool, path, "fine"));
        }
    }

    #[test]
    fn a_link_that_is_swapped_in_meanwhile_leads_nowhere() {
        let world = World::new().file("outside/x", "secret").file("work/place/x", "inside");
        let world = {
            let target = world.path("outside");
            world.link("link", target)
        };
        let tool = tool(&world);
        let done = AtomicBool::new(false);
        let (mut inside, mut refused) = (0, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (place, link) = (world.path("work/place"), world.path("link"));
                while !done.load(Ordering::Relaxed) {
                    renameat_with(CWD, &place, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let start = Instant::now();
            for round in 0.. {
                // Both happen within a few rounds.
                if round >= 2000 && inside > 0 && refused > 0 {
                    break;
                }
                assert!(start.elapsed() < PATIENCE, "{inside} {refused}");
                let outcome = read(&tool, "place/x");
                match outcome.output {
                    Some(output) => {
                        assert_eq!(output["content"], "inside");
                        inside += 1;
                    }
                    None => refused += u32::from(outcome.status == OutcomeStatus::Refused),
                }
                write(&tool, "place/x", "inside");
                write(&tool, "place/new/deep", "inside");
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(inside > 0 && refused > 0, "{inside} {refused}");
        assert_eq!(fs::read_to_string(world.path("outside/x")).unwrap(), "secret");
        assert_eq!(fs::read_dir(world.path("outside")).unwrap().count(), 1);
    }
}

mod what_skills_bring_is_found_by_its_name {
    use super::*;

    fn told(tool: &ReadFile, path: &str) -> Outcome {
        call(tool, json!({ "path": path }))
    }

    /// Creates the tool for the library of a world, with these skills active.
    fn reader(world: &World, skills: &[&str]) -> ReadFile {
        let active = ActiveSkills::new(Arc::new(Arc::new(world.load())));
        for skill in skills {
            assert!(active.activate(skill), "{skill}");
        }
        ReadFile::new(Arc::new(active), roots(world))
    }

    fn deploy() -> World {
        World::new()
            .skill("deploy", "Deploys")
            .file("skills/deploy/scripts/run.sh", "echo run\n")
            .file("skills/deploy/notes.md", "notes\n")
    }

    #[test]
    fn a_10_a_file_of_an_active_skill_is_read_by_its_path_or_its_name() {
        let world = deploy();
        let tool = reader(&world, &["deploy"]);
        let absolute = text(&world.path("skills/deploy/scripts/run.sh").canonicalize().unwrap());
        for path in [
            "scripts/run.sh",
            "./scripts/run.sh",
            "run.sh",
            "./run.sh",
            "deploy/scripts/run.sh",
            &absolute,
        ] {
            let output = output(told(&tool, path));
            assert_eq!(output["content"], "echo run\n", "{path}");
            assert_eq!(
                (&output["skill"], &output["resource"]),
                (&json!("deploy"), &json!("scripts/run.sh"))
            );
            assert!(matches!(
                tool.action(&json!({ "path": path })).unwrap(),
                Action::Resource { .. }
            ));
        }
        // A bundled skill is not on disk, but still has a folder.
        let options = prowess::Options { sources: vec![prowess::bundled()], ..Default::default() };
        let bundled = Arc::new(prowess::Library::load(&options).unwrap());
        let active = ActiveSkills::new(Arc::new(bundled));
        assert!(active.activate("create-pr"));
        let tool = ReadFile::new(Arc::new(active), roots(&world));
        let read = output(told(&tool, "bundled/create-pr/scripts/gather.sh"));
        assert_eq!(read["resource"], "scripts/gather.sh");
        // The paths in an answer of `use_skill` can be read unchanged.
        let world = world.document(
            "linked",
            "---\nname: linked\ndescription: Links\n---\nRead [it](notes/it.md).\n",
        );
        let world = world.file("skills/linked/notes/it.md", "it");
        let library = world.load();
        let input = prowess::UseSkillInput { name: "linked".to_owned() };
        let prowess::UsedSkill::Found { instructions, .. } =
            prowess::use_skill(&library, &input).unwrap()
        else {
            panic!("it is there")
        };
        let path = instructions.split(['(', ')']).nth(1).unwrap();
        assert!(path.starts_with('/'), "{path}");
        assert_eq!(output(told(&reader(&world, &["linked"]), path))["content"], "it");
    }

    #[test]
    fn a_10_a_skill_that_is_not_active_brings_nothing() {
        let world = deploy()
            .document("off", "---\nname: off\ndescription: Not in use\nstatus: disabled\n---\n");
        let world = world.file("skills/off/off.md", "off");
        let tool = reader(&world, &[]);
        assert_eq!(told(&tool, "scripts/run.sh").status, OutcomeStatus::NotFound);
        let live_library = Arc::new(prowess::LiveLibrary::start(&world.options()).unwrap());
        let active = Arc::new(ActiveSkills::new(live_library.clone()));
        assert!(!active.activate("off") && !active.activate("unknown"));
        assert!(active.activate("deploy") && active.activate("project:deploy"));
        assert_eq!(active.skills().len(), 1);
        let tool = ReadFile::new(active.clone(), roots(&world));
        output(told(&tool, "notes.md"));
        fs::remove_dir_all(world.path("skills/deploy")).unwrap();
        live_library.reload().unwrap();
        assert_eq!(told(&tool, "notes.md").status, OutcomeStatus::NotFound);
        assert_eq!(active.skills().len(), 0);
    }

    #[test]
    fn a_name_that_means_several_files_is_told_with_all_of_them() {
        let world = deploy()
            .skill("test", "Tests")
            .file("skills/test/notes.md", "of test\n")
            .file("skills/test/more/run.sh", "more\n");
        let tool = reader(&world, &["deploy", "test"]);
        let outcome = told(&tool, "notes.md");
        assert_eq!(outcome.status, OutcomeStatus::Invalid);
        assert_eq!(outcome.message.unwrap(), "`notes.md` is the name of 2 files");
        assert_eq!(
            outcome.hint.unwrap(),
            "use one of these paths: `deploy/notes.md`, `test/notes.md`"
        );
        assert_eq!(output(told(&tool, "test/notes.md"))["content"], "of test\n");
        let hint = told(&tool, "run.sh").hint.unwrap();
        assert_eq!(hint, "use one of these paths: `deploy/scripts/run.sh`, `test/more/run.sh`");
        assert_eq!(output(told(&tool, "more/run.sh"))["content"], "more\n");
    }

    /// Creates a tool with a source that counts, and a clock that is advanced manually.
    fn counted() -> (World, Arc<Counting>, Arc<std::sync::Mutex<Instant>>, ReadFile) {
        let files: [(&str, &[u8]); 2] = [
            ("one/SKILL.md", b"---\nname: one\ndescription: a\n---\n"),
            ("one/notes.md", b"notes"),
        ];
        let source = Arc::new(Counting::new(Memory::new(Scope::Project, "memory", files)));
        let options = Options { sources: vec![source.clone()], ..Options::default() };
        let active = ActiveSkills::new(Arc::new(Arc::new(Library::load(&options).unwrap())));
        assert!(active.activate("one"));
        let clock = Arc::new(std::sync::Mutex::new(Instant::now()));
        let now = clock.clone();
        let world = World::new();
        let tool =
            ReadFile::with_clock(Arc::new(active), roots(&world), move || *now.lock().unwrap());
        (world, source, clock, tool)
    }

    #[test]
    fn a_11_what_was_read_is_kept_for_five_minutes() {
        let (_world, source, clock, tool) = counted();
        for (seconds, reads) in [(0, 1), (1, 1), (298, 1), (1, 2), (299, 2), (1, 3)] {
            *clock.lock().unwrap() += Duration::from_secs(seconds);
            assert_eq!(output(told(&tool, "notes.md"))["content"], "notes");
            assert_eq!(source.reads(), reads);
        }
    }

    #[test]
    fn a_11_an_edit_shows_at_once() {
        let world = deploy();
        let tool = reader(&world, &["deploy"]);
        let path = world.path("skills/deploy/notes.md");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(output(told(&tool, "notes.md"))["content"], "notes\n");
        world.write("skills/deploy/notes.md", "other\n");
        fs::File::open(&path).unwrap().set_modified(before).unwrap();
        assert_eq!(output(told(&tool, "notes.md"))["content"], "other\n");
        world.remove("skills/deploy/notes.md");
        assert_eq!(told(&tool, "notes.md").status, OutcomeStatus::Failed);
    }

    #[test]
    fn a_12_other_files_are_read_as_they_are() {
        let world = deploy()
            .file("work/src/main.rs", "fn main() {}\n")
            .file("work/notes.md", "of work\n")
            .file("work/long", "line\n".repeat(100_000));
        let tool = reader(&world, &["deploy"]);
        let output_of = |path: &str| output(told(&tool, path));
        assert_eq!(output_of("src/main.rs")["content"], "fn main() {}\n");
        assert_eq!(output_of(&text(&world.path("work/src/main.rs")))["content"], "fn main() {}\n");
        // Files of a skill take precedence; the absolute path means the other one.
        assert_eq!(output_of("notes.md")["skill"], "deploy");
        assert_eq!(output_of(&text(&world.path("work/notes.md")))["content"], "of work\n");
        assert_eq!(output_of("long")["next_offset"], 20_480);
        assert_eq!(told(&tool, "nothing").status, OutcomeStatus::NotFound);
        assert!(matches!(tool.action(&json!({ "path": "src/main.rs" })).unwrap(), Action::Read(_)));
    }

    #[test]
    fn a_12_a_path_that_leaves_its_root_is_refused() {
        let world = deploy()
            .file("outside/secret", "secret")
            .link("skills/deploy/references", "/")
            .link("skills/deploy/secret.md", "../../outside/secret")
            .file("skills/deploy/.git/config", "token");
        let tool = reader(&world, &["deploy"]);
        let folder = text(&world.path("skills/deploy"));
        for path in [
            "../deploy/notes.md",
            "../../outside/secret",
            "scripts/../../../outside/secret",
            "deploy/../../outside/secret",
            "/etc/passwd",
            "/etc/nothing",
            "a\0.md",
            "skill://deploy/../../etc/passwd",
            ".git/config",
            &format!("{folder}/../../outside/secret"),
            &format!("{folder}/references/etc/passwd"),
            &format!("{folder}/references/etc/nothing"),
            &format!("{folder}/.git/config"),
            &format!("{folder}/secret.md"),
        ] {
            let outcome = told(&tool, path);
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{path:?}: {outcome:?}");
            let message = outcome.message.unwrap().replace(path, "PATH");
            match path.contains(".git") {
                true => assert_eq!(message, "`PATH` is protected from all tools"),
                false => assert_eq!(message, "`PATH` is not in a directory that may be used"),
            }
        }
        for path in [
            "..%2f..%2foutside%2fsecret",
            "..%c0%af..%c0%afoutside",
            "skill://deploy/%2e%2e/%2e%2e/outside/secret",
            "skill://X@evil/secret",
            "references/etc/passwd",
            "secret.md",
        ] {
            assert_eq!(told(&tool, path).status, OutcomeStatus::NotFound, "{path:?}");
        }
    }

    #[test]
    fn a_file_of_a_skill_that_is_no_text_comes_in_base64() {
        let world = deploy().file("skills/deploy/logo.png", b"\x89PNG\r\n\x1a\n\0");
        let tool = reader(&world, &["deploy"]);
        let output = output(told(&tool, "logo.png"));
        assert_eq!(
            (&output["content_base64"], &output["size"]),
            (&json!("iVBORw0KGgoA"), &json!(9))
        );
    }
}
