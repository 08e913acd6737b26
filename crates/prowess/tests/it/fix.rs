//! Tests of `fix`: what it fixes, what it leaves alone, and that nothing else changes.

use std::fs;

use proptest::{collection::vec, prelude::*};
use prowess::{Finding, FixedText, Profile, check_text, fix, parse};

use crate::codes;

const PROFILES: [Profile; 3] = [Profile::Lenient, Profile::Spec, Profile::Reference];

/// Returns the skill `pdf` with more fields.
fn with(fields: &str) -> String {
    format!("---\nname: pdf\ndescription: Reads.\n{fields}---\n\nRead the file.\n")
}

fn fixed(text: impl AsRef<[u8]>) -> (String, Vec<&'static str>) {
    let FixedText { bytes, findings, left, .. } = fix(text.as_ref(), Profile::Spec);
    assert!(left.is_empty(), "{left:?}");
    (String::from_utf8(bytes).unwrap(), codes(&findings))
}

#[test]
fn every_fix_puts_right_what_its_rule_finds() {
    let crlf = with("license: MIT\n").replace('\n', "\r\n");
    let utf16: Vec<u8> = with("").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(fixed(&utf16), (with(""), vec!["encoding-utf16"]));
    assert_eq!(fixed(format!("\u{FEFF}{}", with(""))), (with(""), vec!["byte-order-mark"]));
    assert_eq!(fixed(&crlf), (crlf.clone(), vec![]));
    assert_eq!(fixed(crlf.replace("\r\n", "\r")), (with("license: MIT\n"), vec!["line-endings"]));
    let delimiters = format!("\n{}", with("").replacen("---\n\n", "...  \n\n", 1));
    assert_eq!(fixed(delimiters), (with(""), vec!["frontmatter-delimiter"; 2]));
    for (before, after, code) in [
        ("license: Mine: all\n\n", "license: 'Mine: all'\n\n", "yaml-repaired"),
        ("license: @me, 'you'  \n", "license: '@me, ''you'''  \n", "yaml-repaired"),
        ("metadata:\n\ta: b\n", "metadata:\n  a: b\n", "yaml-repaired"),
        ("metadata:\n  a: b: c\n", "metadata:\n  a: 'b: c'\n", "yaml-repaired"),
        ("license: MIT\nlicense: 'MIT'\n", "license: MIT\n", "duplicate-key"),
        ("metadata:\nlicense: MIT\n", "license: MIT\n", "metadata-not-map"),
        ("compatibility: ''\n", "", "compatibility"),
        ("colour: red # ish\n", "metadata:\n  colour: red # ish\n", "unknown-field"),
        ("size: 1.10\n", "metadata:\n  size: \"1.10\"\n", "unknown-field"),
        ("allowedTools: Read\n", "allowed-tools: Read\n", "unknown-field"),
        ("version: 1.10\n", "version: \"1.10\"\n", "scalar-not-text"),
        ("metadata:\n  a: 2026-11-15\n", "metadata:\n  a: \"2026-11-15\"\n", "scalar-not-text"),
        ("metadata:\n  a: 1.10\n", "metadata:\n  a: \"1.10\"\n", "scalar-not-text"),
        ("metadata: {a: b}\n", "metadata:\n  a: b\n", "yaml-strict"),
        ("metadata:\n  a: [b]\n", "metadata:\n  a:\n    - b\n", "yaml-strict"),
        (
            "allowed-tools: Read, Bash(git add:*, git rm:*)\n",
            "allowed-tools: Read Bash(git add:*, git rm:*)\n",
            "allowed-tools-form",
        ),
        ("allowed-tools:\n- Read\n- Grep\n", "allowed-tools: Read Grep\n", "allowed-tools-form"),
        ("tags: one, 2\n", "tags: [one, \"2\"]\n", "tags-not-list"),
        ("tags: one # each\n", "tags: [one] # each\n", "tags-not-list"),
    ] {
        assert_eq!(fixed(with(before)), (with(after), vec![code]), "{before}");
    }
    let number = |name: &str| with("").replace("pdf", name);
    assert_eq!(fixed(number("12")), (number("\"12\""), vec!["name-not-text"]));
    let number = |text: &str| with("").replace("Reads.", text);
    assert_eq!(fixed(number("12")), (number("\"12\""), vec!["description-not-text"]));
}

#[test]
fn several_faults_are_put_right_at_once() {
    let before = "\u{FEFF}\r\n---\r\nname: pdf\r\ndescription: Use: always\r\nsize: 1\r\nallowed_tools: [Read, Grep]\r\nmetadata:\r\n    owner: me\r\n----\r\nRead.\r\n";
    let (after, codes) = fixed(before);
    assert_eq!(
        after,
        "---\nname: pdf\ndescription: 'Use: always'\nallowed-tools: Read Grep\nmetadata:\n    owner: me\n    size: \"1\"\n---\nRead.\n"
            .replace('\n', "\r\n")
    );
    assert_eq!(codes.len(), 6, "{codes:?}");
}

#[test]
fn what_is_not_safe_is_left_alone() {
    let untouched = |text: &str| {
        let fixed = fix(text.as_bytes(), Profile::Spec);
        assert_eq!(String::from_utf8(fixed.bytes).unwrap(), text);
        assert_eq!(fixed.findings, []);
        codes_of(&fixed.left)
    };
    for fields in [
        "license: MIT\nlicense: BSD\n",
        "colours: [red, blue]\n",
        "colour:\n",
        "tags: one two\n",
        "tags: '[one, two]'\n",
        "tags: {one: two}\n",
        "description2: |\n",
        "colour: red\nmetadata:\n  colour: blue\n",
        "metadata:\n  errors_prevented: 10\n  is_free: true\n",
        "colour: red\nmetadata: none\n",
        "metadata: {a: b} # mine\n",
        "compatibility: [a]\n",
        "allowed-tools: {Read: yes}\n",
        "allowed-tools: [Read Grep]\n",
        "allowed-tools: []\n",
        "license: !!str MIT\n",
        "]: [\n",
    ] {
        assert_eq!(untouched(&with(fields)), [""; 0], "{fields}");
    }
    for text in [
        "",
        "Read.\n",
        "---\nname: pdf\n",
        "---\n- a\n---\n",
        "---\nname: pdf\ndescription: Use [x\n  y: z\n]: [\n---\n",
    ] {
        assert_eq!(untouched(text), [""; 0], "{text}");
    }
    // It is unknown whether a line under a value belongs to it.
    for before in ["name: pdf: x\n  y\n", "name: pdf\nlicense: a: b\nand more\n"] {
        assert_eq!(untouched(&with("").replace("name: pdf\n", before)), [""; 0], "{before}");
    }
    // A comment would be lost.
    let listed = with("allowed-tools:\n- Read # files\n- Grep\n");
    assert_eq!(untouched(&listed), ["allowed-tools-form"]);
}

fn codes_of(rules: &[&'static prowess::Rule]) -> Vec<&'static str> {
    rules.iter().map(|it| it.code).collect()
}

#[test]
fn a_profile_has_only_what_it_finds_put_right() {
    let text = with("colour: red\nversion: 1.10\n").replace('\n', "\r\n");
    assert_eq!(fix(text.as_bytes(), Profile::Lenient).bytes, text.as_bytes());
    let moved = text.replace("colour: red", "metadata:\r\n  colour: red");
    assert_eq!(fix(text.as_bytes(), Profile::Reference).bytes, moved.as_bytes());
    let version = with("version: 1.10\n");
    assert_eq!(fix(version.as_bytes(), Profile::Reference).bytes, version.as_bytes());
    let colon = version.replace("Reads.", "Use: always");
    let quoted = version.replace("Reads.", "'Use: always'");
    assert_eq!(fix(colon.as_bytes(), Profile::Reference).bytes, quoted.as_bytes());
}

#[test]
fn brackets_become_lines() {
    let text = with("metadata: {a: b, c: [d, 'e: f']}\nallowed-tools: [Read, Grep]\n");
    let lines =
        with("metadata:\n  a: b\n  c:\n    - d\n    - \"e: f\"\nallowed-tools: Read Grep\n");
    assert_eq!(fix(text.as_bytes(), Profile::Reference).bytes, lines.as_bytes());
    let text = text.replace('\n', "\r\n");
    let lines = lines.replace('\n', "\r\n");
    assert_eq!(fix(text.as_bytes(), Profile::Reference).bytes, lines.as_bytes());
    let noted = with("metadata: {a: b} # mine\n");
    assert_eq!(fix(noted.as_bytes(), Profile::Reference).bytes, noted.as_bytes());
}

#[test]
fn what_is_read_under_metadata_too_is_moved_there() {
    let text = with("type: script\nstatus: draft # yet\nrequires_approval: true\nsource: s\n");
    let moved = with(
        "metadata:\n  type: script\n  status: draft # yet\n  requires_approval: \"true\"\n  source: s\n",
    );
    for profile in [Profile::Spec, Profile::Reference] {
        assert_eq!(fix(text.as_bytes(), profile).bytes, moved.as_bytes());
    }
    // There it would be a note of the author, and the skill would be in use.
    for fields in ["status: retired\n", "requires-approval: perhaps\n", "type: core\n", "status:\n"]
    {
        let text = with(fields);
        assert_eq!(fix(text.as_bytes(), Profile::Spec).bytes, text.as_bytes(), "{fields}");
    }
    let both = with("status: active\nmetadata:\n  status: draft\n");
    assert_eq!(fix(both.as_bytes(), Profile::Spec).bytes, both.as_bytes());
}

#[test]
fn new_lines_end_as_those_around_them() {
    let odd = |fields: &str| with(fields).replacen('\n', "\r\n", 1);
    assert_eq!(fixed(odd("colour: red\n")).0, odd("metadata:\n  colour: red\n"));
}

#[test]
fn bytes_that_are_no_text_stay_in_the_instructions() {
    let before = [with("colour: red\n").as_bytes(), b"\xFF \r\n \xE9"].concat();
    let after = [with("metadata:\n  colour: red\n").as_bytes(), b"\xFF \r\n \xE9"].concat();
    assert_eq!(fix(&before, Profile::Spec).bytes, after);
}

/// Fixes a text in every profile, and checks all guarantees of `fix`.
fn assert_promises(bytes: &[u8]) {
    for profile in PROFILES {
        let FixedText { bytes: after, findings, .. } = fix(bytes, profile);
        assert_eq!(after == bytes, findings.is_empty(), "{:?}", String::from_utf8_lossy(bytes));
        assert_eq!(fix(&after, profile).bytes, after, "{:?}", String::from_utf8_lossy(bytes));
        let (old, new) = (parse(bytes, None, profile), parse(&after, None, profile));
        assert_eq!(old.instructions, new.instructions);
        if let (Some(old), Some(new)) = (&old.manifest, &new.manifest) {
            let said = |it: &prowess::Manifest| {
                let it = it.clone();
                (it.name, it.description, it.license, it.version, it.tags, it.kind, it.status)
            };
            assert_eq!(said(old), said(new));
            assert_eq!(old.allowed_tools, new.allowed_tools);
        }
        assert!(old.manifest.is_none() || new.manifest.is_some());
        let errors = |bytes: &[u8]| {
            let is_error = |it: &Finding| it.severity == prowess::Severity::Error;
            check_text(bytes, None, profile).iter().filter(|it| is_error(it)).count()
        };
        // The reference library reports nothing about the fields of invalid YAML.
        assert!(profile == Profile::Reference || errors(&after) <= errors(bytes));
    }
}

#[test]
fn all_promises_hold_for_irregular_skills() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/irregular");
    for entry in fs::read_dir(folder).unwrap() {
        for name in ["SKILL.md", "skill.md", "Skill.md", "SKILL.MD"] {
            if let Ok(bytes) = fs::read(entry.as_ref().unwrap().path().join(name)) {
                assert_promises(&bytes);
            }
        }
    }
}

/// Generates a line of a frontmatter, with everything that can go wrong in one.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        prop::sample::select(
            &["name", "description", "license", "version", "metadata", "tags"][..]
        )
        .prop_map(str::to_owned),
        prop::sample::select(&["allowed-tools", "allowed_tools", "compatibility", "colour"][..])
            .prop_map(str::to_owned),
        "[ \t]{0,3}[a-z]{1,2}",
        "- [a-z]",
    ];
    let value = prop_oneof![
        "[a-z]{1,6}",
        "[0-9]{1,4}(\\.[0-9]{1,2})?",
        "[-:#'\"\\[\\]{}|>&*!%@`,~ \ta-z\u{E9}]{0,12}",
        Just(String::new()),
    ];
    let end = prop_oneof![8 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\r")];
    let colon = prop_oneof![6 => Just(": "), 1 => Just(":"), 1 => Just(" ")];
    (key, colon, value, end)
        .prop_map(|(key, colon, value, end)| [&key, colon, &value, end].concat())
}

proptest! {
    #[test]
    fn all_promises_hold_for_any_fields(
        lines in vec(line(), 0..7),
        mark in prop_oneof![4 => Just(""), 1 => Just("\u{FEFF}"), 1 => Just("\n")],
        closing in prop_oneof![4 => Just("---\n"), 1 => Just("...\r\n"), 1 => Just(" --- \n")],
        body in "[ -~\r\n#-]{0,20}",
        is_dos in any::<bool>(),
    ) {
        let fields = lines.concat();
        let text = format!("{mark}---\nname: a\ndescription: b\n{fields}{closing}{body}");
        let text = if is_dos { text.replace('\n', "\r\n") } else { text };
        assert_promises(text.as_bytes());
        assert_promises(text.replace("name: a\ndescription: b\n", "").as_bytes());
    }
}
