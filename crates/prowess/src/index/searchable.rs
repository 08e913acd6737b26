//! The index over a library, made when it is first asked for.

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
    said::said_for,
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
    /// What the skills mean, where somebody brought embeddings.
    meanings: Option<(Arc<Embedder>, Meanings)>,
    /// What requests matched, by what was asked for and how many at the most: a conversation comes
    /// back to the last ones.
    pub(crate) matched: Memo<(String, usize), Vec<CachedMatch>>,
    /// The words of names; only needed where a word is not known.
    names: OnceLock<Names>,
}

/// A match, as it is remembered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedMatch {
    /// The place of the skill.
    pub(crate) place: usize,
    pub(crate) confidence: f64,
    pub(crate) score: f64,
    pub(crate) tier: Tier,
}

/// Words of a request for which skills may have another, as they are explained.
pub(crate) struct ReplacedPhrase {
    /// The words, in the order of the request.
    pub(crate) said: Vec<Term>,
    pub(crate) text: String,
    /// The stems of the other words, each with how much it counts.
    pub(crate) others: Vec<(&'static str, f32)>,
}

/// A word of a request, as it is explained.
pub(crate) struct RequestWord {
    pub(crate) text: String,
    /// What is looked for, which is another word's where this one is mistyped.
    pub(crate) term: Term,
    /// The stem whose term it is.
    pub(crate) stem: String,
    /// How telling it is.
    pub(crate) weight: f32,
    pub(crate) is_extra: bool,
}

impl Searchable {
    /// Reads and indexes all skills, on as many threads as there are cores, but for those that an
    /// index that was kept has as they are. A file that cannot be read any more is indexed by its
    /// manifest.
    pub(crate) fn new(
        skills: &[Arc<Skill>],
        embedder: Option<&Arc<Embedder>>,
        kept: Option<&IndexPlace>,
    ) -> Self {
        let bytes = kept.and_then(|it| it.cache.read("index", &it.key));
        let old = bytes.and_then(Index::kept).unwrap_or_default();
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
                if kept.is_none() {
                    take(text);
                    return DocumentInput::default();
                }
                let key = text.key();
                let known = place(at, &key);
                if known.is_none() {
                    take(text);
                }
                // What was read is what the files say that the skill was loaded from, if they are
                // still the same.
                let state = skill.state.filter(|it| state_now(skill).as_ref() == Some(it));
                DocumentInput { key: state.unwrap_or(key), known }
            })
        });
        if let Some(index) = &index
            && let Some(kept) = kept
            && kept.is_whole
            && index.len() >= kept.cache.least
        {
            kept.cache.write("index", &kept.key, index.as_bytes());
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

    /// The words of a request that are looked for, each once.
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

    /// The words of a request for which skills may have others.
    pub(crate) fn replaced(&self, request: &str) -> Vec<ReplacedPhrase> {
        let said = read_with(request, &self.index, |it| self.near(it));
        let replaced = phrases(&said).map(|(said, phrase)| {
            let texts: Vec<&str> = said.iter().map(|it| &*it.text).collect();
            let terms = said.iter().map(|it| it.term).collect();
            ReplacedPhrase {
                said: terms,
                text: texts.join(" "),
                others: phrase.other_words().collect(),
            }
        });
        replaced.collect()
    }

    /// A request as the index sees it.
    pub(crate) fn query(&self, request: &str) -> Query {
        Query::new(request, &self.index, |word| self.near(word))
    }

    /// The word of a name that was meant by a mistyped one.
    fn near(&self, word: &str) -> Option<&str> {
        let names = || Names::new(self.skills.iter().map(|it| &*it.manifest.name));
        self.names.get_or_init(names).near(word)
    }

    /// What a request means next to every skill; nothing without embeddings.
    pub(crate) fn meant(&self, request: &str) -> MeaningScores {
        let Some((embedder, meanings)) = &self.meanings else { return MeaningScores::default() };
        let near = meanings.near(embedder, &self.index, request);
        MeaningScores { nearest: nearest(&near), weight: embedder.weight, near }
    }
}

/// Hands over what is indexed of a skill.
fn with_text<T>(skill: &Skill, take: impl FnOnce(Text<'_>) -> T) -> T {
    let manifest = &skill.manifest;
    let dialect = manifest.dialect();
    let body = skill.read_text().unwrap_or_default();
    let tags: Vec<&str> = manifest.tags.iter().chain(&dialect.triggers).map(|it| &**it).collect();
    let when = dialect.when_to_use.as_deref().unwrap_or_default();
    let told = skill.description();
    let own = if *told == *manifest.description { "" } else { &*manifest.description };
    let description: Vec<&str> = said_for(&told).chain(said_for(own)).chain([when]).collect();
    take(Text { name: &manifest.name, description: &description, tags: &tags, body: &body })
}

/// How near every skill is to a request in meaning.
#[derive(Debug, Default)]
pub(crate) struct MeaningScores {
    /// The nearest ones.
    pub(crate) nearest: Vec<u32>,
    near: Vec<f32>,
    weight: f32,
}

impl MeaningScores {
    /// What it counts for a skill.
    pub(crate) fn score(&self, document: u32) -> f32 {
        self.near.get(document as usize).map_or(0.0, |it| self.weight * it.max(0.0))
    }
}
