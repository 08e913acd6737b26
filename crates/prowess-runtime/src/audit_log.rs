//! The audit log: every decision as one JSON object per line.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use prowess_sandbox::SandboxLevel;
use serde::Serialize;

use crate::sys::{NO_WAIT, OpenOptionsExt as _};
use crate::{
    mask::KnownSecrets, state_directory::lock_directory, timestamp::timestamp, warnings::Warnings,
};

/// The log of every decision, readable by its owner alone. Creating one touches no files.
#[derive(Debug, Default)]
pub struct AuditLog {
    directory: Option<PathBuf>,
    secrets: KnownSecrets,
    warnings: Warnings,
}

impl AuditLog {
    /// Creates a log in a directory, which is created with the first entry.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..Self::default() }
    }

    /// Creates a log that drops every entry.
    pub fn disabled() -> Self {
        Self::default()
    }

    /// Redacts these secrets wherever they occur in an entry.
    #[must_use]
    pub fn masking(self, secrets: KnownSecrets) -> Self {
        Self { secrets, ..self }
    }

    /// Logs a decision. A failure is among the [warnings](Self::take_warnings).
    pub fn record(&self, entry: &AuditEntry<'_>) {
        let Some(directory) = &self.directory else { return };
        let entry = AuditEntry { what: &self.secrets.mask(entry.what), ..*entry };
        let logged = lock_directory(directory).and_then(|_lock| append(directory, &entry));
        if let Err(error) = logged {
            self.warnings.add(format!("a decision could not be logged: {error}"));
        }
    }

    /// Removes and returns the warnings about entries that could not be logged.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }
}

/// A decision, or a run without a sandbox. It contains no environment, headers or body.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct AuditEntry<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The skill that would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<&'a str>,
    /// The digest of the content that was decided on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<&'a str>,
    /// The action, in one line.
    pub what: &'a str,
    /// `allowed`, `refused`, `ran` or `revoked`.
    pub decision: &'a str,
    /// The origin of the decision: a rule, a setting, an approval, a person, a flag.
    pub by: &'a str,
    /// The sandbox level, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLevel>,
}

#[derive(Serialize)]
struct Line<'a> {
    when: String,
    #[serde(flatten)]
    entry: AuditEntry<'a>,
}

const LOG: &str = "audit.jsonl";
const OLD_LOG: &str = "audit.1.jsonl";
/// The size at which a new log is started; only the last old one is kept.
const SIZE: u64 = 4 * 1024 * 1024;
/// The maximum length of the logged action.
const WHAT: usize = 500;

/// Adds a line to the log.
fn append(directory: &Path, entry: &AuditEntry<'_>) -> io::Result<()> {
    let path = directory.join(LOG);
    if fs::symlink_metadata(&path).is_ok_and(|it| it.len() > SIZE) {
        fs::rename(&path, directory.join(OLD_LOG))?;
    }
    let mut options = OpenOptions::new();
    let mut log =
        options.append(true).create(true).mode(0o600).custom_flags(NO_WAIT).open(&path)?;
    let end = entry.what.char_indices().nth(WHAT).map_or(entry.what.len(), |it| it.0);
    let entry = AuditEntry { what: &entry.what[..end], ..*entry };
    let mut line = serde_json::to_string(&Line { when: timestamp(), entry })?;
    line.push('\n');
    log.write_all(line.as_bytes())
}
