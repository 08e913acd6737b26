//! The server, used by clients of other authors.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};

use prowess_testing::mcp_sdk::{SDK, python};
use serde_json::{Value as Json, json};

use crate::{
    mcp_client::McpHost,
    world::{World, program, unfenced},
};

const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";
const TOKEN: &str = "open-sesame";

mod the_official_sdks_use_all_that_is_served {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_sdk_for_python_uses_all_that_is_served() {
        for revision in [OLD, NEW] {
            tour("sdk.py", revision);
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn version_1_of_the_sdk_for_typescript_uses_all_that_is_served() {
        tour("sdk1.mjs", OLD);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn version_2_of_the_sdk_for_typescript_uses_all_that_is_served() {
        for revision in [OLD, NEW] {
            tour("sdk2.mjs", revision);
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_sdks_are_told_of_a_change() {
        for (client, revision) in CLIENTS_ON_SDKS {
            for is_http in [false, true] {
                let stage = Stage::new(world().folder("skills/tidy"), &["--watch"]);
                let did = stage.run(client, &["skills/tidy/SKILL.md", revision], is_http);
                assert_eq!(told(&did), json!({"changed": true}), "{client} {revision}");
            }
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_sdks_are_turned_away_with_a_wrong_token() {
        let stage = Stage::new(world(), &[]);
        for (client, revision) in CLIENTS_ON_SDKS {
            let mut command = stage.client(client);
            let did = output(command.args(["tour", revision, "http", &stage.url(), "sesame"]));
            let stderr = String::from_utf8_lossy(&did.stderr);
            assert!(!did.status.success() && did.stdout.is_empty(), "{client} {revision}");
            let says = ["401", "the token is wrong", "error response"];
            assert!(says.iter().any(|it| stderr.contains(it)), "{client} {revision}: {stderr}");
        }
    }

    const CLIENTS_ON_SDKS: [(&str, &str); 5] =
        [("sdk.py", OLD), ("sdk.py", NEW), ("sdk1.mjs", OLD), ("sdk2.mjs", OLD), ("sdk2.mjs", NEW)];

    /// Runs a client through all features, over both transports.
    fn tour(client: &str, revision: &str) {
        let stage = Stage::new(world(), &[]);
        for is_http in [false, true] {
            let mut told = told(&stage.run(client, &["tour", revision], is_http));
            for key in ["instructions", "used", "file", "prompt"] {
                let text = told[key].as_str().unwrap();
                assert!(text.contains("[begin ") && text.contains("\n[end "), "{key}: {text}");
                told[key] = unfenced(text).into();
            }
            let found = told["found"].take();
            assert_eq!(
                (&found["skills"][0]["name"], &found["total"]),
                (&"release".into(), &1.into())
            );
            let folder = match is_http {
                true => ".".into(),
                false => stage.world.path("skills/release").display().to_string(),
            };
            let listed = json!(["skill://project/release/SKILL.md"]);
            // Version 2 gives its client the same in both revisions, as the error names the
            // resource.
            let is_new = revision == NEW || client == "sdk2.mjs";
            let no_resource = if is_new { -32602 } else { -32002 };
            let expected = json!({
                "server": "prowess",
                "instructions": "## Skills\n\nWhen one of these skills fits the task, call `use_skill` with its name first and follow its instructions.\n\n- release: Releases a version.\n\n",
                "tools": ["find_skills", "use_skill", "read_skill_file"],
                "found": null,
                "used": format!("# Skill: release\n\nFolder: {folder}\n\nShip $version to $where.\n\nFiles, relative to the folder:\n- icon.png\n- notes.md\n\n`read_skill_file` reads these files.\n"),
                "file": "Notes.\n",
                "wrong": true,
                "no_tool": -32602,
                "prompts": ["release"],
                "prompt": format!("Ship 2 to staging.\n\nFiles of this skill, in `{folder}`:\n- icon.png (asset, 10 bytes)\n- notes.md (reference, 7 bytes)\n`read_skill_file` reads these files.\n"),
                "completed": ["staging"],
                "resources": listed,
                "templates": ["skill://{+path}"],
                "text": "Notes.\n",
                "blob": "iVBORw0KGgoAAA==",
                "no_resource": no_resource,
                "skills": listed,
            });
            assert_eq!(told, expected, "{client} {revision}");
        }
    }
}

mod the_mcp_inspector_finds_no_fault {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_inspector_uses_all_that_is_served() {
        let stage = Stage::new(world(), &["--run"]);
        for (era, is_http) in EACH_WAY {
            let ask = |words: &str| {
                let words: Vec<&str> = words.split(' ').collect();
                let asked = [&["--format", "json", "--method"], &words[..]].concat();
                told(&stage.inspect(era, is_http, &asked))["result"].take()
            };
            let tools = ask("tools/list --strict");
            assert_eq!(tools["tools"].as_array().unwrap().len(), 4);
            let called = ask("tools/call --tool-name find_skills --tool-arg query=release");
            assert_eq!(called["structuredContent"]["skills"][0]["name"], "release");
            let prompt =
                ask("prompts/get --prompt-name release --prompt-args where=staging version=2");
            let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
            assert!(unfenced(text).starts_with("Ship 2 to staging.\n"), "{text}");
            let read = ask("resources/read --uri skill://project/release/icon.png");
            assert_eq!(read["contents"][0]["mimeType"], "image/png");
            let within = ask("resources/directory/read --uri skill://project/release");
            let names = within["resources"].as_array().unwrap().iter().map(|it| &it["name"]);
            assert_eq!(names.collect::<Vec<_>>(), ["SKILL.md", "icon.png", "notes.md"]);
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_inspector_verifies_every_bundled_skill() {
        let stage = Stage::over(World::new(), &[], &[]);
        let bundled = stage.world.run(["list", "--json"]).said();
        let names: Vec<String> =
            verified(&stage, "modern", false).into_iter().map(|it| it.0).collect();
        assert_eq!(names, bundled.names());
        assert!(names.len() > 3, "{names:?}");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_inspector_verifies_awkward_skills() {
        let stage = Stage::new(awkward(), &[]);
        for (era, is_http) in EACH_WAY {
            let skills = verified(&stage, era, is_http);
            let counted: Vec<(&str, usize)> =
                skills.iter().map(|(name, files)| (&**name, files.len())).collect();
            let expected =
                [("binary", 4), ("crlf", 1), ("nested", 3), ("scalars", 1), ("unicode", 5)];
            assert_eq!(counted, expected);
            let strange = "skill://project/unicode/a%20b/%C3%BC/%23%3F%26%2B%25.txt";
            assert!(skills[4].1.iter().any(|it| it == strange), "{skills:?}");
        }
    }

    const EACH_WAY: [(&str, bool); 4] =
        [("legacy", false), ("legacy", true), ("modern", false), ("modern", true)];

    /// Returns the skills that were verified, and their files.
    fn verified(stage: &Stage, era: &str, is_http: bool) -> Vec<(String, Vec<String>)> {
        let asked = ["--quiet", "--method", "skills/list", "--verify", "--require-digests"];
        let did = stage.inspect(era, is_http, &asked);
        let stdout = said(&did);
        let reports = stdout.lines().map(|it| serde_json::from_str::<Json>(it).unwrap());
        let verified = |report: Json| {
            assert_eq!(report["conformance"], json!([]), "{report}");
            assert_eq!(report["frontmatter"], json!([]), "{report}");
            let file = |it: &Json| {
                assert_eq!(it["status"], "verified", "{report}");
                it["uri"].as_str().unwrap().to_owned()
            };
            let files = report["files"].as_array().unwrap().iter().map(file).collect();
            (report["name"].as_str().unwrap().to_owned(), files)
        };
        reports.map(verified).collect()
    }
}

mod the_conformance_suite_finds_no_fault {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_server_keeps_to_every_revision() {
        // The names that the suite asks for, as far as a skill can have them.
        let world = world()
            .document(
                "test_simple_prompt",
                "---\nname: test_simple_prompt\ndescription: Is simple.\n---\nThis is a simple prompt for testing.\n",
            )
            .document(
                "test_prompt_with_arguments",
                "---\nname: test_prompt_with_arguments\ndescription: Has arguments.\narguments: [arg1, arg2]\n---\narg1='$arg1', arg2='$arg2'\n",
            );
        let host = McpHost::new(&world, &[]);
        for revision in ["2025-06-18", OLD, NEW] {
            let all = ["--suite", "all", "--expected-failures", "conformance.yml"];
            let did = conform(&host, &[&all[..], &["--spec-version", revision]].concat());
            let stdout = said(&did);
            for scenario in ["tools-list", "prompts-get-with-args", "resources-list"] {
                assert!(stdout.contains(&format!("✓ {scenario}: ")), "{stdout}");
            }
            assert!(stdout.contains("Baseline check passed"), "{stdout}");
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_server_keeps_to_the_skills_extension() {
        let world = awkward();
        let host = McpHost::new(&world, &[]);
        for scenario in ["directory", "enumeration", "manifest"] {
            let did = conform(&host, &["--scenario", &format!("sep-2640-skills-{scenario}")]);
            let stdout = said(&did);
            assert!(stdout.contains(" 0 failed, 0 warnings"), "{stdout}");
            assert!(!stdout.contains("SKIPPED"), "{stdout}");
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm, pip and a network")]
    fn the_host_keeps_to_the_skills_extension() {
        let world = World::new();
        let script = format!(
            r#"config="$0.toml"
printf 'policy.hosts = ["localhost", "127.0.0.1", "::1"]\n[servers.suite]\nurl = "%s"\n' "$1" > "$config"
case "$MCP_CONFORMANCE_SCENARIO" in
*-verify-*)
    '{0}' servers show --config "$config" suite:pdf-processing &&
        '{0}' servers show --config "$config" suite:pdf-processing references/FORMS.md ;;
*) '{0}' servers --config "$config" ;;
esac
"#,
            program()
        );
        world.write("host.sh", script);
        let client = format!("sh {}", world.path("host.sh").display());
        for scenario in ["no-prefetch", "verify-digest", "verify-size", "verify-frontmatter"] {
            let mut command = suite("client");
            let scenario = format!("sep-2640-client-{scenario}");
            command.args(["--command", &client, "--scenario", &scenario]);
            let did = output(command.env("HOME", world.path("home")));
            // It reports failures of clients on stderr.
            let stderr = String::from_utf8_lossy(&did.stderr);
            assert!(stderr.contains("Passed: 1/1, 0 failed, 0 warnings"), "{stderr}");
        }
    }

    fn conform(host: &McpHost, arguments: &[&str]) -> Output {
        let url = format!("http://127.0.0.1:{}/mcp", host.at.port);
        output(suite("server").args(["--url", &url]).args(arguments))
    }

    fn suite(kind: &str) -> Command {
        let script = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
        let mut command = patient(node());
        command.current_dir(&*CLIENTS).args([script, kind]);
        command
    }
}

/// Returns a skill with arguments, and with files of both kinds.
fn world() -> World {
    World::new()
        .document(
            "release",
            "---\nname: release\ndescription: Releases a version.\narguments: [where, version]\nargument-hint: \"[where: staging|production] <version>\"\n---\nShip $version to $where.\n",
        )
        .file("skills/release/notes.md", "Notes.\n")
        .file("skills/release/icon.png", b"\x89PNG\r\n\x1a\n\0\0")
}

/// Returns skills that are easily rendered wrong.
fn awkward() -> World {
    let bytes: Vec<u8> = (0..70_000_u32).map(|it| (it % 251) as u8).collect();
    World::new()
        .skill("binary", "Has bytes.")
        .file("skills/binary/assets/data.bin", bytes)
        .file("skills/binary/latin.txt", b"\xFF\xFEz")
        .file("skills/binary/nul.txt", "a\0b")
        .document("crlf", "---\r\nname: crlf\r\ndescription: Ends lines.\r\ntext: |\r\n  a\r\n  b\r\n---\r\n\r\n# CRLF\r\n")
        .skill("nested", "Holds another.")
        .skill_in("skills/nested/deep", "inner", "Is within.")
        .file("skills/nested/deep/note.txt", "n")
        .document("scalars", SCALARS)
        .skill("unicode", "Has names.")
        .file("skills/unicode/größe 1%20.txt", "x")
        .file("skills/unicode/日本語.md", "y")
        .file("skills/unicode/a b/ü/#?&+%.txt", "z")
        .file("skills/unicode/empty.txt", "")
}

/// Scalars that YAML parsers disagree about.
const SCALARS: &str = "---
name: scalars
description: 'Dates, yes, no, and 1.10: it''s all here'
version: 1.10
date: 2026-01-01
time: 2026-01-01T10:00:00Z
on: yes
off: no
octal: 0o17
old-octal: 017
hex: 0xFF
sexagesimal: 12:30:45
nothing: ~
empty:
exponent: 1e3
large: 12345678901234567890
list: [yes, no, on, off, y, n, true, null, 1_000]
folded: >
  one
  two
literal: |
  one
   two
emoji: \"\\U0001F600 ünïcödé\"
metadata:
  version: \"1.10\"
  when: \"2026-01-01\"
---

# Scalars
";

/// A server that clients start, and the same over HTTP for holders of the token.
struct Stage {
    world: World,
    /// The command that a client starts.
    command: Vec<String>,
    host: McpHost,
}

impl Stage {
    /// Serves `skills/`.
    fn new(world: World, arguments: &[&str]) -> Self {
        Self::over(world, &["--dir", "skills"], arguments)
    }

    /// Serves the named skills; no name means the bundled skills, which are not served over HTTP.
    fn over(world: World, skills: &[&str], arguments: &[&str]) -> Self {
        let world = world.file("token", TOKEN);
        fs::set_permissions(world.path("token"), fs::Permissions::from_mode(0o600)).unwrap();
        let host = McpHost::new(&world, &[arguments, &["--token-file", "token"]].concat());
        let words = [&[program(), "mcp"], skills, arguments].concat();
        Self { world, command: words.into_iter().map(str::to_owned).collect(), host }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.host.at.port)
    }

    /// Runs a client of `specs/clients/`.
    fn run(&self, client: &str, arguments: &[&str], is_http: bool) -> Output {
        let mut command = self.client(client);
        command.args(arguments);
        match is_http {
            true => command.args(["http", &self.url(), TOKEN]),
            false => command.arg("stdio").args(&self.command),
        };
        output(&mut command)
    }

    fn client(&self, client: &str) -> Command {
        let script = CLIENTS.join(client);
        let mut command = if client.ends_with(".py") { patient(python()) } else { patient(node()) };
        self.stage(command.arg(script).env("SITE", &*SDK));
        command
    }

    /// Runs the Inspector at the command line.
    fn inspect(&self, era: &str, is_http: bool, arguments: &[&str]) -> Output {
        let script = "node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js";
        let mut command = patient(node());
        command.arg(CLIENTS.join(script)).args(["--protocol-era", era]);
        match is_http {
            true => {
                let header = format!("Authorization: Bearer {TOKEN}");
                command.args(["--server-url", &self.url(), "--header", &header])
            }
            false => command.args(&self.command),
        };
        output(self.stage(command.args(arguments)))
    }

    fn stage<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.current_dir(self.world.path("")).env("HOME", self.world.path("home"))
    }
}

/// Returns a command that is killed when it takes far too long.
fn patient(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.arg("120").arg(program);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{error}: {command:?}"))
}

/// Returns the output of a client that succeeded.
fn said(did: &Output) -> String {
    let [stdout, stderr] = [&did.stdout, &did.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(did.status.success() && stderr.is_empty(), "{}: {stderr}{stdout}", did.status);
    stdout.into_owned()
}

fn told(did: &Output) -> Json {
    serde_json::from_str(&said(did)).unwrap()
}

/// The folder of the clients; they are fetched by the first test that needs them.
///
/// The Inspector's window is never opened: its build tools are overridden by old versions, which
/// are small.
pub(crate) static CLIENTS: LazyLock<PathBuf> = LazyLock::new(|| {
    let from = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/clients"));
    let target = Path::new(program()).ancestors().nth(2).unwrap();
    let [folder, making] = ["mcp-clients", "mcp-clients-new"].map(|it| target.join(it));
    let copy = |names: &[&str], to: &Path| {
        for name in names {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    };
    let lock = |folder: &Path| fs::read(folder.join("package-lock.json")).ok();
    if lock(&folder) != lock(from) {
        for folder in [&folder, &making] {
            let _ = fs::remove_dir_all(folder);
        }
        fs::create_dir(&making).unwrap();
        copy(&["package.json", "package-lock.json"], &making);
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&making);
        let output = npm.output().expect("npm fetches the clients: scripts/test installs it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(making, &folder).unwrap();
    }
    let own =
        ["conformance.yml", "oidc.mjs", "person.mjs", "sdk.py", "sdk1.mjs", "sdk2.mjs", "tour.mjs"];
    copy(&own, &folder);
    folder.canonicalize().unwrap()
});

/// Returns a Node that is new enough for all of them.
pub(crate) fn node() -> PathBuf {
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    CLIENTS.join(format!("node_modules/node-linux-{machine}/bin/node"))
}
