//! Rendered text parses back to what it was.

use proptest::{collection::vec, option, prelude::*};
use prowess::{
    AllowedTools, CompositeStep, Definition, Dialect, Manifest, Profile, Status, Type, definition,
    frontmatter::{Field, Scalar, Style, Value},
    parameters, parse, render, render_definition,
};
use serde_json::{Map, Value as Json, json};

/// Returns the manifest and body of a text that must be a skill.
fn parsed(text: &str) -> (Manifest, String) {
    let parsed = parse(text.as_bytes(), None, Profile::Spec);
    let manifest = parsed.manifest.unwrap_or_else(|| panic!("{:?} in {text:?}", parsed.findings));
    (manifest, parsed.instructions)
}

/// Returns the manifest of the skill `pdf` with more fields.
fn with(fields: &str) -> Manifest {
    parsed(&format!("---\nname: pdf\ndescription: Reads.\n{fields}---\n")).0
}

#[test]
fn allowed_tools_are_the_same_in_three_spellings() {
    let tools = ["Read", "Bash(git add:*, git commit:*)", "Grep"].map(Box::from);
    for fields in [
        "allowed-tools: Read Bash(git add:*, git commit:*) Grep\n",
        "allowed-tools: Read, Bash(git add:*, git commit:*), Grep\n",
        "allowed-tools:\n  - Read\n  - Bash(git add:*, git commit:*)\n  - Grep\n",
    ] {
        assert_eq!(*with(fields).allowed_tools.0, tools, "{fields}");
    }
}

#[test]
fn allowed_tools_are_written_as_one_text() {
    let manifest = with("allowed-tools: [Read, 'Bash(git add:*)']\n");
    assert!(render(&manifest, "").contains("allowed-tools: Read Bash(git add:*)\n"));
}

#[test]
fn a_version_that_looks_like_a_number_stays_as_written() {
    let manifest = with("version: 1.10\nmetadata:\n  version: 1.10\n");
    assert_eq!(manifest.version.as_deref(), Some("1.10"));
    assert_eq!(manifest.metadata[0].value.as_text(), Some("1.10"));
    let (again, _) = parsed(&render(&manifest, ""));
    assert_eq!(again.version.as_deref(), Some("1.10"));
    assert_eq!(again.metadata[0].value.as_text(), Some("1.10"));
}

#[test]
fn what_is_rendered_has_the_fields_of_the_specification_alone() {
    let manifest = Manifest {
        name: "a".into(),
        description: "b".into(),
        kind: Type::Script,
        status: Some(Status::Draft),
        version: Some("1.10".into()),
        author: Some("me".into()),
        source: Some("https://example.com/a".into()),
        created_by: Some("import".into()),
        tags: ["x".into(), "two words".into()].into(),
        requires_approval: true,
        ..Manifest::default()
    };
    let text = render(&manifest, "");
    assert_eq!(
        text,
        "---\nname: a\ndescription: b\nmetadata:\n  type: script\n  status: draft\n  version: \"1.10\"\n  \
         author: me\n  tags: x, two words\n  source: https://example.com/a\n  created-by: import\n  \
         requires-approval: \"true\"\n---\n"
    );
    assert_eq!(unplaced(&parsed(&text).0), unplaced(&manifest));
}

#[test]
fn every_field_of_a_manifest_is_rendered_and_read_back() {
    let text = |it: &str| Some(Box::from(it));
    let list = |it: &str| Box::from([Box::from(it)]);
    // Without `..`, so that a new field has to be added here.
    let dialect = Dialect {
        disable_model_invocation: Some(true),
        user_invocable: Some(false),
        argument_hint: text("[file]"),
        when_to_use: text("before a review"),
        paths: list("src/*"),
        context: text("fork"),
        agent: text("reviewer"),
        model: text("small"),
        effort: text("high"),
        hooks: Some(Value::Map(vec![Field::new("before", Value::from("lint"))])),
        requires: list("git"),
        triggers: list("diff"),
    };
    let manifest = Manifest {
        name: "review".into(),
        description: "Reviews.".into(),
        license: text("MIT"),
        compatibility: text("Linux"),
        metadata: [Field::new("team", Value::from("tools"))].into(),
        allowed_tools: AllowedTools(list("Read")),
        version: text("1.2"),
        author: text("me"),
        tags: list("code"),
        kind: Type::Script,
        status: Some(Status::Draft),
        source: text("https://example.com/review"),
        created_by: text("import"),
        requires_approval: true,
        dialect: Some(Box::new(dialect)),
        unknown: [Field::new("x-new", Value::from("kept"))].into(),
    };
    let rendered = render(&manifest, "");
    assert_eq!(unplaced(&parsed(&rendered).0), unplaced(&manifest), "{rendered}");
    let findings = prowess::check_text(rendered.as_bytes(), None, Profile::Spec);
    let unknown = findings.iter().filter(|it| it.rule.code == "unknown-field");
    let unknown: Vec<&str> = unknown.map(|it| &*it.message).collect();
    assert_eq!(unknown, ["`x-new` is not a field of the specification"]);
}

#[test]
fn the_fields_of_a_manifest_are_read_at_the_top_level_and_under_metadata() {
    let at_top = "type: script\nstatus: draft\nversion: '1'\nauthor: me\ntags: [x, y]\nsource: s\n\
                  created_by: c\nrequires_approval: yes\n";
    let nested = "metadata:\n  type: script\n  status: draft\n  version: '1'\n  author: me\n  \
                  tags: x, y\n  source: s\n  created_by: c\n  requires_approval: \"true\"\n";
    assert_eq!(unplaced(&with(at_top)), unplaced(&with(nested)));
    let list = nested.replace("tags: x, y", "tags:\n    - x\n    - y");
    assert_eq!(unplaced(&with(at_top)), unplaced(&with(&list)));
}

#[test]
fn a_note_of_the_author_under_metadata_stays_a_note() {
    for note in ["type: workflow", "status: rc", "tags: {a: b}", "version:", "type: [script]"] {
        let manifest = with(&format!("metadata:\n  {note}\n"));
        assert_eq!((manifest.kind, manifest.status), (Type::Instruction, None), "{note}");
        assert_eq!(manifest.metadata.len(), 1, "{note}");
        let text = render(&manifest, "");
        assert_eq!(unplaced(&parsed(&text).0), unplaced(&manifest), "{note}");
    }
}

#[test]
fn the_top_level_counts_before_metadata() {
    let manifest =
        with("type: instruction\nstatus: active\nmetadata:\n  type: script\n  status: draft\n");
    assert_eq!((manifest.kind, manifest.status()), (Type::Instruction, Status::Active));
    let (again, _) = parsed(&render(&manifest, ""));
    assert_eq!((again.kind, again.status()), (Type::Instruction, Status::Active));
    // An approval is required if one of them says so, or cannot be parsed.
    for fields in [
        "requires-approval: false\nmetadata:\n  requires-approval: \"true\"\n",
        "requires-approval: true\nmetadata:\n  requires-approval: \"false\"\n",
        "metadata:\n  requires-approval: perhaps\n",
        "metadata:\n  requires_approval: \"true\"\n  requires-approval: \"false\"\n",
    ] {
        assert!(with(fields).requires_approval, "{fields}");
    }
    assert!(!with("metadata:\n  requires-approval: \"no\"\n").requires_approval);
}

#[test]
fn what_nobody_knows_is_kept() {
    let fields = "x-list:\n  - a\n  - b: 1\nx-map:\n  c: \"2\"\n";
    let text = render(&with(fields), "");
    assert!(text.contains("x-list:\n  - a\n  - b: 1\nx-map:\n  c: \"2\"\n"), "{text}");
}

#[test]
fn a_script_with_heredocs_and_fences_comes_back() {
    for script in [
        "echo `date`\n",
        "cat <<'EOF'\n```json\n{}\n```\n## Parameters\nEOF\n",
        "cat <<EOF\n````sh\nls\n````\nEOF\n",
        "  indented\n\n\ttabs\n",
        "~~~\nx\n~~~\n",
        "",
    ] {
        let before = Definition::Script { script: script.to_owned() };
        let body = render_definition(&before, Some(&json!({"type": "object"})));
        assert_eq!(definition(Type::Script, &body), Ok(before), "{body}");
        assert_eq!(parameters(&body), Ok(Some(json!({"type": "object"}))), "{body}");
    }
}

/// Generates a text on one line, with everything that is difficult in YAML.
fn line() -> impl Strategy<Value = Box<str>> {
    prop_oneof!["[a-z]{1,8}", "[ -~]{1,30}", "[-:#'\"\\[\\]{}|>&*!%@`, a-z\u{E9}\u{1F600}]{1,20}"]
        .prop_map(|it| it.trim().to_owned())
        .prop_filter("it is not empty", |it| !it.is_empty())
        .prop_map(Into::into)
}

fn word() -> impl Strategy<Value = Box<str>> {
    "[A-Za-z][A-Za-z0-9:*/-]{0,10}".prop_map(Into::into)
}

fn value() -> impl Strategy<Value = Value<'static>> {
    let style = prop_oneof![Just(Style::Plain), Just(Style::Quoted), Just(Style::Block)];
    let scalar = ("[ -~\n\u{E9}]{0,30}", style)
        .prop_map(|(text, style)| Value::Scalar(Scalar { text: text.into(), style }));
    prop_oneof![Just(Value::Empty), scalar].prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::List),
            vec(("[a-z]{1,6}", inner), 0..3).prop_map(|it| Value::Map(fields(it))),
        ]
    })
}

fn fields(values: Vec<(String, Value<'static>)>) -> Vec<Field<'static>> {
    let mut fields: Vec<Field<'static>> = Vec::new();
    for (key, value) in values {
        if !fields.iter().any(|it| it.key == key) {
            fields.push(Field::new(key, value));
        }
    }
    fields
}

fn dialect() -> impl Strategy<Value = Option<Box<Dialect>>> {
    let text = || option::of(line());
    let bools = (any::<Option<bool>>(), any::<Option<bool>>());
    let lists = (vec(word(), 0..3), vec(word(), 0..3), vec(word(), 0..3));
    let texts = (text(), text(), text(), text(), text(), text());
    (bools, texts, lists, option::of(value())).prop_map(|(bools, texts, lists, hooks)| {
        let dialect = Dialect {
            disable_model_invocation: bools.0,
            user_invocable: bools.1,
            argument_hint: texts.0,
            when_to_use: texts.1,
            context: texts.2,
            agent: texts.3,
            model: texts.4,
            effort: texts.5,
            paths: lists.0.into(),
            requires: lists.1.into(),
            triggers: lists.2.into(),
            hooks,
        };
        (dialect != Dialect::default()).then(|| Box::new(dialect))
    })
}

/// Generates a name that a skill can have: not a path, and not a device.
fn name() -> impl Strategy<Value = Box<str>> {
    line().prop_filter("no skill has this name", |it| {
        let manifest = Manifest { name: it.clone(), description: "d".into(), ..with("") };
        let parsed = parse(render(&manifest, "").as_bytes(), None, Profile::Spec);
        !parsed.findings.iter().any(|it| it.rule.code == "name-path")
    })
}

fn manifests() -> impl Strategy<Value = Manifest> {
    let text = || option::of(line());
    let texts = (name(), line(), text(), text(), text(), text(), text(), text());
    let kinds =
        (prop::sample::select(&Type::ALL[..]), option::of(prop::sample::select(&Status::ALL[..])));
    let lists = (vec(word(), 0..3), vec(line(), 0..3));
    let nested = (vec(("[a-z]{1,6}", value()), 0..4), vec(("x-[a-z]{1,6}", value()), 0..3));
    (texts, kinds, lists, any::<bool>(), nested, dialect()).prop_map(
        |(texts, (kind, status), (tools, tags), requires_approval, nested, dialect)| Manifest {
            name: texts.0,
            description: texts.1,
            license: texts.2,
            compatibility: texts.3,
            version: texts.4,
            author: texts.5,
            source: texts.6,
            created_by: texts.7,
            kind,
            status,
            allowed_tools: AllowedTools(tools.into()),
            tags: tags.into(),
            requires_approval,
            metadata: fields(nested.0).into(),
            unknown: fields(nested.1).into(),
            dialect,
        },
    )
}

/// Formats the manifest without the positions of its fields, which a text does not preserve.
fn unplaced(manifest: &Manifest) -> String {
    let mut plain = manifest.clone();
    plain.metadata = Box::default();
    plain.unknown = Box::default();
    // An active skill does not state its status.
    plain.status = plain.status.filter(|it| *it != Status::Active);
    if let Some(dialect) = &mut plain.dialect {
        dialect.hooks = None;
    }
    let written = |fields: &[Field<'_>]| prowess::frontmatter::write(fields);
    format!("{plain:?}\n{}\n{}", written(&manifest.metadata), written(&manifest.unknown))
}

fn scripts() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("```sh".to_owned()),
        Just("````".to_owned()),
        Just("~~~".to_owned()),
        Just("cat <<'EOF'".to_owned()),
        Just("## Parameters".to_owned()),
        Just("    ```".to_owned()),
        "[ -~\u{E9}]{0,20}",
    ];
    vec(line, 0..8).prop_map(|lines| lines.into_iter().map(|it| it + "\n").collect())
}

fn schemas() -> impl Strategy<Value = Json> {
    vec(("[a-z]{1,6}", "[ -~`\n]{0,12}"), 0..3).prop_map(|them| {
        let properties: Map<String, Json> =
            them.into_iter().map(|(key, text)| (key, json!({"description": text}))).collect();
        json!({"type": "object", "properties": properties})
    })
}

fn definitions() -> impl Strategy<Value = (Type, Definition)> {
    let step = (word(), schemas()).prop_map(|(tool, params)| CompositeStep {
        tool: tool.into(),
        params: params.as_object().cloned().unwrap_or_default(),
    });
    prop_oneof![
        scripts().prop_map(|script| (Type::Script, Definition::Script { script })),
        scripts().prop_map(|template| (Type::Template, Definition::Template { template })),
        vec(step, 1..4).prop_map(|steps| (Type::Composite, Definition::Composite { steps })),
        scripts().prop_map(|content| (Type::Instruction, Definition::Instruction { content })),
    ]
}

proptest! {
    #[test]
    fn rendering_what_was_parsed_gives_the_same_bytes(manifest in manifests(), body in "([ -~\u{E9}][ -~\n\u{E9}`#-]{0,80})?") {
        let text = render(&manifest, &body);
        let (again, instructions) = parsed(&text);
        prop_assert_eq!(render(&again, &instructions), text);
    }

    #[test]
    fn a_rendered_manifest_parses_to_itself(manifest in manifests()) {
        let text = render(&manifest, "");
        prop_assert_eq!(unplaced(&parsed(&text).0), unplaced(&manifest), "{}", text);
    }

    #[test]
    fn a_rendered_definition_comes_back(
        (kind, before) in definitions(),
        schema in option::of(schemas()),
    ) {
        let body = render_definition(&before, schema.as_ref());
        prop_assert_eq!(definition(kind, &body), Ok(before), "{}", body);
        if kind != Type::Instruction {
            prop_assert_eq!(parameters(&body), Ok(schema), "{}", body);
        }
    }

    #[test]
    fn any_bytes_can_be_parsed_and_checked(bytes in vec(any::<u8>(), 0..200), frame in any::<bool>()) {
        let framed = [b"---\nname: a\n", &bytes[..], b"\n---\n", &bytes[..]].concat();
        let bytes = if frame { framed } else { bytes };
        for profile in [Profile::Lenient, Profile::Spec, Profile::Reference] {
            let parsed = parse(&bytes, Some("a"), profile);
            let findings = prowess::check_text(&bytes, Some("a"), profile);
            // A skill is never rejected without a finding.
            prop_assert!(parsed.manifest.is_some() || !parsed.findings.is_empty());
            let lines = 1 + bytes.iter().filter(|it| matches!(it, b'\n' | b'\r')).count();
            for it in findings.iter().chain(&parsed.findings) {
                prop_assert!(it.line.is_none_or(|line| (1..=lines + 1).contains(&line)), "{:?}", it);
            }
        }
    }
}
