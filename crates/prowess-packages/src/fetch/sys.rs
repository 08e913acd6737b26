//! Differences between systems when a process has children.

use tokio::process::Command;

/// Makes a process the leader of a group, so that its children can be ended with it.
#[cfg(unix)]
pub(super) fn lead_group(command: &mut Command) {
    command.process_group(0);
}

#[cfg(not(unix))]
pub(super) fn lead_group(_: &mut Command) {}

/// Ends the processes of a group.
#[cfg(unix)]
pub(super) fn kill_group(leader: u32) {
    let leader = i32::try_from(leader).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(leader) = leader {
        let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
pub(super) fn kill_group(_: u32) {}
