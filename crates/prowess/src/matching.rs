//! Finds the skills that fit a request, best first.
//!
//! Retrieval scores every skill that contains a word of the request, ranking computes features of
//! the best hundred, and then each gets a confidence.

mod mention;
mod keyword;
mod why;
mod activate;
#[doc(hidden)]
pub mod fitting;

pub(crate) use self::mention::{invoked_skill, mentioned_skills};
pub use self::{
    activate::{Activate, Activation, Matching, Strategy, Unknown, activate, matches_by},
    why::{MatchedField, Reason, why},
};

use self::mention::{is_named, mentions};
use crate::{
    index::{CLOSELY, RankedDocument, Tier, confidence, rank, search},
    library::Library,
    read::skill::Skill,
};

/// The minimum distance of scores between a tier and the one below it.
const LIFT: f32 = 2.0;

/// The share of a request that counts as nearly all of it.
const ALL: f32 = 0.8;

/// A skill that fits a request.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Match<'lib> {
    /// The skill.
    pub skill: &'lib Skill,
    /// The likelihood that it is the right one, from 0 to 1.
    pub confidence: f64,
    /// The score that determines the order within a tier; comparable only within one answer.
    pub score: f64,
    /// The way in which the request names it.
    pub tier: Tier,
}

impl<'lib> Match<'lib> {
    /// Creates a match of a rule of one's own; its score is the confidence.
    pub fn new(skill: &'lib Skill, confidence: f64) -> Self {
        Self { skill, confidence, score: confidence, tier: Tier::Evidence }
    }
}

/// Finds the skills that fit a request, best first, at most `top`; ties stay in the order of their
/// names. Only skills that are in use and can be asked for by name are found.
pub fn matches<'lib>(library: &'lib Library, request: &str, top: usize) -> Vec<Match<'lib>> {
    matches_among(library, request, top, |skill| {
        skill.hidden_by.is_none() && skill.manifest.is_active()
    })
}

/// Finds the skills that fit a request among the `wanted` ones.
pub fn matches_among<'lib>(
    library: &'lib Library,
    request: &str,
    top: usize,
    wanted: impl Fn(&Skill) -> bool,
) -> Vec<Match<'lib>> {
    let searchable = library.searchable();
    let mentions = mentions(library, request);
    let (mentioned, request) = (&mentions.known, &*mentions.without_mentions(request));
    let query = searchable.query(request);
    let meanings = searchable.meaning_scores(request);
    let written = mention::written_words(request);
    let named = mention::named_skills(library, &written);
    let also = [&mentioned[..], &named, &meanings.nearest].concat();
    let found = search::search(&searchable.index, &query, CLOSELY, &also, |document: u32| {
        wanted(&library.skills[document as usize])
    });
    let features = rank::features(&searchable.index, &query, &found);
    let long = query.length();
    let ranked = found.iter().zip(features).map(|(&(document, _), features)| {
        // A short request may be a name written as one word.
        let is_in_name =
            features[rank::NAME_FOUND] > 0.0 || named.contains(&document) || written.len() <= 3;
        let is_all = features[rank::IN_NAME] >= ALL;
        let tier = if mentioned.contains(&document) {
            Tier::Mentioned
        } else if !is_in_name {
            // A name can only be in the request if something of it was found.
            Tier::Evidence
        } else if is_named(&written, &library.skills[document as usize], is_all) {
            Tier::Named
        } else {
            rank::tier(&searchable.index, document, &query)
        };
        let score = rank::score(&features, long) + meanings.score(document);
        RankedDocument { document, tier, score, features }
    });
    let mut ranked: Vec<RankedDocument> = ranked.collect();
    // `hello there` is not a request, but a skill may be named `go` or `use-it`.
    if query.says_nothing {
        ranked.retain(|it| it.tier > Tier::Evidence || meanings.nearest.contains(&it.document));
    }
    let mention =
        |it: &RankedDocument| mentioned.iter().position(|document| *document == it.document);
    ranked.sort_by(|a, b| {
        b.tier
            .cmp(&a.tier)
            .then_with(|| mention(a).cmp(&mention(b)))
            .then(b.score.total_cmp(&a.score))
            .then(a.document.cmp(&b.document))
    });
    lift(&mut ranked);
    let confidences = confidence::confidences(&searchable.index, &query, &ranked);
    let matches = ranked.iter().zip(confidences).map(|(it, confidence)| Match {
        skill: &library.skills[it.document as usize],
        confidence,
        score: f64::from(it.score),
        tier: it.tier,
    });
    matches.take(top).collect()
}

/// Raises the scores of each tier above those of the tiers below it, so that scores and confidences
/// follow the order.
fn lift(ranked: &mut [RankedDocument]) {
    let (mut highest, mut below, mut tier) = (f32::MIN, f32::MIN, Tier::Evidence);
    for it in ranked.iter_mut().rev() {
        if it.tier > tier {
            (below, tier) = (highest, it.tier);
        }
        it.score = it.score.max(below + LIFT);
        highest = highest.max(it.score);
    }
}
