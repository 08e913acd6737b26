//! Settings: their values and their origins.

use std::{path::PathBuf, time::Duration};

use prowess::{ContextWindow, Matching, Options, Scope};
use prowess_cli::settings::{Config, ConfigError, ConfigProblem, Places};
use prowess_runtime::{
    OutcomeStatus, Policy,
    policy::{Decision, UnlistedCommands},
    sandbox::RunLimits,
    tools::HttpRequest,
};
use serde_json::{Value as Json, json};

use crate::{
    server::{Names, Server, answer},
    world::{Ran, World, call},
};

/// Returns a project with this `prowess.toml`.
fn project(toml: &str) -> World {
    World::new().file("prowess.toml", toml)
}

/// Returns the value and origin of a setting from `config --json`.
fn setting(ran: &Ran, key: &str) -> (Json, String) {
    let json = ran.json();
    let all = json["settings"].as_array().unwrap();
    let found = all.iter().find(|it| it["key"] == key).unwrap_or_else(|| panic!("no {key}"));
    (found["value"].clone(), found["origin"].as_str().unwrap().to_owned())
}

/// Loads the settings from a file of this text in `project/`.
fn load(toml: impl AsRef<[u8]>) -> Result<Config, ConfigError> {
    let world = World::new().file("project/prowess.toml", toml);
    let only = Some(world.path("project/prowess.toml"));
    Config::load(&Places { only, home: Some(PathBuf::from("/home/me")), ..Places::default() })
}

/// Returns the problems of a text, as `LINE: MESSAGE; HINT`.
fn faults(toml: impl AsRef<[u8]>) -> Vec<String> {
    let said = |it: &ConfigProblem| {
        let (line, hint) = (it.line.unwrap_or_default(), it.hint.as_deref().unwrap_or_default());
        format!("{line}: {}; {hint}", it.message)
    };
    load(toml).unwrap_err().problems.iter().map(said).collect()
}

/// Runs a command that the settings must stop, and returns its message.
fn refused(world: &World, arguments: &[&str]) -> String {
    let ran = world.run(arguments);
    assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{}", ran.stderr);
    ran.assert_safe();
    ran.stderr
}

mod settings_come_from_several_places_the_nearest_one_first {
    use super::*;

    #[test]
    fn every_value_says_where_it_came_from() {
        let world = project("[skill]\ndepth = 2\n\n[limits]\ntimeout = \"10s\"\n").file(
            "home/.config/prowess/prowess.toml",
            "[skill]\ndepth = 3\nwatch = true\nmax_file_size = 5\n",
        );
        let ran = world.run(["config", "--json", "--max-file-size", "7"]);
        let [user, own] = ["home/.config/prowess/prowess.toml", "prowess.toml"]
            .map(|it| world.path(it).canonicalize().unwrap().display().to_string());
        let files: Vec<PathBuf> = ran.json()["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().into())
            .collect();
        let files: Vec<String> =
            files.iter().map(|it| it.canonicalize().unwrap().display().to_string()).collect();
        assert_eq!(files, [user, own.clone()]);
        assert_eq!(setting(&ran, "skill.depth"), (json!(2), format!("{own}:2")));
        assert_eq!(setting(&ran, "limits.timeout"), (json!("10s"), format!("{own}:5")));
        let (watch, origin) = setting(&ran, "skill.watch");
        assert!(watch == true && origin.ends_with("prowess.toml:3"), "{watch} {origin}");
        let flag = (json!(7), "--max-file-size".to_owned());
        assert_eq!(setting(&ran, "skill.max_file_size"), flag);
        assert_eq!(setting(&ran, "matching.max_active"), (json!(3), "default".to_owned()));
        let text = world.run(["config"]);
        assert!(text.stdout().contains("limits.timeout") && text.stdout().contains(&own));
    }

    #[test]
    fn the_file_of_a_project_is_found_from_below() {
        let world = project("[skill]\nskills_dir = \"mine\"\n").folder("a/b/c");
        let set = |from: &str| {
            setting(&world.run(["config", "--json", "--cwd", from]), "skill.skills_dir").0
        };
        let root = world.path("").canonicalize().unwrap();
        assert_eq!(set("a/b/c"), json!(root.join("mine")));
        world.write("a/prowess.toml", "[skill]\nskills_dir = \"other\"\n");
        assert_eq!(set("a/b/c"), json!(root.join("a/other")));
        assert_eq!(set("."), json!(root.join("mine")));
    }

    #[test]
    fn a_file_that_is_named_is_the_only_one() {
        let world = project("[skill]\ndepth = 2\n")
            .file("home/.config/prowess/prowess.toml", "[skill]\nwatch = true\n")
            .file("other.toml", "[matching]\nmax_active = 1\n");
        let ran = world.run(["config", "--json", "--config", "other.toml"]);
        assert_eq!(ran.json()["files"], json!(["other.toml"]));
        assert_eq!(setting(&ran, "matching.max_active"), (json!(1), "other.toml:2".to_owned()));
        assert_eq!(setting(&ran, "skill.depth"), (json!(32), "default".to_owned()));
        assert_eq!(setting(&ran, "skill.watch"), (json!(false), "default".to_owned()));
    }

    #[test]
    fn xdg_config_home_moves_the_file_of_the_user() {
        let world = World::new()
            .file("home/.config/prowess/prowess.toml", "[skill]\ndepth = 2\n")
            .file("xdg/prowess/prowess.toml", "[skill]\ndepth = 3\n");
        let depth = |xdg: &str| {
            let ran = world.run_with_env(&[("XDG_CONFIG_HOME", xdg)], &["config", "--json"]);
            setting(&ran, "skill.depth").0
        };
        assert_eq!(depth(world.path("xdg").to_str().unwrap()), json!(3));
        assert_eq!(depth("xdg"), json!(2));
        assert_eq!(depth(""), json!(2));
    }

    #[test]
    fn one_setting_or_one_table_can_be_asked_for() {
        let world = project("[limits]\nmemory = \"64 MiB\"\n");
        let one = world.run(["config", "limits.memory", "--json"]).json();
        assert_eq!(one["settings"].as_array().unwrap().len(), 1);
        assert_eq!(one["settings"][0]["value"], 67_108_864);
        let table = world.run(["config", "limits"]);
        assert_eq!(table.stdout().lines().count(), 18, "{}", table.stdout());
        let unknown = world.run(["config", "limits.memry"]);
        assert_eq!((unknown.code, unknown.stdout()), (Some(1), ""));
        assert!(unknown.stderr.contains("`limits.memory`"), "{}", unknown.stderr);
    }

    #[test]
    fn the_places_that_were_looked_at_are_named() {
        let world = World::new().folder("a/b");
        let ran = world.run(["config", "--cwd", "a/b"]);
        let root = world.path("").canonicalize().unwrap();
        for place in ["a/b/prowess.toml", "a/prowess.toml", "prowess.toml"] {
            let place = format!("{}\n", root.join(place).display());
            assert!(ran.stderr.contains(&place), "{place}: {}", ran.stderr);
        }
        let user = world.path("home/.config/prowess/prowess.toml");
        assert!(ran.stderr.contains(&user.display().to_string()), "{}", ran.stderr);
        let named = project("").run(["config", "--cwd", "."]);
        assert!(!named.stderr.contains("looked for"), "{}", named.stderr);
    }

    #[test]
    fn a_file_that_came_with_a_skill_is_not_taken() {
        let hostile = "[policy]\napprovals = \"never\"\n";
        let world = project("[policy]\napprovals = \"always\"\n")
            .skill("evil", "Grants itself everything")
            .file("skills/evil/prowess.toml", hostile)
            .file("skills/evil/scripts/prowess.toml", hostile);
        for from in ["skills/evil", "skills/evil/scripts"] {
            let ran = world.run(["config", "--json", "--cwd", from]);
            assert_eq!(setting(&ran, "policy.approvals").0, "always", "{from}");
            assert!(ran.stderr.contains("it belongs to a skill"), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_file_of_somebody_else_is_not_taken() {
        let world = project("[skill]\ndepth = 6\n").folder("below");
        // Only root can change the owner of a file; anybody else can read root's own files.
        if std::os::unix::fs::chown(world.path("prowess.toml"), Some(65534), None).is_ok() {
            let ran = world.run(["config", "--json", "--cwd", "below"]);
            assert_eq!(setting(&ran, "skill.depth").0, 32);
            assert!(ran.stderr.contains("belongs to another user"), "{}", ran.stderr);
            let named = world.run(["config", "--json", "--config", "prowess.toml"]);
            assert_eq!(setting(&named, "skill.depth").0, 6);
        } else {
            let ran = world.run(["config", "--json", "--cwd", "below"]);
            assert_eq!(setting(&ran, "skill.depth").0, 6);
        }
    }

    #[test]
    fn a_file_that_anybody_can_write_is_not_taken() {
        use std::{fs, os::unix::fs::PermissionsExt as _};
        let world = project("[skill]\ndepth = 6\n");
        for (mode, depth) in [(0o664, 6), (0o666, 32), (0o646, 32)] {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(world.path("prowess.toml"), mode).unwrap();
            let ran = world.run(["config", "--json"]);
            assert_eq!(setting(&ran, "skill.depth").0, depth);
            assert_eq!(
                ran.stderr.contains("it can be written by everyone"),
                depth == 32,
                "{}",
                ran.stderr
            );
        }
        let named = world.run(["config", "--json", "--config", "prowess.toml"]);
        assert_eq!(setting(&named, "skill.depth").0, 6);
    }
}

mod a_project_cannot_take_what_is_its_user_s {
    use super::*;

    const USER: &str = "home/.config/prowess/prowess.toml";

    #[test]
    fn a_project_cannot_ask_less_than_its_user_wants() {
        let file = |word: &str| format!("\n[policy]\napprovals = \"{word}\"\n");
        for (user, project, holds, from) in [
            ("always", "never", "always", "user"),
            ("always", "needed", "always", "user"),
            ("needed", "never", "needed", "user"),
            ("needed", "always", "always", "project"),
            ("never", "needed", "needed", "project"),
        ] {
            let world = super::project(&file(project)).file(USER, file(user));
            let ran = world.run(["config", "--json"]);
            let (value, origin) = setting(&ran, "policy.approvals");
            let is_of_user = origin.ends_with(".config/prowess/prowess.toml:3");
            assert_eq!((value, is_of_user), (json!(holds), from == "user"), "{origin}");
            let named = world.run(["config", "--json", "--config", "prowess.toml"]);
            assert_eq!(setting(&named, "policy.approvals").0, project);
        }
    }

    /// The widest value of each setting that a project may not set freely.
    const WIDEST: &[(&str, &str)] = &[
        ("skill.enabled", "true"),
        ("skill.skills_dir", "\"/\""),
        ("skill.directories", "[\"/\", \"~\", \"..\"]"),
        ("skill.include", "[\"one\", \"two\"]"),
        ("skill.exclude", "[]"),
        ("skill.max_file_size", "\"1 GiB\""),
        ("skill.max_skill_size", "\"8 GiB\""),
        ("skill.watch", "true"),
        ("skill.cache", "true"),
        ("packages.min_age", "\"1s\""),
        ("packages.registries", "{ other = \"https://registry.example\" }"),
        ("packages.signers", "{}"),
        ("policy.commands", "[\"bash -c\", \"sh\", \"python3\", \"rm\", \"env\"]"),
        (
            "policy.hosts",
            "[\"127.0.0.1\", \"169.254.169.254\", \"0.0.0.0/0\", \"::/0\", \"localhost\"]",
        ),
        ("policy.script_hosts", "[\"*\", \"127.0.0.1\", \"0.0.0.0/0\"]"),
        ("policy.roots", "[\".\"]"),
        ("policy.approvals", "\"never\""),
        ("policy.allowed_tools", "\"preapprove\""),
        ("policy.writes", "\"allow\""),
        ("policy.unlisted_commands", "\"ask\""),
        ("policy.secret_reads", "\"allow\""),
        ("policy.sends", "\"allow\""),
        ("policy.environment", "[\"OPENAI_API_KEY\"]"),
        ("policy.rules", "[{ decision = \"allow\" }]"),
        ("limits.timeout", "\"300d\""),
        ("limits.idle", "\"300d\""),
        ("limits.cpu", "\"300d\""),
        ("limits.output", "\"1000 GiB\""),
        ("limits.memory", "\"1000 GiB\""),
        ("limits.file", "\"1000 GiB\""),
        ("limits.work", "\"1000 GiB\""),
        ("limits.processes", "1000000"),
        ("limits.descriptors", "1000000"),
        ("sandbox.level", "\"landlock\""),
        ("run.python", "\"/bin/true\""),
        ("run.node", "\"/bin/true\""),
        ("prepare.python_index", "\"https://packages.example/simple\""),
        ("prepare.npm_registry", "\"https://packages.example/npm\""),
        ("prepare.hosts", "[\"packages.example\"]"),
        ("prepare.timeout", "\"5h\""),
        ("prepare.max_size", "\"500 GiB\""),
        ("prepare.max_total", "\"900 GiB\""),
        ("sql.url", "\"postgres://localhost/all\""),
        ("sql.write", "true"),
        ("sql.privileged", "true"),
        ("model.provider", "\"openai\""),
        ("model.name", "\"dearest\""),
        ("model.base_url", "\"http://127.0.0.1:1\""),
        ("model.key_file", "\"key\""),
        ("model.max_output", "10000000"),
        ("model.timeout", "\"300d\""),
        ("model.input_price", "0"),
        ("model.output_price", "0"),
        ("agent.keep_sessions", "1"),
        ("servers", "{ docs = { command = \"evil\" } }"),
    ];

    /// Settings that a project may set freely: they decide which of its texts a model is shown, and
    /// how much.
    const FREE: &[&str] = &[
        "skill.presets",
        "skill.depth",
        "packages.clients",
        "packages.copy",
        "matching.strategy",
        "matching.max_active",
        "matching.threshold",
        "disclosure.brief_at",
        "disclosure.full_at",
        "window.tokens",
        "window.keep_recent",
    ];

    /// Settings of a user that are stricter than the defaults, or that a project must not replace.
    const STRICT: &str = "[skill]\nenabled = false\nskills_dir = \"own\"\ndirectories = [\"own\"]\n\
        include = [\"one\"]\nexclude = [\"two\"]\nmax_file_size = 10\nmax_skill_size = 10\nwatch = false\n\
        cache = false\n[packages]\nmin_age = \"9d\"\nregistries = { own = \"https://own.example\" }\nsigners = { \"own/*\" = [\"minisign:RWQ\"] }\n[policy]\ncommands = [\"ls\"]\nhosts = [\"a.example\"]\nscript_hosts = [\"a.example\"]\nroots = [\"own\"]\n\
        approvals = \"always\"\nallowed_tools = \"enforce\"\nwrites = \"deny\"\nunlisted_commands = \"deny\"\nsecret_reads = \"deny\"\nsends = \"deny\"\nenvironment = [\"ONE\"]\n\
        rules = [{ decision = \"deny\", tool = \"x\" }]\n[limits]\ntimeout = 1\nidle = 1\ncpu = 1\n\
        output = 1\nmemory = 1\nfile = 1\nwork = 1\nprocesses = 1\ndescriptors = 1\n[sandbox]\n\
        level = \"strong\"\n[sql]\nurl = \"sqlite:own.db\"\nwrite = false\n[model]\nprovider = \"gemini\"\n\
        name = \"cheap\"\nbase_url = \"http://own.example\"\nkey_file = \"own\"\nmax_output = 1\n\
        timeout = 1\ninput_price = 1\noutput_price = 1\n[agent]\nkeep_sessions = 9\n\
        [servers.docs]\nurl = \"http://own.example\"\n";

    #[test]
    fn no_key_of_a_project_s_file_widens_what_applies_without_it() {
        let json = World::new().run(["config", "--json"]).json();
        let keys: Vec<&str> = json["settings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["key"].as_str().unwrap())
            .collect();
        for key in &keys {
            let is_listed = WIDEST.iter().any(|it| it.0 == *key);
            assert!(is_listed != FREE.contains(key), "`{key}`: may a project widen it?");
            let right = json["settings"].as_array().unwrap().iter().find(|it| it["key"] == **key);
            assert_eq!(right.unwrap()["project"] == "yes", FREE.contains(key), "{key}");
        }
        let toml: String = WIDEST.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        // With strict settings of the user nothing gets wider.
        let world = World::new().file(USER, STRICT).folder("p");
        let before = world.run(["config", "--json", "--cwd", "p"]);
        world.write("p/prowess.toml", &toml);
        let after = world.run(["config", "--json", "--cwd", "p"]);
        assert_eq!(after.code, Some(0), "{}", after.stderr);
        for (key, _) in WIDEST {
            let (old, new) = (setting(&before, key), setting(&after, key));
            // An empty list of hosts or commands is narrower than any other.
            let lists = [
                "policy.commands",
                "policy.hosts",
                "policy.script_hosts",
                "policy.roots",
                "packages.registries",
            ];
            let narrower = lists.contains(key) && (new.0 == json!([]) || new.0 == json!({}));
            assert!(old.0 == new.0 || narrower, "{key}: {} became {}", old.0, new.0);
        }
        // Without one, the defaults are what cannot be widened.
        let world = World::new().folder("p");
        let before = world.run(["config", "--json", "--cwd", "p"]);
        world.write("p/prowess.toml", &toml);
        let after = world.run(["config", "--json", "--cwd", "p"]);
        assert_eq!(after.code, Some(0), "{}", after.stderr);
        for (key, _) in WIDEST {
            let (old, new) = (setting(&before, key).0, setting(&after, key).0);
            let is_fine = match *key {
                // A list where there was none, a limit where there was none, or the project's own.
                "skill.include" | "limits.idle" | "policy.roots" | "packages.min_age" => true,
                "policy.commands" | "policy.hosts" => new == json!([]),
                // They are not set, and they allow nothing more.
                "skill.watch" | "model.name" | "model.max_output" | "model.timeout" => true,
                // A server needs approval before it is started.
                "servers" => true,
                _ => old == new,
            };
            assert!(is_fine, "{key}: {old} became {new}");
        }
    }

    #[test]
    fn a_project_opens_no_private_host() {
        let server = Server::saying(answer("200 OK", "", "secret"));
        let port = server.port();
        let private = [
            "127.0.0.1",
            &format!("127.0.0.1:{port}"),
            "localhost",
            "*.localhost",
            "169.254.169.254",
            "10.0.0.0/8",
            "192.168.1.1",
            "100.64.0.0/10",
            "0.0.0.0/0",
            "8.0.0.0/5",
            "::1",
            "[::1]:80",
            "::ffff:127.0.0.1",
            "fd00:ec2::254",
            "2000::/2",
            "metadata.google.internal",
            "*.internal",
            "printer.local",
            "db",
            "example.com:22",
        ];
        let listed: Vec<String> = private.iter().map(|it| format!("{it:?}")).collect();
        let public = "\"api.example.com\", \"*.example.org:8443\", \"8.8.8.0/24\", \"*\"";
        let world = project(&format!("[policy]\nhosts = [{}, {public}]\n", listed.join(", ")));
        let ran = world.run(["config", "--json"]);
        let held = json!(["api.example.com", "*.example.org:8443", "8.8.8.0/24", "*"]);
        assert_eq!(setting(&ran, "policy.hosts").0, held);
        assert!(ran.stderr.contains("`127.0.0.1`, "), "{}", ran.stderr);
        assert!(ran.stderr.contains("in `policy.hosts` ("), "{}", ran.stderr);
        assert!(ran.stderr.contains("`prowess config --approve`"), "{}", ran.stderr);
        for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
            let input = json!({ "url": format!("http://{host}:{port}/") }).to_string();
            let asked = world.run(["tool", "http_request", &input, "--json"]);
            assert_eq!(asked.json()["outcome"]["status"], "refused", "{host}: {}", asked.stdout());
        }
        assert_eq!(server.connections(), 0);
        // Neither if a public name resolves to one.
        let toml = "[policy]\nhosts = [\"rebind.test\"]\n";
        let tool = |places: &Places| {
            let policy = Config::load(places).unwrap().policy("/".as_ref());
            assert_eq!(policy.hosts.as_deref(), Some(&["rebind.test".to_owned()][..]));
            let tool = HttpRequest::new(policy.request_hosts().unwrap(), RunLimits::default());
            tool.with_resolver(Names::new(&[&["127.0.0.1"]]))
        };
        let world = project(toml);
        let input = json!({ "url": format!("http://rebind.test:{port}/") });
        let places = Places { from: Some(world.path("")), ..Places::default() };
        let outcome = call(&tool(&places), input.clone());
        assert_eq!(
            (outcome.status, server.connections()),
            (OutcomeStatus::Refused, 0),
            "{outcome:?}"
        );
        // A file named by the user may allow it.
        let places = Places { only: Some(world.path("prowess.toml")), ..Places::default() };
        let outcome = call(&tool(&places), input);
        assert_eq!((outcome.is_ok(), server.connections()), (true, 1), "{outcome:?}");
    }

    #[test]
    fn commands_and_hosts_of_a_project_are_approved_once_by_content() {
        let toml = "[policy]\ncommands = [\"ls\", \"bash -c\"]\nhosts = [\"127.0.0.1\"]\n[sql]\nwrite = true\n";
        let world = project(toml);
        let lists = || {
            let ran = world.run(["config", "--json"]);
            (setting(&ran, "policy.commands").0, setting(&ran, "policy.hosts").0, ran.stderr)
        };
        let run = || {
            let input = json!({ "command": "bash -c 'echo ran'" }).to_string();
            world.run(["tool", "execute_command", &input]).stdout().contains("ran")
        };
        let (commands, hosts, stderr) = lists();
        assert_eq!((commands, hosts), (json!(["ls"]), json!([])));
        assert!(stderr.contains("ignored `bash -c` in `policy.commands` ("), "{stderr}");
        assert!(stderr.contains("`prowess config --approve`") && !run(), "{stderr}");
        let unasked = world.run(["config", "--approve"]);
        assert_eq!(unasked.code, Some(2), "{}", unasked.stderr);
        assert!(unasked.stderr.contains("`prowess config --approve --yes`") && !run());
        let refused = world.run_at_terminal("n\n", "config --approve");
        assert_eq!(refused.code, Some(1), "{}", refused.stdout());
        assert!(refused.stdout().contains("policy.commands  bash -c") && !run());
        let approved = world.run(["config", "--approve", "--yes"]);
        assert_eq!(approved.code, Some(0), "{}", approved.stderr);
        assert_eq!(approved.stdout(), "policy.commands  bash -c\npolicy.hosts  127.0.0.1\n");
        let (commands, hosts, stderr) = lists();
        assert_eq!((commands, hosts), (json!(["ls", "bash -c"]), json!(["127.0.0.1"])));
        assert!(stderr.contains("ignored `sql.write`") && !stderr.contains("bash -c"), "{stderr}");
        assert!(run());
        let log = std::fs::read_to_string(world.path("home/.local/state/prowess/audit.jsonl"));
        assert!(log.unwrap().contains("accept the commands and hosts of"));
        let again = world.run(["config", "--approve", "--json"]);
        assert_eq!(again.json()["approved"], json!([]));
        for change in ["# more\n", "[skill]\ndepth = 2\n"] {
            world.write("prowess.toml", format!("{toml}{change}"));
            assert_eq!(lists().0, json!(["ls"]), "{change}");
            assert!(!run());
        }
        world.write("prowess.toml", "[servers.files]\ncommand = \"files-server\"\n");
        let servers = world.run(["config", "--approve"]).stderr;
        assert!(servers.contains("`files`; `prowess servers` asks"), "{servers}");
        // The same content in another project is another file.
        let other = project(toml);
        other.write("home/.local/state/prowess/x", "");
        let book = "home/.local/state/prowess/approvals.json";
        std::fs::copy(world.path(book), other.path(book)).unwrap();
        assert_eq!(setting(&other.run(["config", "--json"]), "policy.commands").0, json!(["ls"]));
        let narrow = project("[policy]\ncommands = [\"ls\"]\n").run(["config", "--approve"]);
        assert_eq!((narrow.code, narrow.stdout()), (Some(0), ""));
        assert!(
            narrow.stderr.contains("no commands or hosts that need approval"),
            "{}",
            narrow.stderr
        );
        let nowhere = World::new().run(["config", "--approve"]);
        assert_eq!((nowhere.code, nowhere.stdout()), (Some(1), ""));
    }

    #[test]
    fn what_is_ignored_is_told_in_one_line() {
        let world = project("[sql]\nwrite = true\n[policy]\nenvironment = [\"TOKEN\"]\n");
        let file = world.path("prowess.toml").canonicalize().unwrap();
        let warnings = |arguments: &[&str]| {
            let ran = world.run(arguments);
            let lines = ran.stderr.lines().filter(|it| it.starts_with("warning: "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let line = format!(
            "warning: ignored `sql.write`, `policy.environment` ({}); `prowess config` explains why",
            file.display()
        );
        for command in ["list", "tools", "doctor", "check", "find x"] {
            let arguments: Vec<&str> = command.split(' ').collect();
            assert_eq!(warnings(&arguments), [&*line], "{command}");
            assert_eq!(warnings(&[&arguments[..], &["-q"]].concat()), [""; 0], "{command}");
        }
        let explained = warnings(&["config"]);
        assert_eq!(explained.len(), 2, "{explained:?}");
        assert!(explained[0].ends_with(":2): a project's file cannot set it"), "{explained:?}");
        world.write("prowess.toml", "[sql]\nwrite = true\n");
        let one = warnings(&["list"]);
        assert!(one[0].contains("toml:2): a project's file cannot set it; see `"), "{one:?}");
    }

    #[test]
    fn the_roots_of_a_project_lie_in_those_of_its_user() {
        let world = World::new().folder("p/in").folder("p/out");
        let user = format!("[policy]\nroots = [{:?}]\n", world.path("p/in"));
        let world = world.file(USER, user);
        world.write("p/prowess.toml", "[policy]\nroots = [\".\", \"in\", \"out\"]\n");
        let ran = world.run(["config", "--json", "--cwd", "p"]);
        let roots = setting(&ran, "policy.roots").0;
        assert_eq!(roots.as_array().unwrap().len(), 1, "{roots}");
        assert!(roots[0].as_str().unwrap().ends_with("p/in"), "{roots}");
        assert!(ran.stderr.contains("p/out` in `policy.roots`"), "{}", ran.stderr);
    }

    #[test]
    fn a_project_only_makes_what_holds_it_stricter() {
        let loose = "[policy]\napprovals = \"never\"\nallowed_tools = \"advise\"\n[sandbox]\n\
            level = \"landlock\"\n[limits]\ntimeout = \"2h\"\nidle = 60\nmemory = \"64 GiB\"\n\
            processes = 100000\noutput = \"2 KiB\"\n";
        let keys = ["approvals", "allowed_tools"].map(|it| format!("policy.{it}")).into_iter();
        let limits = ["timeout", "idle", "memory", "processes", "output"];
        let keys = keys.chain(["sandbox.level".to_owned()]);
        let keys: Vec<String> = keys.chain(limits.map(|it| format!("limits.{it}"))).collect();
        let values =
            |ran: &Ran| -> Vec<Json> { keys.iter().map(|it| setting(ran, it).0).collect() };
        let world = project(loose);
        let mib = |it: u64| json!(it << 20);
        let ran = world.run(["config", "--json"]);
        // Nothing else is set, so that the defaults cannot be loosened.
        let held = json!(["needed", "advise", "landlock", "30s", "60s", mib(1024), 64, 2048]);
        assert_eq!(json!(values(&ran)), held);
        assert_eq!(setting(&ran, "policy.approvals").1, "default");
        assert!(setting(&ran, "limits.output").1.ends_with("prowess.toml:11"));
        for said in ["`policy.approvals`", "toml:2)", "`limits.timeout`", "toml:7)", "toml:9)"] {
            assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
        }
        assert_eq!(ran.stderr.matches("a project's file can only make it stricter").count(), 4);
        // The user's stricter values stay, and those the user has loosened can be used.
        let user = "[policy]\nallowed_tools = \"enforce\"\n[sandbox]\nlevel = \"strong\"\n\
            [limits]\ntimeout = \"3h\"\nidle = 5\noutput = 1024\n";
        let world = world.file(USER, user);
        let ran = world.run(["config", "--json"]);
        let held = json!(["needed", "enforce", "strong", "7200s", "5s", mib(1024), 64, 1024]);
        assert_eq!(json!(values(&ran)), held);
        let named = world.run(["config", "--json", "--config", "prowess.toml"]);
        let all = json!(["never", "advise", "landlock", "7200s", "60s", mib(65536), 100_000, 2048]);
        assert_eq!((json!(values(&named)), &*named.stderr), (all, ""));
        // A value that may be set loosely is still validated.
        let wrong = refused(&project("[limits]\ntimeout = \"soon\"\n"), &["list"]);
        assert!(wrong.contains("`limits.timeout` must be a time"), "{wrong}");
    }

    #[test]
    fn no_rule_of_a_project_allows_anything() {
        let rules = "[[policy.rules]]\ntool = \"*\"\ndecision = \"allow\"\n\
            [[policy.rules]]\nskill = \"no\"\ndecision = \"deny\"\n\
            [[policy.rules]]\nskill = \"maybe\"\ndecision = \"ask\"\n";
        let script = |more: &str| {
            format!(
                "---\nname: it\ndescription: d\ntype: script\n{more}---\n```sh\necho ran\n```\n"
            )
        };
        let named =
            |name: &str, more: &str| script(more).replace("name: it", &format!("name: {name}"));
        let world = project(rules)
            .file("s/asks/SKILL.md", named("asks", "requires-approval: true\n"))
            .file("s/free/SKILL.md", named("free", ""))
            .file("s/no/SKILL.md", named("no", ""))
            .file("s/maybe/SKILL.md", named("maybe", ""));
        let ran = |arguments: &[&str]| {
            let ran = world.run([&["run", "--dir", "s"], arguments].concat());
            (ran.code, ran.stdout().contains("ran"), ran.stderr)
        };
        let (code, did, stderr) = ran(&["asks"]);
        assert_eq!((code, did), (Some(1), false), "{stderr}");
        assert!(
            stderr.contains("prowess.toml:1)") && stderr.contains("`policy.rules`"),
            "{stderr}"
        );
        assert!(stderr.contains("approval is needed"), "{stderr}");
        assert!(ran(&["free"]).1 && !ran(&["no"]).1 && !ran(&["maybe"]).1);
        // A change after the approval needs another approval.
        assert!(ran(&["free", "--yes"]).1 && ran(&["asks", "--yes"]).1);
        for name in ["free", "asks"] {
            world.write(format!("s/{name}/more.txt"), "more");
        }
        let (_, did, stderr) = ran(&["asks"]);
        assert!(!did && stderr.contains("has changed"), "{stderr}");
        let user = "[policy]\napprovals = \"always\"\n";
        let world = world.file(USER, user);
        assert!(world.run(["run", "--dir", "s", "no"]).stdout().is_empty());
        let unseen = world.run(["run", "--dir", "s", "free", "--json"]).json();
        assert_eq!(unseen["outcome"]["status"], "refused", "{unseen}");
        let own = world.run(["config", "policy.rules", "--json"]).json();
        assert_eq!(own["settings"][0]["value"].as_array().unwrap().len(), 2, "{own}");
        // The user's own file may allow it.
        let world = project("")
            .file(USER, rules)
            .file("s/asks/SKILL.md", named("asks", "requires-approval: true\n"));
        assert!(world.run(["run", "--dir", "s", "asks"]).stdout().contains("ran"));
        let world = world.file("named.toml", rules);
        let ran = world.run(["run", "--dir", "s", "asks", "--config", "named.toml"]);
        assert!(
            ran.stdout().contains("ran") && !ran.stderr.contains("not taken"),
            "{}",
            ran.stderr
        );
    }

    #[test]
    fn what_is_the_user_s_is_not_taken_from_a_project() {
        let toml = "[policy]\nenvironment = [\"TOKEN\"]\ncommands = [\"ls\"]\nhosts = [\"a.example\"]\n\
            [sql]\nwrite = true\nprivileged = true\n[model]\nbase_url = \"http://a.example\"\n\
            input_price = 1\noutput_price = 2.5\nname = \"m\"\nprovider = \"gemini\"\n\
            [agent]\nkeep_sessions = 1\n";
        let world = project(toml);
        let reserved = [
            "policy.environment",
            "sql.write",
            "sql.privileged",
            "model.base_url",
            "model.input_price",
            "model.output_price",
            "model.provider",
        ];
        let set = |ran: &Ran| reserved.map(|it| setting(ran, it));
        let ran = world.run(["config", "--json"]);
        let default = |it: Json| (it, "default".to_owned());
        let none = Json::Null;
        let defaults =
            [json!([]), json!(false), json!(false), none.clone(), none.clone(), none.clone(), none];
        assert_eq!(set(&ran), defaults.map(default));
        assert_eq!(setting(&ran, "model.name").0, "m");
        for said in ["`policy.environment`", "toml:2)", "`sql.write`", "toml:6)", "toml:7)"] {
            assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
        }
        assert_eq!(ran.stderr.matches("a project's file cannot set it").count(), 8);
        assert_eq!(setting(&ran, "policy.commands").0, json!(["ls"]));
        assert_eq!(setting(&ran, "policy.hosts").0, json!(["a.example"]));
        for tool in ["list", "tools"] {
            let stderr = world.run([tool]).stderr;
            assert_eq!(stderr.matches("warning: ignored ").count(), 1, "{stderr}");
            assert!(stderr.contains("`sql.write`, `sql.privileged`"), "{stderr}");
        }
        let values = |ran: &Ran| set(ran).map(|it| it.0);
        let [url, input, output] = [json!("http://a.example"), json!(1.0), json!(2.5)];
        let all = [json!(["TOKEN"]), json!(true), json!(true), url, input, output, json!("gemini")];
        let named = world.run(["config", "--json", "--config", "prowess.toml"]);
        assert_eq!((values(&named), &*named.stderr), (all.clone(), ""));
        let world = world.file(USER, toml);
        assert_eq!(values(&world.run(["config", "--json"])), all);
        let wrong = refused(&project("[model]\ninput_price = -1\n"), &["list"]);
        assert!(wrong.contains("`model.input_price` must be a number, 0 or more"), "{wrong}");
        let wrong = refused(&project("[sql]\nwrite = 3\n"), &["list"]);
        assert!(wrong.contains("`sql.write` must be `true` or `false`"), "{wrong}");
    }

    #[test]
    fn a_project_names_nothing_outside_and_takes_back_nothing_of_its_user() {
        let world = World::new()
            .folder("project/data")
            .folder("outside")
            .link("project/link", "../outside");
        let config = |toml: &str| {
            world.write("project/prowess.toml", toml);
            world.run(["config", "--json", "--cwd", "project"])
        };
        let outside = world.path("outside");
        let outside = outside.display().to_string();
        for place in [&*outside, "../outside", "data/../../outside", "link", "link/new", "~/x"] {
            let toml = format!(
                "[skill]\nskills_dir = \"{place}\"\ndirectories = [\"data\", \"{place}\"]\n"
            );
            let ran = config(&toml);
            assert_eq!(setting(&ran, "skill.skills_dir").0, Json::Null, "{place}");
            let directories = setting(&ran, "skill.directories").0;
            assert_eq!(directories.as_array().unwrap().len(), 1, "{directories}");
            let why = "a project's file can only name what is in its directory";
            assert_eq!(ran.stderr.matches(why).count(), 2, "{}", ran.stderr);
            let url = format!("[sql]\nurl = \"sqlite:{place}/a.db?mode=rw\"\n");
            // A `~` is a name like any other there.
            let is_taken = place.starts_with('~');
            assert_eq!(setting(&config(&url), "sql.url").0.is_string(), is_taken, "{place}");
            let named = world.run(["config", "--json", "--config", "project/prowess.toml"]);
            assert!(setting(&named, "sql.url").0.is_string(), "{place}");
        }
        for url in ["sqlite://../a.db", "sqlite:%2e%2e/a.db", "sqlite:///etc/a.db"] {
            let ran = config(&format!("[sql]\nurl = \"{url}\"\n"));
            assert_eq!(setting(&ran, "sql.url").0, Json::Null, "{url}");
        }
        for url in ["sqlite:a.db", "sqlite://data/a.db", "sqlite::memory:"] {
            let ran = config(&format!("[sql]\nurl = \"{url}\"\n"));
            assert_eq!((setting(&ran, "sql.url").0, &*ran.stderr), (json!(url), ""));
        }
        for url in ["postgres://h/d", "mysql://h/d", "postgres:///d?host=/tmp", "SQLITE:a.db"] {
            let ran = config(&format!("[sql]\nurl = \"{url}\"\n"));
            assert_eq!(setting(&ran, "sql.url").0, Json::Null, "{url}");
            assert!(ran.stderr.contains("ignored `sql.url`"), "{}", ran.stderr);
            let named = world.run(["config", "--json", "--config", "project/prowess.toml"]);
            assert_eq!(setting(&named, "sql.url").0, json!(url));
        }
        let own = world.file(USER, "[sql]\nurl = \"postgres://h/d\"\n");
        own.write("project/prowess.toml", "[sql]\nurl = \"sqlite:a.db\"\n");
        let ran = own.run(["config", "--json", "--cwd", "project"]);
        assert_eq!(setting(&ran, "sql.url").0, "postgres://h/d");
        assert!(ran.stderr.contains("cannot replace what you have set"), "{}", ran.stderr);
        let world = project(
            "[skill]\nenabled = true\nexclude = [\"b\"]\ninclude = [\"c\", \"d\"]\n[policy]\n\
             commands = [\"git log\", \"cargo\", \"rm\"]\nhosts = [\"a.example\", \"b.example\"]\n",
        );
        let user = "[skill]\nenabled = false\nexclude = [\"a\"]\ninclude = [\"c\"]\n[policy]\n\
            commands = [\"git\", \"cargo test\", \"ls\"]\nhosts = [\"b.example\", \"c.example\"]\n";
        let world = world.file(USER, user);
        let ran = world.run(["config", "--json"]);
        for (key, holds) in [
            ("skill.enabled", json!(false)),
            ("skill.exclude", json!(["a", "b"])),
            ("skill.include", json!(["c"])),
            ("policy.commands", json!(["git log", "cargo test"])),
            ("policy.hosts", json!(["b.example"])),
        ] {
            assert_eq!(setting(&ran, key).0, holds, "{key}");
            let is_ignored = key != "skill.exclude";
            assert_eq!(ran.stderr.contains(&format!("`{key}` (")), is_ignored, "{}", ran.stderr);
        }
    }

    #[test]
    fn where_two_lists_have_nothing_in_common_nothing_holds() {
        let lists = |include: &str, hosts: &str| {
            format!("[skill]\ninclude = [{include}]\n[policy]\nhosts = [{hosts}]\n")
        };
        let user = lists("\"one\"", "\"api.example.com\"");
        let world = World::new().file(USER, user).skill("one", "One").skill("two", "Two");
        for (include, hosts) in [("\"two\"", "\"evil.example\""), ("", "")] {
            world.write("prowess.toml", lists(include, hosts));
            let ran = world.run(["config", "--json"]);
            assert_eq!(setting(&ran, "skill.include").0, json!([]), "{include}");
            assert_eq!(setting(&ran, "policy.hosts").0, json!([]), "{hosts}");
            let listed = world.run(["list", "--dir", "skills", "--json"]);
            assert_eq!(listed.json()["skills"], json!([]), "{include}");
            for host in ["evil.example", "api.example.com", "example.org", "127.0.0.1"] {
                let arguments = format!("{{\"url\": \"http://{host}/\"}}");
                let asked = world.run(["tool", "http_request", &arguments, "--json"]);
                assert_eq!(
                    asked.json()["outcome"]["status"],
                    "refused",
                    "{host}: {}",
                    asked.stdout()
                );
            }
        }
        let held = |user: &str, project: &str| {
            let world = World::new().file(USER, lists("", user));
            world.write("prowess.toml", lists("", project));
            setting(&world.run(["config", "--json"]), "policy.hosts").0 != json!([])
        };
        for (user, project) in [
            ("api.example.com", "api.example.com:80"),
            ("*.example.com", "a.example.com"),
            ("*.example.com", "*.a.example.com:8080"),
            ("10.0.0.0/8", "10.1.0.0/16"),
            ("10.0.0.0/8", "10.1.2.3:80"),
            ("*", "*:443"),
            // The user's list is narrower then, and applies.
            ("api.example.com:80", "api.example.com"),
        ] {
            assert!(held(&format!("\"{user}\""), &format!("\"{project}\"")), "{project}");
        }
        for (user, project) in [
            // A name may resolve to a private network, which `*` does not match.
            ("*", "a.example.com"),
            ("*.internal", "metadata.google.internal"),
            ("example.com", "example.com:22"),
            ("example.com:80", "example.com:81"),
            ("10.1.0.0/16", "10.2.0.0/16"),
            ("*.example.com", "evilexample.com"),
        ] {
            assert!(!held(&format!("\"{user}\""), &format!("\"{project}\"")), "{project}");
        }
    }

    #[test]
    fn the_roots_of_a_project_lie_in_it() {
        let world = World::new()
            .folder("project/data")
            .folder("outside")
            .link("project/link", "../outside")
            .link("project/inner", "data");
        let with = |root: &str| format!("[policy]\nroots = [\".\",\n \"{root}\"]\n");
        for root in ["/", "~", "..", "data/../../outside", "link", "nowhere/../../x", "/nowhere"] {
            world.write("project/prowess.toml", with(root));
            let stderr = refused(&world, &["config", "--cwd", "project"]);
            assert!(stderr.contains("must be in the directory of this file"), "{stderr}");
            assert!(stderr.contains("prowess.toml:3"), "{stderr}");
            assert!(stderr.contains("only the user's own file, or one given"), "{stderr}");
            let named = world.run(["config", "--config", "project/prowess.toml"]);
            assert_eq!(named.code, Some(0), "{root}: {}", named.stderr);
            let world = World::new().file(USER, with(root));
            assert_eq!(world.run(["config"]).code, Some(0), "{root}");
        }
        for root in [".", "data", "data/../data", "inner", "not-yet"] {
            world.write("project/prowess.toml", with(root));
            let ran = world.run(["config", "--json", "--cwd", "project"]);
            assert_eq!(ran.code, Some(0), "{root}: {}", ran.stderr);
            let roots = setting(&ran, "policy.roots").0;
            assert_eq!(roots.as_array().unwrap().len(), 2, "{roots}");
        }
    }
}

mod what_is_wrong_is_said_with_its_line {
    use super::*;

    #[test]
    fn all_faults_of_a_file_are_told_at_once() {
        let toml = "[skil]\n[skill]\nenabled = \"yes\"\ndepth = 33\ninclude = \"one\"\nexclude = [1]\n\
            presets = [\"claud\", \"codex\", 3]\nmax_file_size = -1\n[matching]\ntreshold = 0.2\nstrategy = \"best\"\n\
            [limits]\ntimeout = \"5 days\"\nprocesses = 0\n[[policy.rules]]\ntol = 1\ndecision = \"deny\"\n\
            [[policy.rules]]\ndecision = \"perhaps\"\n[[policy.rules]]\ntool = \"x\"\n";
        let faults = faults(toml);
        let wanted = [
            "1: there is no table `skil`; did you mean `[skill]`?",
            "3: `skill.enabled` must be `true` or `false`; ",
            "4: `skill.depth` must be a whole number from 1 to 32; ",
            "5: `skill.include` must be a list, each a string in quotes; ",
            "6: each of `skill.exclude` must be a string in quotes; ",
            "7: each of `skill.presets` must be the name of a preset in quotes; did you mean `claude`?",
            "7: each of `skill.presets` must be the name of a preset in quotes; ",
            "8: `skill.max_file_size` must be a size, such as `\"1 MiB\"` or `1048576`; ",
            "10: `[matching]` has no key `treshold`; did you mean `threshold`?",
            "11: `matching.strategy` must be one of `\"semantic\"`, `\"keyword\"`, `\"explicit\"`, `\"always\"`, `\"model\"`; ",
            "13: `limits.timeout` must be a time, such as `\"30s\"`, `\"5m\"` or `30` for seconds; ",
            "14: `limits.processes` must be a whole number, 1 or more; ",
            "16: a rule has no key `tol`; did you mean `tool`?",
            "19: `decision` of a rule must be one of `\"allow\"`, `\"ask\"`, `\"deny\"`; ",
            "20: a rule must have a `decision`: one of `\"allow\"`, `\"ask\"`, `\"deny\"`; ",
        ];
        assert_eq!(faults, wanted);
        let world = project(toml);
        for command in [&["list"][..], &["find", "x"], &["config"], &["new", "x"], &["check"]] {
            let stderr = refused(&world, command);
            assert!(stderr.contains("prowess.toml:10:1"), "{stderr}");
            assert!(stderr.contains("treshold = 0.2\n"), "{stderr}");
            assert!(stderr.contains("did you mean `threshold`?"), "{stderr}");
            assert_eq!(stderr.matches("error: ").count(), wanted.len(), "{stderr}");
        }
        let misplaced = super::faults("timeout = 3\nskill = 1\n");
        assert_eq!(
            misplaced[0],
            "1: there is no table `timeout`; `timeout` belongs below `[limits]`"
        );
        assert!(misplaced[1].starts_with("2: `skill` must be a table"), "{misplaced:?}");
    }

    #[test]
    fn every_setting_says_what_it_may_be() {
        let json = World::new().run(["config", "--json"]).json();
        let keys: Vec<&str> = json["settings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["key"].as_str().unwrap())
            .collect();
        assert!(keys.contains(&"skill.depth") && keys.contains(&"servers"), "{keys:?}");
        for key in keys {
            let faults = faults(format!("\n{key} = 1979-05-27\n"));
            let [fault] = &faults[..] else { panic!("{key}: {faults:?}") };
            let wanted = fault.strip_prefix(&format!("2: `{key}` must be ")).unwrap_or_default();
            assert!(wanted.len() > "; ".len(), "{key}: {fault}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_and_is_not_waited_for() {
        let world = World::new()
            .pipe("pipe")
            .sparse("large", 1024 * 1024 + 1)
            .folder("folder/prowess.toml");
        for (file, why) in [
            ("nowhere", "there is no such file"),
            ("skills", "not a regular file"),
            ("pipe", "not a regular file"),
            ("/dev/zero", "not a regular file"),
            ("large", "larger than 1048576 bytes"),
        ] {
            let stderr = refused(&world, &["list", "--config", file]);
            assert!(stderr.contains(why) && stderr.contains(file), "{stderr}");
            assert!(!stderr.contains("os error"), "{stderr}");
        }
        let stderr = refused(&world, &["list", "--cwd", "folder"]);
        assert!(stderr.contains("not a regular file"), "{stderr}");
    }

    #[test]
    fn a_hostile_file_is_answered_soon() {
        let keys: String = (0..80_000).map(|it| format!("k{it} = 1\n")).collect();
        for toml in [
            format!("a = {}", "[".repeat(500_000)),
            format!("{}a = 1", "a.".repeat(400_000)),
            format!("a = {}", "{b=".repeat(300_000)),
            format!("[skill]\n{keys}"),
            format!("[skill]\n{}", "x".repeat(900_000)),
            format!("{}[[policy.rules]]", "[[policy.rules]]\ndecision = \"ask\"\n".repeat(25_000)),
        ] {
            let world = project(&toml);
            let stderr = refused(&world, &["list"]);
            assert!(stderr.len() < 100_000, "{}", stderr.len());
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let url = "postgres://me:pass@word@localhost/db?sslpassword=word";
        let toml = format!("[sql]\nurl = \"{url}\"\n[model]\nbase_url = \"http://a:word@b\"\n");
        let world = World::new().file("home/.config/prowess/prowess.toml", toml);
        for arguments in [&["config"][..], &["config", "--json"]] {
            let ran = world.run(arguments);
            assert!(ran.stdout().contains("postgres://me:***@localhost/db"), "{}", ran.stdout());
            assert!(
                !ran.stdout().contains("word@") && !ran.stdout().contains("=word"),
                "{}",
                ran.stdout()
            );
        }
        let config = load(format!("[sql]\nurl = \"{url}\"\n")).unwrap();
        assert_eq!(config.sql.url.value.as_ref().unwrap().as_str(), url);
        assert!(!format!("{config:?}").contains("word@"));
        for bad in
            [format!("uri = \"{url}\""), format!("url = \"{url}\" x"), format!("write = \"{url}\"")]
        {
            let stderr = refused(&project(&format!("[sql]\n{bad}\n")), &["list"]);
            assert!(stderr.contains("postgres") && !stderr.contains("word@"), "{stderr}");
        }
    }

    #[test]
    fn what_a_server_is_given_is_not_shown() {
        let url = "https://me:s3cret@example.org/mcp?token=s3cret";
        let user = format!(
            "[servers.docs]\nurl = \"{url}\"\nheaders = {{ Authorization = \"s3cret\" }}\n\
             [servers.plain]\nurl = \"https://example.org/mcp\"\n"
        );
        let own =
            "[servers.own]\ncommand = \"serve\"\nargs = [\"s3cret\"]\nenv = { KEY = \"s3cret\" }\n";
        let world = project(own).file("home/.config/prowess/prowess.toml", user);
        let ran = world.run(["config", "--json"]);
        let shown = json!({
            "docs": { "url": "https://me:***@example.org/mcp?***" },
            "plain": { "url": "https://example.org/mcp" },
            "own": { "command": "serve" },
        });
        assert_eq!(setting(&ran, "servers").0, shown);
        for text in [ran.stdout(), world.run(["config"]).stdout()] {
            assert!(!text.contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn what_is_not_toml_is_told_with_its_line() {
        for (toml, line) in [
            (&b"[skill]\ndepth = \n"[..], "2: this is not TOML"),
            (b"[skill]\ndepth = 1\ndepth = 2\n", "3: this is not TOML"),
            (b"[skill]\n\ninclude = [\"a\"\n", "3: this is not TOML"),
            (b"[skill]\nskills_dir = \"\xff\"\n", "2: this is not UTF-8"),
        ] {
            let faults = faults(toml);
            assert_eq!(faults.len(), 1);
            assert!(faults[0].starts_with(line), "{faults:?}");
        }
        // A byte order mark and CRLF are accepted.
        let config = load("\u{feff}[skill]\r\ndepth = 2\r\n").unwrap();
        assert_eq!(config.skill.depth.value.get(), 2);
    }

    #[test]
    fn the_sandbox_cannot_be_switched_off_by_a_file() {
        let faults = faults("[sandbox]\nlevel = \"none\"\n");
        assert!(faults[0].contains("`--unsandboxed` does, for one run"), "{faults:?}");
        assert_eq!(
            load("[sandbox]\nlevel = \"strong\"\n").unwrap().sandbox.level.value.as_str(),
            "strong"
        );
    }

    #[test]
    fn thresholds_that_contradict_each_other_are_told() {
        let faults = faults("[matching]\nmax_active = 1\n[disclosure]\nfull_at = 0.1\n");
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("4: `disclosure.brief_at` is 0.15"), "{faults:?}");
        assert!(load("[disclosure]\nbrief_at = 0\nfull_at = 0\n").is_ok());
    }

    #[test]
    fn a_command_that_stands_for_every_program_is_told() {
        for pattern in ["*", "* -l", "py*", "/bin/?"] {
            let faults = faults(format!("[policy]\ncommands = [\"ls\", \"{pattern}\"]\n"));
            assert_eq!(faults.len(), 1);
            assert!(faults[0].starts_with("2: ") && faults[0].contains("names no program"));
            assert!(faults[0].contains("list each program"), "{faults:?}");
        }
        for pattern in ["git * log", "git * *", "* *", ":*"] {
            let faults = faults(format!("[policy]\ncommands = [\"{pattern}\"]\n"));
            assert!(faults.len() == 1 && faults[0].contains(pattern.trim_end_matches(" *")));
        }
    }

    #[test]
    fn a_star_at_the_end_of_a_command_is_what_it_is_without() {
        let toml = "[policy]\ncommands = [\"ls *\", \"git log:*\", \"git diff *\", \"cat\"]\n";
        let policy = load(toml).unwrap().policy("/".as_ref());
        assert_eq!(policy.commands, ["ls", "git log", "git diff", "cat"]);
    }
}

mod every_setting_is_documented {
    use std::fs;

    use super::*;

    /// Returns a file of `docs`.
    fn doc(name: &str) -> String {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Returns every setting of `config --json`.
    fn settings() -> Vec<Json> {
        let json = World::new().run(["config", "--json"]).json();
        json["settings"].as_array().unwrap().clone()
    }

    #[test]
    fn the_reference_is_made_from_the_table() {
        let made = World::new().run(["config", "--markdown"]);
        assert!(
            made.stdout() == doc("settings.md"),
            "out of date: `prowess config --markdown > docs/settings.md` writes it anew"
        );
        for it in settings() {
            let key = it["key"].as_str().unwrap();
            assert!(made.stdout().contains(&format!("\n### `{key}`\n")), "{key}");
            let about = it["description"].as_str().unwrap();
            assert!(about.ends_with('.') && about.len() > 15, "{key}: {about}");
        }
    }

    #[test]
    fn editors_get_a_schema() {
        let made = World::new().run(["config", "--schema"]);
        assert!(
            made.stdout() == doc("prowess.schema.json"),
            "out of date: `prowess config --schema > docs/prowess.schema.json` writes it anew"
        );
        let schema = jsonschema::validator_for(&made.json()).unwrap();
        let takes = |key: &str, value: Json| {
            let document = match key.split_once('.') {
                Some((table, key)) => json!({ table: { key: value } }),
                None => json!({ key: value }),
            };
            schema.is_valid(&document)
        };
        for it in settings() {
            let key = it["key"].as_str().unwrap();
            let example = it["example"].as_str().unwrap();
            let toml =
                if key == "servers" { example.to_owned() } else { format!("it = {example}") };
            let read: toml_edit::DocumentMut = toml.parse().unwrap();
            let value = as_json(read.as_item());
            let value = if key == "servers" { value } else { value["it"].clone() };
            assert!(takes(key, value), "{key} = {example}");
            assert!(!takes(key, json!(null)) && !takes(&format!("{key}x"), json!(1)), "{key}");
        }
        for size in [json!(5), json!("5MB"), json!("10MiB"), json!("64 KiB"), json!("1.5 gb")] {
            assert!(takes("limits.memory", size.clone()), "{size}");
        }
        for size in [json!(-5), json!("5 M B"), json!("many"), json!([])] {
            assert!(!takes("limits.memory", size.clone()), "{size}");
        }
        assert!(takes("limits.timeout", json!("500ms")) && !takes("limits.timeout", json!("soon")));
        assert!(!takes("skill.depth", json!(33)) && !takes("sandbox.level", json!("none")));
    }

    /// Converts TOML to JSON.
    fn as_json(item: &toml_edit::Item) -> Json {
        if let Some(table) = item.as_table_like() {
            return Json::Object(table.iter().map(|it| (it.0.to_owned(), as_json(it.1))).collect());
        }
        if let Some(values) = item.as_array() {
            let item = |it: &toml_edit::Value| as_json(&toml_edit::Item::Value(it.clone()));
            return values.iter().map(item).collect();
        }
        let number = item.as_integer().map(|it| json!(it));
        let number = number.or_else(|| item.as_float().map(|it| json!(it)));
        number
            .or_else(|| item.as_bool().map(|it| json!(it)))
            .unwrap_or_else(|| json!(item.as_str()))
    }

    #[test]
    fn every_example_can_be_copied() {
        let world = World::new();
        for it in settings() {
            let key = it["key"].as_str().unwrap();
            let explained = world.run(["config", key]);
            let lines = explained.stdout().lines().skip_while(|it| !it.trim().starts_with('['));
            let toml: String = lines.map(|it| format!("{}\n", it.trim())).collect();
            world.write("example.toml", &toml);
            let ran = world.run(["config", "--json", "--config", "example.toml"]);
            assert_eq!(ran.code, Some(0), "{key}: {toml}{}", ran.stderr);
            let set = ran.json();
            let set = set["settings"].as_array().unwrap().iter();
            let set: Vec<&Json> =
                set.filter(|it| it["origin"] != "default").map(|it| &it["key"]).collect();
            assert_eq!(set, [&json!(key)], "{toml}");
        }
    }

    #[test]
    fn every_flag_that_is_named_exists() {
        let world = World::new();
        let helps = ["list", "find", "prompt", "run", "ask", "add", "search"]
            .map(|it| world.run([it, "--help"]).stdout().to_owned());
        let flags: Vec<String> =
            settings().iter().filter_map(|it| Some(it["flag"].as_str()?.to_owned())).collect();
        assert!(flags.len() > 10, "{flags:?}");
        for flag in flags {
            assert!(helps.iter().any(|it| it.contains(&format!("{flag} ")) || it.contains(&format!("{flag}\n"))), "{flag}");
        }
    }

    #[test]
    fn one_key_is_explained() {
        let world = project("[skill]\ndepth = 3\n");
        let text = world.run(["config", "skill.depth"]);
        for part in
            ["skill.depth = 3", "folders deep", "prowess.toml:2", "1 to 32", "--depth", "[skill]"]
        {
            assert!(text.stdout().contains(part), "{part}: {}", text.stdout());
        }
        let text = world.run(["config", "policy.environment"]);
        let project = text.stdout().lines().find(|it| it.contains("project's file")).unwrap();
        assert!(project.trim().ends_with(" no"), "{project}");
        let json = world.run(["config", "limits.memory", "--json"]).json();
        let setting = &json["settings"][0];
        assert_eq!(
            (&setting["default"], &setting["project"]),
            (&json!("\"1 GiB\""), &json!("stricter"))
        );
        for (typed, meant) in [
            ("limits.memry", "`limits.memory`"),
            ("memory", "`limits.memory`"),
            ("timeout", "`limits.timeout` or `prepare.timeout` or `model.timeout`"),
            ("limit", "`limits`"),
        ] {
            let ran = world.run(["config", typed]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""));
            assert!(ran.stderr.contains(&format!("did you mean {meant}?")), "{}", ran.stderr);
        }
        let all = world.run(["config"]);
        for it in settings() {
            let about = it["description"].as_str().unwrap();
            assert!(all.stdout().contains(&format!("\n    {about}\n")), "{about}");
        }
    }

    #[test]
    fn the_user_s_file_is_named() {
        let world = World::new();
        let path = world.path("home/.config/prowess/prowess.toml");
        let ran = world.run(["config", "--path"]);
        assert_eq!((ran.code, ran.stdout().trim_end()), (Some(0), path.to_str().unwrap()));
        assert!(ran.stderr.contains("does not exist yet"), "{}", ran.stderr);
        assert_eq!(world.run(["config", "--path", "--json"]).json()["exists"], false);
        // Also while it is invalid: otherwise nobody could fix it.
        let world = world.file("home/.config/prowess/prowess.toml", "[skill");
        let ran = world.run(["config", "--path"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        let elsewhere = world.path("xdg").display().to_string();
        let moved = world.run_with_env(&[("XDG_CONFIG_HOME", &elsewhere)], &["config", "--path"]);
        assert_eq!(moved.stdout(), format!("{elsewhere}/prowess/prowess.toml\n"));
    }
}

mod settings_hold_in_every_command {
    use super::*;

    #[test]
    fn sizes_are_typed_with_a_unit() {
        let world = World::new()
            .skill("one", "One")
            .file("skills/one/small.txt", "x".repeat(2_000))
            .file("skills/one/large.txt", "x".repeat(70_000));
        let files = |size: &str| {
            let ran = world.run(["list", "--dir", "skills", "--json", "--max-file-size", size]);
            ran.said().skill("one")["resources"].as_array().unwrap().len()
        };
        assert_eq!(["5MB", "10MiB", "1 mb", "70000"].map(files), [2; 4]);
        assert_eq!(["64 KiB", "2KB", "2000", "2000b"].map(files), [1; 4]);
        let ran = world.run(["list", "--dir", "skills", "--json", "--max-skill-size", "1.5 KiB"]);
        assert_eq!(ran.said().names(), Vec::<&str>::new());
        for wrong in ["5 potatoes", "-1", "5M", ""] {
            let arguments = ["list", "--dir", "skills", &format!("--max-file-size={wrong}")];
            let ran = world.run(arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{wrong}");
            assert!(wrong.is_empty() || ran.stderr.contains("`10MiB`"), "{wrong}: {}", ran.stderr);
        }
    }

    #[test]
    fn directories_and_presets_of_a_file_are_loaded() {
        let world = project("[skill]\ndirectories = [\"tools\"]\npresets = [\"claude\"]\n")
            .skill_in("tools", "one", "a")
            .skill_in("home/mine", "two", "b")
            .skill_in(".claude/skills", "three", "c")
            .skill_in("home/extra", "four", "d")
            .skill("five", "e")
            .folder("far/below");
        for from in [".", "far/below"] {
            let said = world.run(["list", "--json", "--cwd", from]).said();
            assert_eq!(said.names(), ["one", "three"], "from {from}");
            assert_eq!(said.skill("three")["scope"], "project");
        }
        let typed = world.run(["list", "--json", "--dir", "skills"]).said();
        assert_eq!(typed.names(), ["five"]);
        world.remove("prowess.toml");
        world.write(
            "home/.config/prowess/prowess.toml",
            "[skill]\ndirectories = [\"../../extra\", \"~/mine\"]\npresets = [\"claude\"]\n",
        );
        let said = world.run(["list", "--json"]).said();
        assert_eq!(said.names(), ["four", "three", "two"]);
        assert_eq!(said.skill("two")["scope"], "user");
        assert_eq!(said.skill("four")["scope"], "user");
    }

    #[test]
    fn s_12_skills_can_be_switched_off() {
        let world =
            project("[skill]\nenabled = false\ndirectories = [\"skills\"]\n").skill("one", "a");
        for arguments in [&["list", "--json"][..], &["list", "--json", "--dir", "skills"]] {
            let ran = world.run(arguments);
            assert_eq!(ran.said().names(), Vec::<&str>::new());
            assert!(
                ran.stderr.contains("`skill.enabled`") && ran.stderr.contains("prowess.toml:2"),
                "{}",
                ran.stderr
            );
        }
        let list = world.run(["list"]).stderr;
        assert!(list.contains("`skill.enabled`") && !list.contains("--depth"), "{list}");
        assert_eq!(world.run(["find", "one"]).code, Some(1));
        assert_eq!(world.run(["show", "one"]).code, Some(1));
        let prompt = world.run(["prompt", "one", "--json"]).json();
        assert_eq!((&prompt["skills"], &prompt["tools"]), (&json!([]), &json!([])));
        world.write("prowess.toml", "[skill]\nenabled = true\ndirectories = [\"skills\"]\n");
        assert_eq!(world.run(["list", "--json"]).said().names(), ["one"]);
    }

    #[test]
    fn s_13_the_directory_of_skills_can_be_moved() {
        let world = project("[skill]\nskills_dir = \"moved\"\ndirectories = [\"skills\"]\n")
            .skill("one", "a");
        let made = world.run(["new", "two"]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        assert!(world.path("moved/two/SKILL.md").exists());
        assert!(!world.path("skills/two").exists() && !world.path("two").exists());
        assert_eq!(world.run(["list", "--json"]).said().names(), ["one", "two"]);
        world.remove("prowess.toml");
        let own = "[skill]\nskills_dir = \"~/moved\"\n";
        world.write("home/.config/prowess/prowess.toml", own);
        assert_eq!(world.run(["list", "--json"]).said().names(), Vec::<&str>::new());
        assert_eq!(world.run(["new", "two"]).code, Some(0));
        assert!(world.path("home/moved/two/SKILL.md").exists());
    }

    #[test]
    fn names_sizes_and_depth_are_taken_from_the_file() {
        let settings = |rest: &str| format!("[skill]\ndirectories = [\"skills\"]\n{rest}\n");
        let world = World::new()
            .skill("one", "a")
            .skill("two", "b")
            .skill_in("skills/folder", "three", "c")
            .file("skills/two/notes.md", "x".repeat(3000));
        let list = |rest: &str, arguments: &[&str]| {
            world.write("prowess.toml", settings(rest));
            let ran = world.run(["list", "--json"].iter().chain(arguments));
            let said = ran.said();
            let files: usize =
                said.skills().iter().map(|it| it["resources"].as_array().unwrap().len()).sum();
            format!("{} {files}", said.names().join(" "))
        };
        assert_eq!(list("depth = 1", &[]), "one two 1");
        assert_eq!(list("", &[]), "one three two 1");
        assert_eq!(list("include = [\"two\"]", &[]), "two 1");
        assert_eq!(list("exclude = [\"two\"]", &[]), "one three 0");
        assert_eq!(list("exclude = [\"two\"]", &["--exclude", "one"]), "three two 1");
        assert_eq!(list("max_file_size = \"2 KB\"", &[]), "one three two 0");
        assert_eq!(
            list("max_file_size = \"2 KB\"", &["--max-file-size", "5000"]),
            "one three two 1"
        );
        assert_eq!(list("max_skill_size = 2000", &[]), "one three 0");
        assert_eq!(list("depth = 2", &[]), "one three two 1");
        assert_eq!(list("depth = 2", &["--depth", "1"]), "one two 1");
    }

    #[test]
    fn matching_and_disclosure_are_taken_from_the_file() {
        let world = World::new()
            .skill("rotate-keys", "Rotate the keys of a server")
            .skill("rotate-logs", "Rotate the logs of a server")
            .skill("paint", "Paint a wall");
        let settings = |rest: &str| {
            world.write("prowess.toml", format!("[skill]\ndirectories = [\"skills\"]\n{rest}"));
        };
        let found = |arguments: &[&str]| {
            let ran =
                world.run(["find", "rotate keys of the server", "--json"].iter().chain(arguments));
            let json = ran.json();
            let level = json["matches"][0]["level"].as_str().unwrap_or("none").to_owned();
            (json["matches"].as_array().unwrap().len(), level)
        };
        settings("");
        let (all, level) = found(&[]);
        assert!(all >= 2 && level == "full", "{all} {level}");
        settings("[matching]\nthreshold = 0.5\n");
        assert_eq!(found(&[]), (1, "full".to_owned()));
        assert_eq!(found(&["--threshold", "0"]).0, all);
        settings("[matching]\nstrategy = \"explicit\"\n");
        assert_eq!(found(&[]), (0, "none".to_owned()));
        assert_eq!(found(&["--strategy", "semantic"]).0, all);
        settings("[disclosure]\nbrief_at = 1\nfull_at = 1\n");
        assert_eq!(found(&[]).1, "metadata");
        assert_eq!(
            world.run(["show", "paint", "--confidence", "0.9", "--json"]).json()["level"],
            "metadata"
        );

        let prompted = |arguments: &[&str]| {
            let ran = world.run(["prompt", "hello", "--json"].iter().chain(arguments));
            ran.json()["skills"].as_array().unwrap().len()
        };
        assert_eq!(world.run(["trust", "."]).code, Some(0));
        settings("[matching]\nstrategy = \"always\"\nmax_active = 1\n");
        assert_eq!((prompted(&[]), prompted(&["--top", "2"])), (1, 2));
    }

    #[test]
    fn the_window_is_taken_from_the_file() {
        let world =
            project("[window]\ntokens = 5000\nkeep_recent = 2\n[model]\nname = \"gpt-4o\"\n");
        let lines =
            vec![json!({ "role": "user", "content": "tell me more about it ".repeat(100) }); 12];
        world.write("chat.json", serde_json::to_string(&lines).unwrap());
        let prompt = |arguments: &[&str]| {
            world.run(["prompt", "--history", "chat.json", "--json"].iter().chain(arguments)).json()
        };
        let fitted = prompt(&[]);
        assert_eq!((&fitted["window"], &fitted["counted"]), (&json!(5000), &json!("o200k")));
        let whole = |json: &Json| {
            let messages = json["messages"].as_array().unwrap();
            messages.iter().filter(|it| it["content"] == lines[0]["content"]).count()
        };
        assert_eq!(whole(&fitted), 2);
        assert_eq!(whole(&prompt(&["--keep", "3"])), 3);
        assert_eq!(prompt(&["--window", "9000"])["window"], 9000);
    }
}

mod a_project_gets_a_first_file {
    use std::fs;

    use super::*;

    fn world() -> World {
        World::new()
            .skill("one", "One")
            .skill_in("p/.claude/skills", "two", "Two")
            .skill_in("p/skills", "three", "Three")
            .skill_in("home/.claude/skills", "four", "Four")
            .folder("p/.cursor/skills")
            .folder("p/.git")
    }

    #[test]
    fn init_names_the_skill_directories_that_are_here() {
        let world = world();
        let listed = || world.run(["list", "--json", "--cwd", "p"]).said().names().join(" ");
        let before = listed();
        assert!(before.contains("two") && before.contains("four"), "{before}");
        let ran = world.run(["init", "--cwd", "p"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "p/prowess.toml\n"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`.claude/skills`") && ran.stderr.contains("`skills`"));
        assert!(ran.stderr.contains("`prowess list`"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
        let text = fs::read_to_string(world.path("p/prowess.toml")).unwrap();
        assert!(text.contains("#:schema") && !text.contains(".cursor"), "{text}");
        assert_eq!(listed(), before);
        let json = world.run(["config", "--json", "--cwd", "p"]).json();
        let set =
            json["settings"].as_array().unwrap().iter().filter(|it| it["origin"] != "default");
        let set: Vec<&str> = set.map(|it| it["key"].as_str().unwrap()).collect();
        assert_eq!(set, ["skill.directories", "skill.presets"]);
        let nothing = World::new().folder("q").folder("q/.git");
        let ran = nothing.run(["init", "--cwd", "q"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("no directory with skills"), "{}", ran.stderr);
        assert_eq!(nothing.run(["list", "--cwd", "q"]).code, Some(0));
    }

    #[test]
    fn init_shows_settings_that_can_be_used_as_they_are() {
        let text = World::new().run(["init", "--dry-run"]).stdout().to_owned();
        let is_setting = |it: &&str| it.contains(" = ") || it.contains("[");
        let lines = text.lines().map(|it| it.strip_prefix("# ").unwrap_or(it)).filter(is_setting);
        let lines = lines.filter(|it| !it.contains('`'));
        let toml: String = lines.map(|it| format!("{it}\n")).collect();
        let config = load(&toml).unwrap();
        assert!(config.policy.commands.explicit().is_some(), "{toml}");
        assert!(config.limits.timeout.explicit().is_some(), "{toml}");
    }

    #[test]
    fn init_overwrites_nothing() {
        let world = world().file("p/prowess.toml", "[skill]\n").folder("q/prowess.toml");
        let world = world.folder("r").link("r/prowess.toml", "nowhere");
        for folder in ["p", "q", "r"] {
            let ran = world.run(["init", "--cwd", folder]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{folder}");
            assert!(ran.stderr.contains("exists already"), "{}", ran.stderr);
        }
        assert_eq!(fs::read_to_string(world.path("p/prowess.toml")).unwrap(), "[skill]\n");
        assert!(!world.path("r/nowhere").exists());
    }

    #[test]
    fn init_can_be_tried() {
        let world = world();
        let ran = world.run(["init", "--dry-run", "--cwd", "p"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let json = world.run(["init", "--dry-run", "--json", "--cwd", "p"]).json();
        assert_eq!((&json["written"], &json["path"]), (&json!(false), &json!("p/prowess.toml")));
        assert_eq!(json["text"], ran.stdout());
        assert!(!world.path("p/prowess.toml").exists());
        let json = world.run(["init", "--json", "--cwd", "p"]).json();
        assert_eq!(json["written"], true);
        let written = fs::read_to_string(world.path("p/prowess.toml")).unwrap();
        assert_eq!(json["text"], written);
    }

    #[test]
    fn init_says_when_a_file_above_no_longer_applies() {
        let world = world().file("prowess.toml", "[skill]\n");
        let ran = world.run(["init", "--cwd", "p"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let above = world.path("prowess.toml").canonicalize().unwrap();
        let said = format!("`{}` no longer applies here", above.display());
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    }
}

mod a_host_reads_settings_with_types {
    use super::*;

    #[test]
    fn the_rules_of_all_files_hold_together() {
        let world = project("[[policy.rules]]\ntool = \"http_request\"\ndecision = \"ask\"\n")
            .file(
                "home/.config/prowess/prowess.toml",
                "[policy]\nrules = [{ tool = \"http_request\", decision = \"deny\" }]\n",
            );
        let config = Config::load(&Places {
            user: Some(world.path("home/.config/prowess")),
            from: Some(world.path("")),
            ..Places::default()
        });
        let rules = config.unwrap().policy.rules.value;
        let said: Vec<(Decision, bool)> =
            rules.iter().map(|it| (it.decision, it.origin.to_string().contains("home"))).collect();
        assert_eq!(said, [(Decision::Deny, true), (Decision::Ask, false)]);
        let shown = world.run(["config", "policy.rules", "--json"]).json();
        assert_eq!(shown["settings"][0]["value"][0]["decision"], "deny");
    }

    #[test]
    fn times_and_sizes_are_written_as_people_write_them() {
        let config = load(
            "[limits]\ntimeout = \"5m\"\nidle = 30\ncpu = \"1500ms\"\noutput = \"1 MiB\"\nmemory = 1048576\n\
             file = \"10KB\"\nwork = \"0.5 GiB\"\nprocesses = 8\ndescriptors = 9\n",
        );
        let limits = config.unwrap().limits();
        let wanted = RunLimits {
            timeout: Duration::from_secs(300),
            idle: Some(Duration::from_secs(30)),
            cpu: Duration::from_millis(1500),
            output: 1 << 20,
            memory: 1 << 20,
            file: 10_000,
            work: 1 << 29,
            processes: 8,
            descriptors: 9,
        };
        assert_eq!(limits, wanted);
    }

    #[test]
    fn defaults_are_those_of_the_parts() {
        let config = Config::load(&Places::default()).unwrap();
        let (matching, default) = (config.matching(), Matching::default());
        assert_eq!(
            (matching.strategy, matching.max_active),
            (default.strategy, default.max_active)
        );
        assert_eq!(matching.threshold, default.threshold);
        assert_eq!(
            (config.window(), config.limits()),
            (ContextWindow::default(), RunLimits::default())
        );
        assert_eq!(config.thresholds(), prowess::Thresholds::default());
        // A program with settings has a person who can be asked.
        let (policy, default) = (config.policy("/".as_ref()), Policy::default());
        assert_eq!((default.writes, policy.writes), (Decision::Allow, Decision::Ask));
        assert_eq!((default.secret_reads, policy.secret_reads), (Decision::Allow, Decision::Ask));
        assert_eq!((default.sends, policy.sends), (Decision::Allow, Decision::Ask));
        assert_eq!(default.unlisted_commands, UnlistedCommands::Deny);
        assert_eq!(policy.unlisted_commands, UnlistedCommands::Ask);
        let (options, default) = (config.options(), Options::default());
        // People's skills are larger and nested deeper than a library loads by default.
        assert_eq!(options.limits.max_file_size, 10 * 1024 * 1024);
        assert_eq!(options.limits.max_skill_size, 64 * 1024 * 1024);
        assert_eq!((options.limits.depth, options.watch), (prowess::DEEPEST, default.watch));
        assert!(options.directories.is_empty() && options.sources.is_empty());
        let below = load("[skill]\ndirectories = [\"a\", \"/b\", \"~/c\"]\n").unwrap();
        let directories = below.directories();
        assert!(directories[0].path.ends_with("project/a") && directories[0].path.is_absolute());
        assert_eq!(directories[1].path, PathBuf::from("/b"));
        assert_eq!(
            (directories[2].path.to_str(), directories[2].scope),
            (Some("/home/me/c"), Scope::User)
        );
    }
}
