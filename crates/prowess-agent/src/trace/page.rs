//! One page of a trace, with all that it needs in it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::{read::Traced, summary::Summary};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const BODY: &str = include_str!("page.html");

/// How many bytes of data a page has at the most, not escaped, if cutting its texts can bring that
/// about.
const MAX_DATA: usize = 16 * 1024 * 1024;
/// How many bytes of each text are shown: the first of these with which the data is not too much.
const CUTS: [usize; 4] = [256 * 1024, 32 * 1024, 4 * 1024, 512];

#[derive(Serialize)]
struct Data<'a> {
    summary: &'a Summary,
    trace: &'a Json,
    /// How long a text is before its middle is left out.
    cut: usize,
}

impl Traced {
    /// Makes one HTML page of it that needs nothing else, and loads nothing.
    ///
    /// No text of the trace is markup anywhere: it stands in the page as JSON without a `<`, and is
    /// shown as text. No script runs but the page's own, by its digest.
    pub fn page(&self) -> String {
        let summary = self.summary();
        let mut json = serde_json::to_value(self).unwrap_or_default();
        let fits = |cut: &usize| size(&json, *cut) <= MAX_DATA;
        let cut = CUTS.into_iter().find(fits).unwrap_or(CUTS[CUTS.len() - 1]);
        shorten(&mut json, cut);
        let data = embedded(&Data { summary: &summary, trace: &json, cut });
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
            digest(SCRIPT),
            digest(STYLE)
        );
        // The data comes last, so that nothing in it is taken for a place of the page.
        let page =
            BODY.replace("{policy}", &policy).replace("{style}", STYLE).replace("{script}", SCRIPT);
        match page.split_once("{data}") {
            Some((before, after)) => [before, &data, after].concat(),
            None => page,
        }
    }
}

/// JSON that can stand in a page: it holds nothing that could end the element around it.
fn embedded(data: &Data<'_>) -> String {
    let json = serde_json::to_string(data).unwrap_or_default();
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// How many bytes a value takes before it is escaped, if of each text only so many are shown.
fn size(json: &Json, cut: usize) -> usize {
    match json {
        Json::String(text) => text.len().min(cut) + 2,
        Json::Array(items) => items.iter().map(|it| size(it, cut) + 1).sum(),
        Json::Object(fields) => fields.iter().map(|(key, it)| key.len() + 4 + size(it, cut)).sum(),
        _ => 8,
    }
}

/// Leaves out the middle of texts that are too long.
fn shorten(json: &mut Json, most: usize) {
    match json {
        Json::String(text) if text.len() > most + 64 => {
            let head = text.floor_char_boundary(most / 3 * 2);
            let tail = text.ceil_char_boundary(text.len() - most / 3);
            let left_out = tail - head;
            *text =
                format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head], &text[tail..]);
        }
        Json::Array(items) => items.iter_mut().for_each(|it| shorten(it, most)),
        Json::Object(fields) => fields.values_mut().for_each(|it| shorten(it, most)),
        _ => {}
    }
}

/// How a policy names a text that may stand in a page.
fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
