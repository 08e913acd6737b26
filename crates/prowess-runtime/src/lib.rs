//! What touches the world: skills are stored, registered, allowed or refused, and run.
//!
//! The modules stand in the order a skill passes through them. Nothing here talks to a model or
//! writes a prompt. Whatever a script or tool came to is an [`Outcome`], also when it failed.
#![warn(missing_docs)]

mod listing;
mod outcome;
mod limits;
mod config;
mod key_file;
mod secret;
mod protected;
mod repository;
mod root;
mod rewrite;
mod roots;
mod texts;
mod skill_folder;
mod environment;
mod entry;
mod definition;
mod strict_json;
mod percent;
mod schema;
mod parameters;
mod script;
pub mod build;
mod store;
mod create;
mod provider;
mod retriever;
mod active;
mod content;
mod change;
mod markers;
mod tool;
mod subject;
mod commands;
mod policy;
mod approver;
mod records;
mod trust;
mod change_history;
mod journal;
mod gate;
#[cfg(feature = "http")]
mod proxy;
mod sandbox;
mod preparation;
mod handover;
mod executor;
mod manager;
mod servers;
mod tools;
mod registry;
mod toolbox;
mod convention;

#[doc(hidden)]
pub use crate::store::Step;
#[cfg(feature = "sql")]
pub use crate::tools::ExecuteSql;
pub use crate::{
    active::Active,
    approver::{Agreed, Answering, Approver, Coverage, Nobody, Question, Reply},
    change::{FileChange, FileState},
    change_history::{ChangeHistory, ChangeRecord, UndoError},
    config::{
        Address, AgentSettings, Bytes, Config, ConfigError, Depth, DisclosureSettings, Fault,
        IgnoredSetting, LimitSettings, MatchingSettings, ModelSettings, Origin, Places,
        PolicySettings, PrepareSettings, Presets, Price, ProjectFile, ProjectRight, RootPath,
        RuleSetting, RunSettings, SandboxSettings, ServerSetting, ServerSettings, Setting, Share,
        Shown, SkillSettings, SqlSettings, WindowSettings, bytes, duration, size,
    },
    convention::{Convention, plain_schema},
    create::{CreateError, check_entry},
    definition::{ShapeError, definition_from_json, definition_to_json, type_from_word},
    entry::{Entry, EntryError},
    environment::{
        Declared, Ecosystem, EnvironmentNeeds, InstalledInterpreter, Interpreter, InterpreterError,
        InterpreterOrigin, InterpreterSearch, Missing, MissingKind, NeedNote, Needs, PackageNeed,
        PackageSource, Place, Present, ProgramNeed, Runtime, ScriptArguments, ScriptNeeds,
        VariableNeed, VersionNeed, detect, interpreter,
    },
    executor::{Delivery, ExecuteError, Executor},
    gate::Gate,
    journal::Journal,
    key_file::{KeyFileError, key_of_file},
    limits::Limits,
    manager::{ExecutionRequest, ExecutionResponse, Intent, Manager, ToolCall, ToolResult},
    markers::{fresh_marker, make_visible, strip_invisible},
    outcome::{Captured, Connection, Level, Outcome, PlanStep, Status, StepOutcome},
    parameters::{Parameters, ParametersError},
    percent::percent_decoded,
    policy::{AllowedToolsMode, Approvals, Decision, Policy, Rule, UnlistedCommands, Wish, fits},
    preparation::{
        EnvironmentError, EnvironmentRecord, EnvironmentStore, LockedPackage, PackageManager,
        PreparedEnvironment, Recipe, RecipeError, Registries, ScriptEnvironments, SkillRecipes,
    },
    provider::{Permitted, Provider},
    records::{Note, Records, RememberedApproval, now as timestamp},
    registry::Registry,
    retriever::{Retrieved, Retriever},
    rewrite::RewriteError,
    root::{Links, Listed, Page, Root, RootError},
    roots::Roots,
    sandbox::{
        Check, Chunk, Job, Launcher, Network, Report, Running, Sandbox, SandboxError, Stdin, Work,
    },
    schema::{Mismatch, SchemaError, check_schema},
    script::{Script, ScriptError},
    secret::{KnownSecret, is_secret_value, secret_in},
    servers::{
        Described, Description, OauthSettings, OfferedFile, OfferedSkill, OfferedSkills,
        PackageCommand, Server, ServerAddress, ServerPatience, ServerProgram, ServerSkills,
        Starter, Transport,
    },
    skill_folder::{FolderError, SkillFolder},
    store::{FileStore, Files, MemoryStore, Now, Stock, Store, StoreError, Why, deleted_from},
    strict_json::strict_json,
    texts::{Texts, texts},
    tool::{Act, Answer, CommandPreview, Readiness, Tool},
    toolbox::{Calls, Toolbox},
    tools::{
        ExecuteCommand, FileOperations, FindSkills, FoundSkill, FoundSkills, ReadFile,
        ReadSkillFile, RunSkill, SkillTool, UseSkill, skill_tools,
    },
    trust::{TrustEntry, TrustFile},
};
#[cfg(feature = "http")]
pub use crate::{
    preparation::{PrepareError, PrepareLimits, PrepareOptions, Preparer},
    proxy::{HostRemedy, Proxy, ProxyLimits},
    servers::{LoginError, LoginPrompt, LoginRequest, LoginState, Logins},
    tools::HttpRequest,
};
