//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features = [
    7.507, // score of the first look
    2.628, // impact in name, description and tags
    2.614, // impact in the body
    1.643, // words found anywhere
    0.621, // words found in name, description and tags
    0.554, // words found in the name
    1.192, // words of the name found
    0.431, // the whole name
    0.000, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.000, // any two near each other in the description
    0.000, // best passage of the description
    2.697, // neighbours next to each other anywhere
    0.304, // neighbours near each other anywhere
    0.358, // any two near each other anywhere
    1.910, // best passage
    0.000, // length of the body
];

/// What it counts in a request of 32 words or more.
pub(crate) const LONG: Features = [
    8.591,  // score of the first look
    3.387,  // impact in name, description and tags
    3.276,  // impact in the body
    3.248,  // words found anywhere
    1.612,  // words found in name, description and tags
    0.771,  // words found in the name
    2.184,  // words of the name found
    0.785,  // the whole name
    0.174,  // neighbours next to each other in the description
    0.181,  // neighbours near each other in the description
    0.671,  // any two near each other in the description
    0.775,  // best passage of the description
    3.139,  // neighbours next to each other anywhere
    0.855,  // neighbours near each other anywhere
    1.421,  // any two near each other anywhere
    2.811,  // best passage
    -2.725, // length of the body
];

/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [
    -4.409, // always
    3.773,  // score
    5.589,  // how far it is ahead
    -3.598, // words found anywhere
    -0.081, // words found in name, description and tags
    9.781,  // how telling the words are that were found
    0.492,  // the whole name
    -0.243, // words of the name found
    -1.955, // length of the request
    -4.611, // size of the library
];

/// How fast confidence falls with the score, behind the first.
pub(crate) const FALL: f32 = 0.650;
