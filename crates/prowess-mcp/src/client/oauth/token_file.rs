//! The stored logins: a private file for each server.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use super::{LoginError, registration::RegisteredClient, token::Tokens};
use crate::sys::PrivateFolder;

/// A stored login to a server. The server and the issuer are stored with the tokens, so that they
/// are never sent elsewhere, even if the server's metadata change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    pub(super) server: String,
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client: RegisteredClient,
    #[serde(flatten)]
    pub(super) tokens: Tokens,
}

/// The state of a login, without tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoginState {
    /// The authorization server of the login.
    pub issuer: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The expiry time of the token, in seconds since 1970.
    pub expires_at: Option<u64>,
    /// Whether it can be renewed.
    pub is_renewable: bool,
}

/// The directory of all logins. Creating this touches no files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logins {
    directory: PathBuf,
}

/// The maximum size of a file.
const LONGEST: u64 = 256 * 1024;
/// The timeout for the renewal of a token by another process.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

impl Logins {
    /// Stores logins in a directory, which is created by the first login.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Reads the login to a server with a label; `None` if there is none.
    pub(super) fn read(
        &self,
        label: &str,
        server: &str,
    ) -> Result<Option<StoredLogin>, LoginError> {
        let name = file_name(label, server);
        let bytes = PrivateFolder::open(&self.directory)
            .and_then(|it| it.map_or(Ok(None), |it| it.read(&name, LONGEST)));
        let Some(bytes) = bytes.map_err(|error| self.storage_error(&name, &error.to_string()))?
        else {
            return Ok(None);
        };
        // The error is not repeated: it may contain a part of a token.
        let login: StoredLogin = serde_json::from_slice(&bytes)
            .map_err(|_| self.storage_error(&name, "it is not a login"))?;
        Ok(Some(login).filter(|it| it.server == server))
    }

    /// Stores a login, replacing an older one.
    pub(super) fn write(&self, label: &str, login: &StoredLogin) -> Result<(), LoginError> {
        let name = file_name(label, &login.server);
        let written = PrivateFolder::open_or_create(&self.directory)
            .and_then(|it| it.write(&name, &serde_json::to_vec_pretty(login)?));
        written.map_err(|error| self.storage_error(&name, &error.to_string()))
    }

    /// Removes the login to a server, or every login with a label, including those to previous
    /// URLs; returns whether there was one.
    pub(super) fn remove(&self, label: &str, server: Option<&str>) -> Result<bool, LoginError> {
        let only = server.map(|it| file_name(label, it));
        let removed = PrivateFolder::open(&self.directory).and_then(|directory| {
            let Some(directory) = directory else { return Ok(false) };
            let mut is_removed = false;
            for entry in fs::read_dir(&self.directory)? {
                let name = entry?.file_name();
                let Some(name) = name.to_str() else { continue };
                let rest = name.strip_prefix(label);
                let is_one = rest.is_some_and(|it| it.starts_with('.') && it != LOCK);
                if is_one && only.as_ref().is_none_or(|it| it == name) {
                    directory.remove(name)?;
                    is_removed = true;
                }
            }
            Ok(is_removed)
        });
        removed.map_err(|error| self.storage_error(label, &error.to_string()))
    }

    /// Locks the login with a label against other processes, until the returned file is dropped.
    pub(super) async fn lock(&self, label: &str) -> Result<File, LoginError> {
        let name = format!("{label}{LOCK}");
        let failed = |error: io::Error| self.storage_error(&name, &error.to_string());
        let opened = PrivateFolder::open_or_create(&self.directory)
            .and_then(|it| it.open_lock(&name))
            .map_err(failed)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match opened.try_lock() {
                Ok(()) => return Ok(opened),
                Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(PAUSE).await,
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    fn storage_error(&self, name: &str, why: &str) -> LoginError {
        LoginError::Storage { path: self.directory.join(Path::new(name)), why: why.to_owned() }
    }
}

impl StoredLogin {
    pub(super) fn state(self) -> LoginState {
        let Self { issuer, tokens, .. } = self;
        LoginState {
            issuer,
            scopes: tokens.scope,
            expires_at: tokens.expires_at,
            is_renewable: tokens.refresh_token.is_some(),
        }
    }
}

const LOCK: &str = ".lock";

/// Returns the name of a login's file: a label only has letters, digits and `-`.
fn file_name(label: &str, server: &str) -> String {
    let digest = Sha256::digest(server);
    let digest: String = digest.iter().take(8).map(|it| format!("{it:02x}")).collect();
    format!("{label}.{digest}.json")
}
