//! Failures of requests to a server.

use std::borrow::Cow;

use prowess_runtime::{Outcome, OutcomeStatus};

/// A request to a server failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It has ended, or does not respond any more.
    Gone,
    /// It sends too much data.
    Flood,
    /// It returned an error.
    Error(String),
    /// Its output is not MCP.
    NotMcp(String),
    /// The connection failed.
    Connection(ConnectionFailure),
}

/// The reason why a remote server cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionFailure {
    pub(super) status: OutcomeStatus,
    pub(super) message: String,
    pub(super) hint: Option<Cow<'static, str>>,
}

impl ConnectionFailure {
    /// Converts it to the outcome of a request to a server.
    pub(super) fn outcome(self, server: &str) -> Outcome {
        let Self { status, message, hint } = self;
        let mut outcome =
            Outcome::bad(status, format!("the server `{server}` cannot be asked: {message}"));
        outcome.hint = hint.map(Cow::into_owned);
        outcome
    }
}
