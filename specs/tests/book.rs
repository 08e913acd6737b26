//! Keeps the book in `docs/` whole: `SUMMARY.md` lists every page, and every link leads to a file.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use crate::architecture::root;

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

/// Collects the Markdown files in a folder, with their paths from `base`.
fn collect_pages(base: &Path, folder: &Path, pages: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(base.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
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
