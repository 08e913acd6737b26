//! Maps a confidence to a level.

use super::Level;

/// The minimum confidences of a brief and of a full disclosure: [`DEFAULT`](Self::DEFAULT), if no
/// others are set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    brief_at: f64,
    full_at: f64,
}

/// The error for two numbers that are not valid thresholds.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "`{brief_at}` and `{full_at}` are not valid thresholds: both must be between 0 and 1, and the first must not exceed the second"
)]
#[non_exhaustive]
pub struct ThresholdsError {
    /// The first number.
    pub brief_at: f64,
    /// The second number.
    pub full_at: f64,
}

impl Thresholds {
    /// The defaults.
    pub const DEFAULT: Self = Self { brief_at: 0.15, full_at: 0.7 };

    /// Creates thresholds from two numbers in order, from 0 to 1.
    pub fn new(brief_at: f64, full_at: f64) -> Result<Self, ThresholdsError> {
        if 0.0 <= brief_at && brief_at <= full_at && full_at <= 1.0 {
            Ok(Self { brief_at, full_at })
        } else {
            Err(ThresholdsError { brief_at, full_at })
        }
    }

    /// Returns the minimum confidence of a brief disclosure.
    pub const fn brief_at(self) -> f64 {
        self.brief_at
    }

    /// Returns the minimum confidence of a full disclosure.
    pub const fn full_at(self) -> f64 {
        self.full_at
    }

    /// Returns the level for a confidence. One that equals a threshold gets the higher level, and
    /// NaN gets metadata.
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
        Self::DEFAULT
    }
}
