//! Confidence: how likely it is that a skill is the right one.

use super::{RankedDocument, Tier, inverted::Index, query::Query, rank, weights};

/// The signals that a confidence is computed from. The weights are in the same order.
pub const SIGNALS: [&str; 10] = [
    "always",
    "score",
    "how far it is ahead",
    "words found anywhere",
    "words found in name, description and tags",
    "how telling the words are that were found",
    "the whole name",
    "words of the name found",
    "length of the request",
    "size of the library",
];

/// The confidence in a skill whose name is in the request.
pub(crate) const NAMED: f64 = 0.95;

/// The combined weight of informative words: two or three rare ones.
const TELLING: f32 = 8.0;

/// The share of the best score above which another skill is a rival of the first.
const RIVAL: f32 = 0.6;

pub(crate) type Signals = [f32; SIGNALS.len()];

/// Returns the confidences of ranked skills, in non-increasing order.
pub(crate) fn confidences(index: &Index, query: &Query, ranked: &[RankedDocument]) -> Vec<f64> {
    let rest: Vec<&RankedDocument> = ranked.iter().filter(|it| it.tier < Tier::Mentioned).collect();
    let signals = signals(index, query, &rest);
    let first = signals.map_or(0.0, |it| logistic(&it, &weights::CONFIDENCE));
    let best = rest.first().map_or(0.0, |it| it.score);
    let mut least = 1.0_f64;
    let confidences = ranked.iter().map(|it| {
        let own = match it.tier {
            Tier::Mentioned => 1.0,
            Tier::Named | Tier::Alike => NAMED,
            Tier::Partial | Tier::Evidence => {
                first * f64::from((it.score - best) * weights::FALL).exp()
            }
        };
        least = least.min(own);
        least
    });
    confidences.collect()
}

/// Returns the signals that the first skill is right.
pub(crate) fn signals(index: &Index, query: &Query, ranked: &[&RankedDocument]) -> Option<Signals> {
    let first = ranked.first()?;
    let second =
        ranked[1..].iter().find(|it| !are_indistinguishable(index, first.document, it.document));
    // A skill with a lower score is not a rival, so that one that only shares words with a request
    // does not change the confidence.
    let second = second.map_or(0.0, |it| it.score).max(first.score * RIVAL);
    let features = &first.features;
    let found = features[rank::ANYWHERE] * (query.total + query.unknown);
    Some([
        1.0,
        first.score / 10.0,
        (first.score - second).clamp(0.0, 10.0) / 10.0,
        features[rank::ANYWHERE],
        features[rank::IN_META],
        found / (found + TELLING),
        features[rank::WHOLE_NAME],
        features[rank::NAME_FOUND],
        query.length(),
        (index.len() as f32).ln_1p() / 10.0,
    ])
}

/// Returns the logistic function of the weighted signals.
pub(crate) fn logistic(signals: &Signals, weights: &Signals) -> f64 {
    let sum: f32 = signals.iter().zip(weights).map(|(signal, weight)| signal * weight).sum();
    1.0 / (1.0 + f64::from(-sum).exp())
}

/// Whether two skills have the same name or description, so that neither can be ahead.
fn are_indistinguishable(index: &Index, a: u32, b: u32) -> bool {
    let (a, b) = (index.words(a), index.words(b));
    a.description().eq(b.description()) || a.name().eq(b.name())
}
