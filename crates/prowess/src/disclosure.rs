//! Discloses to a model as much of a skill as it needs: catalog, metadata, brief, full.

pub(crate) mod marker;
pub(crate) mod invoke;
pub(crate) mod disclose;
pub(crate) mod describe;
pub(crate) mod catalog;
pub(crate) mod use_skill;
pub(crate) mod activated;
