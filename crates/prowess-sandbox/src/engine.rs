//! Picks the engine of this system and build.

#[cfg(all(feature = "run", target_os = "linux"))]
pub(crate) use crate::linux::{Engine, probe};
#[cfg(not(all(feature = "run", unix)))]
pub(crate) use crate::unavailable::{Engine, probe};
#[cfg(all(feature = "run", unix, not(target_os = "linux")))]
pub(crate) use crate::unconfined::{Engine, probe};
