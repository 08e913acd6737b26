//! Explains why a server does not answer.

use std::{sync::Arc, time::Duration};

use prowess_runtime::{Outcome, OutcomeStatus, text::one_line};
use prowess_sandbox::ProgramEnd;
use tokio::time::timeout;

use super::{
    cause::{ServerPermissions, shorten, without_sequences},
    failure::Failure,
    monitor::TrafficMonitor,
};

/// The maximum number of shown characters of a line.
const LENGTH: usize = 100;
/// The maximum time until the end of a server is known.
const SOON: Duration = Duration::from_secs(2);

/// The program of a server: its end, and its permissions.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) ending: ProgramEnd,
    pub(super) permissions: Arc<ServerPermissions>,
    pub(super) monitor: Arc<TrafficMonitor>,
}

impl Process {
    /// Adds the last output of the server to an outcome, with a hint.
    pub(super) fn explain(&self, outcome: Outcome) -> Outcome {
        self.permissions.explain(match self.monitor.take_foreign_line() {
            Some(line) => not_json_rpc(&line, outcome),
            None => outcome,
        })
    }
}

/// Adds to an outcome that the output of a server is not JSON-RPC, with the first line of it.
fn not_json_rpc(line: &str, mut outcome: Outcome) -> Outcome {
    let line = one_line(&without_sequences(line)).replace('`', "'");
    let line = shorten(&line, LENGTH);
    let before = outcome.message.as_deref().unwrap_or_default();
    let message = format!("{before}; its output is not JSON-RPC, and begins with `{line}`");
    let hint = "an MCP server may only write messages to standard output; logs belong to standard error, and some servers need an argument such as `stdio`";
    outcome.message = Some(message);
    outcome.hint(hint)
}

/// Returns the outcome for a server that does not answer as expected.
pub(super) async fn explain_failure(
    server: &str,
    failure: Failure,
    process: Option<&Process>,
) -> Outcome {
    let why = match failure {
        Failure::Gone => {
            let ended = async { timeout(SOON, process?.ending.result()).await.ok() };
            match (ended.await, process) {
                (Some(ended), Some(process)) => {
                    return process.explain(describe_end(server, ended.into()));
                }
                _ => "has stopped reading requests".to_owned(),
            }
        }
        Failure::Connection(trouble) => return trouble.outcome(server),
        Failure::Flood => "sends too much".to_owned(),
        Failure::Error(message) => format!("says: {message}"),
        Failure::NotMcp(message) => format!("does not speak MCP: {message}"),
    };
    Outcome::bad(OutcomeStatus::Failed, format!("the server `{server}` {why}"))
}

/// Describes how a server ended.
fn describe_end(server: &str, mut ended: Outcome) -> Outcome {
    let how = ended.message.as_deref().unwrap_or("exited with code 0");
    ended.message = Some(format!("the server `{server}` has ended: {how}"));
    if ended.is_ok() {
        ended.status = OutcomeStatus::Failed;
    }
    ended.files.clear();
    ended.stdout = None;
    ended
}
