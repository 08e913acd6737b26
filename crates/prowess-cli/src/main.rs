//! The program `prowess`: one command a file, one printer, no logic of its own.

mod features;
mod sys;
mod arguments;
mod usage_error;
mod examples;
mod overview;
mod completion;
mod config_cache;
mod context;
mod matching_args;
mod skill_count;
mod needs;
mod surroundings;
mod input;
mod key_file;
mod suggest;
mod cli_error;
mod secrets;
#[cfg(feature = "agent")]
mod connection;
#[cfg(feature = "agent")]
mod sessions;
#[cfg(feature = "agent")]
mod pending;
mod approver;
#[cfg(any(feature = "http", feature = "packages"))]
mod registries;
mod host;
#[cfg(feature = "http")]
mod preparing;
#[cfg(any(feature = "http", feature = "mcp"))]
mod server_label;
#[cfg(feature = "mcp")]
mod connecting;
mod trust;
#[cfg(feature = "packages")]
mod packages;
mod tool_text;
mod toolbox;
#[cfg(feature = "agent")]
mod agent;
#[cfg(feature = "agent")]
mod event_renderer;
#[cfg(feature = "agent")]
mod conversation;
mod printer;
mod safe;
mod snippet;
mod diff;
mod report;
mod readable;
mod markdown;
mod page;
mod version;
#[cfg(feature = "agent")]
mod telemetry;
mod migrate;
mod commands;

use std::{io, process::ExitCode};

use anyhow::Result;
use clap::error::ErrorKind;
use prowess_cli::settings::ConfigError;
use prowess_runtime::Launcher;

use crate::{
    arguments::{Arguments, Global},
    cli_error::CliError,
    printer::Printer,
};

/// The exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitStatus {
    /// It succeeded.
    Success,
    /// The skill or the command line is wrong.
    Failure,
    /// The command could not be carried out; the reason was printed.
    Error,
    /// A program was run in its place, and ended with this status.
    #[cfg(feature = "packages")]
    Program(u8),
}

impl ExitStatus {
    fn code(self) -> ExitCode {
        match self {
            Self::Success => ExitCode::SUCCESS,
            Self::Failure => ExitCode::from(1),
            Self::Error => ExitCode::from(2),
            #[cfg(feature = "packages")]
            Self::Program(status) => ExitCode::from(status),
        }
    }
}

fn main() -> ExitCode {
    let launcher = Launcher::hook();
    if let Some(code) = completion::answer() {
        return code;
    }
    arguments::choose_color();
    let typed = Arguments::parse();
    let is_json = arguments::words().take_while(|it| it != "--").any(|it| it == "--json");
    let bare = Global { json: is_json, ..Global::default() };
    let mut printer = Printer::new(typed.as_ref().map_or(&bare, |it| &it.global));
    let ended = match &typed {
        Ok(arguments) => commands::run(arguments, launcher, &mut printer),
        Err(error) => help(error, &mut printer),
    };
    let ended = ended.and_then(|status| {
        printer.flush()?;
        Ok(status)
    });
    match ended {
        Ok(ExitStatus::Success) => ExitStatus::Success.code(),
        Ok(status) => {
            let _ = printer.error_document();
            status.code()
        }
        // A reader that closes the pipe is not an error.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let status = match error.downcast_ref::<CliError>() {
                Some(fault) => {
                    fault.print(&mut printer);
                    fault.status
                }
                None => {
                    match error.downcast_ref::<ConfigError>() {
                        Some(error) => printer.config_error(error),
                        None => printer.error(&error),
                    }
                    ExitStatus::Error
                }
            };
            let _ = printer.error_document();
            status.code()
        }
    }
}

/// Prints the help or version; any other error becomes a usage error.
fn help(error: &clap::Error, printer: &mut Printer) -> Result<ExitStatus> {
    let words: Vec<String> = arguments::words().skip(1).collect();
    let is_help = error.kind() == ErrorKind::DisplayHelp;
    let text = match usage_error::is_bare(&words) {
        true if is_help => overview::render(!words.iter().any(|it| it == "-h"), printer.width),
        _ => error.render(),
    };
    match error.kind() {
        ErrorKind::DisplayHelp => {
            let text = if printer.colored { text.ansi().to_string() } else { text.to_string() };
            printer.raw(text.as_bytes())?;
            Ok(ExitStatus::Success)
        }
        ErrorKind::DisplayVersion => {
            version::print(printer)?;
            Ok(ExitStatus::Success)
        }
        _ => Err(usage_error::explain(error, &words).into()),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|it| it.downcast_ref::<io::Error>());
    causes.any(|it| it.kind() == io::ErrorKind::BrokenPipe)
}
