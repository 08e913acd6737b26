//! Our own program, started again to hold a script.

use std::{
    env,
    io::{self, stdin},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    process::{self, Stdio},
};

use tokio::process::{Child, Command};

use super::{supervisor, sys};

/// The program that holds scripts: our own, started again under another name.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
}

/// The name under which a program is a launcher.
const NAME: &str = "prowess-launcher";

impl Launcher {
    /// Becomes the launcher, if that is what this program was started as, and never returns then.
    /// To be called first thing in `main`, before there are threads.
    pub fn hook() -> Self {
        if env::args_os().next().is_some_and(|it| it == NAME) {
            let code = if launch().is_ok() { 0 } else { 1 };
            process::exit(code);
        }
        // Whatever becomes of the file meanwhile, this is the program that runs now.
        Self { program: "/proc/self/exe".into() }
    }

    /// Names a program that calls [`hook`](Self::hook), such as an installed `prowess`.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.program
    }

    /// Starts it with these streams and nothing else: no environment, no other descriptor.
    pub(super) fn start(&self, output: fn() -> Stdio) -> io::Result<(UnixStream, Child)> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(&self.program)
            .arg0(NAME)
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(output())
            .stderr(output())
            .spawn()?;
        Ok((ours, child))
    }
}

/// Does what is ordered, and stays until nobody wants the work directory any more.
fn launch() -> io::Result<()> {
    sys::close_from(3)?;
    sys::default_signals();
    let control = rustix::io::fcntl_dupfd_cloexec(stdin(), 3)?;
    supervisor::supervise(UnixStream::from(control))
}
