//! What touches the world: skills are stored, registered, allowed or refused, and run.
//!
//! The modules stand in the order a skill passes through them. Nothing here talks to a model or
//! writes a prompt. Whatever a script or tool came to is an [`Outcome`], also when it failed.
#![warn(missing_docs)]

mod outcome;
mod limits;
mod root;
mod entry;
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
mod tools;

pub use crate::{
    approver::{Agreed, Answering, Approver, Nobody, Question, Reply},
    danger::{Danger, Pattern, danger},
    entry::{Entry, EntryError},
    gate::Gate,
    limits::Limits,
    outcome::{Captured, Level, Outcome, PlanStep, Status},
    policy::{AllowedToolsMode, Approvals, Decision, Policy, Rule, Wish},
    provider::Provider,
    records::{Note, Records},
    root::{Links, Listed, Root, RootError},
    sandbox::{Check, Chunk, Job, Launcher, Report, Sandbox, SandboxError, Work},
    tool::{Act, Answer, Tool},
    tools::ExecuteCommand,
};
