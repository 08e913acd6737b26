//! Calling a skill by a request in plain words.

use prowess::Thresholds;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{SkillCall, Toolbox};
use crate::outcome::{Outcome, OutcomeStatus};

/// A request in plain words, or the name of a tool, for which a skill is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// The request.
    pub request: String,
    /// The minimum confidence of the skill, from 0 to 1.
    pub min_confidence: f64,
    /// The parameters of the skill.
    pub parameters: Map<String, Value>,
}

/// The outcome of an intent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IntentOutcome {
    /// The skill that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The confidence that this skill is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The outcome of the call.
    pub outcome: Outcome,
}

impl Intent {
    /// Creates a request without parameters; the minimum confidence is that of a
    /// [full disclosure](Thresholds::full_at).
    pub fn new(request: impl Into<String>) -> Self {
        let min_confidence = Thresholds::DEFAULT.full_at();
        Self { request: request.into(), min_confidence, parameters: Map::new() }
    }
}

impl Toolbox {
    /// Calls the skill that an intent names as a tool, else the one that matches it best. Nothing is
    /// called below the minimum confidence.
    pub async fn call_by_intent(&self, intent: Intent) -> IntentOutcome {
        let Intent { request, min_confidence, parameters } = intent;
        let found = match (self.skill_for(&request), &self.skills) {
            (Some(skill), _) => Some((skill, 1.0)),
            (None, Some(skills)) => skills.find_best(&request).await,
            (None, None) => None,
        };
        match found {
            Some((skill, confidence)) if confidence >= min_confidence => {
                let call = SkillCall { skill: skill.clone(), parameters };
                let outcome = self.call_skill(call).await;
                IntentOutcome { skill: Some(skill), confidence: Some(confidence), outcome }
            }
            // Also when the minimum is not a number.
            Some((skill, confidence)) => below_minimum(&skill, confidence, min_confidence),
            None => {
                let message = "no skill matches the request";
                let outcome = Outcome::bad(OutcomeStatus::NotFound, message);
                IntentOutcome { skill: None, confidence: None, outcome }
            }
        }
    }
}

fn below_minimum(skill: &str, confidence: f64, least: f64) -> IntentOutcome {
    let rounded = (confidence * 1e4).round() / 1e4;
    let message = format!(
        "no skill matches well enough: the best is `{skill}` with a confidence of {rounded}, \
         below {least}"
    );
    let output = json!({"best": skill, "confidence": rounded, "min_confidence": least});
    let outcome =
        Outcome { output: Some(output), ..Outcome::bad(OutcomeStatus::NotFound, message) };
    IntentOutcome { skill: None, confidence: Some(confidence), outcome }
}
