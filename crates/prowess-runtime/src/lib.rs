//! The runtime: stores skills, decides on their actions, and runs them.
//!
//! The modules are in the order a skill passes through them, and each uses only those before it.
//! Nothing here talks to a model or writes a prompt. The result of a script or tool is an
//! [`Outcome`], even if it failed.
#![warn(missing_docs)]

mod listing;
mod warnings;
mod timestamp;
mod file_lock;
mod state_directory;
mod digest;
mod tool_output;
mod outcome;
mod secret;
mod mask;
mod texts;
mod skill_folder;
mod environment;
mod entry;
mod definition;
mod strict_json;
mod percent;
mod schema;
mod tool_parameters;
mod parameters;
mod script;
pub mod build;
mod store;
mod create;
mod provider;
mod retriever;
mod active;
mod blocking;
mod content;
mod change;
mod markers;
mod glob;
mod protected;
mod repository;
mod roots;
mod sensitive;
mod policy;
mod refusal;
mod remote_skill;
mod subject;
mod change_history;
mod commands;
mod program_files;
mod tool;
mod approver;
mod audit_log;
mod approval_store;
mod trust;
mod write_watch;
mod ruling;
mod journal;
mod authorizer;
mod permitted_skills;
#[cfg(feature = "http")]
mod proxy;
mod run_outcome;
mod preparation;
mod handover;
mod executor;
mod tools;
mod registry;
mod toolbox;
mod tool_format;

pub use prowess_sandbox::{
    CapturedText, Chunk, Launcher, Links, Network, RewriteError, Root, RootError, RunLimits,
    Sandbox, SandboxError, SandboxLevel, ScriptConnection, Stdin,
};

#[doc(hidden)]
pub use crate::store::DiskStep;
#[cfg(feature = "sql")]
pub use crate::tools::ExecuteSql;
pub use crate::{
    active::Active,
    approval_store::{ApprovalStore, RememberedApproval, settings_digest},
    approver::{ApproveAll, Approver, ApproverFuture, ApproverReply, Coverage, DenyAll, Question},
    audit_log::{AuditEntry, AuditLog},
    authorizer::Authorizer,
    change::{FileChange, FileState},
    change_history::{ChangeHistory, ChangeRecord, UndoError},
    commands::system_program,
    create::{CreateError, check_record},
    definition::{ShapeError, definition_from_json, definition_to_json, type_from_word},
    digest::{file_digest, hex},
    entry::{SkillRecord, SkillRecordError},
    environment::{
        Ecosystem, EnvironmentNeeds, InstalledInterpreter, Interpreter, InterpreterError,
        InterpreterOrigin, InterpreterSearch, Missing, MissingKind, NeedNote, Needs,
        PackageDeclaration, PackageNeed, PackageSource, Place, Present, ProgramNeed, Runtime,
        ScriptArguments, ScriptNeeds, SystemPackages, VariableNeed, VersionNeed, detect,
        install_system_programs, interpreter, program_not_found, system_packages,
    },
    executor::{Delivery, ExecuteError, Executor},
    glob::fits,
    journal::Journal,
    markers::{fresh_marker, make_visible, strip_invisible},
    mask::{KnownSecrets, Masking, mask, mask_json},
    outcome::{Outcome, OutcomeStatus, PlanStep, StepOutcome},
    parameters::{Parameters, ParametersError},
    percent::percent_decoded,
    permitted_skills::PermittedSkills,
    policy::{AllowedToolsMode, Approvals, Decision, Policy, PolicyRule, UnlistedCommands},
    preparation::{
        EnvironmentError, EnvironmentRecord, EnvironmentStore, LockedPackage, PackageManager,
        PrepareLimits, PreparedEnvironment, Recipe, RecipeError, Registries, ScriptEnvironments,
        SkillRecipes,
    },
    program_files::{Author, FileRules, ProgramFiles},
    protected::is_protected,
    provider::SkillProvider,
    registry::Registry,
    remote_skill::{RemoteFile, RemoteSkill, RemoteSkills, one_line},
    retriever::{RetrievedSkill, Retriever},
    roots::Roots,
    ruling::ActionRequest,
    schema::{Mismatch, SchemaError, check_schema},
    script::{Script, ScriptError, skill_files},
    secret::{KnownSecret, is_secret_value, secret_in},
    sensitive::holds_secrets,
    skill_folder::{FolderError, SkillFile, SkillFolder, give_folder},
    store::{
        FileStore, Files, MemoryStore, StateAfter, Store, StoreContents, StoreError, WriteFailure,
        deleted_from,
    },
    strict_json::strict_json,
    texts::{Texts, texts},
    timestamp::timestamp,
    tool::{Action, CommandPreview, ReadyFuture, Tool, ToolFuture},
    tool_format::{ToolFormat, simplify_schema},
    tool_output::{FoundSkill, FoundSkills, SkillFilePart, ToolOutput},
    tool_parameters::{ToolParameter, tool_parameters, unknown_parameters},
    toolbox::{
        Calls, Intent, IntentOutcome, PlannedCall, SkillCall, ToolResult, Toolbox, takes_parameters,
    },
    tools::{
        ExecuteCommand, FileOperations, FindSkills, ReadFile, ReadSkillFile, RunSkill, SkillTool,
        UseSkill, skill_tools,
    },
    trust::{TrustEntry, TrustFile},
    write_watch::WriteWatch,
};
#[cfg(feature = "http")]
pub use crate::{
    preparation::{PrepareError, PrepareOptions, Preparer},
    proxy::{HostRemedy, Proxy, ProxyLimits},
    tools::HttpRequest,
};
