//! Permissions and approvals.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value as Json, json};

use crate::world::World;

mod nothing_runs_before_the_policy_allows_it {
    use super::*;

    #[test]
    fn a_rule_about_a_skill_holds_by_every_way_that_leads_to_it() {
        let skill = |more: &str| format!("---\nname: z\ndescription: d\n{more}---\nsecret plan\n");
        let ways: [&[&str]; 3] =
            [&["run", "z"], &["tool", "skill_z"], &["tool", "use_skill", "{\"name\": \"z\"}"]];
        let tried = |world: &World, way: &[&str], more: &[&str]| {
            let ran = world.run([way, &["--dir", "s", "--json"], more].concat());
            let outcome = ran.json()["outcome"].clone();
            let status = outcome["status"].as_str().unwrap().to_owned();
            let told = outcome["output"].to_string().contains("secret");
            assert_eq!(status == "ok", told, "{outcome:#}");
            status
        };
        let own = |world: &World, rule: &str| {
            let toml = format!("[policy]\nrules = [{{ {rule} }}]\n");
            world.write("home/.config/prowess/prowess.toml", toml);
        };
        for by_path in [false, true] {
            let world = World::new()
                .file("s/z/SKILL.md", skill(""))
                .file("s/z/more.md", "secret more")
                .file("s/y/SKILL.md", skill("").replace("name: z", "name: y"));
            let path = format!("path = \"{}\"", world.path("s/z").display());
            let named = if by_path { &*path } else { "skill = \"z\"" };
            let all = |more: &[&str]| ways.map(|it| tried(&world, it, more));
            own(&world, &format!("{named}, decision = \"deny\""));
            assert_eq!(all(&["--yes"]), ["refused"; 3], "{named}");
            own(&world, &format!("{named}, decision = \"ask\""));
            assert_eq!(all(&[]), ["refused"; 3], "{named}");
            assert_eq!(all(&["--yes"]), ["ok"; 3], "{named}");
            let other = world.run(["run", "y", "--dir", "s"]);
            assert!(other.stdout().contains("secret plan"), "{}", other.stderr);
            // The person who types `--skill` activates it, and its files are still denied.
            let more = ["tool", "read_file", "{\"path\": \"more.md\"}", "--skill", "z"];
            let file = world.path("s/z/more.md");
            own(&world, &format!("path = \"{}\", decision = \"deny\"", file.display()));
            assert_eq!(tried(&world, &more, &[]), "refused");
            own(&world, "tool = \"none\", decision = \"deny\"");
            assert_eq!(tried(&world, &more, &[]), "ok");
        }
        // It requires approval, and is changed afterwards.
        let world = World::new().file("s/z/SKILL.md", skill("requires-approval: true\n"));
        let all = || ways.map(|it| tried(&world, it, &[]));
        assert_eq!(all(), ["refused"; 3]);
        assert_eq!(tried(&world, ways[0], &["--yes"]), "ok");
        assert_eq!(all(), ["ok"; 3]);
        world.write("s/z/SKILL.md", skill("") + "secret change");
        assert_eq!(all(), ["refused"; 3]);
        let world = World::new()
            .file("s/z/SKILL.md", skill(""))
            .file("home/.config/prowess/prowess.toml", "[policy]\napprovals = \"always\"\n");
        for way in ways {
            let ran = world.run([way, &["--dir", "s"]].concat());
            assert!(ran.stdout().contains("secret plan"), "{}", ran.stderr);
        }
    }

    #[test]
    fn the_files_of_a_skill_that_is_not_told_are_not_read_either() {
        let skill = |more: &str| format!("---\nname: z\ndescription: d\n{more}---\nsecret plan\n");
        let world = |more: &str| {
            World::new()
                .file("s/z/SKILL.md", skill(more))
                .file("s/z/more.md", "secret more")
                .file("s/y/SKILL.md", skill("").replace("name: z", "name: y"))
                .link("l", "s/z")
        };
        let leaks = |world: &World| {
            let tried = |tool: &str, input: Json| {
                let input = input.to_string();
                let ran = world.run(["tool", tool, &input, "--dir", "s"]);
                ran.stdout().contains("secret")
            };
            let (read, file, run) = ("read_file", "file_operations", "execute_command");
            assert!(tried(read, json!({ "path": "s/y/SKILL.md" })));
            [
                tried(read, json!({ "path": "s/z/SKILL.md" })),
                tried(read, json!({ "path": "l/SKILL.md" })),
                tried(file, json!({ "operation": "read", "path": "s/z/more.md" })),
                tried(run, json!({ "command": "cat s/z/SKILL.md" })),
                tried(run, json!({ "command": "cat SKILL.md", "working_directory": "l" })),
                tried(run, json!({ "command": "grep -rh secret l/" })),
            ]
        };
        let denied = world("").file(
            "home/.config/prowess/prowess.toml",
            "[policy]\nrules = [{ skill = \"z\", decision = \"deny\" }]\n",
        );
        assert_eq!(leaks(&denied), [false; 6]);
        let required = world("requires-approval: true\n");
        assert_eq!(leaks(&required), [false; 6]);
        assert_eq!(required.run(["run", "z", "--dir", "s", "--yes"]).code, Some(0));
        assert_eq!(leaks(&required), [true; 6], "it was approved");
        required.write("s/z/more.md", "secret change");
        assert_eq!(leaks(&required), [false; 6], "it has changed");
        assert_eq!(leaks(&world("")), [true; 6]);
    }

    #[test]
    fn what_a_rule_denies_is_not_shown_either() {
        let world = World::new().skill("zebra", "Feeds animals").skill("yak", "Feeds animals");
        let commands: [&[&str]; 3] = [&["tools"], &["catalog"], &["find", "feed animals"]];
        let path = world.path("skills/zebra");
        for rule in ["skill = \"zebra\"".to_owned(), format!("path = \"{}\"", path.display())] {
            let toml = format!("[policy]\nrules = [{{ {rule}, decision = \"deny\" }}]\n");
            world.write("home/.config/prowess/prowess.toml", toml);
            for command in commands {
                let ran = world.run([command, &["--dir", "skills"]].concat());
                assert!(ran.stdout().contains("yak"), "{command:?}: {}", ran.stdout());
                assert!(!ran.stdout().contains("zebra"), "{command:?}: {}", ran.stdout());
                assert!(ran.stderr.contains("1 skill is not shown"), "{}", ran.stderr);
            }
        }
        world.write("home/.config/prowess/prowess.toml", "");
        for command in commands {
            let ran = world.run([command, &["--dir", "skills"]].concat());
            assert!(ran.stdout().contains("zebra"), "{command:?}: {}", ran.stdout());
        }
    }

    #[test]
    fn a_27_a_person_is_asked_at_the_terminal() {
        let script = |script: &str| {
            format!(
                "---\nname: greet\ndescription: d\ntype: script\nrequires_approval: true\n---\n```sh\n{script}\n```\n"
            )
        };
        let world = World::new().document("greet", script("echo hello-$((1 + 1))"));
        let run = "run greet --dir skills";
        let asks = |typed: &str| world.run_at_terminal(typed, run);
        for typed in ["n\n", "\n", "maybe\n", ""] {
            let ran = asks(typed);
            let said = ran.stdout();
            assert!(said.contains("May prowess run the skill `greet`?"), "{said}");
            assert!(said.contains("requires approval") && said.contains("echo hello-"), "{said}");
            assert!(ran.code == Some(1) && !said.contains("hello-2"), "{said}");
        }
        assert!(asks("y\n").stdout().contains("hello-2"));
        assert!(asks("always\n").stdout().contains("May prowess"));
        let ran = asks("");
        assert!(
            ran.stdout().contains("hello-2") && !ran.stdout().contains("May"),
            "{}",
            ran.stdout()
        );
        world.write("skills/greet/SKILL.md", script("echo \u{1b}[2Jchanged"));
        let said = asks("n\n").stdout().to_owned();
        assert!(
            said.contains("changed since it was approved") && said.contains("-echo hello"),
            "{said}"
        );
        assert!(said.contains("+echo \\u{1b}[2Jchanged") && !said.contains("\x1b[2J"), "{said:?}");
        let ran = world.run(["run", "greet", "--dir", "skills"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("--yes"), "{}", ran.stderr);
        let changed = "+echo \\u{1b}[2Jchanged";
        assert!(ran.stderr.contains(changed) && !ran.stderr.contains('\x1b'), "{}", ran.stderr);
        let ran = world.run(["run", "greet", "--dir", "skills", "--json"]);
        let difference = ran.json()["outcome"]["difference"].as_str().unwrap().to_owned();
        assert!(difference.contains("-echo hello") && difference.contains("changed"));
        let agreed = world.run(["run", "greet", "--dir", "skills", "--yes"]);
        assert!(agreed.code == Some(0) && agreed.stderr.contains(changed), "{}", agreed.stderr);
        let ran = world.run(["run", "greet", "--dir", "skills"]);
        assert!(ran.code == Some(0) && !ran.stderr.contains(changed), "{}", ran.stderr);
        world.write("skills/greet/SKILL.md", script("echo other"));
        let agreed = || world.run(["run", "greet", "--dir", "skills", "--json", "--yes"]).json();
        let outcome = &agreed()["outcome"];
        let difference = outcome["difference"].as_str().unwrap();
        assert!(outcome["status"] == "ok" && difference.contains("+echo other"), "{outcome:#}");
        assert!(agreed()["outcome"]["difference"].is_null());
    }

    #[test]
    fn all_of_what_is_agreed_to_can_be_seen() {
        let script = |script: &str| {
            format!(
                "---\nname: greet\ndescription: d\ntype: script\nrequires_approval: true\n---\n```sh\n{script}\n```\n"
            )
        };
        let long = (0..300).map(|it| format!("echo {it}\n")).collect::<String>() + "echo the-end";
        let world = World::new()
            .document("greet", script(&long))
            .file("skills/greet/zz.dat", "data")
            .file("skills/greet/scripts/helper.py", "print(1)");
        let run = "run greet who=a\\$b --dir skills";
        let said = world.run_at_terminal("n\n", run).stdout().to_owned();
        assert!(said.contains("echo 1\r") && said.contains("echo the-end"), "{said}");
        assert!(!said.contains("echo 200\r") && said.contains("lines are left out here; see"));
        assert!(said.contains("/skills/greet`"), "{said}");
        let files = ["* SKILL.md", "* scripts/helper.py, 8 bytes", "* zz.dat, 4 bytes"];
        let places = files.map(|it| said.find(it).unwrap_or_else(|| panic!("{it}: {said}")));
        assert!(places.is_sorted(), "{said}");
        assert!(said.contains("With this input:") && said.contains("\"who\": \"a$b\""), "{said}");
        assert!(said.contains("[a]lways, with any input:"), "{said}");
        let hidden = format!("ls\u{2800}\u{fe0f}{}; rm x", " ".repeat(300));
        world.write("skills/greet/SKILL.md", script(&hidden));
        let said = world.run_at_terminal("n\n", "run greet --dir skills").stdout().to_owned();
        assert!(said.contains("ls\\u{2800}\\u{fe0f}⟨300 spaces⟩; rm x"), "{said}");
        assert!(!said.contains("With this input"), "{said}");
    }

    #[test]
    fn an_answer_that_is_not_understood_is_asked_for_again() {
        let greet = "---\nname: greet\ndescription: d\ntype: script\nrequires_approval: true\n---\n```sh\necho hello-$((1 + 1))\n```\n";
        let world = World::new().document("greet", greet);
        for (typed, asked, is_run) in [
            ("what?\ny\n", 2, true),
            ("\nmaybe\nn\n", 3, false),
            ("1\n2\n3\ny\n", 3, false),
            ("perhaps\n", 2, false),
        ] {
            let ran = world.run_at_terminal(typed, "run greet --dir skills");
            let said = ran.stdout();
            assert_eq!(said.contains("hello-2"), is_run, "{said}");
            assert_eq!(said.matches("[y]es, [n]o, [a]lways: ").count(), asked, "{said}");
            assert_eq!(said.matches("Please answer").count(), asked - 1, "{said}");
            assert_eq!(said.matches("May prowess").count(), 1, "{said}");
        }
        let ran = world.run_at_narrow_terminal(40, "n\n", "run greet --dir skills");
        let said = ran.stdout().replace('\r', "");
        let question = "May prowess run the skill `greet`? You\nare asked because the skill requires\napproval.\n";
        assert!(said.contains(question), "{said}");
    }

    #[test]
    fn what_was_typed_before_a_question_does_not_answer_it() {
        let document = "---\nname: greet\ndescription: d\ntype: script\nrequires_approval: true\n---\n```sh\necho hello-$((1 + 1))\n```\n";
        let world = World::new().document("greet", document);
        let run = |typed: &str| world.run_typing_ahead("y\n", typed, "run greet --dir skills");
        for (typed, runs) in [("n\n", false), ("y\n", true)] {
            let ran = run(typed);
            let said = ran.stdout();
            assert!(said.contains("May prowess run"), "{said}");
            assert_eq!(said.contains("hello-2"), runs, "{said}");
        }
    }

    #[test]
    fn a_question_can_be_interrupted() {
        let document = "---\nname: greet\ndescription: d\ntype: script\nrequires_approval: true\n---\n```sh\necho hello-$((1 + 1))\n```\n";
        let world = World::new().document("greet", document);
        world.write(
            "ask",
            "for it in INT TERM HUP; do\n\
             sh -c \"(sleep 1; kill -$it \\$\\$) & exec $1 run greet --dir skills\"\n\
             echo \"ended with $?\"\ndone\ntest -e late || echo soon\n",
        );
        let ran = world
            .run_script("(sleep 18; touch late; echo y) | script -qec \"sh ask $0\" /dev/null");
        let said = ran.stdout();
        assert_eq!(said.matches("May prowess run").count(), 3, "{said}");
        let ended: Vec<_> = said.split("ended with ").skip(1).map(|it| &it[..3]).collect();
        assert_eq!(ended, ["1\r\n", "1\r\n", "129"], "{said}");
        assert!(said.contains("soon") && !said.contains("hello-2"), "{said}");
    }
}

mod decisions_are_recorded {
    use super::*;

    #[test]
    fn approvals_are_listed_and_taken_back() {
        let greet = "---\nname: greet\ndescription: d\ntype: script\nrequires_approval: true\n---\n```sh\necho hi\n```\n";
        let world = World::new()
            .document("greet", greet)
            .folder(".git")
            .file("prowess.toml", "[policy]\ncommands = [\"bash -c\"]\n");
        let run = || world.run(["run", "greet", "--dir", "skills"]).code;
        let listed = || world.run(["approvals", "--json"]).json()["approvals"].take();
        assert_eq!((run(), listed()), (Some(1), json!([])));
        assert_eq!(world.run(["run", "greet", "--dir", "skills", "--yes"]).code, Some(0));
        assert_eq!(world.run(["config", "--approve", "--yes"]).code, Some(0));
        assert_eq!(run(), Some(0));
        let all = listed();
        assert_eq!((&all[0]["kind"], &all[0]["name"]), (&json!("skill"), &json!("greet")));
        assert_eq!(all[1]["kind"], "settings");
        let id = all[0]["id"].as_str().unwrap();
        let text = world.run(["approvals"]);
        let (first, second) = text.stdout().split_once('\n').unwrap();
        assert!(first.contains("accept the commands and hosts of"), "{first}");
        assert!(second.starts_with(id) && second.contains("run the skill greet"), "{second}");
        assert!(second.ends_with("/skills/greet (by --yes)\n"), "{second}");
        assert!(!first.contains("--yes"), "{first}");
        let unknown = world.run(["approvals", "--revoke", id, "nowhere"]);
        assert_eq!((unknown.code, run()), (Some(1), Some(0)), "{}", unknown.stderr);
        assert_eq!(world.run(["approvals", "--revoke"]).code, Some(2));
        assert_eq!(world.run(["approvals", "--all"]).code, Some(2));
        assert_eq!(world.run(["approvals", "--revoke", id]).code, Some(0));
        assert_eq!((run(), listed().as_array().unwrap().len()), (Some(1), 1));
        let revoked = world.run(["approvals", "--revoke", "--all", "--json"]).json();
        assert_eq!(revoked["revoked"][0]["kind"], "settings");
        assert_eq!(listed(), json!([]));
        let said = world.run(["config", "policy.commands"]).stderr;
        assert!(said.contains("ignored `bash -c`"), "{said}");
        let log = fs::read_to_string(world.path("home/.local/state/prowess/audit.jsonl")).unwrap();
        assert_eq!(log.matches(r#""decision":"revoked""#).count(), 2, "{log}");
    }

    #[test]
    fn approvals_that_others_can_write_are_none() {
        let document = "---\nname: greet\ndescription: d\ntype: script\nrequires_approval: true\n---\n```sh\necho hello\n```\n";
        let world = World::new().document("greet", document);
        let run = |more: &[&str]| world.run([&["run", "greet", "--dir", "skills"], more].concat());
        assert_eq!(run(&["--yes"]).code, Some(0));
        let state = "home/.local/state/prowess";
        let book = format!("{state}/approvals.json");
        for (path, open, right) in
            [(&*book, 0o666, 0o600), (&book, 0o620, 0o600), (state, 0o777, 0o700)]
        {
            let mode = |mode| {
                fs::set_permissions(world.path(path), fs::Permissions::from_mode(mode)).unwrap();
            };
            mode(open);
            let ran = run(&[]);
            assert_eq!(ran.code, Some(1), "{path}");
            assert!(ran.stderr.contains("is writable by others"), "{}", ran.stderr);
            mode(right);
            assert_eq!(run(&[]).code, Some(0), "{path}");
        }
    }
}
