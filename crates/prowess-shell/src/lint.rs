//! Finds destructive commands: defence in depth, against mistakes and crude attacks.
//!
//! A script is parsed like in a shell, so that quoting, variables with a known text, text that
//! `echo` prints, `sh -c`, `eval`, wrappers such as `env`, functions and here-documents are seen
//! through. The security boundary is the sandbox, not this. It does not see: what a downloaded file
//! or a file that the script has written does once it is run; what other programs and interpreters
//! do (their code is only searched for the same words); texts composed by anything but the shell
//! itself; globs in the middle of a path; aliases of a shell's start files.

mod bomb;
mod command;
mod expand;
mod rules;
mod scan;

use std::fmt;

use crate::parser::parse;

/// A destructive command in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hazard {
    /// The kind.
    pub kind: HazardKind,
    /// The line, from 1.
    pub line: usize,
    /// The command, as far as it is known; not always as it is written.
    pub command: String,
}

/// The kind of a hazard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HazardKind {
    /// It deletes the root, a home or a system directory with everything in it.
    Delete,
    /// It starts itself without end.
    ForkBomb,
    /// It runs something that was just downloaded or decoded.
    PipeToShell,
    /// It writes to a disk directly.
    DeviceWrite,
    /// It creates a file system.
    Format,
    /// It copies a disk.
    DiskCopy,
    /// It is too complex to be checked.
    Obscure,
}

/// Finds the first destructive command in a script. A text that cannot be parsed as a script is
/// searched line by line.
pub fn lint(script: &str) -> Option<Hazard> {
    let text = script.replace("\r\n", "\n");
    match parse(&text) {
        Ok(script) => command::Walker::default().walk(&script).err(),
        Err(_) => scan::text(&text, 1).err(),
    }
}

impl HazardKind {
    /// Returns a stable code, such as `recursive-delete`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "recursive-delete",
            Self::ForkBomb => "fork-bomb",
            Self::PipeToShell => "pipe-to-shell",
            Self::DeviceWrite => "device-write",
            Self::Format => "format",
            Self::DiskCopy => "disk-copy",
            Self::Obscure => "obscure",
        }
    }

    /// Returns the predicate of a sentence about the script, such as "makes a file system".
    pub fn description(self) -> &'static str {
        match self {
            Self::Delete => "deletes essential files",
            Self::ForkBomb => "starts itself endlessly",
            Self::PipeToShell => "runs downloaded or decoded code",
            Self::DeviceWrite => "writes directly to a disk",
            Self::Format => "creates a file system",
            Self::DiskCopy => "copies raw data with `dd`",
            Self::Obscure => "is too complex to check",
        }
    }
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, line, command } = self;
        write!(f, "line {line} {} ({}): `{command}`", kind.description(), kind.as_str())
    }
}
