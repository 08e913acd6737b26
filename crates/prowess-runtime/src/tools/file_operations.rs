//! `file_operations`: files inside the roots are read, written and listed.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read as _},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{blocking, input, schema};
use crate::{
    content::{Page, Part, digest},
    outcome::{Outcome, Status},
    root::{Links, Listed},
    roots::Roots,
    tool::{Act, Answer, Tool},
};

/// The tool `file_operations`.
#[derive(Debug)]
pub struct FileOperations {
    roots: Arc<Roots>,
}

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What to do
    operation: Operation,
    /// The file or directory: relative to the working directory, or absolute
    path: String,
    /// For `write`: what the file is to hold
    content: Option<String>,
    /// For `write`: the SHA-256 of what the file holds now, as `read` and `write` tell it, or `none`
    /// where there is to be no such file yet; nothing is written if it is another
    expected: Option<String>,
    /// For `read`: the byte to begin with; for `list`: how many entries to leave out
    #[serde(default)]
    offset: u64,
    /// For `read`: how many bytes at most; for `list`: how many entries
    limit: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Operation {
    /// Read a file, or a part of it
    Read,
    /// Write a file, whole or not at all, with the directories that it lies in
    Write,
    /// List a directory
    List,
}

/// The most bytes of a file that one call tells, and how many unless asked for: as many as a model is
/// told of one result, whatever is told beside them.
const BYTES: (u64, u64) = (256 * 1024, 24 * 1024);
/// The same of the entries of a directory.
const ENTRIES: (u64, u64) = (1000, 200);
/// As many entries can be left out before those that are listed.
const MAX_OFFSET: u64 = 100_000;
/// Held while a file is checked and written.
static WRITING: Mutex<()> = Mutex::new(());
/// The largest file that is written, or compared before it is.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

impl FileOperations {
    /// Makes the tool for these directories.
    pub fn new(roots: Arc<Roots>) -> Self {
        Self { roots }
    }
}

impl Tool for FileOperations {
    fn name(&self) -> &str {
        "file_operations"
    }

    fn description(&self) -> Cow<'_, str> {
        "Reads, writes and lists files inside the working directory and the configured directories. \
         `read` tells `next_offset` where a file goes on, and content that is no text in base64."
            .into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn act(&self, given: &Value) -> Result<Act, Box<Outcome>> {
        let input: Input = input(given)?;
        Ok(match input.operation {
            Operation::Read | Operation::List => {
                Act::Read(self.roots.existing(&input.path)?.absolute())
            }
            Operation::Write => Act::Write(self.roots.writable(&input.path)?.absolute()),
        })
    }

    fn call<'a>(&'a self, given: Value) -> Answer<'a> {
        let roots = self.roots.clone();
        Box::pin(blocking(move || {
            let input: Input = input(&given)?;
            match input.operation {
                Operation::Read => read(&roots, &input.path, input.offset, input.limit),
                Operation::Write => write(&roots, &input),
                Operation::List => list(&roots, &input),
            }
        }))
    }
}

/// Reads a part of a file.
pub(super) fn read(
    roots: &Roots,
    path: &str,
    offset: u64,
    limit: Option<u64>,
) -> Result<Outcome, Box<Outcome>> {
    let page = page(limit)?;
    let place = roots.existing(path)?;
    let mut file = place.root.file(&place.path, Links::Never).map_err(|error| {
        let outcome = roots.outcome(path, &error);
        let is_directory = place.root.directory(&place.path, Links::Never).is_ok();
        if is_directory { Box::new(outcome.hint("it is a directory: list it")) } else { outcome }
    })?;
    let mut told = || -> io::Result<_> {
        let size = file.metadata()?.len();
        Ok(Part::read(&mut file, offset, page)?.answer(size))
    };
    Ok(Outcome::ok(about(path, told().map_err(|error| failed(path, &error))?)))
}

fn write(roots: &Roots, input: &Input) -> Result<Outcome, Box<Outcome>> {
    let path = &*input.path;
    let invalid = |message: String| Box::new(Outcome::bad(Status::Invalid, message));
    let content =
        input.content.as_ref().ok_or_else(|| invalid("`write` needs `content`".to_owned()))?;
    if content.len() as u64 > MAX_SIZE {
        return Err(invalid(format!("`content` has more than {MAX_SIZE} bytes")));
    }
    // One file after the other: of several written at once, none would see the others of a repository.
    let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = roots.writable(path)?;
    let mut is = None;
    let is_wanted = |old: Option<File>| {
        let Some(expected) = &input.expected else { return Ok(true) };
        is = old.map(digest_of).transpose()?;
        Ok(is.as_deref().unwrap_or("none").eq_ignore_ascii_case(expected))
    };
    let written = place.root.write_if(&place.path, content.as_bytes(), is_wanted);
    if !written.map_err(|error| roots.outcome(path, &error))? {
        let message = format!("`{path}` is not as expected, so nothing was written");
        let is = is.map_or("there is no such file".to_owned(), |it| format!("its SHA-256 is {it}"));
        return Err(Outcome::bad(Status::Refused, message)
            .hint(format!("read it again: {is}"))
            .into());
    }
    let answer =
        json!({ "path": path, "size": content.len(), "sha256": digest(content.as_bytes()) });
    Ok(Outcome::ok(answer))
}

fn list(roots: &Roots, input: &Input) -> Result<Outcome, Box<Outcome>> {
    let path = &*input.path;
    let limit = within(input.limit, ENTRIES)? as usize;
    if input.offset > MAX_OFFSET {
        let message = format!("`offset` may be {MAX_OFFSET} at most");
        return Err(Outcome::bad(Status::Invalid, message).into());
    }
    let offset = input.offset as usize;
    let place = roots.existing(path)?;
    let page = place.root.page(&place.path, Links::Never, offset, limit);
    let page = page.map_err(|error| roots.outcome(path, &error))?;
    let entries: Vec<Value> = page.entries.iter().map(entry).collect();
    let mut answer = Map::new();
    answer.insert("entries".to_owned(), entries.into());
    answer.insert("total".to_owned(), page.total.into());
    if offset + limit < page.total {
        answer.insert("next_offset".to_owned(), (offset + limit).into());
    }
    Ok(Outcome::ok(about(path, answer)))
}

fn entry(listed: &Listed) -> Value {
    let name = listed.name.to_string_lossy();
    match listed.kind {
        FileType::RegularFile => json!({ "name": name, "kind": "file", "size": listed.size }),
        FileType::Directory => json!({ "name": name, "kind": "directory" }),
        FileType::Symlink => json!({ "name": name, "kind": "link" }),
        _ => json!({ "name": name, "kind": "special" }),
    }
}

/// An answer, with the path as it was given in front.
pub(super) fn about(path: &str, answer: Map<String, Value>) -> Value {
    let mut all = Map::new();
    all.insert("path".to_owned(), path.into());
    all.extend(answer);
    all.into()
}

/// The digest of what a file holds.
fn digest_of(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::other("it is too large to be compared"));
    }
    Ok(digest(&bytes))
}

/// How much of a file is told where so many bytes were asked for, or none were.
pub(super) fn page(limit: Option<u64>) -> Result<Page, Box<Outcome>> {
    let bytes = within(limit, BYTES)?;
    Ok(Page { bytes, told: limit.map_or(bytes, |_| u64::MAX) })
}

/// A limit that was asked for, or the usual one.
fn within(limit: Option<u64>, (most, usual): (u64, u64)) -> Result<u64, Box<Outcome>> {
    match limit {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(_) => {
            Err(Outcome::bad(Status::Invalid, format!("`limit` is to be from 1 to {most}")).into())
        }
    }
}

fn failed(path: &str, error: &io::Error) -> Box<Outcome> {
    Outcome::bad(Status::Failed, format!("cannot read `{path}`: {error}")).into()
}
