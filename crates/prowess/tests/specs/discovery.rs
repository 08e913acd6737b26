//! From configured directories to a library.

use std::{path::Path, sync::Arc};

use prowess::{AllowedTools, Directory, Library, Memory, Options, Scope, SizeLimits, Source};

use crate::{
    build,
    world::{World, all},
};

mod nothing_is_scanned_that_nobody_named {
    use super::*;

    #[test]
    fn m_01_a_library_without_directories_is_an_error() {
        let error = Library::load(&Options::default()).unwrap_err();
        assert_eq!(error.to_string(), "no directories with skills are configured");
        let world = World::new()
            .skill("lies-around", "a")
            .skill_in(".agents/skills", "agents", "b")
            .skill_in("home/.claude/skills", "claude", "c");
        let nowhere = Options { directories: Vec::new(), ..world.options() };
        assert!(Library::load(&nowhere).is_err());
        let library =
            Library::load(&Options { sources: vec![prowess::bundled()], ..nowhere }).unwrap();
        assert!(library.all().all(|it| it.origin.scope == Scope::Bundled));
    }

    #[test]
    fn a_library_looks_one_folder_deep_unless_its_host_says_otherwise() {
        let world = World::new().skill("one", "a").skill_in("skills/group", "two", "b");
        let at = |depth: usize| {
            let limits = SizeLimits { depth, ..SizeLimits::default() };
            Library::load(&Options { limits, ..world.options() }).unwrap().all().count()
        };
        assert_eq!(SizeLimits::default().depth, 1);
        assert_eq!((at(1), at(2)), (1, 2));
    }
}

mod the_files_beside_skill_md_are_its_resources {
    use super::*;

    #[test]
    fn a_08_a_resource_knows_what_it_is() {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/data/table", "plain text\n")
            .file("skills/one/data/blob", [0, 159, 146, 150]);
        let library = world.load();
        let skill = library.get("one").unwrap();
        let [blob, table] = skill.resources() else { panic!("{:?}", skill.resources()) };
        assert_eq!((&*blob.path, blob.size, blob.is_text), ("data/blob", 4, false));
        assert_eq!((&*table.path, table.size, table.is_text), ("data/table", 11, true));
        assert_eq!(table.kind.as_str(), "asset");
        let path = skill.folder().join(&*table.path);
        let modified = std::fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(table.modified, Some(modified));
    }
}

mod there_is_a_limit_to_what_is_taken_in {
    use super::*;

    #[test]
    fn a_07_the_defaults_are_100_kib_for_a_file_and_500_kib_for_a_skill() {
        let limits = SizeLimits::default();
        assert_eq!((limits.max_file_size, limits.max_skill_size), (102_400, 512_000));
        let text = "---\nname: file\ndescription: a\n---\n";
        let world = World::new()
            .document("file", text)
            .sparse("skills/file/fits.bin", 102_400)
            .sparse("skills/file/over.bin", 102_401);
        let library = world.load();
        let files = library.get("file").unwrap().resources();
        assert_eq!(files.iter().map(|it| &*it.path).collect::<Vec<_>>(), ["fits.bin"]);
        let rules: Vec<&str> = library.findings().iter().map(|it| it.rule.code).collect();
        assert_eq!(rules, ["resource-too-large"]);

        for (rest, listed) in [(102_400, true), (102_401, false)] {
            let world = World::new()
                .document(
                    "whole",
                    format!("---\nname: whole\ndescription: a\n---\n{}", "x".repeat(rest - 35)),
                )
                .sparse("skills/whole/1", 102_400)
                .sparse("skills/whole/2", 102_400)
                .sparse("skills/whole/3", 102_400)
                .sparse("skills/whole/4", 102_400);
            let library = world.load();
            assert_eq!(library.get("whole").is_some(), listed);
            let rules: Vec<&str> = library.findings().iter().map(|it| it.rule.code).collect();
            assert_eq!(rules, if listed { vec![] } else { vec!["skill-too-large"] });
        }
    }
}

mod of_two_skills_of_one_name_the_nearer_is_taken {
    use super::*;

    #[test]
    fn the_project_comes_before_the_user_and_the_user_before_what_is_bundled() {
        let world = World::new().skill("create-pr", "The project's").skill_in(
            "home/mine",
            "create-pr",
            "The user's",
        );
        let (project, user) = (Directory::new("skills"), Directory::new("~/mine"));
        let load = |directories: Vec<Directory>| {
            let sources = vec![prowess::bundled()];
            Library::load(&Options { directories, sources, ..world.options() }).unwrap()
        };
        let scopes = |library: &Library| {
            let named = all(library).into_iter().filter(|it| &*it.manifest.name == "create-pr");
            named.map(|it| (it.origin.scope, it.hidden_by.is_some())).collect::<Vec<_>>()
        };
        let expected = [(Scope::Project, false), (Scope::User, true), (Scope::Bundled, true)];
        for directories in [vec![project.clone(), user.clone()], vec![user.clone(), project]] {
            let library = load(directories);
            assert_eq!(scopes(&library), expected);
            assert_eq!(&*library.get("create-pr").unwrap().manifest.description, "The project's");
        }
        let library = load(vec![user]);
        assert_eq!(&*library.get("create-pr").unwrap().manifest.description, "The user's");
        assert_eq!(library.get("bundled:create-pr").unwrap().origin.scope, Scope::Bundled);
    }

    #[test]
    fn two_sources_of_one_name_do_not_swallow_each_other() {
        let source = |description: &str| {
            let text =
                format!("---\nname: deploy\ndescription: {description}\n---\n{description}\n");
            let files = [("deploy/SKILL.md", text.into_bytes())];
            Arc::new(Memory::new(Scope::Project, "memory", files)) as Arc<dyn Source>
        };
        let load = |sources: Vec<Arc<dyn Source>>| {
            let library = Library::load(&Options { sources, ..Options::default() }).unwrap();
            let text = |it: &prowess::Skill| it.instructions().unwrap();
            let rules: Vec<&str> = library.findings().iter().map(|it| it.rule.code).collect();
            (all(&library).into_iter().map(text).collect::<Vec<_>>(), rules)
        };
        let (texts, rules) = load(vec![source("one"), source("two")]);
        assert_eq!(
            (texts, rules),
            (vec!["one\n".to_owned(), "two\n".to_owned()], vec!["name-taken"])
        );
        let (texts, rules) = load(vec![source("one"), source("one")]);
        assert_eq!((texts, rules), (vec!["one\n".to_owned()], vec!["same-content"]));
    }
}

mod real_skills_load {
    use super::*;

    #[test]
    fn a_09_allowed_tools_are_read_into_the_skill() {
        let text = |name: &str, tools: &str| {
            format!("---\nname: {name}\ndescription: a\nallowed-tools: {tools}\n---\n")
        };
        let world = World::new()
            .document("text", text("text", "Read Grep Bash(git add:*)"))
            .document("commas", text("commas", "Read, Grep, Bash(git add:*)"))
            .document("list", text("list", "[Read, Grep, \"Bash(git add:*)\"]"));
        let tools = AllowedTools(["Read", "Grep", "Bash(git add:*)"].map(Box::from).into());
        let library = world.load();
        for name in ["text", "commas", "list"] {
            assert_eq!(library.get(name).unwrap().manifest.allowed_tools, tools);
        }
    }
}

mod the_bundled_skills_are_the_folders_of_the_project {
    use super::*;

    #[test]
    fn s_10_every_folder_of_skills_is_bundled_without_a_line_of_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills");
        let names = std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name());
        let mut folders: Vec<String> = names.map(|it| it.into_string().unwrap()).collect();
        folders.retain(|it| !it.starts_with('.'));
        folders.sort();
        let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
        let library = Library::load(&options).unwrap();
        let bundled: Vec<&str> = library.skills().map(|it| &*it.manifest.name).collect();
        assert_eq!(bundled, folders);
        let script = library.get("create-pr").unwrap().read("scripts/gather.sh").unwrap();
        assert_eq!(script, std::fs::read(folder.join("create-pr/scripts/gather.sh")).unwrap());

        let world = World::new().skill("fresh", "a").file("skills/fresh/notes.md", "more");
        let table = build::table(&world.path("skills"));
        assert!(table.contains("(\"fresh/SKILL.md\", include_bytes!("), "{table}");
        assert!(table.contains("(\"fresh/notes.md\", include_bytes!("), "{table}");
    }

    #[test]
    fn s_08_the_build_needs_no_bundled_skill() {
        let world = World::new().file("skills/.placeholder/SKILL.md", "Keeps the folder.\n");
        let table = build::table(&world.path("skills"));
        assert_eq!(table, "static BUNDLED: &[(&str, &[u8])] = &[\n];\n");
    }
}
