//! A request as the index sees it.

use super::{
    background,
    inverted::Index,
    lexicon,
    words::{self, Term},
};

/// How many terms of a request are looked for: the most telling. No more, because the second look
/// keeps them as bits of a number.
pub(crate) const MOST: usize = 32;
/// How many other words are looked for.
pub(crate) const MOST_OTHERS: usize = 64;
/// In how many words of a request other words are looked for.
const READ_CLOSELY: usize = 128;
/// How many bytes of a request are read from its start, and as many from its end: what is asked
/// stands before or behind what was pasted.
const READ: usize = 8 * 1024;
/// How much a term counts that stands beside the words of the request.
const EXTRA: f32 = 0.4;
/// From which share on another word is as good as the one it stands for.
const AS_GOOD: f32 = 0.4;
/// How much a word counts that was taken for another.
const MISTYPED: f32 = 0.8;

/// A request as the index sees it.
#[derive(Debug, Default)]
pub(crate) struct Query {
    /// The terms to look for, each once, in the order of the request.
    pub(crate) terms: Vec<QueryTerm>,
    /// The words of the request in their order, as places in `terms`; nothing where a word is not
    /// looked for.
    pub(crate) words: Vec<Option<u8>>,
    /// Other words for words of the request.
    pub(crate) others: Vec<OtherWord>,
    /// What the words count together.
    pub(crate) total: f32,
    /// What the words count that stand in no skill at all.
    pub(crate) unknown: f32,
    /// Whether it has only words that say nothing, such as `hello there`: only a name can be meant.
    pub(crate) says_nothing: bool,
}

/// A term that is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryTerm {
    /// [`NOWHERE`] for a word that is looked for only by other words for it.
    pub(crate) id: u32,
    /// How telling it is.
    pub(crate) weight: f32,
    /// Whether it stands beside the words of the request, as `frontend` beside `front-end`.
    pub(crate) is_extra: bool,
}

/// The id of a word that no skill has.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Another word for some words of a request, as skills use it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherWord {
    pub(crate) id: u32,
    /// The words that it stands for, by their places in the terms, as bits.
    pub(crate) instead_of: u32,
    /// How much it counts of what they count together, from 0 to 1.
    pub(crate) share: f32,
}

/// A word of a request.
pub(crate) struct Word {
    pub(crate) term: Term,
    pub(crate) text: String,
    pub(crate) is_extra: bool,
    /// Whether it says nothing about what somebody wants.
    pub(crate) is_stop: bool,
}

impl Query {
    /// Reads a request; `near` gives the word that was meant where one is mistyped.
    pub(crate) fn new<'n>(
        request: &str,
        index: &Index,
        near: impl Fn(&str) -> Option<&'n str>,
    ) -> Self {
        let said = read_with(request, index, &near);
        let replaceable = replaceable(&said, index);
        let has_other = |term: Term| replaceable.iter().any(|it| it.said.contains(&term));
        let mut query = Self { says_nothing: said.iter().all(|it| it.is_stop), ..Self::default() };
        let mut terms: Vec<(Term, QueryTerm)> = Vec::new();
        let mut missing: Vec<Term> = Vec::new();
        for word in &said {
            if let Some(known) = terms.iter_mut().find(|it| it.0 == word.term) {
                known.1.is_extra &= word.is_extra;
                continue;
            }
            let mistyped = || near(&word.text).and_then(|it| Some((index.id(Term::new(it))?, it)));
            let (id, meant, factor) = match index.id(word.term) {
                Some(id) => (Some(id), &*word.text, 1.0),
                None if word.is_extra => continue,
                None if has_other(word.term) => (Some(NOWHERE), &*word.text, 1.0),
                None => mistyped()
                    .map_or((None, &*word.text, 1.0), |(id, meant)| (Some(id), meant, MISTYPED)),
            };
            let count = id.map_or(0, |id| index.count(id));
            let weight = factor * background::weight(&words::stem(meant), count, index.len());
            match id {
                Some(id) => {
                    terms.push((word.term, QueryTerm { id, weight, is_extra: word.is_extra }));
                }
                None if !missing.contains(&word.term) && missing.len() < MOST => {
                    missing.push(word.term);
                    query.unknown += weight;
                }
                None => {}
            }
        }
        for (_, wanted) in terms.iter_mut().filter(|it| it.1.is_extra) {
            wanted.weight *= EXTRA;
        }
        // Where no word is known, what stands beside them is all there is to go by.
        if terms.iter().all(|it| it.1.is_extra) {
            terms.iter_mut().for_each(|it| it.1.is_extra = false);
        }
        keep_most_telling(&mut terms);
        let place = |term: Term| terms.iter().position(|it| it.0 == term).map(|at| at as u8);
        query.words = said.iter().filter(|it| !it.is_extra).map(|it| place(it.term)).collect();
        query.others = others(&replaceable, &terms);
        query.terms = terms.into_iter().map(|it| it.1).collect();
        query.total = query.terms.iter().filter(|it| !it.is_extra).map(|it| it.weight).sum();
        query
    }

    /// The ids of all that is looked for: of the terms, and behind them of the other words.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.terms.iter().map(|it| it.id).chain(self.others.iter().map(|it| it.id))
    }

    /// The place of the word that is found where the term at a place is: a close word for another
    /// is as good as that one to stand next to its neighbours.
    pub(crate) fn word_at(&self, place: u8) -> Option<u8> {
        let Some(other) = usize::from(place).checked_sub(self.terms.len()) else {
            return Some(place);
        };
        let OtherWord { instead_of, share, .. } = self.others[other];
        let is_close = share > AS_GOOD && instead_of.is_power_of_two();
        is_close.then(|| instead_of.trailing_zeros() as u8)
    }

    /// How much what has this place, counted from 1, counts of a word that was said; 0 stands for
    /// none.
    pub(crate) fn share(&self, place: u8) -> f32 {
        let Some(place) = usize::from(place).checked_sub(1) else { return 0.0 };
        place.checked_sub(self.terms.len()).map_or(1.0, |other| self.others[other].share)
    }

    /// The other words for the one at a place.
    pub(crate) fn others_for(&self, place: usize) -> impl Iterator<Item = &OtherWord> {
        self.others.iter().filter(move |it| it.instead_of & (1 << place) != 0)
    }

    /// How long the request is: 0 for one word, 1 for as many as are looked for.
    pub(crate) fn long(&self) -> f32 {
        (self.terms.len().max(1) as f32).ln() / (MOST as f32).ln()
    }
}

/// The words of a request, and beside each that is known nowhere, nor meant for another, the known
/// words that are joined in it.
pub(crate) fn read_with<'n>(
    request: &str,
    index: &Index,
    near: impl Fn(&str) -> Option<&'n str>,
) -> Vec<Word> {
    let is_known = |term: Term| index.id(term).is_some();
    let mut said = Vec::new();
    for word in read(request) {
        let is_one = word.is_extra
            || is_known(word.term)
            || background::is_known(&words::stem(&word.text))
            || near(&word.text).is_some();
        let text = if is_one { String::new() } else { word.text.clone() };
        said.push(word);
        said.extend(words::joined(&text, is_known).map(|it| Word {
            term: Term::new(it),
            text: it.to_owned(),
            is_extra: true,
            is_stop: false,
        }));
    }
    said
}

/// The words of a request but for those that say nothing; all of them where it has no others.
pub(crate) fn read(request: &str) -> Vec<Word> {
    let head = &request[..request.floor_char_boundary(READ)];
    let tail =
        &request[request.ceil_char_boundary(request.len().saturating_sub(READ)).max(head.len())..];
    let mut said = Vec::new();
    let mut all_stop = true;
    for text in [head, tail] {
        words::chunks(text, |chunk| {
            words::terms(chunk, |found, word| {
                all_stop &= found.is_stop || found.is_extra;
                said.push(Word {
                    term: found.term,
                    text: word.to_owned(),
                    is_extra: found.is_extra,
                    is_stop: found.is_stop,
                });
            });
        });
    }
    said.retain(|it| all_stop || !it.is_stop);
    said
}

/// The phrases of a request that the lexicon knows, each with its words.
pub(crate) fn phrases(said: &[Word]) -> impl Iterator<Item = (Vec<&Word>, lexicon::Phrase)> {
    let said: Vec<&Word> = said.iter().filter(|it| !it.is_extra).take(READ_CLOSELY).collect();
    let stems: Vec<_> = said.iter().map(|it| words::stem(&it.text)).collect();
    (0..said.len()).filter_map(move |at| {
        let phrase = lexicon::phrase_at(&stems, at)?;
        Some((phrase.at.iter().map(|at| said[*at]).collect(), phrase))
    })
}

/// Words of a request for which skills may have others.
struct Replaceable {
    said: Vec<Term>,
    /// The other words.
    others: Vec<Replacement>,
}

/// A word that some skill has for others.
struct Replacement {
    id: u32,
    /// How telling it is.
    weight: f32,
    /// How much it counts of what was said.
    counts: f32,
}

/// The phrases of a request for which some skill has other words.
fn replaceable(said: &[Word], index: &Index) -> Vec<Replaceable> {
    let found = phrases(said).map(|(said, phrase)| {
        let others = phrase.other_words().filter_map(|(stem, counts)| {
            let id = index.id(Term::of(stem))?;
            let weight = background::weight(stem, index.count(id), index.len());
            Some(Replacement { id, weight, counts })
        });
        let said = said.into_iter().map(|it| it.term).collect();
        Replaceable { said, others: others.collect() }
    });
    found.filter(|it| !it.others.is_empty()).collect()
}

/// The other words for those of a request that are looked for.
fn others(replaceable: &[Replaceable], terms: &[(Term, QueryTerm)]) -> Vec<OtherWord> {
    let mut others: Vec<OtherWord> = Vec::new();
    for Replaceable { said, others: own } in replaceable {
        let places = || (0..terms.len()).filter(|at| said.contains(&terms[*at].0));
        let instead_of = places().fold(0, |bits, at| bits | 1 << at);
        let said: f32 = places().map(|at| terms[at].1.weight).sum();
        for Replacement { id, weight, counts } in own.iter().filter(|_| instead_of != 0) {
            let is_known =
                terms.iter().any(|it| it.1.id == *id) || others.iter().any(|it| it.id == *id);
            if !is_known && others.len() < MOST_OTHERS {
                // A common word says less than the rare one that it stands for.
                let share = counts * (weight / said).min(1.0);
                others.push(OtherWord { id: *id, instead_of, share });
            }
        }
    }
    others
}

fn keep_most_telling(terms: &mut Vec<(Term, QueryTerm)>) {
    if terms.len() > MOST {
        let mut weights: Vec<f32> = terms.iter().map(|it| it.1.weight).collect();
        weights.sort_unstable_by(|a, b| b.total_cmp(a));
        terms.retain(|it| it.1.weight >= weights[MOST - 1]);
        terms.truncate(MOST);
    }
}
