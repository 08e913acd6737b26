//! Converts the end of a run to its result.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    level::SandboxLevel,
    limits::RunLimits,
    output::CapturedText,
    result::{RunResult, RunStatus},
    streams::Streams,
};

/// The end of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub(crate) level: SandboxLevel,
    pub(crate) exit: Exit,
    pub(crate) stopped: Option<StopCause>,
    /// The refused actions, each once.
    pub(crate) denied: Vec<String>,
}

/// The exit status of a process.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// The reason a run was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StopCause {
    Cancelled,
    Time,
    Idle,
    Memory,
    Work,
    Processes,
    /// It cannot be inspected, so nothing can be counted.
    Hidden,
}

/// Returns the result of a run, without its files and connections.
pub(crate) fn result(
    ended: Ending,
    limits: &RunLimits,
    streams: Streams,
    duration: Duration,
) -> RunResult {
    let (stdout, stderr) = (streams.stdout.finish(), streams.stderr.finish());
    let (exit_code, signal) = match ended.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    let (status, message) = match (ended.stopped, ended.exit) {
        (Some(stop), _) => stop_status(stop, limits),
        (None, Exit::Code(0)) => (RunStatus::Ok, None),
        (None, Exit::Code(code)) => (RunStatus::Failed, Some(format!("exited with code {code}"))),
        (None, Exit::Signal(signal)) => (RunStatus::Killed, Some(describe_signal(signal, limits))),
    };
    let mut denied = ended.denied;
    // Without a sandbox, refusals come from elsewhere.
    if ended.level != SandboxLevel::None {
        denied.extend(probable_refusals(&stderr));
    }
    RunResult {
        status,
        message,
        exit_code,
        signal,
        stdout,
        stderr,
        files: Vec::new(),
        duration,
        level: ended.level,
        unenforced_limits: Vec::new(),
        denied,
        connections: Vec::new(),
        connections_omitted: 0,
    }
}

fn stop_status(stop: StopCause, limits: &RunLimits) -> (RunStatus, Option<String>) {
    let (status, message) = match stop {
        StopCause::Cancelled => (RunStatus::Cancelled, "cancelled".to_owned()),
        StopCause::Time => {
            (RunStatus::TimedOut, format!("timed out after {}", seconds(limits.timeout)))
        }
        StopCause::Idle => {
            let idle = seconds(limits.idle.unwrap_or_default());
            (RunStatus::TimedOut, format!("no output for {idle}"))
        }
        StopCause::Memory => {
            (RunStatus::Killed, format!("used more than {} of memory", bytes(limits.memory)))
        }
        StopCause::Work => {
            (RunStatus::Killed, format!("wrote more than {} of files", bytes(limits.work)))
        }
        StopCause::Processes => {
            (RunStatus::Killed, format!("started more than {} processes", limits.processes))
        }
        StopCause::Hidden => (
            RunStatus::Killed,
            "memory and files could not be measured, because it ran a program that it cannot read"
                .to_owned(),
        ),
    };
    (status, Some(message))
}

/// The signals that tell of a limit; they have these numbers on all systems that have them.
const XCPU: i32 = 24;
const XFSZ: i32 = 25;

/// Describes the limit that a signal indicates, else the signal.
fn describe_signal(signal: i32, limits: &RunLimits) -> String {
    match signal {
        XCPU => format!("used more than {} of CPU time", seconds(limits.cpu)),
        XFSZ => format!("wrote a file larger than {}", bytes(limits.file)),
        signal => format!("killed by signal {signal}"),
    }
}

/// Finds messages that programs print when the sandbox refused something that is not reported
/// otherwise.
fn probable_refusals(stderr: &CapturedText) -> Vec<String> {
    const PHRASES: [(&str, &str); 3] = [
        ("Read-only file system", "writing outside the work directory"),
        ("Permission denied", "access to a file that it was not given"),
        ("File size limit exceeded", "writing a file over the size limit"),
    ];
    let found = PHRASES.iter().filter(|it| stderr.text.contains(it.0));
    found.map(|(phrase, what)| format!("probably: {what} ({phrase})")).collect()
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

fn bytes(number: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    if number > 0 && number.is_multiple_of(MIB) {
        format!("{} MiB", number / MIB)
    } else {
        format!("{number} bytes")
    }
}
