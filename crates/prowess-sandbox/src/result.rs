//! The result of a run.

use std::time::Duration;

use crate::{level::SandboxLevel, network::ScriptConnection, output::CapturedText};

/// The result of a program's run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunResult {
    /// The status.
    pub status: RunStatus,
    /// The reason it did not succeed, in one line.
    pub message: Option<String>,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its stdout.
    pub stdout: CapturedText,
    /// Its stderr.
    pub stderr: CapturedText,
    /// The files that it left in its work directory, by path.
    pub files: Vec<String>,
    /// The duration.
    pub duration: Duration,
    /// The level of its confinement.
    pub level: SandboxLevel,
    /// The limits that this system could not enforce, by the names of their fields in
    /// [`RunLimits`](crate::RunLimits).
    pub unenforced_limits: Vec<&'static str>,
    /// Actions that the sandbox refused, each once.
    pub denied: Vec<String>,
    /// The connections that it requested from its proxy, including refused ones.
    pub connections: Vec<ScriptConnection>,
    /// The number of connections that are not listed.
    pub connections_omitted: u64,
}

/// The status of a program that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunStatus {
    /// It succeeded.
    Ok,
    /// It exited with an error.
    Failed,
    /// A signal ended it, or it was killed at one of its limits.
    Killed,
    /// It ran out of time.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
}
