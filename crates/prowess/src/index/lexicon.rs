//! Everyday words: what people say, and the words that skills have for it.

use std::{collections::HashMap, hash::BuildHasherDefault, sync::LazyLock};

use super::words::{AsIs, hash};

/// Phrases in their order, each with the words that skills use for it: `deck slide` TAB
/// `present powerpoint|theme`, all of them stems, the closest before the bar. Written by
/// `prowess-benches lexicon` from `lexicon/*.txt`.
const TABLE: &str = include_str!("lexicon.tsv");

/// How much a close word counts of the one that was said, and how much one that often goes with it.
const CLOSE: f32 = 0.8;
const LOOSE: f32 = 0.4;

/// How many words may stand between those of a phrase: `put my site online`.
const APART: usize = 2;

/// Where the phrases begin in the table that begin with a stem.
static STARTS: LazyLock<HashMap<u64, usize, BuildHasherDefault<AsIs>>> = LazyLock::new(|| {
    let mut starts = HashMap::default();
    let mut at = 0;
    for line in TABLE.split_inclusive('\n') {
        let first = line.split([' ', '\t']).next().unwrap_or_default();
        starts.entry(hash(first.as_bytes())).or_insert(at);
        at += line.len();
    }
    starts
});

/// A phrase of a request that the lexicon knows.
pub(crate) struct Phrase {
    /// Where its words stand.
    pub(crate) at: Vec<usize>,
    words: &'static str,
}

impl Phrase {
    /// The stems of what skills say instead, each with how much it counts.
    pub(crate) fn other_words(&self) -> impl Iterator<Item = (&'static str, f32)> {
        let (close, loose) = self.words.split_once('|').unwrap_or((self.words, ""));
        let each = |words: &'static str, counts: f32| {
            words.split(' ').filter(|it| !it.is_empty()).map(move |it| (it, counts))
        };
        each(close, CLOSE).chain(each(loose, LOOSE))
    }
}

/// The phrase with the most words that begins with the stem at a place.
pub(crate) fn phrase_at(said: &[impl AsRef<str>], place: usize) -> Option<Phrase> {
    let first = said[place].as_ref();
    let lines = TABLE[*STARTS.get(&hash(first.as_bytes()))?..].lines();
    let phrases = lines.filter_map(|it| it.split_once('\t'));
    let own = phrases.take_while(|it| it.0.split(' ').next() == Some(first));
    let found =
        own.filter_map(|(phrase, words)| Some(Phrase { at: places(phrase, said, place)?, words }));
    found.max_by_key(|it| it.at.len())
}

/// Where the stems of a phrase stand that begins at a place.
fn places(phrase: &str, said: &[impl AsRef<str>], place: usize) -> Option<Vec<usize>> {
    let mut at = vec![place];
    for stem in phrase.split(' ').skip(1) {
        let next = at[at.len() - 1] + 1;
        let found = said.get(next..)?.iter().take(APART + 1).position(|it| it.as_ref() == stem)?;
        at.push(next + found);
    }
    (at[at.len() - 1] - place < at.len() + APART).then_some(at)
}
