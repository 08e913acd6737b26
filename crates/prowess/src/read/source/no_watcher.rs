//! The watcher of a system that does not report file changes.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::WatchEvent;

/// A watcher that cannot be created.
#[derive(Debug)]
pub(crate) enum Watcher {}

impl Watcher {
    pub(crate) fn new() -> Result<Self, String> {
        Err("this system does not report them".to_owned())
    }

    pub(crate) fn watch_during<T>(
        &self,
        _: Option<&[PathBuf]>,
        _: impl FnOnce() -> T,
    ) -> (T, Result<(), String>) {
        match *self {}
    }

    pub(crate) fn watch(&self, _: &Path, _: &Path) {
        match *self {}
    }

    pub(crate) fn watch_path(&self, _: &Path) {
        match *self {}
    }

    pub(crate) fn is_shared(&self) -> bool {
        match *self {}
    }

    pub(crate) fn wait(&self, _: Duration, _: Instant) -> WatchEvent {
        match *self {}
    }

    pub(crate) fn end(&self) {
        match *self {}
    }
}
