//! Answers the calls that the filter asks about, and records refusals.

use std::{
    collections::BTreeSet,
    ffi::c_long,
    fs::File,
    net::SocketAddrV4,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt as _,
    },
    path::PathBuf,
};

use libc::{ENOMEM, EPERM};
use rustix::{io::Errno, process::Pid};

use super::{
    connect,
    filter::{CallVerdict, Filter},
    metadata::{self, OwnFiles},
    sys::{self, Answer, Notification},
    tree, usage,
};
use crate::{limits::RunLimits, order::Order};

/// The source of a filter's notifications.
#[derive(Debug)]
pub(crate) struct CallListener {
    fd: OwnedFd,
    filter: Filter,
    /// The files that are the script's own.
    own: OwnFiles,
    /// The process that holds all others.
    first: Pid,
    limits: RunLimits,
    /// The address that the script may connect to.
    proxy: Option<SocketAddrV4>,
    /// An upper bound of the number of process groups: the last count, plus those allowed since.
    groups: u64,
    /// The sizes of shared anonymous mappings that were allowed, largest first.
    shared: Vec<u64>,
    /// Whether no further group may be created.
    groups_forbidden: bool,
}

/// More processes than there can be.
const ALL: u64 = 1 << 16;
/// The maximum number of different refusals that are recorded.
const MAX_DENIED: usize = 32;
/// The maximum number of recorded sizes: further mappings each count as the smallest.
const SIZES: usize = 4096;

impl CallListener {
    pub(crate) fn new(
        fd: OwnedFd,
        filter: Filter,
        order: &Order,
        first: Pid,
        proxy: Option<SocketAddrV4>,
    ) -> Self {
        let mut directories = vec![order.work(), order.temporary()];
        directories.extend(order.writes.iter().map(PathBuf::from));
        let except = order.hidden.iter().chain(&order.withheld).map(PathBuf::from).collect();
        Self {
            fd,
            filter,
            own: OwnFiles { directories, except },
            first,
            limits: order.limits,
            proxy,
            groups: 1,
            shared: Vec::new(),
            groups_forbidden: false,
        }
    }

    /// Allows no further group: processes that are being killed must not multiply.
    pub(crate) fn forbid_groups(&mut self) {
        self.groups_forbidden = true;
    }

    /// Returns the sizes of shared anonymous mappings that were allowed, largest first.
    pub(crate) fn shared(&self) -> &[u64] {
        &self.shared
    }

    /// Answers a pending call.
    pub(crate) fn answer(&mut self, denied: &mut BTreeSet<String>) {
        // The caller may have been killed meanwhile.
        let Ok(notification) = sys::receive_notification(self.fd.as_fd()) else { return };
        let call = c_long::from(notification.data.nr);
        let (verdict, name) = self.filter.verdict(call, &notification.data.args);
        let answer = match verdict {
            CallVerdict::Allow => Answer::Continue,
            CallVerdict::Signal if self.is_inside(notification.data.args[0] as i32) => {
                Answer::Continue
            }
            CallVerdict::Group if self.has_room() => Answer::Continue,
            CallVerdict::Share if self.can_share(notification.data.args[1]) => Answer::Continue,
            CallVerdict::Share => Answer::Fail(ENOMEM),
            CallVerdict::Metadata => match metadata::change(&notification, &self.own) {
                Ok(()) => Answer::Done,
                Err(errno) => {
                    if errno == Errno::PERM {
                        record(denied, describe(name, &notification));
                    }
                    Answer::Fail(errno.raw_os_error())
                }
            },
            CallVerdict::Connect if let Some(done) = self.connect(&notification) => done,
            CallVerdict::Deny | CallVerdict::Signal | CallVerdict::Group | CallVerdict::Connect => {
                let what = describe(name, &notification);
                // The C library tries this whenever it looks up a user.
                if !what.contains("/nscd/") {
                    record(denied, what);
                }
                Answer::Fail(EPERM)
            }
            CallVerdict::Quiet(number) => Answer::Fail(number),
        };
        let _ = sys::answer(self.fd.as_fd(), notification.id, answer);
    }

    /// Connects a socket to the address that a script may reach; `None` if another is meant.
    fn connect(&self, call: &Notification) -> Option<Answer> {
        match connect::connect(call, self.proxy?, || sys::is_waiting(self.fd.as_fd(), call.id)) {
            Ok(()) => Some(Answer::Done),
            Err(Errno::PERM) => None,
            Err(errno) => Some(Answer::Fail(errno.raw_os_error())),
        }
    }

    /// Whether one more group is allowed. They are counted only if the upper bound reaches the
    /// limit.
    fn has_room(&mut self) -> bool {
        if self.groups >= self.limits.processes {
            self.groups = tree::process_groups(&self.processes()).len() as u64;
        }
        let has_room = !self.groups_forbidden && self.groups < self.limits.processes;
        self.groups += u64::from(has_room);
        has_room
    }

    /// Whether one more shared mapping of this size is allowed: its content stays as long as any
    /// part of it is mapped, so it counts in full.
    fn can_share(&mut self, size: u64) -> bool {
        let most = self.limits.memory;
        let all = usage::sum_largest(&self.shared, self.shared.len());
        if all.saturating_add(size) > most {
            let existing = usage::shared_mappings(&self.processes());
            let shared = usage::sum_largest(&self.shared, existing);
            if shared.saturating_add(size) > most {
                return false;
            }
        }
        let at = self.shared.partition_point(|it| *it >= size);
        self.shared.insert(at, size);
        self.shared.truncate(SIZES);
        true
    }

    fn processes(&self) -> Vec<Pid> {
        tree::descendants(self.first, self.limits.processes)
    }

    /// Whether a signal to this process, or to the sender's group, stays inside.
    fn is_inside(&self, target: i32) -> bool {
        let Some(pid) = Pid::from_raw(target.saturating_abs()) else { return target == 0 };
        target != -1 && tree::descendants(self.first, ALL).contains(&pid)
    }
}

impl AsFd for CallListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn record(denied: &mut BTreeSet<String>, what: String) {
    if denied.len() < MAX_DENIED {
        denied.insert(what);
    }
}

/// Describes a refused call, and its subject if known.
fn describe(name: &str, notification: &Notification) -> String {
    let name = name.strip_prefix("SYS_").unwrap_or(name);
    let arguments = &notification.data.args;
    let about = match name {
        "socket" | "socketpair" => family_name(arguments[0] as i32).map(str::to_owned),
        "connect" | "bind" => {
            let (pid, at, length) = (notification.pid, arguments[1], arguments[2]);
            let ipv4 = connect::requested_address(pid, at, length).map(|it| it.to_string());
            ipv4.or_else(|| requested_path(pid, at, length))
        }
        _ => None,
    };
    about.map_or_else(|| name.to_owned(), |it| format!("{name} ({it})"))
}

fn family_name(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::AF_UNIX => "unix",
        libc::AF_INET => "IPv4",
        libc::AF_INET6 => "IPv6",
        libc::AF_NETLINK => "netlink",
        libc::AF_PACKET => "packet",
        libc::AF_VSOCK => "vsock",
        _ => return None,
    })
}

/// Returns the path of the socket that a process wanted to connect to. It may have changed
/// meanwhile: good enough to report, not to decide by.
fn requested_path(pid: u32, at: u64, length: u64) -> Option<String> {
    let mut bytes = vec![0; usize::try_from(length).ok().filter(|it| (3..=110).contains(it))?];
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, at).ok()?;
    let path = bytes.get(2..)?.split(|it| *it == 0).next()?;
    (!path.is_empty()).then(|| String::from_utf8_lossy(path).into_owned())
}
