//! Which of the matches are taken up.

use std::{fmt, sync::Arc};

use super::{Match, matches};
use crate::library::Library;

/// How skills are chosen for a request.
#[derive(Debug, Clone)]
pub struct Matching {
    /// By what they are chosen.
    pub strategy: Strategy,
    /// How many are active at once.
    pub max_active: usize,
    /// The least confidence, from 0 to 1; what is mentioned by name does not need it.
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
    /// None: the model sees the catalog and takes up what it needs.
    Model,
}

/// A rule of somebody's own that says which skills a request activates.
pub trait Activate: fmt::Debug + Send + Sync {
    /// Chooses among the skills of the library, the most important first.
    fn activate<'lib>(&self, library: &'lib Library, request: &str) -> Vec<Match<'lib>>;
}

/// The skills that a request activates.
#[derive(Debug, Clone, Default)]
pub struct Activation<'lib> {
    /// The active ones, best first.
    pub active: Vec<Match<'lib>>,
    /// All that were considered, best first, with their scores.
    pub considered: Vec<Match<'lib>>,
    /// What was mentioned and is not there.
    pub unknown: Vec<Unknown>,
}

/// A mention of a skill that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The name that was mentioned.
    pub name: String,
    /// The name that comes nearest, if one could be meant.
    pub nearest: Option<String>,
}

impl Default for Matching {
    fn default() -> Self {
        Self { strategy: Strategy::default(), max_active: 3, threshold: 0.15, rule: None }
    }
}

/// Chooses the skills for a request, which is the last message of the user.
pub fn activate<'lib>(library: &'lib Library, request: &str, how: &Matching) -> Activation<'lib> {
    let considered = matches(library, request, 10);
    let active = considered
        .iter()
        .filter(|it| it.confidence >= how.threshold)
        .take(how.max_active)
        .cloned()
        .collect();
    Activation { active, considered, unknown: Vec::new() }
}
