//! Unix systems.

use std::{env, io, os::fd::AsFd, path::PathBuf, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    termios::{QueueSelector, tcflush},
};
#[cfg(feature = "agent")]
pub(crate) use tokio::signal::unix::Signal;
pub(crate) use tokio::signal::unix::{SignalKind, signal};

use super::OwnDirectory;

/// Returns a directory by the XDG specification, which ignores relative paths; `None` without a
/// home directory.
pub(crate) fn own_directory(which: OwnDirectory) -> Option<PathBuf> {
    let (variable, in_home) = match which {
        OwnDirectory::Config => ("XDG_CONFIG_HOME", ".config"),
        OwnDirectory::State => ("XDG_STATE_HOME", ".local/state"),
        OwnDirectory::Cache => ("XDG_CACHE_HOME", ".cache"),
        OwnDirectory::Data => ("XDG_DATA_HOME", ".local/share"),
    };
    let xdg = env::var_os(variable).map(PathBuf::from).filter(|it| it.is_absolute());
    let home = env::home_dir().filter(|it| it.is_absolute());
    Some(xdg.or_else(|| Some(home?.join(in_home)))?.join("prowess"))
}

/// A stream that may be a terminal.
pub(crate) use std::os::fd::AsFd as Terminal;

/// Whether the reader of an output is gone.
pub(crate) fn is_closed(output: &impl AsFd) -> bool {
    let mut out = [PollFd::new(output, PollFlags::empty())];
    let looked = poll(&mut out, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    looked.is_ok() && out[0].revents().contains(PollFlags::ERR)
}

/// Drops what was typed at the terminal and not read yet.
pub(crate) fn drop_input() {
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// Waits for a while for something to read; returns whether there is.
pub(crate) fn wait_for_input(patience: Duration) -> io::Result<bool> {
    let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    match poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], Some(&patience)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the signal that ended a program.
#[cfg(feature = "packages")]
pub(crate) fn signal_of(status: &std::process::ExitStatus) -> Option<u8> {
    use std::os::unix::process::ExitStatusExt as _;
    u8::try_from(status.signal()?).ok()
}

/// Whether there is something on standard input, which is not a terminal.
#[cfg(feature = "agent")]
pub(crate) fn has_input() -> bool {
    rustix::io::ioctl_fionread(io::stdin()).is_ok_and(|it| it > 0)
}

/// Interrupts this process, as Ctrl-C does.
#[cfg(feature = "agent")]
pub(crate) fn interrupt_self() {
    use rustix::process::{Signal, getpid, kill_process};
    // Signalling one's own process does not fail.
    let _ = kill_process(getpid(), Signal::INT);
}

/// Allows as many open files as this user may have, and returns their number.
#[cfg(feature = "mcp")]
pub(crate) fn raise_file_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let most = setrlimit(Resource::Nofile, raised).map_or(limit.current, |()| limit.maximum);
    most.unwrap_or(u64::MAX)
}

/// Gives a file the owner of another one, if this user may.
#[cfg(feature = "mcp")]
pub(crate) fn give_owner(path: &std::path::Path, of: &std::fs::Metadata) {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let _ = chown(path, Some(of.uid()), Some(of.gid()));
}
