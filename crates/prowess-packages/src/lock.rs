//! Reads and writes the lock file.
