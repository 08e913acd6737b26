//! Watches what a server sends: how much, and what has changed.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use rmcp::service::ServiceError;

use super::failure::{Failure, Trouble};

/// Events observed on the connection to a server.
#[derive(Debug)]
pub(super) struct TrafficMonitor {
    /// How much it may still say.
    room: AtomicU64,
    is_flooded: AtomicBool,
    pub(super) has_news: AtomicBool,
    pub(super) has_other_skills: AtomicBool,
    /// The problems since the last request.
    trouble: Mutex<Option<Trouble>>,
}

/// How much a server may say between two questions.
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
    /// Lets it say so much more than a usual answer has.
    pub(super) fn allow(&self, more: u64) {
        self.room.store(MOST + more, Ordering::Relaxed);
        self.note(None);
    }

    /// Notes what is in the way to it.
    pub(super) fn note(&self, trouble: Option<Trouble>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Hears so much; says whether that is still wanted.
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

    /// Why it is not there.
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
