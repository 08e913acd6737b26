//! As much of a skill as a model needs: catalog, metadata, brief, full.

pub(crate) mod marker;
pub(crate) mod invoke;
pub(crate) mod disclose;
pub(crate) mod describe;
pub(crate) mod catalog;
pub(crate) mod use_skill;
pub(crate) mod activated;
