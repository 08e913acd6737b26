//! Reading, checking and writing a `SKILL.md`.

use prowess::{Definition, Manifest, Type};
use serde_json::json;

use crate::world::{World, parsed};

/// Returns a text whose frontmatter has a name, a description and these lines.
fn with(lines: &str) -> String {
    format!("---\nname: deploy-staging\ndescription: Deploy app\n{lines}---\n\n# Deploy\n")
}

/// Returns the manifest of a text that is a valid skill.
fn manifest(text: &str) -> Manifest {
    let parsed = parsed(text);
    parsed.manifest.unwrap_or_else(|| panic!("{:?}", parsed.findings))
}

mod lines_of_the_frontmatter_become_fields {
    use super::*;

    #[test]
    fn m_09_q_03_name_and_description_are_read() {
        let said = World::new().document("deploy-staging", with("")).list();
        let skill = said.skill("deploy-staging");
        assert_eq!(skill["description"], "Deploy app");
        assert_eq!(said.findings().len(), 0);
    }

    #[test]
    fn m_10_a_flow_list_of_tags_becomes_a_list_of_three() {
        let text = with("tags: [deployment, staging, devops]\n");
        let said = World::new().document("deploy-staging", text).list();
        assert_eq!(
            said.skill("deploy-staging")["tags"],
            json!(["deployment", "staging", "devops"])
        );
    }

    #[test]
    fn m_11_a_block_list_of_tags_becomes_a_list_of_two() {
        for lines in ["tags:\n  - item1\n  - item2\n", "tags:\n- item1\n- item2\n"] {
            let said = World::new().document("deploy-staging", with(lines)).list();
            assert_eq!(said.skill("deploy-staging")["tags"], json!(["item1", "item2"]));
        }
    }

    #[test]
    fn m_15_the_optional_fields_of_the_right_types_are_accepted() {
        let text = with("version: 1.0.0\nauthor: Ada\ntags: [one]\n");
        let manifest = manifest(&text);
        assert_eq!(manifest.version.as_deref(), Some("1.0.0"));
        assert_eq!(manifest.author.as_deref(), Some("Ada"));
        assert_eq!(*manifest.tags, [Box::from("one")]);
        let world = World::new().document("deploy-staging", text);
        assert_eq!(world.list().rules(), [""; 0]);
        assert_eq!(world.check("skills", &[]).0, Some(0));
    }

    #[test]
    fn a_frontmatter_longer_than_one_read_is_read_whole() {
        let notes = "x".repeat(5000);
        let text = format!(
            "---\nname: long\nmetadata:\n  notes: {notes}\ndescription: Behind it all\n---\nbody\n"
        );
        let said = World::new().document("long", text).list();
        assert_eq!(said.skill("long")["description"], "Behind it all");
    }
}

mod what_stands_under_the_frontmatter_is_the_content {
    use super::*;

    #[test]
    fn q_04_the_markdown_after_the_frontmatter_is_the_content() {
        let text = "---\nname: a\ndescription: b\n---\n\n# Title\n\none\n\n---\n\ntwo\n";
        let world = World::new().document("a", text);
        let content = world.load().get("a").unwrap().instructions().unwrap();
        assert_eq!(content, "# Title\n\none\n\n---\n\ntwo\n");
        let shown = world.run(["show", "a", "--dir", "skills"]);
        assert!(shown.stdout().contains("# Title\n\none\n\n---\n\ntwo\n"), "{}", shown.stdout());
        assert!(!shown.stdout().contains("description:"), "{}", shown.stdout());
    }

    #[test]
    fn s_38_no_type_means_instruction() {
        let text = with("");
        let world = World::new().document("deploy-staging", &text);
        assert_eq!(world.list().skill("deploy-staging")["type"], "instruction");
        let body = parsed(&text).instructions;
        let content = Definition::Instruction { content: "# Deploy\n".to_owned() };
        assert_eq!(prowess::definition(manifest(&text).kind, &body), Ok(content));
    }

    #[test]
    fn s_39_an_instruction_keeps_its_whole_body() {
        let body = "# Deploy\n\n```sh\nrm -r build\n```\n\nThen say so.\n";
        let text = format!("---\nname: a\ndescription: b\ntype: instruction\n---\n\n{body}");
        let world = World::new().document("a", &text);
        assert_eq!(world.list().skill("a")["type"], "instruction");
        assert_eq!(world.load().get("a").unwrap().instructions().unwrap(), body);
        let content = Definition::Instruction { content: body.to_owned() };
        assert_eq!(prowess::definition(Type::Instruction, body), Ok(content));
    }

    #[test]
    fn a_definition_that_is_missing_is_said_with_its_line() {
        let world = World::new()
            .document("a", "---\nname: a\ndescription: b\ntype: script\n---\nNo block.\n")
            .document(
                "c",
                "---\nname: c\ndescription: b\ntype: composite\n---\n\n```json\n{oops}\n```\n",
            );
        let (_, script) = world.check("skills/a", &[]);
        assert_eq!(script.finding("definition")["line"], 6);
        let (_, composite) = world.check("skills/c", &[]);
        assert_eq!(composite.finding("definition")["line"], 8);
    }
}

mod no_skill_is_made_of_what_is_not_one {
    use super::*;

    /// Returns a world with a good skill beside this text.
    fn beside(text: &str) -> World {
        World::new().skill("good", "Stays").document("bad", text)
    }

    #[test]
    fn m_13_a_skill_without_a_name_is_left_out() {
        for text in ["---\ndescription: No name\n---\n", "---\nname:\ndescription: No name\n---\n"]
        {
            let world = beside(text);
            let said = world.list();
            assert_eq!(said.names(), ["good"]);
            assert_eq!(said.finding("name-missing")["severity"], "error");
            let logged = world.run(["list", "--dir", "skills"]).stderr;
            assert!(logged.contains("error[name-missing]"), "{logged}");
        }
    }

    #[test]
    fn a_lenient_profile_takes_the_name_of_the_folder() {
        let world = beside("---\ndescription: No name\n---\n");
        let said = world.list_with(&["--profile", "lenient"]);
        assert_eq!(said.names(), ["bad", "good"]);
        assert_eq!(said.finding("name-missing")["severity"], "warning");
    }

    #[test]
    fn m_14_tags_given_as_a_string_leave_the_skill_out() {
        let world = beside("---\nname: bad\ndescription: b\ntags: deployment\n---\n");
        for profile in ["lenient", "spec", "reference"] {
            let said = world.list_with(&["--profile", profile]);
            assert_eq!(said.names(), ["good"]);
            let finding = said.finding("tags-not-list");
            assert_eq!((&finding["severity"], &finding["line"]), (&json!("error"), &json!(4)));
        }
        let logged = world.run(["list", "--dir", "skills"]).stderr;
        assert!(logged.contains("error[tags-not-list]"), "{logged}");
    }

    #[test]
    fn s_07_a_file_without_delimiters_is_no_skill() {
        let world = beside("name: bad\ndescription: No delimiters\n");
        let said = world.list();
        assert_eq!(said.names(), ["good"]);
        let finding = said.finding("frontmatter-missing");
        assert_eq!((&finding["severity"], &finding["line"]), (&json!("error"), &json!(1)));
        assert!(finding["message"].as_str().unwrap().contains("`---`"), "{finding}");
        assert_eq!(world.check("skills/bad", &[]).0, Some(1));
    }

    #[test]
    fn a_frontmatter_that_is_never_closed_is_no_skill() {
        let said = beside("---\nname: bad\ndescription: Never closed\n\n# Title\n").list();
        assert_eq!(said.names(), ["good"]);
        assert_eq!(said.finding("frontmatter-unclosed")["line"], 1);
    }

    #[test]
    fn q_05_invalid_yaml_or_a_missing_description_leaves_the_skill_out() {
        let world = beside("---\nname: [bad\n---\n").document("worse", "---\nname: worse\n---\n");
        let ran = world.run(["list", "--dir", "skills"]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stderr.contains("error[yaml-invalid]"), "{}", ran.stderr);
        assert!(ran.stderr.contains("error[description-missing]"), "{}", ran.stderr);
        assert_eq!(world.list().names(), ["good"]);
    }

    #[test]
    fn a_name_or_description_that_is_not_text_leaves_the_skill_out() {
        let said = beside("---\nname: [a, b]\ndescription: c\n---\n").list();
        assert_eq!(said.names(), ["good"]);
        assert_eq!(said.finding("name-not-text")["line"], 2);
        let said = beside("---\nname: bad\ndescription: {a: b}\n---\n").list();
        assert_eq!(said.names(), ["good"]);
        assert_eq!(said.finding("description-not-text")["line"], 3);
    }
}

mod what_is_broken_but_clear_is_repaired_and_said {
    use super::*;

    #[test]
    fn a_colon_in_a_description_is_read_as_it_was_meant() {
        let text = "---\nname: a\ndescription: Deploys. Use when: asked to deploy\n---\n";
        let said = World::new().document("a", text).list();
        assert_eq!(said.skill("a")["description"], "Deploys. Use when: asked to deploy");
        let finding = said.finding("yaml-repaired");
        assert_eq!((&finding["severity"], &finding["line"]), (&json!("warning"), &json!(3)));
    }

    #[test]
    fn the_first_of_two_equal_keys_is_taken() {
        let text = "---\nname: first\ndescription: b\nname: second\n---\n";
        let said = World::new().document("first", text).list();
        assert_eq!(said.names(), ["first"]);
        let finding = said.finding("duplicate-key");
        assert_eq!((&finding["severity"], &finding["line"]), (&json!("error"), &json!(4)));
    }

    #[test]
    fn frontmatter_beyond_repair_names_its_line() {
        let text = "---\nlicense: MIT\nname: [oops\ntags: [one\n---\n";
        let world = World::new().document("a", text);
        let said = world.list();
        assert_eq!(said.names(), [""; 0]);
        let finding = said.finding("yaml-invalid");
        assert_eq!(finding["severity"], "error");
        let line = finding["line"].as_u64().unwrap();
        assert!((3..=5).contains(&line), "{finding}");
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_do_not_matter() {
        let text = "\u{feff}---\r\nname: a\r\ndescription: b\r\ntags: [c]\r\n---\r\n\r\nBody\r\n";
        let world = World::new().document("a", text);
        let said = world.list();
        assert_eq!(said.skill("a")["description"], "b");
        assert_eq!(said.skill("a")["tags"], json!(["c"]));
        assert_eq!(world.load().get("a").unwrap().instructions().unwrap(), "Body\r\n");
    }

    #[test]
    fn lone_carriage_returns_are_line_ends() {
        let text =
            "---\nname: odd\ndescription: a\nx-colour: red\n---\n\n# Odd\n\nSee [it](gone.md).\n";
        let found = |text: &str| {
            let (_, said) = World::new().document("odd", text).check("skills", &[]);
            let line = |rule: &str| said.finding(rule)["line"].as_u64().unwrap();
            (line("unknown-field"), line("reference-missing"))
        };
        assert_eq!(found(text), (4, 9));
        assert_eq!(found(&text.replace('\n', "\r")), (4, 9));
        assert_eq!(found(&text.replace('\n', "\r\n")), (4, 9));
        let world = World::new().document("odd", text.replace('\n', "\r"));
        let library = world.load();
        let instructions = library.get("odd").unwrap().instructions().unwrap();
        assert_eq!(instructions, "# Odd\n\nSee [it](gone.md).\n");
    }
}

mod a_skill_is_valid_everywhere {
    use super::*;

    #[test]
    fn what_create_and_new_write_is_valid_for_the_reference_validator() {
        let world = World::new();
        let steps = r#"{"steps": [{"tool": "read_file", "params": {"path": "a"}}]}"#;
        for (kind, definition) in [
            ("script", r#"{"script": "echo hi"}"#),
            ("template", r#"{"template": "Hello {{.name}}"}"#),
            ("composite", steps),
            ("instruction", r##"{"content": "# How"}"##),
        ] {
            let arguments = [
                "create",
                kind,
                "--type",
                kind,
                "--description",
                "Greets. Use when somebody comes.",
                "--definition",
                definition,
                "--tags",
                "one,two words",
                "--requires-approval",
                "--dir",
                "skills",
            ];
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        let ran = world.run(["new", "begun", "--dir", "skills"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let (code, said) = world.check("skills", &["--profile", "reference"]);
        assert_eq!((code, said.findings().len()), (Some(0), 0), "{said:?}");
        let listed = world.list();
        for kind in ["script", "template", "composite", "instruction"] {
            let text =
                std::fs::read_to_string(world.path(format!("skills/{kind}/SKILL.md"))).unwrap();
            assert!(!text.contains("status"), "{text}");
            let skill = listed.skill(kind);
            assert_eq!((&skill["type"], &skill["status"]), (&kind.into(), &"active".into()));
            assert_eq!(skill["tags"], serde_json::json!(["one", "two words"]));
        }
    }

    #[test]
    fn type_and_status_count_at_the_top_level_and_under_metadata() {
        let skill = |name: &str, fields: &str| {
            format!(
                "---\nname: {name}\ndescription: Greets\n{fields}---\n\n```template\nHello {{{{.who}}}}\n```\n"
            )
        };
        let world = World::new()
            .document("old", skill("old", "type: template\nstatus: active\ntags: [a, b]\n"))
            .document(
                "new",
                skill("new", "metadata:\n  type: template\n  status: active\n  tags: a, b\n"),
            )
            .document("off", skill("off", "metadata:\n  type: template\n  status: disabled\n"))
            .document("both", skill("both", "status: draft\nmetadata:\n  status: active\n"))
            .document("note", skill("note", "metadata:\n  status: rc\n  type: greeting\n"));
        let said = world.list();
        let of = |name: &str| {
            let skill = said.skill(name);
            let [kind, status] =
                ["type", "status"].map(|it| skill[it].as_str().unwrap().to_owned());
            (kind, status, skill["tags"].as_array().unwrap().len())
        };
        let row = |kind: &str, status: &str, tags| (kind.to_owned(), status.to_owned(), tags);
        assert_eq!(of("old"), row("template", "active", 2));
        assert_eq!(of("new"), of("old"));
        assert_eq!(of("off"), row("template", "disabled", 0));
        assert_eq!(of("both"), row("instruction", "draft", 0));
        assert_eq!(of("note"), row("instruction", "active", 0));
        for name in ["old", "new"] {
            let ran = world.run(["run", name, "who=Ada", "--dir", "skills", "--json"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!(ran.json()["type"], "template");
            assert!(ran.stdout().contains("Hello Ada"), "{}", ran.stdout());
        }
        let careful = skill("old", "metadata:\n  type: template\n  requires-approval: \"true\"\n");
        let world = World::new().document("old", careful);
        let ran = world.run(["run", "old", "who=Ada", "--dir", "skills", "--json"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
    }

    #[test]
    fn the_reference_profile_refuses_what_the_reference_validator_refuses() {
        let plain = |fields: &str| format!("---\nname: a\ndescription: b\n{fields}---\n\nbody\n");
        for (text, code) in [
            (plain("allowed-tools: [Bash, Read]\n"), "yaml-strict"),
            (plain("metadata: {team: web}\n"), "yaml-strict"),
            (plain("metadata:\n  teams:\n    - {name: web}\n"), "yaml-strict"),
            (plain("license:\tMIT\n"), "yaml-strict"),
            (plain("license: MIT\t\n"), "yaml-strict"),
            (plain("metadata:\n  a:\n    b: c\n  d:\n      e: f\n"), "yaml-strict"),
            (plain("").replace("description: b", "description: \"b --- c\""), "yaml-strict"),
            (format!("\u{FEFF}{}", plain("")), "byte-order-mark"),
            (format!("\n\n{}", plain("")), "frontmatter-delimiter"),
            (format!(" {}", plain("")), "frontmatter-delimiter"),
            (plain("").replace("\n---\n\n", "\n...\n\n"), "frontmatter-delimiter"),
        ] {
            let world = World::new().document("a", &text);
            let (exit, said) = world.check("skills", &["--profile", "reference"]);
            assert_eq!(exit, Some(1), "{text}");
            assert_eq!(said.finding(code)["severity"], "error", "{text}");
            assert_eq!(world.list().skills().len(), 1, "{text}");
        }
        for text in [
            plain("allowed-tools: Bash Read\n"),
            plain("allowed-tools:\n  - Bash\n  - Read\n"),
            plain("metadata:\n  team: \"a\tb\" # a\ttab\n"),
            plain("license: MIT [or so]\n"),
            plain("metadata:\n  text: |\n    {a}\n    [b]\t\n"),
            plain("").replace("description: b", "description: b --- c"),
            plain("").replace("---\nname", "--- \nname").replace("---\n\n", "----\n\n"),
        ] {
            let world = World::new().document("a", &text);
            let (exit, said) = world.check("skills", &["--profile", "reference"]);
            assert_eq!((exit, said.findings().len()), (Some(0), 0), "{text}: {said:?}");
        }
    }
}
