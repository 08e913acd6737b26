//! Activation: chooses the skills for a request.

use std::{fmt, sync::Arc};

use super::{
    Match,
    keyword::match_keywords,
    matches_among,
    mention::{mentioned_skills, mentions},
};
use crate::{
    index::{Tier, nearest, searchable::CachedMatch},
    library::Library,
    read::skill::Skill,
};

/// The number of matches that are kept for callers that show what else was considered.
const CONSIDERED: usize = 10;
/// The maximum length of a cached request, in bytes.
const MEMORABLE: usize = 4096;

/// Options for choosing skills for a request.
#[derive(Debug, Clone)]
pub struct Matching {
    /// The strategy.
    pub strategy: Strategy,
    /// The maximum number of active skills.
    pub max_active: usize,
    /// The minimum confidence, from 0 to 1; [`DEFAULT_THRESHOLD`](Self::DEFAULT_THRESHOLD), if no
    /// other is set. A mention does not need it.
    pub threshold: f64,
    /// A custom rule that replaces the strategy.
    pub rule: Option<Arc<dyn Activate>>,
}

/// The way in which skills are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// By their whole text.
    #[default]
    Semantic,
    /// By name and description in strict tiers: exact name, partial name, description.
    Keyword,
    /// Only those that are mentioned: `@name`, `$name` or `/name`.
    Explicit,
    /// All of them, in the order of their names.
    Always,
    /// Only those that are mentioned; the model sees the catalog and activates what it needs.
    Model,
}

/// A custom rule that chooses the skills that a request activates.
pub trait Activate: fmt::Debug + Send + Sync {
    /// Chooses among the skills of a library, the most important first. The threshold and the
    /// maximum number are applied to the result.
    fn activate<'lib>(&self, library: &'lib Library, request: &str) -> Vec<Match<'lib>>;
}

/// The skills that a request activates.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Activation<'lib> {
    /// The active skills, best first.
    pub active: Vec<Match<'lib>>,
    /// The best candidates, with their scores.
    pub considered: Vec<Match<'lib>>,
    /// Mentions of skills that do not exist, or are not in use.
    pub unknown: Vec<Unknown>,
}

/// A mention of a skill that does not exist, or is not in use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unknown {
    /// The name that was mentioned.
    pub name: String,
    /// The nearest name in use, if one could be meant.
    pub nearest: Option<String>,
}

impl Matching {
    /// The default minimum confidence: so low that a skill that is too unlikely to be shown in
    /// brief is at least named.
    pub const DEFAULT_THRESHOLD: f64 = 0.05;
}

impl Default for Matching {
    fn default() -> Self {
        let (strategy, threshold) = (Strategy::default(), Self::DEFAULT_THRESHOLD);
        Self { strategy, max_active: 3, threshold, rule: None }
    }
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 5] =
        [Self::Semantic, Self::Keyword, Self::Explicit, Self::Always, Self::Model];

    /// Returns the word for it, as in `--strategy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Keyword => "keyword",
            Self::Explicit => "explicit",
            Self::Always => "always",
            Self::Model => "model",
        }
    }

    /// Returns the strategy with this name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

/// Chooses the skills for a request, which is the last message of the user. A skill that is hidden
/// from the model, or shadowed by another, is only activated when it is mentioned.
pub fn activate<'lib>(library: &'lib Library, request: &str, how: &Matching) -> Activation<'lib> {
    let mentions = mentions(library, request);
    let mentioned: Vec<&Skill> =
        mentions.known.iter().map(|at| &*library.skills[*at as usize]).collect();
    let is_usable = |skill: &Skill| {
        let is_offered = skill.hidden_by.is_none() && !skill.manifest.hides_from_model();
        skill.manifest.is_active()
            && (is_offered || mentioned.iter().any(|it| std::ptr::eq(*it, skill)))
    };
    let most = CONSIDERED.max(how.max_active);
    let mut considered = match &how.rule {
        Some(rule) => rule.activate(library, request),
        None if how.strategy == Strategy::Semantic && request.len() <= MEMORABLE => {
            cached_matches(library, request, most, || {
                matches_among(library, request, most, is_usable)
            })
        }
        None => matches_by(library, request, how.strategy, most, is_usable),
    };
    let active = considered
        .iter()
        .filter(|it| it.tier == Tier::Mentioned || it.confidence >= how.threshold)
        .take(how.max_active)
        .copied()
        .collect();
    considered.truncate(most);
    let out_of_use = mentioned.iter().filter(|it| !it.manifest.is_active());
    let unknown = mentions
        .unknown
        .into_iter()
        .chain(out_of_use.map(|it| it.manifest.name.to_string()))
        .map(|name| {
            let active = library.skills().filter(|it| it.manifest.is_active());
            let nearest = nearest(&name, active.map(|it| &*it.manifest.name)).map(str::to_owned);
            Unknown { nearest, name }
        });
    Activation { active, considered, unknown: unknown.collect() }
}

/// Returns the cached matches of a request, or else finds them.
fn cached_matches<'lib>(
    library: &'lib Library,
    request: &str,
    most: usize,
    find: impl FnOnce() -> Vec<Match<'lib>>,
) -> Vec<Match<'lib>> {
    let matched = library.searchable().matched.get((request.to_owned(), most), |_| {
        find()
            .into_iter()
            .filter_map(|Match { skill, confidence, score, tier }| {
                Some(CachedMatch { place: library.position_of(skill)?, confidence, score, tier })
            })
            .collect()
    });
    matched
        .into_iter()
        .map(|CachedMatch { place, confidence, score, tier }| Match {
            skill: &library.skills[place],
            confidence,
            score,
            tier,
        })
        .collect()
}

/// Finds the skills for a request by a strategy, at most `top`, among the `wanted` ones.
pub fn matches_by<'lib>(
    library: &'lib Library,
    request: &str,
    strategy: Strategy,
    top: usize,
    wanted: impl Fn(&Skill) -> bool,
) -> Vec<Match<'lib>> {
    let mut matches: Vec<Match<'lib>> = match strategy {
        Strategy::Semantic => matches_among(library, request, top, wanted),
        Strategy::Keyword => match_keywords(library, request, wanted),
        Strategy::Explicit | Strategy::Model => {
            let skills = mentioned_skills(library, request).filter(|it| wanted(it));
            skills.map(|it| sure_match(it, Tier::Mentioned)).collect()
        }
        Strategy::Always => {
            let skills = library.all().filter(|it| wanted(it));
            skills.map(|it| sure_match(it, Tier::Evidence)).collect()
        }
    };
    matches.truncate(top);
    matches
}

fn sure_match(skill: &Skill, tier: Tier) -> Match<'_> {
    Match { skill, confidence: 1.0, score: 0.0, tier }
}
