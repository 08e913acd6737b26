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
pub(crate) struct MemoryLimit {
    most: u64,
    is_exceeded: Arc<AtomicBool>,
}

impl MemoryLimit {
    /// Starts to count. The second value says afterwards whether the limit was exceeded.
    pub(crate) fn new(limit: u64) -> (Self, Arc<AtomicBool>) {
        let is_exceeded = Arc::new(AtomicBool::new(false));
        let most = used_memory().saturating_add(limit);
        (Self { most, is_exceeded: is_exceeded.clone() }, is_exceeded)
    }

    /// Whether the statement may continue.
    pub(crate) fn has_room(&self) -> bool {
        let has_room = used_memory() <= self.most;
        if !has_room {
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        has_room
    }
}

/// Makes SQLite fail instead of allocating more memory than this, in the whole process: a host that
/// uses SQLite itself shares the limit.
pub fn limit_sqlite_memory(bytes: u64) {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { sqlite3_hard_heap_limit64(i64::try_from(bytes).unwrap_or(i64::MAX)) };
}

/// Returns the number of bytes that SQLite has allocated.
fn used_memory() -> u64 {
    // SAFETY: it may be called at any time, from any thread.
    u64::try_from(unsafe { sqlite3_memory_used() }).unwrap_or(0)
}
