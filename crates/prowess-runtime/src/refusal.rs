//! Refusals with hints.

use crate::outcome::{Outcome, OutcomeStatus};

/// The reason for a refusal, and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl From<Refusal> for Box<Outcome> {
    fn from(refusal: Refusal) -> Self {
        Self::new(Outcome::bad(OutcomeStatus::Refused, refusal.message).hint(refusal.hint))
    }
}
