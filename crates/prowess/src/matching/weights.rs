//! Written by `prowess-benches fit`; its docs say from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features =
    [18.0, -7.0, 3.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.3, 1.9, 1.4, 4.0, 0.0, -1.0];
/// And in one of 32 words or more.
pub(crate) const LONG: Features =
    [32.0, -23.0, 7.0, -5.0, 3.0, 1.0, 1.0, 1.0, 3.0, 0.5, 1.0, 1.0, 0.0, 3.0, 0.0, 3.0, 0.0, -4.0];
/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [-3.0, 2.0, 4.0, 1.0, 1.0, 1.0, 1.0, 0.0, -1.0];
/// How fast confidence falls behind the first.
pub(crate) const FALL: f32 = 1.0;
