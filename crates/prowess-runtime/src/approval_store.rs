//! The approvals: those of the session, and those that are remembered in a directory of the host.
//!
//! The file is readable by its owner alone. One that cannot be read approves nothing.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use prowess_sandbox::Root;
use serde::{Deserialize, Serialize};

use crate::{
    audit_log::{AuditEntry, AuditLog},
    state_directory::{NO_WAIT, is_own, lock_directory},
    subject::Subject,
    timestamp::timestamp,
    warnings::Warnings,
};

/// The approvals that people have given. Making a store touches nothing.
#[derive(Debug, Default)]
pub struct ApprovalStore {
    directory: Option<PathBuf>,
    /// The remembered approvals of a store without a directory.
    memory: Mutex<Vec<Approval>>,
    /// The approvals that end with the program.
    session: Mutex<Vec<Approval>>,
    /// The refusals that end with the program.
    refused: Mutex<Vec<(ApprovalKey, Subject)>>,
    /// Locked while a person is asked, so that nobody is asked two things at once.
    pub(crate) turn: tokio::sync::Mutex<()>,
    warnings: Warnings,
}

/// Something that was approved, and what exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approval {
    #[serde(flatten)]
    pub(crate) key: ApprovalKey,
    /// When it was approved.
    pub(crate) when: String,
    /// Who approved it.
    pub(crate) by: String,
    /// What exactly.
    #[serde(flatten)]
    pub(crate) subject: Subject,
}

/// An approval that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RememberedApproval {
    /// What it is revoked by; the same as long as it is remembered.
    pub id: String,
    /// What was approved: `skill`, `server`, `call`, `write`, `read`, `send`, `network`, `environment` or `settings`.
    pub kind: &'static str,
    /// The name of the skill, server or tool.
    pub name: String,
    /// The folder, file or call.
    pub place: String,
    /// When it was approved.
    pub when: String,
    /// Who approved it: `person`, or `flag` for `--yes`.
    pub by: String,
    /// The hosts that a script may connect to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// What an approval is found by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApprovalKey {
    /// What kind of thing it is.
    pub(crate) kind: ApprovalKind,
    /// Its name: of a skill, of a server behind that of its skill, or of the tool.
    pub(crate) name: String,
    /// The folder of a skill, or what is called for.
    pub(crate) place: String,
}

/// What can be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalKind {
    Skill,
    Server,
    Call,
    /// A file, to be written with whatever content.
    Write,
    /// A file with secrets, to be read.
    Read,
    /// A host, to be sent whatever request.
    Send,
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
    fn remembered(&self) -> RememberedApproval {
        let Self { key: ApprovalKey { kind, name, place }, when, by, subject } = self;
        let words = [kind.as_str(), name, place].map(str::as_bytes);
        RememberedApproval {
            id: Subject::of_words(words).digest.chars().take(ID).collect(),
            kind: kind.as_str(),
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
        let place = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let place = place.to_string_lossy().into_owned();
        Self { kind: ApprovalKind::Settings, name: "settings".to_owned(), place }
    }
}

/// What tells a file of settings from any other.
pub fn settings_digest(bytes: &[u8]) -> String {
    Subject::of_words([bytes]).digest
}

/// The file of approvals.
#[derive(Default, Serialize, Deserialize)]
struct ApprovalFile {
    approvals: Vec<Approval>,
}

/// What the lock file of an environment is called.
#[cfg(feature = "http")]
const LOCK_FILE: &str = "lock";
const BOOK: &str = "approvals.json";
/// How many characters an approval is revoked by.
const ID: usize = 8;
/// How many approvals are kept; the oldest go first.
const APPROVALS: usize = 500;
/// How much all of them keep of what was approved, in bytes; the newest keep theirs.
const TEXTS: usize = 8 * 1024 * 1024;
/// What a file of approvals can have at the most.
const BOOK_SIZE: u64 = 64 * 1024 * 1024;

impl ApprovalStore {
    /// A store in a directory, which is created with the first approval.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..Self::default() }
    }

    /// A store that ends with the program.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Removes and returns the warnings about approvals that could not be read or saved.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// What was approved under a key, for the session or for good.
    pub(crate) fn approved(&self, key: &ApprovalKey) -> Option<Subject> {
        let session = lock(&self.session).iter().rfind(|it| it.key == *key).cloned();
        session.map(|it| it.subject).or_else(|| self.approved_for_good(key))
    }

    /// Whether something was approved for as long as the program runs.
    pub(crate) fn is_approved_for_session(&self, key: &ApprovalKey) -> bool {
        lock(&self.session).iter().any(|it| it.key == *key)
    }

    /// Keeps a no as long as the program runs.
    pub(crate) fn refuse_for_session(&self, key: ApprovalKey, subject: Subject) {
        lock(&self.refused).push((key, subject));
    }

    /// Whether somebody has said no to exactly this since the program began.
    pub(crate) fn is_refused_for_session(&self, key: &ApprovalKey, subject: &Subject) -> bool {
        lock(&self.refused).iter().any(|it| it.0 == *key && it.1.digest == subject.digest)
    }

    fn approved_for_good(&self, key: &ApprovalKey) -> Option<Subject> {
        self.all().into_iter().rfind(|it| it.key == *key).map(|it| it.subject)
    }

    /// Keeps an approval as long as the program runs.
    pub(crate) fn approve_for_session(&self, approval: Approval) {
        enter(&mut lock(&self.session), approval);
    }

    /// Records an approval, in place of an older one of the same thing.
    pub(crate) fn approve(&self, approval: Approval) {
        let Some(directory) = &self.directory else {
            return enter(&mut lock(&self.memory), approval);
        };
        if let Err(error) = self.change(directory, |all| enter(all, approval)) {
            self.warnings.add(format!("an approval could not be recorded: {error}"));
        }
    }

    /// The approvals that are remembered, the newest last.
    pub fn remembered(&self) -> Vec<RememberedApproval> {
        self.all().iter().map(Approval::remembered).collect()
    }

    /// Removes the remembered approvals that are meant, and returns them.
    pub fn revoke(
        &self,
        is_meant: impl Fn(&RememberedApproval) -> bool,
        by: &str,
        audit: &AuditLog,
    ) -> io::Result<Vec<RememberedApproval>> {
        let mut revoked = Vec::new();
        let mut revoke = |all: &mut Vec<Approval>| {
            all.retain(|it| {
                let shown = it.remembered();
                let is_kept = !is_meant(&shown);
                if !is_kept {
                    revoked.push(shown);
                }
                is_kept
            });
        };
        match &self.directory {
            Some(directory) => self.change(directory, revoke)?,
            None => revoke(&mut lock(&self.memory)),
        }
        for RememberedApproval { kind, name, place, .. } in &revoked {
            let what = format!("{kind} {name}: {place}");
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

    /// Changes the file of approvals, while nobody else does.
    fn change(&self, directory: &Path, change: impl FnOnce(&mut Vec<Approval>)) -> io::Result<()> {
        let _lock = lock_directory(directory)?;
        let mut book = self.open(directory)?;
        change(&mut book.approvals);
        let text = serde_json::to_vec_pretty(&book)?;
        let root = Root::open(directory).map_err(io::Error::other)?;
        root.write(Path::new(BOOK), &text).map_err(io::Error::other)?;
        // Others may see the directory, if it was there before.
        fs::set_permissions(directory.join(BOOK), fs::Permissions::from_mode(0o600))
    }

    /// Records that the file of a project may set what needs approval, as long as its content stays.
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

    /// Whether the file of a project was approved with just this content.
    pub fn has_approved_settings(&self, file: &Path, digest: &str) -> bool {
        self.approved(&ApprovalKey::of_settings(file)).is_some_and(|it| it.digest == digest)
    }

    /// Records that packages were installed for somebody, and that they may be used as they are locked.
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

    /// What an environment was approved with: the digest of its lock file, and the file as long as it is kept.
    pub(crate) fn environment(&self, key: &str) -> Option<(String, Option<String>)> {
        let is_it = |it: &Approval| it.key.kind == ApprovalKind::Environment && it.key.place == key;
        let subject = self.all().into_iter().rfind(is_it)?.subject;
        Some((subject.digest.clone(), subject.into_text()))
    }

    /// Every approval that holds, the newest last.
    pub(crate) fn all(&self) -> Vec<Approval> {
        let Some(directory) = &self.directory else { return lock(&self.memory).clone() };
        let read = match open(directory) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                lock_directory(directory).and_then(|_lock| self.open(directory))
            }
            book => book,
        };
        read.map(|it| it.approvals).unwrap_or_else(|error| {
            self.warnings.add(format!("the approvals could not be read: {error}"));
            Vec::new()
        })
    }

    /// Reads the file of approvals, while nobody writes it. One that makes no sense is set aside,
    /// and nothing is approved.
    fn open(&self, directory: &Path) -> io::Result<ApprovalFile> {
        match open(directory) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let aside = directory.join(format!("{BOOK}.corrupt"));
                fs::rename(directory.join(BOOK), &aside)?;
                let aside = aside.display();
                self.warnings.add(format!(
                    "the approvals were damaged ({error}); they were moved to `{aside}`, and nothing is approved"
                ));
                Ok(ApprovalFile::default())
            }
            book => book,
        }
    }
}

/// Reads the file of approvals; `InvalidData` when it makes no sense.
fn open(directory: &Path) -> io::Result<ApprovalFile> {
    let mut options = OpenOptions::new();
    let file = match options.read(true).custom_flags(NO_WAIT).open(directory.join(BOOK)) {
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
            "`{BOOK}` in `{shown}`, or that directory, belongs to another user or can be written by others"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut text = Vec::new();
    file.take(BOOK_SIZE).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|it| io::Error::new(io::ErrorKind::InvalidData, it))
}

/// Puts an approval in the place of an older one of the same thing.
fn enter(approvals: &mut Vec<Approval>, new: Approval) {
    approvals.retain(|old| old.key != new.key);
    approvals.push(new);
    let surplus = approvals.len().saturating_sub(APPROVALS);
    approvals.drain(..surplus);
    let mut kept = 0;
    for old in approvals.iter_mut().rev() {
        kept += old.subject.kept();
        if kept > TEXTS {
            old.subject.forget_texts();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
