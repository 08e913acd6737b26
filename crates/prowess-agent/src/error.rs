//! The error of a turn that has no answer.

use std::error::Error;

use prowess::FitError;

use crate::{
    model::{ModelError, WINDOW},
    session::SessionError,
};

/// A request could not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The parts of the prompt that cannot be left out do not fit into the context window.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// The session cannot be saved.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The model calls tools without end.
    #[error("no answer after {steps} steps")]
    Steps {
        /// The number of steps it had.
        steps: usize,
    },
    /// More was spent than may be.
    #[error("{what} is used up")]
    Spent {
        /// The limit, such as `the limit of 1000 tokens`.
        what: String,
    },
    /// A rule or a person denied it.
    #[error("{message}")]
    Refused {
        /// The thing denied, and the reason.
        message: String,
    },
    /// A middleware failed with an error of its own.
    #[error("{middleware}: {source}")]
    Middleware {
        /// The middleware.
        middleware: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl TurnError {
    /// Returns a hint: the action that may resolve the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Model(error) => error.hint(),
            Self::Fit(_) => Some(WINDOW.to_owned()),
            Self::Steps { .. } => Some("use `--steps` to allow more".to_owned()),
            _ => None,
        }
    }
}
