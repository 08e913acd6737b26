//! Retrieves skills as context, next to other retrieved documents.

use std::sync::Arc;

use prowess::{Type, matches_among};

use crate::provider::SkillProvider;

/// Retrieves the skills of a provider that match a request.
#[derive(Debug, Clone, Default)]
pub struct Retriever {
    /// The provider; without one there are no skills.
    pub provider: Option<Arc<dyn SkillProvider>>,
}

/// A skill that matches a request, as a part of a context.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RetrievedSkill {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its type.
    pub kind: Type,
    /// The probability that it is the right one, from 0 to 1.
    pub confidence: f64,
}

impl Retriever {
    /// Returns the skills that match a request, best first, at most `limit`. Skills hidden from
    /// models are not included.
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
