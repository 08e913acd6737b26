//! Starts MCP servers: what a launcher needs for it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use prowess_runtime::{
    Authorizer, ChangeHistory, EnvironmentStore, InterpreterSearch, RunLimits, Sandbox,
};

#[cfg(feature = "http")]
use super::oauth::Logins;

/// Starts the servers that skills bring, or somebody has set.
///
/// A server that is a program reads the system and a copy of its skill, or what its entry and its arguments
/// name; it writes its work directory and what its entry says, and connects to the hosts of its entry alone. One behind an address is asked only if its host may be. Making a starter
/// touches nothing.
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

/// How long a server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTimeouts {
    /// Until it has said which tools it has.
    pub start: Duration,
    /// Of that, until a program has said whether it knows 2026-07-28; then it is taken for an older one.
    pub discovery: Duration,
    /// For one call.
    pub call: Duration,
    /// To end when it is told to.
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

/// How much processor time a server may take, how much of its errors is kept, and how long it may run:
/// it ends with the agent.
const CPU: Duration = Duration::from_secs(60 * 60);
const ERRORS: u64 = 16 * 1024;
const FOREVER: Duration = Duration::MAX;

impl McpLauncher {
    /// Makes a starter of servers that are held by this sandbox and these limits. What may run without
    /// a sandbox for once is no server.
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

    /// Lets descriptions refer to these variables.
    #[must_use]
    pub fn with_environment(self, environment: BTreeMap<String, String>) -> Self {
        Self { environment, ..self }
    }

    /// Lets every server read these files and directories.
    #[must_use]
    pub fn with_reads(self, reads: Vec<PathBuf>) -> Self {
        Self { reads, ..self }
    }

    /// Finds programs by this, before those of the system.
    #[must_use]
    pub fn with_interpreters(self, interpreters: InterpreterSearch) -> Self {
        Self { interpreters, ..self }
    }

    /// Runs the packages that were prepared for servers.
    #[must_use]
    pub fn with_environments(self, environments: Option<EnvironmentStore>) -> Self {
        Self { environments, ..self }
    }

    /// Keeps files that others act on as they were before a server wrote them, so that it can be undone.
    #[must_use]
    pub fn with_history(self, history: Option<ChangeHistory>) -> Self {
        Self { history, ..self }
    }

    /// Has the relative paths of entries begin in this directory: that of the project that is worked on.
    #[must_use]
    pub fn with_directory(self, directory: PathBuf) -> Self {
        Self { directory, ..self }
    }

    /// Names the user's own file of settings in hints.
    #[must_use]
    pub fn with_settings_file(self, settings_file: Option<PathBuf>) -> Self {
        Self { settings_file, ..self }
    }

    /// Waits so long for servers.
    #[must_use]
    pub fn with_patience(self, patience: ServerTimeouts) -> Self {
        Self { patience, ..self }
    }
}
