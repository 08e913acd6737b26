//! How a run ended, and what it left.

use std::time::Duration;

use crate::{level::SandboxLevel, network::ScriptConnection, output::CapturedText};

/// How a program ended, and what it left.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// How it ended.
    pub status: RunStatus,
    /// The reason why it did not end well, in one line.
    pub message: Option<String>,
    /// The code that it exited with.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its stdout.
    pub stdout: CapturedText,
    /// Its stderr.
    pub stderr: CapturedText,
    /// The files that it left in its work directory, by path.
    pub files: Vec<String>,
    /// How long it took.
    pub duration: Duration,
    /// How strongly it was confined.
    pub level: SandboxLevel,
    /// Actions that the sandbox has refused, each once.
    pub denied: Vec<String>,
    /// The connections that it asked its proxy for, refused ones included.
    pub connections: Vec<ScriptConnection>,
    /// How many more connections there were than are listed.
    pub connections_omitted: u64,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// Well.
    Ok,
    /// It says that it failed.
    Failed,
    /// A signal ended it, or we did at one of its limits.
    Killed,
    /// Its time was over.
    TimedOut,
    /// Whoever asked for it no longer wants it.
    Cancelled,
}
