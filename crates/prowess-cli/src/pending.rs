//! Events that were sent and not yet printed, so that a question can wait for them.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

static EVENTS: AtomicUsize = AtomicUsize::new(0);
/// The longest wait of a question: the printer may be gone.
const LONGEST: Duration = Duration::from_secs(1);

/// Counts an event that was sent.
pub(crate) fn add() {
    EVENTS.fetch_add(1, Ordering::AcqRel);
}

/// Counts an event that was printed.
pub(crate) fn done() {
    EVENTS.fetch_sub(1, Ordering::AcqRel);
}

/// Waits until all events are printed.
pub(crate) async fn wait_until_printed() {
    let shown = async {
        while EVENTS.load(Ordering::Acquire) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let _ = tokio::time::timeout(LONGEST, shown).await;
}
