//! The results of the lab as an HTML page.

use std::{env, path::Path};

use prowess_agent::HtmlPage;
use serde_json::{Value as Json, json};

use super::{Report, json::document};
use crate::{context, surroundings::short_path};

const PAGE: HtmlPage<'_> = HtmlPage {
    title: "Trigger lab",
    list: "Skills",
    rows: "Skills by result",
    style: include_str!("page.css"),
    script: include_str!("page.js"),
};

/// The most skills, groups and failures on a page: more make a browser slow.
const MOST: usize = 3000;

pub(super) fn page(report: &Report<'_>) -> String {
    let mut data = document(report, MOST);
    data["left_out"] = json!(report.study.skills.len().saturating_sub(MOST));
    shorten(&mut data, &env::current_dir().unwrap_or_default(), context::home().as_deref());
    PAGE.html(&data)
}

/// Shortens every path relative to the working directory or home: a page is shown to others.
fn shorten(value: &mut Json, here: &Path, home: Option<&Path>) {
    match value {
        Json::Object(members) => members.iter_mut().for_each(|(key, it)| match it {
            Json::String(path) if key == "path" => *path = short_path(Path::new(path), here, home),
            it => shorten(it, here, home),
        }),
        Json::Array(items) => items.iter_mut().for_each(|it| shorten(it, here, home)),
        _ => {}
    }
}
