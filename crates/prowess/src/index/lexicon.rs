//! Everyday words, and the words that skills use instead.
//!
//! A language that requests are understood in is a file in `lexicon/` (packed by `prowess-benches
//! lexicon`), and in `stop.rs`, `endings.rs`, and `WHEN` of `check/validate/guidance.rs`.

use std::{collections::HashMap, hash::BuildHasherDefault, sync::LazyLock};

use super::words::{IdentityHasher, hash};

/// Sorted phrases, each with the words that skills use for it: `deck slide` TAB `present
/// powerpoint|theme`, all of them stems, the closest before the bar; behind a `=` if the phrase is
/// of another language. Written by `prowess-benches lexicon` from `lexicon/*.txt`.
const TABLE: &str = include_str!("lexicon.tsv");

/// The weight of a close word relative to the one in the request, and that of a related one.
const CLOSE: f32 = 0.9;
const LOOSE: f32 = 0.4;
/// The weight of the first word of a translation; the others are close words.
const TRANSLATED: f32 = 1.0;

/// The mark before the words of a translation.
const TRANSLATION: char = '=';

/// The maximum number of words between those of a phrase: `put my site online`.
const APART: usize = 2;

/// The position in the table of the phrases that begin with a stem.
static STARTS: LazyLock<HashMap<u64, usize, BuildHasherDefault<IdentityHasher>>> =
    LazyLock::new(|| {
        let mut starts = HashMap::default();
        let mut at = 0;
        for line in TABLE.split_inclusive('\n') {
            let first = line.split([' ', '\t']).next().unwrap_or_default();
            starts.entry(hash(first.as_bytes())).or_insert(at);
            at += line.len();
        }
        starts
    });

/// A phrase of a request that is in the lexicon.
pub(crate) struct Phrase {
    /// The positions of its words.
    pub(crate) at: Vec<usize>,
    words: &'static str,
}

impl Phrase {
    /// Returns the stems that skills use instead, each with its relative weight.
    pub(crate) fn other_words(&self) -> impl Iterator<Item = (&'static str, f32)> {
        let translated = self.words.strip_prefix(TRANSLATION);
        let words = translated.unwrap_or(self.words);
        let (close, loose) = words.split_once('|').unwrap_or((words, ""));
        let (first, close) = match translated {
            Some(_) => close.split_once(' ').unwrap_or((close, "")),
            None => ("", close),
        };
        weighted(first, TRANSLATED).chain(weighted(close, CLOSE)).chain(weighted(loose, LOOSE))
    }

    /// Whether it is of a language other than English.
    pub(crate) fn is_translated(&self) -> bool {
        self.words.starts_with(TRANSLATION)
    }
}

fn weighted(words: &'static str, weight: f32) -> impl Iterator<Item = (&'static str, f32)> {
    words.split(' ').filter(|it| !it.is_empty()).map(move |it| (it, weight))
}

/// Returns the longest phrase, in words, that begins with the stem at a position.
pub(crate) fn phrase_at(stems: &[impl AsRef<str>], place: usize) -> Option<Phrase> {
    let first = stems[place].as_ref();
    let lines = TABLE[*STARTS.get(&hash(first.as_bytes()))?..].lines();
    let phrases = lines.filter_map(|it| it.split_once('\t'));
    let own = phrases.take_while(|it| it.0.split(' ').next() == Some(first));
    let found = own.filter_map(|(phrase, words)| {
        Some(Phrase { at: phrase_positions(phrase, stems, place)?, words })
    });
    found.max_by_key(|it| it.at.len())
}

/// Returns the positions of the stems of a phrase that begins at a position.
fn phrase_positions(phrase: &str, stems: &[impl AsRef<str>], place: usize) -> Option<Vec<usize>> {
    let mut at = vec![place];
    for stem in phrase.split(' ').skip(1) {
        let next = at[at.len() - 1] + 1;
        let found = stems.get(next..)?.iter().take(APART + 1).position(|it| it.as_ref() == stem)?;
        at.push(next + found);
    }
    (at[at.len() - 1] - place < at.len() + APART).then_some(at)
}
