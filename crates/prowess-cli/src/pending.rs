//! Events that were sent and are not shown yet, so that a question can wait for them.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

static EVENTS: AtomicUsize = AtomicUsize::new(0);
/// How long a question waits for them: nobody may be there to show them.
const LONGEST: Duration = Duration::from_secs(1);

/// Counts an event that was sent.
pub(crate) fn add() {
    EVENTS.fetch_add(1, Ordering::AcqRel);
}

/// Counts an event that was shown.
pub(crate) fn done() {
    EVENTS.fetch_sub(1, Ordering::AcqRel);
}

/// Waits until all that has happened is shown.
pub(crate) async fn all_shown() {
    let shown = async {
        while EVENTS.load(Ordering::Acquire) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let _ = tokio::time::timeout(LONGEST, shown).await;
}
