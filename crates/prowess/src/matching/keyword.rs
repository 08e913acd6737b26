//! The strategy `keyword`: strict tiers by name and description.

use std::collections::BTreeSet;

use super::{Match, mention::mentions};
use crate::{
    index::{Tier, confidence::NAMED, query::read_words, words},
    library::Library,
    read::skill::Skill,
};

/// Finds skills by the words of a request: those whose whole name is one of them, then those with
/// one of them in their name, then those with one of them in their description.
pub(crate) fn match_keywords<'lib>(
    library: &'lib Library,
    request: &str,
    wanted: impl Fn(&Skill) -> bool,
) -> Vec<Match<'lib>> {
    let mentions = mentions(library, request);
    let (mentioned, request) = (&mentions.known, &*mentions.without_mentions(request));
    let mut asked: Vec<words::Term> = read_words(request).into_iter().map(|it| it.term).collect();
    asked.sort_unstable();
    asked.dedup();
    let spoken_name = request.trim().to_lowercase();
    let request_words: BTreeSet<String> = words_of(request).collect();
    let mut found: Vec<Match<'lib>> = Vec::new();
    for (at, skill) in (0..).zip(&library.skills).filter(|it| wanted(it.1)) {
        let manifest = &skill.manifest;
        let name = manifest.name.to_lowercase();
        let joined = [name.clone(), name.replace(['-', '_'], " ")];
        let name_words = keywords(&name);
        let in_name = count_shared(&asked, &name_words);
        let in_description = count_shared(&asked, &keywords(&manifest.description));
        let is_exact = joined.contains(&spoken_name) || request_words.contains(&name);
        let mention = mentioned.iter().position(|it| *it == at);
        let (tier, confidence) = if mention.is_some() {
            (Tier::Mentioned, 1.0)
        } else if is_exact {
            (Tier::Named, NAMED)
        } else if in_name > 0 {
            (Tier::Partial, 0.4 + 0.5 * ratio(in_name, name_words.len()))
        } else if in_description > 0 {
            (Tier::Evidence, 0.4 * ratio(in_description, asked.len()))
        } else {
            continue;
        };
        let score = match mention {
            Some(place) => (mentioned.len() - place) as f64,
            None => (in_name * 100 + in_description) as f64,
        };
        found.push(Match { skill, confidence, score, tier });
    }
    // The sort is stable, and the library is in the order of names.
    found.sort_by(|a, b| {
        b.tier
            .cmp(&a.tier)
            .then(b.confidence.total_cmp(&a.confidence))
            .then(b.score.total_cmp(&a.score))
    });
    found
}

/// Returns the distinct stems of the words of a text, except for stop words.
fn keywords(text: &str) -> Vec<words::Term> {
    let mut keywords = Vec::new();
    words::chunks(text, |chunk| {
        words::terms(chunk, |found, _| {
            if !found.is_stop && !keywords.contains(&found.term) && keywords.len() < 256 {
                keywords.push(found.term);
            }
        });
    });
    keywords
}

fn words_of(request: &str) -> impl Iterator<Item = String> {
    request
        .split(|c: char| !c.is_alphanumeric() && !"-_:".contains(c))
        .take(4096)
        .map(str::to_lowercase)
}

/// Counts the words in common; `asked` is sorted.
fn count_shared(asked: &[words::Term], own: &[words::Term]) -> usize {
    own.iter().filter(|it| asked.binary_search(it).is_ok()).count()
}

fn ratio(count: usize, of: usize) -> f64 {
    count as f64 / of.max(1) as f64
}
