//! Retrieval: finds every skill that contains a word of the request.

use std::{cell::RefCell, cmp::Ordering};

use super::{inverted::Index, query::Query};

thread_local! {
    static SCORES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
    static BEST: RefCell<BestScores> = const { RefCell::new(BestScores { values: Vec::new(), touched: Vec::new() }) };
}

/// Returns the wanted documents that score best, at most `top`, best first, ties in document order;
/// and those in `also`, whatever their score.
pub(crate) fn search(
    index: &Index,
    query: &Query,
    top: usize,
    also: &[u32],
    is_wanted: impl Fn(u32) -> bool,
) -> Vec<(u32, f32)> {
    SCORES.with_borrow_mut(|scores| {
        scores.clear();
        scores.resize(index.len(), 0.0);
        for (place, wanted) in query.terms.iter().enumerate() {
            let mut others = query.replacements_for(place).peekable();
            if others.peek().is_none() {
                for_each_document(index, wanted.id, wanted.weight, |document, it| {
                    scores[document] += it;
                });
                continue;
            }
            // Of a word and its replacements, the one with the highest impact in a skill counts.
            BEST.with_borrow_mut(|best| {
                best.values.resize(index.len(), 0.0);
                for_each_document(index, wanted.id, wanted.weight, |document, it| {
                    best.raise(document, it);
                });
                for other in others {
                    let weight = wanted.weight * other.share;
                    for_each_document(index, other.id, weight, |document, it| {
                        best.raise(document, it);
                    });
                }
                best.drain(|document, it| scores[document] += it);
            });
        }
        let mut found = best(scores, top, &is_wanted);
        for document in also.iter().copied().filter(|it| is_wanted(*it)) {
            if !found.iter().any(|it| it.0 == document) {
                found.push((document, scores[document as usize]));
            }
        }
        found
    })
}

/// Passes every document that contains a term to `take`, with the term's contribution.
fn for_each_document(index: &Index, id: u32, weight: f32, mut take: impl FnMut(usize, f32)) {
    let weight = weight / 255.0;
    index.postings(id, |document, impact| {
        if (document as usize) < index.len() {
            take(document as usize, weight * f32::from(impact));
        }
    });
}

/// The highest contribution of some words to each document; 0 between requests.
struct BestScores {
    values: Vec<f32>,
    /// The documents with a value above 0.
    touched: Vec<usize>,
}

impl BestScores {
    fn raise(&mut self, document: usize, value: f32) {
        let best = &mut self.values[document];
        if *best == 0.0 {
            self.touched.push(document);
        }
        *best = best.max(value);
    }

    /// Passes every value to `take`, and resets it to 0.
    fn drain(&mut self, mut take: impl FnMut(usize, f32)) {
        for document in self.touched.drain(..) {
            take(document, std::mem::take(&mut self.values[document]));
        }
    }
}

fn best(scores: &[f32], top: usize, is_wanted: impl Fn(u32) -> bool) -> Vec<(u32, f32)> {
    let mut best: Vec<(u32, f32)> = Vec::with_capacity(top * 2 + 1);
    let mut least = 0.0;
    for (document, score) in scores.iter().enumerate() {
        let document = document as u32;
        if *score > least && is_wanted(document) {
            best.push((document, *score));
            if best.len() > top * 2 {
                best.select_nth_unstable_by(top, by_score);
                best.truncate(top);
                least = best.iter().map(|it| it.1).fold(f32::INFINITY, f32::min);
            }
        }
    }
    best.sort_unstable_by(by_score);
    best.truncate(top);
    best
}

fn by_score(a: &(u32, f32), b: &(u32, f32)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}
