//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features = [
    2.314, // score of the first look
    0.000, // impact in name, description and tags
    0.352, // impact in the body
    0.000, // words found anywhere
    0.000, // words found in name, description and tags
    0.000, // words found in the name
    0.000, // words of the name found
    0.000, // the whole name
    0.196, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.000, // any two near each other in the description
    0.000, // best passage of the description
    1.898, // neighbours next to each other in the body
    0.792, // neighbours near each other in the body
    0.911, // any two near each other in the body
    0.566, // best passage of the body
    0.000, // length of the body
];

/// What it counts in a request of 32 words or more.
pub(crate) const LONG: Features = [
    7.403,  // score of the first look
    2.230,  // impact in name, description and tags
    2.177,  // impact in the body
    5.462,  // words found anywhere
    1.348,  // words found in name, description and tags
    1.475,  // words found in the name
    1.589,  // words of the name found
    1.421,  // the whole name
    0.531,  // neighbours next to each other in the description
    0.061,  // neighbours near each other in the description
    0.857,  // any two near each other in the description
    1.978,  // best passage of the description
    3.528,  // neighbours next to each other in the body
    1.215,  // neighbours near each other in the body
    1.168,  // any two near each other in the body
    3.780,  // best passage of the body
    -3.741, // length of the body
];

/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [
    -4.329, // always
    0.137,  // score
    6.342,  // how far it is ahead
    2.366,  // words found anywhere, of all that were said
    0.752,  // words found in name, description and tags, of all that were said
    0.038,  // the whole name
    0.575,  // words of the name found
    1.828,  // length of the request
    -1.570, // size of the library
];

/// How fast confidence falls with the score, behind the first.
pub(crate) const FALL: f32 = 0.850;
