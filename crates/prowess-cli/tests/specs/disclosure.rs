//! The disclosure of skills to a model.

use std::sync::Arc;

use prowess::{
    Catalog, Cataloging, Format, Level, Library, Memory, Options, Scope, Skill, Tokenizer, catalog,
    disclose, invoke,
};
use serde_json::{Value as Json, json};

use crate::world::{Counting, SKILLS, World};
const FORMATS: [Format; 3] = [Format::Names, Format::List, Format::Xml];

/// Returns a library over files in memory, and its counter of reads.
fn in_memory(files: &[(&str, &str)]) -> (Arc<Library>, Arc<Counting>) {
    let files = files.iter().map(|it| (it.0.to_owned(), it.1.as_bytes().to_vec()));
    let source = Arc::new(Counting::new(Memory::new(Scope::Project, "memory", files)));
    let options = Options { sources: vec![source.clone()], ..Options::default() };
    (Arc::new(Library::load(&options).unwrap()), source)
}

/// Returns the disclosed text of the one skill of a world.
fn told(world: &World, arguments: Option<&str>) -> String {
    invoke(world.load().skills().next().unwrap(), arguments).unwrap()
}

fn text(skill: &Skill, level: Level) -> String {
    disclose(skill, level).unwrap().text
}

mod tokens_are_counted_exactly_or_by_estimate {
    use super::*;

    #[test]
    fn a_model_counts_by_its_own_vocabulary() {
        let world = World::new().skill("one", "Says a few unusual words: 技能, 1234567");
        let library = world.load();
        let full = text(library.get("one").unwrap(), Level::Full);
        let list = catalog(&library, &Cataloging::default()).text;
        for (model, vocabulary) in [
            (Some("gpt-4o"), Tokenizer::O200k),
            (Some("gpt-4"), Tokenizer::Cl100k),
            (Some("claude-opus-4-1"), Tokenizer::Estimate),
            (None, Tokenizer::Estimate),
        ] {
            let model = model.map_or(vec![], |it| vec!["--model", it]);
            for (command, text) in [(vec!["show", "one"], &full), (vec!["catalog"], &list)] {
                let words = command.iter().chain(&SKILLS).chain(&["--json"]).chain(&model);
                let said = world.run(words).json();
                assert_eq!(said["counted"], vocabulary.as_str());
                assert_eq!(said["tokens"], vocabulary.count(text));
            }
        }
    }
}

mod the_catalog_shows_what_there_is {
    use super::*;

    #[test]
    fn m_21_without_skills_there_is_no_catalog() {
        let world = World::new();
        let (hidden, _) =
            in_memory(&[("a/SKILL.md", "---\nname: a\ndescription: A\nstatus: draft\n---\n")]);
        for library in [&world.load(), &*hidden] {
            for format in FORMATS {
                for budget in [None, Some(0), Some(1000)] {
                    let how = Cataloging { format, budget, ..Cataloging::default() };
                    assert_eq!(catalog(library, &how), Catalog::default());
                }
            }
        }
        let ran = world.run(["catalog"].iter().chain(&SKILLS));
        assert_eq!((ran.code, ran.stdout()), (Some(0), ""));
    }
}

mod a_skill_is_told_with_its_arguments_and_files {
    use super::*;

    #[test]
    fn paths_of_the_skill_are_absolute() {
        let body = "[Guide](references/guide.md#top) [notes.md](./notes.md) ![x](<notes.md>)\n\
                    [scripts/run.sh](scripts/run.sh) See references/guide.md.\n\
                    ```sh\npython ./scripts/run.sh --file=references/guide.md \"scripts/run.sh\"\n```\n\
                    ${CLAUDE_SKILL_DIR}/scripts/run.sh ${SKILL_DIR} {baseDir}/x\n";
        let same = "notes.md other/scripts/run.sh ../scripts/run.sh /scripts/run.sh scripts/*.sh\n\
                    https://host/scripts/run.sh host:scripts/run.sh scripts/run.sh.bak scripts/none.sh\n\
                    $DIR/scripts/run.sh ${DIR} {other} [a](https://a.b/notes.md) scripts/\n";
        let world = World::new()
            .document("one", format!("---\nname: one\ndescription: a\n---\n{body}{same}"))
            .file("skills/one/scripts/run.sh", "true\n")
            .file("skills/one/references/guide.md", "Read.")
            .file("skills/one/notes.md", "Read.");
        let text = told(&world, None);
        let at = world.path("skills/one").display().to_string();
        let expected = format!(
            "[Guide]({at}/references/guide.md#top) [notes.md]({at}/notes.md) ![x](<{at}/notes.md>)\n\
             [scripts/run.sh]({at}/scripts/run.sh) See {at}/references/guide.md.\n\
             ```sh\npython {at}/scripts/run.sh --file={at}/references/guide.md \"{at}/scripts/run.sh\"\n```\n\
             {at}/scripts/run.sh {at} {at}/x\n{same}"
        );
        assert!(text.starts_with(&expected), "{text}\nis not\n{expected}");
        let ran = world.run(["show", "one"].iter().chain(&SKILLS));
        assert!(ran.stdout().contains(&format!("[Guide]({at}/references/guide.md#top)")));
    }
}

mod the_command_catalog_prints_what_a_model_is_shown {
    use super::*;

    fn world() -> World {
        World::new().skill("one", "Does one & more").skill("two", "Does two")
    }

    #[test]
    fn the_fields_of_a_printed_catalog_are_stable() {
        let said = world().run(["catalog", "--json"].iter().chain(&SKILLS)).json();
        let keys: Vec<&String> = said.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["text", "tokens", "counted", "shown", "shortened", "dropped"]);
        let counts = [&said["shown"], &said["shortened"], &said["dropped"]];
        assert_eq!(counts, [&json!(2), &json!(0), &json!(0)]);
        assert!(
            said["text"].as_str().unwrap().ends_with("- one: Does one & more\n- two: Does two\n")
        );
    }

    #[test]
    fn a_budget_that_is_too_small_for_any_skill_is_told() {
        let ran = world().run(["catalog", "--budget", "0"].iter().chain(&SKILLS));
        assert_eq!((ran.code, ran.stdout()), (Some(0), ""));
        let warning = "warning: no skill fits into 0 tokens";
        assert!(ran.stderr.contains(warning), "{}", ran.stderr);
        let well = world().run(["catalog", "--budget", "500"].iter().chain(&SKILLS));
        assert!(!well.stderr.contains("warning"), "{}", well.stderr);
    }

    #[test]
    fn every_format_can_be_printed() {
        let world = world();
        for (word, format, model) in [
            ("names", Format::Names, "none"),
            ("list", Format::List, "gpt-4o"),
            ("xml", Format::Xml, "none"),
        ] {
            let words = ["catalog", "--format", word, "--budget", "60", "--model", model];
            let ran = world.run(words.iter().chain(&SKILLS));
            let vocabulary = Tokenizer::for_model(model);
            let how = Cataloging { format, vocabulary, budget: Some(60), ..Cataloging::default() };
            let shown = catalog(&world.load(), &how);
            assert_eq!((ran.code, ran.stdout()), (Some(0), &*shown.text), "{word}");
            let said = format!("{} tokens ({})", shown.tokens, vocabulary.as_str());
            assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        }
        for budget in ["-1", "many"] {
            let ran = world.run(["catalog", "--budget", budget].iter().chain(&SKILLS));
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        }
    }

    #[test]
    fn arguments_can_be_shown_filled_in() {
        let world =
            World::new().document("one", "---\nname: one\ndescription: a\n---\nFix $0 on $1.\n");
        let words = ["show", "one", "--json", "--arguments", "12 'the branch'"];
        let said: Json = world.run(words.iter().chain(&SKILLS)).json();
        assert_eq!(
            (&said["text"], &said["level"]),
            (&json!("Fix 12 on the branch.\n"), &json!("full"))
        );
    }
}
