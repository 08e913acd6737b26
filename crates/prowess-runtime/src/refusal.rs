//! Why something may not be done, and what to do about it.

use crate::outcome::{Outcome, OutcomeStatus};

/// Why something is refused, and what to do about it.
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
