//! The index over a library, made when it is first asked for.

use std::sync::{Arc, OnceLock};

use super::{
    background,
    document::Text,
    embed::{Embedder, Meanings, nearest},
    index::Index,
    names::Names,
    query::{Query, read},
    said::said_for,
    words::{Term, stem},
};
use crate::skill::Skill;

/// The index over a library.
#[derive(Debug)]
pub(crate) struct Searchable {
    pub(crate) index: Index,
    skills: Vec<Arc<Skill>>,
    /// What the skills mean, where somebody brought embeddings.
    meanings: Option<(Arc<Embedder>, Meanings)>,
    /// The words of names; only needed where a word is not known.
    names: OnceLock<Names>,
}

impl Searchable {
    /// Reads and indexes all skills, on as many threads as there are cores. A file that cannot be
    /// read any more is indexed by its manifest.
    pub(crate) fn new(skills: &[Arc<Skill>], embedder: Option<&Arc<Embedder>>) -> Self {
        let index = Index::new(skills.len(), |at, take| {
            let skill = &skills[at];
            let manifest = &skill.manifest;
            let dialect = manifest.dialect();
            let body = skill.instructions().unwrap_or_default();
            let tags: Vec<&str> =
                manifest.tags.iter().chain(&dialect.triggers).map(|it| &**it).collect();
            let when = dialect.when_to_use.as_deref().unwrap_or_default();
            let description: Vec<&str> = said_for(&manifest.description).chain([when]).collect();
            take(Text {
                name: &manifest.name,
                description: &description,
                tags: &tags,
                body: &body,
            });
        });
        let meanings = embedder.map(|it| (it.clone(), Meanings::new(it, &index)));
        Self { index, skills: skills.to_vec(), meanings, names: OnceLock::new() }
    }

    /// The words of a request that are looked for, each with its term and how telling it is.
    pub(crate) fn read(&self, request: &str) -> Vec<(String, Term, f32)> {
        let mut words: Vec<(String, Term, f32)> = Vec::new();
        for word in read(request).into_iter().filter(|it| !it.is_extra) {
            if !words.iter().any(|it| it.1 == word.term) {
                let count = self.index.id(word.term).map_or(0, |it| self.index.count(it));
                let weight = background::weight(&stem(&word.text), count, self.index.len());
                words.push((word.text, word.term, weight));
            }
        }
        words
    }

    /// A request as the index sees it.
    pub(crate) fn query(&self, request: &str) -> Query {
        let names = || Names::new(self.skills.iter().map(|it| &*it.manifest.name));
        Query::new(request, &self.index, |word| self.names.get_or_init(names).near(word))
    }

    /// What a request means next to every skill; nothing without embeddings.
    pub(crate) fn meant(&self, request: &str) -> Meant {
        let Some((embedder, meanings)) = &self.meanings else { return Meant::default() };
        let near = meanings.near(embedder, &self.index, request);
        Meant { nearest: nearest(&near), weight: embedder.weight, near }
    }
}

/// How near every skill is to a request in meaning.
#[derive(Debug, Default)]
pub(crate) struct Meant {
    /// The nearest ones.
    pub(crate) nearest: Vec<u32>,
    near: Vec<f32>,
    weight: f32,
}

impl Meant {
    /// What it counts for a skill.
    pub(crate) fn score(&self, document: u32) -> f32 {
        self.near.get(document as usize).map_or(0.0, |it| self.weight * it.max(0.0))
    }
}
