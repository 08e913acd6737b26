//! Refusals to start a server, with hints.

use prowess_runtime::{Outcome, OutcomeStatus};

use crate::config::McpServerConfig;

/// Creates a refusal with a hint.
pub(super) fn refusal(message: impl Into<String>, hint: impl Into<String>) -> Box<Outcome> {
    Box::new(Outcome::bad(OutcomeStatus::Refused, message).hint(hint))
}

/// Refuses to start a server whose command cannot be run here.
pub(super) fn refused(description: &McpServerConfig, why: &str) -> Box<Outcome> {
    let message = format!("the server `{}` is not started: {why}", description.name);
    let hint = "install the server and name its program by `command`: by its name, or by its path in its skill or elsewhere";
    refusal(message, hint)
}

/// Rejects the `read` or `write` of an entry.
pub(super) fn invalid(description: &McpServerConfig, why: &str) -> Box<Outcome> {
    let message = format!("the server `{}` is not started: {why}", description.name);
    let hint =
        "name what it needs by `read` and `write`: in your own settings, that is given whole";
    Box::new(Outcome::bad(OutcomeStatus::Invalid, message).hint(hint))
}

/// Refuses a program that is not installed.
pub(super) fn missing(description: &McpServerConfig, command: &str) -> Box<Outcome> {
    let name = &description.name;
    let message = format!("the server `{name}` is not started: there is no program `{command}`");
    let hint = "install it, or write its whole path: it is looked for on your `PATH`, and in the active virtual environment";
    refusal(message, hint)
}

/// Refuses an entry that asks for a variable which is not passed on.
pub(super) fn unknown(description: &McpServerConfig, name: &str) -> Box<Outcome> {
    let message = format!(
        "the server `{}` is not started: it asks for the variable `{name}`, which it is not given",
        description.name
    );
    let hint =
        "`policy.environment` lists the variables that may be passed on, `--env` passes one on";
    refusal(message, hint)
}
