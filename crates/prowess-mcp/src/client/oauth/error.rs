//! Errors of logins.

use std::{error::Error, io, path::PathBuf};

use prowess_http::HttpError as WireError;
use prowess_runtime::{Outcome, OutcomeStatus};

/// A login failed, or is no longer valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The server is a program.
    #[error("it is a program, which needs no login")]
    Program,
    /// Its settings have an `authorization` header.
    #[error("its settings have an `authorization` header, which is sent instead")]
    Header,
    /// There is no directory for tokens.
    #[error("there is no home directory to save a login in")]
    Homeless,
    /// A token would be sent unencrypted.
    #[error("{what} is not `https:`, so others could read the token")]
    Insecure {
        /// The purpose of the URL.
        what: &'static str,
    },
    /// The server does not require a login.
    #[error("it answers without a login, and offers no login")]
    NotNeeded,
    /// The server requires something else than OAuth.
    #[error("it offers no login by OAuth")]
    NotOffered,
    /// A request failed.
    #[error("cannot request {what}")]
    Wire {
        /// The requested document.
        what: &'static str,
        /// The error.
        #[source]
        source: WireError,
    },
    /// An answer has an unexpected status.
    #[error("the answer to the request for {what} has the status {status}")]
    Answer {
        /// The requested document.
        what: &'static str,
        /// The status.
        status: u16,
    },
    /// An answer is malformed.
    #[error("{what} cannot be used: {why}")]
    Malformed {
        /// The requested document.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// A server names another resource for its tokens.
    #[error("its metadata describe another server: `{resource}`")]
    OtherResource {
        /// The other resource.
        resource: String,
    },
    /// An answer names another authorization server.
    #[error("expected an answer of the authorization server `{wanted}`, not of `{found}`")]
    OtherIssuer {
        /// The expected authorization server.
        wanted: String,
        /// The one in the answer.
        found: String,
    },
    /// The server names an authorization server that its settings do not allow.
    #[error("its settings allow only the authorization server `{wanted}`, but it names `{found}`")]
    UnlistedIssuer {
        /// The one in the settings.
        wanted: String,
        /// The one that it names.
        found: String,
    },
    /// The answer lacks the issuer, although the authorization server declares to send it.
    #[error("the answer does not say which authorization server it is from (`iss`)")]
    NoIssuer,
    /// The authorization server does not support PKCE, so a code could be stolen.
    #[error("the authorization server `{issuer}` does not offer PKCE with S256")]
    NoPkce {
        /// Its issuer.
        issuer: String,
    },
    /// The authorization server does not support dynamic registration.
    #[error("the authorization server `{issuer}` does not let clients register themselves")]
    NoRegistration {
        /// Its issuer.
        issuer: String,
    },
    /// The authorization server does not support the device flow.
    #[error("the authorization server `{issuer}` offers no login by device code")]
    NoDeviceFlow {
        /// Its issuer.
        issuer: String,
    },
    /// The authorization server only supports the device flow.
    #[error("the authorization server `{issuer}` offers no login in a browser")]
    NoBrowserFlow {
        /// Its issuer.
        issuer: String,
    },
    /// The authorization server refused.
    #[error("the authorization server says: {error}")]
    Denied {
        /// Its error code and description, sanitized.
        error: String,
        /// Whether a previously valid login is no longer valid.
        is_over: bool,
    },
    /// The login was not completed in time.
    #[error("nobody logged in within {minutes} minutes")]
    TooLate {
        /// The waiting time.
        minutes: u64,
    },
    /// The server does not accept the token that was just issued for it.
    #[error("it rejects the new token with the status {status}")]
    TokenRefused {
        /// The status of its answer.
        status: u16,
    },
    /// The listener for the redirect could not be started.
    #[error("cannot listen for the answer of the browser at `{address}`")]
    Listen {
        /// Its address.
        address: String,
        /// The error.
        source: io::Error,
    },
    /// The program is shutting down.
    #[error("interrupted")]
    Interrupted,
    /// No random bytes are available.
    #[error("the system has no random bytes")]
    Random(#[source] io::Error),
    /// The file of the tokens cannot be used.
    #[error("the saved login `{}` cannot be used: {why}", path.display())]
    Storage {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl LoginError {
    /// Returns a hint on how to fix it.
    pub fn hint(&self, label: &str) -> Option<String> {
        Some(match self {
            Self::NotOffered => {
                "set an `authorization` in its `headers`, with a variable in it".into()
            }
            Self::Wire { source: WireError::Refused { .. }, .. } => {
                "add the authorization server to `policy.hosts`".into()
            }
            Self::UnlistedIssuer { .. } => {
                "if that is right, change `issuer` in its `oauth` settings".into()
            }
            Self::NoRegistration { .. } => format!(
                "register a client there, with the redirect URI `http://127.0.0.1:8912/callback`, and set `client_id` and `redirect_uri` in `[servers.{label}.oauth]`"
            ),
            Self::NoDeviceFlow { .. } => {
                format!("leave out `--device`: `prowess servers login {label}`")
            }
            Self::NoBrowserFlow { .. } => format!("use `prowess servers login {label} --device`"),
            Self::TooLate { .. } => format!("run `prowess servers login {label}` again"),
            Self::Denied { error, .. } if error.starts_with("invalid_redirect_uri") => format!(
                "set a `redirect_uri` that it accepts in `[servers.{label}.oauth]`, such as `http://localhost:8912/callback`"
            ),
            Self::Storage { .. } => format!("`prowess servers logout {label}` removes it"),
            _ => return None,
        })
    }

    /// Returns the message with its root cause.
    pub(in crate::client) fn message_with_cause(&self) -> String {
        let mut deepest: Option<&dyn Error> = self.source();
        while let Some(source) = deepest.and_then(Error::source) {
            deepest = Some(source);
        }
        deepest.map_or_else(|| self.to_string(), |it| format!("{self}: {it}"))
    }

    /// Converts it to the outcome of a login.
    pub(in crate::client) fn outcome(&self, label: &str) -> Box<Outcome> {
        let status = match self {
            Self::Program | Self::Header | Self::NotNeeded | Self::Insecure { .. } => {
                OutcomeStatus::Invalid
            }
            Self::Wire { source: WireError::Refused { .. }, .. } => OutcomeStatus::Refused,
            Self::TooLate { .. } => OutcomeStatus::TimedOut,
            _ => OutcomeStatus::Failed,
        };
        let message =
            format!("cannot log in to the server `{label}`: {}", self.message_with_cause());
        let mut outcome = Outcome::bad(status, message);
        outcome.hint = self.hint(label);
        Box::new(outcome)
    }
}
