//! Everything that policy, authorizer, approvals and audit log know of a kind of action.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use super::CommandPreview;
use crate::{
    approval_store::ApprovalKind, approver::Coverage, change::FileChange, entry::SkillRecord,
    remote_skill::RemoteSkill,
};

/// The facts of an action. A new kind of action starts from [`ActionFacts::strict`] and states only
/// what is less strict about it.
#[derive(Debug)]
pub(crate) struct ActionFacts<'a> {
    /// What it does, in words that follow “to”. Approvals are saved under them.
    pub(crate) words: String,
    /// The same for the audit log, if the words may contain secrets.
    pub(crate) log_words: Option<String>,
    /// What it changes.
    pub(crate) effect: Effect,
    /// When it is logged if it is allowed. A refusal is always logged.
    pub(crate) logged: AuditMode,
    /// The ruling if no rule and no setting of its own decides.
    pub(crate) default: DefaultRuling,
    /// The setting of the policy for it, if it has one of its own.
    pub(crate) setting: PolicySetting<'a>,
    /// How skills list it in `allowed-tools`.
    pub(crate) listed_as: ListedAs<'a>,
    /// What the `path` of a rule is compared with.
    pub(crate) rule_path: RulePath<'a>,
    /// The name of the skill that it belongs to.
    pub(crate) skill: Option<&'a str>,
    /// Whether it runs a script, which may connect to the `script_hosts` of the policy.
    pub(crate) runs_script: bool,
    /// What has to be the same for an approval to cover it.
    pub(crate) subject: SubjectSource<'a>,
    /// How an approval is remembered; `None` if every call is asked about.
    pub(crate) approval: Option<ApprovalFacts>,
    /// Whether a person must answer every question about it, rather than a flag such as `--yes`.
    pub(crate) needs_person: bool,
    /// The content that a question shows.
    pub(crate) content: QuestionContent<'a>,
    /// Where the input of the tool is shown.
    pub(crate) input: InputDisplay,
    /// How to allow it without a question, for a hint.
    pub(crate) how_to_allow: &'static str,
}

/// What an action changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only reads skills and files of this machine: nothing changes, and nothing is sent.
    Reads,
    /// It changes nothing anywhere, but sends a request.
    Looks,
    /// It may change or send anything.
    Acts,
}

/// When an allowed action is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditMode {
    /// Never: it returns information only.
    Never,
    /// If the decision depends on its content.
    WithSubject,
    /// Each time.
    Always,
}

/// The ruling if no rule and no setting of its own decides, unless `approvals` is `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultRuling {
    /// It is asked about for this reason, in words that follow “because”. No skill can exempt it.
    Ask(&'static str),
    /// It is asked about if something else was approved under its name before.
    AskIfChanged,
    /// The same, or if `approvals` is `always`. No skill can exempt it.
    AskIfChangedOrAlways,
    /// It is asked about if `approvals` is `always`, unless an active skill lists it.
    AskIfAlways,
    /// It is allowed.
    Allow,
}

/// The setting of the policy for an action.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PolicySetting<'a> {
    /// It has no setting of its own.
    None,
    /// `writes`, for this file.
    Writes(&'a Path),
    /// `secret_reads`, for this file.
    SecretReads(&'a Path),
    /// `sends`.
    Sends,
}

/// How skills list an action in `allowed-tools`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListedAs<'a> {
    /// Not at all, because it only returns information or the text of a skill.
    Nothing,
    /// As its tool, for any use.
    Tool,
    /// As its tool, with the first words of a command.
    Command,
    /// As its tool or one that reads files, with a pattern of this path.
    FileToRead(&'a Path),
    /// As its tool, with a pattern of this path.
    FileToWrite(&'a Path),
    /// As its tool or `skill`, with a pattern of this name.
    Skill(&'a str),
    /// As its tool, with a pattern of this URL or its domain.
    Url(&'a str),
    /// As a server or one of its tools.
    Server,
    /// As its tool or its server.
    ServerTool,
}

/// What the `path` of a rule is compared with.
#[derive(Debug)]
pub(crate) enum RulePath<'a> {
    /// Nothing: a rule with a path does not match.
    None,
    /// The file that it reads or writes.
    File(&'a Path),
    /// The document of a skill, by rules that deny or ask. A permission to read that file is not a
    /// permission for the actions of the skill.
    Document(PathBuf),
}

/// What has to be the same for an approval to cover an action.
#[derive(Debug)]
pub(crate) enum SubjectSource<'a> {
    /// The tool, the words and the whole input.
    Input,
    /// The tool and the words, with any input.
    Words,
    /// These parts.
    Parts(Vec<Cow<'a, [u8]>>),
    /// A command with its plan and the resources that it could access.
    Command { line: &'a str, directory: &'a Path, preview: Option<&'a CommandPreview> },
    /// A skill with all of its files.
    Skill(&'a SkillRecord),
    /// A remote skill with all of its files.
    RemoteSkill(&'a RemoteSkill),
}

/// How an approval is remembered.
#[derive(Debug)]
pub(crate) struct ApprovalFacts {
    /// The kind of approval.
    pub(crate) kind: ApprovalKind,
    /// Its name; `None` for that of the tool.
    pub(crate) name: Option<String>,
    /// The folder of a skill, the file, the host, or the call.
    pub(crate) place: String,
    /// What an answer covers, as a question says.
    pub(crate) coverage: Coverage,
    /// The same if its content or a setting of its own was the reason to ask; `None` if there is no
    /// difference.
    pub(crate) special_coverage: Option<Coverage>,
    /// The command that approves it, or the option.
    pub(crate) command: String,
}

/// The content that a question shows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QuestionContent<'a> {
    /// None.
    Nothing,
    /// A text.
    Text(&'a str),
    /// The definition of a skill.
    Definition(&'a SkillRecord),
    /// The changes to a file.
    Change(&'a FileChange),
    /// The files of a remote skill.
    RemoteSkill(&'a RemoteSkill),
}

/// Where the input of a tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputDisplay {
    /// Nowhere, because the words or the content of a question contain it.
    Nowhere,
    /// In a question.
    InQuestion,
    /// In a question, and wherever a call is described.
    Everywhere,
}

impl<'a> SubjectSource<'a> {
    /// Returns the skill that it discloses, executes or starts a server of.
    pub(crate) fn record(&self) -> Option<&'a SkillRecord> {
        match self {
            Self::Skill(entry) => Some(entry),
            Self::Input
            | Self::Words
            | Self::Parts(_)
            | Self::Command { .. }
            | Self::RemoteSkill(_) => None,
        }
    }

    /// Returns the preview of a command.
    pub(crate) fn preview(&self) -> Option<&'a CommandPreview> {
        match self {
            Self::Command { preview, .. } => *preview,
            Self::Input | Self::Words | Self::Parts(_) | Self::Skill(_) | Self::RemoteSkill(_) => {
                None
            }
        }
    }
}

impl ActionFacts<'_> {
    /// Returns the strictest facts: a person is asked about every call, sees its whole input, and
    /// no answer is remembered.
    pub(crate) fn strict(words: String) -> Self {
        Self {
            words,
            log_words: None,
            effect: Effect::Acts,
            logged: AuditMode::Always,
            default: DefaultRuling::Ask("every call of it needs approval"),
            setting: PolicySetting::None,
            listed_as: ListedAs::Tool,
            rule_path: RulePath::None,
            skill: None,
            runs_script: false,
            subject: SubjectSource::Input,
            approval: None,
            needs_person: true,
            content: QuestionContent::Nothing,
            input: InputDisplay::Everywhere,
            how_to_allow: "add a rule that allows this `tool` to your own settings",
        }
    }

    /// Returns the facts of an action that is approved until its subject changes, even by a flag.
    pub(crate) fn remembered(words: String, approval: ApprovalFacts) -> Self {
        Self { approval: Some(approval), needs_person: false, ..Self::strict(words) }
    }
}

impl ApprovalFacts {
    /// Creates facts about approvals that cover everything with the same subject.
    pub(crate) fn new(kind: ApprovalKind, name: impl Into<String>, place: String) -> Self {
        Self {
            kind,
            name: Some(name.into()),
            place,
            coverage: Coverage::UntilChange,
            special_coverage: None,
            command: "--yes".to_owned(),
        }
    }

    /// Creates facts about approvals that are saved under the tool and the words of an action.
    pub(crate) fn of_call(words: &str) -> Self {
        Self { name: None, ..Self::new(ApprovalKind::Call, "", words.to_owned()) }
    }

    /// Describes what an answer covers for the session and permanently.
    pub(crate) fn covering(self, what: impl Into<String>) -> Self {
        Self { coverage: cover(what.into()), ..self }
    }

    /// Does the same if its content or a setting of its own was the reason to ask.
    pub(crate) fn covering_specially(self, what: impl Into<String>) -> Self {
        Self { special_coverage: Some(cover(what.into())), ..self }
    }
}

fn cover(what: String) -> Coverage {
    Coverage::More { session: what.clone(), always: what }
}
