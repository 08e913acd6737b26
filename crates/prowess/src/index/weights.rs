//! Written by `prowess-benches fit`; `docs/benchmarks.md` names the data.

use super::{confidence::Signals, rank::Features};

/// The weight of each feature in a request of one word.
pub(crate) const SHORT: Features = [
    6.720, // score of the first look
    0.000, // impact in name, description and tags
    2.893, // impact in the body
    0.570, // words found anywhere
    0.000, // words found in name, description and tags
    0.965, // words found in the name
    1.084, // words of the name found
    0.676, // the whole name
    0.103, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.002, // any two near each other in the description
    0.000, // best passage of the description
    2.761, // neighbours next to each other anywhere
    0.335, // neighbours near each other anywhere
    0.588, // any two near each other anywhere
    1.850, // best passage
    0.000, // length of the body
    0.755, // words of the request itself in name, description and tags
    0.111, // most telling word in name, description and tags
    0.470, // words found at the start of the description
    1.143, // best sentence in name, description and tags
    0.772, // best sentence anywhere
];

/// The weight of each feature in a request of 32 words or more.
pub(crate) const LONG: Features = [
    7.522,  // score of the first look
    0.302,  // impact in name, description and tags
    3.359,  // impact in the body
    1.781,  // words found anywhere
    0.015,  // words found in name, description and tags
    1.162,  // words found in the name
    1.663,  // words of the name found
    0.996,  // the whole name
    0.258,  // neighbours next to each other in the description
    0.103,  // neighbours near each other in the description
    0.541,  // any two near each other in the description
    0.000,  // best passage of the description
    3.115,  // neighbours next to each other anywhere
    0.705,  // neighbours near each other anywhere
    1.333,  // any two near each other anywhere
    2.590,  // best passage
    -2.881, // length of the body
    1.419,  // words of the request itself in name, description and tags
    1.079,  // most telling word in name, description and tags
    0.856,  // words found at the start of the description
    2.499,  // best sentence in name, description and tags
    2.026,  // best sentence anywhere
];

/// The weight of each signal.
pub(crate) const CONFIDENCE: Signals = [
    -4.378, // always
    3.491,  // score
    6.002,  // how far it is ahead
    -2.619, // words found anywhere
    -0.156, // words found in name, description and tags
    8.766,  // how telling the words are that were found
    0.183,  // the whole name
    -0.146, // words of the name found
    -2.481, // length of the request
    -4.199, // size of the library
];

/// The fall of confidence with the score, after the first.
pub(crate) const FALL: f32 = 0.650;
