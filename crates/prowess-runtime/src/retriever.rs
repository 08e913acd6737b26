//! Skills as context: what a host puts beside other things that it has retrieved.

use std::sync::Arc;

use prowess::{Type, matches_among};

use crate::provider::SkillProvider;

/// Retrieves the skills that match a request from whoever provides them.
#[derive(Debug, Clone, Default)]
pub struct Retriever {
    /// Whoever has skills to give; without one there are none.
    pub provider: Option<Arc<dyn SkillProvider>>,
}

/// A skill that fits a request, as a part of a context.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievedSkill {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it does when it is run.
    pub kind: Type,
    /// How likely it is to be the right one, from 0 to 1.
    pub confidence: f64,
}

impl Retriever {
    /// The skills that match a request, best first, `limit` at the most. Those that hide from models
    /// are not among them.
    pub fn retrieve(&self, request: &str, limit: usize) -> Vec<RetrievedSkill> {
        let Some(provider) = &self.provider else { return Vec::new() };
        let library = provider.library();
        let found = matches_among(&library, request, limit, |skill| {
            skill.hidden_by.is_none() && skill.manifest.is_for_models()
        });
        let retrieved = found.iter().map(|it| RetrievedSkill {
            name: it.skill.manifest.name.to_string(),
            description: it.skill.manifest.description.to_string(),
            kind: it.skill.manifest.kind,
            confidence: it.confidence,
        });
        retrieved.collect()
    }
}
