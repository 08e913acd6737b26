//! Keeps the documentation whole: `SUMMARY.md` lists every page, every link leads to a file, and
//! what `ARCHITECTURE.md` and `CONTRIBUTING.md` name exists.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Component, Path, PathBuf},
};

use crate::architecture::{code_of, crates, root};

/// The pages that say where things are in the code.
const MAPS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Other names in these pages: files of any folder, programs, features.
const OTHERS: &[&str] = &["SKILL.md", ".mcp.json", "lib.rs", "sudo", "external"];

#[test]
fn the_summary_lists_every_page_of_the_book_once() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: Vec<PathBuf> = targets(&summary).map(PathBuf::from).collect();
    let mut pages = BTreeSet::new();
    collect_pages(&docs, Path::new(""), &mut pages);
    pages.remove(Path::new("SUMMARY.md"));
    assert!(pages.len() > 100, "{pages:?}");
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), pages);
    assert_eq!(listed.len(), pages.len(), "a page is listed twice");
}

#[test]
fn every_link_of_the_documentation_leads_to_a_file() {
    let mut pages = BTreeSet::new();
    collect_pages(root(), Path::new("docs"), &mut pages);
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"] {
        pages.insert(page.into());
    }
    let mut broken = Vec::new();
    for page in &pages {
        let text = prose(&fs::read_to_string(root().join(page)).unwrap());
        for target in targets(&text).filter(|it| is_relative(it)) {
            let file = target.split('#').next().unwrap_or_default();
            let path = without_dots(&page.parent().unwrap().join(file));
            if !file.is_empty() && !root().join(&path).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_file_and_name_of_the_maps_exists() {
    let names = names_in_code();
    let mut missing = Vec::new();
    let mut count = 0;
    for page in MAPS {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let mut section = root().to_owned();
        for line in text.split("```").step_by(2).flat_map(str::lines) {
            let spans: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
            if line.starts_with("## ") {
                let crate_name = spans.first().copied().unwrap_or_default();
                section = root().join("crates").join(crate_name).join("src");
            }
            count += spans.len();
            let folders = folders(&spans, &section);
            let unknown = spans.iter().filter(|it| !is_file(it, &folders) && !is_known(it, &names));
            missing.extend(unknown.map(|it| format!("{page}: {it}")));
        }
    }
    assert!(count > 200, "{count}");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn a_file_or_name_that_is_gone_is_noticed() {
    let folders = folders(&["prowess-agent/src"], &root().join("crates/prowess/src"));
    let names = names_in_code();
    for (span, is_there) in [
        ("library/load.rs", true),
        ("check/validate/", true),
        ("crates/*/tests/specs", true),
        ("agent.rs", true),
        ("library/unload.rs", false),
        ("crates/*/tests/poems", false),
        ("Library::load", true),
        ("Library::unload_all_of_it", false),
        ("cargo test -p prowess", true),
    ] {
        assert_eq!(is_file(span, &folders) || is_known(span, &names), is_there, "{span}");
    }
}

#[test]
fn the_readme_of_a_crate_is_its_first_page() {
    let mut differing = Vec::new();
    for name in crates() {
        let folder = root().join("crates").join(&name);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        // The readme of the program is that of the project.
        if manifest.contains("publish = false") || manifest.contains("\nreadme = ") {
            continue;
        }
        let page = readme(&name, &fs::read_to_string(folder.join("src/lib.rs")).unwrap());
        if env::var_os("PROWESS_WRITE_DOCS").is_some() {
            fs::write(folder.join("README.md"), &page).unwrap();
        }
        if fs::read_to_string(folder.join("README.md")).is_ok_and(|it| it == page) {
            continue;
        }
        differing.push(name);
    }
    let hint = "PROWESS_WRITE_DOCS=1 cargo test -p prowess-testing -- readme";
    assert!(differing.is_empty(), "write them with `{hint}`: {differing:?}");
}

/// Returns the first page of a crate's documentation as Markdown that does not need rustdoc.
fn readme(name: &str, code: &str) -> String {
    let lines = code.lines().map_while(|it| it.strip_prefix("//!"));
    let lines = lines.map(|it| it.strip_prefix(' ').unwrap_or(it));
    let mut page = format!("# {name}\n\n");
    let mut in_code = false;
    for line in lines {
        if line.starts_with("```") {
            page.push_str(if in_code { "```" } else { "```rust" });
            in_code = !in_code;
        } else if in_code && (line == "#" || line.starts_with("# ")) {
            continue;
        } else if in_code {
            page.push_str(line);
        } else {
            page.push_str(&line.replace("[`", "`").replace("`]", "`"));
        }
        page.push('\n');
    }
    page.push_str("\nThis crate is part of Prowess, an engine for the skills of LLM agents.\n");
    page
}

/// Returns the folders that the files of a line may be in: that of its section, and those it names.
fn folders(spans: &[&str], section: &Path) -> Vec<PathBuf> {
    let common = [root().to_owned(), root().join("crates"), section.to_owned()];
    let named = common.iter().flat_map(|folder| spans.iter().map(|it| folder.join(it)));
    let named: Vec<PathBuf> = named.filter(|it| it.is_dir()).collect();
    common.into_iter().chain(named).collect()
}

/// Returns whether a span of code is a file in one of these folders.
fn is_file(span: &str, folders: &[PathBuf]) -> bool {
    if let Some((before, after)) = span.split_once('*') {
        let entries = fs::read_dir(root().join(before)).into_iter().flatten().flatten();
        let paths: Vec<String> = entries.map(|it| it.path().display().to_string()).collect();
        return paths
            .iter()
            .any(|it| it.ends_with(after) || Path::new(&format!("{it}{after}")).exists());
    }
    folders.iter().any(|it| it.join(span).exists())
}

/// Returns whether a span of code is a command, or consists of names in the code.
fn is_known(span: &str, names: &BTreeSet<String>) -> bool {
    let is_name = |it: &str| !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || c == '_');
    OTHERS.contains(&span)
        || span.contains([' ', '<', '-'])
        || span.split("::").all(|it| is_name(it) && names.contains(it))
}

/// The words in the code of all crates.
fn names_in_code() -> BTreeSet<String> {
    let files = crates().into_iter().flat_map(|it| code_of(&it));
    let mut names = BTreeSet::new();
    for (_, code) in files {
        names.extend(code.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned));
    }
    names
}

/// Collects the Markdown files in a folder, with their paths from `base`.
fn collect_pages(base: &Path, folder: &Path, pages: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(base.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if base.join(&path).is_dir() {
            collect_pages(base, &path, pages);
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.insert(path);
        }
    }
}

/// The addresses of the links in a text.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|it| it.split([')', ' ']).next())
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

/// A page without its code, in which links lead nowhere.
fn prose(text: &str) -> String {
    let blocks = text.split("```").step_by(2);
    let parts = blocks.flat_map(|it| it.split('`').step_by(2));
    parts.collect::<Vec<_>>().join("``")
}

fn without_dots(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            component => out.push(component),
        }
    }
    out
}
