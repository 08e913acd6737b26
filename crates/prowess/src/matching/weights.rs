//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features = [
    6.415, // score of the first look
    0.248, // impact in name, description and tags
    0.000, // impact in the body
    1.641, // words found anywhere
    0.000, // words found in name, description and tags
    0.754, // words found in the name
    0.236, // words of the name found
    0.976, // the whole name
    0.337, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.000, // any two near each other in the description
    0.000, // best passage of the description
    2.478, // neighbours next to each other in the body
    0.205, // neighbours near each other in the body
    0.532, // any two near each other in the body
    1.024, // best passage of the body
    0.000, // length of the body
];

/// What it counts in a request of 32 words or more.
pub(crate) const LONG: Features = [
    8.297,  // score of the first look
    1.988,  // impact in name, description and tags
    0.690,  // impact in the body
    4.492,  // words found anywhere
    1.703,  // words found in name, description and tags
    1.443,  // words found in the name
    1.638,  // words of the name found
    1.502,  // the whole name
    0.596,  // neighbours next to each other in the description
    0.483,  // neighbours near each other in the description
    1.024,  // any two near each other in the description
    1.628,  // best passage of the description
    3.263,  // neighbours next to each other in the body
    0.810,  // neighbours near each other in the body
    1.622,  // any two near each other in the body
    2.557,  // best passage of the body
    -2.145, // length of the body
];

/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [
    -3.027, // always
    2.312,  // score
    7.438,  // how far it is ahead
    -2.068, // words found anywhere
    0.255,  // words found in name, description and tags
    8.834,  // how telling the words are that were found
    0.626,  // the whole name
    0.299,  // words of the name found
    -3.930, // length of the request
    -3.693, // size of the library
];

/// How fast confidence falls with the score, behind the first.
pub(crate) const FALL: f32 = 0.900;
