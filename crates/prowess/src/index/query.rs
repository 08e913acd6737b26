//! A request, parsed for the index.

use super::{
    background,
    inverted::Index,
    lexicon,
    sentences::sentences,
    words::{self, Term},
};

/// The maximum number of terms in a query: those with the highest weight. The ranking stores them
/// as bits of a number, so it cannot be more.
pub(crate) const MOST: usize = 32;
/// The maximum number of replacement words in a query.
pub(crate) const MOST_OTHERS: usize = 64;
/// The number of words of a request for which replacements are looked up.
const READ_CLOSELY: usize = 128;
/// The maximum number of sentences that are compared: the first and the last ones.
pub(crate) const SENTENCES: usize = 16;
/// The number of bytes of a request that are read from its start, and from its end: the question is
/// before or after pasted text.
const READ: usize = 8 * 1024;
/// The relative weight of an extra term, next to the words of the request.
const EXTRA: f32 = 0.4;
/// The share above which a replacement is as good as the word itself.
const AS_GOOD: f32 = 0.4;
/// The relative weight of a word that was corrected to another.
const MISTYPED: f32 = 0.8;

/// A request, parsed for the index.
#[derive(Debug, Default)]
pub(crate) struct Query {
    /// The terms to look for, each once, in the order of the request.
    pub(crate) terms: Vec<QueryTerm>,
    /// The words of the request in order, as positions in `terms`; `None` for a word that is not
    /// looked for.
    pub(crate) words: Vec<Option<u8>>,
    /// Replacements for words of the request.
    pub(crate) others: Vec<OtherWord>,
    /// Its sentences, if it has several.
    pub(crate) sentences: Vec<Sentence>,
    /// The total weight of the words.
    pub(crate) total: f32,
    /// The total weight of the words that occur in no skill at all.
    pub(crate) unknown: f32,
    /// Their total weight in descriptions.
    pub(crate) unknown_described: f32,
    /// Whether it has only stop words, such as `hello there`: then only a name can match.
    pub(crate) says_nothing: bool,
}

/// A term of a query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryTerm {
    /// Its id; [`NOWHERE`] for a word that is looked for only by its replacements.
    pub(crate) id: u32,
    /// Its weight.
    pub(crate) weight: f32,
    /// Its weight in a name or a description.
    pub(crate) described: f32,
    /// Whether it is an extra term, as `frontend` for `front-end`.
    pub(crate) is_extra: bool,
}

/// A sentence of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sentence {
    /// Its words, by their positions in the terms, as bits.
    pub(crate) terms: u32,
    /// Their total weight in descriptions, and anywhere.
    pub(crate) weights: [f32; 2],
}

/// The id of a word that no skill has.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A replacement for some words of a request, as skills use it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherWord {
    pub(crate) id: u32,
    /// The words that it replaces, by their positions in the terms, as bits.
    pub(crate) instead_of: u32,
    /// Its weight as a share of theirs, from 0 to 1.
    pub(crate) share: f32,
}

/// A word of a request.
pub(crate) struct Word {
    pub(crate) term: Term,
    pub(crate) text: String,
    pub(crate) is_extra: bool,
    /// Whether it is a stop word.
    pub(crate) is_stop: bool,
}

impl Query {
    /// Parses a request; `near` returns the intended word for a mistyped one.
    pub(crate) fn new<'n>(
        request: &str,
        index: &Index,
        near: impl Fn(&str) -> Option<&'n str>,
    ) -> Self {
        let words = read_with(request, index, &near);
        let replaceable = replaceable(&words, index);
        let mut query = Self { says_nothing: words.iter().all(|it| it.is_stop), ..Self::default() };
        let mut terms: Vec<(Term, QueryTerm)> = Vec::new();
        let mut missing: Vec<Term> = Vec::new();
        for word in &words {
            if let Some(known) = terms.iter_mut().find(|it| it.0 == word.term) {
                known.1.is_extra &= word.is_extra;
                continue;
            }
            let replaced = replaceable.iter().filter(|it| it.words.contains(&word.term));
            let (id, meant, factor) = match index.id(word.term) {
                Some(id) => (Some(id), &*word.text, 1.0),
                None if word.is_extra => continue,
                None if replaced.clone().any(|it| !it.others.is_empty()) => {
                    (Some(NOWHERE), &*word.text, 1.0)
                }
                None => near(&word.text)
                    .and_then(|it| Some((Some(index.id(Term::new(it))?), it, MISTYPED)))
                    .unwrap_or((None, &*word.text, 1.0)),
            };
            let count = id.map_or(0, |id| index.count(id));
            let stem = words::stem(meant);
            let weight = factor * background::weight(&stem, count, index.len());
            let described = factor * background::weight_described(&stem);
            // A word of another language counts as much as its translation.
            let translated = replaced.clone().next().and_then(|it| it.translated);
            let [weight, described] = translated.unwrap_or([weight, described]);
            match id {
                Some(id) => {
                    terms.push((
                        word.term,
                        QueryTerm { id, weight, described, is_extra: word.is_extra },
                    ));
                }
                None if !missing.contains(&word.term) && missing.len() < MOST => {
                    missing.push(word.term);
                    query.unknown += weight;
                    query.unknown_described += described;
                }
                None => {}
            }
        }
        for (_, wanted) in terms.iter_mut().filter(|it| it.1.is_extra) {
            wanted.weight *= EXTRA;
        }
        // If no word is known, the extra terms are all there is.
        if terms.iter().all(|it| it.1.is_extra) {
            terms.iter_mut().for_each(|it| it.1.is_extra = false);
        }
        keep_most_informative(&mut terms);
        let words = words
            .iter()
            .filter(|it| !it.is_extra)
            .map(|word| terms.iter().position(|it| it.0 == word.term).map(|at| at as u8));
        query.words = words.collect();
        query.others = replacements(&replaceable, &terms);
        query.sentences = sentences_of(request, &terms);
        query.terms = terms.into_iter().map(|it| it.1).collect();
        query.total = query.terms.iter().filter(|it| !it.is_extra).map(|it| it.weight).sum();
        query
    }

    /// Returns all ids to look for: those of the terms, followed by those of the replacements.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.terms.iter().map(|it| it.id).chain(self.others.iter().map(|it| it.id))
    }

    /// Returns the position of the word that the term at a position counts as: a close replacement
    /// is as good as the word itself when neighbours are compared.
    pub(crate) fn word_at(&self, place: u8) -> Option<u8> {
        let Some(other) = usize::from(place).checked_sub(self.terms.len()) else {
            return Some(place);
        };
        let OtherWord { instead_of, share, .. } = self.others[other];
        let is_close = share > AS_GOOD && instead_of.is_power_of_two();
        is_close.then(|| instead_of.trailing_zeros() as u8)
    }

    /// Returns the weight of the term at this position, counted from 1, as a share of the original
    /// word's; 0 for none.
    pub(crate) fn share(&self, place: u8) -> f32 {
        let Some(place) = usize::from(place).checked_sub(1) else { return 0.0 };
        place.checked_sub(self.terms.len()).map_or(1.0, |other| self.others[other].share)
    }

    /// Returns the replacements for the word at a position.
    pub(crate) fn replacements_for(&self, place: usize) -> impl Iterator<Item = &OtherWord> {
        self.others.iter().filter(move |it| it.instead_of & (1 << place) != 0)
    }

    /// Returns the length of the request: 0 for one word, 1 for the maximum number of terms.
    pub(crate) fn length(&self) -> f32 {
        (self.terms.len().max(1) as f32).ln() / (MOST as f32).ln()
    }
}

/// Returns the words of a request, and after each unknown one that is not a typing error, the known
/// words that it is composed of.
pub(crate) fn read_with<'n>(
    request: &str,
    index: &Index,
    near: impl Fn(&str) -> Option<&'n str>,
) -> Vec<Word> {
    let is_known = |term: Term| index.id(term).is_some();
    let mut words = Vec::new();
    for word in read_words(request) {
        let is_one = word.is_extra
            || is_known(word.term)
            || background::is_known(&words::stem(&word.text))
            || near(&word.text).is_some();
        let text = if is_one { String::new() } else { word.text.clone() };
        words.push(word);
        words.extend(words::compound_parts(&text, is_known).map(|it| Word {
            term: Term::new(it),
            text: it.to_owned(),
            is_extra: true,
            is_stop: false,
        }));
    }
    words
}

/// Returns the words of a request without stop words; all of them if there are no others.
pub(crate) fn read_words(request: &str) -> Vec<Word> {
    let head = &request[..request.floor_char_boundary(READ)];
    let tail =
        &request[request.ceil_char_boundary(request.len().saturating_sub(READ)).max(head.len())..];
    let mut words = Vec::new();
    let mut all_stop = true;
    for text in [head, tail] {
        words::chunks(text, |chunk| {
            words::terms(chunk, |found, word| {
                all_stop &= found.is_stop || found.is_extra;
                words.push(Word {
                    term: found.term,
                    text: word.to_owned(),
                    is_extra: found.is_extra,
                    is_stop: found.is_stop,
                });
            });
        });
    }
    words.retain(|it| all_stop || !it.is_stop);
    words
}

/// Returns the phrases of a request that are in the lexicon, each with its words.
pub(crate) fn phrases(words: &[Word]) -> impl Iterator<Item = (Vec<&Word>, lexicon::Phrase)> {
    let words: Vec<&Word> = words.iter().filter(|it| !it.is_extra).take(READ_CLOSELY).collect();
    let stems: Vec<_> = words.iter().map(|it| words::stem(&it.text)).collect();
    (0..words.len()).filter_map(move |at| {
        let phrase = lexicon::phrase_at(&stems, at)?;
        Some((phrase.at.iter().map(|at| words[*at]).collect(), phrase))
    })
}

/// Words of a request that skills may have replacements for.
struct Replaceable {
    words: Vec<Term>,
    /// The weights of each of these words, anywhere and in descriptions, if they are translated.
    translated: Option<[f32; 2]>,
    /// The replacements.
    others: Vec<Replacement>,
}

/// A replacement that some skill contains.
struct Replacement {
    id: u32,
    /// Its weight.
    weight: f32,
    /// Its weight relative to the original words.
    counts: f32,
}

/// Returns the phrases of a request for which some skill contains replacements.
fn replaceable(words: &[Word], index: &Index) -> Vec<Replaceable> {
    let found = phrases(words).map(|(words, phrase)| {
        let others = phrase.other_words().filter_map(|(stem, counts)| {
            let id = index.id(Term::of(stem))?;
            let weight = background::weight(stem, index.count(id), index.len());
            Some(Replacement { id, weight, counts })
        });
        let others: Vec<Replacement> = others.collect();
        let words: Vec<Term> = words.into_iter().map(|it| it.term).collect();
        let translated = phrase.is_translated().then(|| {
            let stems = || phrase.other_words().map(|it| it.0);
            let described = stems().map(background::weight_described).fold(0.0, f32::max);
            let weight = others.iter().map(|it| it.weight).reduce(f32::max).unwrap_or_else(|| {
                stems().next().map_or(0.0, |it| background::weight(it, 0, index.len()))
            });
            [weight, described].map(|it| it / words.len() as f32)
        });
        Replaceable { words, translated, others }
    });
    found.filter(|it| !it.others.is_empty() || it.translated.is_some()).collect()
}

/// Returns the sentences of a request, if it has several: the first ones and the last ones.
fn sentences_of(request: &str, terms: &[(Term, QueryTerm)]) -> Vec<Sentence> {
    let head = &request[..request.floor_char_boundary(READ)];
    let mut found = Vec::new();
    for text in sentences(head) {
        let mut bits = 0_u32;
        words::for_each_word(text, |term, _| {
            if let Some(at) = terms.iter().position(|it| it.0 == term && !it.1.is_extra) {
                bits |= 1 << at;
            }
        });
        let own = terms.iter().enumerate().filter(|it| bits & (1 << it.0) != 0).map(|it| it.1.1);
        let weights = [own.clone().map(|it| it.described).sum(), own.map(|it| it.weight).sum()];
        if bits != 0 {
            found.push(Sentence { terms: bits, weights });
        }
    }
    if found.len() > SENTENCES {
        found.drain(SENTENCES / 2..found.len() - SENTENCES / 2);
    }
    if found.len() < 2 { Vec::new() } else { found }
}

/// Returns the replacements for the terms of a query.
fn replacements(replaceable: &[Replaceable], terms: &[(Term, QueryTerm)]) -> Vec<OtherWord> {
    let mut others: Vec<OtherWord> = Vec::new();
    for Replaceable { words, others: own, .. } in replaceable {
        let places = (0..terms.len()).filter(|at| words.contains(&terms[*at].0));
        let instead_of = places.clone().fold(0, |bits, at| bits | 1 << at);
        let original = places.map(|at| terms[at].1.weight).fold(0.0, f32::max);
        for Replacement { id, weight, counts } in own.iter().filter(|_| instead_of != 0) {
            let is_known =
                terms.iter().any(|it| it.1.id == *id) || others.iter().any(|it| it.id == *id);
            if !is_known && others.len() < MOST_OTHERS {
                // A common word says less than the rare one that it replaces.
                let share = counts * (weight / original).min(1.0);
                others.push(OtherWord { id: *id, instead_of, share });
            }
        }
    }
    others
}

fn keep_most_informative(terms: &mut Vec<(Term, QueryTerm)>) {
    if terms.len() > MOST {
        let mut weights: Vec<f32> = terms.iter().map(|it| it.1.weight).collect();
        weights.sort_unstable_by(|a, b| b.total_cmp(a));
        terms.retain(|it| it.1.weight >= weights[MOST - 1]);
        terms.truncate(MOST);
    }
}
