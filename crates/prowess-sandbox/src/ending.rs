//! Converts the end of a run to its result.

use std::time::Duration;

use crate::{
    level::SandboxLevel,
    limits::RunLimits,
    order::{Exit, RunEnd, StopCause},
    output::CapturedText,
    result::{RunResult, RunStatus},
    streams::Streams,
};

/// Returns the result of a run, without its files and connections.
pub(crate) fn result(
    ended: RunEnd,
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
        (Some(stop), _) => stopped(stop, limits),
        (None, Exit::Code(0)) => (RunStatus::Ok, None),
        (None, Exit::Code(code)) => (RunStatus::Failed, Some(format!("exited with code {code}"))),
        (None, Exit::Signal(signal)) => (RunStatus::Killed, Some(signalled(signal, limits))),
    };
    let mut denied = ended.denied;
    // Without a sandbox, refusals come from elsewhere.
    if ended.level != SandboxLevel::None {
        denied.extend(probable(&stderr));
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
        denied,
        connections: Vec::new(),
        connections_omitted: 0,
    }
}

fn stopped(stop: StopCause, limits: &RunLimits) -> (RunStatus, Option<String>) {
    let (status, message) = match stop {
        StopCause::Unwanted => (RunStatus::Cancelled, "it was cancelled".to_owned()),
        StopCause::Time => {
            (RunStatus::TimedOut, format!("it took longer than {}", seconds(limits.timeout)))
        }
        StopCause::Idle => {
            let idle = seconds(limits.idle.unwrap_or_default());
            (RunStatus::TimedOut, format!("it printed nothing for {idle}"))
        }
        StopCause::Memory => {
            (RunStatus::Killed, format!("it used more than {} of memory", bytes(limits.memory)))
        }
        StopCause::Work => {
            (RunStatus::Killed, format!("it wrote more than {} of files", bytes(limits.work)))
        }
        StopCause::Processes => {
            (RunStatus::Killed, format!("it started more than {} processes", limits.processes))
        }
        StopCause::Hidden => (
            RunStatus::Killed,
            "its memory and files could not be counted: it ran a program that it may not read"
                .to_owned(),
        ),
    };
    (status, Some(message))
}

/// Describes the limit that a signal indicates, else the signal.
fn signalled(signal: i32, limits: &RunLimits) -> String {
    match signal {
        libc::SIGXCPU => format!("it used more than {} of processor time", seconds(limits.cpu)),
        libc::SIGXFSZ => format!("it wrote a file of more than {}", bytes(limits.file)),
        signal => format!("killed by signal {signal}"),
    }
}

/// Finds messages that programs print when the sandbox refused something that is not reported
/// otherwise.
fn probable(stderr: &CapturedText) -> Vec<String> {
    const PHRASES: [(&str, &str); 3] = [
        ("Read-only file system", "writing outside the work directory"),
        ("Permission denied", "a file that was not given"),
        ("File size limit exceeded", "a file over its limit"),
    ];
    let said = PHRASES.iter().filter(|it| stderr.text.contains(it.0));
    said.map(|(phrase, what)| format!("probably: {what} ({phrase})")).collect()
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
