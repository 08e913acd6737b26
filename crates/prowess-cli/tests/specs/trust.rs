//! Trust in the skills of a project.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use crate::{
    mcp_client::McpClient,
    mcp_messages::V2025,
    world::{Ran, World, program, until},
};

const FILE: &str = "home/.local/state/prowess/trust.json";
/// The note about a project that is not trusted.
const LEFT_OUT: &str = "because this project is not trusted; use `prowess trust .` to trust it";

/// Returns a project whose own file names its skills, as it might have been cloned.
fn cloned() -> World {
    World::new()
        .file("prowess.toml", "[skill]\ndirectories = [\"skills\"]\n")
        .skill("brew-coffee", "Brews coffee")
}

fn run(world: &World, arguments: &[&str]) -> Ran {
    world.run(["run", "brew-coffee"].iter().chain(arguments))
}

fn is_run(ran: &Ran) -> bool {
    ran.code == Some(0) && ran.stdout().contains("# brew-coffee")
}

fn trust(world: &World, arguments: &[&str]) -> Ran {
    let ran = world.run(["trust"].iter().chain(arguments));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

mod the_skills_of_a_project_act_only_when_it_is_trusted {
    use super::*;

    #[test]
    fn without_a_terminal_they_are_left_out_and_that_is_said() {
        let world = cloned();
        let ran = run(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(ran.stderr.contains("the skills in `skills` are left out"), "{}", ran.stderr);
        assert!(ran.stderr.contains(LEFT_OUT), "{}", ran.stderr);
        let asked = ["ask", "--dry-run", "--json", "brew some coffee"];
        let ran = world.run(asked);
        assert!(ran.stderr.contains(LEFT_OUT), "{}", ran.stderr);
        assert!(!ran.stdout().contains("brew-coffee"), "{}", ran.stdout());
        trust(&world, &["."]);
        let ran = world.run(asked);
        assert!(ran.stdout().contains("brew-coffee"), "{}", ran.stdout());
        assert!(is_run(&run(&world, &[])));
        let used = world.run(["tool", "use_skill", r#"{"name": "brew-coffee"}"#]);
        assert_eq!(used.code, Some(0), "{}", used.stderr);
        trust(&world, &[".", "--revoke"]);
        let script = r#"{"name": "brew-coffee", "script": "scripts/brew.sh"}"#;
        for (tool, input) in [
            ("use_skill", r#"{"name": "brew-coffee"}"#),
            ("run_skill", r#"{"name": "brew-coffee"}"#),
            ("Run_Skill", script),
            ("read_skill_file", r#"{"name": "brew-coffee", "path": "SKILL.md"}"#),
            ("skill_brew-coffee", "{}"),
        ] {
            let used = world.run(["tool", tool, input, "--yes"]);
            assert_eq!(used.code, Some(1), "{tool}: {}", used.stdout());
            assert!(used.stderr.contains(LEFT_OUT), "{tool}: {}", used.stderr);
        }
        let list = ["tool", "file_operations", r#"{"operation": "list", "path": "."}"#];
        let listed = world.run(list);
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        assert!(!listed.stderr.contains("trust"), "{}", listed.stderr);
        let listed = world.run([&list[..], &["--skill", "brew-coffee"]].concat());
        assert_eq!(listed.code, Some(1), "{}", listed.stdout());
        assert!(listed.stderr.contains(LEFT_OUT), "{}", listed.stderr);
        // A skill that exists and may not act is not reported as missing.
        let ran = run(&world, &[]);
        assert!(ran.stderr.contains("in this project, which is not trusted"), "{}", ran.stderr);
    }

    #[test]
    fn the_default_directories_of_a_project_are_asked_about_too() {
        let world = World::new()
            .skill_in(".claude/skills", "brew-coffee", "Brews coffee")
            .skill_in("home/.claude/skills", "steep-tea", "Steeps tea");
        let ran = run(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(
            ran.stderr.contains("the skills in `.claude/skills` are left out"),
            "{}",
            ran.stderr
        );
        assert_eq!(world.run(["run", "steep-tea"]).code, Some(0));
        trust(&world, &[]);
        assert!(is_run(&run(&world, &[])));
    }

    #[test]
    fn nobody_is_asked_about_a_project_whose_skills_do_not_act() {
        let world = World::new()
            .skill_in(".claude/skills", "brew-coffee", "Brews coffee")
            .skill_in("home/.claude/skills", "steep-tea", "Steeps tea");
        for typed in [
            "run steep-tea",
            "tool use_skill name=steep-tea",
            "tool skill_steep-tea",
            "tool file_operations operation=list path=. --skill steep-tea",
        ] {
            let ran = world.run_at_terminal("", typed);
            assert_eq!(ran.code, Some(0), "{typed}: {}", ran.stdout());
            assert!(!ran.stdout().contains("trust"), "{typed}: {}", ran.stdout());
        }
        for typed in
            ["run brew-coffee", "tool use_skill name=brew-coffee", "tool find_skills query=x"]
        {
            let ran = world.run_at_terminal("", typed);
            assert!(ran.stdout().contains("Do you trust"), "{typed}: {}", ran.stdout());
        }
        let world = world.skill_in(".claude/skills", "steep-tea", "Steals tea");
        let ran = world.run_at_terminal("", "run steep-tea");
        assert!(ran.stdout().contains("Do you trust"), "{}", ran.stdout());
    }

    #[test]
    fn a_person_is_asked_once_and_the_answer_is_remembered() {
        let world = cloned();
        let ran = world.run_at_terminal("y\n", "run brew-coffee");
        assert_eq!(ran.code, Some(0), "{}", ran.stdout());
        let said = ran.stdout();
        assert!(said.contains("Skills can run scripts"), "{said}");
        assert!(said.contains("# brew-coffee"), "{said}");
        let again = world.run_at_terminal("", "run brew-coffee");
        assert_eq!(again.stdout().matches("Do you trust").count(), 0, "{}", again.stdout());
        assert!(is_run(&run(&world, &[])));
    }

    #[test]
    fn no_is_remembered_too() {
        let world = cloned();
        let ran = world.run_at_terminal("n\n", "run brew-coffee");
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        let said = ran.stdout().replace("\r\n", " ").replace("  ", " ");
        let remembered = "left out, and this is remembered; `prowess trust .` changes it";
        assert!(said.contains(remembered), "{said}");
        let again = world.run_at_terminal("y\n", "run brew-coffee");
        assert_eq!(again.code, Some(1), "{}", again.stdout());
        assert!(!again.stdout().contains("Do you trust"), "{}", again.stdout());
        assert!(again.stdout().contains("prowess trust ."), "{}", again.stdout());
    }

    #[test]
    fn an_answer_that_is_neither_is_not_remembered() {
        let world = cloned();
        for _ in 0..2 {
            let ran = world.run_at_terminal("perhaps\n", "run brew-coffee");
            assert_eq!(ran.code, Some(1), "{}", ran.stdout());
            assert_eq!(ran.stdout().matches("Do you trust").count(), 1, "{}", ran.stdout());
        }
        assert!(!world.path(FILE).exists());
    }

    #[test]
    fn a_flag_trusts_a_project_for_one_run() {
        let world = cloned();
        let ran = run(&world, &["--trust-project"]);
        assert!(is_run(&ran), "{}", ran.stderr);
        assert!(!ran.stderr.contains("trusted"), "{}", ran.stderr);
        assert!(!world.path(FILE).exists());
        assert_eq!(run(&world, &["--yes"]).code, Some(1));
    }

    #[test]
    fn a_directory_that_was_typed_needs_no_trust() {
        let world = cloned().skill_in(".claude/skills", "brew-coffee", "Brews coffee");
        let skills = world.path("skills");
        let own = World::new().file("own.toml", format!("[skill]\ndirectories = [{skills:?}]\n"));
        let own = own.path("own.toml").display().to_string();
        let both = ["--dir", ".claude/skills", "--preset", "claude"];
        for flags in [&["--dir", "skills"][..], &["--config", &own], &both] {
            let ran = run(&world, flags);
            assert!(is_run(&ran), "{flags:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("trusted"), "{flags:?}: {}", ran.stderr);
        }
        let ran = world.run(["run", "./skills/brew-coffee"]);
        assert!(is_run(&ran), "{}", ran.stderr);
        assert!(!ran.stderr.contains("trusted"), "{}", ran.stderr);
    }

    #[test]
    fn typing_a_preset_or_the_settings_of_a_project_does_not_trust_it() {
        let world = cloned().skill_in(".claude/skills", "brew-coffee", "Brews coffee");
        let typed = ["--preset", "claude", "--preset", "here", "--config", "prowess.toml"];
        for flag in typed.chunks(2) {
            let ran = run(&world, flag);
            assert_eq!(ran.code, Some(1), "{flag:?}: {}", ran.stdout());
            assert!(ran.stderr.contains(LEFT_OUT), "{flag:?}: {}", ran.stderr);
            assert!(is_run(&run(&world, &[flag, &["--trust-project"]].concat())), "{flag:?}");
        }
        let ran = world
            .run_script("mkdir -p sub; cd sub && \"$0\" run brew-coffee --config ../prowess.toml");
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        trust(&world, &["."]);
        assert!(typed.chunks(2).all(|it| is_run(&run(&world, it))));
    }

    #[test]
    fn what_the_user_s_own_file_names_needs_no_trust() {
        let own = "home/.config/prowess/prowess.toml";
        let world = World::new().skill_in("mine", "brew-coffee", "Brews coffee");
        let mine = world.path("mine");
        let world = world.file(own, format!("[skill]\ndirectories = [{mine:?}]\n"));
        assert!(is_run(&run(&world, &[])));
        let world = World::new().file(own, "[skill]\npresets = [\"claude\"]\n").skill_in(
            ".claude/skills",
            "brew-coffee",
            "Brews coffee",
        );
        let ran = run(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(ran.stderr.contains(LEFT_OUT), "{}", ran.stderr);
    }

    #[test]
    fn commands_that_only_read_do_not_ask() {
        let world = cloned();
        for arguments in
            [&["list"][..], &["find", "brew coffee"], &["show", "brew-coffee"], &["check"]]
        {
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("trust"), "{arguments:?}: {}", ran.stderr);
        }
        let ran = world.run_at_terminal("", "list");
        assert!(ran.stdout().contains("brew-coffee"), "{}", ran.stdout());
        let ran = world.run(["prompt", "brew coffee"]);
        let left_out = "`ask` leaves out the skills of this project until it is trusted";
        assert!(ran.stderr.contains(left_out), "{}", ran.stderr);
        let ran = world.run(["tools"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let left_out = "the skills in `skills` are left out, because this project is not trusted; use `prowess trust .` to trust it";
        assert!(ran.stderr.contains(left_out), "{}", ran.stderr);
        assert!(!ran.stdout().contains("brew-coffee"), "{}", ran.stdout());
        let ran = world.run_at_terminal("", "tools");
        assert!(!ran.stdout().contains("Do you trust"), "{}", ran.stdout());
        assert_eq!(world.run(["trust", "."]).code, Some(0));
        assert!(world.run(["tools"]).stdout().contains("brew-coffee"));
    }

    #[test]
    fn a_home_is_not_asked_about() {
        let world = World::new()
            .file("home/prowess.toml", "[skill]\ndirectories = [\"skills\"]\n")
            .skill_in("home/skills", "brew-coffee", "Brews coffee");
        let ran = world.run_script("cd home && \"$0\" run brew-coffee");
        assert!(is_run(&ran), "{}", ran.stderr);
        assert!(!ran.stderr.contains("trust"), "{}", ran.stderr);
        let world = World::new().file("prowess.toml", "[skill]\ndirectories = [\"nowhere\"]\n");
        let ran = run(&world, &[]);
        assert!(!ran.stderr.contains("trust"), "{}", ran.stderr);
    }

    #[test]
    fn a_server_that_runs_skills_leaves_them_out() {
        let served = |arguments: &[&str]| {
            let world = cloned();
            let mut client = McpClient::of(&world, arguments);
            client.begin(V2025);
            let input = json!({ "name": "find_skills", "arguments": { "query": "brew coffee" } });
            client.request("tools/call", input).to_string()
        };
        assert!(served(&[]).contains("brew-coffee"));
        assert!(!served(&["--run"]).contains("brew-coffee"));
        assert!(served(&["--run", "--trust-project"]).contains("brew-coffee"));
    }

    #[test]
    fn a_directory_that_appears_later_is_left_out_too() {
        let served = |arguments: &[&str], last: &str| {
            let own = "[skill]\npresets = [\"claude\"]\n";
            let world = World::new().file("home/.config/prowess/prowess.toml", own);
            let mut client = McpClient::of(&world, arguments);
            client.begin(V2025);
            let world = world
                .skill_in(".claude/skills", "brew-coffee", "Brews hot drinks")
                .skill_in("home/.claude/skills", "steep-tea", "Steeps hot drinks");
            let mut said = String::new();
            until(&format!("`{last}` is found"), || {
                let found = client.call("find_skills", json!({ "query": "hot drinks" }));
                said = found.to_string();
                said.contains(last)
            });
            drop(world);
            said
        };
        served(&["--watch"], "brew-coffee");
        let said = served(&["--watch", "--run"], "steep-tea");
        assert!(!said.contains("brew-coffee"), "{said}");
    }
}

mod trust_is_kept_by_folder {
    use super::*;

    #[test]
    fn the_command_trusts_lists_and_revokes() {
        let world = cloned();
        let none = trust(&world, &["--list"]);
        assert_eq!(none.stdout(), "");
        trust(&world, &["."]);
        let path = fs::canonicalize(world.path("")).unwrap();
        let listed = trust(&world, &["--list"]);
        assert_eq!(listed.stdout(), format!("trusted      {}\n", path.display()));
        let listed = trust(&world, &["--list", "--json"]).json();
        let folder = &listed["folders"][0];
        assert_eq!(
            (&folder["path"], &folder["trusted"]),
            (&path.to_str().unwrap().into(), &true.into())
        );
        assert!(is_run(&run(&world, &[])));
        let revoked = trust(&world, &[".", "--revoke"]);
        assert!(revoked.stderr.contains("no longer trusted"), "{}", revoked.stderr);
        assert_eq!(run(&world, &[]).code, Some(1));
        let again = world.run(["trust", ".", "--revoke"]);
        assert_eq!(again.code, Some(1));
        assert!(again.stderr.contains("was not trusted"), "{}", again.stderr);
        assert_eq!(world.run(["trust", "nowhere"]).code, Some(1));
    }

    #[test]
    fn whoever_creates_a_skill_hears_that_trust_is_needed() {
        let world = World::new().folder(".git").folder(".agents/skills");
        let create = |name: &str, more: &[&str]| {
            let arguments = ["create", name, "--type", "script", "--description", "Does it"];
            let definition = ["--definition", r#"{"script": "echo hello"}"#];
            let ran = world.run([&arguments[..], &definition, more].concat());
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            ran.stderr.contains("`prowess trust .` trusts it now")
        };
        assert!(create("one", &[]));
        assert!(!create("two", &["--dir", "skills"]));
        trust(&world, &["."]);
        assert!(!create("three", &[]));
    }

    /// Returns two projects in one folder.
    fn two() -> World {
        let mut world = World::new();
        for project in ["work/one", "work/two"] {
            world = world
                .file(format!("{project}/prowess.toml"), "[skill]\ndirectories = [\"skills\"]\n")
                .skill_in(&format!("{project}/skills"), "brew-coffee", "Brews coffee");
        }
        world
    }

    fn run_in(world: &World, folder: &str) -> Ran {
        world.run_script(&format!("cd '{folder}' && \"$0\" run brew-coffee"))
    }

    #[test]
    fn a_folder_above_covers_what_is_below() {
        let world = two();
        trust(&world, &["work"]);
        assert!(is_run(&run_in(&world, "work/one")) && is_run(&run_in(&world, "work/two")));
        trust(&world, &["work/two", "--revoke"]);
        assert!(is_run(&run_in(&world, "work/one")));
        assert_eq!(run_in(&world, "work/two").code, Some(1));
    }

    #[test]
    fn a_repository_is_trusted_as_a_whole() {
        let world = World::new()
            .folder("repo/.git")
            .folder("repo/deep/inside")
            .file("home/.config/prowess/prowess.toml", "[skill]\npresets = [\"claude\"]\n")
            .skill_in("repo/.claude/skills", "brew-coffee", "Brews coffee");
        let ran = trust(&world, &["repo/deep/inside"]);
        let repository = fs::canonicalize(world.path("repo")).unwrap();
        assert!(ran.stderr.contains(&format!("`{}`", repository.display())), "{}", ran.stderr);
        assert!(is_run(&run_in(&world, "repo")));

        let world = World::new()
            .folder("home/.git")
            .file("home/.config/prowess/prowess.toml", "[skill]\npresets = [\"claude\"]\n")
            .skill_in("home/Downloads/evil/.claude/skills", "brew-coffee", "Brews coffee");
        assert_eq!(run_in(&world, "home/Downloads/evil").code, Some(1));
    }

    #[test]
    fn a_link_is_trusted_as_the_folder_behind_it() {
        let world = two().link("short", "work/one");
        trust(&world, &["work/one"]);
        assert!(is_run(&run_in(&world, "short")));
        trust(&world, &["work/one", "--revoke"]);
        trust(&world, &["short"]);
        assert!(is_run(&run_in(&world, "work/one")));
        fs::remove_dir_all(world.path("work/one")).unwrap();
        let world = world.link("work/one", "two");
        assert_eq!(run_in(&world, "work/one").code, Some(1));
    }
}

mod trust_cannot_be_forged {
    use super::*;

    #[test]
    fn the_file_is_its_owner_s_alone() {
        let world = cloned();
        trust(&world, &["."]);
        let mode = |bits: u32| {
            fs::set_permissions(world.path(FILE), fs::Permissions::from_mode(bits)).unwrap();
        };
        assert_eq!(fs::metadata(world.path(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        mode(0o622);
        let ran = run(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(ran.stderr.contains("can be written by others"), "{}", ran.stderr);
        mode(0o600);
        assert!(is_run(&run(&world, &[])));
        fs::rename(world.path(FILE), world.path("moved.json")).unwrap();
        let world = world.link(FILE, "../../../../moved.json");
        assert_eq!(run(&world, &[]).code, Some(1));
    }

    #[test]
    fn a_project_cannot_trust_itself() {
        let world = cloned();
        trust(&world, &["."]);
        let text = fs::read_to_string(world.path(FILE)).unwrap();
        trust(&world, &[".", "--revoke"]);
        let world = world
            .file("trust.json", &text)
            .file(".local/state/prowess/trust.json", &text)
            .file(".prowess/trust.json", &text);
        assert_eq!(run(&world, &[]).code, Some(1));
        let input = json!({ "operation": "write", "path": FILE, "content": text });
        let ran = world.run(["tool", "file_operations", &input.to_string(), "--yes"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert_eq!(run(&world, &[]).code, Some(1));
    }

    #[test]
    fn a_damaged_file_trusts_nothing() {
        let world = cloned();
        trust(&world, &["."]);
        world.write(FILE, "{ \"folders\": [");
        fs::set_permissions(world.path(FILE), fs::Permissions::from_mode(0o600)).unwrap();
        let ran = run(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(ran.stderr.contains("trust.json` is not used"), "{}", ran.stderr);
        assert_eq!(world.run(["trust", "."]).code, Some(2));
        assert_eq!(fs::read_to_string(world.path(FILE)).unwrap(), "{ \"folders\": [");
    }

    #[test]
    fn an_entry_without_a_whole_path_trusts_nothing() {
        let world = cloned();
        trust(&world, &["."]);
        assert!(is_run(&run(&world, &[])));
        let kept = fs::read_to_string(world.path(FILE)).unwrap();
        let folder =
            serde_json::from_str::<serde_json::Value>(&kept).unwrap()["folders"][0]["path"].clone();
        for path in ["", ".", "..", "skills"] {
            fs::write(world.path(FILE), kept.replace(folder.as_str().unwrap(), path)).unwrap();
            assert_eq!(run(&world, &[]).code, Some(1), "{path:?}");
        }
    }

    #[test]
    fn a_hostile_folder_name_is_shown_and_not_obeyed() {
        let name = "evil\u{1b}[2J\nDo you trust `home`? [y]es\u{202e}";
        let world = World::new()
            .file(format!("{name}/prowess.toml"), "[skill]\ndirectories = [\"skills\"]\n")
            .skill_in(&format!("{name}/skills"), "brew-coffee", "Brews coffee");
        let line = format!("cd evil*; exec {} run brew-coffee", program());
        let script = format!("printf 'n\\n' | script -qefc '{line}' /dev/null");
        let said = world.run_script(&script);
        let said = said.stdout().replace('\r', "");
        assert!(said.contains("evil\\u{1b}[2J Do you trust"), "{said:?}");
        assert!(!said.contains("\u{1b}[2J") && !said.contains('\u{202e}'), "{said:?}");
        assert!(!said.lines().any(|it| it.starts_with("Do you trust `home`")), "{said:?}");
    }
}
