//! The supervisor of one run: starts it, holds it to its limits, and leaves nobody alive.
//!
//! It is our own code in a process of its own, outside of what it holds. When the engine ends, however
//! it ends, the supervisor notices, kills the run and removes its directory.

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
    fs::{FlockOperation, Mode, OFlags},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
        sockopt::{Timeout, set_socket_timeout},
    },
    process::{Pid, Signal},
};

use crate::{
    cgroup::{ControlGroup, GroupEntry},
    connect, disk,
    filter::NAMESPACES,
    inside::{self, Attempt, StartMessage},
    level::SandboxLevel,
    listener::CallListener,
    order::{
        CANCEL, Component, Enforcement, Exit, IDLE, MachineFeatures, Order, Reply, RunEnd,
        StartFailure, StopCause, framed, receive, receive_descriptor, send,
    },
    sys::{self, Fork},
    tree,
    usage::{UncountedMemory, View, usage},
    work::{hold, remove_folder},
};

/// How long it may take until the script begins.
const START: Duration = Duration::from_secs(10);
/// How long a run that is asked to end may take before it is killed.
const GRACE: Duration = Duration::from_millis(200);
/// How long a look waits for the next one where it has seen too many processes.
const MOMENT: Duration = Duration::from_millis(5);
/// How often processes, memory and files are looked at, and how much of the time that may take.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
const SHARE: u32 = 10;
/// How often at most, and how many bytes a second are written at most: files are looked at again
/// before their limit can be passed by much.
const SOON: Duration = Duration::from_millis(5);
const FASTEST: u64 = 4 << 30;
/// As good as never.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How often processes are counted where the kernel bounds them not: a call that waits for an answer may be
/// interrupted by a signal, and no program expects that of a fork.
const COUNT: Duration = Duration::from_millis(10);
/// How many looks in a row may find somebody who lets nobody look: a program may be about to begin.
const HIDDEN: u32 = 3;
/// How long a look waits for the next one when somebody is still to be killed.
const AGAIN: Duration = Duration::from_millis(20);
/// How much memory that no control group counts is nothing unusual.
const BESIDE: u64 = 4 << 20;
/// How a script ended that could not say so.
const KILLED: Exit = Exit::Signal(libc::SIGKILL);

/// Does what is ordered over the socket that is our stdin, and stays until nobody wants the work
/// directory any more.
pub(crate) fn launch() -> io::Result<()> {
    sys::close_from(3)?;
    sys::default_signals();
    let control = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    supervise(UnixStream::from(control))
}

/// Does what is ordered through a socket, answers, and stays until the socket closes: then what is
/// left of the work directory is removed.
fn supervise(mut control: UnixStream) -> io::Result<()> {
    let order: Order = receive(&mut control)?;
    let _held = hold(order.base(), FlockOperation::LockShared);
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    match order.has_stdin {
        true => rustix::stdio::dup2_stdin(receive_descriptor(&control)?)?,
        false => rustix::stdio::dup2_stdin(&nothing)?,
    }
    // What the terminal of the engine is told should not reach a run.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::umask(Mode::from(0o022));
    disk::prepare();
    rustix::process::chdir("/")?;

    let reply = run(&order, &control, &nothing).unwrap_or_else(|error| {
        tree::kill();
        Reply::Failed(Component::Process.failed("supervise a run")(error))
    });
    silence(&nothing)?;
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

fn run(order: &Order, control: &UnixStream, nothing: &OwnedFd) -> io::Result<Reply> {
    let mut missing = Vec::new();
    for level in &order.levels {
        match Run::start(order, *level)? {
            Ok(mut run) => {
                silence(nothing)?;
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

/// Hands the socket over that a script of this level can connect to.
fn hand_over(control: &UnixStream, level: SandboxLevel, socket: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [socket.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let text = framed(&level)?;
    // It is short enough for any socket to take at once.
    sendmsg(control, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Lets go of the streams: they are the script's.
fn silence(nothing: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(nothing)?;
    rustix::stdio::dup2_stdout(nothing)?;
    Ok(rustix::stdio::dup2_stderr(nothing)?)
}

/// A run that goes on.
struct Run<'o> {
    order: &'o Order,
    level: SandboxLevel,
    given: MachineFeatures,
    /// The process that all others come of, and that holds them.
    first: Pid,
    /// Where it says how the script ended.
    ended: OwnedFd,
    listener: Option<CallListener>,
    /// What it may connect to, until that is handed over.
    socket: Option<OwnedFd>,
    /// What counts its memory and processes; nothing where we do.
    group: Option<ControlGroup>,
    /// Whether the kernel bounds the number of processes.
    bounded: bool,
    /// When processes are counted next, where it does not.
    next_count: Instant,
    /// How many filters of system calls there are on a script that begins.
    filters: u64,
    deadline: Instant,
    next_look: Instant,
    stopped: Option<(StopCause, Instant)>,
    /// How many looks in a row have found somebody who lets nobody look.
    hidden: u32,
    denied: BTreeSet<String>,
}

/// What a supervisor wakes up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    /// The script has ended.
    Over,
    /// The engine has spoken, or has ended.
    Asked,
    /// A call waits for an answer.
    Called,
    /// Nobody is left to make a call.
    Silent,
}

impl<'o> Run<'o> {
    /// Starts the script at a level, in a control group where one can be had. Returns when it runs, or
    /// says why it does not.
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
        let (ended, says_end) = io::pipe()?;
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
            Some(Ok(GroupEntry::Written(tasks))) => (sys::fork(namespaces), tasks),
            Some(Ok(GroupEntry::Made(group))) => match sys::fork_into(group, namespaces) {
                // It may be the group or the namespaces that are refused.
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
                drop((line, ended));
                inside::enter(order, &attempt, &tasks, theirs, says_end.into());
                process::exit(0);
            }
            Err(error) => return Ok(Err(Component::Namespaces.failed("make namespaces")(error))),
        };
        drop((theirs, says_end, tasks));
        let StartReport { rules, listener, socket } = match hear(&line) {
            Ok(heard) => heard,
            Err(failure) => {
                tree::kill();
                return Ok(Err(failure));
            }
        };
        let limits = group.as_ref().map_or(Enforcement::Counted, ControlGroup::enforcement);
        let given = MachineFeatures { rules, listener: listener.is_some(), limits };
        let proxy = socket.as_ref().map(connect::local_address).transpose()?;
        let listener =
            listener.map(|it| CallListener::new(it, attempt.filter(rules), order, first, proxy));
        if !attempt.bounds_processes() {
            // A fork loop would leave us no turn to count in.
            sys::raise_priority();
        }
        let now = Instant::now();
        Ok(Ok(Self {
            order,
            level,
            given,
            first,
            ended: ended.into(),
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

    /// Holds the run to its limits until it has ended; then nobody of it is left.
    fn watch(mut self, control: &UnixStream) -> io::Result<RunEnd> {
        let mut control = control;
        loop {
            match (self.wait(control)?, &mut self.listener) {
                (Event::Over, _) => break,
                (Event::Asked, _) => {
                    let mut word = [CANCEL];
                    // Who has ended cannot say so.
                    let _ = control.read(&mut word);
                    self.stop(if word == [IDLE] { StopCause::Idle } else { StopCause::Unwanted });
                }
                (Event::Called, Some(listener)) => listener.answer(&mut self.denied),
                (Event::Silent, _) => self.listener = None,
                (Event::Called | Event::Nothing, _) => {}
            }
            self.look();
        }
        let exit = self.finish()?;
        // It may have ended faster than it was looked at.
        let late = || {
            let ran_out = self.group.as_ref().is_some_and(ControlGroup::ran_out);
            let written = || self.work_size() > self.order.limits.work;
            ran_out.then_some(StopCause::Memory).or_else(|| written().then_some(StopCause::Work))
        };
        let stopped = self.stopped.map(|it| it.0).or_else(late);
        let Self { level, given, denied, .. } = self;
        Ok(RunEnd { level, given, exit, stopped, denied: denied.into_iter().collect() })
    }

    /// Waits until there is something to do, or it is time to look again.
    fn wait(&self, control: &UnixStream) -> io::Result<Event> {
        let next = match self.stopped {
            Some((_, kill)) => kill,
            None if self.bounded => self.deadline.min(self.next_look),
            None => self.deadline.min(self.next_look).min(self.next_count),
        };
        let left = next.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut events = vec![Event::Over];
        let mut fds = vec![PollFd::new(&self.ended, PollFlags::IN)];
        // Who is stopped already has nothing more to be told.
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

    /// Looks at the clock, and now and then at memory and files.
    fn look(&mut self) {
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
            // Beside what the group counts there may be some that it does not.
            Some(group) => {
                let beside = held.memory > BESIDE && held.memory + group.used() > limits.memory;
                beside || group.ran_out()
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

    /// Asks all processes to end; they are killed when they take too long. What goes on growing is
    /// killed at once.
    fn stop(&mut self, why: StopCause) {
        let now = Instant::now();
        if self.stopped.is_none() {
            let patient = matches!(why, StopCause::Time | StopCause::Idle);
            self.stopped = Some((why, if patient { now + GRACE } else { now }));
            if patient {
                tree::signal(&self.processes(), Signal::TERM);
            }
        }
        self.look();
    }

    /// Kills everybody of the run. The one that holds the others ends last, so that nobody is left if we
    /// are killed now; where the kernel ends them all with it, it is the only one to kill.
    fn kill(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.close();
        }
        if let Some(group) = &self.group {
            group.kill(self.first);
        }
        match self.level {
            SandboxLevel::Strong => tree::signal(&[self.first], Signal::KILL),
            SandboxLevel::Landlock | SandboxLevel::None => tree::kill_below(self.first),
        }
    }

    /// Kills what is left of the run; returns how the script ended.
    fn finish(&mut self) -> io::Result<Exit> {
        self.kill();
        tree::kill();
        let mut said = [0; 64];
        let count = rustix::io::read(&self.ended, &mut said)?;
        Ok(serde_json::from_slice(&said[..count]).unwrap_or(KILLED))
    }

    /// Whether there are too many processes, far too many or still after a moment: who has ended is
    /// counted until somebody takes leave of it, which may take that long on a busy machine.
    fn is_crowded(&self) -> bool {
        let most = self.order.limits.processes;
        let count = || tree::tasks(&tree::below(self.first, most.saturating_mul(2)));
        let (mut seen, mut left) = (count(), 3);
        while seen > most && seen <= most.saturating_mul(2) && left > 0 {
            thread::sleep(MOMENT);
            (seen, left) = (count(), left - 1);
        }
        seen > most
    }

    /// All processes of the run, without the one that only holds them.
    fn processes(&self) -> Vec<Pid> {
        match &self.group {
            Some(group) => group.processes(self.first),
            None => tree::below(self.first, self.order.limits.processes),
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
        folders.iter().map(|it| disk::folder_size(it, most)).fold(0, u64::saturating_add)
    }
}

/// How many filters of system calls are on us.
fn own_filters() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    tree::field(&status, "Seccomp_filters:").unwrap_or(0)
}

/// What a process on its way in says.
struct StartReport {
    /// The version of the kernel's rules.
    rules: i32,
    /// Where refused calls are heard of.
    listener: Option<OwnedFd>,
    /// What the script may connect to. There is none without a listener.
    socket: Option<OwnedFd>,
}

/// Hears what a process on its way in says, or what failed. The line closes when the script begins.
fn hear(line: &OwnedFd) -> Result<StartReport, StartFailure> {
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
    ready.ok_or(Errno::PIPE).map_err(Component::Process.failed("hear from the run"))
}
