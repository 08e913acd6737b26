//! Why a server gives no answer, for whoever asked.

use std::{sync::Arc, time::Duration};

use prowess_runtime::{Outcome, OutcomeStatus};
use prowess_sandbox::ProgramEnd;
use tokio::time::timeout;

use super::{cause::Circumstances, failure::Failure};

/// How long it may take until it is known how a server ended.
const SOON: Duration = Duration::from_secs(2);

/// The program of a server: how it ended, and what it was given.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) ending: ProgramEnd,
    pub(super) given: Arc<Circumstances>,
}

/// What came of asking a server that does not answer as it should.
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

/// How a server ended, in words.
fn told(server: &str, ended: Outcome) -> Outcome {
    let how = ended.message.as_deref().unwrap_or("exited with code 0");
    let status = if ended.is_ok() { OutcomeStatus::Failed } else { ended.status };
    let message = format!("the server `{server}` has ended: {how}");
    Outcome { status, message: Some(message), files: Vec::new(), stdout: None, ..ended }
}
