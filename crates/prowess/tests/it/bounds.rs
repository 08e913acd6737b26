//! Hostile input is handled quickly, with a finding of the right rule.

use std::collections::BTreeSet;

use prowess::{Profile, SizeLimits, check, check_text, parse};
use prowess_testing::cost::assert_linear;

use crate::files::World;

/// Returns a frontmatter with these fields after the two that every skill has.
fn with(fields: &str) -> String {
    format!("---\nname: pdf\ndescription: Reads PDF files.\n{fields}\n---\n\nRead the file.\n")
}

fn saying(body: &str) -> String {
    format!("---\nname: pdf\ndescription: Reads PDF files. Use when one is given.\n---\n\n{body}\n")
}

fn alias_bomb() -> String {
    let line = |level: u8| {
        let (own, before) = (char::from(b'a' + level), char::from(b'a' + level - 1));
        format!("{own}: &{own} [{}]\n", vec![format!("*{before}"); 9].join(", "))
    };
    with(&format!("a: &a [x]\n{}", (1..10).map(line).collect::<String>()))
}

fn merge_bomb() -> String {
    let line = |level: usize| {
        let before = level - 1;
        format!("k{level}: &k{level}\n  <<: *k{before}\n  a: *k{before}\n  b: *k{before}\n")
    };
    with(&format!("k0: &k0\n  x: y\n{}", (1..20).map(line).collect::<String>()))
}

fn nested_maps(depth: usize) -> String {
    (0..depth).map(|it| format!("{}k:\n", " ".repeat(it))).collect()
}

#[test]
fn hostile_frontmatter_is_refused_soon() {
    let rows = [
        ("alias bomb", alias_bomb(), "yaml-unsafe"),
        ("merge key bomb", merge_bomb(), "yaml-unsafe"),
        (
            "a mebibyte of aliases",
            with(&format!("a: &a x\nb:\n{}", "- *a\n".repeat(200_000))),
            "frontmatter-too-large",
        ),
        ("3,000 braces", format!("---\nname: {}\n---\n", "{".repeat(3000)), "yaml-unsafe"),
        ("3,000 braces in a field", with(&format!("x: {}", "{".repeat(3000))), "yaml-unsafe"),
        ("50,000 brackets", with(&format!("x: {}", "[".repeat(50_000))), "yaml-unsafe"),
        ("100,000 brackets", with(&format!("x: {}", "[".repeat(100_000))), "frontmatter-too-large"),
        ("200 nested maps", with(&nested_maps(200)), "yaml-unsafe"),
        ("3,000 nested maps", with(&nested_maps(3000)), "frontmatter-too-large"),
        (
            "200 maps in metadata",
            with(&format!("metadata: {}{}", "{a: ".repeat(200), "}".repeat(200))),
            "yaml-unsafe",
        ),
    ];
    for (what, text, code) in rows {
        let parsed = parse(text.as_bytes(), Some("pdf"), Profile::Spec);
        let found: Vec<&str> = parsed.findings.iter().map(|it| it.rule.code).collect();
        assert!(parsed.manifest.is_none() && found.contains(&code), "{what}: {found:?}");
    }
}

#[test]
fn a_frontmatter_of_many_fields_is_read_soon() {
    let keys = |count: usize| (0..count).map(|it| format!("k{it}: 1\n")).collect::<String>();
    let parsed = parse(with(&keys(1500)).as_bytes(), Some("pdf"), Profile::Spec);
    assert!(parsed.manifest.is_some_and(|it| it.unknown.len() == 1500));
    let parsed = parse(with(&keys(6000)).as_bytes(), Some("pdf"), Profile::Spec);
    assert_eq!(parsed.findings[0].rule.code, "yaml-unsafe");
}

#[test]
fn a_hostile_body_is_checked_in_time_that_grows_with_its_length() {
    let rows = [
        ("nested brackets", "[", 50_000),
        ("nested links", "[a](", 50_000),
        ("nested parentheses", "(", 50_000),
        ("stars", "*", 50_000),
        ("backticks", "`", 50_000),
        ("backticks with gaps", "` ", 50_000),
        ("comments", "<!--", 50_000),
        ("fences", "```\n", 50_000),
        ("hashes", "# ", 50_000),
        ("one line of ten megabytes", "x ", 5 * 1024 * 1024),
    ];
    for (what, unit, count) in rows {
        assert_linear(what, count, |count| {
            let text = saying(&unit.repeat(count));
            let parsed = parse(text.as_bytes(), Some("pdf"), Profile::Spec);
            let findings = check_text(text.as_bytes(), Some("pdf"), Profile::Spec);
            assert!(parsed.manifest.is_some(), "{what}");
            assert!(findings.iter().all(|it| it.rule.code != "yaml-invalid"), "{what}");
        });
    }
}

#[test]
fn a_long_body_is_said_to_be_long() {
    for text in [saying(&"[".repeat(50_000)), saying(&"x ".repeat(5 * 1024 * 1024))] {
        let findings = check_text(text.as_bytes(), Some("pdf"), Profile::Spec);
        assert_eq!(crate::shown(&findings), "W6 body-long");
    }
}

#[test]
fn a_folder_with_many_links_is_checked_soon() {
    let world = World::new();
    world.file("skills/pdf/SKILL.md", saying(&"[".repeat(50_000)));
    world.file("skills/csv/SKILL.md", saying(&"[a](b.md) ".repeat(20_000)).replace("pdf", "csv"));
    let checked = check(&[world.path("skills")], Profile::Spec, &SizeLimits::default()).unwrap();
    assert!(crate::codes(&checked.findings).contains(&"reference-missing"));
}

#[test]
fn thousands_of_links_and_resources_are_checked_soon() {
    let world = World::new();
    let there: String = (0..4000).map(|it| format!("[a](references/{it}.md)\n")).collect();
    let missing: String = (0..3000).map(|it| format!("[b](missing/{it}.md)\n")).collect();
    // Every link occurs twice, and its target is reported once.
    let body = format!("{there}{missing}{there}{missing}");
    world.file("skills/pdf/SKILL.md", saying(&body));
    for number in 0..4000 {
        world.file(&format!("skills/pdf/references/{number}.md"), "");
    }
    let checked = check(&[world.path("skills")], Profile::Spec, &SizeLimits::default()).unwrap();
    let found = checked.findings.iter().filter(|it| it.rule.code == "reference-missing");
    let messages: BTreeSet<&str> = found.clone().map(|it| &*it.message).collect();
    assert_eq!((found.count(), messages.len()), (51, 51));
    assert!(messages.contains("there is no file `missing/49.md` in the skill"), "{messages:?}");
    assert!(messages.contains("2950 more links are broken"), "{messages:?}");
}

#[test]
fn as_many_broken_links_as_are_shown_are_shown_without_a_word_more() {
    for (links, findings) in [(49, 49), (50, 50), (51, 51), (52, 51)] {
        let world = World::new();
        let body: String = (0..links).map(|it| format!("[b](missing/{it}.md)\n")).collect();
        world.file("skills/pdf/SKILL.md", saying(&body));
        assert_eq!(world.checked().findings.len(), findings, "{links}");
    }
}
