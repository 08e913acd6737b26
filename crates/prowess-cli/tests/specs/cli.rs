//! The promises of the commands to people and to scripts.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::world::World;

/// Returns the keys of a JSON object, in order.
fn keys(object: &Json) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns a world with a good skill and one that is left out.
fn good_and_bad() -> World {
    World::new().skill("good", "Stays").document("bad", "---\nname: bad\n---\n")
}

mod data_goes_to_stdout_and_all_else_to_stderr {
    use super::*;

    #[test]
    fn json_is_one_document_and_stands_on_stdout_alone() {
        let world = good_and_bad();
        for arguments in [
            &["list", "--json", "-v"][..],
            &["list", "--json", "-v", "--dir", "skills", "--dir", "nowhere"],
            &["check", "skills", "--json", "-v"],
            &["show", "good", "--dir", "skills", "--json"],
            &["new", "made", "--dir", "skills", "--json"],
        ] {
            assert!(world.run(arguments).json().is_object(), "{arguments:?}");
        }
    }

    #[test]
    fn flags_may_stand_before_or_behind_the_command() {
        let world = good_and_bad();
        let before = world.run(["--dir", "skills", "--json", "list"]);
        let behind = world.run(["list", "--json", "--dir", "skills"]);
        assert_eq!(before.stdout(), behind.stdout());
        assert_eq!(behind.said().names(), ["good"]);
    }

    #[test]
    fn what_cannot_be_understood_exits_2() {
        let world = World::new();
        for arguments in [
            &["lst"][..],
            &["list", "--jason"],
            &["list", "--depth", "33"],
            &["list", "--depth", "0"],
            &["list", "--max-file-size", "-1"],
            &["check", "--profile", "strict"],
            &["show"],
        ] {
            let ran = world.run(arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments:?}");
            assert!(!ran.stderr.is_empty(), "{arguments:?}");
        }
        let help = world.run(["--help"]);
        assert_eq!(help.code, Some(0));
        for command in ["list", "check", "show", "read", "new"] {
            assert!(help.stdout().contains(command), "{}", help.stdout());
        }
    }

    #[test]
    fn a_path_in_a_flag_that_does_not_exist_exits_2() {
        let world = World::new().skill("one", "a").file("file", "");
        let tool = ["tool", "file_operations", r#"{"operation": "list", "path": "."}"#];
        for (arguments, said) in [
            (&["list", "--cwd", "nowhere"][..], "does not exist"),
            (&["check", "--cwd", "nowhere"], "does not exist"),
            (&["config", "--cwd", "nowhere"], "does not exist"),
            (&["--cwd", "file"], "not a directory"),
            (&[tool[0], tool[1], tool[2], "--root", "nowhere"], "does not exist"),
            (&[tool[0], tool[1], tool[2], "--root", "file"], "not a directory"),
            (&["run", "one", "--dir", "skills", "--read", "nowhere"], "does not exist"),
            (&["list", "--dir", "nowhere"], "there is no directory"),
            (&["find", "a", "--dir", "nowhere"], "there is no directory"),
            (&["show", "one", "--dir", "nowhere"], "there is no directory"),
            (&["doctor", "--dir", "nowhere"], "there is no directory"),
            (&["--dir", "nowhere"], "there is no directory"),
        ] {
            let ran = world.run(arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments:?} {}", ran.stderr);
            assert!(ran.stderr.contains(said), "{arguments:?} {}", ran.stderr);
        }
    }

    #[test]
    fn with_json_an_error_is_a_document_too() {
        let world = World::new().skill("one", "a").file("bad.toml", "x = 1\n");
        for (arguments, error, hint) in [
            (&["show", "on", "--dir", "skills"][..], "there is no skill `on`", "`one`"),
            (&["read", "one", "x", "--dir", "skills"], "`x`", "`prowess show one"),
            (&["list", "--dir", "nowhere"], "there is no directory `nowhere`", ""),
            (&["check", "nothing"], "`nothing` is neither", "`prowess list`"),
            (&["config", "zzzzzz"], "there is no setting `zzzzzz`", "`prowess config`"),
            (&["list", "--config", "bad.toml"], "bad.toml:1: ", ""),
            (&["list", "--jason"], "--jason", "--json"),
            (&["undo"], "nothing to undo", ""),
            (&["rule", "zzzzzz"], "there is no rule `zzzzzz`", "`prowess rule`"),
        ] {
            let plain = world.run(arguments);
            let ran = world.run(arguments.iter().chain(&["--json"]));
            assert_eq!((ran.code, &ran.stderr), (plain.code, &plain.stderr), "{arguments:?}");
            let document = ran.json();
            let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
            assert!(text("error").contains(error), "{arguments:?} {document:#}");
            assert!(text("hint").contains(hint), "{arguments:?} {document:#}");
        }
    }

    #[test]
    fn a_hint_can_be_typed_as_it_is() {
        let script = "---\nname: off\ndescription: a\ntype: script\nstatus: disabled\n---\n\n```sh\ntrue\n```\n";
        let world = World::new()
            .skill("one", "a")
            .document("off", script)
            .folder("my skills")
            .file("own.toml", "");
        let own =
            ["--dir", "skills", "--dir", "my skills", "--preset", "claude", "--config", "own.toml"];
        let typed = "--dir skills --dir 'my skills' --preset claude --config own.toml`";
        for (arguments, hint) in [
            (&["enable", "zzzzzz"][..], "`prowess list "),
            (&["show", "zzzzzz"], "`prowess list "),
            (&["run", "zzzzzz"], "`prowess list "),
            (&["run", "zzzzzz", "--json"], "`prowess list "),
            (&["find", "zzzzzz"], "`prowess list "),
            (&["read", "one", "zzzzzz"], "`prowess show one "),
            (&["run", "off"], "`prowess enable off "),
            (&["tool", "skill_off"], "`prowess enable off "),
            (&["config", "zzzzzz"], "`prowess config "),
        ] {
            let ran = world.run(arguments.iter().chain(&own));
            let said = format!("{}{}", ran.stdout(), ran.stderr);
            let documented = if arguments.contains(&"--json") { 2 } else { 1 };
            let found = said.matches(&format!("{hint}{typed}")).count();
            assert_eq!(found, documented, "{arguments:?} {said}");
        }
        let script = "---\nname: greet\ndescription: a\ntype: script\nrequires_approval: true\n---\n\n```sh\necho \"$PARAM_WHO\"\n```\n";
        let world =
            world.document("greet", script).file("skills/one/scripts/a.sh", "echo \"$@\"\n");
        let refused = world.run(["--dir", "skills", "run", "greet", "who=Ada L"]);
        let command = "prowess --dir skills run greet 'who=Ada L' --yes";
        assert!(
            refused.stderr.contains(&format!("hint: use `{command}`, or")),
            "{}",
            refused.stderr
        );
        let typed = format!("prowess() {{ \"$0\" \"$@\"; }}; {command}");
        assert_eq!(world.run_script(&typed).stdout(), "Ada L\n");
        let asks = "[policy]\napprovals = \"always\"\n";
        let world = world.file("home/.config/prowess/prowess.toml", asks);
        let given = ["run", "one", "--dir", "skills", "--script", "scripts/a.sh", "--", "x", "y z"];
        let refused = world.run(given).stderr;
        let command = "prowess run one --dir skills --script scripts/a.sh --yes -- x 'y z'";
        assert!(refused.contains(&format!("hint: use `{command}`, or")), "{refused}");
        let plain = world.run(["show", "zzzzzz"]).stderr;
        assert!(plain.contains("`prowess list` lists"), "{plain}");
    }

    #[test]
    fn quiet_leaves_only_the_data() {
        let world = World::new().skill("good", "Stays");
        let (loud, quiet) =
            (world.run(["list", "--dir", "skills"]), world.run(["list", "--dir", "skills", "-q"]));
        assert_eq!(quiet.stdout(), loud.stdout());
        assert_eq!((loud.stderr.is_empty(), &*quiet.stderr), (false, ""));
        let ran = world.run(["tool", "-q", "execute_command", r#"{"command": "cat missing"}"#]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("missing: No such file"), "{}", ran.stderr);
    }

    #[test]
    fn colours_come_only_where_they_are_asked_for() {
        let world = good_and_bad();
        let plain = world.run(["list", "--dir", "skills"]);
        assert!(!plain.stdout().contains('\x1b') && !plain.stderr.contains('\x1b'));
        let coloured = world.run(["list", "--dir", "skills", "--color", "always"]);
        assert!(coloured.stdout().contains('\x1b') && coloured.stderr.contains('\x1b'));
    }

    #[test]
    fn the_same_input_gives_the_same_bytes() {
        let mut world = World::new();
        for number in 0..300 {
            let name = format!("skill-{number}");
            world = match number % 7 {
                0 => world.document(&name, "---\nname: [broken\n---\n"),
                1 => world.skill(&name, "One of many").skill_in("others", &name, "Another"),
                _ => world.skill(&name, "One of many"),
            };
        }
        let run = || world.run(["list", "--json", "--dir", "skills", "--dir", "others"]);
        let first = run();
        assert_eq!(first.said().names().len(), 257 + 43);
        assert_eq!(run().stdout(), first.stdout());
        let check = || world.run(["check", "skills", "--json"]);
        assert_eq!(check().stdout(), check().stdout());
    }

    #[test]
    fn quiet_is_quiet_about_findings_too() {
        let world = good_and_bad().folder("empty");
        for arguments in [
            &["list", "--dir", "skills", "--dir", "nowhere"][..],
            &["list", "--dir", "empty"],
            &["list"],
        ] {
            let loud = world.run(arguments);
            let quiet = world.run(arguments.iter().chain(&["-q"]));
            assert_eq!((quiet.code, quiet.stdout()), (Some(0), loud.stdout()), "{arguments:?}");
            assert_eq!((loud.stderr.is_empty(), &*quiet.stderr), (false, ""), "{arguments:?}");
        }
    }
}

mod the_command_list_shows_what_loads {
    use super::*;

    #[test]
    fn in_a_pipe_each_skill_is_one_line() {
        let long = "Brews coffee. ".repeat(30);
        let world = World::new().skill("brew-coffee", long.trim()).skill("tea", "Steeps tea");
        let listed = world.run(["list", "--dir", "skills"]);
        assert_eq!(listed.stdout(), format!("brew-coffee\t{}\ntea\tSteeps tea\n", long.trim()));
        let found = world.run(["find", "coffee", "--dir", "skills"]);
        let fields: Vec<&str> = found.stdout().trim_end_matches('\n').split('\t').collect();
        assert_eq!((fields[0], fields[3]), ("brew-coffee", long.trim()), "{}", found.stdout());
        assert!(fields[1].ends_with('%'), "{}", found.stdout());
        let seen = world.run_at_terminal("", "list --dir skills");
        assert!(seen.stdout().contains("…") && !seen.stdout().contains('\t'), "{}", seen.stdout());
    }

    #[test]
    fn list_exits_0_although_a_skill_was_left_out() {
        let ran = good_and_bad().run(["list", "--dir", "skills"]);
        assert_eq!(ran.code, Some(0));
        assert_eq!(ran.stdout(), "good\tStays\n");
        assert!(ran.stderr.contains("skills/bad/SKILL.md:1"), "{}", ran.stderr);
        assert!(ran.stderr.contains("error[description-missing]"), "{}", ran.stderr);
        assert!(ran.stderr.contains("2 skills, 1 of them left out (bad)"), "{}", ran.stderr);
    }

    #[test]
    fn list_exits_2_when_no_directory_could_be_read() {
        let world = World::new().file("plain", "x").skill("one", "a");
        for more in [&["--json"][..], &[]] {
            let ran = world.run([&["list", "--dir", "plain"], more].concat());
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        }
        assert_eq!(world.run(["list", "--dir", "skills", "--dir", "plain"]).code, Some(0));
    }

    #[test]
    fn what_is_not_included_is_not_said_to_be_missing() {
        let world = World::new().skill("one", "a");
        let ran = world.run(["list", "--dir", "skills", "--include", "zzz"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), ""));
        assert!(ran.stderr.contains("there is no skill `zzz` to include"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("no folder with"), "{}", ran.stderr);
    }

    #[test]
    fn a_name_in_the_place_of_a_directory_is_pointed_to_show() {
        let world = World::new().skill("one", "a");
        let ran = world.run(["list", "pdf"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("`prowess show pdf`"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`prowess find pdf`"), "{}", ran.stderr);
        let near = world.run(["list", "skill"]);
        assert!(near.stderr.contains("did you mean `skills`?"), "{}", near.stderr);
        assert!(near.stderr.contains("`prowess find skill`"), "{}", near.stderr);
        let words = world.run(["list", "make", "a pdf"]);
        assert_eq!((words.code, words.stdout()), (Some(2), ""));
        assert!(words.stderr.contains("`prowess find make 'a pdf'`"), "{}", words.stderr);
    }

    #[test]
    fn the_fields_of_a_listed_skill_are_stable() {
        let world = good_and_bad().file("skills/good/run.sh", "true\n");
        let said = world.list();
        assert_eq!(keys(&said.0), ["skills", "findings"]);
        let skill = said.skill("good");
        let fields = [
            "name",
            "address",
            "description",
            "type",
            "status",
            "scope",
            "path",
            "tags",
            "resources",
            "hidden_by",
        ];
        assert_eq!(keys(skill), fields);
        assert_eq!(
            *skill,
            json!({
                "name": "good", "address": "good", "description": "Stays", "type": "instruction", "status": "active",
                "scope": "project", "path": "skills/good/SKILL.md", "tags": [],
                "resources": [{ "path": "run.sh", "kind": "script", "size": 5 }], "hidden_by": null,
            })
        );
        let finding = said.finding("description-missing");
        assert_eq!(keys(finding), ["path", "line", "rule", "severity", "message", "hint"]);
    }

    #[test]
    fn without_a_directory_the_bundled_skills_are_listed_and_that_is_said() {
        let ran = World::new().run(["list"]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout().lines().any(|it| it.starts_with("create-pr\t")), "{}", ran.stdout());
        assert!(ran.stderr.contains("bundled skills"), "{}", ran.stderr);
        let tool = |name: &str, input: &str| World::new().run(["tool", name, input]).stderr;
        let used = tool("use_skill", "{\"name\": \"create-pr\"}");
        assert!(used.contains("bundled skills"), "{used}");
        assert_eq!(tool("file_operations", "{\"operation\": \"list\", \"path\": \".\"}"), "");
    }

    #[test]
    fn a_skill_is_one_line_of_text() {
        let text = "---\nname: lines\ndescription: |\n  one\n  two\n---\n";
        let ran = World::new().document("lines", text).run(["list", "--dir", "skills"]);
        assert_eq!(ran.stdout(), "lines\tone two\n");
        for status in ["draft", "disabled"] {
            let text = format!("---\nname: x\ndescription: d\nstatus: {status}\n---\n");
            let ran = World::new().document("x", text).run(["list", "--dir", "skills"]);
            assert_eq!(ran.stdout(), format!("x\t({status}) d\n"));
        }
    }

    #[test]
    fn an_empty_directory_is_listed_with_what_to_try() {
        let world = good_and_bad().folder("empty");
        let ran = world.run(["list", "--dir", "empty"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), ""));
        assert!(ran.stderr.contains("no folder with a `SKILL.md`"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("--depth"), "{}", ran.stderr);
        let ran = world.run(["list", "--dir", "skills"]);
        assert!(!ran.stderr.contains("no folder with"), "{}", ran.stderr);
    }

    #[test]
    fn errors_come_before_warnings() {
        let mut world = World::new().document("zzz", "no frontmatter");
        for number in 0..20 {
            let text =
                "---\nname: Odd\ndescription: a\n---\n".replace("Odd", &format!("Odd{number}"));
            world = world.document(&format!("odd-{number}"), text);
        }
        let ran = world.run(["list", "--dir", "skills"]);
        let first = ran.stderr.lines().next().unwrap();
        assert!(first.starts_with("error[frontmatter-missing]"), "{}", ran.stderr);
        assert!(ran.stderr.contains("warning[name-case]"), "{}", ran.stderr);
        assert!(ran.stderr.contains("11 more findings"), "{}", ran.stderr);
    }
}

mod nothing_is_left_out_without_a_word {
    use super::*;

    fn large() -> World {
        World::new()
            .skill_in("home/.claude/skills", "good", "Stays here for good")
            .skill_in("home/.claude/skills", "pptx", "Makes slides")
            .sparse("home/.claude/skills/pptx/schemas.bin", 3_000_000)
            .file("prowess.toml", "[skill]\nmax_skill_size = \"2 MB\"\n")
    }

    #[test]
    fn a_skill_that_was_left_out_is_named_with_the_reason() {
        let world = large();
        for arguments in [
            &["show", "pptx"][..],
            &["read", "pptx", "notes.md"],
            &["run", "pptx"],
            &["lab", "pptx"],
            &["show", "home/.claude/skills/pptx/SKILL.md"],
        ] {
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(1), "{arguments:?}");
            let said = format!("{}{}", ran.stdout(), ran.stderr);
            assert!(said.contains("was left out") && said.contains("more than 2000000"), "{said}");
            assert!(!said.contains("there is no skill"), "{said}");
        }
        for arguments in [
            &["find", "good"][..],
            &["catalog"],
            &["prompt", "make slides"],
            &["list", "--short"],
            &["ask", "hello", "--dry-run"],
        ] {
            let ran = world.run(arguments);
            assert_eq!(ran.stderr.matches("1 skill left out: `pptx`").count(), 1, "{}", ran.stderr);
            assert!(ran.stderr.contains("more than 2000000"), "{}", ran.stderr);
        }
        let quiet = world.run(["find", "good", "-q"]);
        assert_eq!((quiet.code, &*quiet.stderr), (Some(0), ""));
    }

    #[test]
    fn the_same_finding_about_many_files_of_a_skill_is_one() {
        let mut world = World::new().skill("fonts", "Brings fonts").skill("other", "Brings one");
        for number in 0..25 {
            world = world.sparse(&format!("skills/fonts/f/{number}.ttf"), 2000);
        }
        let world = world.sparse("skills/other/a.ttf", 2000);
        let limits = ["--max-file-size", "1000"];
        for arguments in [&["list", "skills"][..], &["check", "skills"]] {
            let ran = world.run(arguments.iter().chain(&limits));
            let said = format!("{}{}", ran.stdout(), ran.stderr);
            assert_eq!(said.matches("warning[resource-too-large]").count(), 2, "{said}");
            assert_eq!(said.matches("24 more files of this skill").count(), 1, "{said}");
        }
        let all = world.run(["list", "skills", "--json"].iter().chain(&limits)).said();
        assert_eq!(all.rules().len(), 26);
    }

    #[test]
    fn what_list_and_check_weigh_differently_is_explained() {
        let long = "Does a lot. ".repeat(100);
        let world = World::new().skill("long", &long).skill("good", "Stays");
        let list = world.run(["list", "skills"]);
        assert!(list.stderr.contains("warning[description-too-long]"), "{}", list.stderr);
        assert!(list.stderr.contains("`prowess check` applies the specification"));
        let check = world.run(["check", "skills"]);
        assert!(check.stdout().contains("error[description-too-long]"), "{}", check.stdout());
        let well = world.run(["list", "skills/good"]);
        assert!(!well.stderr.contains("prowess check"), "{}", well.stderr);
    }
}

mod commands_answer_to_the_names_that_people_try {
    use super::*;

    #[test]
    fn common_names_of_other_programs_are_understood() {
        let world = World::new().skill("brew", "Brews coffee");
        for (typed, meant) in [
            (&["ls"][..], &["list"][..]),
            (&["cat", "brew"], &["show", "brew"]),
            (&["lint"], &["check"]),
            (&["validate", "skills"], &["check", "skills"]),
            (&["rm", "--help"], &["remove", "--help"]),
            (&["uninstall", "--help"], &["remove", "--help"]),
            (&["install", "--help"], &["add", "--help"]),
            (&["upgrade", "--help"], &["update", "--help"]),
            (&["serve", "--help"], &["mcp", "--help"]),
        ] {
            let (one, other) = (world.run(typed), world.run(meant));
            assert_eq!(one.code, Some(0), "{typed:?} {}", one.stderr);
            assert_eq!(one.stdout(), other.stdout(), "{typed:?}");
            assert_eq!(one.stderr, other.stderr, "{typed:?}");
        }
    }

    #[test]
    fn names_alone_are_printed_for_pipes() {
        let world = World::new().skill("brew", "Brews coffee").skill("steep", "Steeps tea");
        assert_eq!(world.run(["list", "--short"]).stdout(), "brew\nsteep\n");
        assert_eq!(world.run(["find", "--short", "coffee"]).stdout(), "brew\n");
        assert_eq!(world.run(["list", "--short", "--json"]).code, Some(2));
    }

    #[test]
    fn directories_can_be_typed_without_a_flag() {
        let world = World::new()
            .skill("one", "First")
            .skill_in("others", "two", "Second")
            .skill_in("others/.claude/skills", "three", "Third");
        let names = |arguments: &[&str]| world.run(arguments).said().names().join(" ");
        assert_eq!(names(&["list", "others", "--json"]), "three two");
        assert_eq!(names(&["list", "others", "skills", "--json"]), "one three two");
        assert_eq!(names(&["list", "others/two/SKILL.md", "--json"]), "two");
        let catalog = world.run(["catalog", "others"]);
        assert!(catalog.stdout().contains("- two: Second"), "{}", catalog.stdout());
        assert!(!catalog.stdout().contains("First"), "{}", catalog.stdout());
        let lab = world.run(["lab", "./others", "--json"]).json();
        assert_eq!(lab["skills"], 2, "{lab}");
        let doctor = world.run(["doctor", "./others", "--json"]).json();
        let found = doctor["skills"].as_array().unwrap().iter();
        assert_eq!(found.filter(|it| it["path"].as_str().unwrap().contains("others")).count(), 2);
        for arguments in [&["list", "nope"][..], &["catalog", "nope"]] {
            assert_eq!(world.run(arguments).code, Some(2), "{arguments:?}");
        }
    }
}

mod the_command_check_says_what_is_wrong {
    use super::*;

    #[test]
    fn check_exits_1_on_an_error() {
        let (code, said) = good_and_bad().check("skills", &[]);
        assert_eq!((code, &said.0["skills"]), (Some(1), &json!(2)));
        let finding = said.finding("description-missing");
        assert_eq!(keys(finding), ["path", "line", "rule", "severity", "message", "hint"]);
        assert_eq!(finding["path"], "skills/bad/SKILL.md");
        assert_eq!((&finding["line"], &finding["severity"]), (&json!(1), &json!("error")));
        assert!(!finding["message"].as_str().unwrap().is_empty());
        assert!(!finding["hint"].as_str().unwrap().is_empty());
    }

    #[test]
    fn check_exits_0_on_warnings_alone() {
        let text = "---\nname: odd\ndescription: a\nx-colour: green\n---\n\nText\n";
        let world = World::new().document("odd", text);
        let (code, said) = world.check("skills", &[]);
        assert_eq!(code, Some(0));
        assert_eq!(said.finding("unknown-field")["severity"], "warning");
        let ran = world.run(["check", "skills"]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stderr.contains("1 warning"), "{}", ran.stderr);
    }

    #[test]
    fn check_exits_2_when_there_is_nothing_to_check() {
        let world = World::new().folder("empty").file("other/notes.md", "n");
        for path in ["empty", "other", "nowhere", "skills"] {
            let ran = world.run(["check", path]);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{path}");
            assert!(ran.stderr.contains(path), "{}", ran.stderr);
            let ran = world.run(["check", path, "--json"]);
            assert_eq!(ran.code, Some(2));
            assert!(ran.json()["error"].as_str().unwrap().contains(path), "{}", ran.stdout());
        }
    }

    #[test]
    fn check_takes_the_name_of_a_skill() {
        let world = World::new()
            .skill_in(".claude/skills", "good", "Stays")
            .file(".claude/skills/bad/SKILL.md", "---\nname: bad\n---\n\nDo it.\n");
        let good = world.run(["check", "good"]);
        assert_eq!(good.code, Some(0), "{}", good.stderr);
        assert!(
            good.stderr.contains("checking `good` in `.claude/skills/good`"),
            "{}",
            good.stderr
        );
        let (code, said) = world.check("bad", &[]);
        assert_eq!((code, said.rules()), (Some(1), vec!["description-missing"]));
        let neither = world.run(["check", "godd"]);
        assert_eq!((neither.code, neither.stdout()), (Some(2), ""));
        assert!(
            neither.stderr.contains("`godd` is neither a path nor a skill")
                && neither.stderr.contains("did you mean `good`?"),
            "{}",
            neither.stderr
        );
        let world = world.file("good/SKILL.md", "---\nname: good\n---\n\nDo it.\n");
        let (code, said) = world.check("good", &[]);
        assert_eq!((code, said.rules()), (Some(1), vec!["description-missing"]));
    }

    #[test]
    fn check_takes_a_skill_its_file_or_a_folder_of_skills() {
        let world = good_and_bad();
        for (path, code, skills) in [
            ("skills/good", 0, 1),
            ("skills/good/SKILL.md", 0, 1),
            ("skills/bad/SKILL.md", 1, 1),
            ("skills", 1, 2),
        ] {
            let (exit, said) = world.check(path, &[]);
            assert_eq!((exit, &said.0["skills"]), (Some(code), &json!(skills)), "{path}");
        }
        let (code, said) = world.check("skills/good", &["skills/bad"]);
        assert_eq!((code, &said.0["skills"]), (Some(1), &json!(2)));
    }

    #[test]
    fn a_body_in_any_language_can_be_checked() {
        let text = "---\nname: words\ndescription: Use when asked\n---\n\nGrüße, 技能 🦀 …\n\nSiehe [hier](references/größe.md) und `ä`.\n";
        let (code, said) = World::new().document("words", text).check("skills", &[]);
        assert_eq!((code, said.rules()), (Some(0), vec!["reference-missing"]));
        assert_eq!(said.finding("reference-missing")["line"], 8);
    }

    #[test]
    fn a_profile_decides_how_much_a_finding_weighs() {
        let world = World::new().document("Odd", "---\nname: Odd\ndescription: a\n---\n\nText\n");
        let weight = |profile: &str| {
            let (code, said) = world.check("skills", &["--profile", profile]);
            (code, said.finding("name-case")["severity"].as_str().unwrap().to_owned())
        };
        assert_eq!(weight("spec"), (Some(1), "error".to_owned()));
        assert_eq!(weight("reference"), (Some(1), "error".to_owned()));
        assert_eq!(weight("lenient"), (Some(0), "warning".to_owned()));
    }

    #[test]
    fn the_line_at_fault_is_shown() {
        let text = "---\nname: odd\ndescription: a\ntags: one\n---\n";
        let ran = World::new().document("odd", text).run(["check", "skills"]);
        assert_eq!(ran.code, Some(1));
        for part in ["error[tags-not-list]", "skills/odd/SKILL.md:4", "tags: one"] {
            assert!(ran.stdout().contains(part), "{}", ran.stdout());
        }
    }

    #[test]
    fn a_dangerous_script_is_told_at_its_line() {
        let skill = |name: &str, kind: &str| {
            format!(
                "---\nname: {name}\ndescription: Cleans up\ntype: {kind}\n---\n\n# x\n\n\n```sh\nset -e\nrm -rf /\n```\n\n```sh\nmkfs.ext4 /dev/sda\n```\n"
            )
        };
        let world = World::new()
            .document("clean", skill("clean", "script"))
            .document("text", skill("text", "instruction"));
        let (code, said) = world.check("skills", &[]);
        let dangers = said.findings().iter().filter(|it| it["rule"] == "script-dangerous").count();
        assert_eq!((code, dangers), (Some(1), 1), "{:?}", said.findings());
        let finding = said.finding("script-dangerous");
        assert_eq!((&finding["line"], &finding["severity"]), (&json!(12), &json!("error")));
        assert!(finding["path"].as_str().unwrap().contains("clean"), "{finding}");
        let message = finding["message"].as_str().unwrap();
        assert!(message.contains("deletes essential files"), "{message}");
        let ran = world.run(["check", "skills", "--profile", "lenient"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stdout());
        for part in ["warning[script-dangerous]", "clean/SKILL.md:12", "rm -rf /"] {
            assert!(ran.stdout().contains(part), "{}", ran.stdout());
        }
        let reference = world.run(["check", "skills", "--profile", "reference"]);
        assert!(!reference.stdout().contains("dangerous"), "{}", reference.stdout());
    }

    #[test]
    fn a_line_of_any_length_can_be_shown() {
        for letter in ["x", "é", "技"] {
            let mut world = World::new();
            for length in 150..=170 {
                let (name, tags) = (format!("skill-{length}"), letter.repeat(length - 6));
                let text =
                    format!("---\nname: {name}\ndescription: a\ntags: {tags}\n---\n\nText\n");
                world = world.document(&name, text);
            }
            let ran = world.run(["check", "skills"]);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            let shown: Vec<&str> =
                ran.stdout().lines().filter(|it| it.contains("| tags: ")).collect();
            assert_eq!(shown.len(), 21, "{}", ran.stdout());
            assert!(shown.iter().all(|it| it.ends_with(letter)), "{}", ran.stdout());
        }
    }

    #[test]
    fn a_fault_far_behind_in_a_long_line_can_be_shown() {
        let line =
            |letter: &str, length: usize| format!("{}[a](b/{length}.md)", letter.repeat(length));
        for letter in ["x", "é"] {
            let lines: Vec<String> = (140..=170).map(|it| line(letter, it)).collect();
            let text = format!("---\nname: one\ndescription: a\n---\n\n{}\n", lines.join("\n\n"));
            let ran = World::new().document("one", text).run(["check", "skills"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let part = letter.repeat(30);
            // The first of them is shown twice: the instructions are too long as well.
            let shown = ran.stdout().lines().filter(|it| it.contains(&part));
            let shown: BTreeSet<&str> = shown.collect();
            assert_eq!(shown.len(), lines.len(), "{}", ran.stdout());
        }
    }

    #[test]
    fn check_without_a_path_takes_the_configured_directories() {
        let ran = good_and_bad().run(["check", "--json", "--dir", "skills"]);
        assert_eq!((ran.code, &ran.json()["skills"]), (Some(1), &json!(2)));
    }

    #[test]
    fn a_link_from_one_checked_path_into_another_is_followed() {
        let world = World::new()
            .skill_in("a", "one", "Use when A")
            .skill_in("b", "two", "Use when B")
            .link("a/linked", "../b/two");
        for arguments in [&["a", "b"][..], &["b", "a"], &["--dir", "a", "--dir", "b"]] {
            let ran = world.run(["check", "--json"].iter().chain(arguments));
            let said = ran.said();
            assert_eq!((ran.code, said.rules()), (Some(0), vec![]), "{arguments:?}");
            assert_eq!(said.0["skills"], 2, "{arguments:?}");
        }
        let (code, said) = world.check("a", &[]);
        assert_eq!((code, said.rules()), (Some(1), vec!["link-escapes"]));
    }

    #[test]
    fn what_is_named_twice_is_checked_once() {
        let world = good_and_bad().file("skills/good/large.bin", vec![0; 200_000]);
        world.write("prowess.toml", "[skill]\nmax_file_size = \"100 KiB\"\n");
        let once = world.check("skills", &[]).1;
        assert_eq!((&once.0["skills"], once.rules().len()), (&json!(2), 4), "{once:?}");
        for arguments in [
            &["skills", "skills"][..],
            &["skills", "skills/good"],
            &["skills/bad", "skills"],
            &["skills/good/SKILL.md", "skills/bad", "skills/good"],
            &["--dir", "skills", "--dir", "skills"],
        ] {
            let said = world.run(["check", "--json"].iter().chain(arguments)).said();
            assert_eq!(said.0, once.0, "{arguments:?}");
        }
    }

    #[test]
    fn a_file_that_is_no_skill_md_is_nothing_to_check() {
        let world = good_and_bad().file("notes.txt", "n").file("skills/good/notes.txt", "n");
        for path in ["notes.txt", "skills/good/notes.txt"] {
            let ran = world.run(["check", path]);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{path}");
            assert!(ran.stderr.contains(path) && ran.stderr.contains("SKILL.md"), "{}", ran.stderr);
        }
    }

    #[test]
    fn relative_paths_to_check_begin_where_cwd_says() {
        let world = good_and_bad().skill_in("project/skills", "other", "a");
        let (code, said) = world.check("skills", &["--cwd", "project"]);
        assert_eq!((code, &said.0["skills"]), (Some(0), &json!(1)));
        let (code, said) = world.check("skills/other", &["--cwd", "project"]);
        assert_eq!((code, &said.0["skills"]), (Some(0), &json!(1)));
        let ran = world.run(["check", "skills/good", "--cwd", "project"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
    }
}

mod the_command_show_gives_as_much_as_was_asked_for {
    use super::*;

    fn long() -> World {
        let paragraphs: String =
            (0..100).map(|it| format!("Paragraph {it} has a few words to say.\n\n")).collect();
        let text =
            format!("---\nname: long\ndescription: Says much\n---\n\n{paragraphs}The end.\n");
        World::new().document("long", text).file("skills/long/scripts/run.sh", "true\n")
    }

    fn shown(arguments: &[&str]) -> Json {
        let ran = long().run(["show", "long", "--json", "--dir", "skills"].iter().chain(arguments));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.json()
    }

    #[test]
    fn a_level_decides_how_much_is_shown() {
        let text = |level: &str| {
            let shown = shown(&["--level", level]);
            assert_eq!(shown["level"], level);
            let text = shown["text"].as_str().unwrap().to_owned();
            assert!(text.contains("long") && text.contains("Says much"), "{text}");
            text
        };
        let (metadata, brief, full) = (text("metadata"), text("brief"), text("full"));
        assert!(!metadata.contains("Paragraph"), "{metadata}");
        assert!(brief.contains("Paragraph 0 ") && brief.contains("truncated"), "{brief}");
        assert!(!brief.contains("The end."), "{brief}");
        assert!(full.contains("Paragraph 0 ") && full.contains("\nThe end.\n"), "{full}");
        assert_eq!(shown(&[])["level"], "full");
    }

    #[test]
    fn a_confidence_stands_for_a_level() {
        for (confidence, level) in [
            ("0.1", "metadata"),
            ("0.149", "metadata"),
            ("0.15", "brief"),
            ("0.5", "brief"),
            ("0.7", "full"),
            ("1", "full"),
            ("-1", "metadata"),
            ("nan", "metadata"),
        ] {
            assert_eq!(shown(&["--confidence", confidence])["level"], level, "{confidence}");
        }
    }

    #[test]
    fn the_fields_of_a_shown_skill_are_stable() {
        let shown = shown(&[]);
        assert_eq!(
            keys(&shown),
            ["name", "level", "tokens", "counted", "text", "resources", "needs", "status"]
        );
        assert_eq!(shown["name"], "long");
        assert!(shown["tokens"].as_u64().unwrap() > 500);
        let resource = json!({ "path": "scripts/run.sh", "kind": "script", "size": 5 });
        assert_eq!(shown["resources"], json!([resource]));
    }

    #[test]
    fn a_skill_that_is_not_in_use_is_shown_as_such() {
        let world = World::new()
            .document("off", "---\nname: off\ndescription: a\nstatus: disabled\n---\n\nb\n");
        let ran = world.run(["show", "off", "--dir", "skills"]);
        assert_eq!(ran.code, Some(0));
        let note = "note: `off` is disabled; `prowess enable off --dir skills` enables it";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        let json = world.run(["show", "off", "--dir", "skills", "--json"]).json();
        assert_eq!(json["status"], "disabled");
    }

    #[test]
    fn a_skill_that_is_not_there_exits_1_with_the_nearest_name() {
        let world = World::new().skill("deploy-staging", "a").skill("run-tests", "b");
        for arguments in [&["show", "deploy-stagin"][..], &["read", "deploy-stagin", "a.md"]] {
            for more in [&["--dir", "skills"][..], &["--dir", "skills", "--json"]] {
                let ran = world.run(arguments.iter().chain(more));
                assert_eq!(ran.code, Some(1));
                assert!(ran.stderr.contains("`deploy-stagin`"), "{}", ran.stderr);
                assert!(ran.stderr.contains("`deploy-staging`"), "{}", ran.stderr);
                assert!(!ran.stderr.contains("run-tests"), "{}", ran.stderr);
            }
        }
        let world = World::new().document("Broken", "no frontmatter");
        for arguments in
            [["show", "brokn"], ["show", "broken"], ["check", "broken"], ["run", "brokn"]]
        {
            let ran = world.run(arguments.iter().chain(&["--dir", "skills"]));
            assert!(ran.stderr.contains("did you mean `Broken`?"), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_skill_that_is_left_out_cannot_be_shown() {
        let world = good_and_bad();
        let ran = world.run(["show", "bad", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""));
        let hint = "hint: `prowess read bad SKILL.md --dir skills` prints its file";
        assert!(ran.stderr.contains("was left out") && ran.stderr.contains(hint), "{}", ran.stderr);
        let read = world.run(["read", "bad", "SKILL.md", "--dir", "skills"]);
        assert_eq!((read.code, read.stdout()), (Some(0), "---\nname: bad\n---\n"));
    }

    #[test]
    fn a_brief_is_brief_whatever_the_body_is() {
        let properties: Vec<String> = (0..2000)
            .map(|it| {
                format!("\"p{it}\": {{\"type\": \"string\", \"description\": \"Says more\"}}")
            })
            .collect();
        let schema =
            format!("{{\"type\": \"object\", \"properties\": {{{}}}}}", properties.join(", "));
        for (what, body) in [
            ("schema", format!("Text.\n\n## Parameters\n\n```json\n{schema}\n```\n")),
            ("paragraph", "word ".repeat(20_000)),
            ("lines with CRLF", "A few words.\r\n\r\n".repeat(2000)),
            ("blank lines", format!("{}Text.\n", "a\n\n".repeat(20_000))),
            ("another script", "\u{6280}\u{80FD}".repeat(20_000)),
        ] {
            let text = format!("---\nname: wide\ndescription: Says much\n---\n\n{body}\n");
            let world = World::new().document("wide", text);
            let ran = world.run(["show", "wide", "--level", "brief", "--json", "--dir", "skills"]);
            let shown = ran.json();
            let text = shown["text"].as_str().unwrap();
            assert!(shown["tokens"].as_u64().unwrap() < 400, "{what}: {}", shown["tokens"]);
            assert!(text.len() < 4000, "{what}: {} bytes", text.len());
            assert!(text.contains("Says much") && text.contains("truncated"), "{what}: {text}");
        }
    }
}

mod the_command_read_prints_one_file_as_it_is {
    use super::*;

    #[test]
    fn a_resource_is_printed_byte_for_byte() {
        let bytes: Vec<u8> = (0..=255).collect();
        let world = World::new().skill("one", "a").file("skills/one/assets/all.bin", &bytes);
        for path in ["assets/all.bin", "./assets/all.bin"] {
            let ran = world.run(["read", "one", path, "--dir", "skills"]);
            assert_eq!((ran.code, &ran.out), (Some(0), &bytes));
            let ran = world.run(["read", "skills/one", path]);
            assert_eq!((ran.code, &ran.out), (Some(0), &bytes));
        }
    }

    #[test]
    fn read_prints_one_document_with_json() {
        let world = World::new().skill("one", "a").file("skills/one/a.txt", "\u{1b}[2J\n");
        let world = world.file("skills/one/b.bin", b"\xff\x00");
        let read = |path: &str| {
            let ran = world.run(["read", "one", path, "--json", "--dir", "skills"]);
            assert!(!ran.stdout().contains('\u{1b}'), "{}", ran.stdout());
            ran.json()
        };
        let text = read("a.txt");
        assert_eq!((&text["encoding"], &text["content"]), (&json!("utf-8"), &json!("\u{1b}[2J\n")));
        let bytes = read("b.bin");
        assert_eq!((&bytes["encoding"], &bytes["content"]), (&json!("base64"), &json!("/wA=")));
        assert_eq!(
            (&bytes["name"], &bytes["path"], &bytes["size"]),
            (&json!("one"), &json!("b.bin"), &json!(2))
        );
    }

    #[test]
    fn a_resource_that_is_not_there_exits_1_with_the_nearest_path() {
        let world = World::new().skill("one", "a").file("skills/one/scripts/run.sh", "true\n");
        for (path, hint) in [
            ("SCRIPTS/Run.sh", "did you mean `scripts/run.sh`?"),
            ("scripts", "it is a folder, with files such as `scripts/"),
        ] {
            let ran = world.run(["read", "one", path, "--dir", "skills"]);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            assert!(ran.stderr.contains(hint), "{}", ran.stderr);
        }
        let ran = world.run(["read", "one", "scripts/rum.sh", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""));
        assert!(ran.stderr.contains("`scripts/run.sh`"), "{}", ran.stderr);
    }

    #[test]
    fn the_skill_md_is_read_as_it_is() {
        let text = "---\nname: one\ndescription: a\n---\r\n\n# One\n\n";
        let world = World::new().document("one", text);
        for path in ["SKILL.md", "./SKILL.md"] {
            let ran = world.run(["read", "one", path, "--dir", "skills"]);
            assert_eq!((ran.code, ran.stdout()), (Some(0), text));
        }
    }

    #[test]
    fn some_lines_of_a_long_file_are_read() {
        let world = World::new().skill("one", "a").file("skills/one/long.md", "1\r\n2\n3\n\n5");
        let read = |more: &[&str]| {
            world.run(["read", "one", "long.md", "--dir", "skills"].iter().chain(more))
        };
        for (lines, text) in
            [("2-3", "2\n3\n"), ("2:3", "2\n3\n"), ("1", "1\r\n"), ("4-", "\n5"), ("5-99", "5")]
        {
            let ran = read(&["--lines", lines]);
            assert_eq!((ran.code, ran.stdout()), (Some(0), text), "{lines} {}", ran.stderr);
        }
        let document = read(&["--lines", "2-3", "--json"]).json();
        assert_eq!((&document["content"], &document["first_line"]), (&json!("2\n3\n"), &json!(2)));
        let behind = read(&["--lines", "6-7"]);
        assert_eq!((behind.code, behind.stdout()), (Some(1), ""));
        assert!(
            behind.stderr.contains("`long.md` has no line 6: it has 5 lines"),
            "{}",
            behind.stderr
        );
        for bad in ["0-2", "3-2", "a", "-", ""] {
            assert_eq!(read(&[&format!("--lines={bad}")]).code, Some(2), "{bad}");
        }
    }

    #[test]
    fn the_files_of_a_skill_that_was_left_out_can_be_read() {
        let world =
            World::new().document("broken", "no frontmatter\n").file("secret.txt", "secret");
        for name in ["broken", "skills/broken", "skills/broken/SKILL.md"] {
            let ran = world.run(["read", name, "SKILL.md", "--dir", "skills"]);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "no frontmatter\n"), "{}", ran.stderr);
            assert!(
                ran.stderr.contains("was left out: the file has no frontmatter"),
                "{}",
                ran.stderr
            );
        }
        for path in ["../../secret.txt", "missing.md"] {
            let ran = world.run(["read", "broken", path, "--dir", "skills"]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{path}");
            assert!(ran.stderr.contains("was left out"), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_path_that_leaves_the_skill_is_refused() {
        let world = World::new().skill("one", "a").skill("two", "b").file("secret.txt", "secret");
        let secret = world.path("secret.txt");
        for path in [
            "../two/SKILL.md",
            "../../secret.txt",
            "./../../secret.txt",
            "scripts/../../../secret.txt",
            secret.to_str().unwrap(),
            "/etc/passwd",
            "",
            ".",
        ] {
            let ran = world.run(["read", "one", path, "--dir", "skills"]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{path}");
        }
    }
}

mod the_command_new_makes_a_skill_that_is_well {
    use super::*;

    #[test]
    fn a_new_skill_passes_check_and_is_listed() {
        let world = World::new();
        let ran = world.run(["new", "release-notes", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "skills/release-notes/SKILL.md\n"));
        let (code, said) = world.check("skills/release-notes", &[]);
        assert_eq!(code, Some(0));
        assert!(said.findings().iter().all(|it| it["rule"] == "placeholder"), "{said:?}");
        assert_eq!(world.list().names(), ["release-notes"]);
        // Nothing else is left behind.
        assert_eq!(std::fs::read_dir(world.path("skills")).unwrap().count(), 1);
    }

    #[test]
    fn a_given_description_is_kept_to_the_letter() {
        let description = "Does \"this\": that's #1 [of] {many} - when: asked";
        let world = World::new();
        let ran = world.run(["new", "made", "--dir", "skills", "--description", description]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let said = world.list();
        assert_eq!(said.skill("made")["description"], description);
        assert_eq!(said.rules(), [""; 0]);
    }

    #[test]
    fn a_new_skill_reads_well_whatever_it_is_called() {
        for name in ["my-skill", "rotate-keys", "pdf"] {
            let world = World::new();
            assert_eq!(world.run(["new", name, "--dir", "skills"]).code, Some(0));
            let words = name.replace('-', " ");
            let text =
                std::fs::read_to_string(world.path(format!("skills/{name}/SKILL.md"))).unwrap();
            let said =
                format!("description: \"TODO: describe what {words} does, and when to use it.\"\n");
            assert!(text.contains(&said), "{text}");
            for (profile, most) in [("spec", 4), ("reference", 0), ("lenient", 0)] {
                let (code, said) = world.check("skills", &["--profile", profile]);
                assert_eq!(code, Some(0), "{profile} {:#}", said.0);
                assert_eq!(said.rules(), vec!["placeholder"; most], "{profile}");
            }
        }
    }

    #[test]
    fn what_is_there_already_stays_as_it_is() {
        let world = World::new().file("skills/made/notes.md", "mine");
        let ran = world.run(["new", "made", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""));
        assert_eq!(std::fs::read_to_string(world.path("skills/made/notes.md")).unwrap(), "mine");
        assert!(!world.path("skills/made/SKILL.md").exists());
    }

    #[test]
    fn a_bad_name_is_refused_and_nothing_is_written() {
        let world = World::new();
        let long = "a".repeat(65);
        for name in ["Made", "made it", "../made", "made/it", ".made", "a--b", "", "a\nb", &long] {
            let ran = world.run(["new", name, "--dir", "skills"]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{name:?}");
            assert!(ran.stderr.contains("hint"), "{}", ran.stderr);
        }
        // Faults with the same fix are reported once.
        let twice = world.run(["new", "Bad_Name", "--dir", "skills"]).stderr;
        assert_eq!(twice.matches("error").count(), 1, "{twice}");
        assert_eq!(std::fs::read_dir(world.path("skills")).unwrap().count(), 0);
        assert!(!world.path("made").exists());
    }

    #[test]
    fn the_fields_of_a_new_skill_are_stable() {
        let made = World::new().run(["new", "made", "--dir", "skills", "--json"]).json();
        let fields = ["name", "description", "type", "status", "scope", "path", "tags"];
        assert_eq!(keys(&made), [&fields[..], &["requires_approval", "definition"]].concat());
        assert_eq!(made["path"], "skills/made/SKILL.md");
        assert_eq!((&made["type"], &made["status"]), (&json!("instruction"), &json!("active")));
    }
}
