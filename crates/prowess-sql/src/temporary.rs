//! The size of SQLite's temporary files: sorting may write far more than it reads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::database::SqlError;

/// The maximum size of a statement's temporary files in bytes.
const MOST: u64 = 256 * 1024 * 1024;
/// The interval of checks, and the inverse of the share of time that they may take.
const INTERVAL: Duration = Duration::from_millis(10);
const SHARE: u32 = 10;
/// Whether the system tells their size. Elsewhere they stay in memory, which has its own limit.
pub(crate) const IS_MEASURED: bool = cfg!(target_os = "linux");

/// The limit of a statement's temporary files.
#[derive(Debug)]
pub(crate) struct TemporaryFiles {
    /// The bytes of other statements in this process.
    before: u64,
    next: Instant,
    is_exceeded: Arc<AtomicBool>,
}

impl TemporaryFiles {
    /// Starts to count. The second value says afterwards whether the limit was exceeded.
    pub(crate) fn new() -> (Self, Arc<AtomicBool>) {
        let is_exceeded = Arc::new(AtomicBool::new(false));
        let next = Instant::now() + INTERVAL;
        (Self { before: size(), next, is_exceeded: is_exceeded.clone() }, is_exceeded)
    }

    /// Whether the statement may continue. Checks at intervals.
    pub(crate) fn has_room(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.next {
            if size() > self.before.saturating_add(MOST) {
                self.is_exceeded.store(true, Ordering::Relaxed);
            }
            self.next = Instant::now() + INTERVAL.max(now.elapsed() * SHARE);
        }
        !self.is_exceeded.load(Ordering::Relaxed)
    }
}

/// Returns the error of a statement that exceeds the limit.
pub(crate) fn limit_error() -> SqlError {
    let most = MOST / (1024 * 1024);
    SqlError::Failed(format!(
        "the statement needs more than {most} MiB of temporary files: sort, group or join fewer rows"
    ))
}

/// Returns the size on disk of this process's temporary files, in bytes.
#[cfg(target_os = "linux")]
fn size() -> u64 {
    use std::{fs, os::unix::fs::MetadataExt as _};
    // The prefix of their names. They are deleted as soon as they are open.
    const PREFIX: &[u8] = b"etilqs_";
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let own = open.map(|it| it.path()).filter(|it| {
        let target = fs::read_link(it).unwrap_or_default();
        target.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(PREFIX))
    });
    own.filter_map(|it| fs::metadata(it).ok()).map(|it| it.blocks() * 512).sum()
}

#[cfg(not(target_os = "linux"))]
fn size() -> u64 {
    0
}
