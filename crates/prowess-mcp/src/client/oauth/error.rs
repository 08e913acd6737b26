//! Why a login fails.

use std::{error::Error, io, path::PathBuf};

use prowess_http::HttpError as WireError;
use prowess_runtime::{Outcome, OutcomeStatus};

/// Nobody is logged in to a server, or not any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The server is a program.
    #[error("it is a program, and there is no login to one")]
    Program,
    /// Its settings have an `authorization` header.
    #[error("its settings have an `authorization` header, which is sent instead")]
    Header,
    /// There is no place for tokens.
    #[error("there is no home directory in which a login could be kept")]
    Homeless,
    /// A token would travel in the clear.
    #[error("{what} is not `https:`, so that others could read the token")]
    Insecure {
        /// What has this URL.
        what: &'static str,
    },
    /// The server asks for no login.
    #[error("it answers without a login, and offers none")]
    NotNeeded,
    /// The server wants something else than OAuth.
    #[error("it offers no login by OAuth")]
    NotOffered,
    /// Somebody cannot be asked.
    #[error("cannot ask for {what}")]
    Wire {
        /// What was asked for.
        what: &'static str,
        /// Why.
        #[source]
        source: WireError,
    },
    /// An answer has a status that it should not have.
    #[error("the answer to the request for {what} has the status {status}")]
    Answer {
        /// What was asked for.
        what: &'static str,
        /// The status.
        status: u16,
    },
    /// An answer is not what it should be.
    #[error("{what} cannot be used: {why}")]
    Malformed {
        /// What was asked for.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A server says that tokens for it are those for another one.
    #[error("its metadata describe another server: `{resource}`")]
    OtherResource {
        /// The other one.
        resource: String,
    },
    /// Somebody answers in the name of another authorization server.
    #[error("expected an answer of the authorization server `{wanted}`, not of `{found}`")]
    OtherIssuer {
        /// Who was asked, or is the only one that may be.
        wanted: String,
        /// Who answered.
        found: String,
    },
    /// The server names an authorization server that its settings do not allow.
    #[error("its settings allow the authorization server `{wanted}` alone, and it names `{found}`")]
    UnlistedIssuer {
        /// The one that is set.
        wanted: String,
        /// The one that it names.
        found: String,
    },
    /// The authorization server does not say who answers, although it said that it would.
    #[error("the answer does not say which authorization server it is from (`iss`)")]
    NoIssuer,
    /// A code could be stolen.
    #[error("the authorization server `{issuer}` does not offer PKCE with S256")]
    NoPkce {
        /// Who.
        issuer: String,
    },
    /// Nobody can register here.
    #[error("the authorization server `{issuer}` does not let clients register themselves")]
    NoRegistration {
        /// Who.
        issuer: String,
    },
    /// There is no device flow.
    #[error("the authorization server `{issuer}` offers no login by device code")]
    NoDeviceFlow {
        /// Who.
        issuer: String,
    },
    /// There is only the device flow.
    #[error("the authorization server `{issuer}` offers no login in a browser")]
    NoBrowserFlow {
        /// Who.
        issuer: String,
    },
    /// The authorization server says no.
    #[error("the authorization server says: {error}")]
    Denied {
        /// Its error code, and what it says about it, made safe to show.
        error: String,
        /// Whether a login that was good once is not any more.
        is_over: bool,
    },
    /// Nobody came back in time.
    #[error("nobody has logged in within {minutes} minutes")]
    TooLate {
        /// How long was waited.
        minutes: u64,
    },
    /// The server does not take the token that was just given out for it.
    #[error("it refuses the new token with the status {status}")]
    TokenRefused {
        /// What it answered with.
        status: u16,
    },
    /// Nobody can come back.
    #[error("cannot listen for the answer of the browser at `{address}`")]
    Listen {
        /// Where.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The program is about to end.
    #[error("interrupted")]
    Interrupted,
    /// There are no random bytes.
    #[error("the system gives no random bytes")]
    Random(#[source] io::Error),
    /// The file of the tokens cannot be used.
    #[error("the login kept in `{}` cannot be used: {why}", path.display())]
    Storage {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl LoginError {
    /// What to do about it.
    pub fn hint(&self, label: &str) -> Option<String> {
        Some(match self {
            Self::NotOffered => {
                "`headers` in its settings can have an `authorization`, with a variable in it".into()
            }
            Self::Wire { source: WireError::Refused { .. }, .. } => {
                "`policy.hosts` lists the hosts that may be asked; the authorization server has to be among them".into()
            }
            Self::UnlistedIssuer { .. } => {
                "if that is right, change `issuer` in its `oauth` settings".into()
            }
            Self::NoRegistration { .. } => format!(
                "register a client there, with the redirect URI `http://127.0.0.1:8912/callback`, and set `client_id` and `redirect_uri` in `[servers.{label}.oauth]`"
            ),
            Self::NoDeviceFlow { .. } => format!("leave out `--device`: `prowess servers login {label}`"),
            Self::NoBrowserFlow { .. } => format!("use `prowess servers login {label} --device`"),
            Self::TooLate { .. } => format!("run `prowess servers login {label}` again"),
            Self::Denied { error, .. } if error.starts_with("invalid_redirect_uri") => format!(
                "set a `redirect_uri` that it takes in `[servers.{label}.oauth]`, such as `http://localhost:8912/callback`"
            ),
            Self::Storage { .. } => format!(
                "look at it; `prowess servers logout {label}` removes it"
            ),
            _ => return None,
        })
    }

    /// The message, with what is at the bottom of it.
    pub(in crate::client) fn told(&self) -> String {
        let mut deepest: Option<&dyn Error> = self.source();
        while let Some(source) = deepest.and_then(Error::source) {
            deepest = Some(source);
        }
        deepest.map_or_else(|| self.to_string(), |it| format!("{self}: {it}"))
    }

    /// What came of logging in to a server.
    pub(in crate::client) fn outcome(&self, label: &str) -> Box<Outcome> {
        let status = match self {
            Self::Program | Self::Header | Self::NotNeeded | Self::Insecure { .. } => {
                OutcomeStatus::Invalid
            }
            Self::Wire { source: WireError::Refused { .. }, .. } => OutcomeStatus::Refused,
            Self::TooLate { .. } => OutcomeStatus::TimedOut,
            _ => OutcomeStatus::Failed,
        };
        let message = format!("cannot log in to the server `{label}`: {}", self.told());
        Box::new(Outcome { hint: self.hint(label), ..Outcome::bad(status, message) })
    }
}
