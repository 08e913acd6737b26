//! Data for fitting the weights; only for the program that does it.
#![doc(hidden)]
#![allow(missing_docs, reason = "no part of the promise")]

use std::collections::BTreeSet;

use crate::index::{CLOSELY, RankedDocument, Tier, background, confidence, rank, search, words};
use crate::library::Library;

pub use crate::index::{confidence::SIGNALS, rank::FEATURES};

pub type Features = [f32; FEATURES.len()];
pub type Signals = [f32; SIGNALS.len()];

/// The candidates for a request: skills by their positions, with the features of each.
#[derive(Debug)]
pub struct Candidates {
    pub found: Vec<(u32, Features)>,
    pub long: f32,
}

pub fn candidates(library: &Library, request: &str) -> Candidates {
    let searchable = library.searchable();
    let query = searchable.query(request);
    let found = search::search(&searchable.index, &query, CLOSELY, &[], |_| true);
    let features = rank::features(&searchable.index, &query, &found);
    let found = found.iter().map(|it| it.0).zip(features).collect();
    Candidates { found, long: query.length() }
}

/// Returns the signals for candidates that were scored and sorted.
pub fn signals(
    library: &Library,
    request: &str,
    scored: &[(u32, f32, Features)],
) -> Option<Signals> {
    let searchable = library.searchable();
    let query = searchable.query(request);
    let ranked: Vec<RankedDocument> = scored
        .iter()
        .map(|&(document, score, features)| RankedDocument {
            document,
            tier: Tier::Evidence,
            score,
            features,
        })
        .collect();
    confidence::signals(&searchable.index, &query, &ranked.iter().collect::<Vec<_>>())
}

pub fn index_bytes(library: &Library) -> usize {
    library.searchable().index.bytes()
}

/// Returns the stems of the words of a phrase, except for stop words, in order.
pub fn phrase(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    words::for_each_word(text, |_, word| stems.push(words::stem(word).into_owned()));
    stems
}

/// Whether a stem is of an English word.
pub fn is_english(stem: &str) -> bool {
    stem.is_ascii() && background::is_english(stem)
}

/// Returns the distinct stems of a text.
pub fn stems(text: &str) -> BTreeSet<String> {
    collect_stems(text, |word| words::stem(word).into_owned())
}

/// Returns the distinct stems of a text in which all words are treated as English: the input of the
/// table of common words, so that it does not depend on the previous table.
pub fn english_stems(text: &str) -> BTreeSet<String> {
    collect_stems(text, |word| words::english_stem(word).into_owned())
}

fn collect_stems(text: &str, stem: impl Fn(&str) -> String) -> BTreeSet<String> {
    let mut stems = BTreeSet::new();
    words::chunks(text, |chunk| {
        words::terms(chunk, |found, word| {
            if !found.is_stop {
                stems.insert(stem(word));
            }
        });
    });
    stems
}
