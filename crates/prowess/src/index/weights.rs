//! Written by `prowess-benches fit`; `docs/benchmarks.md` names the data.

use super::{confidence::Signals, rank::Features};

/// The weight of each feature in a request of one word.
pub(crate) const SHORT: Features = [
    7.587, // score of the first look
    2.600, // impact in name, description and tags
    2.579, // impact in the body
    1.619, // words found anywhere
    0.635, // words found in name, description and tags
    0.508, // words found in the name
    1.201, // words of the name found
    0.411, // the whole name
    0.000, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.000, // any two near each other in the description
    0.000, // best passage of the description
    2.670, // neighbours next to each other anywhere
    0.294, // neighbours near each other anywhere
    0.363, // any two near each other anywhere
    1.935, // best passage
    0.000, // length of the body
];

/// The weight of each feature in a request of 32 words or more.
pub(crate) const LONG: Features = [
    8.661,  // score of the first look
    3.357,  // impact in name, description and tags
    3.236,  // impact in the body
    3.202,  // words found anywhere
    1.623,  // words found in name, description and tags
    0.722,  // words found in the name
    2.187,  // words of the name found
    0.766,  // the whole name
    0.178,  // neighbours next to each other in the description
    0.174,  // neighbours near each other in the description
    0.641,  // any two near each other in the description
    0.775,  // best passage of the description
    3.113,  // neighbours next to each other anywhere
    0.856,  // neighbours near each other anywhere
    1.437,  // any two near each other anywhere
    2.839,  // best passage
    -2.729, // length of the body
];

/// The weight of each signal.
pub(crate) const CONFIDENCE: Signals = [
    -4.398, // always
    3.753,  // score
    5.616,  // how far it is ahead
    -3.603, // words found anywhere
    -0.078, // words found in name, description and tags
    9.801,  // how telling the words are that were found
    0.566,  // the whole name
    -0.235, // words of the name found
    -1.966, // length of the request
    -4.618, // size of the library
];

/// The fall of confidence with the score, after the first.
pub(crate) const FALL: f32 = 0.650;
