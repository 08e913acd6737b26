//! Runs blocking work outside of the threads for async tasks.

use crate::{
    active::ActiveSkills,
    outcome::{Outcome, OutcomeStatus},
};

/// Runs blocking work on a thread of its own, with the same active skills. A panic becomes a failed
/// outcome.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Box<Outcome>> {
    let active = ActiveSkills::current();
    let task = tokio::task::spawn_blocking(move || match active {
        Some(active) => active.within_blocking(work),
        None => work(),
    });
    task.await.map_err(|error| Outcome::bad(OutcomeStatus::Failed, error.to_string()).into())
}
