//! What was decided: approvals that hold, and a log of every decision.
//!
//! Both lie in a directory of the host, readable by its owner alone. Nothing that cannot be read is
//! taken for an approval.

mod audit;
mod time;

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime},
};

use prowess_sandbox::Root;
use serde::{Deserialize, Serialize};

use crate::subject::Subject;

pub use self::audit::AuditEntry;

/// What was decided. Making one touches nothing.
#[derive(Debug, Default)]
pub struct Records {
    directory: Option<PathBuf>,
    memory: Mutex<Vec<Approval>>,
    /// What was approved for as long as the program runs.
    session: Mutex<Vec<Approval>>,
    /// What somebody has said no to, as long as the program runs.
    refused: Mutex<Vec<(Key, Subject)>>,
    /// Held by whoever asks somebody, so that nobody is asked two things at once.
    pub(crate) turn: tokio::sync::Mutex<()>,
    faults: Mutex<Vec<String>>,
    /// What stands in no log.
    secrets: Vec<String>,
}

/// Something that was approved, and what exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approval {
    #[serde(flatten)]
    pub(crate) key: Key,
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
pub(crate) struct Key {
    /// What kind of thing it is.
    pub(crate) kind: Kind,
    /// Its name: of a skill, of a server behind that of its skill, or of the tool.
    pub(crate) name: String,
    /// The folder of a skill, or what is called for.
    pub(crate) place: String,
}

/// What can be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
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

impl Kind {
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
        let Self { key: Key { kind, name, place }, when, by, subject } = self;
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

impl Key {
    #[cfg(feature = "http")]
    fn of_environment(name: &str, key: &str) -> Self {
        Self { kind: Kind::Environment, name: name.to_owned(), place: key.to_owned() }
    }

    fn of_settings(file: &Path) -> Self {
        let place = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let place = place.to_string_lossy().into_owned();
        Self { kind: Kind::Settings, name: "settings".to_owned(), place }
    }
}

/// What tells a file of settings from any other.
pub fn settings_digest(bytes: &[u8]) -> String {
    Subject::of_words([bytes]).digest
}

/// The file of approvals.
#[derive(Default, Serialize, Deserialize)]
struct Book {
    approvals: Vec<Approval>,
}

/// What the lock file of an environment is called.
#[cfg(feature = "http")]
const LOCK_FILE: &str = "lock";
const BOOK: &str = "approvals.json";
const LOCK: &str = "lock";
/// How many characters an approval is revoked by.
const ID: usize = 8;
/// How many approvals are kept; the oldest go first.
const APPROVALS: usize = 500;
/// How long others may keep us from writing.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much all of them keep of what was approved, in bytes; the newest keep theirs.
const TEXTS: usize = 8 * 1024 * 1024;
/// What a file of approvals can have at the most.
const BOOK_SIZE: u64 = 64 * 1024 * 1024;

impl Records {
    /// Records in a directory; it is made when there is something to record.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..Self::default() }
    }

    /// Records that end with the program; nothing is logged.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// The same, and says why nothing is kept.
    pub fn without(why: impl Into<String>) -> Self {
        Self { faults: Mutex::new(vec![why.into()]), ..Self::default() }
    }

    /// Logs none of these, wherever it stands.
    #[must_use]
    pub fn masking(self, secrets: Vec<String>) -> Self {
        Self { secrets, ..self }
    }

    /// What could not be recorded or read since this was asked last, and what servers have written that others act on, in
    /// words.
    pub fn faults(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.faults))
    }

    /// Adds a warning to [`faults`](Self::faults).
    pub fn warn(&self, text: String) {
        self.fault(text);
    }

    /// Logs a decision.
    pub fn note(&self, note: &AuditEntry<'_>) {
        let Some(directory) = &self.directory else { return };
        let mask = |text: String, secret: &String| text.replace(&**secret, "[masked]");
        let what = self.secrets.iter().fold(note.what.to_owned(), mask);
        let note = &AuditEntry { what: &what, ..*note };
        let noted = locked(directory).and_then(|_lock| audit::append(directory, note));
        if let Err(error) = noted {
            self.fault(format!("a decision could not be logged: {error}"));
        }
    }

    /// What was approved under a key, for the session or for good.
    pub(crate) fn approved(&self, key: &Key) -> Option<Subject> {
        let session = lock(&self.session).iter().rfind(|it| it.key == *key).cloned();
        session.map(|it| it.subject).or_else(|| self.approved_for_good(key))
    }

    /// Whether something was approved for as long as the program runs.
    pub(crate) fn is_approved_for_session(&self, key: &Key) -> bool {
        lock(&self.session).iter().any(|it| it.key == *key)
    }

    /// Keeps a no as long as the program runs.
    pub(crate) fn refuse_for_session(&self, key: Key, subject: Subject) {
        lock(&self.refused).push((key, subject));
    }

    /// Whether somebody has said no to exactly this since the program began.
    pub(crate) fn is_refused_for_session(&self, key: &Key, subject: &Subject) -> bool {
        lock(&self.refused).iter().any(|it| it.0 == *key && it.1.digest == subject.digest)
    }

    fn approved_for_good(&self, key: &Key) -> Option<Subject> {
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
            self.fault(format!("an approval could not be recorded: {error}"));
        }
    }

    /// The approvals that are remembered, the newest last.
    pub fn remembered(&self) -> Vec<RememberedApproval> {
        self.all().iter().map(Approval::remembered).collect()
    }

    /// Takes back the remembered approvals that are meant, and returns them.
    pub fn revoke(
        &self,
        is_meant: impl Fn(&RememberedApproval) -> bool,
        by: &str,
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
            self.note(&AuditEntry {
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
        let _lock = locked(directory)?;
        let mut book = self.open(directory)?;
        change(&mut book.approvals);
        let text = serde_json::to_vec_pretty(&book)?;
        let root = Root::open(directory).map_err(io::Error::other)?;
        root.write(Path::new(BOOK), &text).map_err(io::Error::other)?;
        // Others may see the directory, if it was there before.
        fs::set_permissions(directory.join(BOOK), fs::Permissions::from_mode(0o600))
    }

    /// Records that the file of a project may set what needs approval, as long as its content stays.
    pub fn approve_settings(&self, file: &Path, digest: &str, by: &str) {
        let subject = Subject { digest: digest.to_owned(), ..Subject::default() };
        let key = Key::of_settings(file);
        let what = format!("accept the commands and hosts of {}", key.place);
        let (tool, digest, decision) = ("config", Some(digest), "allowed");
        self.note(&AuditEntry { tool, digest, what: &what, decision, by, ..AuditEntry::default() });
        self.approve(Approval { key, when: now(), by: by.to_owned(), subject });
    }

    /// Whether the file of a project was approved with just this content.
    pub fn has_approved_settings(&self, file: &Path, digest: &str) -> bool {
        self.approved(&Key::of_settings(file)).is_some_and(|it| it.digest == digest)
    }

    /// Records that packages were installed for somebody, and that they may be used as they are locked.
    #[cfg(feature = "http")]
    pub(crate) fn approve_environment(&self, name: &str, key: &str, lock: &str, by: &str) {
        let subject = Subject::of_text(LOCK_FILE, lock);
        let digest = Some(&*subject.digest);
        let what = format!("install packages, environment {key}");
        let (tool, skill, decision) = ("prepare", Some(name), "allowed");
        self.note(&AuditEntry { tool, skill, digest, what: &what, decision, by, sandbox: None });
        let key = Key::of_environment(name, key);
        self.approve(Approval { key, when: now(), by: by.to_owned(), subject });
    }

    /// What an environment was approved with: the digest of its lock file, and the file as long as it is kept.
    pub(crate) fn environment(&self, key: &str) -> Option<(String, Option<String>)> {
        let is_it = |it: &Approval| it.key.kind == Kind::Environment && it.key.place == key;
        let subject = self.all().into_iter().rfind(is_it)?.subject;
        Some((subject.digest.clone(), subject.into_text()))
    }

    /// Every approval that holds, the newest last.
    pub(crate) fn all(&self) -> Vec<Approval> {
        let Some(directory) = &self.directory else { return lock(&self.memory).clone() };
        let read = match open(directory) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                locked(directory).and_then(|_lock| self.open(directory))
            }
            book => book,
        };
        read.map(|it| it.approvals).unwrap_or_else(|error| {
            self.fault(format!("the approvals could not be read: {error}"));
            Vec::new()
        })
    }

    /// Reads the file of approvals, while nobody writes it. One that makes no sense is set aside,
    /// and nothing is approved.
    fn open(&self, directory: &Path) -> io::Result<Book> {
        match open(directory) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let aside = directory.join(format!("{BOOK}.corrupt"));
                fs::rename(directory.join(BOOK), &aside)?;
                let aside = aside.display();
                self.fault(format!(
                    "the approvals were damaged ({error}); they were moved to `{aside}`, and nothing is approved"
                ));
                Ok(Book::default())
            }
            book => book,
        }
    }

    fn fault(&self, text: String) {
        let mut faults = lock(&self.faults);
        // Nobody needs the same words a thousand times.
        if !faults.contains(&text) {
            faults.push(text);
        }
    }
}

/// Makes the directory and keeps others from writing to it.
pub(crate) fn locked(directory: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NO_WAIT)
        .open(directory.join(LOCK))?;
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads the file of approvals; `InvalidData` when it makes no sense.
fn open(directory: &Path) -> io::Result<Book> {
    let mut options = OpenOptions::new();
    let file = match options.read(true).custom_flags(NO_WAIT).open(directory.join(BOOK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Book::default()),
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

/// Whether something belongs to whoever runs this, or to the system, and nobody else can write it.
pub(crate) fn is_own(metadata: &fs::Metadata, others: u32) -> bool {
    let own = [rustix::process::geteuid().as_raw(), 0];
    own.contains(&metadata.uid()) && metadata.mode() & others == 0
}

/// Never waits for a pipe, and follows no link that somebody has put there.
pub(crate) const NO_WAIT: i32 =
    (rustix::fs::OFlags::NONBLOCK.bits() | rustix::fs::OFlags::NOFOLLOW.bits()) as i32;

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

/// The time of now, as it is recorded: `2026-11-15T09:30:00Z`.
pub fn now() -> String {
    time::text(SystemTime::now())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
