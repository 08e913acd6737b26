//! From text to numbers: what takes time is done once for each distinct chunk.

use std::{collections::HashMap, hash::BuildHasherDefault};

use super::words::{AsIs, Found, Term, chunks, hash, terms};

/// Remembers what became of every chunk it has seen, and numbers the terms as they come.
#[derive(Debug, Default)]
pub(crate) struct Analyser {
    /// Every term, by its number.
    pub(crate) terms: Vec<Term>,
    numbers: HashMap<Term, u32, BuildHasherDefault<AsIs>>,
    /// Where the terms of each chunk stand in `found`, by its hash.
    known: HashMap<u64, (u32, u32), BuildHasherDefault<AsIs>>,
    found: Vec<Numbered>,
}

/// A term as a chunk has it, by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    pub(crate) is_stop: bool,
    pub(crate) is_extra: bool,
}

impl Analyser {
    /// Gives every term of a text, in order.
    pub(crate) fn analyse(&mut self, text: &str, mut take: impl FnMut(Numbered)) {
        chunks(text, |chunk| {
            let key = hash(chunk.as_bytes());
            let (from, to) = match self.known.get(&key) {
                Some(known) => *known,
                None => self.learn(key, chunk),
            };
            self.found[from as usize..to as usize].iter().copied().for_each(&mut take);
        });
    }

    #[cold]
    fn learn(&mut self, key: u64, chunk: &str) -> (u32, u32) {
        let from = self.found.len() as u32;
        terms(chunk, |Found { term, is_stop, is_extra }, _| {
            let number = *self.numbers.entry(term).or_insert_with(|| {
                self.terms.push(term);
                self.terms.len() as u32 - 1
            });
            self.found.push(Numbered { number, is_stop, is_extra });
        });
        let span = (from, self.found.len() as u32);
        self.known.insert(key, span);
        span
    }
}
