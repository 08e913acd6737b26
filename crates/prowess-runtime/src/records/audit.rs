//! The log of decisions: one JSON object a line.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use prowess_sandbox::SandboxLevel;
use serde::Serialize;

use super::{NO_WAIT, now};

/// A decision, or a run without a sandbox. It contains no environment, headers or body.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct AuditEntry<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The skill that would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<&'a str>,
    /// The digest of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<&'a str>,
    /// The action, in one line.
    pub what: &'a str,
    /// `allowed`, `refused`, `ran` or `revoked`.
    pub decision: &'a str,
    /// Who decided: a rule, a setting, an approval, a person, a flag.
    pub by: &'a str,
    /// The sandbox level, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLevel>,
}

#[derive(Serialize)]
struct Line<'a> {
    when: String,
    #[serde(flatten)]
    note: AuditEntry<'a>,
}

const LOG: &str = "audit.jsonl";
const OLD_LOG: &str = "audit.1.jsonl";
/// The size at which a new log is started; only the last old one is kept.
const SIZE: u64 = 4 * 1024 * 1024;
/// The maximum length of the logged action.
const WHAT: usize = 500;

/// Adds a line to the log.
pub(super) fn append(directory: &Path, note: &AuditEntry<'_>) -> io::Result<()> {
    let path = directory.join(LOG);
    if fs::symlink_metadata(&path).is_ok_and(|it| it.len() > SIZE) {
        fs::rename(&path, directory.join(OLD_LOG))?;
    }
    let mut options = OpenOptions::new();
    let mut log =
        options.append(true).create(true).mode(0o600).custom_flags(NO_WAIT).open(&path)?;
    let end = note.what.char_indices().nth(WHAT).map_or(note.what.len(), |it| it.0);
    let note = AuditEntry { what: &note.what[..end], ..*note };
    let mut line = serde_json::to_string(&Line { when: now(), note })?;
    line.push('\n');
    log.write_all(line.as_bytes())
}
