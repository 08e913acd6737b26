//! Why a request has no answer.

use std::error::Error;

use prowess::FitError;

use crate::{
    model::{ModelError, WINDOW},
    session::SessionError,
};

/// A request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The model gave no reply.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What has to be said does not fit.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// The session cannot be kept.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The model calls tools without end.
    #[error("no answer after {steps} steps")]
    Steps {
        /// How many it had.
        steps: usize,
    },
    /// More was spent than may be.
    #[error("{what} is used up")]
    Spent {
        /// What there was of it, such as `the limit of 1000 tokens`.
        what: String,
    },
    /// A rule or a person said no.
    #[error("{message}")]
    Refused {
        /// To what, and why.
        message: String,
    },
    /// Something else went wrong on the way, in a middleware that says so.
    #[error("{middleware}: {source}")]
    Middleware {
        /// The middleware.
        middleware: String,
        /// What went wrong.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl TurnError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Model(error) => error.hint(),
            Self::Fit(_) => Some(WINDOW.to_owned()),
            Self::Steps { .. } => Some("use `--steps` to allow more".to_owned()),
            _ => None,
        }
    }
}
