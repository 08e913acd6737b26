//! The index over a library, made when it is first asked for.

use std::sync::{Arc, OnceLock};

use super::{
    background,
    document::Text,
    index::Index,
    names::Names,
    query::{Query, read},
    words::{Term, stem},
};
use crate::skill::Skill;

/// The index over a library.
#[derive(Debug)]
pub(crate) struct Searchable {
    pub(crate) index: Index,
    skills: Vec<Arc<Skill>>,
    /// The words of names; only needed where a word is not known.
    names: OnceLock<Names>,
}

impl Searchable {
    /// Reads and indexes all skills, on as many threads as there are cores. A file that cannot be
    /// read any more is indexed by its manifest.
    pub(crate) fn new(skills: &[Arc<Skill>]) -> Self {
        let index = Index::new(skills.len(), |at, take| {
            let skill = &skills[at];
            let manifest = &skill.manifest;
            let dialect = manifest.dialect();
            let body = skill.instructions().unwrap_or_default();
            let tags: Vec<&str> =
                manifest.tags.iter().chain(&dialect.triggers).map(|it| &**it).collect();
            let when = dialect.when_to_use.as_deref().unwrap_or_default();
            take(Text {
                name: &manifest.name,
                description: &[&manifest.description, when],
                tags: &tags,
                body: &body,
            });
        });
        Self { index, skills: skills.to_vec(), names: OnceLock::new() }
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
}
