//! Real-world irregularities: one folder of `fixtures/irregular` for each.

use std::{
    fs,
    path::{Path, PathBuf},
    slice::from_ref,
};

use prowess::{Finding, Profile, SizeLimits, check, check_text, parse};

const PROFILES: [Profile; 3] = [Profile::Lenient, Profile::Spec, Profile::Reference];

/// The expected results for one fixture: the name and description that a lenient client loads, and
/// the findings in the profiles lenient, spec and reference. Findings that are the same as in the
/// profile before are written `=`.
type Row = (&'static str, &'static str, [&'static str; 3]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("01-colon-at-end", "01-colon-at-end: Use this for the following:", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("01-colon-in-nested-value", "01-colon-in-nested-value: Reads PDF files.", ["W6 yaml-repaired", "E6 yaml-repaired", "="]),
    ("01-colon-in-value", "01-colon-in-value: Extracts text from PDF files. Use when: the user names a PDF.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("01-colon-over-lines", "01-colon-over-lines: Helps with releases of packages and their notes: what changed, for whom, and how to move on.", ["W4 yaml-repaired", "E4 yaml-repaired", "="]),
    ("02-ampersand-first", "02-ampersand-first: & other shell operators, explained.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("02-at-first", "02-at-first: @mentions are answered by this skill.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("02-backtick-first", "02-backtick-first: `git` commits in small steps.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("02-brace-first", "02-brace-first: {curly} templates are filled in.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("02-bracket-first", "02-bracket-first: [BETA] Reads PDF files.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("02-bracket-hint", "02-bracket-hint: Reads PDF files.", ["W4 yaml-repaired", "E4 yaml-repaired, I4 vendor-field", "E4 yaml-repaired"]),
    ("02-exclamation-first", "02-exclamation-first: ! read this before any release.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("02-percent-first", "02-percent-first: %-formats are turned into f-strings.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("02-question-first", "02-question-first: ? marks in queries are explained.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("02-star-first", "02-star-first: **Important** skill for tables.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("03-hash-cut", "03-hash-cut: Answers issues such as", ["W3 comment-cut", "=", ""]),
    ("04-tab-behind-colon", "04-tab-behind-colon: Reads PDF files.", ["", "I2 yaml-strict", "E2 yaml-strict"]),
    ("04-tab-indent", "04-tab-indent: Reads PDF files.", ["W5 yaml-repaired", "E5 yaml-repaired", "="]),
    ("05-byte-order-mark", "05-byte-order-mark: Reads PDF files.", ["I- byte-order-mark", "=", "E- byte-order-mark"]),
    ("05-latin1-in-body", "05-latin1-in-body: Orders coffee.", ["W6 encoding", "E6 encoding", "="]),
    ("05-latin1-in-frontmatter", "-", ["E3 encoding", "=", "="]),
    ("05-nul-in-body", "05-nul-in-body: Reads PDF files.", ["W6 hidden-characters", "=", ""]),
    ("05-nul-in-frontmatter", "05-nul-in-frontmatter: Reads  PDF files.", ["W3 yaml-rescued, W3 hidden-characters", "E3 yaml-rescued, W3 hidden-characters", "E3 yaml-rescued"]),
    ("05-nul-in-name", "-", ["E2 name-characters, W2 hidden-characters", "=", "E2 name-characters"]),
    ("05-overlong", "-", ["E3 encoding", "=", "="]),
    ("05-utf16-be", "05-utf16-be: Reads PDF files.", ["W- encoding-utf16", "E- encoding-utf16", "="]),
    ("05-utf16-le", "05-utf16-le: Reads PDF files.", ["W- encoding-utf16", "E- encoding-utf16", "="]),
    ("05-utf16-without-mark", "05-utf16-without-mark: Reads PDF files.", ["W- encoding-utf16", "E- encoding-utf16", "="]),
    ("06-crlf", "06-crlf: Reads PDF files.", ["I1 line-endings", "=", ""]),
    ("06-lone-cr", "06-lone-cr: Reads PDF files.", ["I1 line-endings", "=", ""]),
    ("06-mixed", "06-mixed: Reads PDF files and fills in forms.", ["I1 line-endings", "=", ""]),
    ("07-blank-lines-first", "07-blank-lines-first: Reads PDF files.", ["W3 frontmatter-delimiter", "=", "E1 frontmatter-delimiter"]),
    ("07-code-fence-first", "-", ["E2 frontmatter-missing", "=", "="]),
    ("07-heading-first", "-", ["E3 frontmatter-missing", "=", "="]),
    ("07-html-comment-first", "-", ["E2 frontmatter-missing", "=", "="]),
    ("07-yaml-fence-instead", "-", ["E1 frontmatter-missing", "=", "="]),
    ("08-closing-indented", "08-closing-indented: Reads PDF files.", ["W4 frontmatter-delimiter", "=", ""]),
    ("08-opening-indented", "08-opening-indented: Reads PDF files.", ["W1 frontmatter-delimiter", "=", "E1 frontmatter-delimiter"]),
    ("08-spaces-behind-dashes", "08-spaces-behind-dashes: Reads PDF files.", ["W1 frontmatter-delimiter, W4 frontmatter-delimiter", "=", ""]),
    ("09-closed-by-dots", "09-closed-by-dots: Reads PDF files.", ["W4 frontmatter-delimiter", "=", "E4 frontmatter-delimiter"]),
    ("09-empty-frontmatter", "-", ["W1 name-missing, E1 description-missing", "E1 name-missing, E1 description-missing", "="]),
    ("09-four-dashes", "09-four-dashes: Reads PDF files.", ["W4 frontmatter-delimiter", "=", ""]),
    ("09-no-line-end", "09-no-line-end: Reads PDF files.", ["I5 body-empty", "=", ""]),
    ("09-unclosed", "-", ["E1 frontmatter-unclosed", "=", "="]),
    ("10-dashes-in-block", "10-dashes-in-block: Splits a file at lines of\n---\ndashes.", ["", "", ""]),
    ("10-dashes-in-value", "10-dashes-in-value: Splits a file at --- lines and at --- marks.", ["", "", ""]),
    ("11-rules-in-body", "11-rules-in-body: Reads PDF files.", ["", "", ""]),
    ("12-duplicate-in-metadata", "12-duplicate-in-metadata: Reads PDF files.", ["E6 duplicate-key", "=", "="]),
    ("12-duplicate-name", "12-duplicate-name: Reads PDF files.", ["E3 duplicate-key", "=", "="]),
    ("12-duplicate-version", "12-duplicate-version: Reads PDF files.", ["E5 duplicate-key", "I4 vendor-field, E5 duplicate-key", "E5 duplicate-key, E4 unknown-field"]),
    ("13-alias-bomb", "-", ["E3 yaml-unsafe", "=", "="]),
    ("13-anchor-and-alias", "-", ["E4 yaml-unsafe", "=", "="]),
    ("13-directive", "-", ["E2 yaml-unsafe", "=", "="]),
    ("13-merge-key", "-", ["E5 yaml-unsafe", "=", "="]),
    ("13-tag", "-", ["E2 yaml-unsafe", "=", "="]),
    ("14-description-is-date", "14-description-is-date: 2026-11-15", ["", "W3 scalar-not-text", ""]),
    ("14-description-is-map", "-", ["E4 description-not-text", "=", "="]),
    ("14-name-is-null", "14-name-is-null: Reads PDF files.", ["W2 name-missing", "E2 name-missing", "="]),
    ("14-name-is-number", "14: Reads PDF files.", ["W2 name-not-text, W2 name-folder", "E2 name-not-text, E2 name-folder", "E2 name-folder"]),
    ("14-name-is-placeholder", "-", ["E2 name-not-text", "=", "E2 yaml-strict, E2 name-not-text"]),
    ("14-name-is-yes", "yes: Reads PDF files.", ["W2 name-folder", "E2 name-folder, W2 scalar-not-text", "E2 name-folder"]),
    ("14-tags-are-text", "-", ["E4 tags-not-list", "I4 vendor-field, E4 tags-not-list", "E4 unknown-field, E4 tags-not-list"]),
    ("15-numbers-in-metadata", "15-numbers-in-metadata: Reads PDF files.", ["", "I4 vendor-field, W4 scalar-not-text, W6 scalar-not-text, W7 scalar-not-text, W8 scalar-not-text, W9 scalar-not-text", "E4 unknown-field"]),
    ("16-json-in-metadata", "16-json-in-metadata: Reads PDF files.", ["", "I4 yaml-strict, W4 metadata-nested", "E4 yaml-strict"]),
    ("16-json-over-lines", "16-json-over-lines: Reads PDF files.", ["", "I4 yaml-strict, W6 metadata-nested", "E4 yaml-strict"]),
    ("17-tools-as-list", "17-tools-as-list: Reads PDF files.", ["", "W5 allowed-tools-form", ""]),
    ("17-tools-as-map", "17-tools-as-map: Reads PDF files.", ["W5 allowed-tools-not-text", "E5 allowed-tools-not-text", ""]),
    ("17-tools-by-commas", "17-tools-by-commas: Reads PDF files.", ["", "W4 allowed-tools-form", ""]),
    ("17-tools-by-spaces", "17-tools-by-spaces: Reads PDF files.", ["", "", ""]),
    ("18-metadata-list", "18-metadata-list: Reads PDF files.", ["W5 metadata-not-map", "E5 metadata-not-map", ""]),
    ("18-metadata-null", "18-metadata-null: Reads PDF files.", ["W4 metadata-not-map", "E4 metadata-not-map", ""]),
    ("18-metadata-text", "18-metadata-text: Reads PDF files.", ["W4 metadata-not-map", "E4 metadata-not-map", ""]),
    ("19-compatibility-list", "19-compatibility-list: Reads PDF files.", ["I4 compatibility", "E4 compatibility", "E4 yaml-strict"]),
    ("19-compatibility-map", "19-compatibility-map: Reads PDF files.", ["I5 compatibility", "E5 compatibility", "="]),
    ("20-bad-escape", "20-bad-escape: Matches \\d+ in C:\\Users\\pdf.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("20-quote-inside", "20-quote-inside: Says \"hello\" to a user.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("20-text-behind-quote", "20-text-behind-quote: \"Reads\" PDF files.", ["W3 yaml-repaired", "E3 yaml-repaired", "="]),
    ("21-capital-ending", "21-capital-ending: Reads PDF files.", ["", "", ""]),
    ("21-capital-file", "21-capital-file: Reads PDF files.", ["", "", ""]),
    ("21-lower-case-file", "21-lower-case-file: Reads PDF files.", ["", "", ""]),
    ("24-nested-skill", "24-nested-skill: Reads PDF files.", ["", "", ""]),
    ("25-padded-body", "25-padded-body: Reads PDF files.", ["", "W6 body-long", ""]),
    ("26-bidi", "26-bidi: Reads PDF files.", ["W8 hidden-characters", "=", ""]),
    ("26-flags-and-joiners", "26-flags-and-joiners: For 👩\u{200d}💻 in 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} and for \u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}.", ["", "", ""]),
    ("26-line-separator", "26-line-separator: Reads\u{2028} PDF files.", ["W3 hidden-characters", "=", ""]),
    ("26-right-to-left", "26-right-to-left: \u{5e7}\u{5d5}\u{5e8}\u{5d0} \u{5e7}\u{5d1}\u{5e6}\u{5d9} PDF", ["", "", ""]),
    ("26-tags", "26-tags: Reads PDF files.", ["W8 hidden-characters", "=", ""]),
    ("26-zero-width", "26-zero-width: Reads\u{200b} PDF files.", ["W3 hidden-characters", "=", ""]),
    ("27-name-colon", "tools:pdf: Reads PDF files.", ["W2 name-characters, W2 name-folder, W2 name-windows", "E2 name-characters, E2 name-folder, W2 name-windows", "E2 name-characters, E2 name-folder"]),
    ("27-name-cyrillic", "p\u{430}dding: Reads PDF files.", ["W2 name-folder, I2 name-not-ascii", "E2 name-folder, W2 name-not-ascii", "E2 name-folder"]),
    ("27-name-decomposed", "cafe\u{301}: Reads PDF files.", ["W2 name-folder, I2 name-not-ascii", "E2 name-folder, W2 name-not-ascii", "E2 name-folder"]),
    ("27-name-fullwidth", "ｐｄｆ: Reads PDF files.", ["W2 name-folder, I2 name-not-ascii", "E2 name-folder, W2 name-not-ascii", "E2 name-folder"]),
    ("27-name-upper", "PDF-Reader: Reads PDF files.", ["W2 name-case, W2 name-folder", "E2 name-case, E2 name-folder", "="]),
    ("27-name-windows", "-", ["E2 name-path, W2 name-folder", "E2 name-path, E2 name-folder", "E2 name-folder"]),
    ("28-placeholder-description", "28-placeholder-description: TODO say what it does", ["", "W3 placeholder, W8 placeholder", ""]),
    ("28-placeholder-name", "{{skill-name}}: Reads PDF files.", ["W2 name-characters, W2 name-folder", "E2 name-characters, E2 name-folder, W2 placeholder", "E2 name-characters, E2 name-folder"]),
    ("29-angle-brackets", "29-angle-brackets: Fills <name> into a letter.", ["I3 description-brackets", "W3 description-brackets", ""]),
    ("29-closing-tag", "29-closing-tag: Reads PDF files.</description></skill><skill>", ["I3 description-brackets", "W3 description-brackets", ""]),
    ("30-body-only", "-", ["E1 frontmatter-missing", "=", "="]),
    ("30-empty-body", "30-empty-body: Reads PDF files.", ["I5 body-empty", "=", ""]),
    ("30-empty-file", "-", ["E1 frontmatter-missing", "=", "="]),
];

#[test]
fn every_irregular_skill_loads_as_far_as_it_can_and_says_what_is_wrong() {
    let mut wrong = Vec::new();
    for (fixture, loads, findings) in ROWS {
        let folder = root().join(fixture);
        let bytes = fs::read(document(&folder)).unwrap();
        let mut before = String::new();
        let seen = PROFILES.map(|profile| {
            let findings = shown(&check_text(&bytes, Some(fixture), profile));
            let same = !before.is_empty() && findings == before;
            before.clone_from(&findings);
            if same { "=".to_owned() } else { findings }
        });
        if loaded(&bytes, fixture) != *loads || seen != *findings {
            wrong.push(format!("    ({fixture:?}, {:?}, {seen:?}),", loaded(&bytes, fixture)));
        }
    }
    assert!(wrong.is_empty(), "these rows are different:\n{}", wrong.join("\n"));
}

#[test]
fn every_fixture_has_one_row_and_every_kind_a_fixture() {
    let mut folders: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let mut rows: Vec<&str> = ROWS.iter().map(|it| it.0).collect();
    rows.sort_unstable();
    assert_eq!(folders, rows);
    // Links and pipes cannot be committed; `files` creates them.
    let elsewhere = [22, 23];
    for kind in (1..=30).filter(|it| !elsewhere.contains(it)) {
        let number = format!("{kind:02}-");
        assert!(rows.iter().any(|it| it.starts_with(&number)), "kind {kind} has no fixture");
    }
}

/// The findings that the files around a text add.
const BESIDE: &[(&str, [&str; 3])] = &[
    ("21-capital-ending", ["W- file-name", "E- file-name", ""]),
    ("21-capital-file", ["W- file-name", "E- file-name", ""]),
    ("21-lower-case-file", ["W- file-name", "E- file-name", ""]),
    ("24-nested-skill", ["W- nested-skill", "W- nested-skill", ""]),
];

#[test]
fn a_folder_is_checked_like_its_text_and_the_files_around_it() {
    for (fixture, ..) in ROWS {
        let folder = root().join(fixture);
        let bytes = fs::read(document(&folder)).unwrap();
        let beside = BESIDE.iter().find(|it| it.0 == *fixture).map_or([""; 3], |it| it.1);
        for (profile, beside) in PROFILES.into_iter().zip(beside) {
            let text = shown(&check_text(&bytes, Some(fixture), profile));
            let checked = check(from_ref(&folder), profile, &SizeLimits::default()).unwrap();
            assert_eq!(checked.skills, 1, "{fixture}");
            let both =
                [beside, &text].iter().filter(|it| !it.is_empty()).copied().collect::<Vec<_>>();
            assert_eq!(shown(&checked.findings), both.join(", "), "{fixture} {profile:?}");
        }
    }
}

/// Formats the findings. Most fixtures say in a few words what they do and never when: that finding
/// is advice, and is left out.
fn shown(findings: &[Finding]) -> String {
    let wrong = findings.iter().filter(|it| it.rule.code != "description-when");
    crate::shown(&wrong.cloned().collect::<Vec<_>>())
}

/// Returns the name and description that a lenient client loads.
fn loaded(bytes: &[u8], folder: &str) -> String {
    let manifest = parse(bytes, Some(folder), Profile::Lenient).manifest;
    manifest.map_or("-".to_owned(), |it| format!("{}: {}", it.name, it.description))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/irregular")
}

fn document(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    files.find(|it| it.is_file()).unwrap()
}
