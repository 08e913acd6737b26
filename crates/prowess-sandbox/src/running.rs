//! A running program that the caller interacts with.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::timeout,
};

use crate::{error::SandboxError, result::RunResult};

/// A running program. Soon after this is dropped, none of its processes is alive, and its work
/// directory is gone.
#[derive(Debug)]
pub struct RunningProgram {
    cancel: Arc<Notify>,
    ending: ProgramEnd,
    task: AbortHandle,
}

/// The end of a program, to wait for.
#[derive(Debug, Clone)]
pub struct ProgramEnd(watch::Receiver<Option<Result<RunResult, Arc<SandboxError>>>>);

impl RunningProgram {
    /// Continues a run in a task of its own.
    pub(crate) fn spawn<T>(run: impl FnOnce(Arc<Notify>) -> T) -> Self
    where
        T: Future<Output = Result<RunResult, SandboxError>> + Send + 'static,
    {
        let cancel = Arc::new(Notify::new());
        let (sender, ending) = watch::channel(None);
        let run = run(cancel.clone());
        let task = tokio::spawn(async move {
            sender.send_replace(Some(run.await.map_err(Arc::new)));
        });
        Self { cancel, ending: ProgramEnd(ending), task: task.abort_handle() }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.ending.is_over()
    }

    /// Waits until it has ended by itself; returns the result, with the captured stderr.
    pub async fn end(&self) -> Result<RunResult, Arc<SandboxError>> {
        self.ending.result().await
    }

    /// Waits up to `grace` for it to end by itself, then stops it.
    pub async fn stop(self, grace: Duration) -> Result<RunResult, Arc<SandboxError>> {
        if let Ok(result) = timeout(grace, self.end()).await {
            return result;
        }
        self.cancel.notify_one();
        self.end().await
    }

    /// Returns a handle to wait for its end without owning it.
    pub fn ending(&self) -> ProgramEnd {
        self.ending.clone()
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ProgramEnd {
    /// Whether the program has ended.
    pub fn is_over(&self) -> bool {
        self.0.borrow().is_some() || self.0.has_changed().is_err()
    }

    /// Waits until the program has ended; returns the result.
    pub async fn result(&self) -> Result<RunResult, Arc<SandboxError>> {
        let mut ending = self.0.clone();
        let ended = ending.wait_for(Option::is_some).await;
        let result = ended.ok().and_then(|it| it.clone());
        result.unwrap_or_else(|| Err(Arc::new(SandboxError::Cancelled)))
    }
}
