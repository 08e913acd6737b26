//! The system calls that neither the standard library nor `rustix` offers: the only unsafe code of
//! the sandbox.
#![expect(unsafe_code, reason = "these calls have no safe wrapper; each says why it is sound")]

use std::{
    ffi::{CStr, c_long, c_ulong},
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use rustix::{
    net::{AddressFamily, SocketType},
    process::Pid,
};

/// A notification that a process waits in a system call for our answer.
pub(crate) use libc::seccomp_notif as Notification;
/// An instruction of a filter.
pub(crate) use libc::sock_filter as Instruction;

/// The side of a fork.
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

/// Forks, into new namespaces if `namespaces` is not 0. Only for a process with a single thread,
/// such as the launcher.
pub(crate) fn fork(namespaces: i32) -> io::Result<Fork> {
    let flags = c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without `CLONE_VM` this is a fork: the child has memory and stack of its own, and no
    // other thread could hold a lock.
    fork_side(check_result(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?)
}

/// Returns a descriptor that becomes readable when a child of this process has ended. The signal
/// about it is no longer delivered.
pub(crate) fn ended_children() -> io::Result<OwnedFd> {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: the set is initialized before it is used, and the pointers are valid for each call.
    let descriptor = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        check_result(c_long::from(libc::sigprocmask(
            libc::SIG_BLOCK,
            set.as_ptr(),
            std::ptr::null_mut(),
        )))?;
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    check_result(c_long::from(descriptor))?;
    // SAFETY: it was just created, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Like [`fork`], into a control group of version 2.
pub(crate) fn fork_into(group: BorrowedFd<'_>, namespaces: i32) -> io::Result<Fork> {
    #[repr(C)]
    #[derive(Default)]
    struct CloneArgs {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }
    const INTO_CGROUP: u64 = 0x2_0000_0000;
    let arguments = CloneArgs {
        flags: u64::from(namespaces.cast_unsigned()) | INTO_CGROUP,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: group.as_raw_fd() as u64,
        ..CloneArgs::default()
    };
    let size = size_of::<CloneArgs>();
    // SAFETY: as above; the arguments live through the call, and the size is theirs.
    fork_side(check_result(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) })?)
}

fn fork_side(pid: c_long) -> io::Result<Fork> {
    Ok(match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        None => Fork::Child,
        Some(pid) => Fork::Parent(pid),
    })
}

/// Closes all descriptors from this one on.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: only called first thing in the launcher, when nothing owns any of them.
    check_result(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) }).map(drop)
}

/// Restores the default action of every signal: an ignored one would stay ignored in a script.
pub(crate) fn default_signals() {
    for signal in 1..=64 {
        // SAFETY: no handler is installed, only the default; an invalid number is an error that
        // changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Adds attributes to a mount and all below it.
pub(crate) fn mount_setattr(path: &CStr, set: u64, recursive: bool) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns: u64,
    }
    let attr = MountAttr { set, clear: 0, propagation: 0, userns: 0 };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: path and attributes live through the call, and the size is that of the attributes.
    check_result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Installs a system call filter on this process and its descendants; if `flags` request it,
/// returns the descriptor for notifications.
pub(crate) fn seccomp(filter: &[Instruction], flags: c_ulong) -> io::Result<Option<OwnedFd>> {
    let len = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the kernel copies the program, which lives through the call and is not written to.
    let fd =
        check_result(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) })?;
    let listens = flags & libc::SECCOMP_FILTER_FLAG_NEW_LISTENER != 0;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(listens.then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) }))
}

/// Receives the next notification.
pub(crate) fn receive_notification(listener: BorrowedFd<'_>) -> io::Result<Notification> {
    // SAFETY: all zero is a valid value, and the one that the kernel requires.
    let mut notification: Notification = unsafe { std::mem::zeroed() };
    let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
    // SAFETY: the request writes one notification, which fits.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw mut notification) };
    check_result(result.into()).map(|_| notification)
}

/// The answer to a pending call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// It continues.
    Continue,
    /// It was executed on the caller's behalf.
    Done,
    /// It fails with this errno.
    Fail(i32),
}

/// Answers a notification.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, answer: Answer) -> io::Result<()> {
    let (error, flags) = match answer {
        Answer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Answer::Done => (0, 0),
        Answer::Fail(errno) => (-errno, 0),
    };
    let response = libc::seccomp_notif_resp { id, val: 0, error, flags };
    let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
    // SAFETY: the request reads one response, which lives through the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw const response) };
    check_result(result.into()).map(drop)
}

/// Whether a notification is still pending: only then is its process the one that made the call.
pub(crate) fn is_waiting(listener: BorrowedFd<'_>, id: u64) -> bool {
    let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
    // SAFETY: the request reads one number, which lives through the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw const id) == 0 }
}

/// Enables the loopback interface, so that the processes of this network namespace reach each other
/// at `127.0.0.1`.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: all zero is a valid value: no name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request reads one `ifreq`, which lives through the call.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    check_result(result.into()).map(drop)
}

/// Gives this process precedence over all ordinary ones, if permitted.
pub(crate) fn raise_priority() {
    // SAFETY: all zero is a valid value, for any further fields of this system too.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads one `sched_param`, which lives through it.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } != 0 {
        // Some systems do not allow this scheduling class within a control group.
        let _ = rustix::process::setpriority_process(None, -20);
    }
}

fn check_result(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
