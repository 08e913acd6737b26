//! From configured directories to a library.

use std::path::Path;

use prowess::{Directory, Library, Options};
use serde_json::json;

use crate::world::{World, resources};

mod nothing_is_scanned_that_nobody_named {
    use super::*;

    #[test]
    fn m_02_one_directory_is_given_and_only_it_is_scanned() {
        let world = World::new().skill("one", "a").skill_in("others", "two", "b");
        assert_eq!(world.list().names(), ["one"]);
    }

    #[test]
    fn m_03_several_directories_are_given_and_all_are_scanned() {
        let world = World::new()
            .skill("one", "a")
            .skill_in("others", "two", "b")
            .skill_in("third", "three", "c");
        let said = world.list_with(&["--dir", "others", "--dir", "third"]);
        assert_eq!(said.names(), ["one", "three", "two"]);
    }

    #[test]
    fn m_04_the_directories_of_other_clients_are_scanned_only_when_named() {
        let world = World::new()
            .skill("own", "a")
            .skill_in(".claude/skills", "claude", "b")
            .skill_in(".cline/skills", "cline", "c");
        let named = |directories: Vec<Directory>| {
            let library = Library::load(&Options { directories, ..world.options() }).unwrap();
            let names: Vec<&str> = library.all().map(|it| &*it.manifest.name).collect();
            names.join(" ")
        };
        let of = |name: &str| prowess::preset(name).unwrap().directories().collect();
        assert_eq!(named(world.options().directories), "own");
        assert_eq!(named(of("claude")), "claude");
        assert_eq!(named(of("cline")), "cline");
        assert_eq!(named(vec![Directory::new(".claude/skills")]), "claude");
        assert_eq!(world.list_with(&["--preset", "cline"]).names(), ["cline", "own"]);
    }

    #[test]
    fn m_05_only_skill_md_in_a_configured_directory_counts() {
        let text = "---\nname: other\ndescription: b\n---\n";
        let world = World::new()
            .skill("one", "a")
            .file("SKILL.md", text)
            .file("skills/readme/README.md", text)
            .file("skills/notes/SKILLS.md", text)
            .file("skills/loose.md", text);
        let said = world.list();
        assert_eq!(said.names(), ["one"]);
        assert_eq!(said.rules(), [""; 0]);
    }

    #[test]
    fn a_folder_that_is_a_skill_itself_can_be_named() {
        let world = World::new().skill("one", "a").skill("two", "b");
        let said = world.run(["list", "--json", "--dir", "skills/one"]).said();
        assert_eq!(said.names(), ["one"]);
    }

    #[test]
    fn an_unknown_preset_is_an_error_that_names_those_there_are() {
        let ran = World::new().run(["list", "--preset", "nobody"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("`nobody`") && ran.stderr.contains("claude"), "{}", ran.stderr);
    }

    #[test]
    fn a_folder_behind_a_link_inside_the_directory_holds_nothing_new() {
        let world =
            World::new().skill_in("skills/other", "a", "Use when A").link("skills/group", "other");
        let said = world.list_with(&["--depth", "2"]);
        assert_eq!((said.names(), said.rules()), (vec!["a"], vec![]));
        assert_eq!(said.skill("a")["path"], "skills/other/a/SKILL.md");
        let (code, said) = world.check("skills", &["--depth", "2"]);
        assert_eq!((code, &said.0["skills"], said.rules()), (Some(0), &json!(1), vec![]));
    }

    #[test]
    fn a_misspelt_preset_is_told_the_nearest_name() {
        let ran = World::new().run(["list", "--preset", "claud"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("`claude`"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("windsurf"), "{}", ran.stderr);
    }
}

mod the_program_finds_the_skills_that_are_here {
    use super::*;

    fn clients() -> World {
        World::new()
            .skill_in(".cursor/skills", "deploy", "Deploy to staging")
            .skill_in("home/.claude/skills", "pptx", "Make slides")
            .skill_in("home/.agents/skills", "review", "Review a change")
            .file("home/.claude/skills/pptx/notes.md", "notes")
    }

    #[test]
    fn without_a_directory_every_command_means_the_skills_of_all_clients() {
        let world = clients();
        let names = ["deploy", "pptx", "review"];
        let list = world.run(["list", "--json"]);
        assert_eq!(list.said().names(), names);
        assert_eq!(list.said().skill("deploy")["scope"], "project");
        assert_eq!(list.said().skill("pptx")["scope"], "user");
        for directory in ["`.cursor/skills`", "`~/.claude/skills`", "`~/.agents/skills`"] {
            assert!(list.stderr.contains(directory), "{}", list.stderr);
        }
        assert!(list.stderr.contains("3 skills") && list.stderr.contains("`here`"));
        assert_eq!(list.stderr.matches("preset").count(), 1, "{}", list.stderr);
        let found = world.run(["find", "make slides", "--json"]).json();
        assert_eq!(found["matches"][0]["name"], "pptx");
        assert_eq!(world.run(["read", "pptx", "notes.md"]).stdout(), "notes");
        assert_eq!(world.run(["check", "--json"]).json()["skills"], 3);
        for arguments in [&["catalog"][..], &["prompt", "--window", "100000"], &["lab", "--json"]] {
            let ran = world.run(arguments);
            assert!(names.iter().all(|it| ran.stdout().contains(it)), "{}", ran.stdout());
        }
        for name in names {
            assert_eq!(world.run(["show", name]).code, Some(0), "{name}");
        }
    }

    #[test]
    fn the_preset_here_can_be_named() {
        let world = clients().skill_in("mine", "own", "Mine");
        let ran = world.run(["list", "--json", "--preset", "here", "--dir", "mine"]);
        assert_eq!(ran.said().names(), ["deploy", "own", "pptx", "review"]);
        world.write("prowess.toml", "[skill]\npresets = [\"here\"]\n");
        assert_eq!(world.run(["list", "--json"]).said().names(), ["deploy", "pptx", "review"]);
        let nothing = World::new().run(["list", "--json", "--preset", "here"]);
        assert_eq!((nothing.code, nothing.said().names()), (Some(0), vec![]));
    }

    #[test]
    fn folders_above_count_as_far_as_the_repository_goes() {
        let world = World::new()
            .folder("repo/.git")
            .skill_in(".claude/skills", "outside", "a")
            .skill_in("repo/.claude/skills", "above", "b")
            .skill_in("repo/.claude/skills", "same", "The farther one")
            .skill_in("repo/pkg/.claude/skills", "same", "The nearer one");
        let said = world.run(["list", "--json", "--cwd", "repo/pkg"]).said();
        assert_eq!(said.names(), ["above", "same", "same"]);
        assert_eq!(said.skills()[1]["description"], "The nearer one");
        assert_eq!(said.skills()[2]["hidden_by"], said.skills()[1]["path"]);
    }

    #[test]
    fn in_the_home_directory_the_skills_are_the_users() {
        let world = clients();
        let said = world.run_script("cd home && \"$0\" list --json").said();
        assert_eq!(said.names(), ["pptx", "review"]);
        assert!(said.skills().iter().all(|it| it["scope"] == "user"), "{said:?}");
    }

    #[test]
    fn a_skill_that_two_clients_share_is_one() {
        let world = clients()
            .link("home/.claude/skills/review", "../../.agents/skills/review")
            .skill_in("home/.gemini/skills", "review", "Review a change");
        let ran = world.run(["list", "--json"]);
        assert_eq!(ran.said().names(), ["deploy", "pptx", "review"]);
        assert!(ran.said().findings().iter().all(|it| it["severity"] == "info"));
    }

    #[test]
    fn what_git_ignores_is_found_where_a_client_looks() {
        let world = clients().folder(".git").file(".gitignore", "*\n");
        assert_eq!(world.run(["list", "--json"]).said().names(), ["deploy", "pptx", "review"]);
        let named = world.run(["list", "--json", "--dir", ".cursor/skills"]);
        assert_eq!(named.said().names(), ["deploy"]);
    }

    #[test]
    fn check_reports_on_nothing_else() {
        let world = World::new().file(".claude/skills/Broken/SKILL.md", "no frontmatter\n");
        let ran = world.run(["check"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stdout().contains("frontmatter-missing"), "{}", ran.stdout());
        assert!(ran.stderr.contains("`.claude/skills`"), "{}", ran.stderr);
        for arguments in [&["check"][..], &["check", "--fix"], &["check", "skills"]] {
            let ran = World::new().run(arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments:?}");
            assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
        }
    }

    #[test]
    fn without_a_home_that_is_said() {
        let world = clients();
        for arguments in [&["list", "--json"][..], &["list", "--json", "--preset", "claude"]] {
            let ran = world.run_with(&[("HOME", "home")], arguments);
            assert_eq!(ran.code, Some(0));
            assert!(ran.stderr.contains("warning: `HOME` is not set"), "{}", ran.stderr);
            assert!(!ran.stdout().contains("pptx"), "{}", ran.stdout());
        }
    }
}

mod a_repository_is_searched_as_deep_as_skills_lie {
    use super::*;

    fn repository() -> World {
        World::new()
            .folder("repo/.git")
            .skill_in("repo/plugins/a/skills", "one", "Use when a")
            .skill_in("repo/plugins/b/skills/group", "two", "Use when b")
            .skill_in("repo/.claude/skills", "three", "Use when c")
            .skill_in("repo/pkg/.cursor/skills", "four", "Use when d")
            .skill_in("repo/.apm/skills", "five", "Use when e")
            .skill_in("repo/.tabnine/agent/skills", "six", "Use when f")
    }

    const ALL: [&str; 6] = ["five", "four", "one", "six", "three", "two"];

    #[test]
    fn skills_of_plugins_and_in_hidden_folders_of_clients_are_found() {
        let world = repository();
        assert_eq!(world.run(["list", "--json", "--dir", "repo"]).said().names(), ALL);
        assert_eq!(world.run(["check", "repo", "--json"]).json()["skills"], 6);
        let found = world.run(["find", "--dir", "repo", "two", "--json"]).json();
        assert_eq!(found["matches"][0]["name"], "two");
        world.write("prowess.toml", "[skill]\ndirectories = [\"repo\"]\n");
        assert_eq!(world.run(["list", "--json"]).said().names(), ALL);
        let doctor = world.run(["doctor", "--dir", "repo", "--json"]).json();
        assert_eq!(doctor["skills"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn a_depth_can_be_given() {
        let world = repository();
        let names = |depth: &str| {
            let ran = world.run(["list", "--json", "--dir", "repo", "--depth", depth]);
            ran.said().names().join(" ")
        };
        assert_eq!(
            ["1", "3", "4", "5"].map(names),
            ["", "five three", "five four one six three", "five four one six three two"]
        );
    }

    #[test]
    fn what_tools_have_made_and_git_ignores_is_searched_only_where_it_is_named() {
        let world = repository()
            .skill_in("repo/node_modules/x/skills", "no-1", "a")
            .skill_in("repo/.git/skills", "no-2", "a")
            .skill_in("repo/pkg/target/skills", "no-3", "a")
            .skill_in("repo/dist/skills", "no-4", "a")
            .skill_in("repo/.trash", "no-5", "a")
            .skill_in("repo/.cache/things", "no-6", "a")
            .skill_in("repo/venv/lib/skills", "no-7", "a")
            .file("repo/venv/pyvenv.cfg", "")
            .skill_in("repo/pkg/generated/skills", "no-8", "a")
            .skill_in("repo/pkg/kept/generated/skills", "seven", "g")
            .file("repo/.gitignore", "generated/\n")
            .file("repo/pkg/kept/.gitignore", "!generated\n");
        let mut all = ALL.to_vec();
        all.insert(3, "seven");
        assert_eq!(world.run(["list", "--json", "--dir", "repo"]).said().names(), all);
        assert_eq!(world.run(["check", "repo", "--json"]).json()["skills"], 7);
        let below = world.run(["list", "--json", "--dir", "repo/pkg"]);
        assert_eq!(below.said().names(), ["four", "seven"]);
        for (named, name) in [("repo/dist", "no-4"), ("repo/pkg/generated", "no-8")] {
            assert_eq!(world.run(["list", "--json", "--dir", named]).said().names(), [name]);
        }
    }

    #[test]
    fn another_list_of_what_is_ignored_is_noticed() {
        let world = repository();
        let names = || world.run(["list", "--json", "--dir", "repo"]).said().names().join(" ");
        let all = ALL.join(" ");
        assert_eq!((names(), names()), (all.clone(), all.clone()));
        world.write("repo/.gitignore", "group\n");
        assert_eq!(names(), "five four one six three");
        world.write("repo/.gitignore", "plugins\n");
        assert_eq!(names(), "five four six three");
        world.write("repo/.gitignore", "#\n");
        assert_eq!(names(), all);
    }

    #[test]
    fn a_skill_may_be_called_like_a_folder_that_is_skipped() {
        let world = World::new().skill("dist", "a").skill("target", "b");
        assert_eq!(world.list().names(), ["dist", "target"]);
    }

    #[test]
    fn links_that_lead_to_no_skill_are_nothing_to_report() {
        let world = repository()
            .link("repo/loop", ".")
            .link("repo/pkg/up", "../..")
            .link("repo/gone", "nowhere")
            .link("repo/system", "/usr");
        let ran = world.run(["check", "repo", "--json"]);
        assert_eq!((ran.code, ran.said().rules()), (Some(0), vec![]), "{}", ran.stderr);
        let world = world.skill_in("outside", "x", "y").link("repo/pkg/x", "../../outside/x");
        assert_eq!(world.run(["check", "repo", "--json"]).said().rules(), ["link-escapes"]);
    }
}

mod a_directory_that_is_not_there {
    use super::*;

    #[test]
    fn where_every_directory_that_was_typed_is_missing_the_program_exits_2() {
        let world = World::new().skill("one", "a");
        for arguments in [
            &["list"][..],
            &["find", "one"],
            &["show", "one"],
            &["catalog"],
            &["check"],
            &["lab"],
            &["prompt"],
            &["run", "one"],
        ] {
            let ran = world.run(arguments.iter().chain(&["--dir", "skils"]));
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments:?}");
            assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("`skils`"));
            assert!(ran.stderr.contains("did you mean `skills`?"), "{}", ran.stderr);
        }
    }

    #[test]
    fn m_06_a_missing_directory_is_reported_and_skipped() {
        let world = World::new().skill("one", "a");
        let said = world.list_with(&["--dir", "nowhere"]);
        assert_eq!(said.names(), ["one"]);
        let finding = said.finding("directory-missing");
        assert_eq!(
            (&finding["severity"], &finding["path"]),
            (&json!("warning"), &json!("nowhere"))
        );
        let logged = world.run(["list", "--dir", "nowhere", "--dir", "skills"]);
        assert_eq!(logged.code, Some(0));
        assert!(logged.stderr.contains("warning[directory-missing]"), "{}", logged.stderr);
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_is_reported_and_skipped() {
        let world = World::new().skill("one", "a").file("notes.txt", "n");
        let said = world.list_with(&["--dir", "notes.txt"]);
        assert_eq!(said.names(), ["one"]);
        assert_eq!(said.finding("directory-unreadable")["severity"], "error");
    }

    #[test]
    fn a_directory_of_a_preset_may_be_missing_without_a_word() {
        let said = World::new().run(["list", "--json", "--preset", "claude"]).said();
        assert_eq!((said.names().len(), said.rules().len()), (0, 0));
    }
}

mod one_bad_skill_affects_no_other {
    use super::*;

    #[test]
    fn m_07_a_malformed_skill_is_reported_and_skipped() {
        let world = World::new()
            .document("frontmatter", "---\nname: [frontmatter\n---\n")
            .document("content", "just text\n")
            .document("empty", "")
            .skill("good", "Stays");
        let said = world.list();
        assert_eq!(said.names(), ["good"]);
        assert_eq!(said.about("skills/frontmatter/SKILL.md"), ["yaml-invalid"]);
        assert_eq!(said.about("skills/content/SKILL.md"), ["frontmatter-missing"]);
        assert_eq!(said.about("skills/empty/SKILL.md"), ["frontmatter-missing"]);
        assert_eq!(said.about("skills/good"), [""; 0]);
    }

    #[test]
    fn q_28_a_corrupt_skill_file_is_reported_and_the_others_load() {
        let noise: Vec<u8> =
            (0..5000_u32).map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let world = World::new()
            .document("noise", noise)
            .folder("skills/folder/SKILL.md")
            .skill("first", "a")
            .skill("last", "b");
        let said = world.list();
        assert_eq!(said.names(), ["first", "last"]);
        for path in ["skills/noise/SKILL.md", "skills/folder/SKILL.md"] {
            let findings: Vec<_> = said.findings().iter().filter(|it| it["path"] == path).collect();
            assert!(findings.iter().any(|it| it["severity"] == "error"), "{said:?}");
        }
        let logged = world.run(["list", "--dir", "skills"]).stderr;
        assert!(logged.contains("skills/noise") && logged.contains("skills/folder"), "{logged}");
    }

    #[test]
    fn s_03_a_hidden_directory_is_skipped_without_a_word() {
        let world = World::new()
            .skill("one", "a")
            .skill(".hidden", "b")
            .document(".broken", "no frontmatter")
            .skill_in("skills/.git/modules", "deep", "c");
        let said = world.list_with(&["--depth", "6"]);
        assert_eq!(said.names(), ["one"]);
        assert_eq!(said.rules(), [""; 0]);
    }
}

mod paths_begin_where_the_user_expects {
    use super::*;

    #[test]
    fn m_08_a_relative_directory_begins_at_the_working_directory() {
        let world = World::new().skill("one", "a").skill_in("project/skills", "two", "b");
        let said = world.list();
        assert_eq!(said.names(), ["one"]);
        assert_eq!(said.skill("one")["path"], "skills/one/SKILL.md");
        let said = world.list_with(&["--cwd", "project"]);
        assert_eq!(said.names(), ["two"]);
    }

    #[test]
    fn m_28_the_option_cwd_moves_where_relative_directories_begin() {
        let world = World::new().skill("one", "a").skill_in("project/skills", "two", "b").skill_in(
            "elsewhere",
            "three",
            "c",
        );
        let absolute = world.path("elsewhere");
        let said = world.list_with(&["--cwd", "project", "--dir", absolute.to_str().unwrap()]);
        assert_eq!(said.names(), ["three", "two"]);
        let options = Options { cwd: Some(world.path("project")), ..world.options() };
        assert!(Library::load(&options).unwrap().get("two").is_some());
    }

    #[test]
    fn a_21_a_tilde_is_the_home_directory() {
        let world = World::new().skill_in("home/my-skills", "mine", "a");
        let said = world.run(["list", "--json", "--dir", "~/my-skills"]).said();
        assert_eq!(said.skill("mine")["scope"], "user");
        let path = world.path("home/my-skills/mine/SKILL.md");
        assert_eq!(said.skill("mine")["path"], path.to_str().unwrap());
        // Only a tilde that stands alone is the home directory.
        let ran = world.run(["list", "--json", "--dir", "~my-skills"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("`~my-skills`"), "{}", ran.stderr);
    }

    #[test]
    fn q_01_q_02_the_layout_of_aiqconfig_works_as_a_preset() {
        let world = World::new()
            .skill_in("home/.aiqconfig/skills", "query-data", "a")
            .skill_in("home/.aiqconfig/skills", "send-mail", "b")
            .file("home/.aiqconfig/SKILL.md", "---\nname: above\ndescription: c\n---\n");
        let said = world.run(["list", "--json", "--preset", "aiq"]).said();
        assert_eq!(said.names(), ["query-data", "send-mail"]);
        assert_eq!(said.rules(), [""; 0]);
    }
}

mod the_files_beside_skill_md_are_its_resources {
    use super::*;

    #[test]
    fn m_25_all_files_beside_skill_md_are_tracked() {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/notes.md", "n")
            .file("skills/one/scripts/run.sh", "true\n")
            .file("skills/one/references/api/v2/index.md", "i")
            .file("skills/one/.env.example", "A=1\n");
        let said = world.list();
        assert_eq!(
            resources(said.skill("one")),
            [".env.example", "notes.md", "references/api/v2/index.md", "scripts/run.sh"]
        );
    }

    #[test]
    fn m_26_the_kind_of_a_resource_follows_from_its_ending_and_folder() {
        let kinds = [
            ("run.sh", "script"),
            ("run.bash", "script"),
            ("references/run.py", "script"),
            ("scripts/tool", "script"),
            ("scripts/schemas/sheet.xsd", "asset"),
            ("scripts/table.json", "asset"),
            ("notes.md", "reference"),
            ("references/table.csv", "reference"),
            ("templates/mail.html", "template"),
            ("config.yaml", "template"),
            ("assets/logo.svg", "asset"),
            ("logo.png", "asset"),
        ];
        let mut world = World::new().skill("one", "a");
        for (path, _) in kinds {
            world = world.file(format!("skills/one/{path}"), "x");
        }
        let said = world.list();
        let listed = said.skill("one")["resources"].as_array().unwrap().clone();
        assert_eq!(listed.len(), kinds.len());
        for (path, kind) in kinds {
            let resource = listed.iter().find(|it| it["path"] == path).unwrap();
            assert_eq!(resource["kind"], kind, "{path}");
        }
    }

    #[test]
    fn m_27_skill_md_itself_is_not_a_resource() {
        let world = World::new().skill("one", "a").file("skills/one/notes.md", "n");
        assert_eq!(resources(world.list().skill("one")), ["notes.md"]);
        assert!(world.load().get("one").unwrap().read("SKILL.md").is_err());
    }
}

mod there_is_a_limit_to_what_is_taken_in {
    use super::*;

    #[test]
    fn m_29_a_resource_over_the_limit_is_refused_with_a_warning() {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/fits.txt", "x".repeat(50_000))
            .file("skills/one/over.txt", "x".repeat(50_001));
        let said = world.list_with(&["--max-file-size", "50000"]);
        assert_eq!(resources(said.skill("one")), ["fits.txt"]);
        let finding = said.finding("resource-too-large");
        assert_eq!(finding["severity"], "warning");
        assert_eq!(finding["path"], "skills/one/over.txt");
        let read = ["read", "one", "over.txt", "--dir", "skills", "--max-file-size", "50000"];
        assert_eq!(world.run(read).code, Some(1));
    }

    #[test]
    fn the_program_takes_files_of_10_mib_and_skills_of_64_mib() {
        const MIB: u64 = 1024 * 1024;
        let world = World::new()
            .skill("one", "a")
            .sparse("skills/one/fits.bin", 10 * MIB)
            .sparse("skills/one/over.bin", 10 * MIB + 1);
        let said = world.list();
        assert_eq!(resources(said.skill("one")), ["fits.bin"]);
        assert_eq!(said.about("over.bin"), ["resource-too-large"]);
        let mut world = World::new().skill("font", "A").skill("movie", "B");
        world = world.sparse("skills/font/a.ttf", 600_000);
        for number in 0..7 {
            world = world.sparse(&format!("skills/movie/{number}.bin"), 10 * MIB);
        }
        let said = world.list();
        assert_eq!((said.names(), said.rules()), (vec!["font"], vec!["skill-too-large"]));
        let (code, said) = world.check("skills/font", &[]);
        assert!(code == Some(0) && !said.rules().contains(&"skill-too-large"), "{said:?}");
    }

    #[test]
    fn a_size_is_typed_as_people_write_it() {
        let world = World::new().skill("one", "a").sparse("skills/one/a.bin", 5_000_000);
        for (size, is_listed) in [("5MB", true), ("4.9 MB", false), ("5 MiB", true), ("1kb", false)]
        {
            let said = world.list_with(&["--max-file-size", size]);
            assert_eq!(resources(said.skill("one")).len() == 1, is_listed, "{size}");
        }
        let ran = world.run(["list", "--dir", "skills", "--max-skill-size", "5 apples"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("`10MiB`"), "{}", ran.stderr);
    }

    #[test]
    fn the_size_of_a_skill_counts_every_file() {
        let world = World::new()
            .skill("one", "a")
            .sparse("skills/one/large.bin", 3_000_000)
            .sparse("skills/one/small.bin", 1000);
        let limit = ["--max-skill-size", "2MB"];
        for largest in ["1MB", "4MB"] {
            let said = world.list_with(&[&limit[..], &["--max-file-size", largest]].concat());
            let finding = said.finding("skill-too-large");
            let message = finding["message"].as_str().unwrap();
            assert!(message.contains("3001040 bytes"), "{message}");
        }
    }

    #[test]
    fn both_limits_can_be_set() {
        let raised = ["--max-file-size", "3000000", "--max-skill-size", "6000000"];
        let lowered = ["--max-file-size", "1000000", "--max-skill-size", "1000000"];
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/large.txt", "x".repeat(2_000_000))
            .file("skills/one/larger.txt", "x".repeat(2_900_000));
        assert_eq!(resources(world.list_with(&lowered[..2]).skill("one")), [""; 0]);
        let said = world.list_with(&raised);
        assert_eq!(resources(said.skill("one")), ["large.txt", "larger.txt"]);
        let said = world.list_with(&[raised[0], raised[1], lowered[2], lowered[3]]);
        assert_eq!(said.rules(), ["skill-too-large"]);
        let ran = world.run(["read", "one", "large.txt", "--dir", "skills"].iter().chain(&raised));
        assert_eq!((ran.code, ran.out.len()), (Some(0), 2_000_000), "{}", ran.stderr);
    }

    #[test]
    fn the_largest_number_is_a_limit_too() {
        let world = World::new().skill("one", "a").file("skills/one/notes.md", "notes");
        let largest = u64::MAX.to_string();
        let limits = ["--dir", "skills", "--max-file-size", &largest, "--max-skill-size", &largest];
        let said = world.list_with(&limits[2..]);
        assert_eq!((said.names(), said.rules()), (vec!["one"], vec![]));
        let ran = world.run(["show", "one"].iter().chain(&limits));
        assert!(ran.stdout().contains("# one"), "{}{}", ran.stdout(), ran.stderr);
        let ran = world.run(["read", "one", "notes.md"].iter().chain(&limits));
        assert_eq!((ran.code, ran.stdout()), (Some(0), "notes"), "{}", ran.stderr);
        assert_eq!(world.run(["check", "skills"].iter().chain(&limits)).code, Some(0));
    }
}

mod names_can_be_picked {
    use super::*;

    fn three() -> World {
        World::new()
            .skill("deploy-staging", "a")
            .skill("run-tests", "b")
            .skill("legacy-deploy", "c")
    }

    #[test]
    fn m_30_only_included_skills_are_available() {
        let arguments = ["--include", "deploy-staging", "--include", "run-tests"];
        assert_eq!(three().list_with(&arguments).names(), ["deploy-staging", "run-tests"]);
        let show = ["show", "legacy-deploy", "--dir", "skills"];
        assert_eq!(three().run(show.iter().chain(&arguments)).code, Some(1));
        assert_eq!(three().run(show).code, Some(0));
    }

    #[test]
    fn m_31_excluded_skills_are_left_out() {
        let arguments = ["--exclude", "legacy-deploy"];
        assert_eq!(three().list_with(&arguments).names(), ["deploy-staging", "run-tests"]);
        let show = ["show", "legacy-deploy", "--dir", "skills"];
        assert_eq!(three().run(show.iter().chain(&arguments)).code, Some(1));
    }

    #[test]
    fn a_name_to_include_that_nobody_has_is_said() {
        let said = three().list_with(&["--include", "run-test"]);
        assert_eq!(said.names(), [""; 0]);
        let finding = said.finding("include-unmatched");
        assert_eq!(finding["severity"], "warning");
        assert!(finding["message"].as_str().unwrap().contains("`run-test`"), "{finding}");
    }

    #[test]
    fn a_05_skills_are_looked_up_by_tag() {
        let tagged = |name: &str, tags: &str| {
            format!("---\nname: {name}\ndescription: a\ntags: [{tags}]\n---\n")
        };
        let world = World::new()
            .document("one", tagged("one", "DevOps, web"))
            .document("two", tagged("two", "web"))
            .skill("three", "devops in words alone");
        assert_eq!(world.list_with(&["--tag", "devops"]).names(), ["one"]);
        assert_eq!(world.list_with(&["--tag", "web"]).names(), ["one", "two"]);
        assert_eq!(world.list_with(&["--tag", "we"]).names(), [""; 0]);
        let library = world.load();
        let names: Vec<&str> = library.tagged("WEB").map(|it| &*it.manifest.name).collect();
        assert_eq!(names, ["one", "two"]);
    }
}

mod of_two_skills_of_one_name_the_nearer_is_taken {
    use super::*;

    fn two() -> World {
        World::new().skill("deploy", "The project's").skill_in("home/mine", "deploy", "The user's")
    }

    /// Returns the first word of each line that `list` prints.
    fn listed(world: &World, arguments: &[&str]) -> Vec<String> {
        let ran = world.run(["list"].iter().chain(arguments));
        let words = |line: &str| line.split('\t').next().unwrap().to_owned();
        ran.stdout().lines().map(words).collect()
    }

    /// Asserts that every skill is found by its selector.
    fn assert_addresses(library: &Library) {
        for skill in library.all() {
            let address = library.address(skill);
            let found = library.get(&address).unwrap();
            assert_eq!(found.origin.path, skill.origin.path, "{address}");
        }
    }

    #[test]
    fn the_hidden_one_is_listed_and_can_be_reached() {
        let world = two();
        let said = world.list_with(&["--dir", "~/mine"]);
        assert_eq!(said.names(), ["deploy", "deploy"]);
        let [taken, hidden] = said.skills() else { panic!("{said:?}") };
        assert_eq!((&taken["scope"], &taken["hidden_by"]), (&json!("project"), &json!(null)));
        assert_eq!(hidden["scope"], "user");
        assert_eq!(hidden["hidden_by"], "skills/deploy/SKILL.md");
        assert_eq!(said.finding("name-taken")["path"], hidden["path"]);

        let shown = |name: &str| {
            let ran = world.run(["show", name, "--dir", "skills", "--dir", "~/mine"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            ran.stdout().to_owned()
        };
        assert!(shown("deploy").contains("The project's"));
        assert!(shown("project:deploy").contains("The project's"));
        assert!(shown("user:deploy").contains("The user's"));
        assert!(shown(hidden["path"].as_str().unwrap()).contains("The user's"));
        assert!(shown(world.path("home/mine/deploy").to_str().unwrap()).contains("The user's"));
    }

    #[test]
    fn within_one_scope_the_first_directory_is_taken() {
        let world = World::new().skill("deploy", "First").skill_in("others", "deploy", "Second");
        let taken = |first: &str, second: &str| {
            let said = world.run(["list", "--json", "--dir", first, "--dir", second]).said();
            said.skills()[0]["description"].as_str().unwrap().to_owned()
        };
        assert_eq!(taken("skills", "others"), "First");
        assert_eq!(taken("others", "skills"), "Second");
    }

    #[test]
    fn the_same_skill_by_two_ways_is_one() {
        let world = World::new().skill("deploy", "Same").skill_in("copy", "deploy", "Same");
        for more in [&["--dir", "skills"], &["--dir", "copy"]] {
            let said = world.list_with(more);
            assert_eq!(said.names(), ["deploy"]);
            assert!(said.rules().iter().all(|it| *it == "same-content"), "{:?}", said.rules());
        }
        world.write("copy/deploy/extra.txt", "one file more");
        assert_eq!(world.list_with(&["--dir", "copy"]).names(), ["deploy", "deploy"]);
    }

    #[test]
    fn a_name_that_looks_like_a_scope_and_a_name_answers_for_nobody_else() {
        let odd = "---\nname: user:deploy\ndescription: Not the user's\n---\n";
        let world = World::new().document("odd", odd).skill_in("home/mine", "deploy", "The user's");
        let directories = vec![Directory::new("skills"), Directory::new("~/mine")];
        let library = Library::load(&Options { directories, ..world.options() }).unwrap();
        assert_eq!(&*library.get("user:deploy").unwrap().manifest.description, "The user's");
        assert_addresses(&library);
        assert_eq!(
            listed(&world, &["--dir", "skills", "--dir", "~/mine"]),
            ["deploy", "project:user:deploy"]
        );
        // If no such scope has the name, it is a name like any other.
        let library = world.load();
        assert_eq!(&*library.get("user:deploy").unwrap().manifest.description, "Not the user's");
    }

    #[test]
    fn the_words_that_list_prints_find_just_that_skill() {
        let world = World::new()
            .skill("deploy", "First")
            .skill_in("others", "deploy", "Second")
            .skill_in("third", "deploy", "Third")
            .skill_in("home/mine", "deploy", "Fourth");
        let arguments = ["--dir", "skills", "--dir", "others", "--dir", "third", "--dir", "~/mine"];
        let words = listed(&world, &arguments);
        assert_eq!(
            words,
            ["deploy", "others/deploy/SKILL.md", "third/deploy/SKILL.md", "user:deploy"]
        );
        for (words, description) in words.iter().zip(["First", "Second", "Third", "Fourth"]) {
            let ran = world.run(["show", words].iter().chain(&arguments));
            assert!(ran.stdout().contains(description), "{words}: {}", ran.stdout());
        }
        let directories = ["skills", "others", "third", "~/mine"].map(Directory::new).to_vec();
        assert_addresses(&Library::load(&Options { directories, ..world.options() }).unwrap());
    }

    #[test]
    fn a_directory_that_is_named_twice_is_looked_at_once() {
        let world = World::new()
            .skill("good", "Stays")
            .document("bad", "no frontmatter")
            .pipe("skills/pipe/SKILL.md")
            .link("linked", "skills");
        let once = world.list();
        assert_eq!((once.names(), once.rules().len()), (vec!["good"], 2));
        for path in ["skills", "./skills", "skills/../skills", "linked"] {
            assert_eq!(world.list_with(&["--dir", path]).0, once.0, "{path}");
        }
    }

    #[test]
    fn a_copy_is_told_from_a_skill_that_merely_looks_like_one() {
        let world = World::new()
            .skill("deploy", "Same")
            .file("skills/deploy/notes.md", "n")
            .skill_in("copy", "deploy", "Same")
            .file("copy/deploy/notes.md", "n");
        let said = world.list_with(&["--dir", "copy"]);
        assert_eq!((said.names(), said.rules()), (vec!["deploy"], vec!["same-content"]));
        let finding = said.finding("same-content");
        assert_eq!(
            (&finding["severity"], &finding["path"]),
            (&json!("info"), &json!("copy/deploy/SKILL.md"))
        );
        let told = world.run(["list", "-v", "--dir", "skills", "--dir", "copy"]);
        assert!(told.stderr.contains("info[same-content]: copy/deploy"), "{}", told.stderr);
        world.write("copy/deploy/notes.md", "m");
        assert_eq!(world.list_with(&["--dir", "copy"]).rules(), ["name-taken"]);

        let text = "---\nname: deploy\ndescription: a\n---\n";
        let world = World::new()
            .document("deploy", format!("{text}notes.mdn"))
            .file("copy/deploy/SKILL.md", text)
            .file("copy/deploy/notes.md", "n");
        let said = world.list_with(&["--dir", "copy"]);
        assert_eq!((said.names().len(), said.rules()), (2, vec!["name-taken"]));

        // Concatenated, the paths and bytes of their files are the same.
        let world = World::new()
            .skill("deploy", "Same")
            .file("skills/deploy/a", "bc")
            .skill_in("copy", "deploy", "Same")
            .file("copy/deploy/ab", "c");
        let said = world.list_with(&["--dir", "copy"]);
        assert_eq!((said.names().len(), said.rules()), (2, vec!["name-taken"]));
    }
}

mod real_skills_load {
    use super::*;

    /// Frontmatters in the forms in which skills are published, each with its description.
    const PUBLISHED: &[(&str, &str, &str)] = &[
        (
            "web-forms",
            "description: Builds accessible forms. Use when: adding inputs, validation or wizards.\nlicense: MIT\nmetadata:\n  author: some-team\n  version: \"1.2.0\"",
            "Builds accessible forms. Use when: adding inputs, validation or wizards.",
        ),
        (
            "pdf-tools",
            "description: \"Fills in, splits and merges PDF files. Use when \\\"PDF\\\" is named: or a .pdf is given.\"\nlicense: Complete terms in LICENSE.txt\nallowed-tools: Read, Write, Bash(pdftk:*)",
            "Fills in, splits and merges PDF files. Use when \"PDF\" is named: or a .pdf is given.",
        ),
        (
            "query-planner",
            "description: |\n  Plans slow queries.\n\n  Triggers: \"slow query\", explain\nmetadata:\n  openclaw:\n    emoji: \"\u{1F50D}\"\n    requires:\n      bins: [psql]\nuser-invocable: true",
            "Plans slow queries.\n\nTriggers: \"slow query\", explain",
        ),
        (
            "release-notes",
            "version: 2.1\ndescription: >-\n  Writes release notes\n  from merged changes\nargument-hint: [from] [to]\nmodel: opus\ncontext: fork\nx-vendor: {a: [1, 2]}",
            "Writes release notes from merged changes",
        ),
        (
            "commit-style",
            "description: 'Use this for commits - it''s short'\nallowed-tools:\n  - Bash(git commit:*)\n  - Read\ntags:\n  - git\n  - \"style: short\"",
            "Use this for commits - it's short",
        ),
    ];

    #[test]
    fn a_20_skills_as_the_ecosystem_publishes_them_load() {
        let mut world = World::new();
        for (name, lines, _) in PUBLISHED {
            world = world
                .document(name, format!("---\nname: {name}\n{lines}\n---\n\n# {name}\n\nSee [more](references/more.md).\n"))
                .file(format!("skills/{name}/references/more.md"), "# More\n")
                .file(format!("skills/{name}/LICENSE.txt"), "MIT\n");
        }
        let said = world.list();
        assert_eq!(said.names().len(), PUBLISHED.len(), "{said:?}");
        for (name, _, description) in PUBLISHED {
            assert_eq!(said.skill(name)["description"], *description);
            assert_eq!(resources(said.skill(name)), ["LICENSE.txt", "references/more.md"]);
        }
        assert!(said.findings().iter().all(|it| it["severity"] != "error"), "{said:?}");
    }

    #[test]
    fn the_bundled_skills_are_without_fault() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../prowess/skills");
        let ran = World::new().run(["check", "--json", folder.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let said = ran.said();
        assert!(said.0["skills"].as_u64().unwrap() >= 5, "{said:?}");
        assert!(said.findings().iter().all(|it| it["severity"] == "info"), "{said:?}");
    }
}
