//! Starts the launcher, and learns its version.

use std::{
    env,
    ffi::OsString,
    fs,
    fs::File,
    io::{self, Write as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{
            fs::{MetadataExt as _, OpenOptionsExt as _},
            net::UnixStream,
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use rustix::{
    fs::{FileType, MemfdFlags, OFlags, SealFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{
    launcher::{Launcher, LauncherSource, NAME},
    order::Order,
};

/// The first message of a launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    /// Its version, which has to be ours: the messages differ between versions.
    launcher: String,
}

/// The timeout of its first message.
pub(super) const GREETING: Duration = Duration::from_secs(10);
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether this process was started as a launcher: under its name, with a socket and nothing else. A
/// person who types that name has no socket there.
pub(crate) fn is_launcher() -> bool {
    let mut arguments = env::args_os();
    let is_named = arguments.next().is_some_and(|it| it == NAME) && arguments.next().is_none();
    is_named
        && rustix::fs::fstat(io::stdin())
            .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Socket)
}

/// A launcher that is about to be started.
pub(super) struct Start {
    pub(super) command: Command,
    /// Our end of its socket.
    pub(super) control: UnixStream,
}

/// Prepares to start a launcher for a job: with one end of a socket, no environment and no other
/// descriptor.
pub(super) fn start(launcher: &Launcher, order: &Order) -> io::Result<Start> {
    let (control, theirs) = UnixStream::pair()?;
    let theirs = above_stdio(theirs.into())?;
    let path = match &launcher.source {
        // This refers to the running program, even if its file is replaced.
        LauncherSource::Own => "/proc/self/exe".into(),
        LauncherSource::Program(path) => path.clone(),
        LauncherSource::Installed(file) => descriptor_path(installed_file(&order.writes, file)?),
        LauncherSource::Embedded(bytes, file) => descriptor_path(memory_file(bytes, file)?),
    };
    let mut command = Command::new(path);
    command.arg0(NAME).env_clear().stdin(theirs);
    Ok(Start { command, control })
}

impl Greeting {
    pub(super) fn new() -> Self {
        Self { launcher: VERSION.to_owned() }
    }

    /// Accepts our own version only.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.launcher == VERSION {
            return Ok(());
        }
        // It comes from another program.
        let other: String = self.launcher.chars().filter(|it| !it.is_control()).take(40).collect();
        Err(io::Error::other(format!(
            "it is of version {other}, and version {VERSION} is needed: \
             `cargo install prowess-sandbox@{VERSION}` installs it"
        )))
    }
}

/// Returns the error of a program that ended, or sent something else, instead of a greeting.
pub(super) fn no_greeting(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::InvalidData
        | io::ErrorKind::TimedOut
        | io::ErrorKind::WouldBlock
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => {
            io::Error::new(error.kind(), "it is not a launcher of this version, or it was killed")
        }
        _ => error,
    }
}

/// Returns the helper that was found first: the file that was checked is the one that is started.
fn installed_file<'f>(writes: &[OsString], file: &'f OnceLock<File>) -> io::Result<&'f File> {
    if let Some(file) = file.get() {
        return Ok(file);
    }
    let found = find_installed(writes)?;
    Ok(file.get_or_init(|| found))
}

/// Finds the helper beside the running program, or on `PATH`, and opens it. The job may write these
/// paths.
fn find_installed(writes: &[OsString]) -> io::Result<File> {
    let beside = env::current_exe().ok().and_then(|it| Some(it.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let directories =
        beside.into_iter().chain(env::split_paths(&path).filter(|it| it.is_absolute()));
    let mut refused = None;
    for directory in directories {
        match open_trusted(&directory, writes) {
            Ok(Some(program)) => return Ok(above_stdio(program.into())?.into()),
            Ok(None) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        let advice = format!(
            "there is none beside this program or on `PATH`; `cargo install \
             prowess-sandbox@{VERSION}` installs it, or the program calls `Launcher::hook` first \
             in `main`"
        );
        io::Error::new(io::ErrorKind::NotFound, advice)
    }))
}

/// Opens the helper in a directory; `None` if there is none. Fails if others or the job could change
/// it.
fn open_trusted(directory: &Path, writes: &[OsString]) -> io::Result<Option<File>> {
    // A package manager may have put a link there.
    let path = directory.join(NAME);
    let Ok(real) = fs::canonicalize(&path) else { return Ok(None) };
    let mut options = File::options();
    options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    let program = match options.open(&real) {
        Ok(program) => program,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refusal(&path, &error.to_string())),
    };
    let metadata = program.metadata()?;
    if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
        return Err(refusal(&path, "it is not a program"));
    }
    let link = fs::canonicalize(directory)?.join(NAME);
    if writes.iter().any(|it| [&real, &link].iter().any(|helper| helper.starts_with(it))) {
        return Err(refusal(&path, "what runs in the sandbox may write there"));
    }
    let beside = fs::metadata(directory)?;
    let around = fs::metadata(real.parent().unwrap_or(directory))?;
    let all = [("it", metadata), ("its directory", beside), ("its directory", around)];
    for (what, metadata) in all {
        let own = [0, rustix::process::geteuid().as_raw()];
        if !own.contains(&metadata.uid()) {
            return Err(refusal(&path, &format!("{what} belongs to another user")));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(refusal(
                &path,
                &format!("others may write to {what}: `chmod go-w` ends that"),
            ));
        }
    }
    Ok(Some(program))
}

fn refusal(path: &Path, why: &str) -> io::Error {
    let message = format!("`{}` is not used, because {why}", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// Returns the file in memory with a helper. It cannot be changed, also not by us.
fn memory_file<'f>(bytes: &[u8], file: &'f OnceLock<File>) -> io::Result<&'f File> {
    if let Some(file) = file.get() {
        return Ok(file);
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = match rustix::fs::memfd_create(NAME, flags | MemfdFlags::EXEC) {
        // Kernels before 6.3 do not know that flag, and need none.
        Err(Errno::INVAL) => rustix::fs::memfd_create(NAME, flags),
        memory => memory,
    };
    let mut memory = File::from(above_stdio(memory?)?);
    memory.write_all(bytes)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&memory, seals)?;
    Ok(file.get_or_init(|| memory))
}

/// Moves a descriptor out of the way of those that the child gets, if the host has closed its own.
fn above_stdio(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() > 2 {
        return Ok(descriptor);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&descriptor, 3)?)
}

/// Returns a path by which a child can execute an open file, which is closed then.
fn descriptor_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}
