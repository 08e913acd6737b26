//! Checks skills, and writes or fixes their files.

pub(crate) mod validate;
pub(crate) mod render;
pub(crate) mod revise;
pub(crate) mod fix;
