//! Unpacks archives with limits.
