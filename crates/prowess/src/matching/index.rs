//! The index: which terms stand in which skills.

use std::fmt;

use super::{
    document::{DESCRIPTION, NAME, PARTS},
    packed,
    words::Term,
};

/// Which terms stand in which documents, and the words of every document in their order.
#[derive(Default)]
pub(crate) struct Index {
    /// The term of every id: the common ones, sorted, and then the others, sorted.
    pub(super) terms: Vec<Term>,
    /// Where the postings of each id begin; for a term of one document that one, [`ALONE`].
    pub(super) starts: Vec<u32>,
    /// For each id how many documents it stands in, then each of them as the distance from the one
    /// before, with its impact.
    pub(super) postings: Vec<u8>,
    /// Where the words of each document begin; one more at the end.
    pub(super) word_starts: Vec<u32>,
    /// For each document the lengths of its parts and the ids of its words.
    pub(super) words: Box<[u16]>,
}

impl Index {
    /// How many documents there are.
    pub(crate) fn len(&self) -> usize {
        self.word_starts.len().saturating_sub(1)
    }

    /// How many ids there are.
    pub(crate) fn ids(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn id(&self, term: Term) -> Option<u32> {
        let (common, rare) = self.terms.split_at(self.terms.len().min(COMMON));
        let at = common
            .binary_search(&term)
            .or_else(|_| rare.binary_search(&term).map(|at| common.len() + at));
        at.ok().map(|it| it as u32)
    }

    /// The term of an id.
    pub(crate) fn term(&self, id: u32) -> Option<Term> {
        self.terms.get(id as usize).copied()
    }

    /// In how many documents a term stands.
    pub(crate) fn count(&self, id: u32) -> u32 {
        match self.starts[id as usize] {
            start if start & ALONE != 0 => 1,
            start => packed::take(&mut &self.postings[start as usize..]).unwrap_or(0),
        }
    }

    /// Gives the documents of a term, each with the term's impact.
    #[inline]
    pub(crate) fn postings(&self, id: u32, mut take: impl FnMut(u32, u8)) {
        let start = self.starts[id as usize];
        if start & ALONE != 0 {
            return take((start & !ALONE) >> 8, start as u8);
        }
        let mut packed = &self.postings[start as usize..];
        let count = packed::take(&mut packed).unwrap_or(0);
        let mut document = 0;
        for _ in 0..count {
            let Some(distance) = packed::take(&mut packed) else { return };
            let Some((impact, rest)) = packed.split_first() else { return };
            packed = rest;
            document += distance;
            take(document, *impact);
        }
    }

    /// The words of a document in their order.
    pub(crate) fn words(&self, document: u32) -> Words<'_> {
        let at = document as usize;
        let own = self.word_starts[at] as usize..self.word_starts[at + 1] as usize;
        let mut words = Numbers(&self.words[own]);
        let mut numbers = || std::array::from_fn(|_| words.next().unwrap_or(0) as usize);
        Words { kept: numbers(), lengths: numbers(), words }
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.terms[..])
            + size_of_val(&self.starts[..])
            + size_of_val(&self.word_starts[..])
            + self.postings.len()
            + size_of_val(&*self.words)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({} documents, {} bytes)", self.len(), self.bytes())
    }
}

/// The bit that tells a document, with the impact in its last byte, from the start of postings.
/// Half of all terms stand in one document, and so take no room for postings.
pub(super) const ALONE: u32 = 1 << 31;

/// The words of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'i> {
    /// How many words of each part follow.
    pub(crate) kept: [usize; PARTS],
    /// How many words each part has.
    pub(crate) lengths: [usize; PARTS],
    /// Their ids.
    pub(crate) words: Numbers<'i>,
}

impl<'i> Words<'i> {
    /// The words of the name.
    pub(crate) fn name(self) -> impl Iterator<Item = u32> + Clone + 'i {
        self.words.take(self.kept[NAME])
    }

    /// The words of the description.
    pub(crate) fn description(self) -> impl Iterator<Item = u32> + 'i {
        self.words.skip(self.kept[NAME]).take(self.kept[DESCRIPTION])
    }
}

/// Numbers in a row: one unit for a small one, two for others, of which the first says so by its
/// high bits. Nearly all are small, so that reading them is fast.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'i>(&'i [u16]);

/// How many ids are small.
pub(crate) const COMMON: usize = HIGH as usize;
/// Where the units begin that are the high part of a number.
const HIGH: u16 = 0xF800;
/// The largest number; whatever is larger is taken for it.
const LARGEST: u32 = ((u16::MAX - HIGH) as u32) << 16 | 0xFFFF;

impl Numbers<'_> {
    pub(crate) fn put(units: &mut Vec<u16>, number: u32) {
        if number < u32::from(HIGH) {
            units.push(number as u16);
        } else {
            let number = number.min(LARGEST);
            units.extend([HIGH + (number >> 16) as u16, number as u16]);
        }
    }
}

impl Iterator for Numbers<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let (unit, rest) = self.0.split_first()?;
        self.0 = rest;
        if *unit < HIGH {
            return Some(u32::from(*unit));
        }
        let (low, rest) = rest.split_first()?;
        self.0 = rest;
        Some(u32::from(*unit - HIGH) << 16 | u32::from(*low))
    }
}
