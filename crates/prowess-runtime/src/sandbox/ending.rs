//! From how a run ended to what its outcome says.

use std::time::Duration;

use super::{
    order::{Ended, Exit, Stop},
    streams::Streams,
};
use crate::{
    limits::RunLimits,
    outcome::{CapturedOutput, Outcome, OutcomeStatus, SandboxLevel},
};

/// What came of a run.
pub(super) fn outcome(ended: Ended, limits: &RunLimits, streams: Streams) -> Outcome {
    let (stdout, stderr) = (streams.stdout.finish(), streams.stderr.finish());
    let (exit_code, signal) = match ended.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    let (status, message) = match (ended.stopped, ended.exit) {
        (Some(stop), _) => stopped(stop, limits),
        (None, Exit::Code(0)) => (OutcomeStatus::Ok, None),
        (None, Exit::Code(code)) => (OutcomeStatus::Failed, Some(format!("it exited with {code}"))),
        (None, Exit::Signal(signal)) => (OutcomeStatus::Killed, Some(signalled(signal, limits))),
    };
    let hint = (ended.level == SandboxLevel::Landlock
        && status == OutcomeStatus::Failed
        && shares(&stderr))
    .then(|| SHARED.to_owned());
    let mut denied = ended.denied;
    // What a program is refused without a sandbox, others have refused it.
    if ended.level != SandboxLevel::None {
        denied.extend(probable(&stderr));
    }
    Outcome {
        message,
        hint,
        exit_code,
        signal,
        stdout: Some(stdout),
        stderr: Some(stderr),
        sandbox: Some(ended.level),
        denied,
        ..Outcome::new(status)
    }
}

fn stopped(stop: Stop, limits: &RunLimits) -> (OutcomeStatus, Option<String>) {
    let (status, message) = match stop {
        Stop::Unwanted => (OutcomeStatus::Cancelled, "nobody waited for it any more".to_owned()),
        Stop::Time => {
            (OutcomeStatus::TimedOut, format!("it took longer than {}", seconds(limits.timeout)))
        }
        Stop::Idle => {
            let idle = seconds(limits.idle.unwrap_or_default());
            (OutcomeStatus::TimedOut, format!("it printed nothing for {idle}"))
        }
        Stop::Memory => {
            (OutcomeStatus::Killed, format!("it took more than {} of memory", bytes(limits.memory)))
        }
        Stop::Work => {
            (OutcomeStatus::Killed, format!("it wrote more than {} of files", bytes(limits.work)))
        }
        Stop::Processes => {
            (OutcomeStatus::Killed, format!("it had more than {} processes", limits.processes))
        }
        Stop::Hidden => (
            OutcomeStatus::Killed,
            "its memory and files could not be counted: it ran a program that it may not read"
                .to_owned(),
        ),
    };
    (status, Some(message))
}

/// What a signal says about limits.
fn signalled(signal: i32, limits: &RunLimits) -> String {
    match signal {
        libc::SIGXCPU => format!("it took more than {} of a processor", seconds(limits.cpu)),
        libc::SIGXFSZ => format!("it wrote a file of more than {}", bytes(limits.file)),
        signal => format!("signal {signal} ended it"),
    }
}

/// What is missing without namespaces, and some programs need.
const SHARED: &str = "shared memory and named semaphores, as `multiprocessing` of Python uses them, are \
                      there at the level *strong* alone; `prowess sandbox` shows what that needs";

/// Whether a program says that it wanted shared memory.
fn shares(stderr: &CapturedOutput) -> bool {
    ["SemLock", "/dev/shm", "shm_open", "sem_open"].iter().any(|it| stderr.text.contains(it))
}

/// What programs print when the sandbox has refused them something that nobody hears of otherwise.
fn probable(stderr: &CapturedOutput) -> Vec<String> {
    const PHRASES: [(&str, &str); 3] = [
        ("Read-only file system", "writing outside of the work directory"),
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
