//! The descendants of a process.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, Uid, WaitOptions, kill_process},
};

/// The maximum number of processes: more than a machine has, because processes that have ended but
/// were not reaped are among those to be killed.
const MAX_PROCESSES: u64 = 1 << 22;

/// Returns the current descendants of a process; about `most` if there are more, because they may
/// grow faster than they can be listed.
pub(crate) fn descendants(root: Pid, most: u64) -> Vec<Pid> {
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

/// Returns the process groups of these.
pub(crate) fn process_groups(processes: &[Pid]) -> Vec<Pid> {
    let mut groups: Vec<Pid> =
        processes.iter().filter_map(|it| rustix::process::getpgid(Some(*it)).ok()).collect();
    groups.sort_by_key(|it| it.as_raw_nonzero());
    groups.dedup();
    groups
}

/// Kills the current descendants of a process. Whole groups are killed, because a group cannot grow
/// meanwhile by forking.
pub(crate) fn kill_descendants_of(root: Pid) {
    let own = rustix::process::getpgrp();
    let processes = descendants(root, MAX_PROCESSES);
    for group in process_groups(&processes).into_iter().filter(|it| *it != own) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    // A process that has just started is still in our own group.
    signal(&processes, Signal::KILL);
}

/// Kills all descendants of this process, and waits until they have ended. No new group is created
/// meanwhile, because such calls are no longer answered.
pub(crate) fn kill_descendants() {
    loop {
        kill_descendants_of(rustix::process::getpid());
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

/// Returns the number of processes and threads of these.
pub(crate) fn count_tasks(processes: &[Pid]) -> u64 {
    processes.iter().filter_map(|pid: &Pid| number_field(&status(&folder(*pid))?, "Threads:")).sum()
}

/// Returns the number of processes and threads of a user.
pub(crate) fn count_tasks_of(user: Uid) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let tasks = processes.filter_map(|it| fs::metadata(it.path().join("task")).ok());
    // A folder has two links more than subfolders.
    let own = tasks.filter(|it| it.uid() == user.as_raw()).map(|it| it.nlink().saturating_sub(2));
    own.sum()
}

/// Sends a signal to all of these; those that have ended meanwhile are ignored.
pub(crate) fn signal(processes: &[Pid], signal: Signal) {
    for pid in processes {
        let _ = kill_process(*pid, signal);
    }
}

fn children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(folder(pid).join("task")) else { return Vec::new() };
    let mut all = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(text) => all.extend(text.split_whitespace().filter_map(parse_pid)),
            Err(_) if !Path::new("/proc/thread-self/children").exists() => {
                return scan_children(pid);
            }
            Err(_) => {}
        }
    }
    all
}

/// Finds the children of a process, for kernels that have no list of them.
fn scan_children(parent: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|it| parse_pid(it.file_name().to_str()?));
    let parent = u64::from(parent.as_raw_nonzero().get().unsigned_abs());
    pids.filter(|pid| {
        status(&folder(*pid)).and_then(|it| number_field(&it, "PPid:")) == Some(parent)
    })
    .collect()
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

/// Returns the `/proc` folder of a process.
pub(crate) fn folder(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()))
}

/// Reads the `status` file of a process or thread.
pub(crate) fn status(place: &Path) -> Option<String> {
    fs::read_to_string(place.join("status")).ok()
}

/// Returns a number from such a file, without its unit.
pub(crate) fn number_field(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|it| it.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
