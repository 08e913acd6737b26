//! The runtime: stores skills, decides on their actions, and runs them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use prowess::{Library, Options};
//! use prowess_runtime::{
//!     Authorizer, DenyAll, OutcomeStatus, Policy, Toolbox, skill::ActiveSkills, tools::UseSkill,
//! };
//! use serde_json::json;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
//! let library = Arc::new(Library::load(&options)?);
//! // A policy of rules, and someone to ask about the rest: nobody, so the answer is no.
//! let authorizer = Arc::new(Authorizer::new(Policy::default(), Arc::new(DenyAll)));
//! let active = Arc::new(ActiveSkills::new(Arc::new(library)));
//! let toolbox = Toolbox::new(authorizer).with(Arc::new(UseSkill { active }));
//!
//! let outcome = toolbox.call("use_skill", json!({"name": "review-code"})).await;
//! assert_eq!(outcome.status, OutcomeStatus::Ok);
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! At the root is what nearly every host uses. The rest has a module each:
//!
//! | to | module |
//! |---|---|
//! | make records of skills, and get skills from elsewhere | [`skill`], [`parameters`] |
//! | save and change skills | [`store`] |
//! | decide on actions, and ask a person | [`policy`], [`approval`] |
//! | offer tools to a model, and call them | [`tool`], [`tools`], [`toolbox`] |
//! | run scripts, confined | [`executor`], [`sandbox`], [`outcome`] |
//! | find and install the programs and packages that scripts need | [`environment`], [`preparation`] |
//! | know which files were changed, and undo it | [`files`] |
//! | keep secrets out of output, and handle text from outside | [`secret`], [`text`] |
//!
//! What waits for a process or a connection is async and requires a `tokio` runtime. The modules
//! are in the order a skill passes through them, and each uses only those before it. Nothing here
//! talks to a model or writes a prompt. The result of a script or tool is an [`Outcome`], even if
//! it failed.
#![warn(missing_docs)]

#[doc(hidden)]
pub mod sys;
mod listing;
mod warnings;
mod timestamp;
mod file_lock;
mod state_directory;
mod digest;
mod tool_output;
pub mod outcome;
mod known_secret;
mod mask;
mod texts;
mod skill_folder;
pub mod environment;
mod entry;
mod definition;
mod strict_json;
mod percent;
mod schema;
mod tool_parameters;
pub mod parameters;
mod script;
mod glob;
mod protected;
pub mod store;
mod create;
mod provider;
mod retriever;
mod active;
mod blocking;
mod content;
mod change;
mod markers;
mod repository;
mod roots;
mod sensitive;
pub mod policy;
mod refusal;
mod remote_skill;
mod line_diff;
mod subject;
mod change_history;
mod commands;
mod program_files;
mod approver;
mod audit_log;
mod approval_store;
pub mod tool;
mod trust;
mod write_watch;
mod ruling;
mod journal;
mod authorizer;
mod permitted_skills;
#[cfg(feature = "http")]
mod proxy;
mod run_outcome;
pub mod preparation;
mod handover;
pub mod executor;
pub mod tools;
mod registry;
pub mod toolbox;

/// Skills as records: their manifest, definition, files and parameters, and where they come from.
pub mod skill {
    pub mod build;

    pub use crate::{
        active::ActiveSkills,
        create::{CreateError, check_record},
        definition::{ShapeError, definition_from_json, definition_to_json, type_from_word},
        entry::SkillRecordError,
        permitted_skills::PermittedSkills,
        remote_skill::{RemoteFile, RemoteSkill, RemoteSkills},
        retriever::{RetrievedSkill, Retriever},
        skill_folder::{FolderError, SkillFile, SkillFolder, give_folder},
    };
}

/// Approvals: who is asked, what was approved, which projects are trusted, and the audit log.
pub mod approval {
    pub use crate::{
        approval_store::{ApprovalKind, RememberedApproval, settings_digest},
        approver::{ApproveAll, Approver, ApproverFuture, ApproverReply, Coverage, Question},
        audit_log::AuditEntry,
        ruling::ActionRequest,
        trust::{TrustEntry, TrustFile},
    };
}

/// Files that tools and programs may use and change, and how a change is undone.
pub mod files {
    pub use crate::{
        change::{FileChange, FileState},
        change_history::{ChangeHistory, ChangeRecord, UndoError},
        journal::Journal,
        program_files::{Author, FileRules, ProgramFiles},
        write_watch::WriteWatch,
    };
}

/// Secrets: which are known, which values look like one, and how output is masked.
pub mod secret {
    pub use crate::{
        known_secret::{KnownSecret, is_secret_value, secret_in},
        mask::{KnownSecrets, MASK, Masking, is_secret_name, is_service_token, mask, mask_json},
        sensitive::holds_secrets,
    };
}

/// The sandbox that scripts and programs run in, and the proxy for their connections.
pub mod sandbox {
    pub use prowess_sandbox::{
        CapturedText, Chunk, Links, Network, RewriteError, Root, RootError, RunLimits,
        SandboxError, SandboxLevel, ScriptConnection, Stdin,
    };

    #[cfg(feature = "http")]
    pub use crate::proxy::{HostRemedy, Proxy, ProxyLimits};
}

/// Text that comes from outside or goes there: decoded, bounded, marked and digested.
pub mod text {
    pub use crate::{
        digest::{file_digest, hex},
        line_diff::{DiffHunk, DiffLine, LineChange, line_diff},
        markers::{fresh_marker, make_visible, strip_invisible},
        percent::percent_decoded,
        remote_skill::one_line,
        strict_json::strict_json,
        texts::{Texts, texts},
        timestamp::timestamp,
    };
}

pub use prowess_sandbox::{Launcher, Sandbox};

pub use crate::{
    approval_store::ApprovalStore,
    approver::DenyAll,
    audit_log::AuditLog,
    authorizer::Authorizer,
    entry::SkillRecord,
    executor::Executor,
    outcome::{Outcome, OutcomeStatus},
    parameters::Parameters,
    policy::Policy,
    provider::SkillProvider,
    registry::Registry,
    store::{FileStore, Store},
    tool::{Action, Tool},
    toolbox::Toolbox,
};
