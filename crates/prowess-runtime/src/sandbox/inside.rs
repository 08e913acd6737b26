//! The way in: from a fresh process to the script, which can do no more than it should.

use std::{
    fs,
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::Path,
    process::Command,
};

use rustix::{
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::{DumpableBehavior, Resource, Rlimit, Signal, WaitOptions},
    thread::{CapabilitySet, CapabilitySets},
};

use super::{
    environment::environment,
    filter::{Filter, LISTEN, Setting},
    mounts::{self, USER},
    order::{Exit, Failure, Order},
    rules,
    sys::{self, Fork},
};
use crate::outcome::Level;

/// What a process on its way in says before it is the script.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Word {
    /// All is in place; a listener comes with it where there is one.
    Ready {
        /// The version of the kernel's rules about files.
        rules: i32,
    },
    Failed(Failure),
}

/// The way that is tried.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) level: Level,
    /// Who we are outside.
    pub(super) user: u32,
    pub(super) group: u32,
}

/// The namespaces of the level *strong*.
pub(super) const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Becomes the script, or says why not. Returns only in that case, and in the first process of a
/// namespace, when the script has ended.
pub(super) fn enter(order: &Order, way: &Way, line: OwnedFd, ended: OwnedFd) {
    let _ = match way.level {
        Level::Strong => enter_namespaces(order, way, line, ended),
        Level::Landlock | Level::None => enter_script(order, way.level, &line),
    };
}

/// Goes on as the first process of new namespaces, which the script dies with.
fn enter_namespaces(order: &Order, way: &Way, line: OwnedFd, ended: OwnedFd) -> io::Result<()> {
    let prepared = prepare(order, way)
        .and_then(|()| sys::fork(0).map_err(|error| Failure::machine("fork", &error)));
    match prepared {
        Err(failure) => say(&line, &Word::Failed(failure), None),
        Ok(Fork::Child) => enter_script(order, Level::Strong, &line),
        Ok(Fork::Parent(script)) => {
            // Whoever listens at the other end waits until the script alone could speak.
            drop(line);
            let exit = reap_until(script);
            rustix::io::write(&ended, &serde_json::to_vec(&exit)?)?;
            Ok(())
        }
    }
}

fn enter_script(order: &Order, level: Level, line: &OwnedFd) -> io::Result<()> {
    match become_script(order, level, line) {
        Ok(()) => Ok(()),
        Err(failure) => say(line, &Word::Failed(failure), None),
    }
}

fn prepare(order: &Order, way: &Way) -> Result<(), Failure> {
    let machine = |what: &'static str| move |error: io::Error| Failure::machine(what, &error);
    dies_with_parent().map_err(machine("be bound to the supervisor"))?;
    map_user(way).map_err(machine("map a user"))?;
    let _ = rustix::system::sethostname(b"sandbox");
    // Nobody inside looks into this process.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    mounts::enter(order)
}

fn become_script(order: &Order, level: Level, line: &OwnedFd) -> Result<(), Failure> {
    let machine = |what: &'static str| move |error: io::Error| Failure::machine(what, &error);
    dies_with_parent().map_err(machine("be bound to the supervisor"))?;
    rustix::process::setsid().map_err(|it| machine("start a session")(it.into()))?;
    limit(order, level).map_err(machine("set limits"))?;
    let directory = Path::new(&order.directory);
    rustix::process::chdir(directory)
        .map_err(|it| Failure::job(&format!("work in `{}`", directory.display()), &it.into()))?;
    let mut version = 0;
    let mut listener = None;
    if level > Level::None {
        drop_capabilities().map_err(machine("drop capabilities"))?;
        rustix::thread::set_no_new_privs(true)
            .map_err(|it| machine("give up privileges")(it.into()))?;
        version = rules::restrict(order, level).unwrap_or(0);
        if level == Level::Landlock && version < rules::LEAST {
            let error = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            return Err(Failure::machine("use Landlock", &error));
        }
        let signals_scoped = version >= rules::SIGNALS;
        let filter = Filter::new(Setting { level, signals_scoped });
        listener = install(&filter).map_err(machine("filter system calls"))?;
    }
    say(line, &Word::Ready { rules: version }, listener)
        .map_err(machine("speak with the supervisor"))?;
    let Some((program, arguments)) = order.argv.split_first() else { return Ok(()) };
    let temporary = match level {
        Level::Strong => "/tmp".into(),
        Level::Landlock | Level::None => order.temporary(),
    };
    let [home, temporary] = [order.work(), temporary].map(|it| it.to_string_lossy().into_owned());
    let error = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment(&home, &temporary, &order.env))
        .exec();
    Err(Failure::job(&format!("start `{}`", program.to_string_lossy()), &error))
}

/// Lets the kernel kill this process when the one that made it ends.
fn dies_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Makes whoever we are outside an ordinary user inside.
fn map_user(way: &Way) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{USER} {} 1", way.user))?;
    fs::write("/proc/self/gid_map", format!("{USER} {} 1", way.group))
}

/// Waits for the script, and for whatever else ends here meanwhile.
fn reap_until(script: rustix::process::Pid) -> Exit {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == script => return exit(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Exit::Signal(libc::SIGKILL),
        }
    }
}

/// How a process ended.
pub(super) fn exit(status: rustix::process::WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

fn limit(order: &Order, level: Level) -> io::Result<()> {
    let limits = &order.limits;
    let cpu = limits.cpu.as_secs() + u64::from(limits.cpu.subsec_nanos() > 0);
    let table = [
        (Resource::Core, 0),
        (Resource::Data, limits.memory),
        (Resource::Fsize, limits.file),
        (Resource::Nofile, limits.descriptors),
        (Resource::Stack, 8 << 20),
    ];
    for (resource, most) in table {
        set_limit(resource, most, most)?;
    }
    // It counts those of a namespace alone, and not at all for root; the supervisor counts as well.
    if level == Level::Strong {
        let holder = 1;
        set_limit(Resource::Nproc, limits.processes + holder, limits.processes + holder)?;
    }
    // One more, so that the signal which says why comes before the one that kills.
    set_limit(Resource::Cpu, cpu.max(1), cpu.max(1) + 1)
}

/// Sets a limit, but never above the one that already holds.
fn set_limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let new = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    Ok(rustix::process::setrlimit(resource, new)?)
}

fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // Who may not take it from the set may not use it either.
        let _ = rustix::thread::remove_capability_from_bounding_set(one);
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Installs a filter, with a listener where the kernel gives one.
fn install(filter: &Filter) -> io::Result<Option<OwnedFd>> {
    let mut failed = io::Error::from(io::ErrorKind::Unsupported);
    for flags in LISTEN {
        match sys::seccomp(&filter.compile(flags != 0), flags) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Says a word to the supervisor, and hands it the listener.
fn say(line: &OwnedFd, word: &Word, listener: Option<OwnedFd>) -> io::Result<()> {
    let text = serde_json::to_vec(word)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<_> = listener.iter().map(|it| it.as_fd()).collect();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    sendmsg(line, &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
