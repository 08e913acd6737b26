//! Finds what no script should do: a defence in depth, for mistakes and for what is crudely meant.
//!
//! A script is read as a shell reads it, so that quoting, variables that were given a text, text
//! that `echo` prints, `sh -c`, `eval`, wrappers such as `env`, functions and here-documents are
//! seen through. The wall is the sandbox, not this. It does not see: what a downloaded file or a
//! file that the script has written does once it is run; what other programs and interpreters do
//! (their code is only searched for the same words); texts put together by anything but the shell
//! itself; globs in the middle of a path; aliases of a shell's start files.

mod bomb;
mod command;
mod expand;
mod rules;
mod scan;

use std::fmt;

use crate::shell;

/// Something in a script that no script should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Danger {
    /// What kind of thing it is.
    pub pattern: Pattern,
    /// The line it stands on, counted from 1.
    pub line: usize,
    /// The command, as far as it is known; not always as it is written.
    pub what: String,
}

/// What no script should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pattern {
    /// It deletes the root, a home or a directory of the system with all that is in it.
    Delete,
    /// It starts itself again and again.
    ForkBomb,
    /// It runs what was downloaded or decoded just before.
    PipeToShell,
    /// It writes to a disk itself.
    DeviceWrite,
    /// It makes a file system.
    Format,
    /// It copies a disk.
    DiskCopy,
    /// It is too intricate to be checked.
    Obscure,
}

/// Finds the first thing in a script that no script should do. What is no script that can be read
/// is searched as text.
pub fn danger(script: &str) -> Option<Danger> {
    let text = script.replace("\r\n", "\n");
    match shell::parse(&text) {
        Ok(script) => command::Walker::default().whole(&script).err(),
        Err(_) => scan::text(&text, 1).err(),
    }
}

impl Pattern {
    /// The code of it.
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

    /// What a script with it does, in words.
    pub fn does(self) -> &'static str {
        match self {
            Self::Delete => "deletes what nobody can do without",
            Self::ForkBomb => "starts itself without end",
            Self::PipeToShell => "runs what was downloaded or decoded just before",
            Self::DeviceWrite => "writes to a disk itself",
            Self::Format => "makes a file system",
            Self::DiskCopy => "copies raw data with `dd`",
            Self::Obscure => "is too intricate to be checked",
        }
    }
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pattern, line, what } = self;
        write!(f, "line {line} {} ({}): `{what}`", pattern.does(), pattern.as_str())
    }
}
