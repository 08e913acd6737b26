//! A program in a process group of its own.
#![expect(unsafe_code, reason = "what a process does before it becomes a program has no safe API")]

use std::{
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::{
    fs::Mode,
    io::{Errno, FdFlags},
    process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions},
};
use tokio::{
    io::AsyncRead,
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::oneshot,
};

use crate::{
    ending::Exit, environment::environment, level::SandboxLevel, limits::RunLimits, order::Order,
};

/// A program that was started, and its streams.
pub(super) struct Program {
    pub(super) group: Arc<ProcessGroup>,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) stderr: ChildStderr,
    /// Its exit. Then nothing of its process group is left.
    pub(super) exit: oneshot::Receiver<io::Result<Exit>>,
}

/// A program, and all its descendants that have not left its process group.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    leader: Pid,
    /// Whether it is gone; then its number may be that of another group.
    is_gone: Mutex<bool>,
}

/// The largest number of a descriptor that may have been left open for the program.
const MAX_DESCRIPTOR: u64 = 1 << 16;

impl Program {
    /// Starts the program of an order. Its stdin and stdout are the socket, if there is one.
    pub(super) fn start(order: &Order, socket: Option<OwnedFd>) -> io::Result<Self> {
        let (program, arguments) = order.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(environment(order, SandboxLevel::None, None))
            .current_dir(&order.directory)
            .stdin(if order.has_stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(socket) = socket {
            command.stdin(socket.try_clone()?).stdout(socket);
        }
        let limits = order.limits;
        // SAFETY: between fork and exec, only system calls are made, on numbers.
        unsafe { command.pre_exec(move || enter_group(&limits)) };
        let mut child = command.spawn()?;
        drop(command);
        let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let group = Arc::new(ProcessGroup { leader, is_gone: Mutex::new(false) });
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on, the program is ended and reaped, whatever fails.
        let (sender, exit) = oneshot::channel();
        let waiting = group.clone();
        let waits = thread::Builder::new().spawn(move || sender.send(waiting.wait(child)));
        let started = waits.and_then(|_| {
            let stdout: Box<dyn AsyncRead + Send + Unpin> = match stdout {
                Some(stdout) => Box::new(ChildStdout::from_std(stdout)?),
                None => Box::new(tokio::io::empty()),
            };
            let stdin = stdin.map(ChildStdin::from_std).transpose()?;
            let stderr = stderr.ok_or(io::ErrorKind::BrokenPipe)?;
            Ok((stdin, stdout, ChildStderr::from_std(stderr)?))
        });
        let (stdin, stdout, stderr) = started.inspect_err(|_| group.kill())?;
        Ok(Self { group, stdin, stdout, stderr, exit })
    }
}

impl ProcessGroup {
    /// Asks all its processes to end.
    pub(super) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills all its processes.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let is_gone = self.is_gone.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_gone {
            let _ = rustix::process::kill_process_group(self.leader, signal);
        }
    }

    /// Waits for the program, and kills the rest of its group.
    fn wait(&self, mut child: Child) -> io::Result<Exit> {
        // The number of the group stays taken until the program is reaped.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let leader = || rustix::process::waitid(WaitId::Pid(self.leader), options);
        while leader().is_err_and(|it| it == Errno::INTR) {}
        self.kill();
        let mut is_gone = self.is_gone.lock().unwrap_or_else(PoisonError::into_inner);
        let status = child.wait();
        *is_gone = true;
        Ok(to_exit(status?))
    }
}

/// Prepares a process that is about to become the program.
fn enter_group(limits: &RunLimits) -> io::Result<()> {
    // Signals from the terminal of the host must not reach it.
    rustix::process::setsid()?;
    rustix::process::umask(Mode::from(0o022));
    let open = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(MAX_DESCRIPTOR);
    for number in 3..open.min(MAX_DESCRIPTOR) {
        // SAFETY: the number may be that of no descriptor, and then nothing happens.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number as i32) };
        let _ = rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
    set_limit(Resource::Core, 0, 0)?;
    set_limit(Resource::Fsize, limits.file, limits.file)?;
    set_limit(Resource::Nofile, limits.descriptors, limits.descriptors)?;
    let cpu = limits.cpu.as_secs().saturating_add(u64::from(limits.cpu.subsec_nanos() > 0)).max(1);
    // One second more, so that the signal that tells the reason comes before the one that kills.
    set_limit(Resource::Cpu, cpu, cpu.saturating_add(1))
}

/// Sets a limit, but never above the current maximum.
fn set_limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let new = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    Ok(rustix::process::setrlimit(resource, new)?)
}

fn to_exit(status: ExitStatus) -> Exit {
    match status.code() {
        Some(code) => Exit::Code(code),
        None => Exit::Signal(status.signal().unwrap_or(Signal::KILL.as_raw())),
    }
}
