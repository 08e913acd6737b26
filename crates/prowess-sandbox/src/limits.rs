//! The limits of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// The time from start to end.
    pub timeout: Duration,
    /// The time without output; `None` for no limit.
    pub idle: Option<Duration>,
    /// The CPU time of each process.
    pub cpu: Duration,
    /// The captured bytes of each stream; the rest is read and counted.
    pub output: u64,
    /// The memory in bytes.
    pub memory: u64,
    /// The size of a file in bytes.
    pub file: u64,
    /// The size of all files of the work directory in bytes.
    pub work: u64,
    /// The number of concurrent processes and threads.
    pub processes: u64,
    /// The number of open files of a process.
    pub descriptors: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            timeout: Duration::from_secs(30),
            idle: None,
            cpu: Duration::from_secs(30),
            output: MIB,
            memory: 1024 * MIB,
            file: 64 * MIB,
            work: 256 * MIB,
            processes: 64,
            descriptors: 256,
        }
    }
}
