//! The stored logins: a private file for each server.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{AtFlags, FlockOperation, Mode, OFlags, fchmod, fsync, openat, renameat, unlinkat},
    io::Errno,
    process::geteuid,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use super::{LoginError, registration::RegisteredClient, token::Tokens};

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
        let bytes = self.open().and_then(|directory| {
            let Some(directory) = directory else { return Ok(None) };
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = match openat(&directory, &*name, flags, Mode::empty()) {
                Ok(file) => File::from(file),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::LOOP) => return Err(io::Error::other("it is a link")),
                Err(error) => return Err(error.into()),
            };
            // The opened file is checked, because its path may lead elsewhere by now.
            let metadata = file.metadata()?;
            if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
                return Err(io::Error::other("it is not a file that belongs to you"));
            }
            if metadata.mode() & 0o077 != 0 {
                return Err(io::Error::other("other users can read or change it"));
            }
            let mut bytes = Vec::new();
            file.take(LONGEST).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        });
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
        let draft = format!("{name}.new");
        let written = self.open_or_create().and_then(|directory| {
            let bytes = serde_json::to_vec_pretty(login)?;
            match unlinkat(&directory, &*draft, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = openat(&directory, &*draft, flags, Mode::RUSR | Mode::WUSR)?;
            let mut file = File::from(file);
            file.write_all(&bytes)?;
            file.sync_all()?;
            renameat(&directory, &*draft, &directory, &*name)?;
            Ok(fsync(&directory)?)
        });
        written.map_err(|error| self.storage_error(&name, &error.to_string()))
    }

    /// Removes the login to a server, or every login with a label, including those to previous
    /// URLs; returns whether there was one.
    pub(super) fn remove(&self, label: &str, server: Option<&str>) -> Result<bool, LoginError> {
        let only = server.map(|it| file_name(label, it));
        let removed = self.open().and_then(|directory| {
            let Some(directory) = directory else { return Ok(false) };
            let mut is_removed = false;
            for entry in fs::read_dir(&self.directory)? {
                let name = entry?.file_name();
                let rest = name.to_str().and_then(|it| it.strip_prefix(label));
                let is_one = rest.is_some_and(|it| it.starts_with('.') && it != LOCK);
                if is_one && only.as_ref().is_none_or(|it| **it == *name) {
                    unlinkat(&directory, &*name, AtFlags::empty())?;
                    is_removed = true;
                }
            }
            Ok(is_removed)
        });
        removed.map_err(|error| self.storage_error(label, &error.to_string()))
    }

    /// Locks the login with a label against other processes, until the returned file is dropped.
    pub(super) async fn lock(&self, label: &str) -> Result<OwnedFd, LoginError> {
        let name = format!("{label}{LOCK}");
        let failed = |error: io::Error| self.storage_error(&name, &error.to_string());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = self
            .open_or_create()
            .and_then(|it| Ok(openat(&it, &*name, flags, Mode::RUSR | Mode::WUSR)?))
            .map_err(failed)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(opened),
                Err(Errno::WOULDBLOCK) if Instant::now() < end => sleep(PAUSE).await,
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    /// Opens the directory, which is created if it is missing.
    fn open_or_create(&self) -> io::Result<OwnedFd> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        self.open()?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens the directory, and makes it private; `None` if it does not exist.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(&self.directory, flags, Mode::empty()) {
            Ok(directory) => File::from(directory),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(io::Error::other("its directory is a link, or not a directory"));
            }
            Err(error) => return Err(error.into()),
        };
        let metadata = directory.metadata()?;
        if metadata.uid() != geteuid().as_raw() {
            return Err(io::Error::other("its directory belongs to another user"));
        }
        if metadata.mode() & 0o077 != 0 {
            fchmod(&directory, Mode::RWXU)?;
        }
        Ok(Some(directory.into()))
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
