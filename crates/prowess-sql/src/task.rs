//! Runs a statement in a task of its own, so that it is stopped and cleaned up even if its future
//! is dropped.

use std::{convert::Infallible, time::Duration};

use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until, timeout_at},
};

use crate::database::{LONGEST, SqlError, Statement, Table};

/// The time a statement may take to stop after its timeout.
const GRACE: Duration = Duration::from_secs(1);

/// The maximum timeout of a statement.
const DAY: Duration = Duration::from_hours(24);

/// Runs a statement with `work` in a task of its own, and waits for it no longer than it takes to
/// stop it.
pub(crate) async fn spawn<F>(
    mut statement: Statement,
    work: impl FnOnce(Statement, Deadline) -> F,
) -> Result<Table, SqlError>
where
    F: Future<Output = Result<Table, SqlError>> + Send + 'static,
{
    // Drivers treat a zero byte as the end of a text, or as no end at all.
    if statement.sql.contains('\0') || statement.sql.len() > LONGEST {
        let message =
            format!("the statement contains a zero byte or is longer than {LONGEST} bytes");
        return Err(SqlError::Failed(message));
    }
    let limit = statement.limits.timeout.min(DAY);
    statement.limits.timeout = limit;
    let deadline = Instant::now() + limit;
    // Dropped with this future, which notifies the task.
    let (_caller, caller_gone) = oneshot::channel();
    let task = tokio::spawn(work(statement, Deadline { limit, deadline, caller_gone }));
    match timeout_at(deadline + 2 * GRACE, task).await {
        // Its own timeout was shorter if it had to wait.
        Ok(Ok(Err(SqlError::TimedOut(_)))) => Err(SqlError::TimedOut(limit)),
        Ok(Ok(table)) => table,
        Ok(Err(_)) => Err(SqlError::Failed("the database driver failed".to_owned())),
        Err(_) => Err(SqlError::TimedOut(limit)),
    }
}

/// The time at which a statement has to stop.
pub(crate) struct Deadline {
    limit: Duration,
    deadline: Instant,
    caller_gone: oneshot::Receiver<Infallible>,
}

impl Deadline {
    /// Waits until the deadline, or until the caller is gone.
    pub(crate) async fn wait(&mut self) -> SqlError {
        tokio::select! {
            _ = &mut self.caller_gone => {}
            () = sleep_until(self.deadline + GRACE) => {}
        }
        SqlError::TimedOut(self.limit)
    }

    /// Waits for `work` until the deadline, even if the caller is gone.
    pub(crate) async fn limit<T>(&self, work: impl Future<Output = T>) -> Result<T, SqlError> {
        let end = self.deadline + GRACE;
        timeout_at(end, work).await.map_err(|_| SqlError::TimedOut(self.limit))
    }

    /// Returns the time that is left.
    pub(crate) fn remaining(&self) -> Result<Duration, SqlError> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(SqlError::TimedOut(self.limit)),
            left => Ok(left),
        }
    }
}
