//! Refusals to start a server, with hints.

use prowess_runtime::{Outcome, OutcomeStatus};

use crate::config::McpServerConfig;

/// Creates a refusal with a hint.
pub(super) fn refusal(message: impl Into<String>, hint: impl Into<String>) -> Box<Outcome> {
    Box::new(Outcome::bad(OutcomeStatus::Refused, message).hint(hint))
}

/// Refuses to start a server whose command cannot be run here.
pub(super) fn refuse(description: &McpServerConfig, why: &str) -> Box<Outcome> {
    let message = format!("the server `{}` is not started: {why}", description.name);
    let hint = "install the server, and set `command` to its program, by name or by path";
    refusal(message, hint)
}

/// Refuses to start a server because of an error.
pub(super) fn refuse_for_error(
    description: &McpServerConfig,
    error: &dyn std::error::Error,
) -> Box<Outcome> {
    let why = Outcome::error(OutcomeStatus::Refused, error).message.unwrap_or_default();
    refuse(description, &why)
}

/// Rejects the `read` or `write` of an entry.
pub(super) fn reject_paths(description: &McpServerConfig, why: &str) -> Box<Outcome> {
    let message = format!("the server `{}` is not started: {why}", description.name);
    let hint = "list what it needs in `read` and `write` of your own settings";
    Box::new(Outcome::bad(OutcomeStatus::Invalid, message).hint(hint))
}

/// Refuses a program that is not installed.
pub(super) fn refuse_missing(description: &McpServerConfig, command: &str) -> Box<Outcome> {
    let name = &description.name;
    let message = format!("the server `{name}` is not started: there is no program `{command}`");
    let hint = "install it, or use its absolute path; it is searched for on `PATH` and in the active virtual environment";
    refusal(message, hint)
}

/// Refuses an entry that asks for a variable which is not passed on.
pub(super) fn refuse_unknown_variable(description: &McpServerConfig, name: &str) -> Box<Outcome> {
    let message = format!(
        "the server `{}` is not started: it refers to the variable `{name}`, which is not passed on",
        description.name
    );
    let hint = "list it in `policy.environment`, or pass it on with `--env`";
    refusal(message, hint)
}
