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
mod provider;
mod tool;
mod shell;
mod danger;

pub use crate::{
    config::{
        Address, AllowedToolsMean, Approvals, Bytes, Config, ConfigError, Decision, Depth,
        DisclosureSettings, Fault, LimitSettings, MatchingSettings, ModelSettings, Origin, Places,
        PolicySettings, Presets, Rule, SandboxSettings, Setting, Share, Shown, SkillSettings,
        SqlSettings, WindowSettings, bytes, duration,
    },
    danger::{Danger, Pattern, danger},
    entry::{Entry, EntryError},
    limits::Limits,
    outcome::{Captured, Level, Outcome, PlanStep, Status},
    parameters::{Parameters, ParametersError},
    provider::Provider,
    root::{Links, Listed, Root, RootError},
    schema::{Mismatch, SchemaError},
    script::{Script, ScriptError},
    tool::{Act, Answer, Tool},
};
