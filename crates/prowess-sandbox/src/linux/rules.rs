//! The kernel's rules about files, sockets and signals: Landlock.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};

use super::{
    messages::{Component, StartFailure},
    mounts::{DEVICES, ETC},
};
use crate::{level::SandboxLevel, order::Order, system::SYSTEM};

/// The newest version that is requested; a kernel applies what it knows.
const NEWEST: ABI = ABI::V9;
/// The minimum version for the level *landlock*, with rules about truncation and TCP.
pub(crate) const LEAST: i32 = 4;
/// The minimum version that keeps signals inside.
pub(crate) const SIGNALS: i32 = 6;

/// Applies the rules to this process and its descendants, as far as the kernel supports them;
/// returns its version.
pub(crate) fn restrict(order: &Order, level: SandboxLevel) -> Result<i32, StartFailure> {
    let error = match apply(order, level) {
        Ok(LandlockStatus::Available { effective_abi, kernel_abi }) => {
            return Ok(kernel_abi.unwrap_or(effective_abi as i32));
        }
        Ok(LandlockStatus::NotEnabled) => io::Error::from_raw_os_error(libc::EOPNOTSUPP),
        Ok(LandlockStatus::NotImplemented) => io::Error::from_raw_os_error(libc::ENOSYS),
        Err(error) => io::Error::other(error),
    };
    Err(Component::Rules.failed("use Landlock")(error))
}

fn apply(order: &Order, level: SandboxLevel) -> Result<LandlockStatus, RulesetError> {
    let read = AccessFs::from_read(NEWEST);
    let all = AccessFs::from_all(NEWEST);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    // Writable, it would be shared memory that is not counted.
    let (zero, devices): (Vec<&str>, Vec<&str>) =
        DEVICES.iter().copied().partition(|it| *it == "/dev/zero");
    let (reads, writes) = paths(order, level);
    // At the level *strong*, hidden paths are covered by something empty.
    let hidden: Vec<OsString> = match level {
        SandboxLevel::Strong => Vec::new(),
        _ => order.hidden.iter().chain(&order.withheld).cloned().collect(),
    };
    let (reads, mut read_through) = around(reads, &hidden);
    let (writes, write_through) = around(writes, &hidden);
    // A process that could write there could also write to withheld paths.
    let (closed, write_through): (Vec<_>, Vec<_>) = write_through
        .into_iter()
        .partition(|it| order.withheld.iter().any(|own| Path::new(own).starts_with(it)));
    read_through.extend(closed);
    // A rule about a directory applies to everything in it.
    let unread = all & !(AccessFs::ReadFile | AccessFs::Execute);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(reads, read))?
        .add_rules(path_beneath_rules(read_through, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(writes, all))?
        .add_rules(path_beneath_rules(write_through, unread))?
        .add_rules(path_beneath_rules(devices, device))?
        .add_rules(path_beneath_rules(zero, AccessFs::ReadFile))?
        .restrict_self()?;
    Ok(status.landlock)
}

/// Returns the paths that may be read and executed, and those that may be written.
fn paths(order: &Order, level: SandboxLevel) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let mut writes = vec![order.work()];
    writes.extend(order.writes.iter().map(PathBuf::from));
    if level == SandboxLevel::Strong {
        // Its root contains only what may be read.
        writes.extend(["/tmp", "/dev/shm"].map(PathBuf::from));
        writes.extend(order.layered.iter().map(PathBuf::from));
        return (vec!["/".into()], writes);
    }
    writes.push(order.temporary());
    let mut reads = vec![order.given_dir()];
    reads.extend(SYSTEM.iter().chain(ETC).chain(PROC).map(PathBuf::from));
    reads.extend(order.reads.iter().map(PathBuf::from));
    (reads, writes)
}

/// Splits paths around hidden ones: returns those that contain none, and the directories above
/// hidden ones.
fn around(mut paths: Vec<PathBuf>, hidden: &[OsString]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut whole, mut through) = (Vec::new(), Vec::new());
    while let Some(path) = paths.pop() {
        if hidden.iter().any(|it| path.starts_with(it)) {
            continue;
        }
        if !hidden.iter().any(|it| Path::new(it).starts_with(&path)) {
            whole.push(path);
            continue;
        }
        let inside = fs::read_dir(&path).into_iter().flatten().flatten();
        // A rule about a link would apply to its target.
        let own = inside.filter(|it| it.file_type().is_ok_and(|it| !it.is_symlink()));
        paths.extend(own.map(|it| it.path()));
        through.push(path);
    }
    (whole, through)
}

/// The parts of a shared `/proc` that programs need: nothing about other processes.
const PROC: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/cap_last_cap",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/random",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
];
