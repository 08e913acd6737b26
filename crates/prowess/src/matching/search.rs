//! The first look: every skill that has a word of the request.

use std::cell::RefCell;

use super::{index::Index, query::Query};

thread_local! {
    static SCORES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// The wanted documents that score best, at most `top`, best first, equal ones in their
/// order; and those that are wanted `also`, whatever they score.
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
        for wanted in &query.terms {
            let weight = wanted.weight / 255.0;
            index.postings(wanted.id, |document, impact| {
                if let Some(score) = scores.get_mut(document as usize) {
                    *score += weight * f32::from(impact);
                }
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

fn best(scores: &[f32], top: usize, is_wanted: impl Fn(u32) -> bool) -> Vec<(u32, f32)> {
    let mut best: Vec<(u32, f32)> = Vec::with_capacity(top * 2 + 1);
    let mut least = 0.0;
    let by_score = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
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
