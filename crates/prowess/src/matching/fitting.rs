//! What the weights are fitted from; for the program that does it, and for nobody else.
#![doc(hidden)]
#![allow(missing_docs, reason = "no part of the promise")]

use std::collections::BTreeSet;

use crate::index::{CLOSELY, RankedDocument, Tier, confidence, rank, search, words};
use crate::library::Library;

pub use crate::index::{confidence::SIGNALS, rank::FEATURES};

pub type Features = [f32; FEATURES.len()];
pub type Signals = [f32; SIGNALS.len()];

/// What was found for a request: skills by their places, with what speaks for each.
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
    Candidates { found, long: query.long() }
}

/// The signals for candidates that were scored and sorted.
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

/// The stems of the words of a phrase that say something, in their order.
pub fn phrase(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    words::each_word(text, |_, word| stems.push(words::stem(word).into_owned()));
    stems
}

/// Every distinct stem of a text.
pub fn stems(text: &str) -> BTreeSet<String> {
    collected(text, |word| words::stem(word).into_owned())
}

/// Every distinct stem of a text in which all words are taken for English: what the table of common
/// words is made from, so that it does not depend on the table before it.
pub fn english_stems(text: &str) -> BTreeSet<String> {
    collected(text, |word| words::english(word).into_owned())
}

fn collected(text: &str, stem: impl Fn(&str) -> String) -> BTreeSet<String> {
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
