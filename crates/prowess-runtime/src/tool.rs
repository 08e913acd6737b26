//! A tool that a model can call.

mod format;

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use prowess::Definition;
use serde_json::Value;

use crate::{
    change::FileChange, commands::Plan, entry::SkillRecord, outcome::Outcome, refusal::Refusal,
    remote_skill::RemoteSkill,
};

pub use self::format::{ToolFormat, simplify_schema};

/// The future of an outcome.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// The future of the preparation of a call.
pub type ReadyFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A tool that a model can call.
///
/// A tool declares the action of a call before performing it, so that the policy can decide. Its
/// outcome is bounded in time and size, and everything it started ends when the future is dropped.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns its name: letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// Returns its description for a model.
    fn description(&self) -> Cow<'_, str>;

    /// Returns its description in one line, for people.
    fn summary(&self) -> String {
        let description = self.description();
        let mut lines = description.lines().map(str::trim);
        lines.find(|it| !it.is_empty()).unwrap_or_default().to_owned()
    }

    /// Returns the JSON schema of its input.
    fn input_schema(&self) -> Value;

    /// Returns the JSON schema of its successful output, if it has one.
    fn output_schema(&self) -> Option<Value> {
        None
    }

    /// Returns aliases of its inputs, each with the actual name.
    fn aliases(&self) -> &[(&str, &str)] {
        &[]
    }

    /// Returns the action of a call with this input; an outcome if the input is invalid.
    fn action(&self, input: &Value) -> Result<Action, Box<Outcome>>;

    /// Prepares such a call once, however long that takes: it is not part of the call.
    fn get_ready<'a>(&'a self, _act: &'a Action, _input: &'a Value) -> ReadyFuture<'a> {
        Box::pin(async {})
    }

    /// Performs exactly the action that [`action`](Self::action) returned for this input: it
    /// contains the authorized content.
    fn perform<'a>(&'a self, action: Action, input: Value) -> ToolFuture<'a>;

    /// Calls the tool without any authorization. Models call it through a [`Toolbox`](crate::Toolbox).
    fn call<'a>(&'a self, input: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            match self.action(&input) {
                Ok(action) => self.perform(action, input).await,
                Err(outcome) => *outcome,
            }
        })
    }

    /// Whether an outcome is the text of a skill; a model reads that between markers.
    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        let _ = outcome;
        false
    }
}

/// The action of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Action {
    /// Returns information about a library or store, and touches nothing else.
    Tell,
    /// Discloses the instructions of a skill.
    Disclose(Box<SkillRecord>),
    /// Discloses a file of a skill.
    Resource {
        /// Its path.
        path: PathBuf,
        /// Its content when it was authorized, which is disclosed.
        bytes: Arc<[u8]>,
    },
    /// Executes a skill.
    Execute(Box<SkillRecord>),
    /// Runs a command.
    Command {
        /// The command, as given.
        line: String,
        /// Its working directory.
        directory: PathBuf,
        /// The preview by the tool; `None` if it may not run anyway.
        preview: Option<CommandPreview>,
    },
    /// Reads a file or lists a directory.
    Read(PathBuf),
    /// Writes a file.
    Write(FileChange),
    /// Sends an HTTP request.
    Fetch {
        /// The method, in upper case.
        method: String,
        /// The URL, as given.
        url: String,
        /// The size of the body in bytes; `None` without a body.
        body: Option<usize>,
    },
    /// Queries a database.
    Query(String),
    /// Starts a server of a skill, which keeps running, or connects to one.
    Start {
        /// The server as a skill of its own, whose definition is its command line, or its URL.
        entry: Box<SkillRecord>,
        /// The name of the server.
        server: String,
        /// Its URL as written, if it is not a program.
        url: Option<String>,
    },
    /// Calls a tool of a server.
    Serve {
        /// The name of the server.
        server: String,
        /// The skill that brings it; `None` if it is configured.
        skill: Option<String>,
        /// The server's name of the tool.
        tool: String,
    },
    /// Starts a server that a project file configures, or connects to it.
    Connect {
        /// Its label.
        server: String,
        /// The command line or the URL.
        line: String,
        /// The file.
        file: PathBuf,
        /// Its URL as written, if it is not a program.
        url: Option<String>,
        /// The files of the project that the command line names, with their digests.
        files: Vec<(PathBuf, String)>,
    },
    /// Discloses the instructions of a remote skill.
    TakeUp(Box<RemoteSkill>),
}

/// A preview of a command, before anybody is asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPreview {
    /// The plan, or why the command may not run.
    pub(crate) plan: Result<Plan, Refusal>,
    /// The resources that it could access, one per line.
    pub reach: Vec<String>,
    /// Whether it would run in a sandbox.
    pub is_sandboxed: bool,
    /// Whether a person has approved this exact command, once it is authorized.
    pub is_agreed: bool,
}

impl Action {
    /// Returns the action of a skill: an instruction is disclosed, any other type is executed.
    pub fn of(entry: SkillRecord) -> Self {
        match entry.definition {
            Definition::Instruction { .. } => Self::Disclose(Box::new(entry)),
            _ => Self::Execute(Box::new(entry)),
        }
    }

    /// Whether it is read-only, so that several may be performed at once.
    pub fn only_looks(&self) -> bool {
        match self {
            Self::Tell | Self::Disclose(_) | Self::Resource { .. } | Self::Read(_) => true,
            Self::Fetch { method, .. } => matches!(method.as_str(), "GET" | "HEAD"),
            Self::Execute(_)
            | Self::Command { .. }
            | Self::Write(_)
            | Self::Query(_)
            | Self::Start { .. }
            | Self::Serve { .. }
            | Self::Connect { .. }
            | Self::TakeUp(_) => false,
        }
    }

    /// Records for a command whether a person has approved it.
    pub(crate) fn set_agreed(&mut self, is_agreed: bool) {
        if let Self::Command { preview: Some(preview), .. } = self {
            preview.is_agreed = is_agreed;
        }
    }

    /// Returns the file or directory that it reads or writes.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Read(path) | Self::Resource { path, .. } => Some(path),
            Self::Write(change) => Some(&change.path),
            _ => None,
        }
    }

    /// Returns the skill that it discloses or executes.
    pub(crate) fn entry(&self) -> Option<&SkillRecord> {
        match self {
            Self::Execute(entry) | Self::Disclose(entry) | Self::Start { entry, .. } => Some(entry),
            _ => None,
        }
    }
}
