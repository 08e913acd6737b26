//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features = [
    2.906, // score of the first look
    -0.056, // its square
    -0.202, // impact in name, description and tags
    0.367, // impact in the body
    -0.483, // words found anywhere
    -1.782, // words found in name, description and tags
    0.366, // words found in the name
    -0.390, // words of the name found
    -0.278, // the whole name
    0.657, // neighbours next to each other in the description
    0.467, // neighbours near each other in the description
    -1.338, // any two near each other in the description
    -0.065, // best passage of the description
    1.842, // neighbours next to each other in the body
    0.815, // neighbours near each other in the body
    1.124, // any two near each other in the body
    0.649, // best passage of the body
    -2.033, // length of the body
];

/// What it counts in a request of 32 words or more.
pub(crate) const LONG: Features = [
    7.043, // score of the first look
    0.630, // its square
    2.737, // impact in name, description and tags
    1.926, // impact in the body
    5.671, // words found anywhere
    2.037, // words found in name, description and tags
    1.549, // words found in the name
    1.672, // words of the name found
    1.518, // the whole name
    0.399, // neighbours next to each other in the description
    0.576, // neighbours near each other in the description
    0.997, // any two near each other in the description
    2.540, // best passage of the description
    3.529, // neighbours next to each other in the body
    1.159, // neighbours near each other in the body
    1.045, // any two near each other in the body
    3.714, // best passage of the body
    -2.792, // length of the body
];

/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [
    -4.366, // always
    0.124, // score
    6.758, // how far it is ahead
    1.569, // words found anywhere, of all that were said
    0.594, // words found in name, description and tags, of all that were said
    -0.061, // the whole name
    0.598, // words of the name found
    1.176, // length of the request
    0.498, // size of the library
];

/// How fast confidence falls with the score, behind the first.
pub(crate) const FALL: f32 = 0.950;
