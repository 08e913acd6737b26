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
mod sandbox;

pub use crate::{
    entry::{Entry, EntryError},
    limits::Limits,
    outcome::{Captured, Level, Outcome, PlanStep, Status},
    provider::Provider,
    root::{Links, Listed, Root, RootError},
    sandbox::{Check, Chunk, Job, Launcher, Report, Sandbox, SandboxError, Work},
    tool::{Act, Answer, Tool},
};
