//! Whoever has skills to give: the seam through which a host takes them.

use std::{fmt, sync::Arc};

use prowess::{Keeper, Library};

/// Whoever has skills to give.
pub trait Provider: Send + Sync + fmt::Debug {
    /// The skills of this moment, all of one state.
    fn library(&self) -> Arc<Library>;
}

impl Provider for Keeper {
    fn library(&self) -> Arc<Library> {
        Self::library(self)
    }
}

impl Provider for Arc<Library> {
    fn library(&self) -> Arc<Library> {
        self.clone()
    }
}
