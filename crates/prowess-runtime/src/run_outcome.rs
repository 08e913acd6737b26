//! Converts the result of a run in the sandbox to an outcome.

use std::{error::Error as _, sync::Arc};

use prowess_sandbox::{CapturedText, RunResult, RunStatus, SandboxError, SandboxLevel};

use crate::outcome::{Outcome, OutcomeStatus};

impl From<RunResult> for Outcome {
    fn from(result: RunResult) -> Self {
        let status = match result.status {
            RunStatus::Ok => OutcomeStatus::Ok,
            RunStatus::Killed => OutcomeStatus::Killed,
            RunStatus::TimedOut => OutcomeStatus::TimedOut,
            RunStatus::Cancelled => OutcomeStatus::Cancelled,
            // A status that is not known here is no success.
            _ => OutcomeStatus::Failed,
        };
        let lacks_memory = result.level == SandboxLevel::Landlock
            && status == OutcomeStatus::Failed
            && mentions_shared_memory(&result.stderr);
        Self {
            message: result.message,
            hint: lacks_memory.then(|| SHARED_MEMORY.to_owned()),
            exit_code: result.exit_code,
            signal: result.signal,
            stdout: Some(result.stdout),
            stderr: Some(result.stderr),
            files: result.files,
            duration: Some(result.duration),
            sandbox: Some(result.level),
            unenforced_limits: result.unenforced_limits,
            denied: result.denied,
            network: result.connections,
            network_omitted: result.connections_omitted,
            ..Self::new(status)
        }
    }
}

impl From<&SandboxError> for Outcome {
    /// Converts the error of a script that could not be started.
    fn from(error: &SandboxError) -> Self {
        let status = match error {
            SandboxError::Variable { .. } | SandboxError::Path { .. } => OutcomeStatus::Invalid,
            SandboxError::Cancelled => OutcomeStatus::Cancelled,
            // Nothing ran: a program that failed is a result, not an error.
            _ => OutcomeStatus::Refused,
        };
        let cause = error.source();
        let message = cause.map_or_else(|| error.to_string(), |it| format!("{error}: {it}"));
        let outcome = Self::bad(status, message);
        match error {
            SandboxError::Unavailable { remedy, .. } => outcome.hint(remedy),
            _ => outcome,
        }
    }
}

impl From<SandboxError> for Outcome {
    fn from(error: SandboxError) -> Self {
        Self::from(&error)
    }
}

impl From<Result<RunResult, Arc<SandboxError>>> for Outcome {
    fn from(ended: Result<RunResult, Arc<SandboxError>>) -> Self {
        match ended {
            Ok(result) => result.into(),
            Err(error) => Self::from(&*error),
        }
    }
}

/// The hint on features that are unavailable without namespaces.
const SHARED_MEMORY: &str = "shared memory and named semaphores, which Python's `multiprocessing` uses, need \
                             the sandbox level *strong*; see `prowess sandbox`";

/// Whether the errors of a program mention shared memory.
fn mentions_shared_memory(stderr: &CapturedText) -> bool {
    ["SemLock", "/dev/shm", "shm_open", "sem_open"].iter().any(|it| stderr.text.contains(it))
}
