//! A bounded in-memory cache.

use std::{
    collections::HashMap,
    convert::Infallible,
    hash::Hash,
    sync::{Mutex, MutexGuard},
};

use crate::lock::lock;

/// A cache of at most `MOST` keys.
#[derive(Debug)]
pub(crate) struct Memo<K, V, const MOST: usize = 256>(Mutex<HashMap<K, V>>);

impl<K: Eq + Hash, V: Clone, const MOST: usize> Memo<K, V, MOST> {
    /// Returns the cached value of a key, computing it first if necessary.
    pub(crate) fn get(&self, key: K, find: impl FnOnce(&K) -> V) -> V {
        match self.try_get(key, |key| Ok::<V, Infallible>(find(key))) {
            Ok(found) => found,
        }
    }

    /// Does the same for a fallible computation; an error is not cached.
    pub(crate) fn try_get<E>(&self, key: K, find: impl FnOnce(&K) -> Result<V, E>) -> Result<V, E> {
        if let Some(known) = self.lock().get(&key) {
            return Ok(known.clone());
        }
        let found = find(&key)?;
        let mut known = self.lock();
        // At the limit the cache is cleared.
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, found.clone());
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, V>> {
        lock(&self.0)
    }
}

impl<K, V, const MOST: usize> Default for Memo<K, V, MOST> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_found_again() {
        const MOST: usize = 8;
        let memo: Memo<usize, usize, MOST> = Memo::default();
        assert_eq!(memo.get(1, |_| 10), 10);
        assert_eq!(memo.get(1, |_| 11), 10);
        for it in 2..=MOST + 1 {
            memo.get(it, |it| *it);
        }
        assert_eq!(memo.get(1, |_| 11), 11, "only so much is remembered");
        assert!(memo.lock().len() <= MOST);
        assert_eq!(memo.try_get(100, |_| Err("gone")), Err("gone"));
        assert_eq!(memo.try_get(100, |_| Ok::<_, ()>(1)), Ok(1), "what failed is tried again");
    }
}
