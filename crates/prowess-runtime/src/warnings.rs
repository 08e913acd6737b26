//! Warnings for the person who runs the program, collected until somebody prints them.

use std::sync::{Mutex, PoisonError};

/// Warnings that nobody has read yet, each one once.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    /// Adds a warning, unless the same one is waiting already.
    pub(crate) fn add(&self, text: String) {
        let mut warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// Removes and returns all warnings.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
