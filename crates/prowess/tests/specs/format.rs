//! Reading, checking and writing a `SKILL.md`.

use prowess::{
    AllowedTools, CompositeStep, Definition, Dialect, Directory, Library, Listing, Manifest,
    Options, Origin, Profile, Resource, ResourceKind, Scope, SizeLimits, Skill, Source, Status,
    Type, UseSkillInput, UsedSkill,
    frontmatter::{self, Field, Value},
};
use serde_json::json;

use crate::world::{World, all, parsed, rules};

/// A text whose frontmatter has a name, a description and these lines.
fn with(lines: &str) -> String {
    format!("---\nname: deploy-staging\ndescription: Deploy app\n{lines}---\n\n# Deploy\n")
}

/// The manifest of a text of which a skill can be made.
fn manifest(text: &str) -> Manifest {
    let parsed = parsed(text);
    parsed.manifest.unwrap_or_else(|| panic!("{:?}", parsed.findings))
}

mod lines_of_the_frontmatter_become_fields {
    use super::*;

    #[test]
    fn scalars_stay_as_they_were_written() {
        let manifest = manifest(&with("version: 1.10\nauthor: no\n"));
        assert_eq!(manifest.version.as_deref(), Some("1.10"));
        assert_eq!(manifest.author.as_deref(), Some("no"));
    }

    #[test]
    fn quotes_blocks_and_comments_are_understood() {
        let description = |value: &str| {
            manifest(&format!("---\nname: a\n# a comment\ndescription: {value}\n---\n")).description
        };
        assert_eq!(&*description("'it''s: fine'"), "it's: fine");
        assert_eq!(&*description("\"a \\\"b\\\" # c\""), "a \"b\" # c");
        assert_eq!(&*description(">\n  one\n  two"), "one two");
        assert_eq!(&*description("|\n  one: 1\n  two"), "one: 1\ntwo");
        assert_eq!(&*description("plain # a comment"), "plain");
    }

    #[test]
    fn a_long_frontmatter_is_read_whole_wherever_one_read_ends() {
        let last = "requires-approval: true\nallowed-tools: Read Grep\n";
        let check = |what: &str, text: String| {
            assert!(text.len() > 4096, "{what}");
            let world = World::new().document("deploy-staging", text);
            let library = world.load();
            assert_eq!(library.findings(), [], "{what}");
            let manifest = &library.get("deploy-staging").unwrap().manifest;
            assert!(manifest.requires_approval, "{what}");
            assert_eq!(manifest.allowed_tools.0.len(), 2, "{what}");
            assert_eq!(&*manifest.description, "Deploy app", "{what}");
        };
        // A field that makes everything before it so many bytes long.
        let padded = |before: &str, to: usize| {
            let head = with(&format!("{before}x: ")).find("---\n\n").unwrap();
            format!("{before}x: {}\n", "p".repeat(to - head - 1))
        };
        check("a block", with(&format!("notes: |\n  a\n  ---\n  b\n{}{last}", padded("", 5000))));
        for to in 4090..=4100 {
            check("the closing line", with(&padded(last, to)) + &"text\n".repeat(10));
            check("dashes", with(&format!("{}---y: z\n{last}", padded("", to))));
            check("an indented line", with(&format!("{}y: |\n  ---\n  z\n{last}", padded("", to))));
        }
        for character in ["\u{E9}", "\u{6280}", "\u{1F980}"] {
            for shift in 0..4 {
                let text = "a".repeat(shift) + &character.repeat(2000);
                check(character, with(&format!("x: {text}\n{last}")));
                check(character, with(last) + &text);
            }
        }
    }

    #[test]
    fn a_null_is_no_value() {
        let manifest = manifest(&with("license: null\nauthor: ~\nversion:\nsource: 'null'\n"));
        assert_eq!((manifest.license, manifest.author, manifest.version), (None, None, None));
        assert_eq!(manifest.source.as_deref(), Some("null"));
    }
}

mod what_stands_under_the_frontmatter_is_the_content {
    use super::*;

    #[test]
    fn m_12_a_file_without_delimiters_reads_as_a_document_without_metadata() {
        let text = "# Title\n\nname: not metadata\n";
        let document = frontmatter::split(text);
        assert_eq!(document.frontmatter, None);
        assert_eq!(document.body.text, text);
        let parsed = parsed(text);
        assert_eq!(parsed.manifest, None);
        assert_eq!(parsed.instructions, text);
    }

    #[test]
    fn s_06_a_definition_comes_from_the_fenced_code_blocks() {
        let read = |kind: &str, blocks: &str| {
            let text = format!(
                "---\nname: a\ndescription: b\ntype: {kind}\nstatus: draft\nlicense: MIT\n\
                 compatibility: any\ncreated-by: hand\nrequires-approval: true\n---\nAbout it.\n\n{blocks}"
            );
            let parsed = parsed(&text);
            let manifest = parsed.manifest.unwrap();
            assert_eq!((manifest.kind.as_str(), manifest.status), (kind, Some(Status::Draft)));
            assert_eq!(manifest.license.as_deref(), Some("MIT"));
            assert_eq!(manifest.compatibility.as_deref(), Some("any"));
            assert_eq!(manifest.created_by.as_deref(), Some("hand"));
            assert!(manifest.requires_approval);
            prowess::definition(manifest.kind, &parsed.instructions).unwrap()
        };
        assert_eq!(
            read("script", "```sh\necho one\n```\n"),
            Definition::Script { script: "echo one\n".to_owned() }
        );
        assert_eq!(
            read("template", "```template\nHello {{.name}}\n```\n"),
            Definition::Template { template: "Hello {{.name}}\n".to_owned() }
        );
        let steps = "```json\n{\"tool\": \"fs_read\", \"params\": {\"path\": \"a\"}}\n```\n\n```json\n{\"tool\": \"exec\"}\n```\n";
        let Definition::Composite { steps } = read("composite", steps) else { panic!("no steps") };
        let tools: Vec<&str> = steps.iter().map(|it| &*it.tool).collect();
        assert_eq!(tools, ["fs_read", "exec"]);
        assert_eq!(steps[0].params["path"], "a");
    }
}

mod what_is_broken_but_clear_is_repaired_and_said {
    use super::*;

    #[test]
    fn two_spellings_of_one_field_are_one_field() {
        for (first, second) in [
            ("requires-approval: true", "requires_approval: false"),
            ("requires_approval: true", "requires-approval: false"),
            ("allowed-tools: Read", "allowedTools: Bash"),
            ("allowed_tools: Read", "allowed-tools: Bash"),
            ("created-by: Ada", "created_by: Bob"),
        ] {
            let parsed = parsed(&with(&format!("{first}\n{second}\n")));
            let finding =
                parsed.findings.iter().find(|it| it.rule.code == "duplicate-key").unwrap();
            assert_eq!((finding.line, finding.severity.as_str()), (Some(5), "error"), "{second}");
            assert_eq!(parsed.manifest, Some(manifest(&with(&format!("{first}\n")))), "{first}");
        }
        for fields in [
            "requires_approval: false\nrequires-approval: true\n",
            "requires-approval: false\nrequiresApproval: true\n",
            "requires-approval: false\nrequires-approval: true\n",
            "requiresApproval: true\n",
        ] {
            assert!(parsed(&with(fields)).manifest.unwrap().requires_approval, "{fields}");
        }
    }

    #[test]
    fn what_is_no_clear_answer_asks_for_approval() {
        for value in ["maybe", "", "[no]", "null", "'fals'"] {
            let parsed = parsed(&with(&format!("requires-approval: {value}\n")));
            assert_eq!(rules(&parsed), ["field-type"], "{value}");
            assert!(parsed.manifest.unwrap().requires_approval, "{value}");
        }
        for (value, asks) in [("false", false), ("no", false), ("true", true), ("yes", true)] {
            let manifest = manifest(&with(&format!("requires-approval: {value}\n")));
            assert_eq!(manifest.requires_approval, asks, "{value}");
        }
        assert!(!manifest(&with("")).requires_approval);
    }

    #[test]
    fn what_was_opened_and_never_closed_is_closed() {
        let tags: Box<[Box<str>]> = ["a", "b"].map(Box::from).into();
        let found = parsed(&with("tags: [a, b\nlicense: MIT\n"));
        let manifest = found.manifest.clone().unwrap();
        assert_eq!((manifest.tags, manifest.license.as_deref()), (tags, Some("MIT")));
        assert_eq!((rules(&found), found.findings[0].line), (vec!["yaml-repaired"], Some(4)));
        for quote in ['"', '\''] {
            let text =
                format!("---\nname: one\ndescription: {quote}Reads PDF\nlicense: MIT\n---\n");
            let found = parsed(&text);
            let manifest = found.manifest.clone().unwrap();
            assert_eq!(
                (&*manifest.description, manifest.license.as_deref()),
                ("Reads PDF", Some("MIT"))
            );
            assert_eq!((rules(&found), found.findings[0].line), (vec!["yaml-repaired"], Some(3)));
        }
    }

    #[test]
    fn an_anchor_that_nothing_leads_to_is_text() {
        for value in ["&mit MIT", "& MIT", "&mit"] {
            let parsed = parsed(&with(&format!("license: {value}\n")));
            assert_eq!(rules(&parsed), ["yaml-repaired"], "{value}");
            assert_eq!(parsed.manifest.unwrap().license.as_deref(), Some(value));
        }
    }

    #[test]
    fn a_stray_line_under_the_name_is_no_part_of_it() {
        for stray in ["stray words", "- stray", "stray: words: more"] {
            let text = format!("---\nname: one\n{stray}\ndescription: Reads PDF\n---\n");
            let parsed = parsed(&text);
            assert!(rules(&parsed).contains(&"yaml-repaired"), "{stray}: {:?}", rules(&parsed));
            let manifest = parsed.manifest.unwrap();
            assert_eq!((&*manifest.name, &*manifest.description), ("one", "Reads PDF"), "{stray}");
        }
    }

    #[test]
    fn equal_keys_are_found_however_deep_they_stand() {
        for lines in [
            "metadata:\n  a: b\n  a: c\n",
            "hooks:\n  - a: b\n    a: c\n",
            "x-list:\n- y: b\n  y: c\n",
            "x-deep:\n  - [{a: b,\n     a: c}]\n",
        ] {
            let parsed = parsed(&with(lines));
            let finding = parsed.findings.iter().find(|it| it.rule.code == "duplicate-key");
            assert_eq!(finding.unwrap().line, Some(6), "{lines}");
        }
    }
}

mod the_origin_of_an_imported_skill_is_kept {
    use super::*;

    #[test]
    fn s_35_an_imported_skill_has_its_address() {
        let address = "https://example.com/skills/deploy-staging/SKILL.md";
        let world = World::new().document("deploy-staging", with(&format!("source: {address}\n")));
        let library = world.load();
        let skill = library.get("deploy-staging").unwrap();
        assert_eq!(skill.manifest.source.as_deref(), Some(address));
    }

    #[test]
    fn s_36_a_local_skill_has_none() {
        let world = World::new().document("deploy-staging", with(""));
        assert_eq!(world.load().get("deploy-staging").unwrap().manifest.source, None);
    }
}

mod what_is_written_reads_back_the_same {
    use super::*;

    /// A text after it was parsed, rendered, written to disk and loaded.
    fn saved(text: &str) -> Manifest {
        let before = parsed(text);
        let rendered = prowess::render(&before.manifest.unwrap(), &before.instructions);
        let world = World::new().document("deploy-staging", rendered);
        all(&world.load())[0].manifest.clone()
    }

    #[test]
    fn s_37_allowed_tools_survive_in_either_form() {
        for lines in ["allowed-tools: [exec, fs_read]\n", "allowed-tools: exec fs_read\n"] {
            let text = with(lines);
            let tools = AllowedTools(["exec", "fs_read"].map(Box::from).into());
            assert_eq!(manifest(&text).allowed_tools, tools);
            assert_eq!(saved(&text).allowed_tools, tools);
        }
        let text = with("allowed-tools: Read Bash(git add:*)\n");
        assert_eq!(*saved(&text).allowed_tools.0, ["Read", "Bash(git add:*)"].map(Box::from));
    }

    #[test]
    fn a_tool_with_a_space_in_its_name_stays_one_tool() {
        let text = with("allowed-tools: [\"Ask the user\", exec]\n");
        assert_eq!(*saved(&text).allowed_tools.0, ["Ask the user", "exec"].map(Box::from));
    }

    #[test]
    fn s_44_the_source_and_unknown_fields_survive() {
        let text = with(
            "source: https://example.com/a\nmetadata:\n  team: ops\n  level: \"2\"\n\
             x-colour: green\nx-list: [1, two, 'three: 3']\nx-map:\n  deep:\n    deeper: yes\n\
             argument-hint: \"[file]\"\ndisable-model-invocation: true\n",
        );
        let before = parsed(&text);
        let first = before.manifest.clone().unwrap();
        let rendered = prowess::render(&first, &before.instructions);
        let after = parsed(&rendered);
        let second = after.manifest.unwrap();
        assert_eq!(second.source.as_deref(), Some("https://example.com/a"));
        assert_eq!(after.instructions, before.instructions);
        assert_eq!(prowess::render(&second, &after.instructions), rendered);
        let keys =
            |it: &Manifest| it.unknown.iter().map(|it| it.key.to_string()).collect::<Vec<_>>();
        assert_eq!(keys(&first), ["x-colour", "x-list", "x-map"]);
        assert_eq!(keys(&second), keys(&first));
        let value = |it: &Manifest, at: usize| frontmatter::write(&it.unknown[at..=at]);
        for at in 0..3 {
            assert_eq!(value(&second, at), value(&first, at));
        }
        assert_eq!(
            second.unknown[2].value.get("deep").unwrap().get("deeper").unwrap().as_text(),
            Some("yes")
        );
        assert_eq!(second.metadata[0].value.as_text(), Some("ops"));
        assert_eq!(second.dialect, first.dialect);
        assert_eq!(second.dialect().disable_model_invocation, Some(true));
    }

    #[test]
    fn s_45_an_instruction_is_rendered_as_plain_markdown() {
        let content = "# Deploy\n\nFirst this, then that.\n";
        let definition = Definition::Instruction { content: content.to_owned() };
        let body = prowess::render_definition(&definition, None);
        assert_eq!(body, content);
        let text = prowess::render(&manifest(&with("")), &body);
        assert!(text.ends_with("---\n\n# Deploy\n\nFirst this, then that.\n"), "{text}");
        assert!(!text.contains("```"), "{text}");
    }

    #[test]
    fn every_definition_that_is_rendered_is_read_back() {
        let parameters =
            json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let step = |tool: &str| CompositeStep {
            tool: tool.to_owned(),
            params: json!({ "text": "```\n## Parameters\n" }).as_object().unwrap().clone(),
        };
        let definitions = [
            Definition::Script { script: "cat <<'X'\n```sh\n````\nX\n".to_owned() },
            Definition::Template { template: "{{range .items}}\n- {{.}}\n{{end}}\n".to_owned() },
            Definition::Composite { steps: vec![step("one"), step("two")] },
        ];
        for definition in definitions {
            let kind = match &definition {
                Definition::Script { .. } => Type::Script,
                Definition::Template { .. } => Type::Template,
                Definition::Composite { .. } => Type::Composite,
                Definition::Instruction { .. } => Type::Instruction,
            };
            let body = prowess::render_definition(&definition, Some(&parameters));
            assert_eq!(prowess::definition(kind, &body).as_ref(), Ok(&definition), "{body}");
            assert_eq!(prowess::parameters(&body), Ok(Some(parameters.clone())), "{body}");
        }
    }

    #[test]
    fn text_that_yaml_would_misread_is_written_so_that_it_is_not() {
        for description in [
            "a: b",
            "it's \"so\"",
            "C # no comment",
            "[x] {y}",
            "one\ntwo",
            "- a",
            "yes",
            "1.10",
            "--- x",
            "é\u{1F980}",
        ] {
            let manifest = Manifest {
                name: "a".into(),
                description: description.into(),
                ..Manifest::default()
            };
            let parsed = parsed(&prowess::render(&manifest, "body"));
            assert_eq!(rules(&parsed), [""; 0], "{description:?}");
            assert_eq!(&*parsed.manifest.unwrap().description, description);
        }
    }

    #[test]
    fn a_body_that_begins_with_line_ends_is_rendered_to_the_same() {
        for body in
            ["\nText\n", "\n\n\nText\n", "\r\n\r\nText\r\n", "\r\rText\n", "\n\r\nText", "\n"]
        {
            let first = prowess::render(&manifest(&with("")), body);
            let read = parsed(&first);
            let second = prowess::render(&read.manifest.unwrap(), &read.instructions);
            assert_eq!(second, first, "{body:?}");
            assert_eq!(read.instructions.trim_end(), body.trim(), "{body:?}");
        }
    }
}

mod whatever_has_a_type_is_typed {
    use super::*;

    /// Compiles only where the value is of the type.
    fn is<T>(_: &T) {}

    #[test]
    fn m_35_every_option_has_a_type() {
        let Options {
            directories,
            sources,
            cwd,
            home,
            include,
            exclude,
            limits,
            resources,
            watch,
            profile,
            embedder,
            cache,
        } = Options::default();
        is::<Vec<Directory>>(&directories);
        is::<Vec<std::sync::Arc<dyn Source>>>(&sources);
        is::<Option<std::path::PathBuf>>(&cwd);
        is::<Option<std::path::PathBuf>>(&home);
        is::<Option<Vec<String>>>(&include);
        is::<Vec<String>>(&exclude);
        is::<Profile>(&profile);
        is::<Option<std::sync::Arc<prowess::Embedder>>>(&embedder);
        is::<Option<prowess::Cache>>(&cache);
        let SizeLimits { max_file_size, max_skill_size, max_document_size, depth } = limits;
        assert_eq!((max_file_size, max_skill_size), (102_400, 512_000));
        assert_eq!((max_document_size, depth), (1_048_576, 1));
        assert_eq!((resources, watch), (Listing::AtOnce, false));
    }

    #[test]
    fn m_36_every_field_of_a_skill_has_a_type() {
        let world = World::new()
            .document("a", "---\nname: a\ndescription: b\ntype: script\n---\nbody\n")
            .file("skills/a/run.sh", "true\n");
        let library: Library = world.load();
        let skill: &Skill = library.get("a").unwrap();
        is::<Manifest>(&skill.manifest);
        is::<Box<[Field<'static>]>>(&skill.manifest.metadata);
        is::<Option<Box<Dialect>>>(&skill.manifest.dialect);
        is::<Origin>(&skill.origin);
        is::<&[Resource]>(&skill.resources());
        assert_eq!(skill.manifest.kind, Type::Script);
        assert_eq!(skill.manifest.status(), Status::Active);
        assert_eq!(skill.origin.scope, Scope::Project);
        assert_eq!(skill.resources()[0].kind, ResourceKind::Script);
        assert_eq!(skill.instructions().unwrap(), "body\n");
    }

    #[test]
    fn m_37_the_schema_of_use_skill_comes_from_its_type() {
        let schema = UseSkillInput::schema();
        assert_eq!(schema.get("type"), Some(&json!("object")));
        assert_eq!(schema.get("required"), Some(&json!(["name"])));
        let name = &schema.get("properties").unwrap()["name"];
        assert_eq!(name["type"], "string");
        assert!(name["description"].is_string());

        let world = World::new().skill("a", "b").file("skills/a/notes.md", "n");
        let input: UseSkillInput = serde_json::from_value(json!({ "name": "a" })).unwrap();
        let used = prowess::use_skill(&world.load(), &input).unwrap();
        let output = serde_json::to_value(&used).unwrap();
        assert_eq!(output["status"], "found");
        assert_eq!(output["instructions"], "# a\n");
        assert_eq!(output["resources"], json!(["notes.md"]));
        assert_eq!(serde_json::from_value::<UsedSkill>(output).unwrap(), used);
        assert!(serde_json::from_value::<UseSkillInput>(json!({ "name": 1 })).is_err());
    }
}

mod the_small_reader_stands_alone {
    use super::*;

    const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

    #[test]
    fn m_dep_the_small_reader_has_no_dependency_and_is_enough_without_the_yaml_library() {
        let manifest =
            |name: &str| std::fs::read_to_string(format!("{CRATES}/{name}/Cargo.toml")).unwrap();
        let reader = manifest("prowess-frontmatter");
        assert!(!reader.lines().any(|it| it == "[dependencies]"), "{reader}");
        let library = manifest("prowess");
        for line in [
            "default = [\"vocabularies\", \"yaml\"]",
            "yaml = [\"dep:granit-parser\"]",
            "granit-parser = { workspace = true, optional = true }",
        ] {
            assert!(library.lines().any(|it| it == line), "{library}");
        }

        let text = "# all of it\nplain: a b\nquoted: 'it''s'\ndouble: \"q\\n\"\nflow: [a, 'b, c']\n\
                    block:\n  - x\n  - y\nmap:\n  key: value # why\nliteral: |\n  one\n  two\nfolded: >-\n  one\n  two\n";
        let fields = frontmatter::read(text).unwrap();
        let text_of = |key: &str| {
            let value = fields.iter().find(|it| it.key == key).map(|it| &it.value).unwrap();
            match value {
                Value::List(items) => {
                    items.iter().filter_map(Value::as_text).collect::<Vec<_>>().join("|")
                }
                Value::Map(_) => value.get("key").and_then(Value::as_text).unwrap().to_owned(),
                other => other.as_text().unwrap().to_owned(),
            }
        };
        assert_eq!(text_of("plain"), "a b");
        assert_eq!(text_of("quoted"), "it's");
        assert_eq!(text_of("double"), "q\n");
        assert_eq!(text_of("flow"), "a|b, c");
        assert_eq!(text_of("block"), "x|y");
        assert_eq!(text_of("map"), "value");
        assert_eq!(text_of("literal"), "one\ntwo\n");
        assert_eq!(text_of("folded"), "one two");
    }

    #[test]
    fn the_yaml_library_takes_what_the_small_reader_leaves() {
        let lines = "name: a\ndescription: b\n? tags\n: - one\n  - two\n";
        let unsupported = frontmatter::read(lines).unwrap_err();
        assert_eq!(unsupported.line, 3);
        let manifest = manifest(&format!("---\n{lines}---\n"));
        assert_eq!(*manifest.tags, ["one", "two"].map(Box::from));
    }
}
