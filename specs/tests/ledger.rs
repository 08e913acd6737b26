//! Checks that chapters, tests and requirement ids match.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The number of requirements of each source, numbered from 1.
const SOURCES: [(&str, usize); 5] = [("M", 37), ("A", 27), ("S", 47), ("P", 15), ("Q", 28)];
/// The one requirement with a word for a number; it is not counted among the ids.
const WORD: &str = "M-dep";
const TOTAL: usize = 154;

#[test]
fn every_scenario_has_a_test_and_every_id_is_proven_or_pending() {
    let scenarios = scenarios();
    let tests = tests();
    let paths: BTreeSet<String> = scenarios.iter().map(|it| it.path.clone()).collect();
    assert_eq!(paths.len(), scenarios.len(), "two scenarios have the same path");
    let without_test: Vec<&String> = paths.difference(&tests).collect();
    assert!(without_test.is_empty(), "scenarios without a test: {without_test:#?}");
    let without_scenario: Vec<&String> = tests.difference(&paths).collect();
    assert!(without_scenario.is_empty(), "tests without a scenario: {without_scenario:#?}");

    let known = known();
    assert_eq!(known.len(), TOTAL + 1);
    let proven: BTreeSet<String> = scenarios.into_iter().flat_map(|it| it.ids).collect();
    let pending = pending();
    let unknown: Vec<&String> = proven.union(&pending).filter(|it| !known.contains(*it)).collect();
    assert!(unknown.is_empty(), "there are no such requirements: {unknown:?}");
    let both: Vec<&String> = proven.intersection(&pending).collect();
    assert!(both.is_empty(), "proven, but still in pending.txt: {both:?}");
    let neither: Vec<&String> =
        known.iter().filter(|it| !proven.contains(*it) && !pending.contains(*it)).collect();
    assert!(neither.is_empty(), "neither proven nor in pending.txt: {neither:?}");
    let counted = proven.iter().filter(|it| *it != WORD).count();
    println!("{counted} of {TOTAL} requirement ids are proven");
}

/// A scenario of a chapter: the path of its test, and the requirements it covers.
struct Scenario {
    path: String,
    ids: Vec<String>,
}

fn scenarios() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "md") {
            let chapter = path.file_stem().unwrap().to_str().unwrap();
            read_chapter(chapter, &fs::read_to_string(&path).unwrap(), &mut scenarios);
        }
    }
    scenarios
}

fn read_chapter(chapter: &str, text: &str, scenarios: &mut Vec<Scenario>) {
    let mut requirement = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("### Requirement: ") {
            requirement = Some(slug(title));
        } else if let Some(title) = line.strip_prefix("#### Scenario: ") {
            let requirement = requirement.as_ref().unwrap_or_else(|| {
                panic!("{chapter}.md: `{title}` stands under no requirement");
            });
            assert!(
                lines.next() == Some("") && lines.peek().is_some_and(|it| !it.is_empty()),
                "{chapter}.md: `{title}` says nothing"
            );
            let ids = title.split(' ').take_while(|it| is_id(it)).map(str::to_owned).collect();
            let path = format!("{chapter}::{requirement}::{}", slug(title));
            scenarios.push(Scenario { path, ids });
        } else {
            assert!(!line.starts_with("###"), "{chapter}.md: what is `{line}`?");
        }
    }
}

/// Converts a title to lower case, with `_` for every run of anything but letters and digits.
fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    words.collect::<Vec<_>>().join("_")
}

fn is_id(word: &str) -> bool {
    let Some((letter, rest)) = word.split_once('-') else { return false };
    let numbered = rest.len() == 2 && rest.bytes().all(|it| it.is_ascii_digit());
    SOURCES.iter().any(|it| it.0 == letter) && (numbered || word == WORD)
}

/// Returns the tests of all chapters, each in a file with the name of its chapter: beside this one,
/// or among the tests of the crate that it is about. A chapter may have tests in several crates.
fn tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for path in sources() {
        let chapter = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !folder().join(&chapter).with_extension("md").exists() {
            continue;
        }
        let found = tests_in(&fs::read_to_string(&path).unwrap());
        assert!(!found.is_empty(), "{} has no tests", path.display());
        assert!(is_compiled(&path, &chapter), "no `main.rs` has `mod {chapter};`");
        for test in found {
            let test = format!("{chapter}::{test}");
            assert!(tests.insert(test.clone()), "two tests are `{test}`");
        }
    }
    tests
}

/// Returns the files of tests: `specs/tests/*.rs`, `crates/*/tests/*.rs` and
/// `crates/*/tests/specs/*.rs`.
fn sources() -> Vec<PathBuf> {
    let mut folders = vec![folder().join("tests")];
    for entry in fs::read_dir(folder().join("../crates")).unwrap() {
        let tests = entry.unwrap().path().join("tests");
        folders.extend([tests.join("specs"), tests]);
    }
    let entries = folders.iter().filter_map(|it| fs::read_dir(it).ok()).flatten();
    let paths = entries.map(|it| it.unwrap().path());
    paths.filter(|it| it.extension().is_some_and(|it| it == "rs")).collect()
}

/// Returns whether a file is a test binary, or a module of the one beside it.
fn is_compiled(path: &Path, chapter: &str) -> bool {
    match fs::read_to_string(path.with_file_name("main.rs")) {
        Ok(main) => main.lines().any(|it| it == format!("mod {chapter};")),
        Err(_) => true,
    }
}

/// Returns the tests of a file formatted by `rustfmt`: modules at the margin, tests one level
/// deeper.
fn tests_in(text: &str) -> Vec<String> {
    let mut tests = Vec::new();
    let (mut module, mut is_test) = (None, false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("mod ").and_then(|it| it.strip_suffix(" {")) {
            module = Some(name);
        } else if line.starts_with("    #[test]") || line.starts_with("    #[tokio::test") {
            is_test = true;
        } else if let (true, Some(signature)) = (is_test, line.split("fn ").nth(1)) {
            let name = signature.split('(').next().unwrap_or_default();
            let module = module.unwrap_or_else(|| panic!("`{name}` is in no module"));
            tests.push(format!("{module}::{name}"));
            is_test = false;
        }
    }
    tests
}

#[test]
fn tests_are_found_in_a_source() {
    let text = "mod first {\n    #[test]\n    fn one() {\n    }\n\n    fn helper() {}\n}\n\nmod second {\n    #[tokio::test]\n    async fn two() {}\n}\n";
    assert_eq!(tests_in(text), ["first::one", "second::two"]);
}

fn known() -> BTreeSet<String> {
    let numbered = SOURCES
        .iter()
        .flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}-{number:02}")));
    numbered.chain([WORD.to_owned()]).collect()
}

/// Returns the ids of `pending.txt`: each once, followed by a few words.
fn pending() -> BTreeSet<String> {
    let text = fs::read_to_string(folder().join("pending.txt")).unwrap();
    let mut pending = BTreeSet::new();
    for line in text.lines().filter(|it| !it.trim().is_empty() && !it.starts_with('#')) {
        let (id, words) = line.split_once(' ').unwrap_or((line, ""));
        assert!(!words.trim().is_empty(), "pending.txt: `{id}` has no words behind it");
        assert!(pending.insert(id.to_owned()), "pending.txt: `{id}` stands twice");
    }
    pending
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs"))
}
