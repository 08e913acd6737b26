//! One page of HTML, with all that it needs in it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("page/shell.css");
const SCRIPT: &str = include_str!("page/shell.js");
const BODY: &str = include_str!("page/shell.html");

/// A page that needs nothing else, and loads nothing: a list on the left, and what is selected in it on
/// the right, with search, keys, light and dark.
///
/// No text of its data is markup anywhere: it stands in the page as JSON without a `<`, and is shown as
/// text. No script runs but the page's own, by its digest.
#[derive(Debug, Clone, Copy)]
pub struct HtmlPage<'p> {
    /// What it is called until its script has run.
    pub title: &'p str,
    /// What the list is, and what its rows are, for those who do not see it.
    pub list: &'p str,
    /// See `list`.
    pub rows: &'p str,
    /// Styles beside those of every page.
    pub style: &'p str,
    /// What makes rows of the data, by `addRow`, and ends with `begin`.
    pub script: &'p str,
}

impl HtmlPage<'_> {
    /// Makes the page of some data.
    pub fn html(&self, data: &impl Serialize) -> String {
        let (style, script) =
            (format!("{STYLE}{}", self.style), format!("{SCRIPT}{}", self.script));
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
            digest(&script),
            digest(&style)
        );
        let text = |place: &str| match place {
            "title" => self.title.to_owned(),
            "list" => self.list.to_owned(),
            "rows" => self.rows.to_owned(),
            "policy" => policy.clone(),
            "style" => style.clone(),
            "script" => script.clone(),
            _ => embedded(data),
        };
        // Only the places of the page itself are filled in, whatever the texts that go there hold.
        let pieces = BODY.split('{').map(|piece| match piece.split_once('}') {
            Some((place, after)) => text(place) + after,
            None => piece.to_owned(),
        });
        pieces.collect()
    }
}

/// JSON that can stand in a page: it holds nothing that could end the element around it.
fn embedded(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).unwrap_or_default();
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// How a policy names a text that may stand in a page.
fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
