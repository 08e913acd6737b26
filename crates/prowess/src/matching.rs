//! From a request to the skills that fit it, best first.

mod activate;

pub use activate::{Activate, Activation, Matching, Strategy, Unknown, activate};

use crate::{library::Library, skill::Skill};

/// A skill that fits a request.
#[derive(Debug, Clone)]
pub struct Match<'lib> {
    /// The skill.
    pub skill: &'lib Skill,
    /// How likely it is to be the right one, from 0 to 1.
    pub confidence: f64,
    /// What the order goes by; comparable only within one answer.
    pub score: f64,
    /// Which words of the request were found where, the most telling first.
    pub why: Vec<Reason>,
}

/// A word of the request that was found in a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// The word, as it stands in the request.
    pub word: String,
    /// Where in the skill it was found.
    pub fields: Vec<Field>,
    /// Its part of everything that speaks for the skill, from 0 to 1.
    pub share: f64,
}

/// A part of a skill in which words are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Its name.
    Name,
    /// Its description, and what it says about when to use it.
    Description,
    /// Its tags and triggers.
    Tags,
    /// The headings of its instructions.
    Headings,
    /// Its instructions.
    Body,
}

/// Finds the skills that fit a request, best first, `top` at the most; equal ones stay in the order
/// of their names.
pub fn matches<'lib>(library: &'lib Library, request: &str, top: usize) -> Vec<Match<'lib>> {
    let wanted = request.to_lowercase();
    let words: Vec<&str> = wanted.split(|c: char| !c.is_alphanumeric()).collect();
    let mut found: Vec<Match<'lib>> = library
        .skills()
        .filter_map(|skill| {
            let text = format!("{} {}", skill.manifest.name, skill.manifest.description);
            let text = text.to_lowercase();
            let hits = words.iter().filter(|it| it.len() > 2 && text.contains(**it)).count();
            let confidence = hits as f64 / words.len() as f64;
            (hits > 0).then(|| Match { skill, confidence, score: confidence, why: Vec::new() })
        })
        .collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.truncate(top);
    found
}
