//! A tool: something that a model can call.

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

/// What a call comes to, once it is waited for.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// What is done before a call, once it is waited for.
pub type ReadyFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Something that a model can call.
///
/// A tool says what a call would do before it does it, so that the policy can decide. Its answer is
/// bounded in time and size, and whatever it started is dead when the answer is dropped.
pub trait Tool: Send + Sync + fmt::Debug {
    /// What it is called by: letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// What it does, for a model.
    fn description(&self) -> Cow<'_, str>;

    /// What it does in one line, for people.
    fn summary(&self) -> String {
        let description = self.description();
        let mut lines = description.lines().map(str::trim);
        lines.find(|it| !it.is_empty()).unwrap_or_default().to_owned()
    }

    /// The JSON schema of its input.
    fn input_schema(&self) -> Value;

    /// The JSON schema of what it gives when all is well, where it promises one.
    fn output_schema(&self) -> Option<Value> {
        None
    }

    /// Other names of its inputs, each with the name that it stands for.
    fn aliases(&self) -> &[(&str, &str)] {
        &[]
    }

    /// Returns what a call with this input would do, or an outcome if the input is invalid.
    ///
    /// It may read files, so [`PlannedCall`](crate::PlannedCall) calls it where blocking is allowed.
    fn action(&self, input: &Value) -> Result<Action, Box<Outcome>>;

    /// Does what has to be done once before it can be called so, however long that takes: it is not part of the call.
    fn get_ready<'a>(&'a self, _act: &'a Action, _input: &'a Value) -> ReadyFuture<'a> {
        Box::pin(async {})
    }

    /// Performs an action that [`action`](Self::action) returned for this input, and no other: the action has with it
    /// the content that was authorized.
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

    /// Whether an outcome of it is what a skill says; a model reads that between markers.
    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        let _ = outcome;
        false
    }
}

/// What a call would do to the world.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Action {
    /// It tells what is in a library or store, and touches nothing else.
    Tell,
    /// It tells the instructions of a skill.
    Disclose(Box<SkillRecord>),
    /// It tells a file that a skill brings.
    Resource {
        /// Where it lies.
        path: PathBuf,
        /// What it held when it was looked at, which is what is told.
        bytes: Arc<[u8]>,
    },
    /// It executes a skill.
    Execute(Box<SkillRecord>),
    /// It runs a command.
    Command {
        /// The command, as given.
        line: String,
        /// Where it runs.
        directory: PathBuf,
        /// The command as the tool would run it; `None` if no tool has planned it.
        preview: Option<CommandPreview>,
    },
    /// It reads a file or lists a directory.
    Read(PathBuf),
    /// It writes a file.
    Write(FileChange),
    /// It asks a server for something, or sends it something.
    Fetch {
        /// In capitals.
        method: String,
        /// The address, as given.
        url: String,
        /// How many bytes it sends as a body; nothing where it sends none.
        body: Option<usize>,
    },
    /// It asks a database.
    Query(String),
    /// It starts a server that a skill brings, which goes on running, or connects to one.
    Start {
        /// The server as a skill of its own: what is executed is its command line, or its address.
        entry: Box<SkillRecord>,
        /// What the server is called.
        server: String,
        /// Where it is, if it is no program; as it is written.
        url: Option<String>,
    },
    /// It asks a server that a skill brought, or that was set.
    Serve {
        /// What the server is called.
        server: String,
        /// The skill that brought it; nothing if somebody has set it.
        skill: Option<String>,
        /// What the server calls the tool.
        tool: String,
    },
    /// It starts a server that a file of a project sets, or connects to it.
    Connect {
        /// Its label.
        server: String,
        /// What would run or be asked.
        line: String,
        /// The file.
        file: PathBuf,
        /// Where it is, if it is no program; as it is written.
        url: Option<String>,
    },
    /// It tells the instructions of a skill that a server offers.
    TakeUp(Box<RemoteSkill>),
}

/// A command as it would run. This plan is authorized, and then it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPreview {
    /// The plan, or why the command may not run.
    pub(crate) plan: Result<Plan, Refusal>,
    /// What it could reach, one line each.
    pub reach: Vec<String>,
    /// Whether it would run in a sandbox.
    pub is_sandboxed: bool,
    /// Whether a person has agreed to exactly this command, once it was let pass.
    pub is_agreed: bool,
}

impl Action {
    /// What it is to execute a skill: an instruction is told, any other one runs.
    pub fn of(entry: SkillRecord) -> Self {
        match entry.definition {
            Definition::Instruction { .. } => Self::Disclose(Box::new(entry)),
            _ => Self::Execute(Box::new(entry)),
        }
    }

    /// Whether it changes nothing, wherever, so that several may be done side by side.
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

    /// Notes whether a person has agreed to it, for a command.
    pub(crate) fn set_agreed(&mut self, is_agreed: bool) {
        if let Self::Command { preview: Some(preview), .. } = self {
            preview.is_agreed = is_agreed;
        }
    }

    /// The file or directory that it reads or writes.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Read(path) | Self::Resource { path, .. } => Some(path),
            Self::Write(change) => Some(&change.path),
            _ => None,
        }
    }

    /// The skill that it tells or whose files it runs.
    pub(crate) fn entry(&self) -> Option<&SkillRecord> {
        match self {
            Self::Execute(entry) | Self::Disclose(entry) | Self::Start { entry, .. } => Some(entry),
            _ => None,
        }
    }
}
