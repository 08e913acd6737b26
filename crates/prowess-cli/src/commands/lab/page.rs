//! What the lab found out, as one page.

use prowess_agent::Page;
use serde_json::json;

use super::{Report, json::document};

const PAGE: Page<'_> = Page {
    title: "Trigger lab",
    list: "Skills",
    rows: "Skills by how they fare",
    style: include_str!("page.css"),
    script: include_str!("page.js"),
};

/// How many skills, families and failures a page has at the most: more make a browser slow.
const MOST: usize = 3000;

pub(super) fn page(report: &Report<'_>) -> String {
    let mut data = document(report, MOST);
    data["left_out"] = json!(report.study.skills.len().saturating_sub(MOST));
    PAGE.html(&data)
}
