//! Monitors the traffic of a server: its amount, and announced changes.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use rmcp::service::ServiceError;

use super::failure::{Failure, Trouble};

/// Events observed on the connection to a server.
#[derive(Debug)]
pub(super) struct TrafficMonitor {
    /// The number of bytes that it may still send.
    room: AtomicU64,
    is_flooded: AtomicBool,
    pub(super) has_news: AtomicBool,
    pub(super) has_other_skills: AtomicBool,
    /// The problems since the last request.
    trouble: Mutex<Option<Trouble>>,
}

/// The maximum number of bytes that a server may send between two requests.
const MOST: u64 = 8 * 1024 * 1024;

impl Default for TrafficMonitor {
    fn default() -> Self {
        Self {
            room: AtomicU64::new(MOST),
            is_flooded: AtomicBool::default(),
            has_news: AtomicBool::default(),
            has_other_skills: AtomicBool::default(),
            trouble: Mutex::default(),
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
    pub(super) fn note(&self, trouble: Option<Trouble>) {
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

    pub(super) fn is_flooded(&self) -> bool {
        self.is_flooded.load(Ordering::Relaxed)
    }

    /// Returns the reason why it is gone.
    pub(super) fn gone(&self) -> Failure {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        trouble.map_or(Failure::Gone, Failure::Trouble)
    }

    pub(super) fn failure(&self, error: ServiceError) -> Failure {
        match error {
            _ if self.is_flooded() => Failure::Flood,
            ServiceError::McpError(error) => Failure::Said(error.message.into()),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => self.gone(),
            error => Failure::Nonsense(error.to_string()),
        }
    }
}
