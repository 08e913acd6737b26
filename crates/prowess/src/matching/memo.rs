//! What was found out before.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What was found out before, of so many keys at the most.
#[derive(Debug)]
pub(crate) struct Memo<K, V>(Mutex<HashMap<K, V>>);

/// More are not remembered: then it begins anew.
const MOST: usize = 256;

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    /// What belongs to a key: as it is remembered, or else as it is found now.
    pub(crate) fn get(&self, key: K, find: impl FnOnce() -> V) -> V {
        let known = self.lock().get(&key).cloned();
        known.unwrap_or_else(|| {
            let found = find();
            let mut known = self.lock();
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(key, found.clone());
            found
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_found_again() {
        let memo: Memo<usize, usize> = Memo::default();
        assert_eq!(memo.get(1, || 10), 10);
        assert_eq!(memo.get(1, || 11), 10);
        for it in 2..=MOST + 1 {
            memo.get(it, || it);
        }
        assert_eq!(memo.get(1, || 11), 11, "only so much is remembered");
        assert!(memo.lock().len() <= MOST);
    }
}
