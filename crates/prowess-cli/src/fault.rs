//! What keeps a command from its work, with what to do about it.

use std::{error::Error, fmt};

use crate::{Status, printer::Printer};

/// What keeps a command from its work. `main` says it, and exits by its status.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    hints: Vec<String>,
    pub(crate) status: Status,
}

impl Fault {
    /// We cannot do it.
    pub(crate) fn unable(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), status: Status::Unable }
    }

    /// What was typed is at fault.
    pub(crate) fn typed(message: impl Into<String>) -> Self {
        Self { status: Status::AtFault, ..Self::unable(message) }
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Fault {}
