//! Windows.

use std::{env, io, path::PathBuf, time::Duration};

use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

use super::OwnDirectory;

/// Returns a directory: settings move with the user from machine to machine, the rest does not.
/// `None` without these variables.
pub(crate) fn own_directory(which: OwnDirectory) -> Option<PathBuf> {
    let (variable, xdg, inner) = match which {
        OwnDirectory::Config => ("APPDATA", "XDG_CONFIG_HOME", "prowess"),
        OwnDirectory::State => ("LOCALAPPDATA", "XDG_STATE_HOME", "prowess/state"),
        OwnDirectory::Cache => ("LOCALAPPDATA", "XDG_CACHE_HOME", "prowess/cache"),
        OwnDirectory::Data => ("LOCALAPPDATA", "XDG_DATA_HOME", "prowess/data"),
    };
    let absolute =
        |name| env::var_os(name).map(PathBuf::from).filter(|it: &PathBuf| it.is_absolute());
    match absolute(xdg) {
        Some(base) => Some(base.join("prowess")),
        None => Some(absolute(variable)?.join(inner.replace('/', "\\"))),
    }
}

/// A stream that may be a console.
pub(crate) use std::os::windows::io::AsHandle as Terminal;

/// Whether the reader of an output is gone: known only once something is written.
pub(crate) fn is_closed<T>(_: &T) -> bool {
    false
}

/// Drops what was typed at the terminal and not read yet: the console keeps it.
pub(crate) fn drop_input() {}

/// Waits for something to read; reading waits as long as it takes.
pub(crate) fn wait_for_input(_: Duration) -> io::Result<bool> {
    Ok(true)
}

/// Whether there is something on standard input, which is not a terminal: unknown before reading.
#[cfg(feature = "agent")]
pub(crate) fn has_input() -> bool {
    false
}

/// Interrupts this process, as Ctrl-C does: only the console can.
#[cfg(feature = "agent")]
pub(crate) fn interrupt_self() {}

/// Returns the number of files that may be open: only memory limits it.
#[cfg(feature = "mcp")]
pub(crate) fn raise_file_limit() -> u64 {
    u64::MAX
}

/// Gives a file the owner of another one: a new file has the owner of its folder.
#[cfg(feature = "mcp")]
pub(crate) fn give_owner(_: &std::path::Path, _: &std::fs::Metadata) {}

/// The ways to end a program at its console.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SignalKind {
    Interrupt,
    Terminate,
}

impl SignalKind {
    /// Ctrl-C.
    pub(crate) fn interrupt() -> Self {
        Self::Interrupt
    }

    /// Ctrl-Break.
    pub(crate) fn terminate() -> Self {
        Self::Terminate
    }
}

/// A stream of requests to end.
#[derive(Debug)]
pub(crate) enum Signal {
    Interrupt(CtrlC),
    Terminate(CtrlBreak),
}

impl Signal {
    pub(crate) async fn recv(&mut self) -> Option<()> {
        match self {
            Self::Interrupt(it) => it.recv().await,
            Self::Terminate(it) => it.recv().await,
        }
    }
}

/// Returns the requests of a kind, from now on.
pub(crate) fn signal(kind: SignalKind) -> io::Result<Signal> {
    Ok(match kind {
        SignalKind::Interrupt => Signal::Interrupt(ctrl_c()?),
        SignalKind::Terminate => Signal::Terminate(ctrl_break()?),
    })
}

/// Returns the signal that ended a program; there are none.
#[cfg(feature = "packages")]
pub(crate) fn signal_of(_: &std::process::ExitStatus) -> Option<u8> {
    None
}
