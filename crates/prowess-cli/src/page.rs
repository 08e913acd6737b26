//! The documentation page of a rule, parsed.

use prowess::Rule;

/// The sections of the page of a rule.
pub(crate) struct Page {
    /// The command that fixes a finding of the rule, if there is one.
    pub(crate) fixed_by: Option<&'static str>,
    /// The first version that has the rule.
    pub(crate) since: &'static str,
    /// The reason for the rule, in Markdown with one line per paragraph.
    pub(crate) why: String,
    /// The way to fix a finding, in the same format.
    pub(crate) fix: String,
}

impl Page {
    pub(crate) fn of(rule: &Rule) -> Self {
        let fixed_by = field(rule.page, "- fixed by: ").filter(|it| *it != "hand");
        Self {
            fixed_by: fixed_by.map(|it| it.trim_matches('`')),
            since: field(rule.page, "- since: ").unwrap_or_default(),
            why: section(rule.page, "\n## Why\n"),
            fix: section(rule.page, "\n## Fix\n"),
        }
    }
}

/// Returns the rest of the line that begins like this.
fn field<'p>(page: &'p str, key: &str) -> Option<&'p str> {
    page.lines().find_map(|it| it.strip_prefix(key))
}

/// Returns the paragraphs under a heading.
fn section(page: &str, heading: &str) -> String {
    let rest = page.split_once(heading).map_or("", |it| it.1);
    let text = rest.split("\n## ").next().unwrap_or_default().trim();
    text.split("\n\n").map(|it| it.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}
