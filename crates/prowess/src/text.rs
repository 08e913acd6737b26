//! Texts as models read them: invisible characters, length in tokens, shortening.

pub(crate) mod invisible;
pub(crate) mod shorten;
pub(crate) mod tokens;
