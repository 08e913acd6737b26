//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features = [
    6.415, // score of the first look
    0.248, // impact in name, description and tags
    0.000, // impact in the body
    1.642, // words found anywhere
    0.000, // words found in name, description and tags
    0.752, // words found in the name
    0.237, // words of the name found
    0.976, // the whole name
    0.338, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.000, // any two near each other in the description
    0.000, // best passage of the description
    2.477, // neighbours next to each other in the body
    0.206, // neighbours near each other in the body
    0.532, // any two near each other in the body
    1.024, // best passage of the body
    0.000, // length of the body
];

/// What it counts in a request of 32 words or more.
pub(crate) const LONG: Features = [
    8.297,  // score of the first look
    1.988,  // impact in name, description and tags
    0.690,  // impact in the body
    4.493,  // words found anywhere
    1.703,  // words found in name, description and tags
    1.441,  // words found in the name
    1.638,  // words of the name found
    1.501,  // the whole name
    0.597,  // neighbours next to each other in the description
    0.483,  // neighbours near each other in the description
    1.024,  // any two near each other in the description
    1.627,  // best passage of the description
    3.263,  // neighbours next to each other in the body
    0.811,  // neighbours near each other in the body
    1.622,  // any two near each other in the body
    2.557,  // best passage of the body
    -2.144, // length of the body
];

/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [
    -3.257, // always
    2.188,  // score
    5.408,  // how far it is ahead
    -1.295, // words found anywhere
    0.174,  // words found in name, description and tags
    6.036,  // how telling the words are that were found
    0.617,  // the whole name
    0.251,  // words of the name found
    -2.304, // length of the request
    -2.691, // size of the library
];

/// How fast confidence falls with the score, behind the first.
pub(crate) const FALL: f32 = 0.900;
