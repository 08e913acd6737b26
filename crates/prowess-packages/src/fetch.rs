//! Fetches a source into the cache.
