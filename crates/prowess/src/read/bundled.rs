//! The skills that come with the program.

use std::sync::Arc;

use crate::read::source::{Memory, Scope, Source};

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// Returns the skills that come with the program: the folders of `skills/` at build time.
pub fn bundled() -> Arc<dyn Source> {
    Arc::new(Memory::new(Scope::Bundled, "bundled", BUNDLED.iter().copied()))
}
