//! The page of a rule, taken apart.

use prowess::Rule;

/// What the page of a rule says, part by part.
pub(crate) struct Page {
    /// The command that puts right what the rule notices, where there is one.
    pub(crate) fixed_by: Option<&'static str>,
    /// The first version that has the rule.
    pub(crate) since: &'static str,
    /// Why the rule is there, in Markdown with a line a paragraph.
    pub(crate) why: String,
    /// How to put right what it notices, in the same way.
    pub(crate) fix: String,
}

impl Page {
    pub(crate) fn of(rule: &Rule) -> Self {
        let line = |key: &str| rule.page.lines().find_map(|it| it.strip_prefix(key));
        Self {
            fixed_by: line("- fixed by: ")
                .filter(|it| *it != "hand")
                .map(|it| it.trim_matches('`')),
            since: line("- since: ").unwrap_or_default(),
            why: section(rule.page, "\n## Why\n"),
            fix: section(rule.page, "\n## Fix\n"),
        }
    }
}

/// The paragraphs under a heading.
fn section(page: &str, heading: &str) -> String {
    let rest = page.split_once(heading).map_or("", |it| it.1);
    let text = rest.split("\n## ").next().unwrap_or_default().trim();
    text.split("\n\n").map(|it| it.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}
