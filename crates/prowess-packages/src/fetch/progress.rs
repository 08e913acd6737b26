//! How far fetching has come.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts of how far fetching has come, which other threads can read meanwhile. Several sources that
/// are fetched at the same time are counted together.
#[derive(Debug, Clone, Default)]
pub struct FetchProgress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    bytes: AtomicU64,
    total_bytes: AtomicU64,
    files: AtomicU64,
    total_files: AtomicU64,
    requests: AtomicU64,
}

/// The counts of a [`FetchProgress`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchCounts {
    /// The bytes received.
    pub bytes: u64,
    /// How many they will be, as far as the hosts say; 0 if nothing is known.
    pub total_bytes: u64,
    /// The files written.
    pub files: u64,
    /// How many they will be; 0 if nothing is known.
    pub total_files: u64,
    /// The requests sent, with those that `git` was started for.
    pub requests: u64,
}

impl FetchProgress {
    /// Returns the counts.
    pub fn counts(&self) -> FetchCounts {
        let get = |it: &AtomicU64| it.load(Ordering::Relaxed);
        FetchCounts {
            bytes: get(&self.0.bytes),
            total_bytes: get(&self.0.total_bytes),
            files: get(&self.0.files),
            total_files: get(&self.0.total_files),
            requests: get(&self.0.requests),
        }
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn expect_bytes(&self, bytes: u64) {
        self.0.total_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_files(&self, files: u64) {
        self.0.files.fetch_add(files, Ordering::Relaxed);
    }

    pub(super) fn expect_files(&self, files: u64) {
        self.0.total_files.fetch_add(files, Ordering::Relaxed);
    }

    pub(super) fn add_request(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }
}
