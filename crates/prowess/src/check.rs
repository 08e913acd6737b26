//! What is wrong with a skill, and how its file is written or fixed.

pub(crate) mod validate;
pub(crate) mod render;
pub(crate) mod revise;
pub(crate) mod fix;
