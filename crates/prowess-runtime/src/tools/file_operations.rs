//! `file_operations`: reads, writes and lists files inside the roots.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use prowess::lock;
use prowess_sandbox::{DirectoryEntry, FileType, Links, RootError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{blocking, input, schema};
use crate::sys::PermissionsExt as _;
use crate::{
    change::{FileChange, FileState},
    change_history::{ChangeHistory, LARGEST},
    content::{FileChunk, Page},
    digest::digest,
    outcome::{Outcome, OutcomeStatus},
    roots::{Place, Roots},
    tool::{Action, Tool, ToolFuture},
};

/// The tool `file_operations`.
#[derive(Debug)]
pub struct FileOperations {
    roots: Arc<Roots>,
    history: Option<ChangeHistory>,
}

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The operation
    operation: Operation,
    /// The file or directory: relative to the working directory, or absolute
    path: String,
    /// For `write`: the new content of the file
    content: Option<String>,
    /// For `write`: the SHA-256 of the current content, as returned by `read` and `write`, or `none`
    /// for a new file; nothing is written if it differs
    expected: Option<String>,
    /// For `read`: byte offset to start from; for `list`: entries to skip
    #[serde(default)]
    offset: u64,
    /// For `read`: maximum number of bytes; for `list`: maximum number of entries
    limit: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Operation {
    /// Read a file, or a part of it
    Read,
    /// Write a file atomically, and create missing directories
    Write,
    /// List a directory
    List,
}

/// The maximum and the default number of bytes that one call returns: as many as a model gets in
/// one result.
const BYTES: (u64, u64) = (256 * 1024, 24 * 1024);
/// The maximum and the default number of entries of a directory.
const ENTRIES: (u64, u64) = (1000, 200);
/// The maximum number of skipped entries.
const MAX_OFFSET: u64 = 100_000;
/// Locked while a file is checked and written.
static WRITING: Mutex<()> = Mutex::new(());
/// The maximum size of a file that is written, or compared before that.
const MAX_SIZE: u64 = LARGEST;

impl FileOperations {
    /// Creates the tool for these directories.
    pub fn new(roots: Arc<Roots>) -> Self {
        Self { roots, history: None }
    }

    /// Sets the history for the previous contents of files. Without one, nothing is saved.
    #[must_use]
    pub fn with_history(self, history: ChangeHistory) -> Self {
        Self { history: Some(history), ..self }
    }

    /// Returns the current and the new content of a file, for the approval.
    fn change(&self, input: &Input) -> Result<FileChange, Box<Outcome>> {
        let place = self.roots.find_writable(&input.path)?;
        // Normalized, so that the same file always has the same path.
        let path: PathBuf = place.absolute().components().collect();
        let before =
            read_state(&place).map_err(|error| self.roots.to_outcome(&input.path, &error))?;
        let after = input.content.as_ref().map(|it| it.as_bytes().into());
        Ok(FileChange { path, before, after })
    }
}

impl Tool for FileOperations {
    fn name(&self) -> &str {
        "file_operations"
    }

    fn description(&self) -> Cow<'_, str> {
        "Read, write and list files in the working directory and the configured directories. `read` \
         returns `next_offset` if there is more; binary content is base64."
            .into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        let input: Input = input(given)?;
        Ok(match input.operation {
            Operation::Read | Operation::List => {
                Action::Read(self.roots.find_existing(&input.path)?.absolute())
            }
            Operation::Write => Action::Write(self.change(&input)?),
        })
    }

    /// Performs an action. Writes a file only if it still has the content of the authorization.
    fn perform<'a>(&'a self, action: Action, given: Value) -> ToolFuture<'a> {
        let (roots, history) = (self.roots.clone(), self.history.clone());
        let (before, authorized) = match action {
            Action::Write(change) => (change.before.digest(), None),
            Action::Read(path) => (None, Some(path)),
            _ => (None, None),
        };
        Box::pin(blocking(move || {
            let input: Input = input(&given)?;
            match input.operation {
                Operation::Read => {
                    read(&roots, &input.path, input.offset, input.limit, authorized.as_deref())
                }
                Operation::Write => write(&roots, &input, before.as_deref(), history.as_ref()),
                Operation::List => list(&roots, &input),
            }
        }))
    }
}

/// Returns the current content of a file that is to be written.
fn read_state(place: &Place<'_>) -> Result<FileState, RootError> {
    let file = match place.root.file(&place.path, Links::Never) {
        Err(error) if error.is_missing() => return Ok(FileState::Missing),
        file => file?,
    };
    let io = |source| RootError::Io { path: place.path.clone(), source };
    let size = file.metadata().map_err(io)?.len();
    if size > MAX_SIZE {
        return Ok(FileState::TooLarge(size));
    }
    let mut bytes = Vec::new();
    file.take(MAX_SIZE).read_to_end(&mut bytes).map_err(io)?;
    Ok(FileState::Bytes(bytes.into()))
}

/// Reads a part of a file, if its path still leads to the authorized file.
pub(super) fn read(
    roots: &Roots,
    path: &str,
    offset: u64,
    limit: Option<u64>,
    authorized: Option<&Path>,
) -> Result<Outcome, Box<Outcome>> {
    let page = page(limit)?;
    let place = roots.find_existing(path)?;
    if authorized.is_some_and(|it| it != place.absolute()) {
        return Err(path_replaced(path));
    }
    let mut file = place.root.file(&place.path, Links::Never).map_err(|error| {
        let outcome = roots.to_outcome(path, &error);
        let is_directory = place.root.directory(&place.path, Links::Never).is_ok();
        if is_directory { Box::new(outcome.hint("it is a directory: list it")) } else { outcome }
    })?;
    let size = file.metadata().map_err(|error| read_failure(path, &error))?.len();
    let chunk = FileChunk::read(&mut file, offset, page);
    let chunk = chunk.map_err(|error| read_failure(path, &error))?;
    Ok(Outcome::ok(with_path(path, chunk.into_output(size))))
}

/// Creates the outcome for a path that now leads elsewhere.
pub(super) fn path_replaced(path: &str) -> Box<Outcome> {
    let message = format!("`{path}` was replaced by another file");
    Box::new(Outcome::bad(OutcomeStatus::Refused, message).hint("try again"))
}

/// The reason why a file is not written.
enum WriteRefusal {
    /// It differs from the expected content; its digest, if it exists.
    Unexpected(Option<String>),
    /// It has changed since the authorization.
    Changed,
    /// Its content could not be saved.
    NotSaved(io::Error),
}

fn write(
    roots: &Roots,
    input: &Input,
    before: Option<&str>,
    history: Option<&ChangeHistory>,
) -> Result<Outcome, Box<Outcome>> {
    let path = &*input.path;
    let invalid = |message: String| Box::new(Outcome::bad(OutcomeStatus::Invalid, message));
    let content =
        input.content.as_ref().ok_or_else(|| invalid("`write` needs `content`".to_owned()))?;
    if content.len() as u64 > MAX_SIZE {
        return Err(invalid(format!("`content` has more than {MAX_SIZE} bytes")));
    }
    // One file at a time: concurrent writes would not see each other's parts of a repository.
    let _one = lock(&WRITING);
    let place = roots.find_writable(path)?;
    let absolute: PathBuf = place.absolute().components().collect();
    // The folders are created before the previous content is looked at.
    let new_folders =
        absolute.ancestors().skip(1).take_while(|it| it.symlink_metadata().is_err()).count();
    let mut refusal = None;
    let mut saved = None;
    let written = place.root.write_if(&place.path, content.as_bytes(), |old| {
        let expected = input.expected.as_deref();
        match check_and_save(old, expected, before, history, (&absolute, new_folders), content) {
            Ok(time) => saved = time,
            Err(WriteRefusal::NotSaved(error)) if history.is_none() => return Err(error),
            Err(why) => refusal = Some(why),
        }
        Ok(refusal.is_none())
    });
    // A failed write need not be undone.
    if !matches!(written, Ok(true))
        && let (Some(history), Some(time)) = (history, saved)
    {
        history.forget(time);
    }
    written.map_err(|error| roots.to_outcome(path, &error))?;
    if let Some(refusal) = refusal {
        return Err(refusal.outcome(path));
    }
    let answer =
        json!({ "path": path, "size": content.len(), "sha256": digest(content.as_bytes()) });
    Ok(Outcome::ok(answer))
}

/// Checks that a file may be overwritten, and saves its content and the number of folders that are
/// created for it. Returns the time of the record in the history.
fn check_and_save(
    old: Option<File>,
    expected: Option<&str>,
    before: Option<&str>,
    history: Option<&ChangeHistory>,
    (path, new_folders): (&Path, usize),
    content: &str,
) -> Result<Option<u64>, WriteRefusal> {
    if expected.is_none() && before.is_none() && history.is_none() {
        return Ok(None);
    }
    let mode = old.as_ref().map(|it| it.metadata().map(|it| it.permissions().mode())).transpose();
    let mode = mode.map_err(WriteRefusal::NotSaved)?;
    let bytes = old.map(read_bytes).transpose().map_err(WriteRefusal::NotSaved)?;
    let is = bytes.as_deref().map(digest);
    let is_it = |wanted: &str| is.as_deref().unwrap_or("none").eq_ignore_ascii_case(wanted);
    if expected.is_some_and(|it| !is_it(it)) {
        return Err(WriteRefusal::Unexpected(is));
    }
    if before.is_some_and(|it| !is_it(it)) {
        return Err(WriteRefusal::Changed);
    }
    // A write without a change need not be undone.
    let is_same = bytes.as_deref() == Some(content.as_bytes());
    let Some(history) = history.filter(|_| !is_same) else { return Ok(None) };
    let previous = bytes.as_deref().zip(mode);
    match history.keep_with_folders(path, previous, content.as_bytes(), new_folders) {
        Ok(time) => Ok(Some(time)),
        // A new file has no previous content to lose.
        Err(_) if bytes.is_none() => Ok(None),
        Err(error) => Err(WriteRefusal::NotSaved(error)),
    }
}

impl WriteRefusal {
    fn outcome(self, path: &str) -> Box<Outcome> {
        let refused = |message: String| Outcome::bad(OutcomeStatus::Refused, message);
        Box::new(match self {
            Self::Unexpected(is) => {
                let is = is.map_or("there is no such file".to_owned(), |it| {
                    format!("its SHA-256 is {it}")
                });
                refused(format!("`{path}` has changed, so nothing was written"))
                    .hint(format!("read it again: {is}"))
            }
            Self::Changed => refused(format!(
                "`{path}` changed while waiting for approval, so nothing was written"
            ))
            .hint("read it again"),
            Self::NotSaved(error) => refused(format!(
                "the content of `{path}` could not be saved, so nothing was written: {error}"
            )),
        })
    }
}

fn list(roots: &Roots, input: &Input) -> Result<Outcome, Box<Outcome>> {
    let path = &*input.path;
    let limit = check_limit(input.limit, ENTRIES)? as usize;
    if input.offset > MAX_OFFSET {
        let message = format!("`offset` must be at most {MAX_OFFSET}");
        return Err(Outcome::bad(OutcomeStatus::Invalid, message).into());
    }
    let offset = input.offset as usize;
    let place = roots.find_existing(path)?;
    let page = place.root.page(&place.path, Links::Never, offset, limit);
    let page = page.map_err(|error| roots.to_outcome(path, &error))?;
    let entries: Vec<Value> = page.entries.iter().map(entry_to_json).collect();
    let mut answer = Map::new();
    answer.insert("entries".to_owned(), entries.into());
    answer.insert("total".to_owned(), page.total.into());
    if offset + limit < page.total {
        answer.insert("next_offset".to_owned(), (offset + limit).into());
    }
    Ok(Outcome::ok(with_path(path, answer)))
}

fn entry_to_json(listed: &DirectoryEntry) -> Value {
    let name = listed.name.to_string_lossy();
    match listed.kind {
        FileType::RegularFile => json!({ "name": name, "kind": "file", "size": listed.size }),
        FileType::Directory => json!({ "name": name, "kind": "directory" }),
        FileType::Symlink => json!({ "name": name, "kind": "link" }),
        _ => json!({ "name": name, "kind": "special" }),
    }
}

/// Returns an answer that begins with the path as given.
pub(super) fn with_path(path: &str, answer: Map<String, Value>) -> Value {
    let mut all = Map::new();
    all.insert("path".to_owned(), path.into());
    all.extend(answer);
    all.into()
}

/// Reads a file, up to the maximum size.
fn read_bytes(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::other("it is too large"));
    }
    Ok(bytes)
}

/// Returns the page for a requested number of bytes, or the default.
pub(super) fn page(limit: Option<u64>) -> Result<Page, Box<Outcome>> {
    let bytes = check_limit(limit, BYTES)?;
    Ok(Page { bytes, output: limit.map_or(bytes, |_| u64::MAX) })
}

/// Returns a requested limit, or the default.
fn check_limit(limit: Option<u64>, (most, usual): (u64, u64)) -> Result<u64, Box<Outcome>> {
    match limit {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(_) => {
            Err(Outcome::bad(OutcomeStatus::Invalid, format!("`limit` must be from 1 to {most}"))
                .into())
        }
    }
}

fn read_failure(path: &str, error: &io::Error) -> Box<Outcome> {
    Outcome::bad(OutcomeStatus::Failed, format!("cannot read `{path}`: {error}")).into()
}
