//! Checks the dependencies between crates and between modules, and what the library may not do.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The crates of this workspace that each of them may use. A new crate is one line here.
const ARROWS: &[(&str, &[&str])] = &[
    ("prowess-frontmatter", &[]),
    ("prowess-sandbox", &[]),
    ("prowess-template", &[]),
    ("prowess-shell", &[]),
    ("prowess-http", &[]),
    ("prowess-sql", &[]),
    ("prowess", &["prowess-frontmatter"]),
    (
        "prowess-runtime",
        &[
            "prowess-sandbox",
            "prowess-template",
            "prowess-shell",
            "prowess-http",
            "prowess-sql",
            "prowess",
        ],
    ),
    ("prowess-packages", &["prowess-shell", "prowess-http", "prowess"]),
    ("prowess-mcp", &["prowess-sandbox", "prowess-http", "prowess", "prowess-runtime"]),
    ("prowess-agent", &["prowess-http", "prowess", "prowess-runtime", "prowess-mcp"]),
    // Only tests use it, and it may use the crates they test.
    (
        "prowess-testing",
        &["prowess-http", "prowess", "prowess-runtime", "prowess-mcp", "prowess-agent"],
    ),
    (
        "prowess-cli",
        &[
            "prowess-frontmatter",
            "prowess-sandbox",
            "prowess-shell",
            "prowess-http",
            "prowess-sql",
            "prowess",
            "prowess-runtime",
            "prowess-packages",
            "prowess-agent",
            "prowess-mcp",
        ],
    ),
];

/// The crates that know nothing about skills, so that they are useful alone.
const LEAVES: &[&str] =
    &["prowess-sandbox", "prowess-template", "prowess-shell", "prowess-http", "prowess-sql"];

/// The crates whose modules are in the order of the data path.
const ORDERED: &[&str] = &[
    "prowess-frontmatter",
    "prowess-sandbox",
    "prowess-template",
    "prowess-shell",
    "prowess-http",
    "prowess-sql",
    "prowess",
    "prowess-runtime",
    "prowess-packages",
    "prowess-mcp",
    "prowess-agent",
];

/// The modules of crates whose own modules are in that order.
const ORDERED_MODULES: &[(&str, &str)] = &[
    ("prowess-sandbox", "linux"),
    ("prowess-mcp", "config"),
    ("prowess-mcp", "client"),
    ("prowess-mcp", "server"),
];

#[test]
fn every_crate_uses_only_what_it_may() {
    for crate_name in crates() {
        let allowed = ARROWS.iter().find(|it| it.0 == crate_name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("`{crate_name}` has no arrows yet"));
        for used in dependencies(&crate_name).iter().filter(|it| it.starts_with("prowess")) {
            assert!(allowed.contains(&used.as_str()), "`{crate_name}` may not use `{used}`");
        }
    }
}

#[test]
fn the_frontmatter_reader_has_no_dependency_at_all() {
    assert_eq!(dependencies("prowess-frontmatter"), BTreeSet::new());
}

#[test]
fn the_leaf_crates_know_nothing_of_skills() {
    for crate_name in LEAVES {
        for (path, code) in code_of(crate_name) {
            let named = code.to_lowercase().contains("skill");
            assert!(!named, "`{crate_name}` names skills in {}", path.display());
        }
    }
}

#[test]
fn each_module_uses_only_those_listed_before_it() {
    for crate_name in ORDERED {
        let order = modules(crate_name, "lib.rs");
        assert_order(crate_name, &order, module_uses(crate_name));
    }
    for (crate_name, module) in ORDERED_MODULES {
        let order = modules(crate_name, &format!("{module}.rs"));
        let uses = uses_within(crate_name, module);
        assert_order(&format!("{crate_name}::{module}"), &order, uses);
    }
}

#[test]
fn neither_side_of_mcp_uses_the_other() {
    let uses = module_uses("prowess-mcp");
    assert!(!uses["server"].contains("client"));
    assert!(!uses["client"].contains("server"));
}

/// Fails if a module uses one that is listed behind it.
fn assert_order(of: &str, order: &[String], uses: BTreeMap<String, BTreeSet<String>>) {
    assert!(order.len() > 2, "`{of}` has the modules {order:?}");
    let place = |module: &str| order.iter().position(|it| it == module);
    for (module, uses) in uses {
        // An unlisted module replaces another on other systems.
        let Some(own) = place(&module) else { continue };
        let later = uses.iter().find(|it| place(it) > Some(own));
        assert_eq!(later, None, "`{module}` of `{of}` uses a module listed behind it");
    }
}

#[test]
fn the_library_is_neither_async_nor_a_client_nor_a_program() {
    let lock = lock();
    let mut seen = BTreeSet::new();
    let mut next: Vec<String> = dependencies("prowess").into_iter().collect();
    while let Some(name) = next.pop() {
        let used = lock.get(&name).unwrap_or_else(|| panic!("`{name}` is not in the lock file"));
        if seen.insert(name) {
            next.extend(used.iter().cloned());
        }
    }
    assert!(seen.contains("serde_json"), "the walk went nowhere: {seen:?}");
    for name in ["tokio", "reqwest", "clap"] {
        assert!(!seen.contains(name), "`prowess` comes to use `{name}`");
    }
}

#[test]
fn only_the_source_opens_files() {
    for (path, code) in library_code() {
        let own = path.starts_with("read/source") || path == Path::new("read/source.rs");
        for word in ["fs", "File"].iter().filter(|_| !own) {
            let lines = lines_with(&code, word);
            assert!(lines.is_empty(), "{} names `{word}`: {lines:#?}", path.display());
        }
    }
}

#[test]
fn the_library_prints_nothing_and_asks_neither_environment_nor_processes() {
    for (path, code) in library_code() {
        for word in ["print", "println", "eprint", "eprintln", "dbg", "env", "process"] {
            let mut lines = lines_with(&code, word);
            // Variables of the build are not read from the environment.
            lines.retain(|it| !it.contains("env!("));
            assert!(lines.is_empty(), "{} names `{word}`: {lines:#?}", path.display());
        }
    }
}

#[test]
fn the_agent_prints_nothing_and_asks_neither_disk_nor_environment_nor_processes() {
    for (path, code) in code_of("prowess-agent") {
        for word in [
            "fs", "File", "process", "Command", "env", "print", "println", "eprint", "eprintln",
            "dbg",
        ] {
            let mut lines = lines_with(&code, word);
            // Variables of the build are not read from the environment.
            lines.retain(|it| !it.contains("env!("));
            assert!(lines.is_empty(), "{} names `{word}`: {lines:#?}", path.display());
        }
    }
}

#[test]
fn every_rule_has_a_code_of_its_own() {
    let codes: BTreeSet<&str> = prowess::RULES.iter().map(|it| it.code).collect();
    assert_eq!(codes.len(), prowess::RULES.len());
}

#[test]
fn code_is_told_from_comments_texts_and_tests() {
    let text = "use std::fs; // env\nlet a = \"fs \\\" fs\"; let b = '\"'; fs();\n#[cfg(test)]\nmod tests { fs() }\n";
    let code = code(text);
    assert_eq!(lines_with(&code, "fs").len(), 2, "{code}");
    assert!(lines_with(&code, "env").is_empty(), "{code}");
    assert!(lines_with("offs fs_x", "fs").is_empty());
}

pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(crate) fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap().map(|it| it.unwrap());
    let mut crates: Vec<String> = entries
        .filter(|it| it.path().join("Cargo.toml").exists())
        .map(|it| it.file_name().into_string().unwrap())
        .collect();
    crates.sort();
    assert!(crates.contains(&"prowess".to_owned()));
    crates
}

/// Returns the dependencies in a crate's manifest, without those of its tests.
fn dependencies(crate_name: &str) -> BTreeSet<String> {
    let path = root().join("crates").join(crate_name).join("Cargo.toml");
    let manifest = fs::read_to_string(path).unwrap();
    let mut section = "";
    let mut dependencies = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            let is_one = section.split_once("dependencies.").filter(|it| !it.0.contains("dev-"));
            dependencies.extend(is_one.map(|it| it.1.to_owned()));
        } else if section.ends_with("dependencies") && !section.ends_with("dev-dependencies") {
            let key = line.split(['.', '=', '#']).next().unwrap_or_default().trim();
            dependencies.extend((!key.is_empty()).then(|| key.to_owned()));
        }
    }
    dependencies
}

/// Returns the dependencies of every package in the lock file.
fn lock() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut lock: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in text.split("[[package]]").skip(1) {
        let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
        let name = package.lines().find(|it| it.starts_with("name = ")).map(quoted).unwrap();
        let listed = package.lines().skip_while(|it| !it.starts_with("dependencies = ["));
        let used = listed.skip(1).take_while(|it| !it.starts_with(']'));
        // A name with several versions is followed by its version.
        let used = used.map(|it| quoted(it).split(' ').next().unwrap_or_default().to_owned());
        lock.entry(name).or_default().extend(used);
    }
    lock
}

/// Returns the files of the library below `src`, each with its code.
fn library_code() -> Vec<(PathBuf, String)> {
    let files = code_of("prowess");
    assert!(files.iter().any(|it| it.0 == Path::new("read/source/folder.rs")));
    files
}

/// Returns the files of a crate below `src`, each with its code.
pub(crate) fn code_of(crate_name: &str) -> Vec<(PathBuf, String)> {
    let source = root().join("crates").join(crate_name).join("src");
    let mut folders = vec![source.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
                let own = path.strip_prefix(&source).unwrap().to_owned();
                files.push((own, code(&fs::read_to_string(&path).unwrap())));
            }
        }
    }
    let is_root = |path: &Path| path == Path::new("lib.rs") || path == Path::new("main.rs");
    assert!(files.iter().any(|it| is_root(&it.0)));
    files
}

/// The modules that a file of a crate lists, in that order.
fn modules(crate_name: &str, file: &str) -> Vec<String> {
    let files = code_of(crate_name);
    let (_, code) = files.iter().find(|it| it.0 == Path::new(file)).unwrap();
    let module = |line: &str| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
    };
    code.lines().filter_map(module).collect()
}

/// Returns the top-level modules of a crate, each with those that it uses.
fn module_uses(crate_name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, code) in code_of(crate_name).into_iter().filter(|it| it.0 != Path::new("lib.rs")) {
        let module = first_name(&path);
        let mut used = names_below(&code, "crate::");
        used.remove(&module);
        uses.entry(module).or_default().extend(used);
    }
    uses
}

/// The modules in a module of a crate, each with those beside it that it uses.
fn uses_within(crate_name: &str, module: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, code) in code_of(crate_name) {
        let Ok(path) = path.strip_prefix(module) else { continue };
        let own = first_name(path);
        let mut used = names_below(&code, &format!("crate::{module}::"));
        if path.components().count() == 1 {
            used.extend(names_below(&code, "super::"));
        }
        used.remove(&own);
        uses.entry(own).or_default().extend(used);
    }
    uses
}

/// The first name of a path, without an ending.
fn first_name(path: &Path) -> String {
    let name = path.iter().next().unwrap().to_str().unwrap();
    name.strip_suffix(".rs").unwrap_or(name).to_owned()
}

/// The first names in paths such as `crate::a::B` and `crate::{a::B, c::{D, E}}`, behind such a prefix.
fn names_below(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in code.split(prefix).skip(1) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let first = |it: &str| it.trim().split(|c| !is_word(c)).next().unwrap_or("").to_owned();
        let Some(list) = path.strip_prefix('{') else {
            names.insert(first(path));
            continue;
        };
        let (mut depth, mut start) = (0_usize, 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    names.insert(first(&list[start..at]));
                    start = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    // The empty name after a trailing comma.
    names.remove("");
    names
}

#[test]
fn names_behind_a_prefix_are_found() {
    let code = "use crate::{\n    a::{B, b},\n    c,\n    d::E,\n};\nuse crate::f::G;\ncrate::h()";
    let names: Vec<String> = names_below(code, "crate::").into_iter().collect();
    assert_eq!(names, ["a", "c", "d", "f", "h"]);
}

/// Returns a text without comments, string literals and tests.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut code = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|it| *it != '\n').is_some() {},
            // A quote or backslash between single quotes opens nothing.
            '\'' => match rest.next() {
                Some('\\') => drop(rest.next()),
                Some('"') | None => {}
                Some(other) => code.push(other),
            },
            '"' => {
                while let Some(inside) = rest.next().filter(|it| *it != '"') {
                    if inside == '\\' {
                        rest.next();
                    }
                }
            }
            c => code.push(c),
        }
    }
    code
}

/// Returns the lines that contain a word.
fn lines_with<'c>(code: &'c str, word: &str) -> Vec<&'c str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.lines().filter(|line| line.split(|c| !is_word(c)).any(|it| it == word)).collect()
}
