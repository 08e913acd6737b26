//! The self-contained HTML page of a trace.

use prowess::without_middle;
use serde::Serialize;
use serde_json::Value as Json;

use super::{read::RecordedTrace, summary::Summary};
use crate::page::HtmlPage;

const PAGE: HtmlPage<'_> = HtmlPage {
    title: "Trace",
    list: "Timeline",
    rows: "Turns, steps and calls",
    style: include_str!("page.css"),
    script: include_str!("page.js"),
};

/// The maximum size of a page's data in bytes, before escaping, if cutting its texts can achieve
/// that.
const MAX_DATA: usize = 16 * 1024 * 1024;
/// The number of bytes shown of each text: the first of these with which the data fits.
const CUTS: [usize; 4] = [256 * 1024, 32 * 1024, 4 * 1024, 512];

#[derive(Serialize)]
struct Data<'a> {
    summary: &'a Summary,
    trace: &'a Json,
    /// The length at which the middle of a text is left out.
    cut: usize,
}

impl RecordedTrace {
    /// Renders it as a self-contained HTML page that loads nothing.
    pub fn page(&self) -> String {
        let summary = self.summary();
        let mut json = serde_json::to_value(self).unwrap_or_default();
        let cut = CUTS
            .into_iter()
            .find(|cut: &usize| size(&json, *cut) <= MAX_DATA)
            .unwrap_or(CUTS[CUTS.len() - 1]);
        shorten(&mut json, cut);
        PAGE.html(&Data { summary: &summary, trace: &json, cut })
    }
}

/// Returns the size of a value in bytes before escaping, with each text cut to `cut` bytes.
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
            *text = without_middle(text, most).into_owned();
        }
        Json::Array(items) => items.iter_mut().for_each(|it| shorten(it, most)),
        Json::Object(fields) => fields.values_mut().for_each(|it| shorten(it, most)),
        _ => {}
    }
}
