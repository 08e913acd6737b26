//! The world of `prowess-testing`, and calls of tools in it.

pub(crate) use prowess_testing::{tools::call, world::*};
