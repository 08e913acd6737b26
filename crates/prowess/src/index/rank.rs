//! Ranking: computes features of the best candidates, and combines them to a score.

use std::cell::RefCell;

use super::{
    document::{BODY, DESCRIPTION, NAME, PARTS, saturated, weight},
    inverted::{Index, RUN, Sieve, Words},
    query::{MOST, MOST_OTHERS, NOWHERE, Query, SENTENCES},
    weights::{LONG, SHORT},
};

/// The ranking features; each is about from 0 to 1. The weights are in the same order.
pub const FEATURES: [&str; 22] = [
    "score of the first look",
    "impact in name, description and tags",
    "impact in the body",
    "words found anywhere",
    "words found in name, description and tags",
    "words found in the name",
    "words of the name found",
    "the whole name",
    "neighbours next to each other in the description",
    "neighbours near each other in the description",
    "any two near each other in the description",
    "best passage of the description",
    "neighbours next to each other anywhere",
    "neighbours near each other anywhere",
    "any two near each other anywhere",
    "best passage",
    "length of the body",
    "words of the request itself in name, description and tags",
    "most telling word in name, description and tags",
    "words found at the start of the description",
    "best sentence in name, description and tags",
    "best sentence anywhere",
];

/// The positions of the features that confidence uses as well.
pub(crate) const ANYWHERE: usize = 3;
pub(crate) const IN_META: usize = 4;
pub(crate) const IN_NAME: usize = 5;
pub(crate) const NAME_FOUND: usize = 6;
pub(crate) const WHOLE_NAME: usize = 7;

pub(crate) type Features = [f32; FEATURES.len()];

/// The maximum distance, in words, of two words that are near each other.
const NEAR: u32 = 6;
/// The number of words at the start of a description, which often say what a skill does.
const START: u32 = 14;
/// The number of words in a passage, for each part.
const PASSAGE: [u32; PARTS] = [0, 20, 0, 50];

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Reusable buffers, to avoid allocations.
#[derive(Default)]
struct Buffers {
    /// For each id its position in the query, from 1; 0 for none.
    places: Vec<u8>,
    /// The ids that have a position.
    sieve: Sieve,
    /// The matching words of each part: position in the text, and in the query.
    hits: [Vec<(u32, u8)>; PARTS],
}

impl Buffers {
    fn position(&self, id: u32) -> u8 {
        if self.sieve.has(id) { self.places.get(id as usize).copied().unwrap_or(0) } else { 0 }
    }
}

/// Computes the features of the skills that scored best.
pub(crate) fn features(index: &Index, query: &Query, found: &[(u32, f32)]) -> Vec<Features> {
    let pairs = Pairs::new(query);
    BUFFERS.with_borrow_mut(|buffers| {
        if buffers.places.len() < index.id_count() {
            buffers.places.resize(index.id_count(), 0);
        }
        for (place, id) in (1..).zip(query.ids()).filter(|it| it.1 != NOWHERE) {
            buffers.places[id as usize] = place;
            buffers.sieve.insert(id);
        }
        let features =
            found.iter().map(|it| compute_features(index, query, &pairs, buffers, *it)).collect();
        for id in query.ids().filter(|it| *it != NOWHERE) {
            buffers.places[id as usize] = 0;
            buffers.sieve.remove(id);
        }
        features
    })
}

/// Combines features to a score; `long` is the length of the request, from 0 to 1.
pub(crate) fn score(features: &Features, long: f32) -> f32 {
    let weights = SHORT.iter().zip(&LONG).map(|(short, far)| short + (far - short) * long);
    features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum()
}

/// Returns how a request names a skill.
pub(crate) fn tier(index: &Index, document: u32, query: &Query) -> Tier {
    let words = query.terms.iter().filter(|it| !it.is_extra);
    let name: Vec<u32> = index.words(document).name().collect();
    if query.unknown > 0.0
        || words.clone().count() == 0
        || !words.clone().all(|it| name.contains(&it.id))
    {
        Tier::Evidence
    } else if name.iter().all(|own| words.clone().any(|it| it.id == *own)) {
        Tier::Alike
    } else {
        Tier::Partial
    }
}

fn compute_features(
    index: &Index,
    query: &Query,
    pairs: &Pairs,
    buffers: &mut Buffers,
    (document, score): (u32, f32),
) -> Features {
    let Words { stored, lengths, mut words } = index.words(document);
    let name = words;
    let mut counts = [[0_u16; MOST + MOST_OTHERS]; PARTS];
    for part in 0..PARTS {
        buffers.hits[part].clear();
        let (mut at, end) = (0, stored[part].min(words.max_len()));
        while at < end {
            at += words.skip_unlisted(end - at, &buffers.sieve);
            let run = at..end.min(at + RUN);
            for (at, id) in run.clone().zip(words.by_ref()) {
                let place = buffers.position(id);
                if place > 0 {
                    counts[part][place as usize - 1] += 1;
                    if let Some(place) = query.word_at(place - 1) {
                        buffers.hits[part].push((at as u32, place));
                    }
                }
            }
            at = run.end;
        }
    }
    // Words that no skill contains count as not found.
    let total = (query.total + query.unknown).max(1e-6);
    let found = |at: usize| {
        let weigh = |part: usize| weight(part, f32::from(counts[part][at]), lengths[part]);
        let (meta, body) = ((NAME..BODY).map(weigh).sum::<f32>(), weigh(BODY));
        let is_there = [meta + body > 0.0, meta > 0.0, counts[NAME][at] > 0];
        let [anywhere, in_meta, in_name] = is_there.map(|it| f32::from(u8::from(it)));
        [saturated(meta), saturated(body), anywhere, in_meta, in_name]
    };
    let mut sums = [0.0_f32; 5];
    let mut described = DescriptionWeights::default();
    let mut sentences = [[0.0_f32; 2]; SENTENCES];
    let start = buffers.hits[DESCRIPTION].iter().take_while(|it| it.0 < START);
    let start = start.fold(0_u32, |bits, it| bits | 1 << it.1);
    for (at, wanted) in query.terms.iter().enumerate().filter(|it| !it.1.is_extra) {
        let mut best = found(at);
        for (other, it) in (query.terms.len()..).zip(&query.others) {
            if it.instead_of & (1 << at) != 0 {
                let instead = found(other).map(|found| found * it.share);
                best = std::array::from_fn(|at| best[at].max(instead[at]));
            }
        }
        let is_at_start = start & (1 << at) != 0;
        described.add(wanted.described, found(at)[3], best[3], is_at_start);
        for (sentence, sums) in query.sentences.iter().zip(&mut sentences) {
            if sentence.terms & (1 << at) != 0 {
                sums[0] += wanted.described * best[3];
                sums[1] += wanted.weight * best[2];
            }
        }
        let share = wanted.weight / total;
        sums.iter_mut().zip(best).for_each(|(sum, found)| *sum += share * found);
    }
    let [meta_impact, body_impact, anywhere, in_meta, in_name] = sums;
    let all = (described.all + query.unknown_described).max(1e-6);
    let score = score / total;
    let [_, description, _, body] = &buffers.hits;
    let [next, near, any] = pairs.neighbour_shares(query, description);
    let [body_next, body_near, body_any] = pairs.neighbour_shares(query, body);
    let passages = [(description, DESCRIPTION), (body, BODY)]
        .map(|(hits, part)| best_passage(query, hits, PASSAGE[part]) / total);
    [
        score,
        meta_impact,
        body_impact,
        anywhere,
        in_meta,
        in_name,
        name_found(index, name.take(stored[NAME]), query, buffers),
        whole_name(name.take(stored[NAME]), query, &buffers.hits[NAME]),
        next,
        near,
        any / total,
        passages[0],
        next.max(body_next),
        near.max(body_near),
        any.max(body_any) / total,
        passages[0].max(passages[1]),
        (lengths[BODY] as f32).ln_1p() / 7.0,
        described.own / all,
        described.most / described.highest.max(1e-6),
        described.at_start / all,
        best_sentence(query, described.found / all, &sentences, 0),
        best_sentence(query, anywhere, &sentences, 1),
    ]
}

/// The weights of the words of a request that are found in name, description and tags.
#[derive(Default)]
struct DescriptionWeights {
    /// The total weight of the words.
    all: f32,
    /// The weight of those found, or a replacement for them.
    found: f32,
    /// The weight of those found themselves.
    own: f32,
    /// The highest weight of a word, and of one that is found.
    highest: f32,
    most: f32,
    /// The weight of those at the start of the description.
    at_start: f32,
}

impl DescriptionWeights {
    /// Adds a word; `own` and `found` are the shares of it and of the best replacement.
    fn add(&mut self, weight: f32, own: f32, found: f32, is_at_start: bool) {
        self.all += weight;
        self.found += weight * found;
        self.own += weight * own;
        self.highest = self.highest.max(weight);
        self.most = self.most.max(weight * found);
        self.at_start += if is_at_start { weight } else { 0.0 };
    }
}

/// Returns the share of the best sentence that was found; that of the request if it is only one.
fn best_sentence(query: &Query, whole: f32, sums: &[[f32; 2]; SENTENCES], at: usize) -> f32 {
    let shares =
        query.sentences.iter().zip(sums).map(|(it, sums)| sums[at] / it.weights[at].max(LEAST));
    shares.fold(whole, f32::max)
}

/// The weight of a sentence that says enough to be compared with others.
const LEAST: f32 = 8.0;

/// Returns the share of a name that was found, weighted by the rarity of its words.
fn name_found(
    index: &Index,
    name: impl Iterator<Item = u32>,
    query: &Query,
    buffers: &Buffers,
) -> f32 {
    let (mut all, mut found) = (0.0, 0.0);
    for id in name {
        let telling = rarity(index, id);
        all += telling;
        found += telling * query.share(buffers.position(id));
    }
    if all > 0.0 { found / all } else { 0.0 }
}

/// Returns the rarity of a term in this library alone.
fn rarity(index: &Index, id: u32) -> f32 {
    (index.len() as f32 / index.count(id).max(1) as f32).ln_1p()
}

/// The words that are neighbours in the query: adjacent, or with one word between.
struct Pairs {
    /// For every position, the positions that follow it.
    next: [u32; MOST],
    near: [u32; MOST],
    next_total: f32,
    near_total: f32,
}

impl Pairs {
    fn new(query: &Query) -> Self {
        let (mut next, mut near) = ([0_u32; MOST], [0_u32; MOST]);
        for (gap, pairs) in [(1, &mut next), (2, &mut near)] {
            for window in query.words.windows(gap + 1) {
                if let (Some(a), Some(b)) = (window[0], window[gap])
                    && a != b
                {
                    pairs[a as usize] |= 1 << b;
                }
            }
        }
        for (near, next) in near.iter_mut().zip(&next) {
            *near |= next;
        }
        let [next_total, near_total] = [&next, &near].map(|pairs: &[u32; MOST]| {
            let all = pairs.iter().enumerate().flat_map(|(a, following)| {
                (0..MOST).filter(move |b| following & (1 << b) != 0).map(move |b| (a, b))
            });
            all.map(|(a, b)| joint_weight(query, a, b)).sum::<f32>().max(1e-6)
        });
        Self { next, near, next_total, near_total }
    }

    /// Returns the share of the query's neighbours that are adjacent in a text, the share that are
    /// near each other, and the weight of any two words that are near each other.
    fn neighbour_shares(&self, query: &Query, hits: &[(u32, u8)]) -> [f32; 3] {
        let (mut next_seen, mut near_seen, mut any_seen) =
            ([0_u32; MOST], [0_u32; MOST], [0_u32; MOST]);
        let [mut next, mut near, mut any] = [0.0; 3];
        for (at, (place, a)) in hits.iter().enumerate() {
            for (other, b) in hits[at + 1..].iter().take_while(|it| it.0 - place <= NEAR) {
                let (a, b) = (*a as usize, *b as usize);
                let (low, high) = (a.min(b), a.max(b));
                if a == b {
                    continue;
                }
                if other - place == 1 && self.next[a] & !next_seen[a] & (1 << b) != 0 {
                    next_seen[a] |= 1 << b;
                    next += joint_weight(query, a, b);
                }
                for (a, b) in [(a, b), (b, a)] {
                    if self.near[a] & !near_seen[a] & (1 << b) != 0 {
                        near_seen[a] |= 1 << b;
                        near += joint_weight(query, a, b);
                    }
                }
                if any_seen[low] & (1 << high) == 0 {
                    any_seen[low] |= 1 << high;
                    any += joint_weight(query, a, b);
                }
            }
        }
        [next / self.next_total, near / self.near_total, any]
    }
}

/// Returns the joint weight of two words: that of the lighter one.
fn joint_weight(query: &Query, a: usize, b: usize) -> f32 {
    query.terms[a].weight.min(query.terms[b].weight)
}

/// Returns the highest total weight of the words in one passage.
fn best_passage(query: &Query, hits: &[(u32, u8)], length: u32) -> f32 {
    let mut counts = [0_u16; MOST];
    let (mut sum, mut best) = (0.0_f32, 0.0_f32);
    let mut from = 0;
    for (place, a) in hits {
        while place - hits[from].0 >= length {
            let out = hits[from].1 as usize;
            counts[out] -= 1;
            if counts[out] == 0 {
                sum -= query.terms[out].weight;
            }
            from += 1;
        }
        let a = *a as usize;
        counts[a] += 1;
        if counts[a] == 1 {
            sum += query.terms[a].weight;
        }
        best = best.max(sum);
    }
    best
}

/// Returns how many words of a name, up to three and as a share of that, occur in the request in
/// sequence; 0 unless all of them do.
fn whole_name(name: impl Iterator<Item = u32> + Clone, query: &Query, hits: &[(u32, u8)]) -> f32 {
    let length = name.clone().count();
    if hits.len() < length {
        return 0.0;
    }
    let is_there = length > 0
        && query.words.windows(length).any(|words| {
            name.clone()
                .zip(words)
                .all(|(own, word)| word.is_some_and(|at| query.terms[at as usize].id == own))
        });
    if is_there { length.min(3) as f32 / 3.0 } else { 0.0 }
}

/// The way in which a request names a skill. A higher tier always ranks first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tier {
    /// The skill is ranked by its score.
    #[default]
    Evidence,
    /// Its name contains all words of the request.
    Partial,
    /// The words of the request are those of its name, in other forms.
    Alike,
    /// Its name is written out in the request.
    Named,
    /// It is mentioned: `@name`, `$name`, `/name`.
    Mentioned,
}

impl Tier {
    /// Returns the word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Evidence => "evidence",
            Self::Partial => "partial",
            Self::Alike => "alike",
            Self::Named => "named",
            Self::Mentioned => "mentioned",
        }
    }
}

/// A document with its rank features.
#[derive(Debug, Clone)]
pub(crate) struct RankedDocument {
    pub(crate) document: u32,
    pub(crate) tier: Tier,
    pub(crate) score: f32,
    pub(crate) features: Features,
}
