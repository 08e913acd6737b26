//! The action of a call: what it would do.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use prowess::Definition;

use crate::{
    change::{FileChange, FileState},
    commands::Plan,
    entry::SkillRecord,
    refusal::Refusal,
    remote_skill::RemoteSkill,
};

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

    /// Describes it for a person, in words that follow “to”, such as ``read `notes.txt` ``.
    /// Approvals are saved under these words.
    pub fn describe(&self) -> String {
        match self {
            Self::Tell => "tell what there is".to_owned(),
            Self::Disclose(entry) => format!("use the skill `{}`", entry.manifest.name),
            Self::Execute(entry) => format!("run the skill `{}`", entry.manifest.name),
            Self::Command { line, directory, .. } => {
                format!("run `{line}` in `{}`", directory.display())
            }
            Self::Read(path) | Self::Resource { path, .. } => format!("read `{}`", path.display()),
            Self::Write(FileChange { path, before, .. }) => {
                let verb = match before {
                    FileState::Unknown => "write",
                    FileState::Missing => "create",
                    FileState::Bytes(_) | FileState::TooLarge(_) => "overwrite",
                };
                format!("{verb} `{}`", path.display())
            }
            Self::Fetch { method, url, body: None } => format!("send {method} to `{url}`"),
            Self::Fetch { method, url, body: Some(size) } => {
                format!("send {method} with a body of {size} bytes to `{url}`")
            }
            Self::Query(sql) => format!("ask the database `{sql}`"),
            Self::Start { entry, server, url } => {
                let of = format!("the server `{server}` of the skill `{}`", entry.manifest.name);
                match url {
                    None => format!("start {of}"),
                    Some(url) => format!("connect to {of} at `{url}`"),
                }
            }
            Self::Serve { server, skill: Some(skill), tool } => {
                format!("use `{tool}` of the server `{server}` that the skill `{skill}` brought")
            }
            Self::Serve { server, tool, .. } => format!("use `{tool}` of the server `{server}`"),
            Self::Connect { server, file, url, .. } => {
                let of = format!("the server `{server}` that `{}` sets", file.display());
                match url {
                    None => format!("start {of}"),
                    Some(url) => format!("connect to {of} at `{url}`"),
                }
            }
            Self::TakeUp(skill) => {
                format!(
                    "use the skill `{}` that the server `{}` offers",
                    skill.address, skill.server
                )
            }
        }
    }

    /// Whether it only reads skills and files of this machine: nothing changes, and nothing is sent.
    pub fn only_reads(&self) -> bool {
        match self {
            Self::Tell | Self::Disclose(_) | Self::Resource { .. } | Self::Read(_) => true,
            Self::Execute(_)
            | Self::Command { .. }
            | Self::Write(_)
            | Self::Fetch { .. }
            | Self::Query(_)
            | Self::Start { .. }
            | Self::Serve { .. }
            | Self::Connect { .. }
            | Self::TakeUp(_) => false,
        }
    }

    /// Whether it changes nothing anywhere, so that several may be performed at once.
    pub fn only_looks(&self) -> bool {
        match self {
            Self::Fetch { method, .. } => matches!(method.as_str(), "GET" | "HEAD"),
            action => action.only_reads(),
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
