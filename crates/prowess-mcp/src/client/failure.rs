//! Why a server does not answer.

use std::borrow::Cow;

use prowess_runtime::{Outcome, OutcomeStatus};

/// A server did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It has ended, or does not listen any more.
    Gone,
    /// It sends too much.
    Flood,
    /// It says that it cannot.
    Said(String),
    /// Its output is not MCP.
    Nonsense(String),
    /// There is no way to it.
    Trouble(Trouble),
}

/// Why there is no way to a server behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) status: OutcomeStatus,
    pub(super) message: String,
    pub(super) hint: Option<Cow<'static, str>>,
}

impl Trouble {
    /// The result of a request to a server.
    pub(super) fn outcome(self, server: &str) -> Outcome {
        let Self { status, message, hint } = self;
        let outcome =
            Outcome::bad(status, format!("the server `{server}` cannot be asked: {message}"));
        Outcome { hint: hint.map(Cow::into_owned), ..outcome }
    }
}
