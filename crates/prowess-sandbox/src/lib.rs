//! Runs programs confined, with limits that the kernel enforces, and opens files that cannot be
//! outside of a directory.
//!
//! ```standalone_crate
//! use prowess_sandbox::{Job, Launcher, SandboxLevel, RunLimits, RunStatus, Sandbox, Work};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // First thing in `main`: this program is started again to supervise what it runs.
//!     let launcher = Launcher::hook();
//!     let runtime = tokio::runtime::Runtime::new()?;
//!     let sandbox = Sandbox::new(launcher, SandboxLevel::Landlock);
//!
//!     let script = "echo hello > greeting; cat greeting; echo > /etc/motd";
//!     let argv = ["sh", "-c", script].map(Into::into).to_vec();
//!     let job = Job::new(argv, Work::new()?, RunLimits::default());
//!     let result = runtime.block_on(sandbox.run(job))?;
//!
//!     assert_eq!(result.stdout.text, "hello\n");
//!     assert_eq!(result.files, ["greeting"]);
//!     assert_eq!(result.status, RunStatus::Failed);
//!     Ok(())
//! }
//! ```
//!
//! A [`Job`] names everything that a program may use: it reads the system and the paths it is
//! given, writes in its [`Work`] directory, and has no network, unless a [`NetworkProxy`] serves
//! the only socket that it can connect to. [`RunLimits`] limit its time, memory, processes, files
//! and output. Once there is a [`RunResult`], or the future of the run is dropped, none of its
//! processes is alive. [`Sandbox::start`] runs a program interactively.
//!
//! A machine that cannot confine a program runs none: [`Sandbox::probe`] reports the missing
//! features. The level *strong* uses namespaces, a root of its own, Landlock and a filter of system
//! calls; the level *landlock* does without namespaces.
//!
//! [`Root`] opens, lists and writes files beneath a directory, and can be used alone: neither `..`
//! nor links lead out of it, even if they are changed concurrently.
//!
//! Without the feature `run` a sandbox reports that it is unavailable; [`Root`] still works. Linux
//! is required, and for programs a `tokio` runtime. This crate does not decide which programs may
//! run.
#![warn(missing_docs)]
#![cfg_attr(not(feature = "run"), expect(dead_code, reason = "nothing is run"))]

mod limits;
mod level;
mod root;
mod rewrite;
mod error;
mod system;
mod disk;
mod work;
mod network;
mod output;
mod job;
mod result;
#[cfg(feature = "run")]
mod order;
#[cfg(feature = "run")]
mod environment;
#[cfg(feature = "run")]
mod sys;
#[cfg(feature = "run")]
mod tree;
#[cfg(feature = "run")]
mod filter;
#[cfg(feature = "run")]
mod metadata;
#[cfg(feature = "run")]
mod connect;
#[cfg(feature = "run")]
mod mounts;
#[cfg(feature = "run")]
mod rules;
#[cfg(feature = "run")]
mod usage;
#[cfg(feature = "run")]
mod cgroup;
#[cfg(feature = "run")]
mod listener;
#[cfg(feature = "run")]
mod inside;
#[cfg(feature = "run")]
mod supervisor;
mod launcher;
mod support;
mod running;
#[cfg(feature = "run")]
mod capture;
#[cfg(feature = "run")]
mod streams;
#[cfg(feature = "run")]
mod ending;
#[cfg(feature = "run")]
mod report;
#[cfg(feature = "run")]
mod engine;
#[cfg(not(feature = "run"))]
#[path = "unavailable.rs"]
mod engine;
mod sandbox;

pub use crate::{
    disk::folder_size,
    error::SandboxError,
    job::{Job, Stdin},
    launcher::Launcher,
    level::SandboxLevel,
    limits::RunLimits,
    network::{Network, NetworkProxy, ProxySession, ScriptConnection},
    output::{CapturedText, Chunk},
    result::{RunResult, RunStatus},
    rewrite::RewriteError,
    root::{DirectoryEntry, DirectoryPage, Links, Root, RootError, rename_noreplace},
    running::{ProgramEnd, RunningProgram},
    sandbox::Sandbox,
    support::{FeatureCheck, SandboxSupport},
    system::{certificate_file, is_of_system},
    work::{Work, remove_folder},
};
