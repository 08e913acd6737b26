//! Clients that start the server themselves.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    process::{Command, Stdio},
};

use serde_json::{Value as Json, json};

use crate::world::{Ran, World, program};

/// The file of the client that most scenarios use.
const CURSOR: &str = "home/.cursor/mcp.json";

/// The file of the client that keeps servers in YAML.
const GOOSE: &str = "home/.config/goose/config.yaml";

/// Installs for a client with `--yes`.
fn install(world: &World, client: &str, more: &[&str]) -> Ran {
    world.run(["mcp", "install", "--yes", "--client", client].iter().chain(more))
}

/// Like [`install`], and asserts success.
fn installed(world: &World, client: &str, more: &[&str]) -> Ran {
    let ran = install(world, client, more);
    assert_eq!(ran.code, Some(0), "{client} {more:?}: {}", ran.stderr);
    ran
}

fn text(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

fn json_of(world: &World, path: &str) -> Json {
    serde_json::from_str(&text(world, path)).unwrap()
}

/// Returns the entry of the server in a file with `mcpServers`.
fn entry(world: &World, path: &str) -> Json {
    json_of(world, path)["mcpServers"]["prowess"].clone()
}

/// Asserts that all lines of a text are still there, in their order.
fn assert_kept(before: &str, after: &str) {
    let mut rest = after.split_inclusive('\n');
    for line in before.split_inclusive('\n') {
        // A comma may have been added after it.
        let is_it = |it: &&str| {
            let kept = it.trim_end() == line.trim_end();
            kept || it.replacen(',', "", 1) == line.replacen(',', "", 1)
        };
        assert!(rest.any(|it| is_it(&it)), "{line:?} is not in its place in {after}");
    }
}

mod a_client_learns_how_to_start_the_server {
    use super::*;

    #[test]
    fn what_is_written_down_is_a_server_that_answers() {
        let world = World::new().skill("brew-coffee", "Brews coffee");
        installed(&world, "claude-code", &["--project", "--dir", "skills"]);
        let entry = entry(&world, ".mcp.json");
        let directory = world.path("skills");
        assert_eq!(entry["command"], program());
        assert_eq!(entry["args"], json!(["mcp", "--dir", directory.to_str().unwrap()]));
        let arguments = entry["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
        let mut child = Command::new(entry["command"].as_str().unwrap())
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
        let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        writeln!(child.stdin.take().unwrap(), "{ask}").unwrap();
        let said = child.wait_with_output().unwrap().stdout;
        let said: Json =
            serde_json::from_slice(said.split(|it| *it == b'\n').next().unwrap()).unwrap();
        let instructions = said["result"]["instructions"].as_str().unwrap();
        assert!(instructions.contains("brew-coffee"), "{instructions}");
    }

    #[test]
    fn every_client_is_told_in_its_own_form_and_at_its_own_place() {
        let plain = json!({ "command": program(), "args": ["mcp"] });
        let typed = json!({ "type": "stdio", "command": program(), "args": ["mcp"] });
        let tools =
            json!({ "type": "local", "command": program(), "args": ["mcp"], "tools": ["*"] });
        let joined = json!({ "type": "local", "command": [program(), "mcp"] });
        let all = [
            ("amp", ".config/amp/settings.json", ".amp/settings.json", "amp.mcpServers", &plain),
            ("claude-code", ".claude.json", ".mcp.json", "mcpServers", &plain),
            ("cline", ".cline/data/settings/cline_mcp_settings.json", "", "mcpServers", &plain),
            ("copilot", ".copilot/mcp-config.json", ".github/mcp.json", "mcpServers", &tools),
            ("cursor", ".cursor/mcp.json", ".cursor/mcp.json", "mcpServers", &plain),
            ("droid", ".factory/mcp.json", ".factory/mcp.json", "mcpServers", &typed),
            ("gemini", ".gemini/settings.json", ".gemini/settings.json", "mcpServers", &plain),
            ("junie", ".junie/mcp/mcp.json", ".junie/mcp/mcp.json", "mcpServers", &plain),
            ("kilo", ".config/kilo/kilo.jsonc", ".kilo/kilo.jsonc", "mcp", &joined),
            ("kiro", ".kiro/settings/mcp.json", ".kiro/settings/mcp.json", "mcpServers", &plain),
            ("lmstudio", ".lmstudio/mcp.json", "", "mcpServers", &plain),
            ("opencode", ".config/opencode/opencode.json", "opencode.json", "mcp", &joined),
            ("qwen", ".qwen/settings.json", ".qwen/settings.json", "mcpServers", &plain),
            ("roo", "", ".roo/mcp.json", "mcpServers", &plain),
            ("vscode", ".config/Code/User/mcp.json", ".vscode/mcp.json", "servers", &typed),
            ("warp", ".warp/.mcp.json", ".warp/.mcp.json", "mcpServers", &plain),
            ("windsurf", ".codeium/windsurf/mcp_config.json", "", "mcpServers", &plain),
            ("zed", ".config/zed/settings.json", "", "context_servers", &plain),
        ];
        let world = World::new().folder("project");
        let scopes = ["--user", "--project"];
        for (client, user, project, servers, entry) in all {
            for (scope, base, path) in [(scopes[0], "home", user), (scopes[1], "project", project)]
            {
                let more = [scope, "--cwd", "project", "--name", "skills-1"];
                if path.is_empty() {
                    let ran = install(&world, client, &more);
                    let other = scopes.iter().find(|it| **it != scope).unwrap();
                    assert_eq!(ran.code, Some(2), "{client}");
                    assert!(ran.stderr.contains(&format!("`{other}`")), "{}", ran.stderr);
                    continue;
                }
                installed(&world, client, &more);
                let mut written =
                    json_of(&world, &format!("{base}/{path}"))[servers]["skills-1"].clone();
                // The base of relative directories was given.
                let list = if *entry == joined { "command" } else { "args" };
                let list = written[list].as_array_mut().unwrap();
                assert_eq!(list.pop(), Some(json!(world.path("project"))), "{client}");
                assert_eq!(list.pop(), Some(json!("--cwd")), "{client}");
                assert_eq!(written, *entry, "{client}");
            }
        }
        for (scope, path) in
            [("--user", "home/.codex/config.toml"), ("--project", ".codex/config.toml")]
        {
            installed(&world, "codex", &[scope]);
            let wanted =
                format!("[mcp_servers.prowess]\ncommand = \"{}\"\nargs = [\"mcp\"]\n", program());
            assert_eq!(text(&world, path), wanted);
        }
        installed(&world, "goose", &[]);
        let fields = "enabled: true\n    type: \"stdio\"\n    name: \"prowess\"";
        let wanted = format!(
            "extensions:\n  prowess:\n    {fields}\n    cmd: \"{}\"\n    args: [\"mcp\"]\n",
            program()
        );
        assert_eq!(text(&world, GOOSE), wanted);
    }

    #[test]
    fn variables_move_the_files_of_a_user_as_they_do_for_the_client() {
        let world = World::new();
        let moved = world.path("moved");
        let moved = moved.to_str().unwrap();
        for (variable, client, path) in [
            ("CODEX_HOME", "codex", "moved/config.toml"),
            ("COPILOT_HOME", "copilot", "moved/mcp-config.json"),
            ("XDG_CONFIG_HOME", "zed", "moved/zed/settings.json"),
        ] {
            let typed = ["mcp", "install", "--yes", "--client", client];
            let ran = world.run_with_env(&[(variable, moved)], &typed);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert!(text(&world, path).contains(program()), "{client}");
            let ran = world.run_with_env(&[(variable, "relative")], &typed);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert!(!world.path("relative").exists(), "{client}");
        }
    }

    #[test]
    fn what_says_where_to_look_is_given_to_the_server() {
        let world = World::new().file("own/prowess.toml", "");
        let typed = "--dir ~/mine --preset claude --cwd own --config prowess.toml --depth 2 --include a --exclude b --max-file-size 9 --profile lenient -- --watch --budget 500";
        let ran = installed(&world, "cursor", &typed.split(' ').collect::<Vec<_>>());
        assert!(ran.stderr.contains("there is no folder"), "{}", ran.stderr);
        let at = |it: &str| world.path(it).to_str().unwrap().to_owned();
        let (mine, own, config) = (at("home/mine"), at("own"), at("own/prowess.toml"));
        let wanted = format!(
            "mcp --dir {mine} --preset claude --cwd {own} --config {config} --depth 2 --include a --exclude b --max-file-size 9 --profile lenient --watch --budget 500"
        );
        assert_eq!(entry(&world, CURSOR)["args"], json!(wanted.split(' ').collect::<Vec<_>>()));

        let world = World::new();
        for (typed, told) in [
            ("-- --wach", "--wach"),
            ("-- --budget many", "many"),
            ("-- --http", "starts the server on stdio"),
            ("-- install", "starts the server on stdio"),
            ("--preset clod", "there is no preset `clod`"),
            ("--name a.b", "letters"),
        ] {
            let ran = install(&world, "cursor", &typed.split(' ').collect::<Vec<_>>());
            assert_eq!(ran.code, Some(2), "{typed}");
            assert!(ran.stderr.contains(told), "{typed}: {}", ran.stderr);
        }
        let ran = world.run(["mcp", "--run", "install", "--client", "cursor", "--yes"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("as in `-- --watch`"), "{}", ran.stderr);
        assert!(!world.path(CURSOR).exists());
    }

    #[test]
    fn a_client_that_is_missing_or_misspelt_is_answered_with_those_there_are() {
        let world = World::new();
        let misspelt = install(&world, "claude-cod", &[]);
        assert_eq!(misspelt.code, Some(2));
        assert!(misspelt.stderr.contains("did you mean `claude-code`?"), "{}", misspelt.stderr);
        let missing = world.run(["mcp", "install", "--yes"]);
        assert_eq!((missing.code, missing.stdout()), (Some(2), ""));
        assert!(missing.stderr.contains("`prowess mcp install` lists"), "{}", missing.stderr);
        let ran = world.run(["mcp", "install"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let listed: Vec<&str> =
            ran.stdout().lines().map(|it| it.split(' ').next().unwrap()).collect();
        assert!(listed.len() > 10, "{listed:?}");
        let said = world.run(["mcp", "install", "--json"]).json();
        let said = said["clients"].as_array().unwrap().iter().map(|it| it["name"].as_str());
        assert_eq!(said.flatten().collect::<Vec<_>>(), listed);
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp-clients.md");
        let docs = fs::read_to_string(docs).unwrap();
        for client in listed {
            assert!(docs.contains(&format!("| `{client}` |")), "`{client}` is not in the docs");
        }
    }

    #[test]
    fn the_newer_form_of_a_file_is_kept_to() {
        let world = World::new()
            .file(
                "opencode.jsonc",
                r#"{"mcp": {"servers": {"a": {"type": "local", "command": ["a"]}}}}"#,
            )
            .file("home/.config/opencode/opencode.json", r#"{"mcp": {"a": {"type": "local"}}}"#);
        installed(&world, "opencode", &["--project"]);
        installed(&world, "opencode", &[]);
        let wanted = json!({ "type": "local", "command": [program(), "mcp"] });
        assert_eq!(json_of(&world, "opencode.jsonc")["mcp"]["servers"]["prowess"], wanted);
        assert!(!world.path("opencode.json").exists());
        let user = json_of(&world, "home/.config/opencode/opencode.json");
        assert_eq!(user["mcp"]["prowess"], wanted);
    }
}

mod all_else_stays_as_it_is {
    use super::*;

    #[test]
    fn comments_order_indentation_and_last_commas_stay() {
        let before = "// mine\n{\n\t\"z\": [1, 2,], /* first */\n\t\"context_servers\": {\n\t\t// one\n\t\t\"b\": {\"command\": \"b\"}, // two\n\t\t\"a\": {\n\t\t\t\"command\": \"a\", // three\n\t\t},\n\t\t// four\n\t},\n\t\"a\": \"\\u00e9 // no comment\",\n}\n// end";
        let path = "home/.config/zed/settings.json";
        let world = World::new().file(path, before);
        installed(&world, "zed", &[]);
        let after = text(&world, path);
        assert_kept(before, &after);
        let new = format!(
            "\t\t\"prowess\": {{\n\t\t\t\"command\": \"{}\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}},\n",
            program()
        );
        assert_eq!(after.replacen(&new, "", 1), before);

        // Without a comma, the neighbour gets one, in front of its comment.
        let before =
            "{\n    \"mcpServers\": {\n        \"a\": {} // one\n        // two\n    }\n}\n";
        let world = World::new().file(CURSOR, before);
        installed(&world, "cursor", &[]);
        let after = text(&world, CURSOR);
        let start = "{\n    \"mcpServers\": {\n        \"a\": {}, // one\n        // two\n        \"prowess\": {\n            \"command\": ";
        assert!(after.starts_with(start) && after.ends_with("\n        }\n    }\n}\n"), "{after}");
    }

    #[test]
    fn byte_order_mark_and_line_ends_stay() {
        let before = "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n";
        let world = World::new().file(CURSOR, before);
        let ran = installed(&world, "cursor", &[]);
        ran.assert_safe();
        let after = text(&world, CURSOR);
        assert!(
            after.starts_with(
                "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {},\r\n    \"prowess\""
            )
        );
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
        installed(&world, "cursor", &["--remove"]);
        assert_eq!(text(&world, CURSOR), before);
        let world = World::new().file(CURSOR, "\u{feff}");
        installed(&world, "cursor", &[]);
        assert!(text(&world, CURSOR).starts_with("\u{feff}{\n"));
    }

    #[test]
    fn toml_stays_as_it_is_written() {
        let lines = "# mine\nmodel = 'x'  # why\n\n[mcp_servers.other]   # theirs\ncommand = \"o\"\nargs = [\n  \"a\", # one\n]\n\n[mcp_servers.other.env]\nTOKEN = 'secret'\n\n[profiles.\"a b\"]\nx.y = 1_000\nz = { a = 1 }\n# end\n";
        for before in [lines.to_owned(), lines.replace('\n', "\r\n"), lines.trim_end().to_owned()] {
            let world = World::new().file("home/.codex/config.toml", &before);
            installed(&world, "codex", &[]);
            let after = text(&world, "home/.codex/config.toml");
            assert_kept(&before, &after);
            assert_eq!(after.contains("\r\n"), before.contains("\r\n"));
            assert_eq!(after.lines().count(), before.lines().count() + 4, "{after}");
            installed(&world, "codex", &["--remove"]);
            assert_eq!(text(&world, "home/.codex/config.toml").trim_end(), before.trim_end());
        }
        let before = "[mcp_servers.prowess]\ncommand = \"old\" # why\nenabled = false\n[mcp_servers.prowess.env]\nA = \"b\"\n";
        let world = World::new().file("home/.codex/config.toml", before);
        installed(&world, "codex", &[]);
        let new = format!("command = \"{}\" # why\nenabled = false\nargs = [\"mcp\"]\n", program());
        let wanted = before.replacen("command = \"old\" # why\nenabled = false\n", &new, 1);
        assert_eq!(text(&world, "home/.codex/config.toml"), wanted);
    }

    #[test]
    fn yaml_stays_as_it_is_written() {
        let lines = "# mine\nGOOSE_MODEL: 'x'   # why\nextensions:\n  other:\n    args:\n    - -y\n    envs: { TOKEN: secret }\n\n    description: >\n      # no comment\n  # theirs\n\n# tail\nnote: |\n  extensions:\n    prowess:\n      cmd: fake\n";
        for before in [lines.to_owned(), lines.replace('\n', "\r\n"), lines.trim_end().to_owned()] {
            let world = World::new().file(GOOSE, &before);
            installed(&world, "goose", &[]);
            let after = text(&world, GOOSE);
            assert_kept(&before, &after);
            assert_eq!(after.matches("\r\n").count() > 0, before.contains("\r\n"));
            assert_eq!(after.lines().count(), before.lines().count() + 6, "{after}");
            assert!(after.find("  prowess:") < after.find("note:"), "{after}");
            installed(&world, "goose", &["--remove"]);
            assert_eq!(text(&world, GOOSE), before);
        }
        let before = "extensions:\n  prowess:\n    enabled: true\n    type: stdio\n    name: prowess # me\n    cmd: old\n    args:\n    - a\n    envs:\n      A: b\n  other:\n    cmd: old\n";
        let world = World::new().file(GOOSE, before);
        installed(&world, "goose", &[]);
        let new = format!("cmd: \"{}\"\n    args: [\"mcp\"]\n    envs", program());
        let wanted = before.replacen("cmd: old\n    args:\n    - a\n    envs", &new, 1);
        assert_eq!(text(&world, GOOSE), wanted);
        for before in ["", "# only this\n", "extensions:\n", "extensions: {}\n", "a: 1"] {
            let world = World::new().file(GOOSE, before);
            installed(&world, "goose", &[]);
            assert!(text(&world, GOOSE).contains("extensions:\n  prowess:\n    enabled: true\n"));
        }
    }

    #[test]
    fn an_entry_changes_only_where_it_differs() {
        let before = "{\n  \"mcpServers\": {\n    \"prowess\": {\n      \"command\": \"/old\", // moved\n      \"args\": [\"mcp\"],\n      \"env\": {\"A\": \"b\"},\n      \"disabled\": true\n    },\n    \"other\": {\"command\": \"/old\"}\n  }\n}\n";
        let world = World::new().file(CURSOR, before);
        let ran = installed(&world, "cursor", &[]);
        let wanted = before.replacen("/old", program(), 1);
        assert_eq!(text(&world, CURSOR), wanted);
        let changed = |mark: char| {
            let lines = ran.stdout().lines().skip(2);
            lines.filter(|it| it.starts_with(mark)).count()
        };
        assert_eq!((changed('-'), changed('+')), (1, 1), "{}", ran.stdout());

        let before =
            r#"{"mcpServers": {"prowess": {"url": "https://example.com/mcp"}, "b": {"url": "x"}}}"#;
        let world = World::new().file(CURSOR, before);
        installed(&world, "cursor", &[]);
        assert_eq!(entry(&world, CURSOR), json!({ "command": program(), "args": ["mcp"] }));
        assert_eq!(json_of(&world, CURSOR)["mcpServers"]["b"], json!({ "url": "x" }));
    }

    #[test]
    fn a_second_time_nothing_changes() {
        let world = World::new();
        let codex = ("codex", "home/.codex/config.toml");
        for (client, path) in [("cursor", CURSOR), codex, ("goose", GOOSE)] {
            installed(&world, client, &[]);
            let found = fs::metadata(world.path(path)).unwrap();
            for more in [&[][..], &["--remove", "--name", "other"]] {
                let ran = world.run(["mcp", "install", "--client", client].iter().chain(more));
                assert_eq!((ran.code, ran.stdout()), (Some(0), ""), "{}", ran.stderr);
                assert!(ran.stderr.contains("nothing to change"), "{}", ran.stderr);
            }
            // A file that is written is another file.
            assert_eq!(fs::metadata(world.path(path)).unwrap().ino(), found.ino());
        }
        installed(&world, "gemini", &["--remove"]);
        assert!(!world.path("home/.gemini").exists());
    }

    #[test]
    fn a_removed_server_leaves_no_trace() {
        for before in [
            "{\n  \"mcpServers\": {\n    \"a\": {},\n    \"b\": {}\n  }\n}",
            "{\"mcpServers\": {\"a\": {}}}",
            "{ \"mcpServers\": { \"a\": {}, } }\n",
        ] {
            let world = World::new().file(CURSOR, before);
            installed(&world, "cursor", &[]);
            assert!(text(&world, CURSOR).contains(program()));
            installed(&world, "cursor", &["--remove"]);
            assert_eq!(text(&world, CURSOR), before);
        }
        let world = World::new().file(CURSOR, r#"{"mcpServers": {"prowess": {}, "a": {}}}"#);
        installed(&world, "cursor", &["--remove"]);
        assert_eq!(text(&world, CURSOR), r#"{"mcpServers": {"a": {}}}"#);
    }

    #[test]
    fn the_rights_of_a_file_stay() {
        let world = World::new().file(CURSOR, "{}");
        let mode =
            |path: &str| fs::metadata(world.path(path)).unwrap().permissions().mode() & 0o777;
        for rights in [0o640, 0o600, 0o664] {
            let own = fs::Permissions::from_mode(rights);
            fs::set_permissions(world.path(CURSOR), own).unwrap();
            installed(&world, "cursor", &["--name", &format!("of-{rights}")]);
            assert_eq!(mode(CURSOR), rights);
        }
        world.run_script("umask 022; \"$0\" mcp install --yes --client gemini; \"$0\" mcp install --yes --project --client gemini");
        assert_eq!(mode("home/.gemini/settings.json"), 0o600);
        assert_eq!(mode(".gemini/settings.json"), 0o644);
    }
}

mod nothing_is_written_that_nobody_wants {
    use super::*;

    #[test]
    fn a_dry_run_writes_nothing() {
        let world = World::new().file(".cursor/mcp.json", "{}");
        for more in [&[][..], &["--project"]] {
            let ran = installed(&world, "cursor", &[&["--dry-run"], more].concat());
            assert!(ran.stdout().contains("+    \"prowess\": {\n"), "{}", ran.stdout());
            assert!(ran.stderr.contains("nothing was written"), "{}", ran.stderr);
        }
        assert_eq!(text(&world, ".cursor/mcp.json"), "{}");
        assert!(!world.path("home/.cursor").exists());
    }

    #[test]
    fn somebody_is_asked_and_nobody_is_no_yes() {
        let world = World::new();
        let ran = world.run(["mcp", "install", "--client", "cursor"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stdout().contains("+    \"prowess\": {\n"), "{}", ran.stdout());
        assert!(ran.stderr.contains("`--yes` writes without asking"), "{}", ran.stderr);
        for answer in ["n\n", "\n", "yes please\n"] {
            let ran = world.run_at_terminal(answer, "mcp install --client cursor");
            assert_eq!(ran.code, Some(1), "{answer:?}: {}", ran.stdout());
            assert!(ran.stdout().contains("Write this?"), "{}", ran.stdout());
            assert!(!world.path("home/.cursor").exists(), "{answer:?}");
        }
        let ran = world.run_at_terminal("y\n", "mcp install --client cursor");
        assert_eq!(ran.code, Some(0), "{}", ran.stdout());
        assert_eq!(entry(&world, CURSOR)["command"], program());
    }

    #[test]
    fn what_cannot_be_read_is_left_alone_with_the_line() {
        let deep = format!("{{\"a\":\n{}", "[".repeat(100_000));
        for (client, before, told) in [
            ("cursor", "{\n  \"a\": 1\n  \"b\": 2\n}", "mcp.json:3`: expected a comma before this"),
            ("cursor", "{\n  \"mcpServers\": {\n", "mcp.json:3`: expected a name in quotes or `}`"),
            ("cursor", "{\n\"a\": \"x\n\"}", "mcp.json:2`: this string is not terminated"),
            ("cursor", "{\n\"a\": nul\n}", "mcp.json:2`: expected a value"),
            ("cursor", "{} /* x", "mcp.json:1`: this comment is not terminated"),
            ("cursor", "{}\n{}", "mcp.json:2`: unexpected text after the value"),
            ("cursor", "// nothing\n", "mcp.json:2`: expected a value"),
            ("cursor", "{\n\"mcpServers\": []}", "mcp.json:2`: expected an object"),
            ("cursor", "[]", "mcp.json:1`: expected an object"),
            (
                "cursor",
                "{\"mcpServers\": {},\n\"mcpServers\": {}}",
                "mcp.json:2`: `mcpServers` appears twice",
            ),
            ("cursor", &deep, "mcp.json:2`: values are nested too deeply"),
            ("codex", "a = 1\nb = \n", "config.toml:2`: "),
            ("codex", "a = 1\na = 2\n", "config.toml:2`: "),
            ("codex", "a = 1\r\nb = 2\n", "config.toml`: its formatting cannot be preserved"),
            ("codex", "mcp_servers = 1\n", "config.toml`: `mcp_servers` is not a table"),
            ("goose", "a: 1\nb: [\n", "config.yaml:2`: "),
            ("goose", "a: 1\na: 2\n", "config.yaml:2`: `a` appears twice"),
            ("goose", "a: &x 1\nb: *x\n", "config.yaml:2`: it has an alias"),
            ("goose", "a: 1\n---\nb: 2\n", "config.yaml:2`: it contains several documents"),
            ("goose", "extensions: [a]\n", "config.yaml`: there is no map for `prowess`"),
            ("goose", "extensions: {a: {cmd: b}}\n", "config.yaml`: it is not a block of"),
            ("goose", "a: 1\r\nb: 2\n", "config.yaml`: it is not a block of"),
        ] {
            let path = match client {
                "codex" => "home/.codex/config.toml",
                "goose" => GOOSE,
                _ => CURSOR,
            };
            let world = World::new().file(path, before);
            let ran = install(&world, client, &[]);
            assert_eq!(ran.code, Some(2), "{before:.80}");
            assert!(ran.stderr.contains(told), "{before:.80}: {}", ran.stderr);
            assert_eq!(text(&world, path), before);
        }
        let world = World::new().file(CURSOR, b"{\"a\": \"\xff\"}");
        assert_eq!(install(&world, "cursor", &[]).code, Some(2));
        assert_eq!(fs::read(world.path(CURSOR)).unwrap(), b"{\"a\": \"\xff\"}");
    }

    #[test]
    fn what_is_no_file_to_be_written_is_left_alone() {
        let world = World::new().file(CURSOR, "{}");
        fs::set_permissions(world.path(CURSOR), fs::Permissions::from_mode(0o444)).unwrap();
        let world = world
            .folder("home/.gemini/settings.json")
            .pipe("home/.qwen/settings.json")
            .link("home/.claude.json", "nowhere");
        for (client, told) in [
            ("cursor", "is read-only"),
            ("gemini", "is not a file"),
            ("qwen", "is not a file"),
            ("claude-code", "cannot read"),
        ] {
            let ran = install(&world, client, &[]);
            assert_eq!(ran.code, Some(2), "{client}");
            assert!(ran.stderr.contains(told), "{client}: {}", ran.stderr);
        }
        assert_eq!(text(&world, CURSOR), "{}");
        assert!(!world.path("home/nowhere").exists());
        let ran = install(&world, "cursor", &["--project", "--cwd", "nowhere"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("does not exist"), "{}", ran.stderr);
        assert!(!world.path("nowhere").exists());
    }

    #[test]
    fn a_link_is_followed_for_a_user_and_not_out_of_a_project() {
        let world = World::new()
            .file("dotfiles/mcp.json", "{}")
            .link(CURSOR, "../../repo/dotfiles/mcp.json");
        let ran = installed(&world, "cursor", &[]);
        assert!(ran.stderr.contains("will be changed"), "{}", ran.stderr);
        assert!(world.path(CURSOR).is_symlink());
        assert_eq!(entry(&world, "dotfiles/mcp.json")["command"], program());

        let world = World::new()
            .file("home/secret.json", "{}")
            .folder("project")
            .link("project/.mcp.json", "../home/secret.json")
            .link("project/.cursor", "../home")
            .file("project/real.json", "{}")
            .link("project/opencode.json", "real.json");
        for client in ["claude-code", "cursor"] {
            let ran = install(&world, client, &["--project", "--cwd", "project"]);
            assert_eq!(ran.code, Some(2), "{client}");
            assert!(ran.stderr.contains("leads out of the project"), "{}", ran.stderr);
        }
        assert_eq!(text(&world, "home/secret.json"), "{}");
        assert_eq!(fs::read_dir(world.path("home")).unwrap().count(), 1);
        installed(&world, "opencode", &["--project", "--cwd", "project"]);
        assert!(text(&world, "project/real.json").contains(program()));
    }

    #[test]
    fn what_somebody_else_wrote_meanwhile_is_not_lost() {
        let world = World::new().file(CURSOR, "{}");
        let script = r#"( until grep -qs "Write this" log; do sleep 0.05; done
            printf '{"new": 1}' > home/.cursor/mcp.json; echo y; sleep 1
        ) | script -qfec "$0 mcp install --client cursor" log"#;
        let ran = world.run_script(script);
        assert_eq!(ran.code, Some(2), "{}", ran.stdout());
        assert!(ran.stdout().contains("changed by another program"), "{}", ran.stdout());
        assert_eq!(text(&world, CURSOR), "{\"new\": 1}");
        let files: Vec<_> = fs::read_dir(world.path("home/.cursor")).unwrap().collect();
        assert_eq!(files.len(), 1, "a draft is left: {files:?}");
    }

    #[test]
    fn what_others_keep_secret_is_not_shown() {
        let json = "{\n  \"token\": \"s3cret\",\n  \"mcpServers\": {\n    \"a\": {\n      \"env\": {\n        \"KEY\": \"s3cret\"\n      }\n    }\n  },\n  \"key\": \"s3cret\"\n}\n";
        let toml = "[mcp_servers.a]\ncommand = \"a\"\n[mcp_servers.a.env]\nKEY = \"s3cret\"\n[b]\nkey = \"s3cret\"\n";
        let world = World::new().file(CURSOR, json).file("home/.codex/config.toml", toml);
        for client in ["cursor", "codex"] {
            for more in [&[][..], &["--json"], &["--verbose", "--remove"]] {
                let ran = installed(&world, client, more);
                assert!(!format!("{}{}", ran.stdout(), ran.stderr).contains("s3cret"));
            }
        }
        assert_eq!(
            (text(&world, CURSOR), text(&world, "home/.codex/config.toml")),
            (json.into(), toml.into())
        );
        let line = r#"{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"s3cret"},"headers":{"Authorization":"Bearer s3cret"},"args":["--token","s3cret","--token=s3cret","--key=sk-abc123def456s3cret"]},"prowess":{"command":"x","args":[],"env":{"X":"s3cret"}}},"oauth":{"refreshToken":"s3cret"}}"#;
        let yaml =
            "extensions:\n  prowess:\n    cmd: x\n    envs:\n      KEY: s3cret\n    type: stdio\n";
        let world = World::new().file(CURSOR, line).file("home/.config/goose/config.yaml", yaml);
        for client in ["cursor", "goose"] {
            for more in [&["--json"][..], &["--remove"]] {
                let ran = installed(&world, client, more);
                let printed = format!("{}{}", ran.stdout(), ran.stderr);
                assert_eq!(ran.code, Some(0), "{printed}");
                assert!(printed.contains("prowess") && !printed.contains("s3cret"), "{printed}");
            }
        }
        let json = json_of(&world, CURSOR);
        assert_eq!(json["mcpServers"]["a"]["env"]["TOKEN"], "s3cret");
        assert_eq!(json["oauth"]["refreshToken"], "s3cret");
    }

    #[test]
    fn one_document_tells_what_was_done() {
        let world = World::new();
        let path = world.path(CURSOR);
        for (more, changed, is_new) in
            [("--dry-run", false, true), ("--yes", true, true), ("--yes", false, false)]
        {
            let ran = world.run(["mcp", "install", "--client", "cursor", "--json", more]);
            let json = ran.json();
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!((&json["client"], &json["path"]), (&json!("cursor"), &json!(path)));
            assert_eq!(json["changed"], changed);
            assert_eq!(json["diff"].as_str().unwrap().contains("\"prowess\""), is_new, "{json:#}");
        }
        assert_eq!(json_of(&world, CURSOR)["mcpServers"].as_object().unwrap().len(), 1);
    }
}
