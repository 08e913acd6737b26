//! POSIX shell scripts: a parser, and a lint for destructive commands.
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
//! The parser accepts what a POSIX shell accepts, and the commonly used parts of bash. It is
//! conservative: it runs in linear time, limits the nesting depth, and rejects what it does not
//! understand. It expands nothing. If `sh` and `bash` parse a text differently, it uses the
//! interpretation in which more is executed: `((…))` are two subshells, and `[[ … && … ]]` keeps
//! its parts.
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
