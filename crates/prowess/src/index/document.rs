//! What the index knows about one skill.

use super::{
    analyse::{Analyser, NumberedTerm},
    inverted::Key,
};
use crate::read::scan_cache::digest;

/// The text of a skill, part by part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'s> {
    pub(crate) name: &'s str,
    pub(crate) description: &'s [&'s str],
    pub(crate) tags: &'s [&'s str],
    pub(crate) body: &'s str,
}

impl Text<'_> {
    /// What tells it from other texts.
    pub(crate) fn key(self) -> Key {
        let lists = [self.description, self.tags].map(|it| it.join("\0"));
        digest(&[self.name, &lists[0], &lists[1], self.body].map(str::as_bytes))
    }
}

/// The parts of a skill, in the order in which a [`Document`] holds them.
pub(crate) const NAME: usize = 0;
pub(crate) const DESCRIPTION: usize = 1;
pub(crate) const BODY: usize = 3;
pub(crate) const PARTS: usize = 4;

/// How much the words of a part count, and how far a long one is held against them.
#[derive(Debug, Clone, Copy)]
struct FieldWeight {
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
const WEIGHTS: [FieldWeight; PARTS] = [
    FieldWeight { weight: 5.0, by_length: 0.3, usual: 3.0, counted: 32, kept: 32, repeats: 32 },
    FieldWeight { weight: 5.0, by_length: 0.25, usual: 26.0, counted: 256, kept: 256, repeats: 3 },
    FieldWeight { weight: 3.0, by_length: 0.5, usual: 6.0, counted: 64, kept: 64, repeats: 2 },
    FieldWeight {
        weight: 1.0,
        by_length: 0.75,
        usual: 560.0,
        counted: 16_384,
        kept: 1024,
        repeats: 8,
    },
];
/// How soon more of the same word stops counting.
const SATURATION: f32 = 2.0;
/// How much a term counts that stands beside the words of the text.
const EXTRA: f32 = 0.5;

/// The words of a skill in their order, part by part, and what each of them counts; terms by the
/// numbers that an [`Analyser`] gave them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    /// What its text is told from others by.
    pub(crate) key: Key,
    pub(crate) words: Vec<u32>,
    /// How many words of each part there are.
    pub(crate) kept: [usize; PARTS],
    /// How many words each part has, those that are not kept included.
    pub(crate) lengths: [usize; PARTS],
    /// Each distinct term.
    pub(crate) terms: Vec<u32>,
    /// What each of them counts, from 1 to 255.
    pub(crate) impacts: Vec<u8>,
}

impl Document {
    pub(crate) fn new(text: Text<'_>, analyser: &mut Analyser, tally: &mut Tally) -> Self {
        let mut document = Self::default();
        let mut words = Vec::new();
        let texts = [&[text.name][..], text.description, text.tags, &[text.body]];
        for (part, texts) in texts.into_iter().enumerate() {
            let FieldWeight { counted, kept, repeats, .. } = WEIGHTS[part];
            let (start, mut length) = (words.len(), 0);
            for text in texts {
                analyser.analyse(text, |NumberedTerm { number, is_stop, is_extra }| {
                    // The words of a name all count: some names have no others.
                    if (is_stop && part != NAME) || length >= counted {
                        return;
                    }
                    tally.count(number, if is_extra { EXTRA } else { 1.0 });
                    if !is_extra {
                        length += 1;
                        if length <= kept {
                            words.push(number);
                        }
                    }
                });
            }
            // Who says the same over and over says it once, and not in any order.
            let is_repeating = tally.counted.len() * repeats < length.min(kept);
            if is_repeating {
                words.truncate(start);
            }
            let most = if is_repeating { 1.0 } else { f32::INFINITY };
            tally.weigh(|count| weight(part, count.min(most), length));
            (document.kept[part], document.lengths[part]) = (words.len() - start, length);
        }
        words.shrink_to_fit();
        let impact = |weight| (saturated(weight) * 255.0).round().max(1.0) as u8;
        let (terms, impacts) = tally.take().map(|(term, weight)| (term, impact(weight))).unzip();
        Self { words, terms, impacts, ..document }
    }
}

/// What terms count in the document at hand, by their numbers; empty between documents.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    terms: Vec<TermWeight>,
    /// Those that were counted in this part, and those that were weighed in this document.
    counted: Vec<u32>,
    weighed: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct TermWeight {
    /// How often it stands in this part.
    count: f32,
    /// What it weighs in the parts before.
    weight: f32,
}

impl Tally {
    fn count(&mut self, number: u32, times: f32) {
        if self.terms.len() <= number as usize {
            self.terms.resize((number as usize + 1).next_power_of_two(), TermWeight::default());
        }
        let term = &mut self.terms[number as usize];
        if term.count == 0.0 {
            self.counted.push(number);
        }
        term.count += times;
    }

    /// Ends a part: what was counted is weighed.
    fn weigh(&mut self, weigh: impl Fn(f32) -> f32) {
        for number in self.counted.drain(..) {
            let TermWeight { count, weight } = &mut self.terms[number as usize];
            if *weight == 0.0 {
                self.weighed.push(number);
            }
            *weight += weigh(std::mem::take(count));
        }
    }

    /// Ends the document: each of its terms with its weight.
    fn take(&mut self) -> impl Iterator<Item = (u32, f32)> {
        let Self { terms, weighed, .. } = self;
        weighed.drain(..).map(|it| (it, std::mem::take(&mut terms[it as usize].weight)))
    }
}

/// What a term weighs that stands `count` times in a part of this length.
pub(crate) fn weight(part: usize, count: f32, length: usize) -> f32 {
    let FieldWeight { weight, by_length, usual, .. } = WEIGHTS[part];
    count * weight / (1.0 - by_length + by_length * length as f32 / usual)
}

/// What a weight counts, from 0 to 1: the more of a word there is, the less one more adds.
pub(crate) fn saturated(weight: f32) -> f32 {
    weight / (SATURATION + weight)
}
