//! Why a server gives no answer, for whoever asked.

use std::time::Duration;

use tokio::time::timeout;

use super::client::Failure;
use crate::{
    outcome::{Outcome, Status},
    sandbox::Ending,
};

/// How long it may take until it is known how a server ended.
const SOON: Duration = Duration::from_secs(2);

/// What to know about a server that does not begin, or ends.
pub(super) const NO_NETWORK: &str =
    "a server has no network, no files but its skill's and the system's, and a few variables";

/// What came of asking a server that does not answer as it should.
pub(super) async fn explained(server: &str, failure: Failure, ending: Option<&Ending>) -> Outcome {
    let why = match failure {
        Failure::Gone => {
            let ended = async { timeout(SOON, ending?.outcome()).await.ok() };
            match ended.await {
                Some(ended) => return told(server, ended),
                None => "does not listen any more".to_owned(),
            }
        }
        Failure::Trouble(trouble) => return trouble.outcome(server),
        Failure::Flood => "says more than anybody wants to hear".to_owned(),
        Failure::Said(message) => format!("says: {message}"),
        Failure::Nonsense(message) => format!("does not speak MCP: {message}"),
    };
    Outcome::bad(Status::Failed, format!("the server `{server}` {why}"))
}

/// How a server ended, in words.
fn told(server: &str, ended: Outcome) -> Outcome {
    let how = ended.message.as_deref().unwrap_or("it exited with 0");
    let status = if ended.is_ok() { Status::Failed } else { ended.status };
    let message = format!("the server `{server}` has ended: {how}");
    let hint = ended.hint.clone().unwrap_or_else(|| NO_NETWORK.to_owned());
    Outcome {
        status,
        message: Some(message),
        hint: Some(hint),
        files: Vec::new(),
        stdout: None,
        ..ended
    }
}
