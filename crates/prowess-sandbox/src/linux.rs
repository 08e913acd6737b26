//! Linux: programs are confined by a launcher, which supervises them from outside of the sandbox.

mod messages;
mod sys;
mod tree;
mod filter;
mod metadata;
mod connect;
mod mounts;
mod rules;
mod usage;
mod cgroup;
mod listener;
mod inside;
mod start;
mod supervisor;
mod report;
mod engine;

pub(crate) use self::{engine::Engine, report::probe, start::is_launcher, supervisor::launch};
