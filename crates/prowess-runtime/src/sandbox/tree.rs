//! The processes that came of one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process},
};

/// The processes below one, as they are now; about as many as asked for where there are more, because
/// they may become more than can be looked at.
pub(super) fn below(root: Pid, most: u64) -> Vec<Pid> {
    let mut all = Vec::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop()
        && all.len() as u64 <= most
    {
        let children = children(pid);
        all.extend(&children);
        next.extend(children);
    }
    all
}

/// The groups that these are in.
pub(super) fn groups(processes: &[Pid]) -> Vec<Pid> {
    let mut groups: Vec<Pid> =
        processes.iter().filter_map(|it| rustix::process::getpgid(Some(*it)).ok()).collect();
    groups.sort_by_key(|it| it.as_raw_nonzero());
    groups.dedup();
    groups
}

/// Kills all processes below this one. Whole groups are killed, because a group cannot grow meanwhile;
/// and no new one is made, because nobody answers that.
pub(super) fn kill() {
    let own = rustix::process::getpgrp();
    loop {
        let processes = below(rustix::process::getpid(), 64);
        for group in groups(&processes).into_iter().filter(|it| *it != own) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        // Who has not come far is still in our own.
        signal(&processes, Signal::KILL);
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// How many processes and threads there are among these.
pub(super) fn tasks(processes: &[Pid]) -> u64 {
    let threads = |pid: &Pid| field(&status(*pid)?, "Threads:");
    processes.iter().filter_map(threads).sum()
}

/// The bytes of memory that these hold: quickly as an upper bound, exactly where that is over the
/// most, because processes that share memory have it counted for each. Who cannot be looked into
/// shares nothing.
pub(super) fn memory(processes: &[Pid], most: u64) -> u64 {
    let resident = |pid: &Pid| {
        let status = status(*pid)?;
        Some(field(&status, "RssAnon:")? + field(&status, "RssShmem:")?)
    };
    let bound = processes.iter().filter_map(resident).sum::<u64>() * KIB;
    if bound <= most {
        return bound;
    }
    let share = |pid: &Pid| {
        let rollup = fs::read_to_string(own(*pid).join("smaps_rollup")).ok()?;
        Some(field(&rollup, "Pss_Anon:")? + field(&rollup, "Pss_Shmem:")?)
    };
    processes.iter().filter_map(|it| share(it).or_else(|| resident(it))).sum::<u64>() * KIB
}

/// What processes hold by what they have open.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Bytes on disk, of files that are deleted.
    pub(super) deleted: u64,
    /// Bytes of memory that can wait in their sockets.
    pub(super) waiting: u64,
}

/// What these hold by what they have open: of files those that are deleted and lie on the same disk
/// as a path. Processes share it.
pub(super) fn open(processes: &[Pid], near: &Path) -> Open {
    let disk = fs::metadata(near).map(|it| it.dev()).ok();
    let open = processes.iter().filter_map(|it| fs::read_dir(own(*it).join("fd")).ok());
    let (mut deleted, mut sockets) = (BTreeMap::new(), BTreeSet::new());
    // Following the link leads to the file, also where its name does not.
    for it in open.flatten().flatten().filter_map(|it| fs::metadata(it.path()).ok()) {
        if it.is_file() && it.nlink() == 0 && Some(it.dev()) == disk {
            deleted.insert(it.ino(), it.blocks() * 512);
        } else if it.file_type().is_socket() {
            sockets.insert(it.ino());
        }
    }
    let waiting = if sockets.is_empty() { 0 } else { sockets.len() as u64 * socket() };
    Open { deleted: deleted.values().sum(), waiting }
}

/// How many bytes can wait in a socket, unless somebody has asked for more.
fn socket() -> u64 {
    const USUAL: u64 = 212_992;
    let text = fs::read_to_string("/proc/sys/net/core/wmem_default").ok();
    text.and_then(|it| it.trim().parse().ok()).unwrap_or(USUAL)
}

/// Sends a signal to all of these; one that has ended meanwhile does not mind.
pub(super) fn signal(processes: &[Pid], signal: Signal) {
    for pid in processes {
        let _ = kill_process(*pid, signal);
    }
}

const KIB: u64 = 1024;

fn children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(own(pid).join("task")) else { return Vec::new() };
    let mut all = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(text) => all.extend(text.split_whitespace().filter_map(parse)),
            Err(_) if !Path::new("/proc/thread-self/children").exists() => return scan(pid),
            Err(_) => {}
        }
    }
    all
}

/// The children of a process, for kernels that have no list of them.
fn scan(parent: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|it| parse(it.file_name().to_str()?));
    let parent = u64::from(parent.as_raw_nonzero().get().unsigned_abs());
    pids.filter(|pid| status(*pid).and_then(|it| field(&it, "PPid:")) == Some(parent)).collect()
}

fn parse(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

fn own(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()))
}

fn status(pid: Pid) -> Option<String> {
    fs::read_to_string(own(pid).join("status")).ok()
}

/// A figure of such a file, without its unit.
fn field(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|it| it.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
