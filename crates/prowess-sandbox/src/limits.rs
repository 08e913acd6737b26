//! How long and how much a run may take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long and how much a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// From its start to its end.
    pub timeout: Duration,
    /// Without a word from it; no limit when not given.
    pub idle: Option<Duration>,
    /// Of one processor, for each process.
    pub cpu: Duration,
    /// Bytes of each stream that are kept; the rest is read and counted.
    pub output: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files of the work directory.
    pub work: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Open files of one process.
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
