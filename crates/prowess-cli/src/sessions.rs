//! Session files and their names.

use std::{
    cmp::Reverse,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    process,
    time::SystemTime,
};

use anyhow::{Context as _, Result};
use prowess::{did_you_mean, nearest};
use prowess_agent::Session;
use prowess_runtime::sys::DirBuilderExt as _;
use prowess_runtime::{files::Journal, text::timestamp};
use serde_json::Value as Json;

use crate::{cli_error::CliError, completion, host, input, printer::Printer};

/// The options that choose a session.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Session")]
pub(crate) struct SessionArgs {
    /// Save the conversation under this name, or in this file if it contains `/` or ends in `.jsonl`; continue it
    /// if it exists
    #[arg(long, value_name = "NAME", conflicts_with = "resume", add = completion::sessions())]
    session: Option<String>,
    /// Continue the session with this name, or the last one
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", add = completion::sessions())]
    resume: Option<String>,
    /// Do not save the conversation
    #[arg(long, conflicts_with_all = ["session", "resume"])]
    no_session: bool,
}

/// A session, and the name by which it can be resumed; `None` if it is not saved.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) session: Session,
    pub(crate) name: Option<String>,
    /// Its file, if the session began here under a generated name.
    fresh: Option<PathBuf>,
}

impl OpenSession {
    /// Creates a session in memory only.
    fn in_memory(session: Session) -> Self {
        Self { session, name: None, fresh: None }
    }

    /// Removes the file of a new session if no message was added.
    pub(crate) fn discard_if_unused(&self) {
        if let Some(path) = self.fresh.as_ref().filter(|_| self.session.turns() == 0) {
            // An empty file that stays behind does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

/// A saved session.
#[derive(Debug)]
pub(crate) struct SavedSession {
    pub(crate) name: String,
    /// The time of its last message.
    pub(crate) changed: SystemTime,
    pub(crate) bytes: u64,
    /// The beginning of its first request.
    pub(crate) begins: String,
}

/// The number of bytes read for the beginning of a session, and of characters shown.
const READ: u64 = 64 * 1024;
const WORDS: usize = 80;
/// The longest name.
const LONGEST: usize = 100;
const ENDING: &str = ".jsonl";

impl SessionArgs {
    /// Returns the file named on the command line; all other sessions are protected anyway.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let name = self.session.as_ref().or(self.resume.as_ref())?;
        session_path(name).ok()
    }

    /// Returns whether an existing session is resumed.
    pub(crate) fn resumes(&self) -> bool {
        self.resume.is_some()
    }

    /// Fails if the session and another file are the same.
    pub(crate) fn check_differs_from(&self, other: Option<&Path>) -> Result<()> {
        let name = self.session.as_ref().or(self.resume.as_ref()).filter(|it| !it.is_empty());
        let Some((name, other)) = name.zip(other) else { return Ok(()) };
        if real_path(&session_path(name)?) != real_path(other) {
            return Ok(());
        }
        let message = format!("`{}` cannot be both the session and the trace", other.display());
        Err(CliError::invalid_input(message).hint("name another file for `--trace`").into())
    }

    /// Opens the session named on the command line; a new one if none was named.
    pub(crate) fn open(&self, keep: usize, printer: &mut Printer) -> Result<OpenSession> {
        if self.no_session {
            return Ok(OpenSession::in_memory(Session::new("none")));
        }
        match (self.session.as_deref(), self.resume.as_deref()) {
            (Some(name), _) => open_session(&session_path(name)?, name),
            (None, Some("")) => {
                let name = latest_session().ok_or_else(no_session_error)?;
                open_session(&session_path(&name)?, &name)
            }
            (None, Some(name)) => {
                let path = session_path(name)?;
                if !path.is_file() {
                    return Err(unknown_session_error(name).into());
                }
                open_session(&path, name)
            }
            (None, None) => Ok(start_session(keep, printer)),
        }
    }
}

impl SessionArgs {
    /// Reads the messages of a session without opening it for writing.
    pub(crate) fn replay(&self) -> Result<OpenSession> {
        let name = match (&self.session, self.resume.as_deref()) {
            (None, None) => return Ok(OpenSession::in_memory(Session::new("none"))),
            (None, Some("")) => latest_session().ok_or_else(no_session_error)?,
            (Some(name), _) => name.clone(),
            (None, Some(name)) => name.to_owned(),
        };
        let path = session_path(&name)?;
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.resumes() => {
                String::new()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(unknown_session_error(&name).into());
            }
            text => text.with_context(|| format!("cannot read `{}`", path.display()))?,
        };
        // A line that was being written when the machine went down is ignored.
        let whole = text.rfind('\n').map_or("", |at| &text[..at]);
        let lines: Vec<String> = whole.lines().map(str::to_owned).collect();
        let session = Session::replay(&name, &lines);
        session
            .with_context(|| format!("cannot resume the session `{name}`"))
            .map(OpenSession::in_memory)
    }
}

/// Returns the path of a file with all links resolved; only those of its folder if it does not
/// exist yet.
fn real_path(path: &Path) -> PathBuf {
    prowess::real_path(path).unwrap_or_else(|_| {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = prowess::real_path(folder.unwrap_or(Path::new(".")));
        folder.unwrap_or_default().join(path.file_name().unwrap_or_default())
    })
}

/// Begins a session with its start time as name, and keeps this many of the sessions with such
/// names. If it cannot be saved, warns and goes on in memory.
pub(crate) fn start_session(keep: usize, printer: &mut Printer) -> OpenSession {
    let when: String = timestamp().chars().filter(char::is_ascii_alphanumeric).collect();
    if keep == 0 {
        return OpenSession::in_memory(Session::new(when));
    }
    let why = match directory() {
        None => "there is no home directory".to_owned(),
        Some(_) => match begin_in_file(&when, keep) {
            Ok(kept) => return kept,
            Err(error) => format!("{error:#}"),
        },
    };
    printer.warning(&format!("this session is not saved: {why}"));
    printer.hint("use `--no-session` to hide this, or set `XDG_STATE_HOME` to another directory");
    OpenSession::in_memory(Session::new(when))
}

/// Begins a session in a file.
fn begin_in_file(when: &str, keep: usize) -> Result<OpenSession> {
    let mut names = (1_u64..).map(|number| format!("{when}-{}", number * u64::from(process::id())));
    let name = names.find(|it| session_path(it).is_ok_and(|it| !it.exists())).unwrap_or_default();
    let path = session_path(&name)?;
    let kept = OpenSession { fresh: Some(path.clone()), ..open_session(&path, &name)? };
    remove_oldest(keep);
    Ok(kept)
}

/// Removes the oldest sessions with generated names, unless they are open.
fn remove_oldest(keep: usize) {
    let mut unnamed: Vec<_> = session_names().into_iter().filter(|it| is_unnamed(it)).collect();
    unnamed.sort_by_key(|it| std::cmp::Reverse(last_changed(it)));
    for path in unnamed.iter().skip(keep).filter_map(|it| session_path(it).ok()) {
        if Journal::open(&path).is_ok() {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns whether a name was generated, which is to say a start time.
fn is_unnamed(name: &str) -> bool {
    let Some((when, number)) = name.split_once('-') else { return false };
    let when = when.strip_suffix('Z').and_then(|it| it.split_once('T'));
    let Some((day, time)) = when.filter(|it| it.0.len() == 8) else { return false };
    let mut numbers = [day, time, number].into_iter();
    numbers.all(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
}

fn open_session(path: &Path, name: &str) -> Result<OpenSession> {
    if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.with_context(|| format!("cannot create `{}`", parent.display()))?;
    }
    let journal = Journal::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            anyhow::anyhow!("the session `{name}` is in use by another process")
        }
        _ => anyhow::Error::new(error).context(format!("cannot open `{}`", path.display())),
    })?;
    let session = Session::open(name, journal)
        .with_context(|| format!("cannot resume the session `{name}`"))?;
    Ok(OpenSession { session, name: Some(name.to_owned()), fresh: None })
}

/// Returns the path of a session.
fn session_path(name: &str) -> Result<PathBuf> {
    if name.contains('/') || name.ends_with(ENDING) {
        return Ok(PathBuf::from(name));
    }
    if name.is_empty()
        || name.len() > LONGEST
        || name.starts_with('.')
        || !name.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_.".contains(c))
    {
        let fault = CliError::invalid_input(format!("`{name}` is not a valid session name"));
        return Err(fault.hint(format!("use up to {LONGEST} letters, digits, `-`, `_` and `.`, or a path that contains `/` or ends in `{ENDING}`")).into());
    }
    let directory = directory().context("there is no home directory to save sessions in")?;
    Ok(directory.join(format!("{name}{ENDING}")))
}

fn directory() -> Option<PathBuf> {
    Some(host::state()?.join("sessions"))
}

/// Returns the session with the newest message.
fn latest_session() -> Option<String> {
    session_names().into_iter().max_by_key(|it| last_changed(it))
}

/// Returns the time of the last message of a session.
fn last_changed(name: &str) -> Option<SystemTime> {
    let metadata = fs::metadata(directory()?.join(format!("{name}{ENDING}"))).ok()?;
    metadata.modified().ok()
}

/// Returns all saved sessions, the newest first.
pub(crate) fn saved_sessions() -> Vec<SavedSession> {
    let mut all: Vec<SavedSession> = session_names()
        .into_iter()
        .filter_map(|name: String| {
            let path = session_path(&name).ok()?;
            let metadata = fs::metadata(&path).ok()?;
            let changed = metadata.modified().ok()?;
            Some(SavedSession {
                begins: first_request(&path),
                changed,
                bytes: metadata.len(),
                name,
            })
        })
        .collect();
    all.sort_by_key(|it| Reverse(it.changed));
    all
}

/// Removes a session, unless it is open.
pub(crate) fn remove(name: &str) -> Result<()> {
    if !session_names().iter().any(|it| it == name) {
        return Err(unknown_session_error(name).into());
    }
    let path = session_path(name)?;
    let _one = open_session(&path, name)?;
    fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", path.display()))
}

/// Returns the beginning of the first request of a session.
fn first_request(path: &Path) -> String {
    let mut bytes = Vec::new();
    let file = input::open(path).ok();
    let _ = file.map(|it| it.take(READ).read_to_end(&mut bytes));
    let lines = bytes.split(|it| *it == b'\n');
    let lines = lines.filter_map(|it| serde_json::from_slice::<Json>(it).ok());
    let said = lines.filter(|it| it["message"]["role"] == "user");
    let text = said.filter_map(|it| it["message"]["content"].as_str().map(str::to_owned)).next();
    let words = text.unwrap_or_default();
    let words: Vec<&str> = words.split_whitespace().take(WORDS).collect();
    words.join(" ").chars().take(WORDS).collect()
}

/// Returns the names of all saved sessions.
fn session_names() -> Vec<String> {
    let entries = directory().and_then(|it| fs::read_dir(it).ok());
    let names =
        entries.into_iter().flatten().filter_map(|it| it.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter_map(|it| it.strip_suffix(ENDING).map(str::to_owned)).collect();
    names.sort();
    names
}

fn no_session_error() -> CliError {
    CliError::invalid_input("there is no session to continue")
}

fn unknown_session_error(name: &str) -> CliError {
    let kept = session_names();
    let fault = CliError::invalid_input(format!("there is no session `{name}`"));
    match nearest(name, kept.iter().map(String::as_str)) {
        Some(near) => fault.hint(did_you_mean(near)),
        None if kept.is_empty() => fault.hint("there are no saved sessions"),
        None => fault.hint(
            "`prowess sessions` lists them; `--resume` without a name continues the last one",
        ),
    }
}
