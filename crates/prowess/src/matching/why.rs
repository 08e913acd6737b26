//! Why a skill was found.

use std::sync::{Arc, Mutex, PoisonError};

use super::{analyse::Analyser, searchable::Asked, words::Term};
use crate::{library::Library, skill::Skill};

/// A word of the request that stands in a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// The word, in lower case, as it stands in the request.
    pub word: String,
    /// Where in the skill it stands.
    pub fields: Vec<Field>,
    /// How much of all that the words of the request could say it says, from 0 to 1.
    pub share: f64,
}

/// A part of a skill in which words are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Its name.
    Name,
    /// Its description.
    Description,
    /// What it says about when to use it.
    WhenToUse,
    /// Its tags.
    Tags,
    /// The words that ask for it.
    Triggers,
    /// The headings of its instructions.
    Headings,
    /// Its instructions.
    Body,
}

impl Field {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Description => "description",
            Self::WhenToUse => "when_to_use",
            Self::Tags => "tags",
            Self::Triggers => "triggers",
            Self::Headings => "headings",
            Self::Body => "body",
        }
    }
}

/// Says which words of a request stand where in a skill, the most telling first. What only a part
/// of a word says is named where no whole word is found.
pub fn why(library: &Library, request: &str, skill: &Skill) -> Vec<Reason> {
    let (parts, words): (Vec<Asked>, Vec<Asked>) =
        library.searchable().read(request).into_iter().partition(|it| it.is_extra);
    let total: f32 = words.iter().map(|it| it.weight).sum();
    let find = || Arc::new(library.searchable().vocabulary.fields(skill));
    let fields = match library.place_in(skill) {
        Some(place) => library.searchable().terms.get(place, |_| find()),
        None => find(),
    };
    let reasons = |asked: Vec<Asked>| -> Vec<Reason> {
        let reasons = asked.into_iter().filter_map(|Asked { text, term, weight, .. }| {
            let stands = fields.iter().filter(|it| it.1.binary_search(&term).is_ok());
            let fields: Vec<Field> = stands.map(|it| it.0).collect();
            let share = f64::from(weight / total.max(1e-6)).min(1.0);
            (!fields.is_empty()).then_some(Reason { word: text, fields, share })
        });
        reasons.collect()
    };
    let mut found = reasons(words);
    if found.is_empty() {
        found = reasons(parts);
    }
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// The terms of each part of a skill, sorted.
pub(crate) type Terms = [(Field, Vec<Term>); 7];

/// What became of the words that stood in skills before: most stand in others too, and to find their
/// terms takes longer than to know them again.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Analyser>);

/// How many terms are known at the most; then it begins anew.
const MOST: usize = 16_384;

impl Known {
    fn fields(&self, skill: &Skill) -> Terms {
        let manifest = &skill.manifest;
        let dialect = manifest.dialect();
        let body = skill.text().unwrap_or_default();
        let headings: Vec<&str> = body.lines().filter(|it| it.starts_with('#')).collect();
        let mut analyser = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if analyser.terms.len() > MOST {
            *analyser = Analyser::default();
        }
        [
            (Field::Name, &*manifest.name),
            (Field::Description, &manifest.description),
            (Field::WhenToUse, dialect.when_to_use.as_deref().unwrap_or_default()),
            (Field::Tags, &manifest.tags.join("\n")),
            (Field::Triggers, &dialect.triggers.join("\n")),
            (Field::Headings, &headings.join("\n")),
            (Field::Body, &body),
        ]
        .map(|(field, text)| (field, terms(text, &mut analyser)))
    }
}

fn terms(text: &str, analyser: &mut Analyser) -> Vec<Term> {
    let mut numbers = Vec::new();
    analyser.analyse(text, |it| numbers.push(it.number));
    numbers.sort_unstable();
    numbers.dedup();
    let mut terms: Vec<Term> = numbers.iter().map(|it| analyser.terms[*it as usize]).collect();
    terms.sort_unstable();
    terms
}
