//! The only socket that a script can connect to: it is created where the script runs and served
//! outside.
//!
//! A script cannot connect by itself. The filter blocks every such call, and it is done here
//! instead, to the known address rather than one in memory that the script could change. No kernel
//! rule could do that: Landlock knows ports but not addresses.

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    os::{fd::OwnedFd, unix::fs::FileExt as _},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
    net::{AddressFamily, SocketType, ipproto, sockopt},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use super::{
    messages::{Component, StartFailure},
    sys::{self, Notification},
    tree,
};
use crate::level::SandboxLevel;

/// The buffer size of each direction of a socket in bytes; the kernel doubles it. Together that
/// does not exceed the size that an ordinary socket counts as.
const BUFFER: usize = 48 * 1024;
/// The timeout of a connection to this machine.
const TIMEOUT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Listens where a script of this level runs: in its own namespace, if it has one.
pub(crate) fn listen(level: SandboxLevel) -> Result<TcpListener, StartFailure> {
    if level == SandboxLevel::Strong {
        sys::raise_loopback().map_err(Component::Namespaces.failed("raise the loopback"))?;
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .map_err(Component::Process.failed("listen for connections"))
}

/// Connects a socket of a script to an address, if that is the address it asks for.
pub(crate) fn connect(
    call: &Notification,
    to: SocketAddrV4,
    is_waiting: impl Fn() -> bool,
) -> Result<(), Errno> {
    let [number, at, length, ..] = call.data.args;
    if requested_address(call.pid, at, length) != Some(to) {
        return Err(Errno::PERM);
    }
    let socket = duplicate_descriptor(call.pid, number)?;
    // Otherwise the PID may belong to another process by now.
    if !is_waiting() || !is_plain(&socket)? {
        return Err(Errno::PERM);
    }
    sockopt::set_socket_recv_buffer_size(&socket, BUFFER)?;
    sockopt::set_socket_send_buffer_size(&socket, BUFFER)?;
    let flags = rustix::fs::fcntl_getfl(&socket)?;
    if flags.contains(OFlags::NONBLOCK) {
        return rustix::net::connect(&socket, &to);
    }
    // A script must not be able to block the supervisor.
    rustix::fs::fcntl_setfl(&socket, flags | OFlags::NONBLOCK)?;
    let connected = connect_with_timeout(&socket, to);
    rustix::fs::fcntl_setfl(&socket, flags)?;
    connected
}

fn connect_with_timeout(socket: &OwnedFd, to: SocketAddrV4) -> Result<(), Errno> {
    match rustix::net::connect(socket, &to) {
        Err(Errno::INPROGRESS) => {}
        connected => return connected,
    }
    match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&TIMEOUT))? {
        0 => Err(Errno::TIMEDOUT),
        _ => sockopt::socket_error(socket)?,
    }
}

/// Returns the IPv4 address that a process wants to connect to.
pub(crate) fn requested_address(pid: u32, at: u64, length: u64) -> Option<SocketAddrV4> {
    let mut bytes = [0; 8];
    if length < bytes.len() as u64 {
        return None;
    }
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, at).ok()?;
    let [family @ .., p, q, a, b, c, d] = bytes;
    let is_ipv4 = u16::from_ne_bytes(family) == AddressFamily::INET.as_raw();
    let port = u16::from_be_bytes([p, q]);
    is_ipv4.then(|| SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port))
}

/// Returns a descriptor of a process. All its threads share them.
fn duplicate_descriptor(thread: u32, number: u64) -> Result<OwnedFd, Errno> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).map_err(|_| Errno::PERM)?;
    let process = tree::number_field(&status, "Tgid:").and_then(|it| i32::try_from(it).ok());
    let process = process.and_then(Pid::from_raw).ok_or(Errno::PERM)?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    pidfd_getfd(&process, number as i32, PidfdGetfdFlags::empty())
}

/// Whether it is a plain TCP socket over IPv4, without an upper-layer protocol.
fn is_plain(socket: &OwnedFd) -> Result<bool, Errno> {
    Ok(sockopt::socket_domain(socket)? == AddressFamily::INET
        && sockopt::socket_type(socket)? == SocketType::STREAM
        && sockopt::socket_protocol(socket)? == Some(ipproto::TCP))
}

/// Returns the address of a listening socket.
pub(crate) fn local_address(socket: &OwnedFd) -> io::Result<SocketAddrV4> {
    Ok(rustix::net::getsockname(socket)?.try_into()?)
}
