//! Checks the vocabulary: one name for one exported type, nouns for types, and a short glossary.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::{code_of, crates as all_crates, root};

/// Names that say nothing about a type.
const EMPTY: &[&str] = &["What", "Part", "Kept", "Told", "Way", "Entry"];
/// Participles that do not end in `ed`.
const PARTICIPLES: &[&str] = &[
    "Begun", "Built", "Came", "Chosen", "Done", "Drawn", "Found", "Given", "Gone", "Heard", "Held",
    "Known", "Left", "Lost", "Made", "Meant", "Said", "Seen", "Sent", "Shown", "Spent", "Stood",
    "Taken", "Told", "Written",
];
/// The most rows of the glossary.
const ROWS: usize = 60;

#[test]
fn no_two_crates_export_a_type_of_one_name() {
    let mut exported: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for crate_name in crates() {
        let files = code_of(&crate_name);
        let root = files.iter().find(|it| it.0.as_os_str() == "lib.rs");
        let Some((_, root)) = root else { continue };
        let modules = root.lines().filter_map(|it| it.strip_prefix("pub mod "));
        let modules = modules.filter_map(|it| it.strip_suffix(';')).map(|it| format!("{it}.rs"));
        let public: Vec<String> = modules.chain(["lib.rs".to_owned()]).collect();
        for (_, code) in
            files.iter().filter(|it| public.iter().any(|of| it.0.as_os_str() == of.as_str()))
        {
            for name in exports(code) {
                exported.entry(name).or_default().insert(crate_name.clone());
            }
        }
    }
    assert!(exported.len() > 200, "{exported:?}");
    exported.retain(|_, crates| crates.len() > 1);
    assert_eq!(exported, BTreeMap::new());
}

#[test]
fn a_type_is_named_by_a_noun() {
    let mut found = BTreeSet::new();
    let mut count = 0;
    for crate_name in crates() {
        for (path, code) in code_of(&crate_name) {
            for name in types(&code) {
                count += 1;
                if EMPTY.contains(&name) || is_participle(name) {
                    found.insert(format!("{crate_name}/{}: {name}", path.display()));
                }
            }
        }
    }
    assert!(count > 900, "{count}");
    assert_eq!(found, BTreeSet::new());
}

#[test]
fn the_glossary_is_short_and_has_no_word_twice() {
    let text = std::fs::read_to_string(root().join("GLOSSARY.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|it| it.starts_with("| **")).collect();
    assert!((10..=ROWS).contains(&rows.len()), "{}", rows.len());
    let words = rows.iter().filter_map(|it| it.split('|').nth(1));
    let words: Vec<&str> = words.flat_map(|it| it.split(',')).map(str::trim).collect();
    let known: BTreeSet<&str> = words.iter().copied().collect();
    assert_eq!(words.len(), known.len(), "{words:?}");
}

#[test]
fn names_are_told_apart() {
    let code = "pub use crate::{\n    a::{First, make},\n    b::Second,\n};\npub use other::Third;\npub struct Fourth;\nstruct Fifth;";
    assert_eq!(exports(code), ["First", "Second", "Fourth"].map(str::to_owned).into());
    assert_eq!(
        types("pub(crate) enum One {}\nstruct Two<T>(T);\n    type Three = u8;"),
        ["One", "Two"]
    );
    let names = ["Listed", "Made", "Feed", "LockedPackage", "Seed", "Embed"];
    assert_eq!(names.map(is_participle), [true, true, false, false, false, false]);
}

/// Returns the crates that others use; the helpers of tests have their own words.
fn crates() -> Vec<String> {
    all_crates().into_iter().filter(|it| it != "prowess-testing").collect()
}

/// Returns the types that a crate or one of its public modules exports of its own.
fn exports(code: &str) -> BTreeSet<String> {
    let uses =
        ["pub use crate::", "pub use self::"].into_iter().flat_map(|it| code.split(it).skip(1));
    let uses = uses.filter_map(|it| it.split(';').next());
    let names = uses.flat_map(|it| it.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let names =
        names.filter(|it| it.starts_with(char::is_uppercase) && it.contains(char::is_lowercase));
    let own = code.lines().filter(|it| it.starts_with("pub ")).flat_map(types);
    names.chain(own).map(str::to_owned).collect()
}

/// Returns the types that are defined at the top of modules.
fn types(code: &str) -> Vec<&str> {
    let defined = code.lines().filter(|it| !it.starts_with(' ')).filter_map(|line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.find(|it| ["struct", "enum", "trait", "type"].contains(it))?;
        words.next()
    });
    defined.filter(|it| it.starts_with(char::is_uppercase)).collect()
}

/// Returns whether a name is a single participle.
fn is_participle(name: &str) -> bool {
    let is_one = name.matches(char::is_uppercase).count() == 1;
    let regular = name.ends_with("ed") && !name.ends_with("eed") && name != "Embed";
    is_one && (regular || PARTICIPLES.contains(&name))
}
