//! The rules, their pages, and the formats for other programs.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use prowess::{Profile, RULES, Severity};
use unicode_width::UnicodeWidthStr as _;

const PROFILES: [(&str, Profile); 3] =
    [("spec", Profile::Spec), ("lenient", Profile::Lenient), ("reference", Profile::Reference)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The value of a line such as `- since: 0.1.0`.
fn stated<'p>(page: &'p str, key: &str) -> Option<&'p str> {
    page.lines().find_map(|it| it.strip_prefix(&format!("- {key}: ")))
}

/// Returns the text under a heading.
fn section<'p>(page: &'p str, title: &str) -> &'p str {
    let rest = page.split_once(&format!("\n## {title}\n")).map_or("", |it| it.1);
    rest.split("\n## ").next().unwrap().trim()
}

mod every_rule_has_a_page {
    use super::*;

    #[test]
    fn a_rule_has_one_page_and_a_page_one_rule() {
        let entries = fs::read_dir(root().join("crates/prowess/rules")).unwrap();
        let pages: BTreeSet<String> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        let rules: BTreeSet<String> = RULES.iter().map(|it| format!("{}.md", it.code)).collect();
        assert_eq!(pages, rules);
    }

    #[test]
    fn a_page_says_what_its_rule_says() {
        for rule in RULES {
            let page = rule.page;
            let mut lines = page.lines();
            assert_eq!(lines.next(), Some(&*format!("# {}", rule.code)));
            let (_, rest) = page.split_once("\n\n").unwrap();
            let first = rest.split("\n\n").next().unwrap().replace('\n', " ");
            assert_eq!(first.to_lowercase(), format!("{}.", rule.summary.to_lowercase()));
            for (word, profile) in PROFILES {
                let weight = rule.severity(profile).map_or("none", Severity::as_str);
                assert_eq!(stated(page, word), Some(weight), "{} in {word}", rule.code);
            }
            let since = stated(page, "since").unwrap();
            assert!(since.split('.').filter(|it| it.parse::<u32>().is_ok()).count() == 3);
            let headings: Vec<&str> =
                page.lines().filter(|it| it.starts_with("## ")).take(4).collect();
            assert_eq!(headings, ["## Why", "## Bad", "## Good", "## Fix"], "{}", rule.code);
            for title in ["Why", "Fix"] {
                // GitHub shows no more of a description.
                let length = section(page, title).len();
                assert!((10..1024).contains(&length), "{}: {length} of {title}", rule.code);
            }
            let widest = page.lines().map(str::width).max().unwrap();
            assert!(widest < 400 && !page.contains('\t'), "{}", rule.code);
        }
    }
}
