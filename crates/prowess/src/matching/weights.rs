//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.

use super::{confidence::Signals, rank::Features};

/// What each feature counts in a request of one word.
pub(crate) const SHORT: Features = [
    6.487, // score of the first look
    0.102, // impact in name, description and tags
    0.000, // impact in the body
    1.636, // words found anywhere
    0.000, // words found in name, description and tags
    0.812, // words found in the name
    0.176, // words of the name found
    1.087, // the whole name
    0.309, // neighbours next to each other in the description
    0.000, // neighbours near each other in the description
    0.000, // any two near each other in the description
    0.000, // best passage of the description
    2.491, // neighbours next to each other in the body
    0.244, // neighbours near each other in the body
    0.611, // any two near each other in the body
    1.030, // best passage of the body
    0.000, // length of the body
];

/// What it counts in a request of 32 words or more.
pub(crate) const LONG: Features = [
    8.407,  // score of the first look
    1.918,  // impact in name, description and tags
    0.771,  // impact in the body
    4.450,  // words found anywhere
    1.753,  // words found in name, description and tags
    1.510,  // words found in the name
    1.604,  // words of the name found
    1.610,  // the whole name
    0.579,  // neighbours next to each other in the description
    0.328,  // neighbours near each other in the description
    1.016,  // any two near each other in the description
    1.683,  // best passage of the description
    3.219,  // neighbours next to each other in the body
    0.784,  // neighbours near each other in the body
    1.530,  // any two near each other in the body
    2.519,  // best passage of the body
    -2.124, // length of the body
];

/// What each signal counts.
pub(crate) const CONFIDENCE: Signals = [
    0.0, -5.341, // always
    0.183,  // score
    5.588,  // how far it is ahead
    2.874,  // words found anywhere, of all that were said
    1.075,  // words found in name, description and tags, of all that were said
    0.596,  // the whole name
    0.552,  // words of the name found
    2.840,  // length of the request
    -1.574, // size of the library
];

/// How fast confidence falls with the score, behind the first.
pub(crate) const FALL: f32 = 0.800;
