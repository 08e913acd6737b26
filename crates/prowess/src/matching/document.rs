//! What the index knows about one skill.

use std::collections::HashSet;

use super::words::{Analyser, Found, Term};

/// The text of a skill, part by part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'s> {
    pub(crate) name: &'s str,
    pub(crate) description: &'s [&'s str],
    pub(crate) tags: &'s [&'s str],
    pub(crate) body: &'s str,
}

/// The parts of a skill, in the order in which a [`Document`] holds them.
pub(crate) const NAME: usize = 0;
pub(crate) const DESCRIPTION: usize = 1;
pub(crate) const BODY: usize = 3;
pub(crate) const PARTS: usize = 4;

/// How much the words of a part count, and how far a long one is held against them.
#[derive(Debug, Clone, Copy)]
struct Part {
    weight: f32,
    /// How far the length counts, from 0 to 1.
    by_length: f32,
    /// How many words such a part usually has. It is fixed, so that a skill scores the same in
    /// every library.
    usual: f32,
    /// How many words count.
    counted: usize,
    /// How many words are kept in their order.
    kept: usize,
    /// Of so many words one at the least is usually new.
    repeats: usize,
}

/// The weights of retrieval over real skills; their optimum is flat.
const WEIGHTS: [Part; PARTS] = [
    Part { weight: 5.0, by_length: 0.3, usual: 3.0, counted: 32, kept: 32, repeats: 4 },
    Part { weight: 5.0, by_length: 0.25, usual: 26.0, counted: 256, kept: 256, repeats: 2 },
    Part { weight: 3.0, by_length: 0.5, usual: 6.0, counted: 64, kept: 64, repeats: 2 },
    Part { weight: 1.0, by_length: 0.75, usual: 560.0, counted: 16_384, kept: 1024, repeats: 8 },
];
/// How soon more of the same word stops counting.
const SATURATION: f32 = 2.0;
/// How much a term counts that stands beside the words of the text.
const EXTRA: f32 = 0.5;

/// The words of a skill in their order, part by part, and what each of them counts.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) parts: [Vec<Term>; PARTS],
    /// How many words each part has, those that are not kept included.
    pub(crate) lengths: [usize; PARTS],
    /// What each distinct term counts, from 1 to 255.
    pub(crate) impacts: Vec<(Term, u8)>,
}

impl Document {
    pub(crate) fn new(text: Text<'_>, analyser: &mut Analyser) -> Self {
        let mut document = Self::default();
        let mut seen: Vec<(Term, usize, f32)> = Vec::with_capacity(1024);
        let texts = [&[text.name][..], text.description, text.tags, &[text.body]];
        for (part, texts) in texts.into_iter().enumerate() {
            let Part { counted, kept, repeats, .. } = WEIGHTS[part];
            let (start, length, words) =
                (seen.len(), &mut document.lengths[part], &mut document.parts[part]);
            for text in texts {
                analyser.analyse(text, |Found { term, is_stop, is_extra }| {
                    // The words of a name all count: some names have no others.
                    if (is_stop && part != NAME) || *length >= counted {
                        return;
                    }
                    seen.push((term, part, if is_extra { EXTRA } else { 1.0 }));
                    if !is_extra {
                        *length += 1;
                        if *length <= kept {
                            words.push(term);
                        }
                    }
                });
            }
            // Who says the same over and over says it once.
            let mut own = seen.split_off(start);
            own.sort_unstable_by_key(|it| it.0);
            let distinct = own.chunk_by(|a, b| a.0 == b.0).count();
            if distinct * repeats < (*length).min(kept) {
                own.dedup_by_key(|it| it.0);
                let mut once = HashSet::new();
                words.retain(|it| once.insert(*it));
            }
            seen.extend(own);
        }
        seen.sort_by_key(|it| it.0);
        for occurrences in seen.chunk_by(|a, b| a.0 == b.0) {
            let weights = occurrences.iter().map(|it| weight(it.1, it.2, document.lengths[it.1]));
            let impact = saturated(weights.sum()) * 255.0;
            document.impacts.push((occurrences[0].0, impact.round().max(1.0) as u8));
        }
        document
    }
}

/// What a term weighs that stands `count` times in a part of this length.
pub(crate) fn weight(part: usize, count: f32, length: usize) -> f32 {
    let Part { weight, by_length, usual, .. } = WEIGHTS[part];
    count * weight / (1.0 - by_length + by_length * length as f32 / usual)
}

/// What a weight counts, from 0 to 1: the more of a word there is, the less one more adds.
pub(crate) fn saturated(weight: f32) -> f32 {
    weight / (SATURATION + weight)
}
