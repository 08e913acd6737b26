//! The memory usage of SQLite.
#![expect(unsafe_code, reason = "SQLite says how much memory it takes through its C interface")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use libsqlite3_sys::{sqlite3_hard_heap_limit64, sqlite3_memory_used};

/// The memory limit of a statement.
///
/// SQLite counts for all connections of the process, so concurrent statements share one limit: the
/// first that asks after it is exceeded is stopped.
#[derive(Debug)]
pub(crate) struct Memory {
    most: u64,
    is_over: Arc<AtomicBool>,
}

impl Memory {
    /// Starts to count. The second value tells afterwards whether the limit was exceeded.
    pub(crate) fn new(most: u64) -> (Self, Arc<AtomicBool>) {
        let is_over = Arc::new(AtomicBool::new(false));
        (Self { most: used().saturating_add(most), is_over: is_over.clone() }, is_over)
    }

    /// Whether the statement may continue.
    pub(crate) fn is_left(&self) -> bool {
        let is_left = used() <= self.most;
        if !is_left {
            self.is_over.store(true, Ordering::Relaxed);
        }
        is_left
    }
}

/// Makes SQLite fail instead of allocating more memory than this, in the whole process: a host that
/// uses SQLite itself shares the limit.
pub fn limit_sqlite_memory(bytes: u64) {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { sqlite3_hard_heap_limit64(i64::try_from(bytes).unwrap_or(i64::MAX)) };
}

/// Returns the number of bytes that SQLite has allocated.
fn used() -> u64 {
    // SAFETY: it may be called at any time, from any thread.
    u64::try_from(unsafe { sqlite3_memory_used() }).unwrap_or(0)
}
