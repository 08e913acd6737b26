//! What keeps a command from its work, with what to do about it.

use std::{error::Error, fmt};

use crate::{ExitStatus, printer::Printer};

/// What keeps a command from its work. `main` says it, and exits by its status.
#[derive(Debug)]
pub(crate) struct CliError {
    message: String,
    hints: Vec<String>,
    pub(crate) status: ExitStatus,
}

impl CliError {
    /// We cannot do it.
    pub(crate) fn unable(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), status: ExitStatus::Error }
    }

    /// What was typed is at fault.
    pub(crate) fn typed(message: impl Into<String>) -> Self {
        Self { status: ExitStatus::Failure, ..Self::unable(message) }
    }

    /// Says what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn tell(&self, printer: &mut Printer) {
        printer.fault(&self.message);
        self.hints.iter().for_each(|it| printer.hint(it));
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CliError {}
