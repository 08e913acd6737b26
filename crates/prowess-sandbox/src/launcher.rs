//! Our own program, started again to hold a script.

#[cfg(feature = "run")]
use std::{env, process};
use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::Command,
};

#[cfg(feature = "run")]
use crate::supervisor;

/// The program that holds scripts: our own, started again under another name.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
}

/// The name under which a program is a launcher.
const NAME: &str = "prowess-launcher";

impl Launcher {
    /// Becomes the launcher and never returns, if this program was started as one. To be called
    /// first thing in `main`, before there are threads.
    pub fn hook() -> Self {
        #[cfg(feature = "run")]
        if env::args_os().next().is_some_and(|it| it == NAME) {
            let code = if supervisor::launch().is_ok() { 0 } else { 1 };
            process::exit(code);
        }
        // This refers to the running program, even if its file is replaced.
        Self { program: "/proc/self/exe".into() }
    }

    /// Uses another program that calls [`hook`](Self::hook), such as an installed `prowess`.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.program
    }

    /// Returns the command that starts it: with one end of a socket, no environment and no other
    /// descriptor. Returns the other end as well.
    pub(crate) fn command(&self) -> io::Result<(Command, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&self.program);
        command.arg0(NAME).env_clear().stdin(OwnedFd::from(theirs));
        Ok((command, ours))
    }
}
