//! Limits on environments.

use std::time::Duration;

/// Limits on environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareLimits {
    /// The timeout of an installation.
    pub timeout: Duration,
    /// Maximum size of one environment in bytes, including its downloads.
    pub size: u64,
    /// Maximum size of all environments in bytes; the least recently used are removed first.
    pub total: u64,
}

impl Default for PrepareLimits {
    /// Ten minutes, 4 GiB, 20 GiB.
    fn default() -> Self {
        Self { timeout: Duration::from_secs(600), size: 4 << 30, total: 20 << 30 }
    }
}
