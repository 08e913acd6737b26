//! A run that goes on: somebody speaks with it until it ends, or is ended.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::timeout,
};

use super::SandboxError;
use crate::outcome::{Outcome, OutcomeStatus};

/// A program that runs. Soon after this is dropped nobody of it is alive, and its work directory is
/// gone.
#[derive(Debug)]
pub struct Running {
    cancel: Arc<Notify>,
    ending: Ending,
    task: AbortHandle,
}

/// How a program ended, once it has.
#[derive(Debug, Clone)]
pub(crate) struct Ending(watch::Receiver<Option<Outcome>>);

impl Running {
    /// Goes on with a run in a task of its own.
    pub(super) fn spawn<T>(run: impl FnOnce(Arc<Notify>) -> T) -> Self
    where
        T: Future<Output = Result<Outcome, SandboxError>> + Send + 'static,
    {
        let cancel = Arc::new(Notify::new());
        let (tell, ending) = watch::channel(None);
        let run = run(cancel.clone());
        let task = tokio::spawn(async move {
            let outcome = run.await.unwrap_or_else(Outcome::from);
            tell.send_replace(Some(outcome));
        });
        Self { cancel, ending: Ending(ending), task: task.abort_handle() }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.ending.is_over()
    }

    /// Waits until it has ended by itself; says how, with what it printed as errors.
    pub async fn end(&self) -> Outcome {
        self.ending.outcome().await
    }

    /// Waits so long for it to end by itself, and ends it then.
    pub async fn stop(self, grace: Duration) -> Outcome {
        if let Ok(outcome) = timeout(grace, self.end()).await {
            return outcome;
        }
        self.cancel.notify_one();
        self.end().await
    }

    pub(crate) fn ending(&self) -> Ending {
        self.ending.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Ending {
    pub(crate) fn is_over(&self) -> bool {
        self.0.borrow().is_some() || self.0.has_changed().is_err()
    }

    pub(crate) async fn outcome(&self) -> Outcome {
        let mut ending = self.0.clone();
        let ended = ending.wait_for(Option::is_some).await;
        ended.ok().and_then(|it| it.clone()).unwrap_or_else(|| {
            Outcome::bad(OutcomeStatus::Cancelled, "nobody waited for it any more")
        })
    }
}
