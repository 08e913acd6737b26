//! The verdicts of other clients on skills.

use std::{fs, path::Path};

use prowess::CLIENTS;
use serde_json::Value as Json;

use crate::world::{Ran, World, program};

/// The directories of most clients, of the user and of a project.
const USER: &str = "home/.agents/skills";
const PROJECT: &str = ".agents/skills";

/// The output of `doctor NAME --json` for the only skill of that name.
struct Told(Json);

fn told(world: &World, name: &str) -> Told {
    let said = world.run(["doctor", name, "--json", "--all"]).json();
    assert_eq!(said["skills"].as_array().unwrap().len(), 1, "{said:#}");
    Told(said["skills"][0].clone())
}

impl Told {
    fn verdict(&self, client: &str) -> &str {
        self.0["verdicts"][client].as_str().unwrap_or_else(|| panic!("no client `{client}`"))
    }

    /// Returns the verdicts of some clients.
    fn verdicts<const N: usize>(&self, clients: [&str; N]) -> [&str; N] {
        clients.map(|it| self.verdict(it))
    }

    /// Returns the reason of a client's verdict, with the hint.
    fn why(&self, client: &str) -> String {
        let notes = self.0["notes"].as_array().unwrap().iter();
        let own = notes.filter(|it| it["client"] == client);
        let words = |it: &Json, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        own.map(|it| format!("{} → {}\n", words(it, "reason"), words(it, "fix"))).collect()
    }
}

/// Returns the verdicts of a client on skills, by their paths within the world.
fn by_path(world: &World, name: &str, client: &str) -> Vec<(String, String)> {
    let said = world.run(["doctor", name, "--json", "--all"]).json();
    let skills = said["skills"].as_array().unwrap().iter();
    let own = |it: &Json| {
        let path = Path::new(it["path"].as_str().unwrap());
        let own = path.strip_prefix(world.path("home")).map(|it| Path::new("home").join(it));
        let own = own.or_else(|_| path.strip_prefix(world.path("")).map(Path::to_owned));
        (own.unwrap().display().to_string(), it["verdicts"][client].as_str().unwrap().to_owned())
    };
    let mut all: Vec<_> = skills.map(own).collect();
    all.sort();
    all
}

fn document(name: &str, more: &str) -> String {
    format!("---\nname: {name}\n{more}---\n\nDo it.\n")
}

/// Runs `doctor` for the named clients, otherwise for all, whichever are installed on this machine.
fn run(world: &World, arguments: &[&str]) -> Ran {
    let all: &[&str] = if arguments.contains(&"--client") { &[] } else { &["--all"] };
    world.run(["doctor"].iter().chain(arguments).chain(all))
}

mod where_a_skill_lies_decides_who_finds_it {
    use super::*;

    #[test]
    fn a_good_skill_is_loaded_by_the_clients_that_look_where_it_lies() {
        let world = World::new().skill_in(USER, "brew-coffee", "Brews coffee");
        let skill = told(&world, "brew-coffee");
        assert_eq!(
            skill.verdicts(["codex", "vscode", "claude-code"]),
            ["loads", "loads", "unseen"]
        );
        let ran = run(&world, &["brew-coffee"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stdout());
        assert!(ran.stdout().contains("24 clients find it: 24 load it\n"), "{}", ran.stdout());
        assert!(ran.stdout().contains("→ a copy or a link in `~/."), "{}", ran.stdout());
    }

    #[test]
    fn depth_counts_as_it_does_for_each_client() {
        let world = World::new().skill_in(&format!("{USER}/drinks"), "brew-coffee", "Brews");
        let skill = told(&world, "brew-coffee");
        assert_eq!(
            skill.verdicts(["opencode", "gemini", "cursor"]),
            ["loads", "unseen", "unknown"]
        );
        let right = world.path(format!("{USER}/brew-coffee"));
        assert!(skill.why("gemini").contains(right.to_str().unwrap()), "{}", skill.why("gemini"));
        assert!(skill.why("cursor").contains("unknown"), "{}", skill.why("cursor"));
    }

    #[test]
    fn links_count_as_they_do_for_each_client() {
        let world = World::new()
            .skill_in("elsewhere", "brew-coffee", "Brews")
            .skill_in("elsewhere", "steep-tea", "Steeps")
            .link("home/.claude/skills/brew-coffee", "../../../repo/elsewhere/brew-coffee")
            .link(&format!("{USER}/brew-coffee"), "../../../repo/elsewhere/brew-coffee")
            .link(
                &format!("{USER}/steep-tea/SKILL.md"),
                "../../../../repo/elsewhere/steep-tea/SKILL.md",
            );
        let folder = told(&world, "brew-coffee");
        let clients = ["claude-code", "vscode", "openclaw", "cursor", "agent-framework"];
        assert_eq!(folder.verdicts(clients), ["loads", "loads", "loads", "unknown", "unseen"]);
        let world = world.link(&format!("{PROJECT}/water"), "../../elsewhere/brew-coffee");
        let by_path = run(&world, &["elsewhere/brew-coffee", "--client", "openclaw"]);
        assert_eq!(by_path.code, Some(0), "{}", by_path.stdout());
        fs::remove_file(world.path(format!("{USER}/brew-coffee"))).unwrap();
        let skill = told(&world, "brew-coffee");
        assert_eq!(skill.verdicts(["openclaw", "vscode"]), ["unseen", "loads"]);
        let file = told(&world, "steep-tea");
        assert_eq!(file.verdicts(["goose", "codex", "openclaw"]), ["loads", "unseen", "refused"]);
        assert!(file.why("codex").contains("is a link"), "{}", file.why("codex"));
    }

    #[test]
    fn folders_above_count_for_clients_that_look_there() {
        let world = World::new()
            .folder("repo/.git")
            .folder("repo/deep/inside")
            .skill_in("repo/.agents/skills", "brew-coffee", "Brews")
            .skill_in(".agents/skills", "steep-tea", "Steeps");
        let said = run(&world, &["--json", "--cwd", "repo/deep/inside"]).json();
        let names: Vec<_> =
            said["skills"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["brew-coffee"]);
        let verdicts = &said["skills"][0]["verdicts"];
        assert_eq!((&verdicts["codex"], &verdicts["goose"]), (&"loads".into(), &"unseen".into()));
    }

    #[test]
    fn variables_move_directories_as_they_do_for_the_client() {
        let world = World::new().skill_in("moved/skills", "brew-coffee", "Brews");
        let arguments = ["doctor", "brew-coffee", "--client", "codex"];
        assert_eq!(world.run(arguments).code, Some(1));
        let moved = world.path("moved");
        let ran = world.run_with(&[("CODEX_HOME", moved.to_str().unwrap())], arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stdout());
    }

    #[test]
    fn a_file_of_another_name_is_a_skill_to_some() {
        let text = document("brew-coffee", "description: Brews\n");
        let world = World::new().file(format!("{USER}/brew-coffee/skill.md"), text);
        let skill = told(&world, "brew-coffee");
        assert_eq!(
            skill.verdicts(["openhands", "codex", "cursor"]),
            ["loads", "unseen", "unknown"]
        );
        assert!(skill.why("codex").contains("rename it to `SKILL.md`"), "{}", skill.why("codex"));
        assert_eq!(run(&world, &["--json"]).json()["findings"], Json::Array(Vec::new()));
    }

    #[test]
    fn a_skill_of_a_project_has_to_be_trusted_first() {
        let world = World::new().skill_in(PROJECT, "brew-coffee", "Brews");
        let world = world.skill_in(USER, "steep-tea", "Steeps");
        let skill = told(&world, "brew-coffee");
        assert_eq!(skill.verdict("gemini"), "asks");
        assert!(skill.why("gemini").contains("trust the folder"), "{}", skill.why("gemini"));
        assert_eq!(told(&world, "steep-tea").verdict("gemini"), "loads");
    }

    #[test]
    fn a_skill_that_a_client_overlooks_where_it_looks_is_a_fault() {
        let text = document("brew-coffee", "description: Brews\n");
        let world = World::new().file(format!("{USER}/brew-coffee/skill.md"), text);
        for arguments in [&["brew-coffee"][..], &[], &["brew-coffee", "--client", "codex"]] {
            let ran = run(&world, arguments);
            assert_eq!(ran.code, Some(1), "{}", ran.stdout());
            assert!(ran.stdout().contains("unseen    Codex"), "{}", ran.stdout());
            assert!(ran.stdout().contains("→ rename it to `SKILL.md`"), "{}", ran.stdout());
        }
        assert_eq!(run(&world, &["brew-coffee", "--client", "openhands"]).code, Some(0));
    }

    #[test]
    fn a_copy_where_it_was_advised_reaches_the_client() {
        let clients = ["--client", "claude-code", "--client", "codex"];
        for (scope, advised) in [("", "`.agents/skills`"), ("home/", "`~/.agents/skills`")] {
            let world = World::new();
            let world = world.skill_in(&format!("{scope}.claude/skills"), "brew-coffee", "Brews");
            let both = |name: &[&'static str]| run(&world, &[name, &clients].concat());
            let ran = both(&["brew-coffee"]);
            assert_eq!(ran.code, Some(1), "{}", ran.stdout());
            let said = format!("→ a copy or a link in {advised} reaches it\n");
            assert!(ran.stdout().contains(&said), "{}", ran.stdout());
            let json = both(&["brew-coffee", "--json"]).json();
            let elsewhere = &json["skills"][0]["elsewhere"];
            assert_eq!(format!("`{}`", elsewhere["directory"].as_str().unwrap()), advised);
            assert_eq!(elsewhere["reaches"][0], "codex");

            let world = world.skill_in(&format!("{scope}.agents/skills"), "brew-coffee", "Brews");
            let both = |name: &[&'static str]| run(&world, &[name, &clients].concat());
            for arguments in [&["brew-coffee"][..], &[]] {
                let ran = both(arguments);
                assert_eq!((ran.code, ran.stdout().contains("unseen")), (Some(0), false));
            }
        }
    }
}

mod what_is_in_a_file_is_judged_as_each_client_reads_it {
    use super::*;

    /// Returns a world with a skill with these fields after its name, in the directory of most
    /// clients and in that of Claude Code.
    fn with(name: &str, more: &str) -> World {
        World::new()
            .file(format!("{USER}/{name}/SKILL.md"), document(name, more))
            .link(&format!("home/.claude/skills/{name}"), format!("../../.agents/skills/{name}"))
    }

    #[test]
    fn yaml_that_is_none_is_refused_hidden_or_repaired() {
        let world = with("brew-coffee", "description: Use when: thirsty\n");
        let skill = told(&world, "brew-coffee");
        let clients = ["goose", "claude-code", "opencode", "codex", "cursor"];
        assert_eq!(skill.verdicts(clients), ["refused", "hidden", "loads", "loads", "unknown"]);
        let why = skill.why("goose");
        assert!(why.contains("line 3") && why.contains("quotes"), "{why}");
        assert_eq!(run(&world, &["brew-coffee"]).code, Some(1));
        let ran = run(&world, &["brew-coffee", "--client", "cursor"]);
        let said = "1 client reads this folder; whether it loads the skill is unknown\n";
        assert!(ran.stdout().contains(said), "{}", ran.stdout());
    }

    #[test]
    fn a_frontmatter_beyond_repair_is_judged_too() {
        let text = "---\n\"brew\n\t- }{\n---\n\nDo it.\n";
        let world = World::new().file(format!("{USER}/brew-coffee/SKILL.md"), text);
        let skill = told(&world, "brew-coffee");
        assert_eq!(skill.verdicts(["goose", "pi"]), ["refused", "refused"]);
        assert_eq!(skill.verdicts(["codex", "gemini"]), ["unknown", "unknown"]);
    }

    #[test]
    fn what_is_advised_about_a_frontmatter_clears_the_complaint() {
        let world = World::new()
            .file(format!("{USER}/colon/SKILL.md"), document("colon", "description: Use: it\n"))
            .file(
                format!("{USER}/mark/SKILL.md"),
                format!("\u{feff}{}", document("mark", "description: Marks\n")),
            )
            .file(
                format!("{USER}/tabs/SKILL.md"),
                document("tabs", "description: Tabs\nmetadata:\n\ta: b\n"),
            )
            .file(format!("{USER}/list/SKILL.md"), "---\n- name: list\n---\n\nDo it.\n");
        for name in ["colon", "mark", "tabs"] {
            let ran = run(&world, &[name]);
            assert_eq!(ran.code, Some(1), "{}", ran.stdout());
            let command = ran.stdout().split('`').find(|it| it.starts_with("prowess check"));
            let command: Vec<&str> = command.unwrap_or_default().split(' ').skip(1).collect();
            assert_eq!(world.run(command).code, Some(0), "{name}");
            let ran = run(&world, &[name]);
            assert_eq!(ran.code, Some(0), "{}", ran.stdout());
        }
        let why = told(&world, "list").why("goose");
        assert!(why.contains("begin with `name:`") && !why.contains("quotes"), "{why}");
    }

    #[test]
    fn names_and_folders_are_compared_where_a_client_does_so() {
        let text = document("brew-coffee", "description: Brews\n");
        let loud = document("Brew-Tea", "description: Brews\n");
        let world = World::new()
            .file(".claude/skills/coffee/SKILL.md", text)
            .file(".claude/skills/Brew-Tea/SKILL.md", loud);
        let clients = ["cline", "claude-code", "crush", "vscode"];
        let skill = told(&world, "brew-coffee");
        assert_eq!(skill.verdicts(clients), ["refused", "loads", "refused", "loads"]);
        let why = skill.why("cline");
        assert!(why.contains("rename the folder to `brew-coffee`"), "{why}");
        let loud = told(&world, "Brew-Tea");
        assert_eq!(loud.verdicts(clients), ["loads", "loads", "loads", "loads"]);
        let framework = ["agent-framework", "adk"];
        assert_eq!(loud.verdicts(framework), ["refused", "refused"]);
    }

    #[test]
    fn what_is_too_long_is_cut_or_refused() {
        let world = with("brew-coffee", &format!("description: {}\n", "a".repeat(1100)));
        let skill = told(&world, "brew-coffee");
        let clients = ["codex", "crush", "gemini", "claude-code"];
        assert_eq!(skill.verdicts(clients), ["cut", "refused", "loads", "loads"]);
        assert!(skill.why("codex").contains("1100"), "{}", skill.why("codex"));

        let text = document("tome", "description: Long\n") + &"Read on.\n".repeat(1000);
        let world = World::new().file(format!("{USER}/tome/SKILL.md"), text);
        assert_eq!(told(&world, "tome").verdicts(["codex", "goose"]), ["cut", "loads"]);
    }

    #[test]
    fn a_skill_that_hides_is_hidden_where_that_is_understood() {
        let world = with("brew-coffee", "description: Brews\ndisable-model-invocation: true\n");
        let skill = told(&world, "brew-coffee");
        assert_eq!(skill.verdicts(["claude-code", "gemini", "pi"]), ["hidden", "loads", "hidden"]);
        assert!(skill.why("gemini").contains("loaded anyway"), "{}", skill.why("gemini"));
        assert_eq!(run(&world, &["brew-coffee"]).code, Some(0));
    }

    #[test]
    fn what_is_left_out_here_is_examined_all_the_same() {
        let world = with("brew-coffee", "license: MIT\n")
            .file(format!("{USER}/bare/SKILL.md"), "# Nothing but text\n");
        let skill = told(&world, "brew-coffee");
        let clients = ["claude-code", "codex", "kilo"];
        assert_eq!(skill.verdicts(clients), ["loads", "refused", "hidden"]);
        let bare = told(&world, "bare");
        assert_eq!(bare.verdicts(["kimi", "codex", "cursor"]), ["loads", "refused", "unknown"]);
    }

    #[test]
    fn what_stands_before_and_around_the_frontmatter_is_judged() {
        let text = document("brew-coffee", "description: Brews\n");
        let wide: Vec<u8> =
            text.replace("brew-coffee", "wide").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let world = World::new()
            .file(format!("{USER}/brew-coffee/SKILL.md"), format!("\u{feff}{text}"))
            .file(format!("{USER}/wide/SKILL.md"), [&[0xFF, 0xFE][..], &wide].concat());
        let skill = told(&world, "brew-coffee");
        assert_eq!(skill.verdicts(["gemini", "crush", "cursor"]), ["refused", "loads", "unknown"]);
        assert_eq!(told(&world, "wide").verdicts(["codex", "goose"]), ["refused", "refused"]);

        let late = text.replace("brew-coffee", "late");
        let odd = late.replace("late", "odd").replace("\n---\n", "\n----\n");
        let world = world
            .file(format!("{USER}/late/SKILL.md"), format!("\n{late}"))
            .file(format!("{USER}/odd/SKILL.md"), odd);
        assert_eq!(told(&world, "late").verdicts(["gemini", "goose"]), ["refused", "loads"]);
        assert_eq!(told(&world, "odd").verdicts(["gemini", "goose"]), ["unknown", "unknown"]);
    }

    #[test]
    fn frameworks_that_are_told_where_to_look_are_judged_by_the_file_alone() {
        let text = document("brew-coffee", "description: Brews\n");
        let world = World::new().file("anywhere/coffee/SKILL.md", text);
        let ran = run(&world, &["anywhere/coffee", "--json"]);
        let skill = Told(ran.json()["skills"][0].clone());
        assert_eq!(skill.verdicts(["agent-framework", "codex"]), ["refused", "unseen"]);
        assert_eq!(ran.code, Some(0));
        assert_eq!(run(&world, &["anywhere/coffee", "--client", "agent-framework"]).code, Some(1));
    }
}

mod of_skills_with_one_name_each_client_takes_its_own {
    use super::*;

    fn pairs<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<(String, String)> {
        pairs.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
    }

    #[test]
    fn the_directory_that_comes_first_for_a_client_wins() {
        let world = World::new().skill_in(".claude/skills", "brew-coffee", "Theirs").skill_in(
            "home/.claude/skills",
            "brew-coffee",
            "Mine",
        );
        let [theirs, mine] =
            [".claude/skills/brew-coffee/SKILL.md", "home/.claude/skills/brew-coffee/SKILL.md"];
        let own = pairs(&[(theirs, "shadowed"), (mine, "loads")]);
        assert_eq!(by_path(&world, "brew-coffee", "claude-code"), own);
        let others = pairs(&[(theirs, "loads"), (mine, "shadowed")]);
        assert_eq!(by_path(&world, "brew-coffee", "goose"), others);
        let ran = run(&world, &["brew-coffee"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stdout().contains("has the same name and comes first"), "{}", ran.stdout());
    }

    #[test]
    fn vs_code_and_copilot_take_the_shared_directory_before_that_of_claude() {
        let world = World::new().skill_in(PROJECT, "brew-coffee", "Shared").skill_in(
            ".claude/skills",
            "brew-coffee",
            "Theirs",
        );
        let of = |client: &str| by_path(&world, "brew-coffee", client).into_iter().map(|it| it.1);
        for client in ["vscode", "copilot"] {
            assert_eq!(of(client).collect::<Vec<_>>(), ["loads", "shadowed"], "{client}");
        }
        assert_eq!(of("cline").collect::<Vec<_>>(), ["unseen", "loads"]);
    }

    #[test]
    fn some_take_both_and_some_leave_it_to_chance() {
        let world = World::new().skill_in(PROJECT, "brew-coffee", "Theirs").skill_in(
            USER,
            "brew-coffee",
            "Mine",
        );
        let verdicts = |client: &str| {
            let all = by_path(&world, "brew-coffee", client).into_iter();
            all.map(|it| it.1).collect::<Vec<_>>()
        };
        assert_eq!(verdicts("codex"), ["loads", "loads"]);
        assert_eq!(verdicts("opencode"), ["unknown", "unknown"]);
    }

    #[test]
    fn a_copy_shadows_nothing() {
        let world = World::new().skill_in(PROJECT, "brew-coffee", "The same").skill_in(
            USER,
            "brew-coffee",
            "The same",
        );
        for client in ["goose", "opencode", "cursor"] {
            let verdicts = by_path(&world, "brew-coffee", client);
            assert!(verdicts.iter().all(|it| it.1 == "loads"), "{client} {verdicts:?}");
        }
    }

    #[test]
    fn a_skill_that_is_refused_shadows_nobody() {
        let broken = document("brew-coffee", "description: Use when: thirsty\n");
        let world = World::new().file(format!("{PROJECT}/brew-coffee/SKILL.md"), broken).skill_in(
            USER,
            "brew-coffee",
            "Mine",
        );
        let verdicts = by_path(&world, "brew-coffee", "goose");
        assert_eq!([&*verdicts[0].1, &*verdicts[1].1], ["refused", "loads"]);
    }
}

mod the_program_says_it_to_people_and_to_programs {
    use super::*;

    #[test]
    fn everything_is_checked_without_a_name() {
        let world = World::new().skill_in("home/.claude/skills", "brew-coffee", "Brews");
        let well = run(&world, &[]);
        assert_eq!(well.code, Some(0), "{}", well.stdout());
        assert!(well.stdout().contains("every client loads what it finds"), "{}", well.stdout());

        let broken = document("steep-tea", "description: Use when: thirsty\n");
        let world = world.file("home/.claude/skills/steep-tea/SKILL.md", broken);
        let ran = run(&world, &[]);
        assert_eq!(ran.code, Some(1));
        let said = ran.stdout();
        assert!(said.contains("Claude Code      1 loaded, 1 hidden\n"), "{said}");
        let hidden = run(&world, &["--client", "claude-code"]);
        assert_eq!(hidden.code, Some(0));
        let said_of = "but some are truncated or hidden (see `prowess doctor NAME`): steep-tea";
        assert!(hidden.stdout().contains(said_of), "{}", hidden.stdout());
        assert!(said.contains("refused   goose,") && said.contains("→ put the value"), "{said}");
        assert!(!said.contains("brew-coffee"), "{said}");
        let nothing = run(&World::new(), &[]);
        assert_eq!(nothing.code, Some(0));
        assert!(
            nothing.stdout().starts_with("no skills in any client's directories"),
            "{}",
            nothing.stdout()
        );
    }

    #[test]
    fn of_many_skills_the_causes_are_told() {
        let mut world = World::new();
        for number in 10..22 {
            let text = document(&format!("drink-{number}"), "description: Use: it\n");
            world = world.file(format!(".claude/skills/cup-{number}/SKILL.md"), text);
        }
        let ran = run(&world, &["--client", "cline", "--client", "goose"]);
        assert_eq!(ran.code, Some(1));
        let said = "\
refused   12 skills: the frontmatter is not valid YAML
          Cline, goose
          such as drink-10, drink-11, drink-12
refused   12 skills: the name does not match the folder
          Cline
          such as drink-10, drink-11, drink-12

12 skills not loaded by every client that reads the directory (-v shows each)
→ `prowess check .claude/skills --fix` fixes what is safe to fix in 12 of them
";
        assert!(ran.stdout().ends_with(said), "{}", ran.stdout());
        let all = run(&world, &["-v", "--client", "cline"]);
        assert!(all.stdout().contains("/cup-21/SKILL.md\nrefused   Cline\n"), "{}", all.stdout());
    }

    #[test]
    fn what_is_unknown_is_listed_by_its_reason() {
        let mut world = World::new();
        for number in 10..22 {
            let long = "a".repeat(1025);
            world = world.skill_in("home/.cursor/skills", &format!("drink-{number}"), &long);
        }
        let ran = run(&world, &["--client", "cursor"]);
        assert_eq!(ran.code, Some(0));
        let said = "\
Cursor  12 unknown

unknown   12 skills: the description has more than 1024 characters
          Cursor
          such as drink-10, drink-11, drink-12, drink-13, drink-14, drink-15, drink-16, drink-17, drink-18, drink-19

every client loads what it finds, as far as is known
";
        assert!(ran.stdout().ends_with(said), "{}", ran.stdout());
        let all = run(&world, &["-v", "--client", "cursor"]);
        assert!(all.stdout().contains("          drink-10,"), "{}", all.stdout());
        assert!(all.stdout().contains("drink-20, drink-21\n"), "{}", all.stdout());
    }

    #[test]
    fn the_command_that_fixes_a_file_is_told_where_it_does() {
        for (license, is_quoted, is_read) in [
            ("Mine: all", true, true),
            ("&all Mine: all", false, true),
            ("!!str Mine", false, false),
        ] {
            let fields = format!("name: brew-coffee\ndescription: Brews\nlicense: {license}");
            let text = format!("\u{feff}---\n{fields}\n---\n");
            let world = World::new().file(format!("{USER}/brew-coffee/SKILL.md"), text);
            let notes = run(&world, &["--json"]).json()["skills"][0]["notes"].take();
            let is_told = |about: &str| {
                let notes = notes.as_array().unwrap().iter();
                let mut own = notes.filter(|it| it["reason"].as_str().unwrap().contains(about));
                own.any(|it| it["fixable"] == true)
            };
            assert_eq!(is_told("is not valid YAML"), is_quoted, "{license}");
            assert_eq!(is_told("byte order mark"), is_read, "{license}");
        }
    }

    #[test]
    fn a_table_tells_all_skills_and_clients() {
        let broken = document("steep-tea", "description: Use when: thirsty\n");
        let mut world = World::new()
            .skill_in("home/.claude/skills", "brew-coffee", "Brews")
            .file("home/.claude/skills/steep-tea/SKILL.md", broken);
        let clients = ["--table", "--client", "claude-code", "--client", "goose"];
        let said = run(&world, &clients);
        let said = said.stdout();
        let rows =
            "             A B\nbrew-coffee  + +\nsteep-tea    h x\n\nA Claude Code, B goose\n";
        assert!(said.contains(rows), "{said}");

        for number in 0..120 {
            world = world.skill_in("home/.claude/skills", &format!("drink-{number}"), "Good");
        }
        let said = run(&world, &clients);
        let said = said.stdout();
        assert!(said.contains("steep-tea  h x\n") && !said.contains("drink-7"), "{said}");
        assert!(said.contains("121 skills not shown"), "{said}");
    }

    #[test]
    fn a_narrow_terminal_gets_narrow_lines() {
        let broken = document("steep-tea", "description: Use when: thirsty\n");
        let world = World::new()
            .skill_in(USER, "brew-coffee", "Brews")
            .file(format!("{USER}/steep-tea/SKILL.md"), broken);
        for what in ["--table", "brew-coffee", "steep-tea"] {
            let line =
                format!("stty cols 40 rows 24; {} doctor {what} --all --color never", program());
            let ran = world.run_script(&format!("script -qefc '{line}' /dev/null"));
            let said = ran.stdout().replace('\r', "");
            assert!(said.contains("A ") || said.contains(what), "{said}");
            // A path stays whole, and so does a command, so that it can be copied.
            let wide = said.lines().find(|it| it.chars().count() > 40 && !it.contains('/'));
            assert_eq!(wide, None, "{said}");
        }
    }

    #[test]
    fn a_path_names_any_skill() {
        let world =
            World::new().folder("here").skill_in("there/.claude/skills", "brew-coffee", "B");
        for (from, path) in [
            (".", "there/.claude/skills/brew-coffee"),
            (".", "there/.claude/skills/brew-coffee/SKILL.md"),
            ("there/.claude/skills", "./brew-coffee"),
            ("there/.claude/skills/brew-coffee", "."),
        ] {
            let ran = run(&world, &[path, "--cwd", from, "--json"]);
            let skill = Told(ran.json()["skills"][0].clone());
            assert_eq!(skill.verdicts(["claude-code", "codex"]), ["loads", "unseen"], "{path}");
            assert!(ran.stderr.contains("as seen from"), "{}", ran.stderr);
        }
    }

    #[test]
    fn clients_can_be_chosen() {
        let world = World::new().skill_in(USER, "brew-coffee", "Brews");
        let ran = run(&world, &["brew-coffee", "--client", "codex", "--json"]);
        let verdicts = &ran.json()["skills"][0]["verdicts"];
        assert_eq!(*verdicts, serde_json::json!({ "codex": "loads" }));
        assert_eq!(ran.code, Some(0));
        let unseen = run(&world, &["brew-coffee", "--client", "claude-code"]);
        assert_eq!(unseen.code, Some(1));
        let said = unseen.stdout();
        assert!(
            said.contains("unseen    1 client does not read this directory: Claude Code\n"),
            "{said}"
        );
        assert!(said.contains("in `~/.claude/skills` reaches it\n"), "{said}");
        let clients = ["--client", "codex", "--client", "claude-code", "--client", "codex"];
        let unseen = run(&world, &clients);
        assert_eq!(unseen.code, Some(1));
        let said = unseen.stdout();
        assert_eq!(said.matches("Codex").count(), 1, "{said}");
        assert!(
            said.contains("unseen    Claude Code does not read the directory of 1 skill\n"),
            "{said}"
        );
        let names = [("claude-cod", "claude-code"), ("github-copilot", "copilot")];
        for (typed, meant) in names {
            let wrong = run(&world, &["--client", typed]);
            assert_eq!(wrong.code, Some(2));
            let hint = format!("did you mean `{meant}`?");
            assert!(wrong.stderr.contains(&hint), "{}", wrong.stderr);
        }
    }

    #[test]
    fn a_name_that_is_not_there_is_answered_with_what_to_do() {
        let world = World::new().skill_in(USER, "brew-coffee", "Brews");
        let ran = run(&world, &["brew-cofee"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""));
        assert!(ran.stderr.contains("did you mean `brew-coffee`?"), "{}", ran.stderr);
        let bundled = run(&world, &["create-pr"]);
        assert_eq!(bundled.code, Some(1));
        assert!(bundled.stderr.contains("not in a directory"), "{}", bundled.stderr);
        let ran = run(&world, &["./nowhere"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("there is no `./nowhere`"), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint:"), "{}", ran.stderr);
    }

    #[test]
    fn a_folder_names_its_skill() {
        let text = document("brew-coffee", "description: Brews\n");
        let world = World::new()
            .file(format!("{USER}/pot/SKILL.md"), &text)
            .file("loose/skill.md", document("steep-tea", "description: Steeps\n"));
        for (typed, name) in [("pot", "brew-coffee"), ("loose", "steep-tea")] {
            assert_eq!(told(&world, typed).0["name"], name);
        }
        let world = world.skill_in(USER, "pot", "Another one");
        assert_eq!(told(&world, "pot").0["name"], "pot");
        assert_eq!(told(&world, "./loose").0["name"], "steep-tea");
    }

    #[test]
    fn a_skill_of_a_plugin_is_told_to_be_one() {
        let world = World::new().file("tools/.claude-plugin/plugin.json", "{}").skill_in(
            "tools/skills",
            "brew-coffee",
            "Brews",
        );
        let ran = run(&world, &["tools/skills/brew-coffee"]);
        assert!(ran.stderr.contains("part of the plugin in"), "{}", ran.stderr);
        let plain = World::new().skill_in("tools/skills", "brew-coffee", "Brews");
        let ran = run(&plain, &["tools/skills/brew-coffee"]);
        assert!(!ran.stderr.contains("plugin"), "{}", ran.stderr);
    }

    #[test]
    fn a_catalog_that_is_too_small_is_told() {
        let mut world = World::new();
        for number in 0..30 {
            let name = format!("drink-{number}");
            world = world.skill_in("home/.claude/skills", &name, &"word ".repeat(60));
        }
        let ran = run(&world, &["--json"]);
        let crowded = &ran.json()["crowded"][0];
        assert_eq!((&crowded["client"], &crowded["skills"]), (&"claude-code".into(), &30.into()));
        assert!(crowded["characters"].as_u64() > crowded["room"].as_u64(), "{crowded}");
        let said = run(&world, &["drink-7"]);
        assert!(said.stdout().contains("some are shortened"), "{}", said.stdout());
    }

    #[test]
    fn what_a_skill_says_cannot_move_the_cursor() {
        let text = "---\nname: \"a\\e[2Jb\\u202Ec\"\ndescription: Use when: x\n---\n";
        let world = World::new().file(format!("{USER}/\u{1b}[31mred/SKILL.md"), text);
        for arguments in [&["--table"][..], &["--json"]] {
            run(&world, arguments).assert_safe();
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_told() {
        let world = World::new()
            .skill_in(USER, "brew-coffee", "Brews")
            .pipe(&format!("{USER}/leak/SKILL.md"));
        let ran = run(&world, &["--json"]);
        let said = ran.json();
        assert_eq!(said["skills"][0]["name"], "brew-coffee");
        assert_eq!(said["findings"][0]["rule"], "file-not-regular");
        let ran = run(&world, &[]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("file-not-regular"));
        assert!(ran.stdout().contains("loads what can be read"), "{}", ran.stdout());

        let world = World::new().file(PROJECT, "no directory");
        let world = world.folder("there");
        let ran = run(&world, &["--dir", "nowhere", "--dir", "there"]);
        assert_eq!(ran.stderr.matches(PROJECT).count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("directory-missing"), "{}", ran.stderr);
    }

    #[test]
    fn the_document_has_the_fields_that_are_written_down() {
        let broken = document("steep-tea", "description: Use: it\n");
        let mut world = World::new().file("home/.claude/skills/steep-tea/SKILL.md", broken);
        world = world.pipe("home/.claude/skills/leak/SKILL.md");
        for number in 0..30 {
            let name = format!("drink-{number}");
            world = world.skill_in("home/.claude/skills", &name, &"word ".repeat(60));
        }
        let said = run(&world, &["--json"]).json();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clients.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut compared = 0;
        for (place, fields) in [
            ("", &said),
            ("clients[].", &said["clients"][0]),
            ("skills[].", &said["skills"][0]),
            ("skills[].elsewhere.", &said["skills"][0]["elsewhere"]),
            ("skills[].notes[].", &said["skills"][30]["notes"][0]),
            ("crowded[].", &said["crowded"][0]),
        ] {
            for name in fields.as_object().unwrap().keys() {
                assert!(page.contains(&format!("| `{place}{name}` |")), "{place}{name}");
                compared += 1;
            }
        }
        assert_eq!(compared, page.matches("| `").count());
    }
}

mod only_installed_clients_are_judged {
    use super::*;

    /// Runs the program with this `PATH`.
    fn with_path(world: &World, path: &str, arguments: &[&str]) -> Ran {
        let path = world.path(path);
        world.run_with(&[("PATH", path.to_str().unwrap())], ["doctor"].iter().chain(arguments))
    }

    fn judged(ran: &Ran) -> Vec<String> {
        let said = ran.json();
        let names = said["clients"].as_array().unwrap().iter();
        names.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_client_is_installed_where_its_directory_or_its_program_is() {
        let world = World::new().skill_in(USER, "brew-coffee", "Brews").folder("home/.codex");
        let ran = with_path(&world, "bin", &["--json"]);
        assert_eq!(judged(&ran), ["codex"]);
        let at = ran.json()["clients"][0]["installed_at"].take();
        assert_eq!(at, world.path("home/.codex").to_str().unwrap());
        let ran = with_path(&world, "bin", &[]);
        assert!(ran.stderr.contains("known clients are not installed here"), "{}", ran.stderr);
        assert!(!ran.stdout().contains("goose"), "{}", ran.stdout());
        let world = World::new().skill_in(USER, "brew-coffee", "Brews").file("bin/qwen", "");
        assert_eq!(judged(&with_path(&world, "bin", &["--json"])), ["qwen"]);
        let moved = world.path("moved").display().to_string();
        fs::create_dir(&moved).unwrap();
        let path = world.path("none").display().to_string();
        let set = [("CODEX_HOME", &*moved), ("PATH", &*path)];
        let ran = world.run_with(&set, ["doctor", "--json"]);
        assert_eq!(judged(&ran), ["codex"]);
    }

    #[test]
    fn a_project_that_is_set_up_for_a_client_is_judged_for_it() {
        let world = World::new()
            .folder("one/.git")
            .folder("one/deep")
            .folder("two")
            .folder("home/.codex")
            .skill_in("one/.cursor/skills", "brew-coffee", "Brews");
        let seen_from =
            |world: &World, cwd: &str| judged(&with_path(world, "bin", &["--json", "--cwd", cwd]));
        assert_eq!(seen_from(&world, "one"), ["codex", "cursor"]);
        assert_eq!(seen_from(&world, "one/deep"), ["codex", "cursor"]);
        assert_eq!(seen_from(&world, "two"), ["codex"]);
        let world = world.folder("home/.gemini");
        let home = world.path("home").display().to_string();
        assert_eq!(seen_from(&world, &home), ["codex"]);
    }

    #[test]
    fn a_fault_in_a_client_that_is_not_installed_is_no_fault() {
        let text = document("brew-coffee", "description: Brews\nmetadata:\n  a: [1, 2]\n");
        let world = World::new().file("home/.claude/skills/brew-coffee/SKILL.md", text);
        assert_eq!(with_path(&world, "bin", &[]).code, Some(0));
        assert_eq!(with_path(&world, "bin", &["brew-coffee"]).code, Some(0));
        assert_eq!(with_path(&world, "bin", &["--all"]).code, Some(1));
        assert_eq!(with_path(&world, "bin", &["--client", "crush"]).code, Some(1));
    }

    #[test]
    fn where_no_client_is_detected_all_are_judged() {
        let world = World::new().skill_in(USER, "brew-coffee", "Brews");
        let ran = with_path(&world, "bin", &["--json"]);
        assert_eq!(judged(&ran).len(), CLIENTS.len());
        assert!(ran.stderr.contains("no installed client was detected"), "{}", ran.stderr);
    }

    #[test]
    fn skills_of_plugins_are_said_not_to_be_examined() {
        let world = World::new().skill_in("home/.claude/skills", "brew-coffee", "Brews");
        assert!(!with_path(&world, "bin", &[]).stderr.contains("plugins"));
        let world = world.folder("home/.claude/plugins/cache/market/tools");
        let ran = with_path(&world, "bin", &[]);
        assert!(ran.stderr.contains("skills of plugins are not examined"), "{}", ran.stderr);
    }
}
