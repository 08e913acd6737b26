//! Embeddings: match words of similar meaning, with vectors that the user supplies.

use std::{
    collections::HashMap,
    fmt,
    hash::BuildHasherDefault,
    io::{self, BufRead},
};

use super::{
    background,
    inverted::Index,
    query::read_words,
    words::{self, IdentityHasher, Term},
};

/// The number of skills that are ranked in detail for their meaning alone.
const NEAREST: usize = 30;
/// The number of words of a skill that make up its meaning: its name, its description, and the
/// start of its instructions.
const WORDS: usize = 128;
/// The maximum number of words and of dimensions in a file.
const MOST: (usize, usize) = (4_000_000, 4096);

/// A vector for every word. Prowess ships none: supply a file in the text format of word2vec, GloVe
/// and fastText, one word per line followed by its numbers.
pub struct Embedder {
    /// The weight of the similarity in meaning, relative to that of the words.
    pub weight: f32,
    dimensions: usize,
    /// The start of each term's vector.
    places: HashMap<Term, usize, BuildHasherDefault<IdentityHasher>>,
    numbers: Vec<f32>,
}

/// The error for a file of vectors that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedderError {
    /// Reading failed.
    #[error("the vectors cannot be read")]
    Read(#[from] io::Error),
    /// A line is not a word with as many numbers as the lines before.
    #[error("line {line} is not a word with {dimensions} numbers")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// The expected number of dimensions.
        dimensions: usize,
    },
    /// It contains no vector, or too many.
    #[error("there are no vectors, or too many")]
    Size,
}

impl Embedder {
    /// Reads vectors, one word per line, optionally after a line with their count and length. Of
    /// words with the same stem the first is used.
    pub fn read(text: impl BufRead) -> Result<Self, EmbedderError> {
        let mut embedder =
            Self { weight: 4.0, dimensions: 0, places: HashMap::default(), numbers: Vec::new() };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line?;
            let mut parts = line.split_ascii_whitespace();
            let Some(word) = parts.next() else { continue };
            let numbers: Vec<f32> =
                parts.filter_map(|it| it.parse().ok()).filter(|it: &f32| it.is_finite()).collect();
            if number == 1 && numbers.len() == 1 {
                continue;
            }
            if embedder.dimensions == 0 {
                embedder.dimensions = numbers.len();
            }
            let dimensions = embedder.dimensions;
            if numbers.len() != dimensions || dimensions == 0 {
                return Err(EmbedderError::Line { line: number, dimensions });
            }
            if dimensions > MOST.1 || embedder.places.len() >= MOST.0 {
                return Err(EmbedderError::Size);
            }
            let start = embedder.numbers.len();
            if let std::collections::hash_map::Entry::Vacant(place) =
                embedder.places.entry(Term::new(&word.to_lowercase()))
            {
                place.insert(start);
                embedder.numbers.extend(numbers);
            }
        }
        if embedder.places.is_empty() { Err(EmbedderError::Size) } else { Ok(embedder) }
    }

    /// Returns the normalized sum of the vectors of some terms, by their weights.
    fn direction(&self, terms: impl Iterator<Item = (Term, f32)>) -> Vec<f32> {
        let mut sum = vec![0.0; self.dimensions];
        for (term, telling) in terms {
            let Some(start) = self.places.get(&term) else { continue };
            let own = &self.numbers[*start..*start + self.dimensions];
            sum.iter_mut().zip(own).for_each(|(sum, it)| *sum += telling * it);
        }
        let length = sum.iter().map(|it| it * it).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        sum.iter_mut().for_each(|it| *it /= length);
        sum
    }
}

impl fmt::Debug for Embedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, dimensions) = (self.places.len(), self.dimensions);
        write!(f, "Embedder({words} words of {dimensions} numbers)")
    }
}

/// The meaning of every skill: directions with one byte per dimension.
#[derive(Debug)]
pub(crate) struct Meanings {
    dimensions: usize,
    numbers: Vec<i8>,
}

impl Meanings {
    pub(crate) fn new(embedder: &Embedder, index: &Index) -> Self {
        let mut numbers = Vec::with_capacity(index.len() * embedder.dimensions);
        for document in 0..index.len() as u32 {
            let words = index.words(document).words.take(WORDS).filter_map(|id| {
                let share = index.len() as f32 / index.count(id).max(1) as f32;
                Some((index.term(id)?, share.ln_1p()))
            });
            let direction = embedder.direction(words);
            numbers.extend(direction.iter().map(|it| (it * 127.0).round() as i8));
        }
        Self { dimensions: embedder.dimensions, numbers }
    }

    /// Returns the similarity of each skill to a request in meaning, from -1 to 1.
    pub(crate) fn similarities(
        &self,
        embedder: &Embedder,
        index: &Index,
        request: &str,
    ) -> Vec<f32> {
        let words = read_words(request);
        let own = words.iter().filter(|it| !it.is_extra).map(|it| {
            let count = index.id(it.term).map_or(0, |id| index.count(id));
            (it.term, background::weight(&words::stem(&it.text), count, index.len()))
        });
        let direction = embedder.direction(own);
        self.numbers
            .chunks_exact(self.dimensions)
            .map(|meaning: &[i8]| {
                meaning.iter().zip(&direction).map(|(a, b)| f32::from(*a) * b).sum::<f32>() / 127.0
            })
            .collect()
    }
}

/// Returns the documents that are nearest.
pub(crate) fn nearest(near: &[f32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..near.len() as u32).collect();
    let by_nearness =
        |a: &u32, b: &u32| near[*b as usize].total_cmp(&near[*a as usize]).then(a.cmp(b));
    if order.len() > NEAREST {
        order.select_nth_unstable_by(NEAREST, by_nearness);
        order.truncate(NEAREST);
    }
    order.sort_unstable_by(by_nearness);
    order
}
