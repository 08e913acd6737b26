//! The world of `prowess-testing`, and subscribers that record the events of an agent.

use std::sync::LazyLock;

pub(crate) use prowess_testing::world::*;
use tracing::{Dispatch, subscriber::NoSubscriber};

/// Makes `tracing` ask every subscriber for its interests. With a single one, the interests of the
/// first thread would be cached for all.
pub(crate) fn several_subscribers() {
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
    LazyLock::force(&SECOND);
}
