//! The supervisor of one run: starts it, enforces its limits, and leaves no process alive.
//!
//! It is our own code in a separate process, outside of the sandbox. When the engine ends, for any
//! reason, the supervisor notices, kills the run and removes its directory.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, IoSlice, Read as _},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    process, thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
        sockopt::{Timeout, set_socket_timeout},
    },
    process::{Pid, Resource, Rlimit, Signal},
};

use super::{
    cgroup::{ControlGroup, GroupEntry},
    connect,
    filter::NAMESPACES,
    inside::{self, Attempt, StartMessage},
    listener::CallListener,
    messages::{
        CANCEL, Component, Enforcement, IDLE, MachineFeatures, Reply, RunEnd, StartFailure, encode,
        receive, receive_descriptor, send,
    },
    start::Greeting,
    sys::{self, Fork},
    tree,
    usage::{UncountedMemory, View, usage},
};
use crate::{
    ending::{Ending, Exit, StopCause},
    level::SandboxLevel,
    order::Order,
    platform::{folder_size, open_folder_lock, remove_folder},
};

/// The timeout until the script begins.
const START: Duration = Duration::from_secs(10);
/// The time a run has to end after it is asked to, before it is killed.
const GRACE: Duration = Duration::from_millis(200);
/// The delay before counting again when there were too many processes.
const MOMENT: Duration = Duration::from_millis(5);
/// The maximum depth of folders that are counted, if that many descriptors can be open.
const DEPTH: u64 = 16 << 10;
/// The interval of checking processes, memory and files, and the inverse of the share of time that
/// checks may take.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
const SHARE: u32 = 10;
/// The minimum interval, and the maximum write speed in bytes per second: files are checked again
/// before their limit can be exceeded by much.
const SOON: Duration = Duration::from_millis(5);
const FASTEST: u64 = 4 << 30;
/// Effectively never.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The interval of counting processes where the kernel does not limit them. They are counted rather
/// than intercepted, because a pending call may be interrupted by a signal, and no program expects
/// that of a fork.
const COUNT: Duration = Duration::from_millis(10);
/// The number of consecutive checks that may find a process that cannot be inspected: a program may
/// be about to begin.
const HIDDEN: u32 = 3;
/// The delay before killing again if some processes are left.
const AGAIN: Duration = Duration::from_millis(20);
/// The usual amount of memory that a control group does not count.
const BESIDE: u64 = 4 << 20;
/// The exit of a script that could not report it.
const KILLED: Exit = Exit::Signal(libc::SIGKILL);

/// Executes the order from the socket that is our stdin, and stays until the work directory is no
/// longer needed.
pub(crate) fn launch() -> io::Result<()> {
    sys::close_from(3)?;
    sys::default_signals();
    let mut control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?);
    send(&mut control, &Greeting::new())?;
    supervise(control)
}

/// Executes the order from a socket, replies, and stays until the socket closes: then the rest of
/// the work directory is removed.
fn supervise(mut control: UnixStream) -> io::Result<()> {
    let order: Order = receive(&mut control)?;
    let lock = open_folder_lock(order.base());
    let _ = lock.as_ref().map(File::lock_shared);
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    match order.has_stdin {
        true => rustix::stdio::dup2_stdin(receive_descriptor(&control)?)?,
        false => rustix::stdio::dup2_stdin(&nothing)?,
    }
    // Signals from the terminal of the engine must not reach a run.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::umask(Mode::from(0o022));
    raise_file_limit();
    rustix::process::chdir("/")?;

    let reply = run(&order, &control, &nothing).unwrap_or_else(|error| {
        tree::kill_descendants();
        Reply::Failed(Component::Process.failed("supervise a run")(error))
    });
    close_streams(&nothing)?;
    if send(&mut control, &reply).is_ok() {
        let _ = control.read(&mut [0]);
    }
    // The engine may be removing it at the same time.
    while let Err(error) = remove_folder(order.base()) {
        if error.kind() != io::ErrorKind::DirectoryNotEmpty {
            return Err(error);
        }
    }
    Ok(())
}

/// Raises the limit of open files of this process to its maximum, because a walk keeps one open for
/// each folder on its path.
fn raise_file_limit() {
    let Rlimit { current, maximum } = rustix::process::getrlimit(Resource::Nofile);
    let most = maximum.unwrap_or(DEPTH).min(DEPTH);
    if current.is_some_and(|it| it < most) {
        let _ =
            rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    }
}

fn run(order: &Order, control: &UnixStream, nothing: &OwnedFd) -> io::Result<Reply> {
    let mut missing = Vec::new();
    for level in &order.levels {
        match Run::start(order, *level)? {
            Ok(mut run) => {
                close_streams(nothing)?;
                if let Some(socket) = run.socket.take() {
                    hand_over(control, *level, &socket)?;
                }
                return Ok(Reply::Ended(run.watch(control)?));
            }
            Err(failure) if failure.component == Component::Job => {
                return Ok(Reply::Failed(failure));
            }
            Err(failure) => missing.push((*level, failure)),
        }
    }
    Ok(Reply::Unavailable(missing))
}

/// Hands over the socket that a script of this level can connect to.
fn hand_over(control: &UnixStream, level: SandboxLevel, socket: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [socket.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let text = encode(&level)?;
    // It is short enough to be sent at once on any socket.
    sendmsg(control, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Closes our streams: they belong to the script.
fn close_streams(nothing: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(nothing)?;
    rustix::stdio::dup2_stdout(nothing)?;
    Ok(rustix::stdio::dup2_stderr(nothing)?)
}

/// A running script.
struct Run<'o> {
    order: &'o Order,
    level: SandboxLevel,
    features: MachineFeatures,
    /// The ancestor of all others, which holds them.
    first: Pid,
    /// The pipe on which it reports the end of the script.
    exit_pipe: OwnedFd,
    listener: Option<CallListener>,
    /// The socket that the script may connect to, until it is handed over.
    socket: Option<OwnedFd>,
    /// The control group that counts memory and processes; `None` if the supervisor does.
    group: Option<ControlGroup>,
    /// Whether the kernel limits the number of processes.
    bounded: bool,
    /// The time of the next count of processes, if it does not.
    next_count: Instant,
    /// The number of system call filters on a script that begins.
    filters: u64,
    deadline: Instant,
    next_look: Instant,
    stopped: Option<(StopCause, Instant)>,
    /// The number of consecutive checks that found a process that cannot be inspected.
    hidden: u32,
    denied: BTreeSet<String>,
}

/// The reason a supervisor wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    /// The script has ended.
    Over,
    /// The engine has sent something, or has ended.
    Asked,
    /// A call is pending.
    Called,
    /// No process is left that could make a call.
    Silent,
}

impl<'o> Run<'o> {
    /// Starts the script at a level, in a control group if possible. Returns when it runs, or with
    /// the failure.
    fn start(order: &'o Order, level: SandboxLevel) -> io::Result<Result<Self, StartFailure>> {
        if let Some(group) = ControlGroup::new(&order.limits) {
            match Self::start_in(order, level, Some(group))? {
                Err(failure) if failure.component == Component::Group => {}
                started => return Ok(started),
            }
        }
        Self::start_in(order, level, None)
    }

    fn start_in(
        order: &'o Order,
        level: SandboxLevel,
        group: Option<ControlGroup>,
    ) -> io::Result<Result<Self, StartFailure>> {
        let flags = SocketFlags::CLOEXEC;
        let (line, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        set_socket_timeout(&line, Timeout::Recv, Some(START))?;
        let (exit_pipe, exit_writer) = io::pipe()?;
        let attempt = Attempt {
            level,
            user: rustix::process::getuid().as_raw(),
            group: rustix::process::getgid().as_raw(),
            counts: group.is_none(),
            network: order.network.is_some() && level > SandboxLevel::None,
        };
        let namespaces = if level == SandboxLevel::Strong { NAMESPACES } else { 0 };
        let (fork, tasks): (_, Vec<File>) = match group.as_ref().map(ControlGroup::entry) {
            None => (sys::fork(namespaces), Vec::new()),
            Some(Ok(GroupEntry::Write(tasks))) => (sys::fork(namespaces), tasks),
            Some(Ok(GroupEntry::Create(group))) => match sys::fork_into(group, namespaces) {
                // The cause may be the group or the namespaces.
                Err(error) => {
                    return Ok(Err(Component::Group.failed("start in a control group")(error)));
                }
                fork => (fork, Vec::new()),
            },
            Some(Err(error)) => {
                return Ok(Err(Component::Group.failed("enter a control group")(error)));
            }
        };
        let first = match fork {
            Ok(Fork::Parent(first)) => first,
            Ok(Fork::Child) => {
                drop((line, exit_pipe));
                inside::enter(order, &attempt, &tasks, theirs, exit_writer.into());
                process::exit(0);
            }
            Err(error) => return Ok(Err(Component::Namespaces.failed("create namespaces")(error))),
        };
        drop((theirs, exit_writer, tasks));
        let StartReport { rules, listener, socket } = match receive_report(&line) {
            Ok(report) => report,
            Err(failure) => {
                tree::kill_descendants();
                return Ok(Err(failure));
            }
        };
        let limits = group.as_ref().map_or(Enforcement::Counted, ControlGroup::enforcement);
        let features = MachineFeatures { rules, listener: listener.is_some(), limits };
        let proxy = socket.as_ref().map(connect::local_address).transpose()?;
        let listener =
            listener.map(|it| CallListener::new(it, attempt.filter(rules), order, first, proxy));
        if !attempt.bounds_processes() {
            // A fork loop would leave no time to count.
            sys::raise_priority();
        }
        let now = Instant::now();
        Ok(Ok(Self {
            order,
            level,
            features,
            first,
            exit_pipe: exit_pipe.into(),
            listener,
            socket,
            group,
            bounded: attempt.bounds_processes(),
            next_count: now + COUNT,
            filters: own_filters() + 2,
            deadline: now + order.limits.timeout.min(NEVER),
            next_look: now + LOOK,
            stopped: None,
            hidden: 0,
            denied: BTreeSet::new(),
        }))
    }

    /// Enforces the limits until the run has ended; then none of its processes is left.
    fn watch(mut self, control: &UnixStream) -> io::Result<RunEnd> {
        let mut control = control;
        loop {
            match (self.wait(control)?, &mut self.listener) {
                (Event::Over, _) => break,
                (Event::Asked, _) => {
                    let mut word = [CANCEL];
                    // If the engine has ended, nothing is read.
                    let _ = control.read(&mut word);
                    self.stop(if word == [IDLE] { StopCause::Idle } else { StopCause::Cancelled });
                }
                (Event::Called, Some(listener)) => listener.answer(&mut self.denied),
                (Event::Silent, _) => self.listener = None,
                (Event::Called | Event::Nothing, _) => {}
            }
            self.check_limits();
        }
        let exit = self.finish()?;
        // It may have ended before the next check.
        let stopped = self.stopped.map(|it| it.0).or_else(|| self.exceeded_limit());
        let Self { level, features, denied, .. } = self;
        let ending = Ending { level, exit, stopped, denied: denied.into_iter().collect() };
        Ok(RunEnd { ending, features })
    }

    /// Waits for an event, or for the time of the next check.
    fn wait(&self, control: &UnixStream) -> io::Result<Event> {
        let next = match self.stopped {
            Some((_, kill)) => kill,
            None if self.bounded => self.deadline.min(self.next_look),
            None => self.deadline.min(self.next_look).min(self.next_count),
        };
        let left = next.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut events = vec![Event::Over];
        let mut fds = vec![PollFd::new(&self.exit_pipe, PollFlags::IN)];
        // A run that is being stopped needs no further requests.
        if self.stopped.is_none() {
            events.push(Event::Asked);
            fds.push(PollFd::new(control, PollFlags::IN));
        }
        if let Some(listener) = &self.listener {
            events.push(Event::Called);
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready = events.into_iter().zip(&fds).find(|it| !it.1.revents().is_empty());
        Ok(ready.map_or(Event::Nothing, |(event, fd)| match fd.revents() {
            PollFlags::HUP if event == Event::Called => Event::Silent,
            _ => event,
        }))
    }

    /// Checks the time, and at intervals memory and files.
    fn check_limits(&mut self) {
        let now = Instant::now();
        if let Some((_, kill)) = &mut self.stopped {
            if now >= *kill {
                *kill = now + AGAIN;
                self.kill();
            }
            return;
        }
        if now >= self.deadline {
            return self.stop(StopCause::Time);
        }
        if !self.bounded && now >= self.next_count {
            if self.is_crowded() {
                return self.stop(StopCause::Processes);
            }
            self.next_count = Instant::now() + COUNT.max(now.elapsed() * 2 * SHARE);
        }
        if now < self.next_look {
            return;
        }
        let processes = self.processes();
        let limits = &self.order.limits;
        let held = usage(&processes, &self.view());
        let written = self.work_size().saturating_add(held.deleted).saturating_add(held.layers);
        self.hidden = if held.hidden { self.hidden + 1 } else { 0 };
        let ran_out = match &self.group {
            // Some memory may not be counted by the group.
            Some(group) => {
                let beside =
                    held.memory > BESIDE && held.memory + group.memory_usage() > limits.memory;
                beside || group.ran_out_of_memory()
            }
            None => held.memory > limits.memory,
        };
        if ran_out {
            self.stop(StopCause::Memory);
        } else if self.group.is_none() && self.is_crowded() {
            self.stop(StopCause::Processes);
        } else if written > limits.work {
            self.stop(StopCause::Work);
        } else if self.hidden >= HIDDEN {
            self.stop(StopCause::Hidden);
        }
        let took = now.elapsed();
        let left = limits.work.saturating_sub(written) as f64 / FASTEST as f64;
        let full = Duration::from_secs_f64(left).max(SOON).max(took);
        self.next_look = Instant::now() + LOOK.max(took * SHARE).min(full);
    }

    /// Asks all processes to end; they are killed if that takes too long. A run that exceeds a
    /// resource limit is killed at once.
    fn stop(&mut self, why: StopCause) {
        let now = Instant::now();
        if self.stopped.is_none() {
            let patient = matches!(why, StopCause::Time | StopCause::Idle);
            self.stopped = Some((why, if patient { now + GRACE } else { now }));
            if patient {
                tree::signal(&self.processes(), Signal::TERM);
            }
        }
        self.check_limits();
    }

    /// Kills all processes of the run. The holder ends last, so that none is left if the supervisor
    /// is killed now; if the kernel ends all with the holder, only that is killed.
    fn kill(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.forbid_groups();
        }
        if let Some(group) = &self.group {
            group.kill(self.first);
        }
        match self.level {
            SandboxLevel::Strong => tree::signal(&[self.first], Signal::KILL),
            SandboxLevel::Landlock | SandboxLevel::None => tree::kill_descendants_of(self.first),
        }
    }

    /// Kills the rest of the run; returns the exit of the script.
    fn finish(&mut self) -> io::Result<Exit> {
        self.kill();
        tree::kill_descendants();
        let mut bytes = [0; 64];
        let count = rustix::io::read(&self.exit_pipe, &mut bytes)?;
        Ok(serde_json::from_slice(&bytes[..count]).unwrap_or(KILLED))
    }

    /// Returns the limit that a run which has ended exceeded.
    fn exceeded_limit(&self) -> Option<StopCause> {
        if self.group.as_ref().is_some_and(ControlGroup::ran_out_of_memory) {
            return Some(StopCause::Memory);
        }
        (self.work_size() > self.order.limits.work).then_some(StopCause::Work)
    }

    /// Whether there are too many processes: far too many, or still after a moment. A process that
    /// has ended is counted until it is reaped, which may take that long on a busy machine.
    fn is_crowded(&self) -> bool {
        let most = self.order.limits.processes;
        let far_too_many = most.saturating_mul(2);
        for retries in (0..=3).rev() {
            let count = tree::count_tasks(&tree::descendants(self.first, far_too_many));
            if count <= most {
                return false;
            }
            if count > far_too_many || retries == 0 {
                break;
            }
            thread::sleep(MOMENT);
        }
        true
    }

    /// Returns all processes of the run, without their holder.
    fn processes(&self) -> Vec<Pid> {
        match &self.group {
            Some(group) => group.processes(self.first),
            None => tree::descendants(self.first, self.order.limits.processes),
        }
    }

    fn view(&self) -> View<'_> {
        let shared = self.listener.as_ref().map_or(&[][..], CallListener::shared);
        View {
            level: self.level,
            limits: &self.order.limits,
            base: self.order.base(),
            layered: &self.order.layered,
            memory: self
                .group
                .is_none()
                .then_some(UncountedMemory { shared, filters: self.filters }),
        }
    }

    fn work_size(&self) -> u64 {
        let most = self.order.limits.work;
        let folders = [self.order.work(), self.order.temporary()];
        folders.iter().map(|it| folder_size(it, most)).fold(0, u64::saturating_add)
    }
}

/// Returns the number of system call filters on this process.
fn own_filters() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    tree::number_field(&status, "Seccomp_filters:").unwrap_or(0)
}

/// The report of a process that enters the sandbox.
struct StartReport {
    /// The Landlock version.
    rules: i32,
    /// The listener for refused calls.
    listener: Option<OwnedFd>,
    /// The socket that the script may connect to. There is none without a listener.
    socket: Option<OwnedFd>,
}

/// Receives the report of a process that enters the sandbox, or its failure. The line closes when
/// the script begins.
fn receive_report(line: &OwnedFd) -> Result<StartReport, StartFailure> {
    let mut ready = None;
    loop {
        let mut text = vec![0; 64 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [io::IoSliceMut::new(&mut text)];
        let received = match recvmsg(line, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.bytes > 0 => received.bytes,
            Err(Errno::INTR) => continue,
            _ => break,
        };
        let mut handed = ancillary
            .drain()
            .filter_map(|it| match it {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten();
        let (listener, socket) = (handed.next(), handed.next());
        match serde_json::from_slice(&text[..received]) {
            Ok(StartMessage::Ready { rules }) => {
                ready = Some(StartReport { rules, listener, socket });
            }
            Ok(StartMessage::Failed(failure)) => return Err(failure),
            Err(_) => break,
        }
    }
    ready.ok_or(Errno::PIPE).map_err(Component::Process.failed("receive the report of the run"))
}
