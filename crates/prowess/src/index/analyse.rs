//! Converts text to term numbers; expensive work is done once for each distinct chunk.

use std::{collections::HashMap, hash::BuildHasherDefault};

use super::words::{ChunkTerm, IdentityHasher, Term, chunks, hash, terms};

/// Caches the terms of every chunk it has seen, and numbers terms in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Analyser {
    /// Every term, by its number.
    pub(crate) terms: Vec<Term>,
    numbers: HashMap<Term, u32, BuildHasherDefault<IdentityHasher>>,
    /// The terms of each chunk, by its hash.
    known: HashMap<u64, ChunkTerms, BuildHasherDefault<IdentityHasher>>,
    /// The terms of chunks that have several.
    several: Vec<NumberedTerm>,
}

/// The terms of a chunk. Most have one, which is stored inline to save a memory access.
#[derive(Debug, Clone, Copy)]
enum ChunkTerms {
    One(NumberedTerm),
    /// The start of its terms in `several`, and their number.
    Several(u32, u16),
}

/// A term of a chunk, by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberedTerm {
    pub(crate) number: u32,
    pub(crate) is_stop: bool,
    pub(crate) is_extra: bool,
}

impl Analyser {
    /// Passes every term of a text to `take`, in order.
    pub(crate) fn analyse(&mut self, text: &str, mut take: impl FnMut(NumberedTerm)) {
        chunks(text, |chunk| {
            let key = hash(chunk.as_bytes());
            let known = match self.known.get(&key) {
                Some(known) => *known,
                None => self.learn(key, chunk),
            };
            match known {
                ChunkTerms::One(it) => take(it),
                ChunkTerms::Several(from, count) => {
                    let several = self.several[from as usize..].iter().copied();
                    several.take(count.into()).for_each(&mut take);
                }
            }
        });
    }

    #[cold]
    fn learn(&mut self, key: u64, chunk: &str) -> ChunkTerms {
        let from = self.several.len();
        terms(chunk, |ChunkTerm { term, is_stop, is_extra }, _| {
            let number = *self.numbers.entry(term).or_insert_with(|| {
                self.terms.push(term);
                self.terms.len() as u32 - 1
            });
            self.several.push(NumberedTerm { number, is_stop, is_extra });
        });
        let known = match self.several[from..] {
            [one] => {
                self.several.pop();
                ChunkTerms::One(one)
            }
            ref several => ChunkTerms::Several(from as u32, several.len() as u16),
        };
        self.known.insert(key, known);
        known
    }
}
