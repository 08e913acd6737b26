//! The index over the skills of a library: words, search, ranking features and confidence.
//!
//! It knows skills, not libraries: queries on a library are in `matching`.

mod han;
mod fold;
mod short;
mod stem;
mod endings;
mod stop;
pub(crate) mod words;
mod sentences;
mod analyse;
mod document;
mod packed;
mod inverted;
mod build;
mod names;
pub(crate) mod background;
mod lexicon;
pub(crate) mod query;
pub(crate) mod search;
mod embed;
pub(crate) mod rank;
mod weights;
pub(crate) mod confidence;
pub(crate) mod searchable;

pub use self::{
    embed::{Embedder, EmbedderError},
    names::{did_you_mean, name_hint, nearest},
    rank::Tier,
};
pub(crate) use self::{
    inverted::{Index, Words},
    rank::RankedDocument,
    searchable::Searchable,
    sentences::positive_sentences,
    stop::is_stop,
    words::{Term, chunks, count_informative, for_each_word, hash},
};

use self::{build::DocumentInput, document::Text, query::Query};

/// The number of candidates that are ranked in detail.
pub(crate) const CLOSELY: usize = 100;

/// Returns the bytes of an index over some texts.
pub(crate) fn index_of(texts: &[&str]) -> Vec<u8> {
    let index = Index::new(texts.len(), &Index::default(), |at, take| {
        let text = Text { name: "name", description: &[], tags: &[], body: texts[at] };
        take(text);
        DocumentInput { key: text.key(), known: None }
    });
    index.unwrap_or_default().as_bytes().to_vec()
}

/// Searches an index loaded from these bytes, and rebuilds it; returns whether they are one.
pub(crate) fn search_in(bytes: Vec<u8>) -> bool {
    let Some(index) = Index::from_cached(bytes) else { return false };
    let query = Query::new("alpha beta", &index, |_| None);
    let found = search::search(&index, &query, CLOSELY, &[], |_| true);
    rank::features(&index, &query, &found);
    let last = index.len().saturating_sub(1);
    Index::new(index.len(), &index, |at, _| DocumentInput {
        key: [at as u8; 16],
        known: Some((last - at) as u32),
    });
    true
}

/// Returns the weight of a word that occurs in `count` skills of an index.
pub(crate) fn rarity(word: &str, count: u32, index: &Index) -> f32 {
    background::weight(&words::stem(word), count, index.len())
}
