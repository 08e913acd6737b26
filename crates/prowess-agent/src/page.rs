//! A self-contained HTML page.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("page/shell.css");
const SCRIPT: &str = include_str!("page/shell.js");
const BODY: &str = include_str!("page/shell.html");

/// A self-contained page that loads nothing: a list on the left, and the details of the selected
/// row on the right, with search, keyboard navigation, and light and dark themes.
///
/// No text of its data is ever markup: the page contains it as JSON without a `<`, and shows it as
/// text. Only the page's own script runs, allowed by its digest.
#[derive(Debug, Clone, Copy)]
pub struct HtmlPage<'p> {
    /// The title until its script has run.
    pub title: &'p str,
    /// The accessible labels of the list and of its rows, for screen readers.
    pub list: &'p str,
    /// See `list`.
    pub rows: &'p str,
    /// Styles in addition to those of every page.
    pub style: &'p str,
    /// The script that makes rows of the data with `addRow`, and ends with `begin`.
    pub script: &'p str,
}

impl HtmlPage<'_> {
    /// Renders the page with some data.
    pub fn html(&self, data: &impl Serialize) -> String {
        let (style, script) =
            (format!("{STYLE}{}", self.style), format!("{SCRIPT}{}", self.script));
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
            digest(&script),
            digest(&style)
        );
        let data = embeddable_json(data);
        // Only the placeholders of the page itself are filled in, not those in the inserted texts.
        let pieces = BODY.split('{').flat_map(|piece| match piece.split_once('}') {
            Some((place, after)) => {
                let text = match place {
                    "title" => self.title,
                    "list" => self.list,
                    "rows" => self.rows,
                    "policy" => &policy,
                    "style" => &style,
                    "script" => &script,
                    _ => &data,
                };
                [text, after]
            }
            None => [piece, ""],
        });
        pieces.collect()
    }
}

/// Returns JSON that can be embedded in a page: it contains nothing that could end the element
/// around it.
fn embeddable_json(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).unwrap_or_default();
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Returns the digest by which a content security policy allows an inline text.
fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
