//! Enters the sandbox: from a fresh process to the confined script.

use std::{
    fs::{self, File},
    io::{self, IoSlice, Write as _},
    mem::MaybeUninit,
    net::TcpListener,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::Path,
    process::Command,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg},
    process::{
        DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus,
    },
    thread::{CapabilitySet, CapabilitySets},
};

use super::{
    connect,
    filter::{Filter, FilterSetting, LISTEN},
    messages::{Component, StartFailure},
    mounts::{self, USER},
    rules,
    sys::{self, Fork},
    tree,
};
use crate::{
    ending::Exit, environment::environment, level::SandboxLevel, limits::RunLimits, order::Order,
};

/// A message of a process before it becomes the script.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum StartMessage {
    /// Everything is set up. The listener of the filter, if any, comes with it, followed by the
    /// socket that the script may connect to.
    Ready {
        /// The Landlock version of the kernel.
        rules: i32,
    },
    Failed(StartFailure),
}

/// The settings of one attempt to confine a script.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) level: SandboxLevel,
    /// Our user outside.
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// Whether the supervisor counts memory and processes, because no control group does.
    pub(crate) counts: bool,
    /// Whether there is a socket that the script may connect to.
    pub(crate) network: bool,
}

impl Attempt {
    /// Whether the kernel limits the number of processes: in a control group, or in a namespace for
    /// any user but root.
    pub(crate) fn bounds_processes(&self) -> bool {
        !self.counts || (self.level == SandboxLevel::Strong && self.user != 0)
    }

    /// Returns the system call filter of this attempt, for a Landlock version.
    pub(crate) fn filter(&self, rules: i32) -> Filter {
        Filter::new(FilterSetting {
            level: self.level,
            signals_scoped: rules >= rules::SIGNALS,
            counts_memory: self.counts,
            network: self.network,
        })
    }
}

/// The number of processes a user may start elsewhere during a run, where all of the user's count.
const SPARE: u64 = 512;
/// The maximum interval of checking for processes that have ended.
const REAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Becomes the script, or reports the failure. Returns only in that case, and in the process that
/// holds the script, after that has ended.
pub(crate) fn enter(
    order: &Order,
    attempt: &Attempt,
    group: &[File],
    line: OwnedFd,
    exit_writer: OwnedFd,
) {
    for mut tasks in group {
        if let Err(error) = tasks.write_all(b"0") {
            let failure = Component::Group.failed("enter a control group")(error);
            let _ = send_message(&line, &StartMessage::Failed(failure), &[]);
            return;
        }
    }
    // If memory runs out, scripts are killed first.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let _ = hold_script(order, attempt, line, exit_writer);
}

/// Continues as the process that holds the script and its descendants: the first of new namespaces,
/// which die with it, or one that kills them all before it ends, and ends with the supervisor.
fn hold_script(
    order: &Order,
    attempt: &Attempt,
    line: OwnedFd,
    exit_writer: OwnedFd,
) -> io::Result<()> {
    let prepared = match attempt.level {
        SandboxLevel::Strong => enter_namespaces(order, attempt),
        SandboxLevel::Landlock | SandboxLevel::None => adopt_orphans(),
    };
    let prepared = prepared.and_then(|()| {
        let socket = attempt.network.then(|| connect::listen(attempt.level)).transpose()?;
        Ok((sys::fork(0).map_err(Component::Process.failed("fork"))?, socket))
    });
    match prepared {
        Err(failure) => send_message(&line, &StartMessage::Failed(failure), &[]),
        Ok((Fork::Child, socket)) => enter_script(order, attempt, &line, socket),
        Ok((Fork::Parent(script), socket)) => {
            drop(socket);
            // The supervisor waits until only the script could still send.
            drop(line);
            if let Some(exit) = reap_until(script, &exit_writer)? {
                rustix::io::write(&exit_writer, &serde_json::to_vec(&exit)?)?;
            }
            if attempt.level < SandboxLevel::Strong {
                tree::kill_descendants();
            }
            Ok(())
        }
    }
}

fn enter_script(
    order: &Order,
    attempt: &Attempt,
    line: &OwnedFd,
    socket: Option<TcpListener>,
) -> io::Result<()> {
    match become_script(order, attempt, line, socket) {
        Ok(()) => Ok(()),
        Err(failure) => send_message(line, &StartMessage::Failed(failure), &[]),
    }
}

/// Sets up the new namespaces of this process: its user, and its root.
fn enter_namespaces(order: &Order, attempt: &Attempt) -> Result<(), StartFailure> {
    die_with_parent()?;
    map_user(attempt).map_err(Component::Namespaces.failed("map a user"))?;
    let _ = rustix::system::sethostname(b"sandbox");
    // No process inside may inspect this one.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    mounts::enter(order)
}

/// Becomes the parent of orphaned descendants.
fn adopt_orphans() -> Result<(), StartFailure> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(Component::Process.failed("adopt orphaned processes"))
}

fn become_script(
    order: &Order,
    attempt: &Attempt,
    line: &OwnedFd,
    socket: Option<TcpListener>,
) -> Result<(), StartFailure> {
    let level = attempt.level;
    die_with_parent()?;
    rustix::process::setsid().map_err(Component::Process.failed("start a session"))?;
    set_limits(&order.limits, level).map_err(Component::Process.failed("set limits"))?;
    let directory = Path::new(&order.directory);
    rustix::process::chdir(directory)
        .map_err(Component::Job.failed(format!("change to `{}`", directory.display())))?;
    if order.interactive {
        rustix::stdio::dup2_stdin(rustix::stdio::stdout())
            .map_err(Component::Process.failed("connect its stdin"))?;
    }
    let (rules, listener) = match level {
        SandboxLevel::None => (0, None),
        SandboxLevel::Landlock | SandboxLevel::Strong => confine(order, attempt)?,
    };
    let proxy = socket.as_ref().and_then(|it| it.local_addr().ok());
    let descriptors: Vec<OwnedFd> = listener.into_iter().chain(socket.map(Into::into)).collect();
    send_message(line, &StartMessage::Ready { rules }, &descriptors)
        .map_err(Component::Process.failed("report to the supervisor"))?;
    drop(descriptors);
    if level > SandboxLevel::None {
        sys::seccomp(&Filter::last().compile(false), 0)
            .map_err(Component::Filter.failed("filter system calls"))?;
    }
    let Some((program, arguments)) = order.argv.split_first() else { return Ok(()) };
    let error = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment(order, level, proxy))
        .exec();
    Err(Component::Job.failed(format!("start `{}`", program.to_string_lossy()))(error))
}

/// Drops everything that a script does not need; returns the Landlock version, and the listener for
/// refused calls.
fn confine(order: &Order, attempt: &Attempt) -> Result<(i32, Option<OwnedFd>), StartFailure> {
    let level = attempt.level;
    drop_capabilities().map_err(Component::Process.failed("drop capabilities"))?;
    rustix::thread::set_no_new_privs(true)
        .map_err(Component::Process.failed("disable new privileges"))?;
    let rules = match rules::restrict(order, level) {
        Ok(version) if version < rules::LEAST && level == SandboxLevel::Landlock => {
            let what =
                format!("use Landlock version {version}, which is older than {}", rules::LEAST);
            return Err(Component::Rules.failed(what)(Errno::NOTSUP));
        }
        // With a root of its own they are only a second line of defense.
        Err(_) if level == SandboxLevel::Strong => 0,
        rules => rules?,
    };
    let listener = install_filter(&attempt.filter(rules))
        .map_err(Component::Filter.failed("filter system calls"))?;
    if attempt.network && listener.is_none() {
        let what = "receive notifications of system calls, which a script with a network needs";
        return Err(Component::Filter.failed(what)(Errno::NOTSUP));
    }
    Ok((rules, listener))
}

/// Makes the kernel kill this process when its parent ends.
fn die_with_parent() -> Result<(), StartFailure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(Component::Process.failed("make the process end with the supervisor"))
}

/// Maps our user outside to an ordinary user inside.
fn map_user(attempt: &Attempt) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{USER} {} 1", attempt.user))?;
    fs::write("/proc/self/gid_map", format!("{USER} {} 1", attempt.group))
}

/// Waits for the script, and reaps everything else that ends meanwhile; stops when the supervisor
/// is gone.
fn reap_until(script: Pid, exit_writer: &OwnedFd) -> io::Result<Option<Exit>> {
    let script_fd = rustix::process::pidfd_open(script, PidfdFlags::empty())?;
    // A process that has ended counts until it is reaped, so it is reaped at once.
    let children = sys::ended_children()?;
    loop {
        while rustix::io::read(&children, &mut [0; 1024]).is_ok_and(|it| it > 0) {}
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == script {
                return Ok(Some(to_exit(status)));
            }
        }
        let mut fds = [
            PollFd::new(exit_writer, PollFlags::empty()),
            PollFd::new(&script_fd, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
        ];
        let _ = poll(&mut fds, Some(&REAP));
        if fds[0].revents().contains(PollFlags::ERR) {
            return Ok(None);
        }
    }
}

/// Converts the status of a process.
fn to_exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

fn set_limits(limits: &RunLimits, level: SandboxLevel) -> io::Result<()> {
    let cpu = limits.cpu.as_secs().saturating_add(u64::from(limits.cpu.subsec_nanos() > 0)).max(1);
    let table = [
        (Resource::Core, 0),
        (Resource::Data, limits.memory),
        (Resource::Fsize, limits.file),
        (Resource::Nofile, limits.descriptors),
        (Resource::Stack, 8 << 20),
        // Timers and pending signals use kernel memory, and locked files stay in memory.
        (Resource::Sigpending, 4096),
        (Resource::Memlock, 1 << 20),
    ];
    for (resource, most) in table {
        set_limit(resource, most, most)?;
    }
    // This limit counts the processes of a namespace only, and none for root; the supervisor counts
    // as well.
    let most = match level {
        // The process that holds the namespace counts as well.
        SandboxLevel::Strong => limits.processes.saturating_add(1),
        // All other processes of the user count too. The supervisor may react late, but never has
        // more than this to kill.
        SandboxLevel::Landlock | SandboxLevel::None => {
            let others = tree::count_tasks_of(rustix::process::getuid());
            limits.processes.saturating_mul(2).saturating_add(others + SPARE)
        }
    };
    set_limit(Resource::Nproc, most, most)?;
    // One second more, so that the signal that tells the reason comes before the one that kills.
    set_limit(Resource::Cpu, cpu, cpu.saturating_add(1))
}

/// Sets a limit, but never above the current maximum.
fn set_limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let new = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    Ok(rustix::process::setrlimit(resource, new)?)
}

fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // A capability that cannot be removed from the set cannot be used either.
        let _ = rustix::thread::remove_capability_from_bounding_set(one);
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Installs a filter, with a listener if the kernel supports one.
fn install_filter(filter: &Filter) -> io::Result<Option<OwnedFd>> {
    let mut failed = io::Error::from(io::ErrorKind::Unsupported);
    for flags in LISTEN {
        match sys::seccomp(&filter.compile(flags != 0), flags) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Sends a message to the supervisor, with descriptors.
fn send_message(line: &OwnedFd, message: &StartMessage, descriptors: &[OwnedFd]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if descriptors.is_empty() {
        // Without the call that sends descriptors, which may be blocked already.
        send(line, &text, SendFlags::NOSIGNAL)?;
        return Ok(());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<_> = descriptors.iter().map(|it| it.as_fd()).collect();
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(line, &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
