//! The error of a command, with a hint.

use std::{error::Error, fmt};

use crate::{ExitStatus, printer::Printer};

/// An error that ends a command. `main` prints it, and exits with its status.
#[derive(Debug)]
pub(crate) struct CliError {
    message: String,
    hints: Vec<String>,
    pub(crate) status: ExitStatus,
}

impl CliError {
    /// Creates an error for something that could not be done.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), status: ExitStatus::Error }
    }

    /// Creates an error for a wrong command line.
    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self { status: ExitStatus::Failure, ..Self::new(message) }
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn print(&self, printer: &mut Printer) {
        printer.error_text(&self.message);
        self.hints.iter().for_each(|it| printer.hint(it));
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CliError {}
