//! The index over a library, built on first use.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    Tier, background,
    build::DocumentInput,
    document::Text,
    embed::{Embedder, Meanings, nearest},
    inverted::{Index, Key},
    names::Names,
    query::{Query, Word, phrases, read_with},
    sentences::positive_sentences,
    words::{Term, stem},
};
use crate::{
    read::memo::Memo,
    read::{
        scan_cache::{IndexPlace, state_now},
        skill::Skill,
    },
};

/// The index over a library.
#[derive(Debug)]
pub(crate) struct Searchable {
    pub(crate) index: Index,
    skills: Vec<Arc<Skill>>,
    /// The meanings of the skills, if embeddings were supplied.
    meanings: Option<(Arc<Embedder>, Meanings)>,
    /// Recent matches, by request and limit: a conversation returns to the last requests.
    pub(crate) matched: Memo<(String, usize), Vec<CachedMatch>>,
    /// The words of names; only needed if a word is unknown.
    names: OnceLock<Names>,
}

/// A cached match.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedMatch {
    /// The position of the skill.
    pub(crate) place: usize,
    pub(crate) confidence: f64,
    pub(crate) score: f64,
    pub(crate) tier: Tier,
}

/// Words of a request that skills may have replacements for, to be explained.
pub(crate) struct ReplacedPhrase {
    /// The words, in the order of the request.
    pub(crate) terms: Vec<Term>,
    pub(crate) text: String,
    /// The stems of the replacements, each with its relative weight.
    pub(crate) others: Vec<(&'static str, f32)>,
}

/// A word of a request, to be explained.
pub(crate) struct RequestWord {
    pub(crate) text: String,
    /// The term that is looked for: another word's if this one is mistyped.
    pub(crate) term: Term,
    /// The stem of that term.
    pub(crate) stem: String,
    /// Its weight.
    pub(crate) weight: f32,
    pub(crate) is_extra: bool,
}

impl Searchable {
    /// Reads and indexes all skills, on as many threads as there are cores, except for those that a
    /// cached index contains unchanged. A file that can no longer be read is indexed by its
    /// manifest.
    pub(crate) fn new(
        skills: &[Arc<Skill>],
        embedder: Option<&Arc<Embedder>>,
        cached: Option<&IndexPlace>,
    ) -> Self {
        let bytes = cached.and_then(|it| it.cache.read("index", &it.key));
        let old = bytes.and_then(Index::from_cached).unwrap_or_default();
        let places: OnceLock<HashMap<&Key, u32>> = OnceLock::new();
        let place = |at: usize, key: &Key| match old.keys().get(at) {
            Some(same) if same == key => Some(at as u32),
            _ => places.get_or_init(|| old.keys().iter().zip(0..).collect()).get(key).copied(),
        };
        let index = Index::new(skills.len(), &old, |at, take| {
            let skill = &*skills[at];
            if let Some(key) = skill.state
                && let Some(known) = place(at, &key)
            {
                return DocumentInput { key, known: Some(known) };
            }
            with_text(skill, |text| {
                if cached.is_none() {
                    take(text);
                    return DocumentInput::default();
                }
                let key = text.key();
                let known = place(at, &key);
                if known.is_none() {
                    take(text);
                }
                // The text that was read is that of the files that the skill was loaded from, if
                // they are unchanged.
                let state = skill.state.filter(|it| state_now(skill).as_ref() == Some(it));
                DocumentInput { key: state.unwrap_or(key), known }
            })
        });
        if let Some(index) = &index
            && let Some(cached) = cached
            && cached.is_whole
            && index.len() >= cached.cache.least
        {
            cached.cache.write("index", &cached.key, index.as_bytes());
        }
        let index = index.unwrap_or(old);
        let meanings = embedder.map(|it| (it.clone(), Meanings::new(it, &index)));
        Self {
            index,
            skills: skills.to_vec(),
            meanings,
            matched: Memo::default(),
            names: OnceLock::new(),
        }
    }

    /// Returns the words of a request that are looked for, each once.
    pub(crate) fn read(&self, request: &str) -> Vec<RequestWord> {
        let mut asked: Vec<RequestWord> = Vec::new();
        for Word { term, text, is_extra, .. } in read_with(request, &self.index, |it| self.near(it))
        {
            let is_known = is_extra || self.index.id(term).is_some();
            let meant = if is_known { None } else { self.near(&text) }.unwrap_or(&text);
            let stem = stem(meant);
            let term = Term::of(&stem);
            if !asked.iter().any(|it| it.term == term) {
                let count = self.index.id(term).map_or(0, |it| self.index.count(it));
                let weight = background::weight(&stem, count, self.index.len());
                let stem = stem.into_owned();
                asked.push(RequestWord { text, term, stem, weight, is_extra });
            }
        }
        asked
    }

    /// Returns the words of a request that skills may have replacements for.
    pub(crate) fn replaced(&self, request: &str) -> Vec<ReplacedPhrase> {
        let words = read_with(request, &self.index, |it| self.near(it));
        let replaced = phrases(&words).map(|(words, phrase)| {
            let texts: Vec<&str> = words.iter().map(|it| &*it.text).collect();
            let terms = words.iter().map(|it| it.term).collect();
            ReplacedPhrase { terms, text: texts.join(" "), others: phrase.other_words().collect() }
        });
        replaced.collect()
    }

    /// Parses a request for the index.
    pub(crate) fn query(&self, request: &str) -> Query {
        Query::new(request, &self.index, |word| self.near(word))
    }

    /// Returns the word of a name that a mistyped word was meant to be.
    fn near(&self, word: &str) -> Option<&str> {
        self.names
            .get_or_init(|| Names::new(self.skills.iter().map(|it| &*it.manifest.name)))
            .near(word)
    }

    /// Compares the meaning of a request with that of every skill; empty without embeddings.
    pub(crate) fn meaning_scores(&self, request: &str) -> MeaningScores {
        let Some((embedder, meanings)) = &self.meanings else { return MeaningScores::default() };
        let near = meanings.similarities(embedder, &self.index, request);
        MeaningScores { nearest: nearest(&near), weight: embedder.weight, near }
    }
}

/// Passes the indexed text of a skill to `take`.
fn with_text<T>(skill: &Skill, take: impl FnOnce(Text<'_>) -> T) -> T {
    let manifest = &skill.manifest;
    let dialect = manifest.dialect();
    let body = skill.read_text().unwrap_or_default();
    let tags: Vec<&str> = manifest.tags.iter().chain(&dialect.triggers).map(|it| &**it).collect();
    let when = dialect.when_to_use.as_deref().unwrap_or_default();
    let description = skill.description();
    let own = if *description == *manifest.description { "" } else { &*manifest.description };
    let description: Vec<&str> =
        positive_sentences(&description).chain(positive_sentences(own)).chain([when]).collect();
    take(Text { name: &manifest.name, description: &description, tags: &tags, body: &body })
}

/// The similarity of every skill to a request in meaning.
#[derive(Debug, Default)]
pub(crate) struct MeaningScores {
    /// The nearest documents.
    pub(crate) nearest: Vec<u32>,
    near: Vec<f32>,
    weight: f32,
}

impl MeaningScores {
    /// Returns the contribution to a skill's score.
    pub(crate) fn score(&self, document: u32) -> f32 {
        self.near.get(document as usize).map_or(0.0, |it| self.weight * it.max(0.0))
    }
}
