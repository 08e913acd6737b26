//! Counts of work that takes a while, for hosts that show them.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

thread_local! {
    static OBSERVER: RefCell<Option<Arc<WorkProgress>>> = const { RefCell::new(None) };
}

/// Counts of how far work has come: folders that are searched, skills that are indexed.
#[derive(Debug, Default)]
pub struct WorkProgress {
    done: AtomicUsize,
    total: AtomicUsize,
}

impl WorkProgress {
    /// Does work on this thread and counts it. Other threads can read the counts meanwhile.
    pub fn observe<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let _guard = ObserverGuard(OBSERVER.replace(Some(self.clone())));
        work()
    }

    /// Returns how much is done, and of how much. The total grows as more work is found; it is 0 as long as nothing
    /// is known.
    pub fn counts(&self) -> (usize, usize) {
        let total = self.total.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed).min(total), total)
    }
}

/// Restores the observer that a thread had before.
struct ObserverGuard(Option<Arc<WorkProgress>>);

impl Drop for ObserverGuard {
    fn drop(&mut self) {
        OBSERVER.set(self.0.take());
    }
}

/// Counts the work of one loop for the observer of the thread that begins it.
#[derive(Debug, Clone)]
pub(crate) struct WorkCounter(Option<Arc<WorkProgress>>);

impl WorkCounter {
    /// Begins to count from nothing.
    pub(crate) fn begin() -> Self {
        let observer = OBSERVER.with_borrow(Clone::clone);
        if let Some(it) = &observer {
            it.done.store(0, Ordering::Relaxed);
            it.total.store(0, Ordering::Relaxed);
        }
        Self(observer)
    }

    /// Adds work that is to be done.
    pub(crate) fn expect(&self, count: usize) {
        if let Some(it) = &self.0 {
            it.total.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Counts one step as done.
    pub(crate) fn step(&self) {
        if let Some(it) = &self.0 {
            it.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_observed_work_is_counted() {
        let progress = Arc::new(WorkProgress::default());
        let count = || {
            let counter = WorkCounter::begin();
            counter.expect(3);
            counter.step();
            counter.step();
        };
        count();
        assert_eq!(progress.counts(), (0, 0));
        progress.observe(count);
        assert_eq!(progress.counts(), (2, 3));
        count();
        assert_eq!(progress.counts(), (2, 3));
    }
}
