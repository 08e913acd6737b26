//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features = [
    6.444, // score of the first look
    0.267, // impact in name, description and tags
    0.000, // impact in the body
    1.639, // words found anywhere
    0.000, // words found in name, description and tags
    0.763, // words found in the name
    0.230, // words of the name found
    0.976, // the whole name
    0.228, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.000, // any two near each other in the description
    0.000, // best passage of the description
    2.497, // neighbours next to each other in the body
    0.202, // neighbours near each other in the body
    0.530, // any two near each other in the body
    1.019, // best passage of the body
    0.000, // length of the body
];

/// What it counts in a request of 32 words or more.
pub(crate) const LONG: Features = [
    8.326,  // score of the first look
    2.008,  // impact in name, description and tags
    0.682,  // impact in the body
    4.487,  // words found anywhere
    1.771,  // words found in name, description and tags
    1.450,  // words found in the name
    1.636,  // words of the name found
    1.502,  // the whole name
    0.456,  // neighbours next to each other in the description
    0.471,  // neighbours near each other in the description
    0.913,  // any two near each other in the description
    1.660,  // best passage of the description
    3.284,  // neighbours next to each other in the body
    0.809,  // neighbours near each other in the body
    1.623,  // any two near each other in the body
    2.554,  // best passage of the body
    -2.154, // length of the body
];

/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [
    -3.260, // always
    2.201,  // score
    5.372,  // how far it is ahead
    -1.307, // words found anywhere
    0.198,  // words found in name, description and tags
    6.068,  // how telling the words are that were found
    0.633,  // the whole name
    0.246,  // words of the name found
    -2.310, // length of the request
    -2.709, // size of the library
];

/// How fast confidence falls with the score, behind the first.
pub(crate) const FALL: f32 = 0.900;
