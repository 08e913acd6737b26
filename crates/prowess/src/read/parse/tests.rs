//! Tests that the readers agree: the YAML library accepts all that the small reader accepts, with
//! the same result.
#![cfg(feature = "yaml")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use proptest::{collection::vec, prelude::*};
use prowess_frontmatter::{Field, Value, read, split};

use super::{SplitDocument, decode, yaml};
use crate::{
    finding::{Report, Severity, rule::Profile},
    spec::SKILL_FILE,
};

/// Formats everything but positions, one line for each field; of a scalar's style, only what it
/// implies.
fn shown(fields: &[Field<'_>]) -> String {
    fields.iter().map(|it| format!("{:?}: {}\n", it.key, shown_value(&it.value))).collect()
}

fn shown_value(value: &Value<'_>) -> String {
    match value {
        Value::Empty => "nothing".to_owned(),
        Value::Scalar(it) => format!("{:?} {:?}", it.kind(), it.text),
        Value::List(items) => {
            format!("[{}]", items.iter().map(shown_value).collect::<Vec<_>>().join(", "))
        }
        Value::Map(fields) => format!("{{{}}}", shown(fields).replace('\n', "; ")),
    }
}

/// Returns the first difference between the two readers, if any.
fn disagreement(text: &str) -> Option<String> {
    let small = shown(&read(text).ok()?);
    match yaml::read(text) {
        Ok(fields) if shown(&fields) == small => None,
        Ok(fields) => Some(format!("{text:?}\nsmall:\n{small}\nlibrary:\n{}", shown(&fields))),
        Err(fault) => Some(format!("{text:?}\nsmall:\n{small}\nlibrary: {fault:?}")),
    }
}

/// The number of texts that each reader accepted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    small: usize,
    library: usize,
    repair: usize,
    left_out: usize,
}

impl Tally {
    fn of(files: &[PathBuf]) -> Self {
        let mut tally = Self::default();
        for path in files {
            let bytes = fs::read(path).unwrap();
            let decoded = decode(&bytes);
            let mut report = Report::new(Profile::Lenient, Severity::Info);
            let reading = SplitDocument::new(&decoded, &mut report);
            let (Some(block), Some(_)) = (reading.document.frontmatter, &reading.fields) else {
                tally.left_out += 1;
                continue;
            };
            if read(block.text).is_ok() {
                tally.small += 1;
            } else if yaml::read(block.text).is_ok() {
                tally.library += 1;
            } else {
                tally.repair += 1;
                let manifest = reading.manifest(None, &mut report);
                let full = |it: &str| !it.trim().is_empty();
                assert!(
                    manifest.is_some_and(|it| full(&it.name) && full(&it.description)),
                    "{} was repaired to no skill: {:?}",
                    path.display(),
                    report.findings
                );
            }
        }
        tally
    }

    fn all(&self) -> usize {
        self.small + self.library + self.repair + self.left_out
    }
}

/// Returns every file below a folder that is named like a skill's.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let hidden = path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"."));
        if hidden {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            found.extend(documents(&path));
        } else if path.file_name().is_some_and(|it| it.eq_ignore_ascii_case(SKILL_FILE))
            && path.is_file()
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn disagreements(files: &[PathBuf]) -> Vec<String> {
    files
        .iter()
        .filter_map(|path: &PathBuf| {
            let bytes = fs::read(path).unwrap();
            let decoded = decode(&bytes);
            let block = split(&decoded.text).frontmatter?;
            disagreement(block.text).map(|it| format!("{}: {it}", path.display()))
        })
        .collect()
}

/// Unpacks a sample of real skills; `None` if it or the unpacking tool is not available.
fn sample() -> Option<tempfile::TempDir> {
    let archive = workspace().join("../shared/corpus/skills_sample.tar.zst");
    if !archive.is_file() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let unpacked =
        Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(folder.path()).status();
    unpacked.is_ok_and(|it| it.success()).then_some(folder)
}

#[test]
fn the_readers_agree_on_real_skills() {
    let Some(sample) = sample() else {
        eprintln!("skipped: there is no sample of real skills, or no `tar` with `zstd` for it");
        return;
    };
    let files = documents(sample.path());
    assert_eq!(disagreements(&files), Vec::<String>::new());
    let tally = Tally::of(&files);
    eprintln!("{} real skills: {tally:?}", tally.all());
    assert!(tally.small * 10 >= tally.all() * 9, "{tally:?}");
}

#[test]
fn the_readers_agree_on_irregular_skills() {
    let files = documents(&workspace().join("fixtures/irregular"));
    assert!(files.len() >= 100);
    assert_eq!(disagreements(&files), Vec::<String>::new());
}

#[test]
fn the_readers_agree_on_bundled_skills() {
    let files = documents(&workspace().join("crates/prowess/skills"));
    assert_eq!(disagreements(&files), Vec::<String>::new());
    let tally = Tally::of(&files);
    assert_eq!(tally, Tally { small: tally.all(), ..Tally::default() });
}

/// Pieces that cause trouble in YAML.
const PIECES: &[&str] = &[
    ": ", ":", "- ", "-", "#", " #", "'", "\"", "''", "\\\"", "[", "]", "{", "}", ", ", ",", "|",
    ">", "|-", ">+", "|2", "?", "? ", "&a ", "*a", "!", "!!str ", "%", "@", "`", "<<", "~", "null",
    "1.10", "\t", "  ", "---", "...", "\u{E9}", "\u{85}", "\\n", "\\x41", "\\", "\n", "\r\n",
];

/// Lines that look like YAML.
fn lines() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-c]{1,2}",
        2 => prop::sample::select(PIECES).prop_map(str::to_owned),
    ];
    let text = vec(piece, 0..5).prop_map(|it| it.concat());
    let indent = prop::sample::select(&["", "", "", "  ", "  ", "    ", " ", "\t", "   "]);
    let head = prop::sample::select(&["a: ", "b: ", "name: ", "a:", "- ", "- a: ", "", "'q': "]);
    let end = prop::sample::select(&["\n", "\n", "\n", "\r\n", "\r", "\n\n", " \n", " # c\n"]);
    let line = (indent, head, text, end).prop_map(|(a, b, c, d)| format!("{a}{b}{c}{d}"));
    vec(line, 0..7).prop_map(|it| it.concat())
}

/// Fields as people write them, with a few pieces put in where they may not belong.
fn fields() -> impl Strategy<Value = String> {
    let value = prop::sample::select(&[
        " a b",
        " a: b",
        " a\n  b\n\n  c",
        " 'a ''b'",
        " 'a\n  b'",
        " \"a \\\"b\\\" \\u00e9\"",
        " \"a\n  b \\\n  c\"",
        " [a, 'b', \"c\"]",
        " [\n  a, b,\n  c\n  ]",
        " {a: b, \"c\":d, e: [f]}",
        " |\n  a\n   b\n\n  c\n",
        " >\n  a\n  b\n\n  c\n   d\n  e",
        " >-\n\n  a # b\n  c: d\n\n",
        " |+\n  a\n\n",
        " |2-\n   a\n  b",
        "\n  a: b\n  c:\n    d: e\n  f: [g]",
        "\n  - a\n  - b: c\n    d: e\n  -\n    f",
        "\n- a\n- 'b'\n-",
        "\n  a b\n  c",
        "\n  'a'",
        "\n  # c\n  a",
        " # c",
        " a # c",
        "",
    ]);
    let field =
        ("[a-c]|'a b'|\"c\"|a b", value).prop_map(|(key, value)| format!("{key}:{value}\n"));
    let odd = (any::<prop::sample::Index>(), prop::sample::select(PIECES));
    (vec(field, 0..4), vec(odd, 0..3)).prop_map(|(fields, odd)| {
        let mut text = fields.concat();
        for (at, piece) in odd {
            let ends: Vec<usize> = text.char_indices().map(|it| it.0).chain([text.len()]).collect();
            text.insert_str(ends[at.index(ends.len())], piece);
        }
        text
    })
}

fn yamlish() -> impl Strategy<Value = String> {
    // A delimiter is on a line of its own, so a frontmatter ends with a line end.
    prop_oneof![1 => lines(), 3 => fields()].prop_map(|it| it + "\n")
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(512),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_readers_agree_on_anything(text in yamlish()) {
        if let Some(it) = disagreement(&text) {
            return Err(TestCaseError::fail(it));
        }
    }

    #[test]
    fn anything_can_be_repaired_or_refused(text in yamlish()) {
        let text = format!("---\nname: a\ndescription: b\n{text}---\nbody\n");
        let parsed = super::parse(text.as_bytes(), None, Profile::Lenient);
        prop_assert!(parsed.manifest.is_some() || !parsed.findings.is_empty());
    }
}
