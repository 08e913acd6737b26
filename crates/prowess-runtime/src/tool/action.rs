//! The action of a call: what it would do.

use std::{
    borrow::Cow,
    iter,
    path::{Path, PathBuf},
    sync::Arc,
};

use prowess::{Definition, Type, spec::SKILL_FILE};

use super::{
    USE_SKILL,
    action_facts::{
        ActionFacts, ApprovalFacts, AuditMode, DefaultRuling, Effect, InputDisplay, ListedAs,
        PolicySetting, QuestionContent, RulePath, SubjectSource,
    },
    request_url::{origin, without_secrets},
};
use crate::{
    approval_store::ApprovalKind,
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
    /// Sends mail: an action that nothing but the strictest facts is known of.
    #[cfg(test)]
    Mail {
        /// The address.
        to: String,
    },
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

    /// Returns everything that policy, authorizer, approvals and audit log need to know of it.
    pub(crate) fn facts(&self) -> ActionFacts<'_> {
        match self {
            Self::Tell => {
                let words = "list skills".to_owned();
                let approval = ApprovalFacts::of_call(&words);
                ActionFacts {
                    effect: Effect::Reads,
                    logged: AuditMode::Never,
                    default: DefaultRuling::Allow,
                    listed_as: ListedAs::Nothing,
                    subject: SubjectSource::Words,
                    input: InputDisplay::Nowhere,
                    ..ActionFacts::remembered(words, approval)
                }
            }
            Self::Disclose(entry) => {
                let name = &*entry.manifest.name;
                let is_instruction = entry.manifest.kind == Type::Instruction;
                let (default, approval) = match is_instruction {
                    // Instructions are asked about as if they ran. The text of any other skill has
                    // no effect until the skill is executed.
                    true if entry.manifest.requires_approval => (REQUIRED, of_skill(entry)),
                    true => (DefaultRuling::AskIfChanged, of_skill(entry)),
                    // Its disclosure is not its execution.
                    false => (DefaultRuling::Allow, of_text(entry)),
                };
                ActionFacts {
                    effect: Effect::Reads,
                    logged: AuditMode::WithSubject,
                    default,
                    listed_as: ListedAs::Nothing,
                    input: InputDisplay::Nowhere,
                    rule_path: document(entry),
                    ..of_record(format!("use the skill `{name}`"), approval, entry)
                }
            }
            Self::Execute(entry) => {
                let name = &*entry.manifest.name;
                ActionFacts {
                    default: match entry.manifest.requires_approval {
                        // A skill cannot exempt another one that requires approval itself.
                        true => REQUIRED,
                        false => DefaultRuling::AskIfChangedOrAlways,
                    },
                    listed_as: ListedAs::Skill(name),
                    rule_path: document(entry),
                    runs_script: matches!(entry.definition, Definition::Script { .. }),
                    ..of_record(format!("run the skill `{name}`"), of_skill(entry), entry)
                }
            }
            Self::Command { line, directory, preview } => {
                let words = format!("run `{line}` in `{}`", directory.display());
                let approval = ApprovalFacts::of_call(&words)
                    .covering_specially("this command in this directory");
                ActionFacts {
                    default: DefaultRuling::AskIfAlways,
                    listed_as: ListedAs::Command,
                    subject: SubjectSource::Command { line, directory, preview: preview.as_ref() },
                    content: QuestionContent::Text(line),
                    input: InputDisplay::Nowhere,
                    how_to_allow: "add it to `policy.commands` in your own settings",
                    ..ActionFacts::remembered(words, approval)
                }
            }
            Self::Read(path) => {
                ActionFacts { listed_as: ListedAs::FileToRead(path), ..of_read_file(path) }
            }
            Self::Resource { path, .. } => {
                ActionFacts { listed_as: ListedAs::Nothing, ..of_read_file(path) }
            }
            Self::Write(change) => {
                let FileChange { path, before, after, .. } = change;
                let verb = match before {
                    FileState::Unknown => "write",
                    FileState::Missing => "create",
                    FileState::Bytes(_) | FileState::TooLarge(_) => "overwrite",
                };
                let words = format!("{verb} `{}`", path.display());
                // By any tool, with any content.
                let approval = ApprovalFacts::new(ApprovalKind::Write, "write", text(path))
                    .covering("this file");
                ActionFacts {
                    default: DefaultRuling::AskIfAlways,
                    setting: PolicySetting::Writes(path),
                    listed_as: ListedAs::FileToWrite(path),
                    rule_path: RulePath::File(path),
                    subject: SubjectSource::Parts(vec![bytes(path)]),
                    content: QuestionContent::Change(change),
                    input: match after {
                        Some(_) => InputDisplay::Nowhere,
                        None => InputDisplay::InQuestion,
                    },
                    how_to_allow: ALLOW_PATH,
                    ..ActionFacts::remembered(words, approval)
                }
            }
            Self::Fetch { method, url, body } => {
                let words = match body {
                    None => format!("send {method} to `{url}`"),
                    Some(size) => {
                        format!("send {method} with a body of {size} bytes to `{url}`")
                    }
                };
                let facts = |approval| ActionFacts {
                    log_words: Some(words.replace(&**url, &without_secrets(url))),
                    default: DefaultRuling::AskIfAlways,
                    listed_as: ListedAs::Url(url),
                    input: InputDisplay::InQuestion,
                    how_to_allow: "add the host to `policy.hosts` in your own settings",
                    ..ActionFacts::remembered(words.clone(), approval)
                };
                let effect = match method.as_str() {
                    "GET" | "HEAD" => Some(Effect::Looks),
                    "OPTIONS" => Some(Effect::Acts),
                    _ => None,
                };
                // A request that is read-only.
                if let Some(effect) = effect {
                    return ActionFacts {
                        effect,
                        subject: SubjectSource::Words,
                        ..facts(ApprovalFacts::of_call(&words))
                    };
                }
                let host = origin(url);
                let covered = format!("every request to `{host}`");
                let approval = ApprovalFacts::new(ApprovalKind::Send, "send", host.clone());
                ActionFacts {
                    setting: PolicySetting::Sends,
                    subject: SubjectSource::Parts(vec![Cow::Owned(host.into_bytes())]),
                    ..facts(approval.covering(covered))
                }
            }
            Self::Query(sql) => {
                let words = format!("query the database with `{sql}`");
                let approval = ApprovalFacts::of_call(&words);
                ActionFacts {
                    log_words: Some("query the database".to_owned()),
                    default: DefaultRuling::AskIfAlways,
                    subject: SubjectSource::Words,
                    input: InputDisplay::InQuestion,
                    ..ActionFacts::remembered(words, approval)
                }
            }
            Self::Start { entry, server, url } => {
                let skill = &entry.manifest.name;
                let of = format!("the server `{server}` of the skill `{skill}`");
                let (words, log_words) = connection(&of, url.as_deref());
                let name = format!("{skill}/{server}");
                let approval = ApprovalFacts::new(ApprovalKind::Server, name, folder(entry));
                ActionFacts {
                    log_words,
                    // A skill cannot exempt its own servers.
                    default: DefaultRuling::Ask(match url {
                        Some(_) => LEAVES,
                        None => "the skill wants to start a program",
                    }),
                    listed_as: ListedAs::Server,
                    input: InputDisplay::InQuestion,
                    ..of_record(words, approval, entry)
                }
            }
            Self::Serve { server, skill, tool } => {
                let of = skill.as_ref().map(|it| format!(" of the skill `{it}`"));
                let of = of.unwrap_or_default();
                let words = format!("use `{tool}` of the server `{server}`{of}");
                let approval = ApprovalFacts::of_call(&words);
                ActionFacts {
                    default: DefaultRuling::AskIfAlways,
                    listed_as: ListedAs::ServerTool,
                    skill: skill.as_deref(),
                    subject: SubjectSource::Words,
                    ..ActionFacts::remembered(words, approval)
                }
            }
            Self::Connect { server, line, file, url, files } => {
                let of = format!("the server `{server}` that `{}` configures", file.display());
                let (words, log_words) = connection(&of, url.as_deref());
                let digests = files
                    .iter()
                    .flat_map(|(path, digest)| [bytes(path), Cow::Borrowed(digest.as_bytes())]);
                let parts = iter::once(Cow::Borrowed(line.as_bytes())).chain(digests).collect();
                let approval = ApprovalFacts::new(ApprovalKind::Server, server, text(file));
                ActionFacts {
                    log_words,
                    default: DefaultRuling::Ask(match url {
                        Some(_) => LEAVES,
                        None => "this project's file wants to start a program",
                    }),
                    subject: SubjectSource::Parts(parts),
                    content: QuestionContent::Text(line),
                    input: InputDisplay::InQuestion,
                    ..ActionFacts::remembered(words, approval)
                }
            }
            Self::TakeUp(skill) => {
                let RemoteSkill { address, server, .. } = &**skill;
                let words = format!("use the skill `{address}` that the server `{server}` offers");
                // The same URI is another skill on another server.
                let name = format!("{server}:{}", skill.name);
                let by = skill.set_by.as_deref().unwrap_or_default();
                let place = format!("{} {by}", skill.uri);
                let mut approval = ApprovalFacts::new(ApprovalKind::Skill, name, place);
                if address.split(':').all(is_plain_name) {
                    approval.command = format!("prowess servers show {address} --yes");
                }
                ActionFacts {
                    // It is written by the server, which may change it at any time.
                    default: DefaultRuling::Ask(
                        "it was written by a server, and models follow it, even when running commands",
                    ),
                    listed_as: ListedAs::Nothing,
                    skill: Some(address),
                    subject: SubjectSource::RemoteSkill(skill),
                    content: QuestionContent::RemoteSkill(skill),
                    input: InputDisplay::InQuestion,
                    ..ActionFacts::remembered(words, approval)
                }
            }
            #[cfg(test)]
            Self::Mail { to } => ActionFacts::strict(format!("send mail to `{to}`")),
        }
    }

    /// Describes it for a person, in words that follow “to”: `read `notes.txt``. Approvals are saved
    /// under these words.
    pub fn describe(&self) -> String {
        self.facts().words
    }

    /// Whether it only reads skills and files of this machine: nothing changes, and nothing is sent.
    pub fn only_reads(&self) -> bool {
        self.facts().effect == Effect::Reads
    }

    /// Whether it changes nothing anywhere, so that several may be performed at once.
    pub fn only_looks(&self) -> bool {
        matches!(self.facts().effect, Effect::Reads | Effect::Looks)
    }

    /// Records for a command whether a person has approved it.
    pub(crate) fn set_agreed(&mut self, is_agreed: bool) {
        if let Self::Command { preview: Some(preview), .. } = self {
            preview.is_agreed = is_agreed;
        }
    }
}

/// The default for a skill that requires approval.
const REQUIRED: DefaultRuling = DefaultRuling::Ask("the skill requires approval");
/// The reason to ask about a connection to a server.
const LEAVES: &str = "data passed to its tools leaves this machine";
/// The hint about a file.
const ALLOW_PATH: &str = "add a rule that allows this `path` to your own settings";

/// Returns the facts of an action with a skill, which is approved with all of its files.
fn of_record(words: String, approval: ApprovalFacts, entry: &SkillRecord) -> ActionFacts<'_> {
    ActionFacts {
        skill: Some(&entry.manifest.name),
        subject: SubjectSource::Skill(entry),
        content: QuestionContent::Definition(entry),
        ..ActionFacts::remembered(words, approval)
    }
}

/// Returns the facts of reading a file.
fn of_read_file(path: &Path) -> ActionFacts<'_> {
    let words = format!("read `{}`", path.display());
    let approval = ApprovalFacts::new(ApprovalKind::Read, "read", text(path));
    ActionFacts {
        effect: Effect::Reads,
        logged: AuditMode::WithSubject,
        default: DefaultRuling::Allow,
        setting: PolicySetting::SecretReads(path),
        rule_path: RulePath::File(path),
        subject: SubjectSource::Parts(vec![bytes(path)]),
        input: InputDisplay::Nowhere,
        how_to_allow: ALLOW_PATH,
        ..ActionFacts::remembered(words, approval.covering_specially("this file"))
    }
}

/// Returns how approvals to run a skill are remembered.
fn of_skill(entry: &SkillRecord) -> ApprovalFacts {
    let name = &*entry.manifest.name;
    let mut approval = ApprovalFacts::new(ApprovalKind::Skill, name, folder(entry));
    let is_instruction = matches!(entry.definition, Definition::Instruction { .. });
    match name.split_once('/') {
        _ if !is_plain_name(name) => {}
        None => approval.command = format!("prowess run {name} --yes"),
        Some((name, script)) if !is_instruction => {
            approval.command = format!("prowess run {name} --script {script} --yes");
        }
        Some(_) => {}
    }
    approval
}

/// Returns how approvals to disclose the text of a skill are remembered.
fn of_text(entry: &SkillRecord) -> ApprovalFacts {
    let name = &*entry.manifest.name;
    let full = format!("{USE_SKILL} {name}");
    let mut approval = ApprovalFacts::new(ApprovalKind::Call, full, folder(entry));
    if is_plain_name(name) {
        approval.command = format!(r#"prowess tool {USE_SKILL} '{{"name":"{name}"}}' --yes"#);
    }
    approval
}

/// Returns the words for starting a server or connecting to it, and those for the audit log.
fn connection(server: &str, url: Option<&str>) -> (String, Option<String>) {
    match url {
        None => (format!("start {server}"), None),
        Some(url) => {
            let words = format!("connect to {server} at `{url}`");
            let log_words = words.replace(url, &without_secrets(url));
            (words, Some(log_words))
        }
    }
}

/// Whether a name needs no quotes in a shell, and is not an option.
fn is_plain_name(name: &str) -> bool {
    name.split('/').all(|it| {
        !it.starts_with('-')
            && it.bytes().all(|it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
    })
}

fn document(entry: &SkillRecord) -> RulePath<'_> {
    entry.folder.as_ref().map_or(RulePath::None, |it| RulePath::Document(it.join(SKILL_FILE)))
}

fn folder(entry: &SkillRecord) -> String {
    entry.folder.as_ref().map(|it| text(it)).unwrap_or_default()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn bytes(path: &Path) -> Cow<'_, [u8]> {
    Cow::Borrowed(path.as_os_str().as_encoded_bytes())
}
