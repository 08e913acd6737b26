//! Why a skill was found.

use std::{collections::HashSet, hash::BuildHasherDefault};

use super::{
    searchable::Asked,
    words::{self, AsIs, Starts, Term, hash},
};
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
    let asked = library.searchable().read(request);
    let stands = stands(skill, &asked);
    let (parts, words): (Vec<Asked>, Vec<Asked>) = asked.into_iter().partition(|it| it.is_extra);
    let total: f32 = words.iter().map(|it| it.weight).sum();
    let reasons = |asked: Vec<Asked>| -> Vec<Reason> {
        let reasons = asked.into_iter().filter_map(|Asked { text, term, weight, .. }| {
            let stands = stands.iter().filter(|it| it.1.contains(&term));
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

/// The terms that are asked for and stand in each part of a skill.
fn stands(skill: &Skill, asked: &[Asked]) -> [(Field, Vec<Term>); 7] {
    let manifest = &skill.manifest;
    let dialect = manifest.dialect();
    let body = skill.text().unwrap_or_default();
    let headings: Vec<&str> = body.lines().filter(|it| it.starts_with('#')).collect();
    let wanted: Vec<Term> = asked.iter().map(|it| it.term).collect();
    let mut starts = Starts::default();
    asked.iter().for_each(|it| starts.add(&it.stem));
    [
        (Field::Name, &*manifest.name),
        (Field::Description, &manifest.description),
        (Field::WhenToUse, dialect.when_to_use.as_deref().unwrap_or_default()),
        (Field::Tags, &manifest.tags.join("\n")),
        (Field::Triggers, &dialect.triggers.join("\n")),
        (Field::Headings, &headings.join("\n")),
        (Field::Body, &body),
    ]
    .map(|(field, text)| (field, found(text, &wanted, &starts)))
}

/// The terms that are wanted and stand in a text.
fn found(text: &str, wanted: &[Term], starts: &Starts) -> Vec<Term> {
    // Most words stand there many times, and to find their terms takes longer than to know them again.
    let mut seen: HashSet<u64, BuildHasherDefault<AsIs>> = HashSet::default();
    let mut terms = Vec::new();
    words::chunks(text, |chunk| {
        if starts.allow(chunk) && seen.insert(hash(chunk.as_bytes())) {
            words::terms(chunk, |found, _| {
                if wanted.contains(&found.term) {
                    terms.push(found.term);
                }
            });
        }
    });
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_passed_over() {
        let text = "Aerobic aeon oeuvre uebersicht db dbs js gh k8s caches Rechnungen rechnung running \
                    runner deployments policies c c++ HTMLPage fix-it user's schreibt Übersicht 数据库 \
                    informationen zusammenfassungen doc docs specification spec testing tests ties";
        words::chunks(text, |chunk| {
            words::terms(chunk, |it, word| {
                let mut starts = Starts::default();
                starts.add(&words::stem(word));
                assert!(found(text, &[it.term], &starts).contains(&it.term), "{word}");
                assert!(found(chunk, &[it.term], &starts).contains(&it.term), "{word} alone");
            });
        });
    }
}
