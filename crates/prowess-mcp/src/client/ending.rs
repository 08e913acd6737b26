//! Explains why a server does not answer.

use std::{sync::Arc, time::Duration};

use prowess_runtime::{Outcome, OutcomeStatus};
use prowess_sandbox::ProgramEnd;
use tokio::time::timeout;

use super::{cause::Circumstances, failure::Failure};

/// The maximum time until the end of a server is known.
const SOON: Duration = Duration::from_secs(2);

/// The program of a server: its end, and its permissions.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) ending: ProgramEnd,
    pub(super) given: Arc<Circumstances>,
}

/// Returns the outcome for a server that does not answer as expected.
pub(super) async fn explained(
    server: &str,
    failure: Failure,
    process: Option<&Process>,
) -> Outcome {
    let why = match failure {
        Failure::Gone => {
            let ended = async { timeout(SOON, process?.ending.result()).await.ok() };
            match (ended.await, process) {
                (Some(ended), Some(process)) => {
                    return process.given.explain(told(server, ended.into()));
                }
                _ => "does not listen any more".to_owned(),
            }
        }
        Failure::Trouble(trouble) => return trouble.outcome(server),
        Failure::Flood => "sends too much".to_owned(),
        Failure::Said(message) => format!("says: {message}"),
        Failure::Nonsense(message) => format!("does not speak MCP: {message}"),
    };
    Outcome::bad(OutcomeStatus::Failed, format!("the server `{server}` {why}"))
}

/// Describes how a server ended.
fn told(server: &str, ended: Outcome) -> Outcome {
    let how = ended.message.as_deref().unwrap_or("exited with code 0");
    let status = if ended.is_ok() { OutcomeStatus::Failed } else { ended.status };
    let message = format!("the server `{server}` has ended: {how}");
    Outcome { status, message: Some(message), files: Vec::new(), stdout: None, ..ended }
}
