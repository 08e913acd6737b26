//! Logging: a line per event.

use tracing::{debug, error, info, warn};

use crate::{
    event::{EventDescription, EventKind, EventLevel},
    middleware::{Middleware, request::Turn},
};

/// Logs events through the crate `tracing`, one line each, with the target `prowess`.
///
/// Events that matter to a user are `INFO`, each step `DEBUG`, problems `WARN`, and a turn without
/// an answer `ERROR`. Messages, calls and results are not logged unless `texts` is set, because
/// they may contain secrets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Logging {
    /// Whether lines also contain messages, calls and results.
    pub texts: bool,
}

impl Middleware for Logging {
    fn name(&self) -> &str {
        "logging"
    }

    fn note(&self, turn: &Turn, what: &EventKind) {
        if what.is_piece() {
            return;
        }
        let EventDescription { level, sentence, text, .. } = what.describe();
        let line = match text.filter(|_| self.texts) {
            Some(text) => one_line(&format!("{sentence}: {text}")),
            None => one_line(&sentence),
        };
        let event = what.name();
        let (session, turn, step) = (turn.session.id(), turn.number, turn.steps());
        match level {
            EventLevel::Error => error!(target: "prowess", session, turn, step, event, "{line}"),
            EventLevel::Warn => warn!(target: "prowess", session, turn, step, event, "{line}"),
            EventLevel::Info => info!(target: "prowess", session, turn, step, event, "{line}"),
            EventLevel::Debug => debug!(target: "prowess", session, turn, step, event, "{line}"),
        }
    }
}

/// Returns a text as a single line.
fn one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}
