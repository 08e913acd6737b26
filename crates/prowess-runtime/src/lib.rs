//! What touches the world: skills are stored, registered, allowed or refused, and run.
//!
//! The modules stand in the order a skill passes through them. Nothing here talks to a model or
//! writes a prompt. Whatever a script or tool came to is an [`Outcome`], also when it failed.
#![warn(missing_docs)]

mod outcome;
mod limits;
mod root;
mod roots;
mod entry;
mod provider;
mod active;
mod tool;
mod content;
#[cfg(feature = "http")]
mod http;
mod tools;

pub use crate::{
    active::Active,
    entry::{Entry, EntryError},
    limits::Limits,
    outcome::{Captured, Level, Outcome, PlanStep, Status},
    provider::Provider,
    root::{Links, Listed, Page, Root, RootError},
    roots::Roots,
    tool::{Act, Answer, Tool},
    tools::{FileOperations, ReadFile},
};
#[cfg(feature = "http")]
pub use crate::{
    http::{Addresses, CertificateError, Hosts, HostsError, Resolver, SystemResolver},
    tools::HttpRequest,
};
