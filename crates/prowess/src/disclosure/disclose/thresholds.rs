//! From a confidence to a level.

use super::Level;

/// From which confidence on a skill is disclosed as brief, and from which in full: 0.15 and 0.7
/// unless somebody sets others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    brief_at: f64,
    full_at: f64,
}

/// Two numbers are no thresholds.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "`{brief_at}` and `{full_at}` are not valid thresholds: both must be between 0 and 1, and the first must not exceed the second"
)]
pub struct ThresholdsError {
    /// What was to be the first.
    pub brief_at: f64,
    /// What was to be the second.
    pub full_at: f64,
}

impl Thresholds {
    /// Makes thresholds of two numbers in order, from 0 to 1.
    pub fn new(brief_at: f64, full_at: f64) -> Result<Self, ThresholdsError> {
        if 0.0 <= brief_at && brief_at <= full_at && full_at <= 1.0 {
            Ok(Self { brief_at, full_at })
        } else {
            Err(ThresholdsError { brief_at, full_at })
        }
    }

    /// The level for a confidence. One that equals a threshold belongs to the higher level, and what
    /// is no number is metadata.
    pub fn level(self, confidence: f64) -> Level {
        if confidence >= self.full_at {
            Level::Full
        } else if confidence >= self.brief_at {
            Level::Brief
        } else {
            Level::Metadata
        }
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { brief_at: 0.15, full_at: 0.7 }
    }
}
