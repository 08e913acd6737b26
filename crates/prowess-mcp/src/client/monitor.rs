//! Monitors the traffic of a server: its amount, and announced changes.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use rmcp::service::ServiceError;
use serde::de::IgnoredAny;

use super::failure::{ConnectionFailure, Failure};

/// Events observed on the connection to a server.
#[derive(Debug)]
pub(super) struct TrafficMonitor {
    /// The number of bytes that it may still send.
    room: AtomicU64,
    is_flooded: AtomicBool,
    pub(super) has_changed_tools: AtomicBool,
    pub(super) has_changed_skills: AtomicBool,
    /// The problems since the last request.
    trouble: Mutex<Option<ConnectionFailure>>,
    /// Whether a message has arrived.
    has_message: AtomicBool,
    /// The first line that arrived and is not a message.
    foreign_line: Mutex<Option<String>>,
}

/// The maximum number of bytes that a server may send between two requests.
const MOST: u64 = 8 * 1024 * 1024;
/// The number of characters kept of a line that is not a message.
const LINE: usize = 400;

impl Default for TrafficMonitor {
    fn default() -> Self {
        Self {
            room: AtomicU64::new(MOST),
            is_flooded: AtomicBool::default(),
            has_changed_tools: AtomicBool::default(),
            has_changed_skills: AtomicBool::default(),
            trouble: Mutex::default(),
            has_message: AtomicBool::default(),
            foreign_line: Mutex::default(),
        }
    }
}

impl TrafficMonitor {
    /// Allows so many more bytes than for a usual answer.
    pub(super) fn allow(&self, more: u64) {
        self.room.store(MOST + more, Ordering::Relaxed);
        self.note(None);
    }

    /// Records a connection error.
    pub(super) fn note(&self, trouble: Option<ConnectionFailure>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Counts incoming bytes; returns whether they are within the limit.
    pub(super) fn count(&self, said: usize) -> bool {
        let (room, said) = (&self.room, said as u64);
        let fits = room.try_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(said));
        if fits.is_err() {
            self.is_flooded.store(true, Ordering::Relaxed);
        }
        fits.is_ok()
    }

    /// Records a line that is not a message, until the first message arrives.
    pub(super) fn inspect(&self, line: &[u8]) {
        if self.has_message.load(Ordering::Relaxed) || line.trim_ascii().is_empty() {
            return;
        }
        let is_object = line.trim_ascii_start().starts_with(b"{");
        if is_object && serde_json::from_slice::<IgnoredAny>(line).is_ok() {
            self.has_message.store(true, Ordering::Relaxed);
            return;
        }
        let mut first = self.foreign_line.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| String::from_utf8_lossy(line).chars().take(LINE).collect());
    }

    /// Removes the first line that is not a message, and returns it.
    pub(super) fn take_foreign_line(&self) -> Option<String> {
        self.foreign_line.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.is_flooded.load(Ordering::Relaxed)
    }

    /// Returns the reason why it is gone.
    pub(super) fn end_reason(&self) -> Failure {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        trouble.map_or(Failure::Gone, Failure::Connection)
    }

    pub(super) fn failure(&self, error: ServiceError) -> Failure {
        match error {
            _ if self.is_flooded() => Failure::Flood,
            ServiceError::McpError(error) => Failure::Error(error.message.into()),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => self.end_reason(),
            error => Failure::NotMcp(error.to_string()),
        }
    }
}
