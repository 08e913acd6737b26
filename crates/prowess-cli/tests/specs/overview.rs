//! The output of `prowess` without a command.

use std::fs;

use serde_json::Value as Json;

use crate::world::{Ran, World, program};

/// Runs the program with an empty `PATH`, so that the programs of this machine do not matter.
fn bare(world: &World, arguments: &[&str]) -> Ran {
    world.run_with(&[("PATH", "/nowhere")], arguments)
}

/// Returns the output at a terminal of this size.
fn at_terminal(world: &World, columns: usize, rows: usize, arguments: &str) -> String {
    let line = format!(
        "stty cols {columns} rows {rows}; PATH=/nowhere NO_COLOR=1 {} {arguments}",
        program()
    );
    let ran = world.run_script(&format!("script -qefc '{line}' /dev/null"));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout());
    ran.stdout().replace('\r', "")
}

fn document(name: &str, more: &str) -> String {
    format!("---\nname: {name}\n{more}---\n\nDo it.\n")
}

/// Returns a user with Claude Code and Codex, and a skill of each and of the project.
fn people() -> World {
    World::new()
        .folder("home/.claude")
        .folder("home/.codex")
        .folder(".git")
        .skill_in("home/.claude/skills", "brew-coffee", "Brews coffee")
        .skill_in("home/.codex/skills", "steep-tea", "Steeps tea")
        .skill_in(".agents/skills", "pour-water", "Pours water")
}

/// Returns the block of lines about a directory.
fn block<'a>(said: &'a str, directory: &str) -> &'a str {
    let start =
        said.find(&format!("{directory}  ")).unwrap_or_else(|| panic!("{directory} in {said}"));
    said[start..].split("\n\n").next().unwrap()
}

mod one_screen_shows_every_skill_and_who_loads_it {
    use super::*;

    #[test]
    fn skills_are_grouped_by_directory_with_the_agents_that_load_them() {
        let ran = bare(&people(), &[]);
        let said = ran.stdout();
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(said.starts_with("3 skills in 3 directories\n"), "{said}");
        assert!(said.contains("Installed agents: Claude Code, Codex\n"), "{said}");
        let own =
            "~/.claude/skills  1 skill\n  brew-coffee\n  loaded by Claude Code; not read by Codex";
        assert_eq!(block(said, "~/.claude/skills"), own);
        let project =
            ".agents/skills  1 skill\n  pour-water\n  loaded by Codex; not read by Claude Code";
        assert_eq!(block(said, ".agents/skills"), project);
        assert!(block(said, "~/.codex/skills").contains("steep-tea"), "{said}");
    }

    #[test]
    fn what_becomes_of_a_skill_that_is_not_loaded_as_it_is_comes_with_its_reason() {
        let long = "word ".repeat(250);
        let world = people()
            .folder("home/.config/goose")
            .file(
                "home/.agents/skills/odd/SKILL.md",
                document("odd", "description: Use when: odd\n"),
            )
            .file(
                "home/.agents/skills/long/SKILL.md",
                document("long", &format!("description: {long}\n")),
            )
            .file(
                "home/.claude/skills/secret/SKILL.md",
                document("secret", "description: Hides\ndisable-model-invocation: true\n"),
            )
            .skill_in(".claude/skills", "brew-coffee", "Another one");
        let ran = bare(&world, &[]);
        let said = ran.stdout();
        assert_eq!(ran.code, Some(0), "{said}");
        let line = |name: &str, words: &str| {
            let is_it = |it: &&str| it.contains(&format!(" {name} ")) && it.contains(words);
            assert!(said.lines().any(|it| is_it(&it)), "{name}: {words} in {said}");
        };
        line("odd", "dropped by goose: the frontmatter is not valid YAML");
        line("long", "truncated by Codex: the description has more than 1024 characters");
        line("secret", "loaded, but hidden from the model by Claude Code: it says");
        line(
            "brew-coffee",
            "shadowed by Claude Code: another skill with the same name comes first",
        );
    }

    #[test]
    fn the_screen_and_the_list_count_the_same_skills() {
        let world = people()
            .file("home/.claude/skills/blank/SKILL.md", document("blank", ""))
            .skill_in(".claude/skills", "brew-coffee", "Brews coffee");
        let ran = bare(&world, &[]);
        let head = "5 skills in 4 directories, 1 of them left out (blank), 1 a copy\n";
        assert!(ran.stdout().starts_with(head), "{}", ran.stdout());
        let listed = bare(&world, &["list"]);
        let note = "note: 5 skills, 1 of them left out (blank), 1 a copy\n";
        assert!(listed.stderr.contains(note), "{}", listed.stderr);
        assert!(listed.stderr.contains("note: 5 skills in `"), "{}", listed.stderr);
        assert_eq!(listed.stdout().lines().count(), 3, "{}", listed.stdout());
        let said = bare(&world, &["--json"]).json();
        let skills = said["locations"].as_array().unwrap().iter();
        let skills = skills.flat_map(|it| it["skills"].as_array().unwrap());
        let left_out = skills.filter(|it| it["left_out"] == true).map(|it| &it["name"]);
        assert_eq!(left_out.collect::<Vec<_>>(), ["blank"]);
    }

    #[test]
    fn a_client_that_hides_a_skill_is_said_to_load_it() {
        let odd = document("odd", "description: Use when: odd\n");
        let world = people().file("home/.claude/skills/odd/SKILL.md", odd);
        let said = bare(&world, &[]).stdout().to_owned();
        let block = block(&said, "~/.claude/skills");
        assert!(block.contains("loaded by Claude Code (1 hidden)"), "{said}");
        assert!(block.contains("loaded, but hidden from the model by Claude Code: "), "{said}");
    }

    #[test]
    fn only_what_was_named_is_shown() {
        let world = people().skill_in("others", "grind-beans", "Grinds").folder("empty");
        let home = |path: &str| world.path(format!("home/{path}")).display().to_string();
        let own = bare(&world, &["--dir", &home(".claude/skills")]);
        assert_eq!((own.code, own.stderr.as_str()), (Some(0), ""));
        let said = own.stdout();
        assert!(said.starts_with("1 skill in 1 directory\n"), "{said}");
        assert!(block(said, "~/.claude/skills").contains("loaded by Claude Code"), "{said}");
        let directories = |arguments: &[&str]| -> Vec<String> {
            let said = bare(&world, &[arguments, &["--json"]].concat()).json();
            let all = said["locations"].as_array().unwrap().iter();
            let path = |it: &Json| it["directory"].as_str().unwrap().to_owned();
            let root = world.path("home").parent().unwrap().display().to_string();
            all.map(|it| path(it).replace(&format!("{root}/"), "")).collect()
        };
        assert_eq!(directories(&["--dir", "others"]), ["repo/others"]);
        assert_eq!(directories(&["--dir", "others/grind-beans"]), ["repo/others/grind-beans"]);
        let one = ["--dir", &home(".claude/skills/brew-coffee")];
        assert_eq!(directories(&one), ["home/.claude/skills"]);
        let both = ["--dir", "others", "--dir", ".agents/skills"];
        assert_eq!(directories(&both), ["repo/.agents/skills", "repo/others"]);
        assert_eq!(directories(&["--preset", "claude"]), ["home/.claude/skills"]);
        assert_eq!(directories(&["--include", "steep-tea"]), ["home/.codex/skills"]);
        assert_eq!(directories(&["--exclude", "steep-tea"]).len(), 2);
        let whole = bare(&world, &["--dir", "."]);
        assert_eq!(whole.stdout().matches("pour-water").count(), 1, "{}", whole.stdout());
        let none = bare(&world, &["--dir", "empty"]);
        assert!(none.stdout().starts_with("No skills found in empty\n"), "{}", none.stdout());
        let mistyped = bare(&world, &["others"]);
        assert_eq!((mistyped.code, mistyped.stdout()), (Some(2), ""));
        assert!(mistyped.stderr.contains("`prowess --dir others` shows"), "{}", mistyped.stderr);
    }

    #[test]
    fn a_skill_that_is_not_in_use_is_marked() {
        let world = people()
            .file(
                "home/.codex/skills/old/SKILL.md",
                document("old", "description: a\nmetadata:\n  status: disabled\n"),
            )
            .file(
                "home/.codex/skills/new/SKILL.md",
                document("new", "description: a\nstatus: draft\n"),
            );
        let said = bare(&world, &["--preset", "codex"]);
        let names = "  new (draft), old (disabled), steep-tea\n";
        assert!(said.stdout().contains(names), "{}", said.stdout());
        let json = bare(&world, &["--preset", "codex", "--json"]).json();
        let all = json["locations"][0]["skills"].as_array().unwrap().iter();
        let states: Vec<&Json> = all.map(|it| &it["status"]).collect();
        assert_eq!(states, ["draft", "disabled", "active"]);
    }

    #[test]
    fn a_long_name_is_not_cut_where_there_is_room() {
        let name = "subagent-driven-development-of";
        let text = format!("---\nname: {name}\ndescription: a\n---\n\n{}", "Do it.\n".repeat(2000));
        let world = World::new()
            .folder("home/.codex")
            .file(format!("home/.codex/skills/{name}/SKILL.md"), text);
        let said = at_terminal(&world, 100, 40, "");
        assert!(said.contains(&format!("~ {name}  truncated by Codex")), "{said}");
    }

    #[test]
    fn the_document_has_all_of_it() {
        let world = people().file("home/.codex/skills/bare/SKILL.md", document("bare", ""));
        let ran = bare(&world, &["--json"]);
        let said = ran.json();
        assert_eq!(ran.code, Some(0));
        let names: Vec<&str> = said["clients"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["claude-code", "codex"]);
        assert_eq!(said["clients"][1]["installed_at"], world.path("home/.codex").to_str().unwrap());
        let of = |directory: &str| -> Json {
            let path = world.path(directory);
            let all = said["locations"].as_array().unwrap().iter();
            let mut own = all.filter(|it| it["directory"] == path.to_str().unwrap());
            own.next().unwrap_or_else(|| panic!("{directory} in {said:#}")).clone()
        };
        let codex = of("home/.codex/skills");
        assert_eq!(codex["scope"], "user");
        assert_eq!(of(".agents/skills")["scope"], "project");
        assert_eq!(codex["skills"].as_array().unwrap().len(), 2);
        assert_eq!(
            codex["read_by"],
            serde_json::json!([{ "client": "codex", "loaded": 1, "hidden": 0, "unknown": 0 }])
        );
        assert_eq!(codex["not_read_by"], serde_json::json!(["claude-code"]));
        let trouble = &codex["troubles"][0];
        assert_eq!((&trouble["skill"], &trouble["verdict"]), (&"bare".into(), &"refused".into()));
        assert!(said["suggestions"][0]["command"].is_string(), "{said:#}");
    }

    #[test]
    fn a_linked_directory_is_shown_once() {
        let world = World::new()
            .folder("home/.codex")
            .skill_in("home/.agents/skills", "brew-coffee", "Brews")
            .link("home/.claude/skills", "../.agents/skills");
        let said = bare(&world, &[]);
        let said = said.stdout();
        assert!(said.starts_with("1 skill in 1 directory\n"), "{said}");
        assert!(said.contains("the same directory as"), "{said}");
        assert!(said.contains("loaded by Claude Code and Codex\n"), "{said}");
    }

    #[test]
    fn what_a_skill_says_cannot_move_the_cursor() {
        let text = "---\nname: \"a\\e[2Jb\\u202Ec\"\ndescription: x\n---\n";
        let world = people().file("home/.claude/skills/\u{1b}[31mred/SKILL.md", text);
        for arguments in [&[][..], &["-v"], &["--json"]] {
            bare(&world, arguments).assert_safe();
        }
    }
}

mod it_stays_one_screen {
    use super::*;

    fn crowd() -> World {
        let mut world = people();
        let homes = [
            "home/.claude/skills",
            "home/.codex/skills",
            "home/.agents/skills",
            "home/.cursor/skills",
            "home/.gemini/skills",
            "home/.roo/skills",
            "home/.qwen/skills",
            ".claude/skills",
            ".cursor/skills",
            ".agents/skills",
        ];
        for (at, home) in homes.iter().enumerate() {
            for number in 0..100 {
                let name = format!("skill-{at}-{number}");
                let more = if number % 3 == 0 {
                    "description: Use when: odd\n"
                } else {
                    "description: Good\n"
                };
                world = world.file(format!("{home}/{name}/SKILL.md"), document(&name, more));
            }
        }
        world
    }

    #[test]
    fn a_thousand_skills_in_ten_directories_fit_on_24_lines() {
        let world = crowd();
        for columns in [80, 40] {
            let said = at_terminal(&world, columns, 24, "");
            assert!(said.lines().count() < 24, "{said}");
            assert!(said.contains("1003 skills in 10 directories"), "{said}");
            assert!(said.contains("`prowess -v` shows everything"), "{said}");
        }
        let all = bare(&world, &["-v"]);
        for name in ["skill-0-0", "skill-4-57", "skill-9-99"] {
            assert!(all.stdout().contains(name), "{name}");
        }
        assert!(!all.stdout().contains("unfolds"));
    }

    #[test]
    fn a_narrow_terminal_gets_narrow_lines() {
        let world = crowd();
        for arguments in ["", "-v"] {
            let said = at_terminal(&world, 40, 60, arguments);
            let wide = |it: &&str| it.chars().count() > 40 && !it.contains('/');
            assert_eq!(said.lines().find(wide), None, "{said}");
        }
    }
}

mod it_says_what_to_do_next {
    use super::*;

    fn suggested(world: &World) -> Vec<String> {
        let said = bare(world, &["--json"]).json();
        let all = said["suggestions"].as_array().unwrap().iter();
        all.map(|it| it["command"].as_str().unwrap().to_owned()).collect()
    }

    /// Runs a command as it is suggested.
    fn type_it(world: &World, command: &str) {
        let script = format!("prowess() {{ {} \"$@\"; }}; {command}", program());
        let ran = world.run_script(&script);
        assert_eq!(ran.code, Some(0), "{command}: {} {}", ran.stdout(), ran.stderr);
    }

    #[test]
    fn the_suggested_commands_help() {
        let odd = document("odd", "description: Use when: odd\n");
        let world = World::new()
            .folder("home/.config/goose")
            .file("home/.config/goose/skills/odd/SKILL.md", odd);
        let command = suggested(&world);
        assert_eq!(command, ["prowess check ~/.config/goose/skills --fix"]);
        type_it(&world, &command[0]);
        assert_eq!(suggested(&world), [""; 0]);

        let misnamed = document("tea", "description: Steeps\n");
        let world = World::new().file("home/.cline/skills/steep-tea/SKILL.md", misnamed);
        let command = suggested(&world);
        assert_eq!(command, ["prowess check ~/.cline/skills --fix --rename folder"]);
        let doctor = bare(&world, &["doctor", "tea"]);
        assert!(doctor.stdout().contains("→ rename the folder to `tea`"), "{}", doctor.stdout());
        type_it(&world, &command[0]);
        assert_eq!(suggested(&world), [""; 0]);

        let misnamed = document("Tea_Time", "description: Steeps\n");
        let world = World::new().file("home/.cline/skills/steep-tea/SKILL.md", misnamed);
        let doctor = bare(&world, &["doctor", "Tea_Time", "--client", "cline"]);
        assert!(doctor.stdout().contains("→ set `name: steep-tea`"), "{}", doctor.stdout());
        let command = suggested(&world);
        assert_eq!(command, ["prowess check ~/.cline/skills --fix --rename name"]);
        type_it(&world, &command[0]);
        assert_eq!(suggested(&world), [""; 0]);

        let world = World::new().folder("home/.claude").skill_in(
            "home/.codex/skills",
            "brew-coffee",
            "Brews",
        );
        let command = suggested(&world);
        assert_eq!(
            command,
            ["mkdir -p ~/.claude/skills && ln -s ~/.codex/skills/* ~/.claude/skills/"]
        );
        type_it(&world, &command[0]);
        assert_eq!(suggested(&world), [""; 0]);
        let said = bare(&world, &[]);
        assert!(said.stdout().contains("loaded by Claude Code"), "{}", said.stdout());

        let world = World::new().folder(".git").folder(".codex").skill_in(
            ".claude/skills",
            "brew",
            "Brews",
        );
        let command = suggested(&world);
        assert_eq!(command.len(), 1, "{command:?}");
        type_it(&world, &command[0]);
        assert_eq!(suggested(&world), [""; 0]);
    }

    #[test]
    fn a_name_in_capitals_comes_with_a_command_that_fixes_it() {
        for (folder, which) in [("Tea_Time", "lowercase"), ("tea-time", "name")] {
            let text = document("Tea_Time", "description: Steeps\n");
            let world = World::new().file(format!(".agents/skills/{folder}/SKILL.md"), text);
            let command = suggested(&world);
            let rename = format!("prowess check .agents/skills --fix --rename {which}");
            assert_eq!(command[0], rename, "{command:?}");
            type_it(&world, &rename);
            assert!(world.path(".agents/skills/tea-time/SKILL.md").exists());
            let checked = world.run(["check", ".agents/skills"]);
            assert_eq!(checked.code, Some(0), "{}", checked.stdout());
            let command = suggested(&world);
            assert!(!command.iter().any(|it| it.contains("check")), "{command:?}");
        }
    }

    #[test]
    fn no_client_is_given_more_skills_than_it_can_list() {
        let share = |skills: usize| {
            let mut world = World::new().folder("home/.claude").folder("home/.codex");
            for number in 0..skills {
                let (name, text) = (format!("skill-{number}"), "a".repeat(1000));
                world = world.skill_in("home/.claude/skills", &name, &text);
            }
            bare(&world, &[]).stdout().contains("~/.codex/skills/")
        };
        assert!(share(6) && !share(9));
        let text = format!("---\nname: long\ndescription: a\n---\n\n{}", "Do it.\n".repeat(2000));
        let world =
            World::new().folder("home/.codex").file("home/.codex/skills/long/SKILL.md", text);
        let said = bare(&world, &[]);
        assert!(said.stdout().contains("  prowess doctor long   "), "{}", said.stdout());
        let doctor = bare(&world, &["doctor", "long"]);
        assert!(doctor.stdout().contains("more than 8000 bytes"), "{}", doctor.stdout());
    }

    #[test]
    fn nothing_but_skills_is_copied() {
        let world = World::new().folder("home/.claude").file("repo/README.md", "About").skill_in(
            "repo/plugins/one/skills",
            "brew-coffee",
            "Brews",
        );
        let said = bare(&world, &["--dir", "repo"]);
        let text = said.stdout();
        assert!(text.contains("not read by any installed agent"), "{text}");
        assert!(!text.contains("cp -r") && !text.contains("ln -s"), "{text}");
        assert!(text.contains("  prowess check --dir repo   "), "{text}");
    }

    #[test]
    fn what_no_agent_loads_comes_first() {
        let long = format!("description: {}\n", "word ".repeat(250));
        let world = World::new()
            .folder("home/.codex")
            .file("home/.codex/skills/broken/SKILL.md", "---\nname: broken\n---\n\nDo it.\n");
        let names = ["one", "two", "three"];
        let world = names.iter().fold(world, |world, name| {
            world.file(format!("home/.codex/skills/{name}/SKILL.md"), document(name, &long))
        });
        let commands = suggested(&world);
        assert_eq!(commands[0], "prowess check ~/.codex/skills");
        assert!(commands[1].starts_with("prowess doctor "), "{commands:?}");
    }

    #[test]
    fn at_most_three_commands_are_suggested() {
        let world = people()
            .folder("home/.cline")
            .file("home/.cline/skills/a/SKILL.md", document("b", "description: x\n"))
            .file("home/.cline/skills/c/SKILL.md", document("c", "description: Use when: x\n"))
            .file("home/.cline/skills/d/SKILL.md", document("d", ""));
        assert_eq!(suggested(&world).len(), 3);
    }

    #[test]
    fn where_all_is_well_it_says_what_to_try() {
        let world = World::new().skill_in("home/.claude/skills", "brew-coffee", "Brews coffee");
        let ran = bare(&world, &[]);
        assert!(ran.stdout().contains("What to do next:\n  prowess find"), "{}", ran.stdout());
        assert!(ran.stdout().contains("loaded by Claude Code\n"), "{}", ran.stdout());
    }

    #[test]
    fn without_a_skill_it_says_how_to_begin() {
        let world = World::new().folder("home/.codex");
        let ran = bare(&world, &[]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout().starts_with("No skills found"), "{}", ran.stdout());
        let command = "prowess new my-skill --dir .agents/skills";
        assert!(ran.stdout().contains(command), "{}", ran.stdout());
        type_it(&world, command);
        let said = bare(&world, &[]);
        assert!(said.stdout().starts_with("1 skill in 1 directory\n"), "{}", said.stdout());
    }

    #[test]
    fn the_skills_of_a_repository_of_plugins_are_pointed_out() {
        let world = World::new()
            .skill_in("plugins/drinks/skills", "brew-coffee", "Brews coffee")
            .skill_in("plugins/food/skills", "bake-bread", "Bakes bread");
        fs::remove_dir(world.path("skills")).unwrap();
        let said = "2 skills in `plugins/*/skills` here";
        for arguments in [&["list"][..], &["find", "zzzzzz"]] {
            let ran = bare(&world, arguments);
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
            assert!(ran.stderr.contains("`prowess list .` lists them"), "{}", ran.stderr);
        }
        let empty = bare(&world, &[]);
        assert!(empty.stdout().contains("  prowess list . "), "{}", empty.stdout());
        let world = world.skill_in("home/.claude/skills", "steep-tea", "Steeps tea");
        let more = bare(&world, &[]);
        let told = "2 skills in plugins/*/skills here, where agents do not look";
        assert!(more.stdout().contains(told), "{}", more.stdout());
        let listed = bare(&world, &["list", ".", "--short"]);
        assert!(listed.stdout().starts_with("bake-bread\nbrew-coffee\n"), "{}", listed.stdout());
        assert!(!listed.stderr.contains("plugins/*"), "{}", listed.stderr);
        let world = world.skill_in(".claude/skills", "pour-water", "Pours water");
        assert!(!bare(&world, &["list"]).stderr.contains("plugins/*"));
        assert!(!bare(&world, &[]).stdout().contains("plugins/*"));
    }

    #[test]
    fn where_no_agent_is_detected_that_is_said() {
        let world = World::new().skill_in("home/.agents/skills", "brew-coffee", "Brews");
        let ran = bare(&world, &[]);
        let said = ran.stdout();
        assert!(said.contains("No installed agent was detected, so all "), "{said}");
        assert!(said.contains("loaded by Codex, "), "{said}");
        assert_eq!(bare(&world, &["--json"]).json()["clients_detected"], false);
    }

    #[test]
    fn help_is_a_flag_away() {
        let ran = bare(&people(), &[]);
        let last = ran.stdout().lines().last().unwrap();
        assert!(last.contains("`prowess --help` lists commands"), "{last}");
        let help = bare(&people(), &["--help"]);
        assert!(help.stdout().contains("Find and read skills:"), "{}", help.stdout());
    }
}
