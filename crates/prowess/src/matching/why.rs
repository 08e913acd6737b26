//! Explains why a skill was found.

use std::{collections::HashSet, fmt, hash::BuildHasherDefault};

use crate::{
    index::{
        searchable::{ReplacedPhrase, RequestWord},
        words::{self, IdentityHasher, StemStarts, Term, hash},
    },
    library::Library,
    read::skill::Skill,
};

/// A word of the request that a skill contains, or has a replacement for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reason {
    /// The word, in lower case, as in the request; several words if they form a phrase.
    pub word: String,
    /// The replacement that the skill contains, in lower case.
    pub other_word: Option<String>,
    /// The parts of the skill that contain it.
    pub fields: Vec<MatchedField>,
    /// Its share of the total weight of the request's words, from 0 to 1.
    pub share: f64,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<&str> = self.fields.iter().map(|it| it.as_str()).collect();
        write!(f, "{}", self.word)?;
        if let Some(other) = &self.other_word {
            write!(f, " ≈ {other}")?;
        }
        write!(f, " ({})", fields.join(", "))
    }
}

/// A part of a skill in which words are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MatchedField {
    /// Its name.
    Name,
    /// Its description.
    Description,
    /// Its `when_to_use` field.
    WhenToUse,
    /// Its tags.
    Tags,
    /// Its trigger words.
    Triggers,
    /// The headings of its instructions.
    Headings,
    /// Its instructions.
    Body,
}

impl MatchedField {
    /// Returns the word for it.
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

/// Returns which words of a request are found where in a skill, the most informative first,
/// including replacements. A part of a word is named only if no whole word is found.
pub fn why(library: &Library, request: &str, skill: &Skill) -> Vec<Reason> {
    let searchable = library.searchable();
    let asked = searchable.read(request);
    let replaced = searchable.replaced(request);
    let others = replaced.iter().flat_map(|it| &it.others);
    let stems = asked.iter().map(|it| &*it.stem).chain(others.map(|it| it.0));
    let found = FieldWords::new(skill, &stems.collect::<Vec<_>>());
    let (parts, words): (Vec<RequestWord>, Vec<RequestWord>) =
        asked.into_iter().partition(|it| it.is_extra);
    let total: f32 = words.iter().map(|it| it.weight).sum();
    let share = |weight: f32| f64::from(weight / total.max(1e-6)).min(1.0);
    let reason = |it: &RequestWord| {
        let (_, fields) = found.find(it.term)?;
        Some(Reason { word: it.text.clone(), other_word: None, fields, share: share(it.weight) })
    };
    let mut reasons: Vec<Reason> = words.iter().filter_map(reason).collect();
    // Each word counts once, however often its phrase occurs.
    let mut explained: Vec<Term> = Vec::new();
    for ReplacedPhrase { terms, text, others } in &replaced {
        let own: Vec<&RequestWord> = words
            .iter()
            .filter(|it| terms.contains(&it.term) && !explained.contains(&it.term))
            .filter(|it| found.find(it.term).is_none())
            .collect();
        let other =
            others.iter().find_map(|(stem, counts)| Some((found.find(Term::of(stem))?, *counts)));
        let Some(((word, fields), counts)) = other.filter(|_| !own.is_empty()) else { continue };
        let weight: f32 = own.iter().map(|it| it.weight).sum();
        let other_word = Some(word.to_owned());
        reasons.push(Reason {
            word: text.clone(),
            other_word,
            fields,
            share: share(weight * counts),
        });
        explained.extend(terms);
    }
    if reasons.is_empty() {
        reasons = parts.iter().filter_map(reason).collect();
    }
    reasons.sort_by(|a, b| b.share.total_cmp(&a.share));
    reasons
}

/// The words of a skill that are looked for, by the parts that contain them.
struct FieldWords([(MatchedField, Vec<(Term, String)>); 7]);

impl FieldWords {
    fn new(skill: &Skill, stems: &[&str]) -> Self {
        let manifest = &skill.manifest;
        let dialect = manifest.dialect();
        let body = skill.text().unwrap_or_default();
        let headings: Vec<&str> = body.lines().filter(|it| it.starts_with('#')).collect();
        let wanted: Vec<Term> = stems.iter().map(|it| Term::of(it)).collect();
        let mut starts = StemStarts::default();
        stems.iter().for_each(|it| starts.add(it));
        let parts = [
            (MatchedField::Name, &*manifest.name),
            (MatchedField::Description, &manifest.description),
            (MatchedField::WhenToUse, dialect.when_to_use.as_deref().unwrap_or_default()),
            (MatchedField::Tags, &manifest.tags.join("\n")),
            (MatchedField::Triggers, &dialect.triggers.join("\n")),
            (MatchedField::Headings, &headings.join("\n")),
            (MatchedField::Body, &body),
        ];
        Self(parts.map(|(field, text)| (field, matching_terms(text, &wanted, &starts))))
    }

    /// Returns a word as written, and the parts that contain it.
    fn find(&self, term: Term) -> Option<(&str, Vec<MatchedField>)> {
        let own = self.0.iter().filter_map(|(field, words)| {
            words.iter().find(|it| it.0 == term).map(|it| (*field, &*it.1))
        });
        let (fields, words): (Vec<MatchedField>, Vec<&str>) = own.unzip();
        Some((words.first()?, fields))
    }
}

/// Returns the wanted terms that a text contains, each with a word for it.
fn matching_terms(text: &str, wanted: &[Term], starts: &StemStarts) -> Vec<(Term, String)> {
    // Most words occur many times, and computing their terms takes longer than recognizing them.
    let mut seen: HashSet<u64, BuildHasherDefault<IdentityHasher>> = HashSet::default();
    let mut terms: Vec<(Term, String)> = Vec::new();
    words::chunks(text, |chunk| {
        if starts.allows(chunk) && seen.insert(hash(chunk.as_bytes())) {
            words::terms(chunk, |found, word| {
                if wanted.contains(&found.term) && !terms.iter().any(|it| it.0 == found.term) {
                    terms.push((found.term, word.to_owned()));
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
                let mut starts = StemStarts::default();
                starts.add(&words::stem(word));
                for (text, of) in [(text, "all"), (chunk, "one")] {
                    assert_eq!(
                        matching_terms(text, &[it.term], &starts).len(),
                        1,
                        "{word} of {of}"
                    );
                }
            });
        });
    }
}
