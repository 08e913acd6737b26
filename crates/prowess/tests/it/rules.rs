//! Every rule: one skill that breaks it, and one that barely does not.

use std::collections::BTreeSet;

use prowess::{Directory, Finding, Library, Options, Profile, RULES, Severity, check_text};

use crate::{
    codes,
    files::{World, document},
    shown,
};

/// A rule about a text, a text that breaks it, and one that barely does not.
type Text = (&'static str, Vec<u8>, Vec<u8>);

/// A rule about files or a library, a setup that breaks it, and one that barely does not.
type Place = (&'static str, fn(&World) -> Vec<Finding>, fn(&World) -> Vec<Finding>);

/// Returns the skill `pdf` with more fields.
fn with(fields: &str) -> Vec<u8> {
    let fields = format!("name: pdf\ndescription: Reads PDF files.\n{fields}");
    framed(&fields, "Read the file.\n")
}

/// Returns the skill `pdf` with these instructions.
fn saying(body: &str) -> Vec<u8> {
    framed("name: pdf\ndescription: Reads PDF files.\n", body)
}

/// Returns a skill with these fields alone.
fn only(fields: &str) -> Vec<u8> {
    framed(fields, "Read the file.\n")
}

fn named(name: &str) -> Vec<u8> {
    only(&format!("name: {name}\ndescription: Reads PDF files.\n"))
}

fn described(description: &str) -> Vec<u8> {
    only(&format!("name: pdf\ndescription: {description}\n"))
}

fn framed(fields: &str, body: &str) -> Vec<u8> {
    format!("---\n{fields}---\n\n{body}").into_bytes()
}

/// Returns a frontmatter of this many bytes.
fn sized(bytes: usize) -> Vec<u8> {
    let fields = "name: pdf\ndescription: Reads PDF files.\n# ";
    let comment = "x".repeat(bytes - fields.len() - 1);
    only(&format!("{fields}{comment}\n"))
}

fn utf16(text: &[u8]) -> Vec<u8> {
    [0xFF, 0xFE].into_iter().chain(text.iter().flat_map(|byte| [*byte, 0])).collect()
}

#[rustfmt::skip]
fn texts() -> Vec<Text> {
    let plain = || with("");
    let text = |text: &str| text.as_bytes().to_vec();
    let bytes = |before: &[u8], after: &[u8]| [before, after].concat();
    vec![
        ("encoding", described("caf").iter().map(|it| if *it == b'c' { 0xE9 } else { *it }).collect(), described("caf\u{E9}")),
        ("encoding-utf16", utf16(&plain()), plain()),
        ("byte-order-mark", bytes(b"\xEF\xBB\xBF", &plain()), plain()),
        ("line-endings", only("name: pdf\r\ndescription: Reads.\r\n"), saying("Read.\r\nThen answer.\r\n")),
        ("frontmatter-missing", text("# Reads PDF files\n\n---\n"), plain()),
        ("frontmatter-unclosed", text("---\nname: pdf\ndescription: Reads.\n\n# Steps\n"), text("---\nname: pdf\ndescription: Reads.\n---")),
        ("frontmatter-delimiter", text("\n---\nname: pdf\ndescription: Reads.\n---\n"), text("---\nname: pdf\ndescription: |\n  ---\n  Reads.\n---\n")),
        ("frontmatter-too-large", sized(64 * 1024 + 1), sized(64 * 1024)),
        ("yaml-invalid", only("]: [\nname: pdf\n"), only("\"]\": \"[\"\nname: pdf\n")),
        ("yaml-unsafe", with("license: &mit MIT\nauthor: *mit\n"), with("license: '&mit MIT'\nauthor: '*mit'\n")),
        ("yaml-not-map", only("- name: pdf\n"), with("tags:\n- name\n")),
        ("yaml-repaired", described("Use when: asked."), described("Use when:asked, at 12:30.")),
        ("yaml-rescued", only("]: [\nname: pdf\ndescription: Reads.\n"), only("\"]\": \"[\"\nname: pdf\ndescription: Reads.\n")),
        ("yaml-strict", with("metadata: {colour: red}\n"), with("metadata:\n  colour: red [or] {so}\n")),
        ("description-when", described("Reads PDF files."), described("Reads PDF files. Use when a PDF is given.")),
        ("argument-hint", saying("Review $ARGUMENTS.\n"), saying("It costs $1,000 or `echo $1`.\n")),
        ("unpinned-package", saying("Run `npx -y prettier .`\n"), saying("Run `npx prettier@3.1.0 .`, `npx tsc` or `pip install -r requirements.txt`.\n")),
        ("duplicate-key", with("license: MIT\nlicense: MIT\n"), with("license: MIT\nmetadata:\n  license: MIT\n")),
        ("comment-cut", described("Closes #12."), described("Writes C#.")),
        ("unknown-field", with("colour: red\n"), with("metadata:\n  colour: red\n")),
        ("vendor-field", with("author: someone\n"), with("metadata:\n  author: someone\n")),
        ("name-missing", only("description: Reads.\n"), plain()),
        ("name-not-text", only("name: [pdf]\ndescription: Reads.\n"), only("name: 'pdf'\ndescription: Reads.\n")),
        ("name-too-long", named(&"a".repeat(65)), named(&"a".repeat(64))),
        ("name-case", named("Pdf"), named("pdf")),
        ("name-edge", named("pdf-"), named("p-df")),
        ("name-hyphens", named("p--df"), named("p-d-f")),
        ("name-characters", named("pdf_reader"), named("pdf-reader2")),
        ("name-folder", named("pdfs"), named("pdf")),
        ("name-not-ascii", named("caf\u{E9}"), named("cafe")),
        ("name-reserved", named("claude-pdf"), named("cloud-pdf")),
        ("name-path", named("lpt1"), named("lpt10")),
        ("name-windows", named("a:b"), named("ab")),
        ("description-missing", only("name: pdf\ndescription: ''\n"), described("R")),
        ("description-not-text", only("name: pdf\ndescription: [Reads]\n"), described("'[Reads]'")),
        ("description-too-long", described(&"\u{E9}".repeat(1025)), described(&"\u{E9}".repeat(1024))),
        ("description-cut", described(&"\u{E9}".repeat(251)), described(&"\u{E9}".repeat(250))),
        ("description-brackets", described("Fills <name> in."), described("Fills {name} in.")),
        ("compatibility", with(&format!("compatibility: {}\n", "\u{E9}".repeat(501))), with(&format!("compatibility: {}\n", "\u{E9}".repeat(500)))),
        ("license-not-text", with("license: [MIT]\n"), with("license: MIT\n")),
        ("metadata-not-map", with("metadata: [a]\n"), with("metadata: {a: b}\n")),
        ("metadata-nested", with("metadata: {a: {b: c}}\n"), with("metadata: {a: b}\n")),
        ("allowed-tools-form", with("allowed-tools: Read, Grep\n"), with("allowed-tools: Read Bash(git add:*, git rm:*)\n")),
        ("allowed-tools-not-text", with("allowed-tools: {Read: yes}\n"), with("allowed-tools: [Read]\n")),
        ("tags-not-list", with("tags: pdf\n"), with("tags: [pdf]\n")),
        ("field-type", with("status: maybe\n"), with("status: draft\n")),
        ("scalar-not-text", with("version: 1.10\n"), with("version: '1.10'\n")),
        ("definition", with("type: script\n"), framed("name: pdf\ndescription: Reads.\ntype: script\n", "```sh\necho\n```\n")),
        ("hidden-characters", saying("Read\u{200B} it.\n"), saying("Read \u{1F469}\u{200D}\u{1F4BB} it.\n")),
        ("body-empty", saying(" \n\n"), saying(".")),
        ("body-long", saying(&"a\n".repeat(501)), saying(&"a\n".repeat(499))),
        ("placeholder", described("'{{what it does}}'"), described("'{what it does}'")),
    ]
}

fn library(world: &World) -> Vec<Finding> {
    world.library().findings().to_vec()
}

fn checked(world: &World) -> Vec<Finding> {
    world.checked().findings
}

/// Checks the skill `pdf`, which links to a file.
fn linking(world: &World, target: &str) -> Vec<Finding> {
    world.file("skills/pdf/SKILL.md", saying(&format!("See [the form]({target}).\n")));
    checked(world)
}

/// Checks the skill `pdf` with resources of this total size, each as large as allowed.
fn weighing(world: &World, size: usize) -> Vec<Finding> {
    let text = document("pdf");
    let rest = size - text.len();
    for number in 0..rest / 100_000 {
        world.file(&format!("skills/pdf/assets/{number}.bin"), vec![0; 100_000]);
    }
    world.file("skills/pdf/assets/rest.bin", vec![0; rest % 100_000]);
    world.file("skills/pdf/SKILL.md", text);
    checked(world)
}

/// Checks the skill `pdf` in a file of this many bytes.
fn filling(world: &World, size: usize) -> Vec<Finding> {
    let text = document("pdf");
    let rest = "\n".repeat(size - text.len());
    world.file("skills/pdf/SKILL.md", text + &rest);
    world.skill("other");
    checked(world)
}

/// Checks the skill `pdf` with this many other files.
fn holding(world: &World, files: usize) -> Vec<Finding> {
    world.skill("pdf");
    for number in 0..files {
        world.file(&format!("skills/pdf/assets/{number}.txt"), "x");
    }
    checked(world)
}

fn including(world: &World, name: &str) -> Vec<Finding> {
    world.skill("pdf");
    let options = Options { include: Some(vec![name.to_owned()]), ..world.options(&["skills"]) };
    Library::load(&options).unwrap().findings().to_vec()
}

/// Loads the skill `pdf`, changes it, and loads again.
fn changed(world: &World, text: &str) -> Vec<Finding> {
    world.skill("pdf");
    let library = world.library();
    world.file("skills/pdf/SKILL.md", text);
    library.reload().unwrap().findings().to_vec()
}

fn directory(world: &World, optional: bool) -> Vec<Finding> {
    let directory = Directory { optional, ..Directory::new(world.path("missing")) };
    let options = Options { directories: vec![directory], ..Options::default() };
    Library::load(&options).unwrap().findings().to_vec()
}

#[rustfmt::skip]
const PLACES: &[Place] = &[
    ("directory-missing", |it| directory(it, false), |it| directory(it, true)),
    ("directory-unreadable",
        |it| { it.file("file", ""); Library::load(&it.options(&["file"])).unwrap().findings().to_vec() },
        |it| { it.folder("file"); Library::load(&it.options(&["file"])).unwrap().findings().to_vec() }),
    // A name that no file system accepts cannot be read, not even by root.
    ("file-unreadable",
        |it| library(it.link("skills/pdf/SKILL.md", "x".repeat(300))),
        |it| library(it.file("skills/pdf/x", document("pdf")).link("skills/pdf/SKILL.md", "x"))),
    ("file-not-regular",
        |it| library(it.folder("skills/pdf/SKILL.md")),
        |it| library(it.folder("skills/pdf/SKILL.md.d").skill("pdf"))),
    ("file-too-large", |it| filling(it, 1024 * 1024 + 1), |it| filling(it, 1024 * 1024)),
    ("file-name",
        |it| checked(it.file("skills/pdf/skill.md", document("pdf"))),
        |it| checked(it.skill("pdf").file("skills/pdf/skill.md", ""))),
    ("link-escapes",
        |it| library(it.file("out/SKILL.md", document("pdf")).link("skills/pdf", "../out")),
        |it| library(it.file("skills/out/SKILL.md", document("pdf")).link("skills/pdf", "../skills/out"))),
    ("link-broken",
        |it| library(it.link("skills/pdf", "gone")),
        |it| library(it.folder("skills/gone").link("skills/pdf", "gone"))),
    ("name-confusable",
        |it| checked(it.skill("pdf").file("skills/p2/SKILL.md", named("PDF"))),
        |it| checked(it.skill("pdf").skill("pdf2"))),
    ("name-taken",
        |it| checked(it.skill("pdf").file("skills/p2/SKILL.md", named("pdf"))),
        |it| checked(it.skill("pdf").skill("p2"))),
    ("same-content",
        |it| library(it.skill("pdf").file("skills/p2/SKILL.md", document("pdf"))),
        |it| library(it.skill("pdf").file("skills/p2/SKILL.md", described("Another.")))),
    ("reference-missing", |it| linking(it, "form.md"), |it| linking(it.file("skills/pdf/form.md", ""), "form.md")),
    ("reference-outside", |it| linking(it, "../form.md"), |it| linking(it.file("skills/pdf/form.md", ""), "sub/../form.md")),
    ("reference-chain",
        |it| linking(it.file("skills/pdf/a.md", "[on](b.md)").file("skills/pdf/b.md", ""), "a.md"),
        |it| linking(it.file("skills/pdf/a.md", "[on](b.md)").file("skills/pdf/b.md", ""), "a.md) and [more](b.md")),
    ("nested-skill",
        |it| checked(it.skill("pdf").file("skills/pdf/inner/SKILL.md", document("inner"))),
        |it| checked(it.skill("pdf").file("skills/pdf/inner/SKILLS.md", document("inner")))),
    ("resource-too-large",
        |it| checked(it.skill("pdf").file("skills/pdf/data.bin", vec![0; 100 * 1024 + 1])),
        |it| checked(it.skill("pdf").file("skills/pdf/data.bin", vec![0; 100 * 1024]))),
    ("resource-unreadable",
        |it| library(it.skill("pdf").link("skills/pdf/data", "x".repeat(300))),
        |it| library(it.skill("pdf").file("skills/pdf/x", "").link("skills/pdf/data", "x"))),
    ("resource-not-regular",
        |it| checked(it.skill("pdf").pipe("skills/pdf/data")),
        |it| checked(it.skill("pdf").folder("skills/pdf/data"))),
    ("skill-too-large", |it| weighing(it, 500 * 1024 + 1), |it| weighing(it, 500 * 1024)),
    ("skill-too-many-files", |it| holding(it, 512), |it| holding(it, 511)),
    ("reference-contents",
        |it| checked(it.file("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads.\n---\n[all](all.md)\n").file("skills/pdf/all.md", "A line.\n".repeat(301))),
        |it| checked(it.file("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads.\n---\n[all](all.md)\n").file("skills/pdf/all.md", "# Contents\n".to_owned() + &"A line.\n".repeat(301)))),
    ("resource-unmentioned",
        |it| checked(it.skill("pdf").file("skills/pdf/scripts/merge.py", "")),
        |it| checked(it.file("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads.\n---\nRun `scripts/merge.py`.\n").file("skills/pdf/scripts/merge.py", "").file("skills/pdf/LICENSE.txt", ""))),
    ("resource-unmentioned",
        |it| checked(it.file("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads.\n---\nSee FORMS.md.\n").file("skills/pdf/forms.md", "Fill in the form.").file("skills/pdf/page.html", "")),
        |it| checked(it.file("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads.\n---\nSee FORMS.md.\n").file("skills/pdf/forms.md", "Run `serve.js`.").file("skills/pdf/serve.js", "read('page.html')").file("skills/pdf/page.html", "").file("skills/pdf/agents/openai.yaml", "interface:\n  icon_small: assets/mark.svg\n").file("skills/pdf/assets/mark.svg", ""))),
    ("evals",
        |it| checked(it.skill("pdf").file("skills/pdf/evals/evals.json", r#"{"evals": [{}]}"#)),
        |it| checked(it.skill("pdf").file("skills/pdf/evals/evals.json", r#"{"evals": [{"prompt": "Read it"}]}"#))),
    ("include-unmatched", |it| including(it, "pdfs"), |it| including(it, "pdf")),
    ("kept-last-good", |it| changed(it, "---\nname: pdf\n---\n"), |it| changed(it, "---\nname: pdf\ndescription: New.\n---\n")),
    ("too-deep",
        |it| checked(it.skill("pdf").folder("skills/pdf/1/2/3/4/5/6/7")),
        |it| checked(it.skill("pdf").folder("skills/pdf/1/2/3/4/5/6"))),
];

#[test]
fn every_rule_about_a_text_sees_what_breaks_it_and_nothing_else() {
    let findings = |bytes: &[u8]| check_text(bytes, Some("pdf"), Profile::Spec);
    for (code, bad, good) in texts() {
        let (bad, good) = (findings(&bad), findings(&good));
        assert!(codes(&bad).contains(&code), "{code} was not found: {}", shown(&bad));
        assert!(!codes(&good).contains(&code), "{code} was found: {}", shown(&good));
    }
}

#[test]
fn every_rule_about_files_sees_what_breaks_it_and_nothing_else() {
    for (code, bad, good) in PLACES {
        let (bad, good) = (bad(&World::new()), good(&World::new()));
        assert!(codes(&bad).contains(code), "{code} was not found: {}", shown(&bad));
        assert!(!codes(&good).contains(code), "{code} was found: {}", shown(&good));
    }
}

#[test]
fn every_rule_has_a_test() {
    let tested: BTreeSet<&str> =
        texts().iter().map(|it| it.0).chain(PLACES.iter().map(|it| it.0)).collect();
    // Only the program can analyse what a script does.
    let own = RULES.iter().filter(|it| it.code != "script-dangerous");
    let rules: BTreeSet<&str> = own.map(|it| it.code).collect();
    assert_eq!(tested, rules);
}

#[test]
fn every_finding_says_what_is_so_and_what_to_do() {
    let texts = texts().into_iter().map(|it| check_text(&it.1, Some("pdf"), Profile::Spec));
    let places = PLACES.iter().map(|it| it.1(&World::new()));
    for it in texts.chain(places).flatten() {
        let code = it.rule.code;
        assert!(!it.message.is_empty() && !it.hint.is_empty(), "{code}");
        assert!(!it.message.ends_with('.') && !it.hint.ends_with('.'), "{code}: {}", it.message);
        let capital = |text: &str| text.starts_with(|c: char| c.is_ascii_uppercase());
        assert!(!capital(&it.message) && !capital(&it.hint), "{code}: {}", it.message);
    }
}

#[test]
fn a_finding_weighs_what_its_rule_says_unless_it_leaves_the_skill_out() {
    for (code, bad, _) in texts() {
        for profile in [Profile::Lenient, Profile::Spec, Profile::Reference] {
            let findings = check_text(&bad, Some("pdf"), profile);
            let loads = prowess::parse(&bad, Some("pdf"), profile).manifest.is_some();
            for it in findings {
                let weight = it.rule.severity(profile);
                let fatal = it.severity == Severity::Error && !loads;
                assert!(fatal || Some(it.severity) == weight, "{code}: {}", shown(&[it]));
            }
        }
    }
}

#[test]
fn limits_count_characters_and_are_exact() {
    let name = |length| named(&"a".repeat(length));
    let description = |length| described(&"\u{1F600}".repeat(length));
    let compatibility = |length| with(&format!("compatibility: {}\n", "\u{1F600}".repeat(length)));
    let rows = [
        ("name-too-long", [name(64), name(65)]),
        ("description-too-long", [description(1024), description(1025)]),
        ("compatibility", [compatibility(500), compatibility(501)]),
    ];
    for profile in [Profile::Lenient, Profile::Spec, Profile::Reference] {
        for (code, texts) in &rows {
            let found = |text: &Vec<u8>| codes(&check_text(text, None, profile)).contains(code);
            assert_eq!(texts.each_ref().map(found), [false, true], "{code} in {profile:?}");
        }
    }
}

#[test]
fn the_reference_profile_reports_everything_at_once_in_the_order_of_its_library() {
    let text = format!(
        "compatibility: {}\ndescription: {}\nname: -P--{}_\ncolour: red\nauthor: me\n",
        "c".repeat(501),
        "d".repeat(1025),
        "D".repeat(64),
    );
    let findings = check_text(&only(&text), Some("pdf"), Profile::Reference);
    assert_eq!(
        codes(&findings),
        [
            "unknown-field",
            "name-too-long",
            "name-case",
            "name-edge",
            "name-hyphens",
            "name-characters",
            "name-folder",
            "description-too-long",
            "compatibility",
        ]
    );
    assert!(findings[0].message.ends_with("author, colour"), "{}", findings[0].message);
}

#[test]
fn other_profiles_report_in_the_order_of_lines() {
    let text = "license: [MIT]\ncolour: red\nname: Pdf_\ndescription: <a>\n";
    let findings = check_text(&only(text), Some("pdf"), Profile::Spec);
    assert_eq!(
        shown(&findings),
        "E2 license-not-text, W3 unknown-field, E4 name-case, E4 name-characters, E4 name-folder, I5 description-when, W5 description-brackets"
    );
}

#[test]
fn a_name_and_its_folder_may_be_composed_differently() {
    let text = named("cafe\u{301}");
    let findings = check_text(&text, Some("caf\u{E9}"), Profile::Reference);
    assert_eq!(shown(&findings), "");
}

#[test]
fn text_in_any_script_is_nothing_to_report() {
    let text = framed(
        "name: pdf\ndescription: \u{5E7}\u{5D5}\u{5E8}\u{5D0} \u{0627}\u{0642}\u{0631}\u{0623} \u{8AAD}\u{3080} okur\u{131} when asked\n",
        "\u{8AAD}\u{3080}\u{3002} \u{131}\u{15F}\u{131}k \u{1F469}\u{200D}\u{1F4BB}\n",
    );
    assert_eq!(shown(&check_text(&text, Some("pdf"), Profile::Spec)), "");
}
