//! Records of decisions: current approvals, and an audit log.
//!
//! The file is readable by its owner alone. One that cannot be read approves nothing.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use prowess_sandbox::Root;
use serde::{Deserialize, Serialize};

use crate::sys::{NO_WAIT, OpenOptionsExt as _, set_mode};
use crate::{
    audit_log::{AuditEntry, AuditLog},
    state_directory::{is_own, lock_directory},
    subject::Subject,
    timestamp::timestamp,
    warnings::Warnings,
};

/// Records of decisions. Creating this touches no files.
#[derive(Debug, Default)]
pub struct ApprovalStore {
    directory: Option<PathBuf>,
    /// The remembered approvals of a store without a directory.
    memory: Mutex<Vec<Approval>>,
    /// The approvals for as long as the program runs.
    session: Mutex<Vec<Approval>>,
    /// The refusals that end with the program.
    refused: Mutex<Vec<(ApprovalKey, Subject)>>,
    /// Locked while a person is asked, so that nobody is asked two things at once.
    pub(crate) turn: tokio::sync::Mutex<()>,
    warnings: Warnings,
}

/// An approval of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approval {
    #[serde(flatten)]
    pub(crate) key: ApprovalKey,
    /// The time of the approval.
    pub(crate) when: String,
    /// The person or flag that approved it.
    pub(crate) by: String,
    /// The approved subject.
    #[serde(flatten)]
    pub(crate) subject: Subject,
}

/// An approval that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RememberedApproval {
    /// The ID to revoke it by, which never changes.
    pub id: String,
    /// The kind of approval.
    pub kind: ApprovalKind,
    /// The name of the skill, server or tool.
    pub name: String,
    /// The folder, file or call.
    pub place: String,
    /// The time of the approval.
    pub when: String,
    /// The origin of the approval: `person`, or `flag` for `--yes`.
    pub by: String,
    /// The hosts that a script may connect to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// The key of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApprovalKey {
    /// The kind of approval.
    pub(crate) kind: ApprovalKind,
    /// Its name: of a skill, of a server after that of its skill, or of the tool.
    pub(crate) name: String,
    /// The folder of a skill, or the call.
    pub(crate) place: String,
}

/// The kinds of approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// Using or running a skill.
    Skill,
    /// Starting a server, or connecting to it.
    Server,
    /// A call of a tool.
    Call,
    /// Writing a file, with any content.
    Write,
    /// Reading a file with secrets.
    Read,
    /// Sending any request to a host.
    Send,
    /// A settings file of a project.
    Settings,
    /// A skill with hosts that its script may connect to.
    Network,
    /// An environment with its lock file.
    Environment,
}

impl ApprovalKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Skill => "skill",
            Self::Server => "server",
            Self::Call => "call",
            Self::Write => "write",
            Self::Read => "read",
            Self::Network => "network",
            Self::Send => "send",
            Self::Settings => "settings",
            Self::Environment => "environment",
        }
    }
}

impl Approval {
    fn to_remembered(&self) -> RememberedApproval {
        let Self { key: ApprovalKey { kind, name, place }, when, by, subject } = self;
        let words = [kind.as_str(), name, place].map(str::as_bytes);
        RememberedApproval {
            id: Subject::of_words(words).digest.chars().take(ID).collect(),
            kind: *kind,
            name: name.clone(),
            place: place.clone(),
            when: when.clone(),
            by: by.clone(),
            hosts: subject.hosts.clone(),
        }
    }
}

impl ApprovalKey {
    #[cfg(feature = "http")]
    fn of_environment(name: &str, key: &str) -> Self {
        Self { kind: ApprovalKind::Environment, name: name.to_owned(), place: key.to_owned() }
    }

    fn of_settings(file: &Path) -> Self {
        let place = prowess::real_path(file).unwrap_or_else(|_| file.to_owned());
        let place = place.to_string_lossy().into_owned();
        Self { kind: ApprovalKind::Settings, name: "settings".to_owned(), place }
    }
}

/// Returns a digest that identifies a settings file.
pub fn settings_digest(bytes: &[u8]) -> String {
    Subject::of_words([bytes]).digest
}

/// The file of approvals.
#[derive(Default, Serialize, Deserialize)]
struct ApprovalFile {
    approvals: Vec<Approval>,
}

/// The name of the lock file of an environment.
#[cfg(feature = "http")]
const LOCK_FILE: &str = "lock";
const FILE: &str = "approvals.json";
/// The length of the ID of an approval.
const ID: usize = 8;
/// The maximum number of approvals; the oldest are removed first.
const APPROVALS: usize = 500;
/// The maximum total size of the saved texts, in bytes; the newest are kept.
const TEXTS: usize = 8 * 1024 * 1024;
/// The maximum size of the file of approvals.
const FILE_SIZE: u64 = 64 * 1024 * 1024;

impl ApprovalStore {
    /// Creates a store in a directory, which is created with the first approval.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..Self::default() }
    }

    /// Creates a store without a directory, whose approvals last as long as the program runs.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Removes and returns the warnings about approvals that could not be read or saved.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// Returns the approved subject of a key, for the session or permanently.
    pub(crate) fn approved_subject(&self, key: &ApprovalKey) -> Option<Subject> {
        let session = lock(&self.session).iter().rfind(|it| it.key == *key).cloned();
        session.map(|it| it.subject).or_else(|| self.approved_permanently(key))
    }

    /// Whether a key was approved for as long as the program runs.
    pub(crate) fn is_approved_for_session(&self, key: &ApprovalKey) -> bool {
        lock(&self.session).iter().any(|it| it.key == *key)
    }

    /// Remembers a refusal as long as the program runs.
    pub(crate) fn refuse_for_session(&self, key: ApprovalKey, subject: Subject) {
        lock(&self.refused).push((key, subject));
    }

    /// Whether this exact subject was refused since the program started.
    pub(crate) fn is_refused_for_session(&self, key: &ApprovalKey, subject: &Subject) -> bool {
        lock(&self.refused).iter().any(|it| it.0 == *key && it.1.digest == subject.digest)
    }

    fn approved_permanently(&self, key: &ApprovalKey) -> Option<Subject> {
        self.list().into_iter().rfind(|it| it.key == *key).map(|it| it.subject)
    }

    /// Remembers an approval as long as the program runs.
    pub(crate) fn approve_for_session(&self, approval: Approval) {
        insert(&mut lock(&self.session), approval);
    }

    /// Records an approval, replacing an older one with the same key.
    pub(crate) fn approve(&self, approval: Approval) {
        let Some(directory) = &self.directory else {
            return insert(&mut lock(&self.memory), approval);
        };
        if let Err(error) = self.update(directory, |all| insert(all, approval)) {
            self.warnings.add(format!("an approval could not be recorded: {error}"));
        }
    }

    /// Returns the remembered approvals, the newest last.
    pub fn remembered(&self) -> Vec<RememberedApproval> {
        self.list().iter().map(Approval::to_remembered).collect()
    }

    /// Revokes the remembered approvals that `is_meant` selects, and returns them.
    pub fn revoke(
        &self,
        is_meant: impl Fn(&RememberedApproval) -> bool,
        by: &str,
        audit: &AuditLog,
    ) -> io::Result<Vec<RememberedApproval>> {
        let revoked = match &self.directory {
            Some(directory) => self.update(directory, |all| remove_matching(all, is_meant))?,
            None => remove_matching(&mut lock(&self.memory), is_meant),
        };
        for RememberedApproval { kind, name, place, .. } in &revoked {
            let what = format!("{} {name}: {place}", kind.as_str());
            audit.record(&AuditEntry {
                tool: "approvals",
                what: &what,
                decision: "revoked",
                by,
                ..AuditEntry::default()
            });
        }
        Ok(revoked)
    }

    /// Changes the file of approvals under a lock; returns the result of the change.
    fn update<T>(
        &self,
        directory: &Path,
        change: impl FnOnce(&mut Vec<Approval>) -> T,
    ) -> io::Result<T> {
        let _lock = lock_directory(directory)?;
        let mut file = self.read_or_set_aside(directory)?;
        let result = change(&mut file.approvals);
        let text = serde_json::to_vec_pretty(&file)?;
        let root = Root::open(directory).map_err(io::Error::other)?;
        root.write(Path::new(FILE), &text).map_err(io::Error::other)?;
        // An existing directory may be readable by others.
        set_mode(&directory.join(FILE), 0o600)?;
        Ok(result)
    }

    /// Approves a project's settings file, as long as its content is unchanged.
    pub fn approve_settings(&self, file: &Path, digest: &str, by: &str, audit: &AuditLog) {
        let subject = Subject { digest: digest.to_owned(), ..Subject::default() };
        let key = ApprovalKey::of_settings(file);
        let what = format!("accept the commands and hosts of {}", key.place);
        let (tool, digest, decision) = ("config", Some(digest), "allowed");
        audit.record(&AuditEntry {
            tool,
            digest,
            what: &what,
            decision,
            by,
            ..AuditEntry::default()
        });
        self.approve(Approval { key, when: timestamp(), by: by.to_owned(), subject });
    }

    /// Whether a project's settings file was approved with this exact content.
    pub fn has_approved_settings(&self, file: &Path, digest: &str) -> bool {
        self.approved_subject(&ApprovalKey::of_settings(file)).is_some_and(|it| it.digest == digest)
    }

    /// Approves the installation of packages, and their use with this lock file.
    #[cfg(feature = "http")]
    pub(crate) fn approve_environment(
        &self,
        name: &str,
        key: &str,
        lock: &str,
        by: &str,
        audit: &AuditLog,
    ) {
        let subject = Subject::of_text(LOCK_FILE, lock);
        let digest = Some(&*subject.digest);
        let what = format!("install packages, environment {key}");
        let (tool, skill, decision) = ("prepare", Some(name), "allowed");
        audit.record(&AuditEntry { tool, skill, digest, what: &what, decision, by, sandbox: None });
        let key = ApprovalKey::of_environment(name, key);
        self.approve(Approval { key, when: timestamp(), by: by.to_owned(), subject });
    }

    /// Returns the approval of an environment: the digest of its lock file, and the file if it is
    /// still saved.
    pub(crate) fn environment(&self, key: &str) -> Option<(String, Option<String>)> {
        let subject = self
            .list()
            .into_iter()
            .rfind(|it: &Approval| it.key.kind == ApprovalKind::Environment && it.key.place == key)?
            .subject;
        Some((subject.digest.clone(), subject.into_text()))
    }

    /// Returns all current approvals, the newest last.
    pub(crate) fn list(&self) -> Vec<Approval> {
        let Some(directory) = &self.directory else { return lock(&self.memory).clone() };
        let file = match read(directory) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                lock_directory(directory).and_then(|_lock| self.read_or_set_aside(directory))
            }
            file => file,
        };
        file.map(|it| it.approvals).unwrap_or_else(|error| {
            self.warnings.add(format!("the approvals could not be read: {error}"));
            Vec::new()
        })
    }

    /// Reads the file of approvals under a lock. A corrupt one is set aside, and nothing is
    /// approved.
    fn read_or_set_aside(&self, directory: &Path) -> io::Result<ApprovalFile> {
        match read(directory) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let aside = directory.join(format!("{FILE}.corrupt"));
                fs::rename(directory.join(FILE), &aside)?;
                let aside = aside.display();
                self.warnings.add(format!(
                    "the file of approvals is damaged ({error}); it was moved to `{aside}`, and nothing is approved"
                ));
                Ok(ApprovalFile::default())
            }
            file => file,
        }
    }
}

/// Reads the file of approvals; `InvalidData` if it is corrupt.
fn read(directory: &Path) -> io::Result<ApprovalFile> {
    let mut options = OpenOptions::new();
    let file = match options.read(true).custom_flags(NO_WAIT).open(directory.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ApprovalFile::default()),
        file => file?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if !is_own(&metadata, 0o022) || !is_own(&fs::metadata(directory)?, 0o002) {
        let shown = directory.display();
        let why = format!(
            "`{FILE}` in `{shown}`, or that directory, belongs to another user or is writable by others"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut text = Vec::new();
    file.take(FILE_SIZE).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|it| io::Error::new(io::ErrorKind::InvalidData, it))
}

/// Adds an approval, replacing an older one with the same key.
fn insert(approvals: &mut Vec<Approval>, new: Approval) {
    approvals.retain(|old| old.key != new.key);
    approvals.push(new);
    let surplus = approvals.len().saturating_sub(APPROVALS);
    approvals.drain(..surplus);
    let mut size = 0;
    for old in approvals.iter_mut().rev() {
        size += old.subject.texts_size();
        if size > TEXTS {
            old.subject.drop_texts();
        }
    }
}

/// Removes and returns the approvals that `is_meant` selects.
fn remove_matching(
    approvals: &mut Vec<Approval>,
    is_meant: impl Fn(&RememberedApproval) -> bool,
) -> Vec<RememberedApproval> {
    approvals
        .extract_if(.., |it| is_meant(&it.to_remembered()))
        .map(|it| it.to_remembered())
        .collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is consistent between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
