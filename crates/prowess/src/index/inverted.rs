//! The index: the terms that occur in each skill.

use std::fmt;

use super::{
    document::{BODY, DESCRIPTION, NAME, PARTS},
    packed,
    words::Term,
};
pub(crate) use crate::read::source::Key;

/// The postings of each term, and the words of every document in order.
///
/// It is one byte buffer, so that a cached index is used as it was read. Numbers are little-endian.
/// Invalid bytes give wrong answers, but no panic: a cached index need not be validated before it
/// is used.
#[derive(Default)]
pub(crate) struct Index {
    /// The end offset of each of the [`Sections`], followed by the sections.
    bytes: Vec<u8>,
    ends: [usize; SECTIONS],
}

/// The number of sections.
const SECTIONS: usize = 6;
/// The size of the table of end offsets, in bytes.
const TABLE: usize = 8 * SECTIONS;
/// The maximum number of units for the words of a document; no document stores more words.
const MOST_UNITS: u32 = 4096;

/// The parts of an index, in the order in which they are stored.
#[derive(Debug, Default)]
pub(super) struct Sections {
    /// The key of each document's text; only distinct where the index is to be cached.
    pub(super) keys: Vec<Key>,
    /// The start of each document's words; one more at the end.
    pub(super) word_starts: Vec<u32>,
    /// The term of each id: the common ones, sorted, and then the others, sorted.
    pub(super) terms: Vec<Term>,
    /// The start of each id's postings; for a term of one document that document, with [`ALONE`].
    pub(super) starts: Vec<u32>,
    /// For each id the number of documents in which it occurs, then each document as the difference
    /// from the one before, with its impact.
    pub(super) postings: Vec<u8>,
    /// For each document the lengths of its parts and the ids of its words.
    pub(super) words: Vec<u16>,
}

/// Appends a section to a buffer.
type WriteSection<'s> = &'s dyn Fn(&mut Vec<u8>);

impl From<Sections> for Index {
    fn from(sections: Sections) -> Self {
        let Sections { keys, word_starts, terms, starts, postings, words } = sections;
        let numbers = word_starts.len() + terms.len() + starts.len();
        let size = 16 * keys.len() + 4 * numbers + postings.len() + 2 * words.len();
        let mut bytes = Vec::with_capacity(TABLE + size);
        bytes.resize(TABLE, 0);
        let mut ends = [0; SECTIONS];
        let put: [WriteSection<'_>; SECTIONS] = [
            &|it| it.extend_from_slice(keys.as_flattened()),
            &|it| it.extend(word_starts.iter().flat_map(|it| it.to_le_bytes())),
            &|it| it.extend(terms.iter().flat_map(|it| it.0.to_le_bytes())),
            &|it| it.extend(starts.iter().flat_map(|it| it.to_le_bytes())),
            &|it| it.extend_from_slice(&postings),
            &|it| it.extend(words.iter().flat_map(|it| it.to_le_bytes())),
        ];
        for (section, put) in put.into_iter().enumerate() {
            put(&mut bytes);
            ends[section] = bytes.len();
            bytes[8 * section..][..8].copy_from_slice(&(ends[section] as u64).to_le_bytes());
        }
        Self { bytes, ends }
    }
}

impl Index {
    /// Loads a cached index; `None` if the bytes are not one.
    pub(crate) fn from_cached(bytes: Vec<u8>) -> Option<Self> {
        let mut ends = [0; SECTIONS];
        let mut start = TABLE;
        for (end, own) in ends.iter_mut().zip(bytes.get(..TABLE)?.as_chunks().0) {
            *end = usize::try_from(u64::from_le_bytes(*own)).ok()?;
            if *end < start || *end > bytes.len() {
                return None;
            }
            start = *end;
        }
        let index = Self { bytes, ends };
        let starts = index.word_starts().iter().map(|it| number(*it));
        let lengths = starts.clone().zip(starts.skip(1)).map(|(from, to)| to.checked_sub(from));
        let is_sound = index.keys().len() == index.len()
            && index.id_count() == index.starts().len()
            && lengths.into_iter().all(|it| it.is_some_and(|it| it <= MOST_UNITS));
        is_sound.then_some(index)
    }

    /// Returns the bytes that [`from_cached`](Self::from_cached) accepts.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of documents.
    pub(crate) fn len(&self) -> usize {
        self.word_starts().len().saturating_sub(1)
    }

    /// Returns the number of ids.
    pub(crate) fn id_count(&self) -> usize {
        self.terms().len()
    }

    pub(crate) fn id(&self, term: Term) -> Option<u32> {
        let (common, rare) = self.terms().split_at(self.id_count().min(COMMON));
        let find = |terms: &[[u8; 4]]| terms.binary_search_by_key(&term.0, |it| number(*it));
        let at = find(common).or_else(|_| find(rare).map(|at| common.len() + at));
        at.ok().map(|it| it as u32)
    }

    /// Returns the term of an id.
    pub(crate) fn term(&self, id: u32) -> Option<Term> {
        self.terms().get(id as usize).map(|it| Term(number(*it)))
    }

    /// Returns the number of documents in which a term occurs.
    pub(crate) fn count(&self, id: u32) -> u32 {
        match self.start(id) {
            Some(start) if start & ALONE != 0 => 1,
            Some(start) => packed::decode(&mut self.postings_from(start)).unwrap_or(0),
            None => 0,
        }
    }

    /// Passes each document of a term to `take`, with the term's impact.
    #[inline]
    pub(crate) fn postings(&self, id: u32, mut take: impl FnMut(u32, u8)) {
        let Some(start) = self.start(id) else { return };
        if start & ALONE != 0 {
            return take((start & !ALONE) >> 8, start as u8);
        }
        let mut packed = self.postings_from(start);
        let count = packed::decode(&mut packed).unwrap_or(0);
        let mut document = 0_u32;
        for _ in 0..count {
            let Some(distance) = packed::decode(&mut packed) else { return };
            let Some((impact, rest)) = packed.split_first() else { return };
            packed = rest;
            document = document.wrapping_add(distance);
            take(document, *impact);
        }
    }

    /// Returns the words of a document in order.
    pub(crate) fn words(&self, document: u32) -> Words<'_> {
        let at = |at: usize| self.word_starts().get(at).map_or(0, |it| number(*it) as usize);
        let own = at(document as usize)..at(document as usize + 1);
        let mut words = Numbers(self.section(5).as_chunks().0.get(own).unwrap_or_default());
        let mut numbers = || std::array::from_fn(|_| words.next().unwrap_or(0) as usize);
        Words { stored: numbers(), lengths: numbers(), words }
    }

    /// Returns the key of each document's text.
    pub(crate) fn keys(&self) -> &[Key] {
        self.section(0).as_chunks().0
    }

    /// Returns its size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn section(&self, number: usize) -> &[u8] {
        let start = if number == 0 { TABLE } else { self.ends[number - 1] };
        self.bytes.get(start..self.ends[number]).unwrap_or_default()
    }

    fn word_starts(&self) -> &[[u8; 4]] {
        self.section(1).as_chunks().0
    }

    fn terms(&self) -> &[[u8; 4]] {
        self.section(2).as_chunks().0
    }

    fn starts(&self) -> &[[u8; 4]] {
        self.section(3).as_chunks().0
    }

    fn start(&self, id: u32) -> Option<u32> {
        self.starts().get(id as usize).map(|it| number(*it))
    }

    fn postings_from(&self, start: u32) -> &[u8] {
        self.section(4).get(start as usize..).unwrap_or_default()
    }
}

fn number(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes)
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({} documents, {} bytes)", self.len(), self.bytes())
    }
}

/// The bit that tells a document, with the impact in its last byte, from the start of postings.
/// Half of all terms occur in one document, and so need no postings.
pub(super) const ALONE: u32 = 1 << 31;

/// The words of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'i> {
    /// The number of words of each part that follow.
    pub(crate) stored: [usize; PARTS],
    /// The number of words in each part.
    pub(crate) lengths: [usize; PARTS],
    /// The ids of the words.
    pub(crate) words: Numbers<'i>,
}

impl<'i> Words<'i> {
    /// Returns the words of the name.
    pub(crate) fn name(self) -> impl Iterator<Item = u32> + Clone + 'i {
        self.words.take(self.stored[NAME])
    }

    /// Returns the words of the description.
    pub(crate) fn description(self) -> impl Iterator<Item = u32> + 'i {
        self.words.skip(self.stored[NAME]).take(self.stored[DESCRIPTION])
    }

    /// Returns the words of name, description and tags.
    pub(crate) fn described(self) -> impl Iterator<Item = u32> + 'i {
        self.words.take(self.stored[..BODY].iter().sum())
    }
}

/// A sequence of numbers: one unit for a small one, two for others, of which the first is marked by
/// its high bits. Nearly all are small, so that reading is fast.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'i>(&'i [[u8; 2]]);

/// The number of small ids.
pub(crate) const COMMON: usize = HIGH as usize;
/// The first unit that is the high part of a number.
const HIGH: u16 = 0xF800;
/// The largest number; larger ones are clamped to it.
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

/// A set of ids to look for among [`Numbers`], compact enough to be tested all the time: one bit
/// for each small id, and shared bits for the others.
#[derive(Debug)]
pub(crate) struct Sieve(Box<[u64; 2 * UNITS / 64]>);

const UNITS: usize = 1 << 16;
/// The number of units that are skipped at once.
pub(crate) const RUN: usize = 8;

impl Default for Sieve {
    fn default() -> Self {
        let mut sieve = Self(Box::new([0; 2 * UNITS / 64]));
        // The first unit of a two-unit number must always be looked at.
        sieve.0[usize::from(HIGH) / 64..UNITS / 64].fill(u64::MAX);
        sieve
    }
}

impl Sieve {
    pub(crate) fn insert(&mut self, id: u32) {
        let place = Self::bit_index(id);
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(crate) fn remove(&mut self, id: u32) {
        let place = Self::bit_index(id);
        self.0[place / 64] &= !(1 << (place % 64));
    }

    /// Whether an id may be in the set.
    #[inline]
    pub(crate) fn has(&self, id: u32) -> bool {
        self.bit(Self::bit_index(id)) & 1 == 1
    }

    fn bit_index(id: u32) -> usize {
        if id < u32::from(HIGH) { id as usize } else { UNITS + id as usize % UNITS }
    }

    fn bit(&self, place: usize) -> u64 {
        self.0[place / 64] >> (place % 64)
    }

    fn has_any(&self, units: &[[u8; 2]; RUN]) -> bool {
        let any =
            units.iter().fold(0, |any, it| any | self.bit(usize::from(u16::from_le_bytes(*it))));
        any & 1 == 1
    }
}

impl Numbers<'_> {
    /// Returns the maximum number of numbers.
    pub(crate) fn max_len(&self) -> usize {
        self.0.len()
    }

    /// Skips runs of numbers that are not in the sieve, at most `most` numbers; returns how many.
    #[inline]
    pub(crate) fn skip_unlisted(&mut self, most: usize, sieve: &Sieve) -> usize {
        let runs = self.0.as_chunks().0.iter().take(most / RUN);
        let passed = RUN * runs.take_while(|it| !sieve.has_any(it)).count();
        self.0 = &self.0[passed..];
        passed
    }
}

impl Iterator for Numbers<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let (unit, rest) = self.0.split_first()?;
        self.0 = rest;
        let unit = u16::from_le_bytes(*unit);
        if unit < HIGH {
            return Some(u32::from(unit));
        }
        let (low, rest) = rest.split_first()?;
        self.0 = rest;
        Some(u32::from(unit - HIGH) << 16 | u32::from(u16::from_le_bytes(*low)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_is_never_passed() {
        let ids: Vec<u32> = (0..5000).map(|it| it * 7919 % 100_003).collect();
        let mut units = Vec::new();
        ids.iter().for_each(|it| Numbers::put(&mut units, *it));
        let units: Vec<[u8; 2]> = units.into_iter().map(u16::to_le_bytes).collect();
        for wanted in [ids[0], ids[77], ids[4999], 63_487, 63_488, 99_999] {
            let mut sieve = Sieve::default();
            sieve.insert(wanted);
            let (mut numbers, mut at, mut found) = (Numbers(&units), 0, Vec::new());
            loop {
                at += numbers.skip_unlisted(ids.len() - at, &sieve);
                let Some(id) = numbers.next() else { break };
                assert_eq!(id, ids[at]);
                found.extend((sieve.has(id) && id == wanted).then_some(at));
                at += 1;
            }
            assert_eq!(
                found,
                (0..ids.len()).filter(|at: &usize| ids[*at] == wanted).collect::<Vec<_>>()
            );
            sieve.remove(wanted);
            assert!(!sieve.has(wanted));
        }
    }
}
