//! The launcher of MCP servers, and its options.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use prowess_runtime::{
    Authorizer, Sandbox, environment::InterpreterSearch, files::ChangeHistory,
    preparation::EnvironmentStore, sandbox::RunLimits,
};

#[cfg(feature = "http")]
use super::oauth::Logins;

/// Starts the servers of skills and settings.
///
/// A server program can read the system and a copy of its skill, or the paths in its entry and its
/// arguments; it can write its work directory and the paths in its entry, and connect to the hosts
/// in its entry. A remote server is only connected if its host is allowed. Creating a launcher
/// touches no files.
#[derive(Debug, Clone)]
pub struct McpLauncher {
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) sandbox: Sandbox,
    pub(super) limits: RunLimits,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) reads: Vec<PathBuf>,
    pub(super) interpreters: InterpreterSearch,
    pub(super) environments: Option<EnvironmentStore>,
    pub(super) history: Option<ChangeHistory>,
    pub(super) directory: PathBuf,
    pub(super) settings_file: Option<PathBuf>,
    pub(super) patience: ServerTimeouts,
    #[cfg(feature = "http")]
    pub(super) logins: Option<Logins>,
}

/// The timeouts of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTimeouts {
    /// For its start, until it has listed its tools.
    pub start: Duration,
    /// The part of that until a program answers whether it supports 2026-07-28; after that it is
    /// assumed to be older.
    pub discovery: Duration,
    /// For one call.
    pub call: Duration,
    /// For its shutdown.
    pub stop: Duration,
}

impl Default for ServerTimeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(20),
            discovery: Duration::from_secs(10),
            call: Duration::from_secs(120),
            stop: Duration::from_millis(500),
        }
    }
}

/// The limits on a server's processor time, on its captured errors, and on its run time: it ends
/// with the agent.
const CPU: Duration = Duration::from_secs(60 * 60);
const ERRORS: u64 = 16 * 1024;
const FOREVER: Duration = Duration::MAX;

impl McpLauncher {
    /// Creates a launcher with this sandbox and these limits. A permission to run without a sandbox
    /// does not apply to servers.
    pub fn new(authorizer: Arc<Authorizer>, sandbox: Sandbox, limits: RunLimits) -> Self {
        let limits = RunLimits { timeout: FOREVER, idle: None, cpu: CPU, output: ERRORS, ..limits };
        let (environment, reads, interpreters, environments, patience) = Default::default();
        let (sandbox, directory) = (sandbox.confined(), PathBuf::from("/"));
        Self {
            authorizer,
            sandbox,
            limits,
            environment,
            reads,
            interpreters,
            environments,
            history: None,
            directory,
            settings_file: None,
            patience,
            #[cfg(feature = "http")]
            logins: None,
        }
    }

    /// Lets entries refer to these variables.
    #[must_use]
    pub fn with_environment(self, environment: BTreeMap<String, String>) -> Self {
        Self { environment, ..self }
    }

    /// Lets every server read these files and directories.
    #[must_use]
    pub fn with_reads(self, reads: Vec<PathBuf>) -> Self {
        Self { reads, ..self }
    }

    /// Searches programs here, before those of the system.
    #[must_use]
    pub fn with_interpreters(self, interpreters: InterpreterSearch) -> Self {
        Self { interpreters, ..self }
    }

    /// Uses the packages that were prepared for servers.
    #[must_use]
    pub fn with_environments(self, environments: Option<EnvironmentStore>) -> Self {
        Self { environments, ..self }
    }

    /// Saves the previous contents of protected files that a server writes, for undo.
    #[must_use]
    pub fn with_history(self, history: Option<ChangeHistory>) -> Self {
        Self { history, ..self }
    }

    /// Resolves relative paths of entries in this directory: that of the project.
    #[must_use]
    pub fn with_directory(self, directory: PathBuf) -> Self {
        Self { directory, ..self }
    }

    /// Sets the user's settings file, which hints name.
    #[must_use]
    pub fn with_settings_file(self, settings_file: Option<PathBuf>) -> Self {
        Self { settings_file, ..self }
    }

    /// Replaces the timeouts.
    #[must_use]
    pub fn with_patience(self, patience: ServerTimeouts) -> Self {
        Self { patience, ..self }
    }
}
