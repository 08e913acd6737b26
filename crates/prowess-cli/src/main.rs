//! The program `prowess`: one command a file, one printer, no logic of its own.

mod arguments;
mod examples;
mod completion;
mod context;
mod given;
mod fault;
mod connection;
mod sessions;
mod approver;
mod host;
mod toolbox;
mod agent;
mod viewer;
mod conversation;
mod printer;
mod safe;
mod snippet;
mod diff;
mod report;
mod readable;
mod markdown;
mod page;
mod telemetry;
mod commands;

use std::{io, process::ExitCode};

use prowess_runtime::{ConfigError, Launcher};

use crate::{arguments::Arguments, fault::Fault, printer::Printer};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// All is well.
    Well,
    /// The skill or what was typed is at fault.
    AtFault,
    /// We could not do it, and have said why.
    Unable,
}

impl Status {
    fn code(self) -> ExitCode {
        match self {
            Self::Well => ExitCode::SUCCESS,
            Self::AtFault => ExitCode::from(1),
            Self::Unable => ExitCode::from(2),
        }
    }
}

fn main() -> ExitCode {
    let launcher = Launcher::hook();
    if let Some(code) = completion::answer() {
        return code;
    }
    arguments::choose_color();
    let arguments = match Arguments::typed() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no faults; a mistyped command is.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let mut printer = Printer::new(&arguments.global);
    match commands::run(&arguments, launcher, &mut printer).and_then(|status| {
        printer.flush()?;
        Ok(status)
    }) {
        Ok(status) => status.code(),
        // Whoever read our output has enough of it.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(fault) = error.downcast_ref::<Fault>() {
                fault.tell(&mut printer);
                return fault.status.code();
            }
            match error.downcast_ref::<ConfigError>() {
                Some(error) => printer.config_error(error),
                None => printer.error(&error),
            }
            Status::Unable.code()
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|it| it.downcast_ref::<io::Error>());
    causes.any(|it| it.kind() == io::ErrorKind::BrokenPipe)
}
