//! The size of SQLite's temporary files: sorting may write far more than it reads.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
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
const LOOK: Duration = Duration::from_millis(10);
const SHARE: u32 = 10;
/// The prefix of their names. They are deleted as soon as they are open.
const PREFIX: &[u8] = b"etilqs_";

/// The limit of a statement's temporary files.
#[derive(Debug)]
pub(crate) struct TemporaryFiles {
    /// The bytes of other statements in this process.
    before: u64,
    next: Instant,
    is_over: Arc<AtomicBool>,
}

impl TemporaryFiles {
    /// Starts to count. The second value tells afterwards whether the limit was exceeded.
    pub(crate) fn new() -> (Self, Arc<AtomicBool>) {
        let is_over = Arc::new(AtomicBool::new(false));
        (Self { before: size(), next: Instant::now() + LOOK, is_over: is_over.clone() }, is_over)
    }

    /// Whether the statement may continue. Checks at intervals.
    pub(crate) fn is_left(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.next {
            if size() > self.before.saturating_add(MOST) {
                self.is_over.store(true, Ordering::Relaxed);
            }
            self.next = Instant::now() + LOOK.max(now.elapsed() * SHARE);
        }
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// Returns the error of a statement that exceeds it.
pub(crate) fn too_much() -> SqlError {
    let most = MOST / (1024 * 1024);
    SqlError::Failed(format!(
        "it needs more than {most} MiB of temporary files: sort, group or join fewer rows"
    ))
}

/// Returns the size on disk of this process's temporary files, in bytes.
fn size() -> u64 {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let is_own = |path: &std::path::Path| {
        let target = fs::read_link(path).unwrap_or_default();
        target.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(PREFIX))
    };
    let own = open.map(|it| it.path()).filter(|it| is_own(it));
    own.filter_map(|it| fs::metadata(it).ok()).map(|it| it.blocks() * 512).sum()
}
