//! The stage of `prowess-testing`, and subscribers that hear what an agent does.

use std::sync::LazyLock;

pub(crate) use prowess_testing::world::*;
use tracing::{Dispatch, subscriber::NoSubscriber};

/// Has `tracing` ask every subscriber what it wants. While there is only one, what the first thread to
/// come by does not want is taken for what nobody wants.
pub(crate) fn several_subscribers() {
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
    LazyLock::force(&SECOND);
}
