//! POSIX shell scripts: a reader, and a lint for destructive commands.
//!
//! ```
//! let hazard = prowess_shell::lint("X=/\nsudo rm -rf \"$X\"").unwrap();
//! assert_eq!(hazard.kind, prowess_shell::HazardKind::Delete);
//! assert_eq!(hazard.line, 2);
//!
//! let script = prowess_shell::parse("cd src && ls *.rs | wc -l").unwrap();
//! assert_eq!(script.0.len(), 2);
//! assert_eq!(script.0[1].commands.len(), 2);
//! ```
//!
//! The reader takes what a POSIX shell takes, and what people use of bash. It is conservative: it
//! takes time in proportion to the text, goes down a bounded number of levels, and refuses what it
//! does not understand. It expands nothing. Where `sh` and `bash` read a text differently it takes the
//! reading in which more is run: `((…))` are two subshells, and `[[ … && … ]]` keeps its parts.
//!
//! Nothing in this crate runs a script, opens a file or reads the environment.
#![warn(missing_docs)]

mod script;
mod parser;
mod lint;
#[cfg(test)]
mod tests;

pub use crate::{
    lint::{Hazard, HazardKind, lint},
    parser::{ShellError, parse},
    script::{
        Assignment, CommandKind, CompoundKind, ListOperator, Pipeline, Redirect, RedirectKind,
        ShellCommand, ShellScript, Word, WordPart,
    },
};
