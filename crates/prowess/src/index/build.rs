//! Builds an index of texts, on all cores.
//!
//! Every worker numbers the terms for itself, so that none waits for another. When all texts are
//! read, the terms get their ids: small ids for common terms, so that most words take little space.

use std::{
    cmp::Reverse,
    mem,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    analyse::Analyser,
    document::{Document, Tally, Text},
    inverted::{ALONE, COMMON, Index, Key, Numbers, Sections, Words},
    packed::{encode, encoded_len},
    words::Term,
};
use crate::progress::WorkCounter;

/// The number of documents that a worker takes at a time.
const BATCH: usize = 64;

/// Information about a document before it is indexed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DocumentInput {
    /// The key that identifies its text from now on.
    pub(crate) key: Key,
    /// The document of an older index that has the same text.
    pub(crate) known: Option<u32>,
}

impl Index {
    /// Indexes `count` documents in parallel; `with` passes on each text that is not known from an
    /// `old` index. `None` if nothing has changed since then.
    pub(crate) fn new(
        count: usize,
        old: &Self,
        with: impl Fn(usize, &mut dyn FnMut(Text<'_>)) -> DocumentInput + Sync,
    ) -> Option<Self> {
        let threads = thread::available_parallelism()
            .map_or(1, |it| it.get())
            .min(count.div_ceil(BATCH))
            .max(1);
        let next = AtomicUsize::new(0);
        let counter = WorkCounter::begin();
        counter.expect(count);
        let work = || {
            let (mut analyser, mut tally) = (Analyser::default(), Tally::default());
            let mut results = WorkerResult::default();
            loop {
                let from = next.fetch_add(BATCH, Ordering::Relaxed);
                if from >= count {
                    return WorkerResult { terms: analyser.terms, ..results };
                }
                for at in from..count.min(from + BATCH) {
                    let mut document = Document::default();
                    let DocumentInput { key, known } = with(at, &mut |text| {
                        document = Document::new(text, &mut analyser, &mut tally);
                    });
                    counter.step();
                    match known {
                        Some(place) => results.known.push(IndexedDocument { at, place, key }),
                        None => results.documents.push((at, Document { key, ..document })),
                    }
                }
            }
        };
        let mut results = if threads == 1 {
            vec![work()]
        } else {
            thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                workers.into_iter().map(|it| it.join().unwrap_or_default()).collect()
            })
        };
        let known: Vec<_> = results.iter_mut().flat_map(|it| mem::take(&mut it.known)).collect();
        if count > 0
            && known.len() == count
            && old.len() == count
            && known.iter().all(|it: &IndexedDocument| old.keys().get(it.at) == Some(&it.key))
        {
            return None;
        }
        if !known.is_empty() {
            results.push(WorkerResult::from_existing(old, &known));
        }
        Some(merge(results))
    }
}

/// The documents and terms of one worker.
#[derive(Debug, Default)]
struct WorkerResult {
    /// Documents with their positions; their terms are numbers.
    documents: Vec<(usize, Document)>,
    /// Every term, by its number.
    terms: Vec<Term>,
    known: Vec<IndexedDocument>,
}

/// A document that the old index contains.
#[derive(Debug, Clone, Copy)]
struct IndexedDocument {
    at: usize,
    /// Its position in the old index.
    place: u32,
    key: Key,
}

impl WorkerResult {
    /// Recreates a worker's result from the documents of an existing index; term numbers are its
    /// ids.
    fn from_existing(old: &Index, known: &[IndexedDocument]) -> Self {
        let mut uses = vec![0_u32; old.len()];
        known.iter().for_each(|it| uses[it.place as usize] += 1);
        let mut documents: Vec<Document> = Vec::new();
        documents.resize_with(old.len(), Document::default);
        let ids = 0..old.id_count() as u32;
        for id in ids.clone() {
            old.postings(id, |document, impact| {
                if uses.get(document as usize).is_some_and(|it| *it > 0) {
                    let Document { terms, impacts, .. } = &mut documents[document as usize];
                    terms.push(id);
                    impacts.push(impact);
                }
            });
        }
        let documents = known.iter().map(|&IndexedDocument { at, place, key }| {
            let left = &mut uses[place as usize];
            *left -= 1;
            let counted = &mut documents[place as usize];
            let counted = if *left > 0 { counted.clone() } else { mem::take(counted) };
            let Words { stored, lengths, words } = old.words(place);
            let words = words.filter(|it| ids.contains(it)).collect();
            (at, Document { key, stored, lengths, words, ..counted })
        });
        let documents = documents.collect();
        let terms = ids.clone().filter_map(|it| old.term(it)).collect();
        Self { documents, terms, known: Vec::new() }
    }
}

fn merge(mut results: Vec<WorkerResult>) -> Index {
    let (terms, counts) = give_ids(&mut results);
    let mut documents: Vec<_> = results.into_iter().flat_map(|it| it.documents).collect();
    documents.sort_unstable_by_key(|it| it.0);
    let documents: Vec<Document> = documents.into_iter().map(|it| it.1).collect();
    let (starts, postings) = postings(&documents, &counts);
    let (mut word_starts, mut words) = (vec![0], Vec::new());
    for Document { words: own, stored, lengths, .. } in &documents {
        let head = stored.iter().chain(lengths).map(|it| *it as u32);
        head.chain(own.iter().copied()).for_each(|it| Numbers::put(&mut words, it));
        word_starts.push(words.len() as u32);
    }
    let keys = documents.into_iter().map(|it| it.key).collect();
    Sections { keys, word_starts, terms, starts, postings, words }.into()
}

/// A term as numbered by one worker.
#[derive(Debug, Clone, Copy)]
struct WorkerTerm {
    term: Term,
    /// The number of the worker's documents in which it occurs.
    count: u32,
    worker: usize,
    number: usize,
}

/// Replaces the term numbers of all documents by ids. Returns for each id its term, and the number
/// of documents in which it occurs.
fn give_ids(results: &mut [WorkerResult]) -> (Vec<Term>, Vec<u32>) {
    let mut ids: Vec<Vec<u32>> = results.iter().map(|it| vec![0; it.terms.len()]).collect();
    let mut found: Vec<WorkerTerm> = Vec::new();
    for (worker, (WorkerResult { documents, terms, .. }, counts)) in
        results.iter().zip(&mut ids).enumerate()
    {
        let numbers = documents.iter().flat_map(|it| &it.1.terms);
        numbers.for_each(|it| counts[*it as usize] += 1);
        let own = terms.iter().zip(counts).enumerate().filter(|it| *it.1.1 > 0);
        found.extend(own.map(|(number, (&term, &mut count))| WorkerTerm {
            term,
            count,
            worker,
            number,
        }));
    }
    found.sort_unstable_by_key(|it| it.term);
    let same = found.chunk_by(|a, b| a.term == b.term);
    let mut all: Vec<(u32, &[WorkerTerm])> =
        same.map(|same| (same.iter().map(|it| it.count).sum(), same)).collect();
    let common = all.len().min(COMMON);
    if common < all.len() {
        all.select_nth_unstable_by_key(common, |it| (Reverse(it.0), it.1[0].term));
        let (common, rare) = all.split_at_mut(common);
        [common, rare].into_iter().for_each(|it| it.sort_unstable_by_key(|it| it.1[0].term));
    }
    for (id, (_, same)) in (0..).zip(&all) {
        same.iter().for_each(|it| ids[it.worker][it.number] = id);
    }
    for (WorkerResult { documents, .. }, ids) in results.iter_mut().zip(&ids) {
        for (_, Document { terms, words, .. }) in documents {
            terms.iter_mut().chain(words).for_each(|it| *it = ids[*it as usize]);
        }
    }
    all.iter().map(|it| (it.1[0].term, it.0)).unzip()
}

/// Encodes the postings of each id; also returns where each begins.
fn postings(documents: &[Document], counts: &[u32]) -> (Vec<u32>, Vec<u8>) {
    let mut sizes: Vec<u32> =
        counts.iter().map(|it| if *it > 1 { encoded_len(*it) } else { 0 }).chain([0]).collect();
    let mut last = vec![0; counts.len()];
    for (document, Document { terms, .. }) in (0..).zip(documents) {
        for id in terms.iter().map(|it| *it as usize).filter(|id| counts[*id] > 1) {
            sizes[id] += encoded_len(document - mem::replace(&mut last[id], document)) + 1;
        }
    }
    let mut starts = offsets(sizes);
    let mut postings = vec![0; starts.pop().unwrap_or(0) as usize];
    let mut ends = starts.clone();
    for (end, count) in ends.iter_mut().zip(counts).filter(|it| *it.1 > 1) {
        *end += encode(&mut postings[*end as usize..], *count);
    }
    last.fill(0);
    for (document, Document { terms, impacts, .. }) in (0..).zip(documents) {
        for (id, impact) in terms.iter().map(|it| *it as usize).zip(impacts) {
            if counts[id] == 1 {
                starts[id] = ALONE | document << 8 | u32::from(*impact);
                continue;
            }
            let mut end = ends[id];
            let distance = document - mem::replace(&mut last[id], document);
            end += encode(&mut postings[end as usize..], distance);
            postings[end as usize] = *impact;
            ends[id] = end + 1;
        }
    }
    (starts, postings)
}

/// Returns the start offsets of consecutive items, given their sizes.
fn offsets(mut sizes: Vec<u32>) -> Vec<u32> {
    let mut start = 0;
    for size in &mut sizes {
        start += mem::replace(size, start);
    }
    sizes
}
