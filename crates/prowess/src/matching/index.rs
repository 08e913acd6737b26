//! The index: which terms stand in which skills.

use std::{
    collections::HashMap,
    fmt,
    hash::BuildHasherDefault,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::{
    document::{DESCRIPTION, Document, NAME, PARTS, Text},
    words::{Analyser, AsIs, Term},
};

/// Which terms stand in which documents, and the words of every document in their order.
#[derive(Default)]
pub(crate) struct Index {
    /// Every term, sorted, with its id.
    terms: Vec<(Term, u32)>,
    /// Where the postings of each id begin; one more at the end.
    starts: Vec<u32>,
    /// For each id how many documents it stands in, then each of them as the distance from the one
    /// before, with its impact.
    postings: Vec<u8>,
    /// Where the words of each document begin; one more at the end.
    word_starts: Vec<u32>,
    /// For each document the lengths of its parts and the ids of its words.
    words: Vec<u8>,
}

/// How many documents a thread takes at a time.
const BATCH: usize = 64;

impl Index {
    /// Indexes `count` documents, several at a time; `with` gets each text to index.
    pub(crate) fn new(count: usize, with: impl Fn(usize, &mut dyn FnMut(Text<'_>)) + Sync) -> Self {
        let threads = thread::available_parallelism()
            .map_or(1, |it| it.get())
            .min(count.div_ceil(BATCH))
            .max(1);
        let next = AtomicUsize::new(0);
        let vocabulary = Mutex::new(Vocabulary::default());
        let worker = || {
            let mut analyser = Analyser::default();
            let mut ids: HashMap<Term, u32, BuildHasherDefault<AsIs>> = HashMap::default();
            let mut batches = Vec::new();
            loop {
                let from = next.fetch_add(1, Ordering::Relaxed) * BATCH;
                if from >= count {
                    return batches;
                }
                let mut batch = Batch { from, ..Batch::default() };
                for at in from..count.min(from + BATCH) {
                    let mut document = Document::default();
                    with(at, &mut |text| document = Document::new(text, &mut analyser));
                    let mut id = |term: Term| {
                        *ids.entry(term).or_insert_with(|| {
                            vocabulary.lock().unwrap_or_else(PoisonError::into_inner).id(term)
                        })
                    };
                    batch.add(&document, &mut id);
                }
                batches.push(batch);
            }
        };
        let mut batches: Vec<Batch> = if threads == 1 {
            worker()
        } else {
            thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
                workers.into_iter().flat_map(|it| it.join().unwrap_or_default()).collect()
            })
        };
        batches.sort_unstable_by_key(|it| it.from);
        Self::merged(batches, vocabulary.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn merged(batches: Vec<Batch>, vocabulary: Vocabulary) -> Self {
        let ids = vocabulary.ids.len();
        let mut counts = vec![0_u32; ids];
        let mut sizes = vec![0_u32; ids + 1];
        let mut last = vec![0_u32; ids];
        for_each(&batches, |document, id, _| {
            counts[id] += 1;
            sizes[id] += length(document - last[id]) + 1;
            last[id] = document;
        });
        for (size, count) in sizes.iter_mut().zip(&counts) {
            *size += length(*count);
        }
        let starts = starts(sizes);
        let mut postings = vec![0; starts[ids] as usize];
        let mut ends = starts.clone();
        for (end, count) in ends.iter_mut().zip(&counts) {
            *end += put(&mut postings[*end as usize..], *count);
        }
        last.fill(0);
        for_each(&batches, |document, id, impact| {
            let mut end = ends[id];
            end += put(&mut postings[end as usize..], document - last[id]);
            postings[end as usize] = impact;
            ends[id] = end + 1;
            last[id] = document;
        });
        let mut sizes: Vec<u32> = batches.iter().flat_map(|it| &it.sizes).copied().collect();
        sizes.push(0);
        let words = batches.iter().flat_map(|it| &it.words).copied().collect();
        let mut terms: Vec<(Term, u32)> = vocabulary.ids.into_iter().collect();
        terms.sort_unstable();
        Self { terms, starts, postings, word_starts: self::starts(sizes), words }
    }

    /// How many documents there are.
    pub(crate) fn len(&self) -> usize {
        self.word_starts.len().saturating_sub(1)
    }

    /// How many ids there are.
    pub(crate) fn ids(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn id(&self, term: Term) -> Option<u32> {
        let at = self.terms.binary_search_by_key(&term, |it| it.0).ok()?;
        Some(self.terms[at].1)
    }

    /// The term of every id.
    pub(crate) fn terms_by_id(&self) -> Vec<Term> {
        let mut terms = vec![Term(0); self.terms.len()];
        for (term, id) in &self.terms {
            terms[*id as usize] = *term;
        }
        terms
    }

    /// In how many documents a term stands.
    pub(crate) fn count(&self, id: u32) -> u32 {
        self.stream(id).next().unwrap_or(0)
    }

    /// Gives the documents of a term, each with the term's impact.
    #[inline]
    pub(crate) fn postings(&self, id: u32, mut take: impl FnMut(u32, u8)) {
        let mut stream = self.stream(id);
        stream.next();
        let mut document = 0;
        while let Some(distance) = stream.next() {
            let Some((impact, rest)) = stream.0.split_first() else { return };
            stream.0 = rest;
            document += distance;
            take(document, *impact);
        }
    }

    fn stream(&self, id: u32) -> Numbers<'_> {
        let id = id as usize;
        Numbers(&self.postings[self.starts[id] as usize..self.starts[id + 1] as usize])
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
            + self.words.len()
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({} documents, {} bytes)", self.len(), self.bytes())
    }
}

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

/// Numbers in a row, seven bits a byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'i>(&'i [u8]);

impl Iterator for Numbers<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u32::from(byte & 0x7F) << shift;
            if *byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }
}

/// Ids in the order in which terms are first seen, so that common terms get small ones.
#[derive(Debug, Default)]
struct Vocabulary {
    ids: HashMap<Term, u32, BuildHasherDefault<AsIs>>,
}

impl Vocabulary {
    fn id(&mut self, term: Term) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry(term).or_insert(next)
    }
}

/// Some documents that follow each other, packed.
#[derive(Debug, Default)]
struct Batch {
    from: usize,
    /// How many terms each document has.
    counts: Vec<u32>,
    /// For each term of each document its id and impact.
    impacts: Vec<(u32, u8)>,
    sizes: Vec<u32>,
    words: Vec<u8>,
}

impl Batch {
    fn add(&mut self, document: &Document, id: &mut impl FnMut(Term) -> u32) {
        let before = self.words.len();
        let kept = document.parts.iter().map(|it| it.len() as u32);
        let lengths = document.lengths.iter().map(|it| *it as u32);
        let words = document.parts.iter().flatten().map(|term| id(*term));
        for number in kept.chain(lengths).chain(words) {
            let mut bytes = [0; 5];
            let length = put(&mut bytes, number) as usize;
            self.words.extend_from_slice(&bytes[..length]);
        }
        self.sizes.push((self.words.len() - before) as u32);
        self.counts.push(document.impacts.len() as u32);
        self.impacts.extend(document.impacts.iter().map(|(term, impact)| (id(*term), *impact)));
    }
}

/// Gives every posting, document by document.
fn for_each(batches: &[Batch], mut take: impl FnMut(u32, usize, u8)) {
    for batch in batches {
        let mut rest = &batch.impacts[..];
        for (at, count) in batch.counts.iter().enumerate() {
            let (own, after) = rest.split_at(*count as usize);
            own.iter()
                .for_each(|(id, impact)| take((batch.from + at) as u32, *id as usize, *impact));
            rest = after;
        }
    }
}

/// Where each of some texts begins that follow each other, by their sizes.
fn starts(mut sizes: Vec<u32>) -> Vec<u32> {
    let mut start = 0;
    for size in &mut sizes {
        start += std::mem::replace(size, start);
    }
    sizes
}

/// How many bytes a number takes.
fn length(value: u32) -> u32 {
    (32 - (value | 1).leading_zeros()).div_ceil(7)
}

/// Writes a number and says how many bytes it took.
fn put(bytes: &mut [u8], mut value: u32) -> u32 {
    let mut at = 0;
    while value >= 0x80 {
        bytes[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    bytes[at] = value as u8;
    at as u32 + 1
}
