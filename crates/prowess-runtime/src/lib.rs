//! What touches the world: skills are stored, registered, allowed or refused, and run.
//!
//! The modules stand in the order a skill passes through them. Nothing here talks to a model or
//! writes a prompt. Whatever a script or tool came to is an [`Outcome`], also when it failed.
#![warn(missing_docs)]

mod outcome;
mod limits;
mod config;
mod root;
mod entry;
mod schema;
mod parameters;
mod script;
mod definition;
mod store;
mod template;
mod provider;
mod tool;
mod shell;
mod danger;
mod subject;
mod commands;
mod policy;
mod approver;
mod records;
mod gate;
mod sandbox;
mod executor;
mod manager;
mod migrate;
mod tools;

#[doc(hidden)]
pub use crate::store::Step;
pub use crate::{
    approver::{Agreed, Answering, Approver, Nobody, Question, Reply},
    config::{
        Address, Bytes, Config, ConfigError, Depth, DisclosureSettings, Fault, LimitSettings,
        MatchingSettings, ModelSettings, Origin, Places, PolicySettings, Presets, RuleSetting,
        SandboxSettings, Setting, Share, Shown, SkillSettings, SqlSettings, WindowSettings, bytes,
        duration,
    },
    danger::{Danger, Pattern, danger},
    definition::{ShapeError, definition_from_json, definition_to_json, type_from_word},
    entry::{Entry, EntryError},
    executor::{Delivery, ExecuteError, Executor},
    gate::Gate,
    limits::Limits,
    manager::{ExecutionRequest, ExecutionResponse, Intent, Manager, ToolCall, ToolResult},
    migrate::{Lost, MigrateError, Migrated, migrate, plugins},
    outcome::{Captured, Level, Outcome, PlanStep, Status},
    parameters::{Parameters, ParametersError},
    policy::{AllowedToolsMode, Approvals, Decision, Policy, Rule, Wish},
    provider::Provider,
    records::{Note, Records},
    root::{Links, Listed, Root, RootError},
    sandbox::{Check, Chunk, Job, Launcher, Report, Sandbox, SandboxError, Work},
    schema::{Mismatch, SchemaError},
    script::{Script, ScriptError},
    store::{FileStore, Files, MemoryStore, Now, Stock, Store, StoreError, Why},
    template::{Template, TemplateError, TemplateLimits, render as render_template},
    tool::{Act, Answer, Tool},
    tools::ExecuteCommand,
};
