//! The filter of system calls: blocks those that a script does not need, by number and argument.

use std::ffi::{c_int, c_long, c_ulong};

use libc::{EAFNOSUPPORT, EINVAL, ENOPROTOOPT, ENOSYS, ENOTSUP, EPERM};

use super::sys::Instruction;
use crate::level::SandboxLevel;

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    /// Allow it.
    Allow,
    /// Refuse it, and report it as denied.
    Deny,
    /// Refuse it with this errno; programs have a fallback.
    Quiet(c_int),
    /// It sends a signal to the process of the first argument: check the target.
    Signal,
    /// It changes mode, times or owner of a file: do it for the script if the file is its own.
    Metadata,
    /// It creates a process group: count them, because processes are killed group by group.
    Group,
    /// It creates shared memory: count the size.
    Share,
    /// It connects a socket: do it for the script if the target is the allowed address.
    Connect,
}

/// A rule: the call, the tests that must all hold, and the verdict. The first matching rule
/// applies.
#[derive(Debug)]
struct Rule {
    call: c_long,
    name: &'static str,
    tests: Vec<Test>,
    verdict: CallVerdict,
}

/// Holds if the masked argument is, or is not, this value.
#[derive(Debug, Clone, Copy)]
struct Test {
    argument: u32,
    mask: u32,
    value: u32,
    equal: bool,
}

/// The rules of a level.
#[derive(Debug)]
pub(crate) struct Filter(Vec<Rule>);

/// The settings of a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterSetting {
    pub(crate) level: SandboxLevel,
    /// Whether the kernel itself keeps signals inside of the sandbox.
    pub(crate) signals_scoped: bool,
    /// Whether the supervisor counts memory, because no control group does.
    pub(crate) counts_memory: bool,
    /// Whether there is a socket that the script may connect to.
    pub(crate) network: bool,
}

/// Rules without a test.
macro_rules! rules {
    ($verdict:expr; $($call:ident)*) => {
        vec![$(Rule {
            call: libc::$call,
            name: stringify!($call),
            tests: Vec::new(),
            verdict: $verdict,
        }),*]
    };
}

/// One rule with tests.
macro_rules! rule {
    ($verdict:expr; $call:ident, $($test:expr),+) => {
        Rule {
            call: libc::$call,
            name: stringify!($call),
            tests: vec![$($test),+],
            verdict: $verdict,
        }
    };
}

impl Filter {
    pub(crate) fn new(setting: FilterSetting) -> Self {
        let mut rules = if setting.network { network_rules() } else { Vec::new() };
        rules.extend(common_rules());
        rules.extend(privileged_file_rules());
        if setting.counts_memory {
            rules.extend(kernel_memory_rules());
        }
        if setting.level == SandboxLevel::Landlock {
            rules.extend(shared_system_rules());
            if setting.counts_memory {
                rules.extend(rules!(CallVerdict::Group; SYS_setsid SYS_setpgid));
            }
            if !setting.signals_scoped {
                rules.extend(signal_rules());
            }
        }
        Self(rules)
    }

    /// Returns a filter that is added after the listener of the first was handed over: it blocks
    /// calls that send descriptors, which would not be open in any process while in transit.
    pub(crate) fn last() -> Self {
        Self(rules!(CallVerdict::Quiet(EPERM); SYS_sendmsg SYS_sendmmsg))
    }

    /// Returns the verdict about a call, and its name.
    pub(crate) fn verdict(
        &self,
        call: c_long,
        arguments: &[u64; 6],
    ) -> (CallVerdict, &'static str) {
        self.0
            .iter()
            .find(|rule| rule.call == call && rule.tests.iter().all(|it| it.matches(arguments)))
            .map_or((CallVerdict::Allow, ""), |it| (it.verdict, it.name))
    }

    /// Compiles the filter for the kernel. With a listener, refused calls are passed to it.
    pub(crate) fn compile(&self, listener: bool) -> Vec<Instruction> {
        let mut program = vec![
            load(ARCH_OFFSET),
            jump(libc::BPF_JEQ, ARCH, 1, 0),
            return_value(errno(EPERM)),
            load(NR_OFFSET),
            // Calls that are newer than this list, and those of the x32 ABI, do not exist for the
            // script.
            jump(libc::BPF_JGE, FIRST_UNKNOWN, 0, 1),
            return_value(errno(ENOSYS)),
        ];
        for rule in &self.0 {
            let action = match rule.verdict {
                CallVerdict::Allow => libc::SECCOMP_RET_ALLOW,
                CallVerdict::Quiet(number) => errno(number),
                _ if listener => libc::SECCOMP_RET_USER_NOTIF,
                _ => errno(EPERM),
            };
            // The tests are followed by the return value, and by reloading the number for the next
            // rule.
            let length = |tests: usize| 3 * tests as u8;
            let count = rule.tests.len();
            program.push(jump(libc::BPF_JEQ, rule.call as u32, 0, length(count) + 2));
            for (at, test) in rule.tests.iter().enumerate() {
                let away = length(count - at - 1) + 1;
                let (holds, fails) = if test.equal { (0, away) } else { (away, 0) };
                program.extend([
                    load(ARGUMENTS_OFFSET + 8 * test.argument),
                    statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, test.mask),
                    jump(libc::BPF_JEQ, test.value, holds, fails),
                ]);
            }
            program.extend([return_value(action), load(NR_OFFSET)]);
        }
        program.push(return_value(libc::SECCOMP_RET_ALLOW));
        program
    }
}

impl Test {
    fn matches(self, arguments: &[u64; 6]) -> bool {
        // The kernel reads these arguments as 32 bits and ignores the upper half.
        let value = arguments[self.argument as usize] as u32 & self.mask;
        (value == self.value) == self.equal
    }
}

/// Calls from this number on were unknown when this list was written. (The x32 ABI has its own far
/// above.)
const FIRST_UNKNOWN: u32 = 463;

/// The namespaces of the level *strong*; a script cannot create any of them itself.
pub(crate) const NAMESPACES: c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

fn common_rules() -> Vec<Rule> {
    let unix = libc::AF_UNIX as u32;
    // With this mask of the socket type, only streams and sequenced packets match. A datagram could
    // be sent to any address without connecting first.
    let (type_bits, stream) = (0b1011, libc::SOCK_STREAM as u32);
    let mut rules = vec![
        rule!(CallVerdict::Deny; SYS_clone, not(0, NAMESPACES as u32, 0)),
        // A thread with descriptors of its own: those of a process are counted once.
        rule!(CallVerdict::Quiet(EINVAL); SYS_clone, bits(0, THREAD | FILES, THREAD)),
        rule!(CallVerdict::Quiet(EINVAL); SYS_close_range, not(2, CLOSE_RANGE_UNSHARE, 0)),
        // A table in the kernel, of any size requested.
        rule!(CallVerdict::Quiet(EINVAL); SYS_prctl, is(0, FUTEX_HASH)),
        // Names of mappings, which are not counted.
        rule!(CallVerdict::Quiet(EINVAL); SYS_prctl, is(0, SET_VMA)),
        // These locks outlive the descriptor in a mapping, where they cannot be seen.
        rule!(CallVerdict::Quiet(EINVAL); SYS_fcntl, is(1, libc::F_OFD_SETLK as u32)),
        rule!(CallVerdict::Quiet(EINVAL); SYS_fcntl, is(1, libc::F_OFD_SETLKW as u32)),
        rule!(CallVerdict::Deny; SYS_socket, not(0, !0, unix)),
        rule!(CallVerdict::Deny; SYS_socket, not(1, type_bits, stream)),
        rule!(CallVerdict::Deny; SYS_socketpair, not(0, !0, unix)),
        rule!(CallVerdict::Deny; SYS_socketpair, not(1, type_bits, stream)),
        rule!(CallVerdict::Deny; SYS_ioctl, is(1, libc::TIOCSTI as u32)),
        rule!(CallVerdict::Deny; SYS_ioctl, is(1, libc::TIOCLINUX as u32)),
        // The processes that hold a script are not below it, but visible to it.
        rule!(CallVerdict::Deny; SYS_prlimit64, not(0, !0, 0)),
        // Pretends to succeed: a process that cannot be inspected would not be counted.
        rule!(CallVerdict::Quiet(0); SYS_prctl, is(0, libc::PR_SET_DUMPABLE as u32)),
        rule!(CallVerdict::Allow; SYS_personality, is(0, 0)),
        rule!(CallVerdict::Allow; SYS_personality, is(0, u32::MAX)),
    ];
    rules.extend(rules!(CallVerdict::Deny;
        SYS_connect SYS_bind SYS_listen SYS_accept SYS_accept4
        SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_kcmp
        SYS_pidfd_getfd SYS_process_mrelease
        SYS_add_key SYS_request_key SYS_keyctl
        SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_fanotify_init SYS_lookup_dcookie
        SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_unshare SYS_setns
        SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_move_mount SYS_open_tree
        SYS_mount_setattr SYS_open_by_handle_at SYS_name_to_handle_at
        SYS_init_module SYS_finit_module SYS_delete_module SYS_kexec_load
        SYS_reboot SYS_swapon SYS_swapoff SYS_acct SYS_quotactl SYS_quotactl_fd SYS_nfsservctl
        SYS_sethostname SYS_setdomainname SYS_settimeofday SYS_clock_settime SYS_clock_adjtime
        SYS_adjtimex SYS_syslog SYS_vhangup SYS_personality
        // The objects these create outlive their creators, or are not counted.
        SYS_shmget SYS_msgget SYS_semget SYS_mq_open
    ));
    rules.extend(rules!(CallVerdict::Quiet(EPERM); SYS_memfd_create SYS_memfd_secret SYS_mbind));
    // Landlock rules use kernel memory, and the script has those that it needs.
    rules.extend(rules!(CallVerdict::Quiet(ENOSYS);
        SYS_landlock_create_ruleset SYS_landlock_add_rule SYS_landlock_restrict_self
    ));
    // Data buffered in a socket is charged to no process; each socket counts with its initial
    // buffer size.
    rules.extend(OPTIONS.map(|option| {
        let tests = (is(1, libc::SOL_SOCKET as u32), is(2, option as u32));
        rule!(CallVerdict::Quiet(EPERM); SYS_setsockopt, tests.0, tests.1)
    }));
    rules.extend(rules!(CallVerdict::Quiet(ENOSYS);
        // Its flags are behind a pointer; programs fall back to `clone`.
        SYS_clone3
        SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register
    ));
    // It allocates gigabytes before the next check; programs fall back to writing.
    rules.extend(rules!(CallVerdict::Quiet(ENOTSUP); SYS_fallocate));
    rules.extend(RESERVE.map(|it| rule!(CallVerdict::Quiet(ENOTSUP); SYS_ioctl, is(1, it))));
    // Not every file system counts them toward a file.
    rules.extend(rules!(CallVerdict::Quiet(ENOTSUP); SYS_setxattr SYS_lsetxattr SYS_fsetxattr));
    #[cfg(target_arch = "x86_64")]
    rules.extend(rules!(CallVerdict::Deny;
        SYS_kexec_file_load SYS_iopl SYS_ioperm SYS_uselib SYS_ustat SYS_sysfs SYS__sysctl SYS_modify_ldt
    ));
    rules
}

/// Returns the rules that allow TCP with one socket; they precede the rules that refuse it.
fn network_rules() -> Vec<Rule> {
    let (ipv4, tcp) = (libc::AF_INET as u32, libc::IPPROTO_TCP as u32);
    let stream = bits(1, SOCKET_TYPE, libc::SOCK_STREAM as u32);
    let mut rules = vec![
        // Other protocols could connect to several addresses at once.
        rule!(CallVerdict::Allow; SYS_socket, is(0, ipv4), stream, is(2, 0)),
        rule!(CallVerdict::Allow; SYS_socket, is(0, ipv4), stream, is(2, tcp)),
        // Programs check for IPv6, and list the interfaces.
        rule!(CallVerdict::Quiet(EAFNOSUPPORT); SYS_socket, is(0, libc::AF_INET6 as u32)),
        rule!(CallVerdict::Quiet(EAFNOSUPPORT); SYS_socket, is(0, libc::AF_NETLINK as u32)),
        // This also connects, and sends at once.
        rule!(CallVerdict::Deny; SYS_sendto, not(3, libc::MSG_FASTOPEN as u32, 0)),
        // Options that could redirect packets: routes, devices, upper-layer protocols.
        rule!(CallVerdict::Quiet(ENOPROTOOPT); SYS_setsockopt, is(1, libc::SOL_IP as u32)),
        rule!(CallVerdict::Quiet(ENOPROTOOPT); SYS_setsockopt, is(1, tcp), is(2, TCP_ULP)),
    ];
    rules.extend(DEVICES.map(|option| {
        let tests = (is(1, libc::SOL_SOCKET as u32), is(2, option as u32));
        rule!(CallVerdict::Quiet(EPERM); SYS_setsockopt, tests.0, tests.1)
    }));
    rules.extend(rules!(CallVerdict::Connect; SYS_connect));
    rules
}

/// Returns the rules against memory that no process shows, for runs without a control group.
fn kernel_memory_rules() -> Vec<Rule> {
    let shared = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u32;
    let kinds = (libc::MAP_TYPE | libc::MAP_ANONYMOUS) as u32;
    let mut rules = vec![
        rule!(CallVerdict::Share; SYS_mmap, bits(3, kinds, shared)),
        rule!(CallVerdict::Quiet(EPERM); SYS_fcntl, is(1, libc::F_SETPIPE_SZ as u32)),
    ];
    // Pages in a pipe or socket, each of which may be part of a huge one; programs fall back to
    // copying.
    rules.extend(rules!(CallVerdict::Quiet(ENOSYS); SYS_splice SYS_tee SYS_vmsplice SYS_sendfile));
    rules
}

/// Returns the rules against files that give their owner's rights to every user who runs them.
fn privileged_file_rules() -> Vec<Rule> {
    let mut rules = vec![
        rule!(CallVerdict::Deny; SYS_fchmod, privileged(1)),
        rule!(CallVerdict::Deny; SYS_fchmodat, privileged(2)),
        rule!(CallVerdict::Deny; SYS_openat, creates(2), privileged(3)),
        rule!(CallVerdict::Deny; SYS_mknodat, privileged(2)),
    ];
    #[cfg(target_arch = "x86_64")]
    rules.extend([
        rule!(CallVerdict::Deny; SYS_chmod, privileged(1)),
        rule!(CallVerdict::Deny; SYS_open, creates(1), privileged(2)),
        rule!(CallVerdict::Deny; SYS_creat, privileged(1)),
        rule!(CallVerdict::Deny; SYS_mknod, privileged(1)),
    ]);
    // Its mode is behind a pointer; programs fall back to `openat`.
    rules.extend(rules!(CallVerdict::Quiet(ENOSYS); SYS_openat2));
    let fchmodat2 = "SYS_fchmodat2";
    let verdict = CallVerdict::Quiet(ENOSYS);
    rules.push(Rule { call: FCHMODAT2, name: fchmodat2, tests: Vec::new(), verdict });
    rules
}

/// Returns the rules about what namespaces would make harmless: the metadata of files outside,
/// which Landlock does not guard, and other processes.
fn shared_system_rules() -> Vec<Rule> {
    let mut rules = vec![
        rule!(CallVerdict::Deny; SYS_ioctl, is(1, SET_FLAGS)),
        rule!(CallVerdict::Deny; SYS_ioctl, is(1, SET_XATTR)),
        rule!(CallVerdict::Deny; SYS_sched_setaffinity, not(0, !0, 0)),
        rule!(CallVerdict::Deny; SYS_sched_setscheduler, not(0, !0, 0)),
        rule!(CallVerdict::Deny; SYS_sched_setparam, not(0, !0, 0)),
        rule!(CallVerdict::Deny; SYS_sched_setattr, not(0, !0, 0)),
        rule!(CallVerdict::Deny; SYS_migrate_pages, not(0, !0, 0)),
        rule!(CallVerdict::Deny; SYS_move_pages, not(0, !0, 0)),
        rule!(CallVerdict::Deny; SYS_setpriority, not(0, !0, libc::PRIO_PROCESS as _)),
        rule!(CallVerdict::Deny; SYS_setpriority, not(1, !0, 0)),
    ];
    rules.extend(rules!(CallVerdict::Metadata;
        SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat SYS_utimensat
    ));
    rules.extend(rules!(CallVerdict::Deny; SYS_ioprio_set));
    rules.extend(rules!(CallVerdict::Quiet(ENOTSUP);
        SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_removexattr SYS_lremovexattr SYS_fremovexattr
        SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_listxattr SYS_llistxattr SYS_flistxattr
    ));
    rules.extend(rules!(CallVerdict::Quiet(EPERM); SYS_inotify_add_watch));
    #[cfg(target_arch = "x86_64")]
    {
        rules.extend(rules!(CallVerdict::Metadata; SYS_chmod SYS_chown SYS_lchown));
        rules.extend(rules!(CallVerdict::Deny; SYS_utime SYS_utimes SYS_futimesat));
    }
    rules
}

/// Returns the rules about sending signals, for kernels that do not keep signals inside.
fn signal_rules() -> Vec<Rule> {
    let mut rules = rules!(CallVerdict::Signal; SYS_kill SYS_tkill SYS_tgkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo);
    rules.extend(rules!(CallVerdict::Quiet(ENOSYS); SYS_pidfd_send_signal));
    // A file can send them as well, to its configured owner.
    rules.extend(OWNERS.map(|it| rule!(CallVerdict::Deny; SYS_fcntl, is(1, it as u32))));
    rules.extend([FIOSETOWN, SIOCSPGRP].map(|it| rule!(CallVerdict::Deny; SYS_ioctl, is(1, it))));
    rules
}

fn is(argument: u32, value: u32) -> Test {
    Test { argument, mask: !0, value, equal: true }
}

fn not(argument: u32, mask: u32, value: u32) -> Test {
    Test { argument, mask, value, equal: false }
}

fn bits(argument: u32, mask: u32, value: u32) -> Test {
    Test { argument, mask, value, equal: true }
}

/// Whether a mode sets the user or group of whoever runs the file.
fn privileged(argument: u32) -> Test {
    not(argument, libc::S_ISUID | libc::S_ISGID, 0)
}

/// Whether the flags of an opened file create it.
fn creates(argument: u32) -> Test {
    not(argument, (libc::O_CREAT | O_TMPFILE) as u32, 0)
}

const THREAD: u32 = libc::CLONE_THREAD as u32;
const FILES: u32 = libc::CLONE_FILES as u32;
const CLOSE_RANGE_UNSHARE: u32 = 2;
/// `PR_FUTEX_HASH` and `PR_SET_VMA`.
const FUTEX_HASH: u32 = 78;
const SET_VMA: u32 = 0x5356_4d41;
/// The commands that set the signal target of a file: `F_SETOWN`, `F_SETSIG`, `F_SETOWN_EX`, and
/// two socket ioctls.
const OWNERS: [c_int; 3] = [libc::F_SETOWN, 10, 15];
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
/// The socket options that set buffer sizes and filters.
const OPTIONS: [c_int; 7] = [
    libc::SO_SNDBUF,
    libc::SO_RCVBUF,
    libc::SO_SNDBUFFORCE,
    libc::SO_RCVBUFFORCE,
    libc::SO_ATTACH_FILTER,
    libc::SO_ATTACH_BPF,
    libc::SO_ATTACH_REUSEPORT_CBPF,
];
/// The socket options that bind to a device: `SO_BINDTODEVICE`, `SO_BINDTOIFINDEX`.
const DEVICES: [c_int; 2] = [libc::SO_BINDTODEVICE, 62];
const TCP_ULP: u32 = 31;
/// The bits of a socket's type, without its flags.
const SOCKET_TYPE: u32 = 0xf;
/// `FS_IOC_RESVSP`, `_UNRESVSP`, their 64-bit variants, and `_ZERO_RANGE`: alternatives to
/// `fallocate`.
const RESERVE: [u32; 5] = [0x4030_5828, 0x4030_5829, 0x4030_582a, 0x4030_582b, 0x4030_5839];
/// `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`, which change a file that is open for reading.
const SET_FLAGS: u32 = 0x4008_6602;
const SET_XATTR: u32 = 0x401c_5820;
/// Without the bit for directories, which is a separate flag.
const O_TMPFILE: c_int = libc::O_TMPFILE & !libc::O_DIRECTORY;
/// The same number on every architecture; `libc` does not define it on all.
const FCHMODAT2: c_long = 452;

/// The offsets in `struct seccomp_data`. The low half of an argument comes first on both
/// architectures.
const NR_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

fn load(offset: u32) -> Instruction {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn return_value(action: u32) -> Instruction {
    statement(libc::BPF_RET | libc::BPF_K, action)
}

fn errno(number: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | number as u32
}

fn statement(code: u32, k: u32) -> Instruction {
    Instruction { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(how: u32, k: u32, holds: u8, fails: u8) -> Instruction {
    let code = libc::BPF_JMP | how | libc::BPF_K;
    Instruction { code: code as u16, jt: holds, jf: fails, k }
}

/// The flags to install the filter with, in order of preference: notifications that no signal
/// interrupts come first.
pub(crate) const LISTEN: [c_ulong; 3] = [
    libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
    libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
    0,
];

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [SandboxLevel; 2] = [SandboxLevel::Landlock, SandboxLevel::Strong];

    /// Returns the filter of a machine without control groups.
    fn filter(level: SandboxLevel) -> Filter {
        Filter::new(setting(level))
    }

    fn setting(level: SandboxLevel) -> FilterSetting {
        FilterSetting { level, signals_scoped: true, counts_memory: true, network: false }
    }

    /// Evaluates the program for a call, like the kernel.
    fn run(program: &[Instruction], arch: u32, call: u32, arguments: &[u64; 6]) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            match u32::from(code) {
                0x20 => {
                    value = match k {
                        NR_OFFSET => call,
                        ARCH_OFFSET => arch,
                        offset => arguments[(offset - ARGUMENTS_OFFSET) as usize / 8] as u32,
                    }
                }
                0x54 => value &= k,
                0x15 => at += jump(value == k),
                0x35 => at += jump(value >= k),
                0x06 => return k,
                other => panic!("what is {other:#x}?"),
            }
        }
    }

    #[test]
    fn the_program_says_what_the_rules_say() {
        let interesting =
            [0, 1, 2, 5, 0o755, 0o4755, 0x40, 0x5412, 0x1_0000_5412, 0x1000_0011, u64::MAX];
        for (level, network) in LEVELS.into_iter().flat_map(|it| [(it, false), (it, true)]) {
            let filter = Filter::new(FilterSetting { network, ..setting(level) });
            let (asking, alone) = (filter.compile(true), filter.compile(false));
            assert!(asking.len() < 4096);
            for call in 0..FIRST_UNKNOWN {
                for (first, second) in interesting.iter().flat_map(|a| interesting.map(|b| (*a, b)))
                {
                    let arguments = [first, second, first, second, 0, 0];
                    let (verdict, _) = filter.verdict(call.into(), &arguments);
                    let given = run(&asking, ARCH, call, &arguments);
                    let wanted = match verdict {
                        CallVerdict::Allow => libc::SECCOMP_RET_ALLOW,
                        CallVerdict::Quiet(number) => errno(number),
                        _ => libc::SECCOMP_RET_USER_NOTIF,
                    };
                    assert_eq!(given, wanted, "{level} {call} {arguments:?}");
                    let allowed = run(&alone, ARCH, call, &arguments) == libc::SECCOMP_RET_ALLOW;
                    assert_eq!(
                        allowed,
                        verdict == CallVerdict::Allow,
                        "{level} {call} {arguments:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn other_machines_and_newer_calls_are_refused() {
        for level in LEVELS {
            let program = filter(level).compile(true);
            let none = [0; 6];
            // i386, x32 and calls of future kernels.
            assert_eq!(run(&program, 0x4000_0003, 1, &none), errno(EPERM));
            assert_eq!(
                run(&program, ARCH, 0x4000_0000 | libc::SYS_socket as u32, &none),
                errno(ENOSYS)
            );
            assert_eq!(run(&program, ARCH, FIRST_UNKNOWN, &none), errno(ENOSYS));
        }
    }

    #[test]
    fn files_of_others_are_guarded_by_the_filter_where_nothing_else_guards_them() {
        let verdict = |level, call| filter(level).verdict(call, &[0; 6]).0;
        for call in [libc::SYS_fchmod, libc::SYS_fchownat, libc::SYS_utimensat] {
            assert_eq!(verdict(SandboxLevel::Strong, call), CallVerdict::Allow);
            assert_eq!(verdict(SandboxLevel::Landlock, call), CallVerdict::Metadata);
        }
        let verdict = |signals_scoped, call, argument: i32| {
            let filter =
                Filter::new(FilterSetting { signals_scoped, ..setting(SandboxLevel::Landlock) });
            filter.verdict(call, &[0, argument as u64, 0, 0, 0, 0]).0
        };
        let both = |call, argument| [true, false].map(|it| verdict(it, call, argument));
        assert_eq!(both(libc::SYS_kill, 0), [CallVerdict::Allow, CallVerdict::Signal]);
        // A file can be configured to send a signal.
        for command in [libc::F_SETOWN, 10, 15] {
            assert_eq!(both(libc::SYS_fcntl, command), [CallVerdict::Allow, CallVerdict::Deny]);
        }
        assert_eq!(both(libc::SYS_ioctl, 0x8901), [CallVerdict::Allow, CallVerdict::Deny]);
        assert_eq!(both(libc::SYS_fcntl, libc::F_GETFL), [CallVerdict::Allow, CallVerdict::Allow]);
    }

    #[test]
    fn with_a_network_there_are_sockets_of_tcp_and_no_others() {
        let verdict = |network, call, arguments: [i32; 4]| {
            let [a, b, c, d] = arguments.map(|it| it as u64);
            let filter = Filter::new(FilterSetting { network, ..setting(SandboxLevel::Strong) });
            filter.verdict(call, &[a, b, c, d, 0, 0]).0
        };
        let sockets = [
            ([libc::AF_INET, libc::SOCK_STREAM, 0, 0], CallVerdict::Allow),
            ([libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 6, 0], CallVerdict::Allow),
            ([libc::AF_INET, libc::SOCK_STREAM, 262, 0], CallVerdict::Deny),
            ([libc::AF_INET, libc::SOCK_STREAM, 132, 0], CallVerdict::Deny),
            ([libc::AF_INET, libc::SOCK_SEQPACKET, 0, 0], CallVerdict::Deny),
            ([libc::AF_INET, libc::SOCK_DGRAM, 0, 0], CallVerdict::Deny),
            ([libc::AF_INET, libc::SOCK_RAW, 6, 0], CallVerdict::Deny),
            ([libc::AF_INET6, libc::SOCK_STREAM, 0, 0], CallVerdict::Quiet(EAFNOSUPPORT)),
            ([libc::AF_PACKET, libc::SOCK_RAW, 0, 0], CallVerdict::Deny),
            ([libc::AF_UNIX, libc::SOCK_DGRAM, 0, 0], CallVerdict::Deny),
        ];
        for (arguments, wanted) in sockets {
            assert_eq!(verdict(true, libc::SYS_socket, arguments), wanted, "{arguments:?}");
        }
        assert_eq!(verdict(false, libc::SYS_socket, sockets[0].0), CallVerdict::Deny);
        assert_eq!(verdict(true, libc::SYS_connect, [3, 0, 0, 0]), CallVerdict::Connect);
        assert_eq!(verdict(false, libc::SYS_connect, [3, 0, 0, 0]), CallVerdict::Deny);
        let fast_open = [3, 0, 0, libc::MSG_FASTOPEN];
        assert_eq!(verdict(true, libc::SYS_sendto, fast_open), CallVerdict::Deny);
        assert_eq!(
            verdict(true, libc::SYS_sendto, [3, 0, 0, libc::MSG_NOSIGNAL]),
            CallVerdict::Allow
        );
    }

    #[test]
    fn what_a_control_group_counts_is_not_asked_about() {
        let group = FilterSetting { counts_memory: false, ..setting(SandboxLevel::Landlock) };
        let shared = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u64;
        for (call, argument) in
            [(libc::SYS_mmap, shared), (libc::SYS_setsid, 0), (libc::SYS_splice, 0)]
        {
            let arguments = [0, 0, 0, argument, 0, 0];
            assert_eq!(Filter::new(group).verdict(call, &arguments).0, CallVerdict::Allow);
            assert_ne!(
                filter(SandboxLevel::Landlock).verdict(call, &arguments).0,
                CallVerdict::Allow
            );
        }
    }
}
