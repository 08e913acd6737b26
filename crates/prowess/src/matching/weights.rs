//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features = [
    8.095, // score of the first look
    2.761, // impact in name, description and tags
    2.743, // impact in the body
    1.676, // words found anywhere
    0.809, // words found in name, description and tags
    0.864, // words found in the name
    1.046, // words of the name found
    0.425, // the whole name
    0.006, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.000, // any two near each other in the description
    0.000, // best passage of the description
    2.627, // neighbours next to each other anywhere
    0.290, // neighbours near each other anywhere
    0.330, // any two near each other anywhere
    1.864, // best passage
    0.000, // length of the body
];

/// What it counts in a request of 32 words or more.
pub(crate) const LONG: Features = [
    9.174, // score of the first look
    3.524, // impact in name, description and tags
    3.408, // impact in the body
    3.227, // words found anywhere
    1.799, // words found in name, description and tags
    1.110, // words found in the name
    2.058, // words of the name found
    0.764, // the whole name
    0.193, // neighbours next to each other in the description
    0.116, // neighbours near each other in the description
    0.541, // any two near each other in the description
    0.739, // best passage of the description
    3.033, // neighbours next to each other anywhere
    0.817, // neighbours near each other anywhere
    1.316, // any two near each other anywhere
    2.734, // best passage
    -2.890, // length of the body
];

/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [
    -2.909, // always
    3.801, // score
    4.852, // how far it is ahead
    -5.534, // words found anywhere
    -0.365, // words found in name, description and tags
    13.272, // how telling the words are that were found
    0.828, // the whole name
    -0.182, // words of the name found
    -5.943, // length of the request
    -4.214, // size of the library
];

/// How fast confidence falls with the score, behind the first.
pub(crate) const FALL: f32 = 0.600;
