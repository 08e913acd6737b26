//! One skill as the index sees it.

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
    /// Returns a digest that identifies the text.
    pub(crate) fn key(self) -> Key {
        let lists = [self.description, self.tags].map(|it| it.join("\0"));
        digest(&[self.name, &lists[0], &lists[1], self.body].map(str::as_bytes))
    }
}

/// The parts of a skill, in the order in which a [`Document`] stores them.
pub(crate) const NAME: usize = 0;
pub(crate) const DESCRIPTION: usize = 1;
pub(crate) const BODY: usize = 3;
pub(crate) const PARTS: usize = 4;

/// The weight of the words of a part, and the penalty for its length.
#[derive(Debug, Clone, Copy)]
struct FieldWeight {
    weight: f32,
    /// The influence of the length, from 0 to 1.
    by_length: f32,
    /// The usual number of words in such a part. It is fixed, so that a skill scores the same in
    /// every library.
    usual: f32,
    /// The maximum number of words that count.
    counted: usize,
    /// The maximum number of words that are stored in order.
    stored: usize,
    /// A part is repetitive if fewer than one in this many words is distinct.
    repeats: usize,
}

/// The weights, tuned for retrieval over real skills; their optimum is flat.
const WEIGHTS: [FieldWeight; PARTS] = [
    FieldWeight { weight: 5.0, by_length: 0.3, usual: 3.0, counted: 32, stored: 32, repeats: 32 },
    FieldWeight {
        weight: 5.0,
        by_length: 0.25,
        usual: 26.0,
        counted: 256,
        stored: 256,
        repeats: 3,
    },
    FieldWeight { weight: 3.0, by_length: 0.5, usual: 6.0, counted: 64, stored: 64, repeats: 2 },
    FieldWeight {
        weight: 1.0,
        by_length: 0.75,
        usual: 560.0,
        counted: 16_384,
        stored: 1024,
        repeats: 8,
    },
];
/// The weight that maps to one half; the smaller, the sooner repetitions of a word stop counting.
const SATURATION: f32 = 2.0;
/// The weight of an extra term, next to the words of the text.
const EXTRA: f32 = 0.5;

/// The words of a skill in order, part by part, and the impact of each; terms are the numbers that
/// an [`Analyser`] gave them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    /// The key that identifies its text.
    pub(crate) key: Key,
    pub(crate) words: Vec<u32>,
    /// The number of words stored of each part.
    pub(crate) stored: [usize; PARTS],
    /// The number of words in each part, including those that are not stored.
    pub(crate) lengths: [usize; PARTS],
    /// The distinct terms.
    pub(crate) terms: Vec<u32>,
    /// The impact of each of them, from 1 to 255.
    pub(crate) impacts: Vec<u8>,
}

impl Document {
    pub(crate) fn new(text: Text<'_>, analyser: &mut Analyser, tally: &mut Tally) -> Self {
        let mut document = Self::default();
        let mut words = Vec::new();
        let texts = [&[text.name][..], text.description, text.tags, &[text.body]];
        for (part, texts) in texts.into_iter().enumerate() {
            let FieldWeight { counted, stored, repeats, .. } = WEIGHTS[part];
            let (start, mut length) = (words.len(), 0);
            for text in texts {
                analyser.analyse(text, |NumberedTerm { number, is_stop, is_extra }| {
                    // All words of a name count: some names have only stop words.
                    if (is_stop && part != NAME) || length >= counted {
                        return;
                    }
                    tally.count(number, if is_extra { EXTRA } else { 1.0 });
                    if !is_extra {
                        length += 1;
                        if length <= stored {
                            words.push(number);
                        }
                    }
                });
            }
            // In a repetitive text each word counts once, and its order is not stored.
            let is_repeating = tally.counted.len() * repeats < length.min(stored);
            if is_repeating {
                words.truncate(start);
            }
            let most = if is_repeating { 1.0 } else { f32::INFINITY };
            tally.weigh(|count| weight(part, count.min(most), length));
            (document.stored[part], document.lengths[part]) = (words.len() - start, length);
        }
        words.shrink_to_fit();
        let (terms, impacts) = tally
            .take()
            .map(|(term, weight)| (term, (saturated(weight) * 255.0).round().max(1.0) as u8))
            .unzip();
        Self { words, terms, impacts, ..document }
    }
}

/// The weights of terms in the current document, by their numbers; empty between documents.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    terms: Vec<TermWeight>,
    /// The terms counted in this part, and those weighted in this document.
    counted: Vec<u32>,
    weighed: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct TermWeight {
    /// The number of occurrences in this part.
    count: f32,
    /// The weight from earlier parts.
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

    /// Ends a part: converts counts to weights.
    fn weigh(&mut self, weigh: impl Fn(f32) -> f32) {
        for number in self.counted.drain(..) {
            let TermWeight { count, weight } = &mut self.terms[number as usize];
            if *weight == 0.0 {
                self.weighed.push(number);
            }
            *weight += weigh(std::mem::take(count));
        }
    }

    /// Ends the document: returns each of its terms with its weight.
    fn take(&mut self) -> impl Iterator<Item = (u32, f32)> {
        let Self { terms, weighed, .. } = self;
        weighed.drain(..).map(|it| (it, std::mem::take(&mut terms[it as usize].weight)))
    }
}

/// Returns the weight of a term that occurs `count` times in a part of this length.
pub(crate) fn weight(part: usize, count: f32, length: usize) -> f32 {
    let FieldWeight { weight, by_length, usual, .. } = WEIGHTS[part];
    count * weight / (1.0 - by_length + by_length * length as f32 / usual)
}

/// Maps a weight to a range from 0 to 1: the more often a word occurs, the less another occurrence
/// adds.
pub(crate) fn saturated(weight: f32) -> f32 {
    weight / (SATURATION + weight)
}
