//! Which skills a request activates.

use std::{fmt, sync::Arc};

use super::{
    Match,
    keyword::keyword,
    matches_among,
    mention::{mentioned, mentions},
};
use crate::{
    index::{Tier, nearest, searchable::CachedMatch},
    library::Library,
    read::skill::Skill,
};

/// How many matches are kept for those who want to see what else was considered.
const CONSIDERED: usize = 10;
/// Longer requests are not remembered.
const MEMORABLE: usize = 4096;

/// How skills are chosen for a request.
#[derive(Debug, Clone)]
pub struct Matching {
    /// By what they are chosen.
    pub strategy: Strategy,
    /// How many are active at once.
    pub max_active: usize,
    /// The least confidence, from 0 to 1; 0.05 unless set, so that what is likely too little to be
    /// shown in brief is at least named. What is mentioned by name does not need it.
    pub threshold: f64,
    /// A rule that chooses instead of the strategy.
    pub rule: Option<Arc<dyn Activate>>,
}

/// By what skills are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By everything that they say.
    #[default]
    Semantic,
    /// By name and description in strict tiers: exact name, partial name, description.
    Keyword,
    /// Only those that are mentioned: `@name`, `$name` or `/name`.
    Explicit,
    /// All of them, in the order of their names.
    Always,
    /// Only those that are mentioned; the model sees the catalog and takes up what it needs.
    Model,
}

/// A rule of somebody's own that says which skills a request activates.
pub trait Activate: fmt::Debug + Send + Sync {
    /// Chooses among the skills of a library, the most important first. Threshold and number are
    /// applied to what it returns.
    fn activate<'lib>(&self, library: &'lib Library, request: &str) -> Vec<Match<'lib>>;
}

/// The skills that a request activates.
#[derive(Debug, Clone, Default)]
pub struct Activation<'lib> {
    /// The active ones, best first.
    pub active: Vec<Match<'lib>>,
    /// The best of all that were considered, with their scores.
    pub considered: Vec<Match<'lib>>,
    /// What was mentioned and is not there, or not in use.
    pub unknown: Vec<Unknown>,
}

/// A mention of a skill that is not there, or not in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The name that was mentioned.
    pub name: String,
    /// The name in use that comes nearest, if one could be meant.
    pub nearest: Option<String>,
}

impl Default for Matching {
    fn default() -> Self {
        Self { strategy: Strategy::default(), max_active: 3, threshold: 0.05, rule: None }
    }
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 5] =
        [Self::Semantic, Self::Keyword, Self::Explicit, Self::Always, Self::Model];

    /// The word for it, as in `--strategy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Keyword => "keyword",
            Self::Explicit => "explicit",
            Self::Always => "always",
            Self::Model => "model",
        }
    }

    /// The strategy that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

/// Chooses the skills for a request, which is the last message of the user. A skill that hides from
/// the model, or is hidden by another, is only activated when it is mentioned.
pub fn activate<'lib>(library: &'lib Library, request: &str, how: &Matching) -> Activation<'lib> {
    let mentions = mentions(library, request);
    let mentioned: Vec<&Skill> =
        mentions.known.iter().map(|at| &*library.skills[*at as usize]).collect();
    let is_in_use = |skill: &Skill| skill.manifest.is_active();
    let usable = |skill: &Skill| {
        let is_mentioned = || mentioned.iter().any(|it| std::ptr::eq(*it, skill));
        is_in_use(skill)
            && ((skill.hidden_by.is_none() && !skill.manifest.hides_from_model()) || is_mentioned())
    };
    let most = CONSIDERED.max(how.max_active);
    let mut considered = match &how.rule {
        Some(rule) => rule.activate(library, request),
        None if how.strategy == Strategy::Semantic && request.len() <= MEMORABLE => {
            let find = || matches_among(library, request, most, usable);
            remembered(library, request, most, find)
        }
        None => matches_by(library, request, how.strategy, most, usable),
    };
    let is_sure = |it: &Match<'_>| it.tier == Tier::Mentioned || it.confidence >= how.threshold;
    let active = considered.iter().filter(|it| is_sure(it)).take(how.max_active).copied().collect();
    considered.truncate(most);
    let names = || library.skills().filter(|it| is_in_use(it)).map(|it| &*it.manifest.name);
    let out_of_use = mentioned.iter().filter(|it| !is_in_use(it));
    let unknown = mentions
        .unknown
        .into_iter()
        .chain(out_of_use.map(|it| it.manifest.name.to_string()))
        .map(|name| Unknown { nearest: nearest(&name, names()).map(str::to_owned), name });
    Activation { active, considered, unknown: unknown.collect() }
}

/// What a request matched before, or else what is found now.
fn remembered<'lib>(
    library: &'lib Library,
    request: &str,
    most: usize,
    find: impl FnOnce() -> Vec<Match<'lib>>,
) -> Vec<Match<'lib>> {
    let matched = library.searchable().matched.get((request.to_owned(), most), |_| {
        let matched = |Match { skill, confidence, score, tier }| {
            Some(CachedMatch { place: library.place_in(skill)?, confidence, score, tier })
        };
        find().into_iter().filter_map(matched).collect()
    });
    let found = |CachedMatch { place, confidence, score, tier }| Match {
        skill: &library.skills[place],
        confidence,
        score,
        tier,
    };
    matched.into_iter().map(found).collect()
}

/// Finds the skills for a request by a strategy, `top` at the most, among those that are `wanted`.
pub fn matches_by<'lib>(
    library: &'lib Library,
    request: &str,
    strategy: Strategy,
    top: usize,
    wanted: impl Fn(&Skill) -> bool,
) -> Vec<Match<'lib>> {
    let sure = |skill, tier| Match { skill, confidence: 1.0, score: 0.0, tier };
    let mut matches: Vec<Match<'lib>> = match strategy {
        Strategy::Semantic => matches_among(library, request, top, wanted),
        Strategy::Keyword => keyword(library, request, wanted),
        Strategy::Explicit | Strategy::Model => {
            let skills = mentioned(library, request).filter(|it| wanted(it));
            skills.map(|it| sure(it, Tier::Mentioned)).collect()
        }
        Strategy::Always => {
            library.all().filter(|it| wanted(it)).map(|it| sure(it, Tier::Evidence)).collect()
        }
    };
    matches.truncate(top);
    matches
}
