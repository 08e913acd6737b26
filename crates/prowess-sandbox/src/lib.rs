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
//! Here the program itself is started again to supervise what it runs. Programs that cannot call the
//! hook first use a helper: [`Launcher::find`] looks for `prowess-launcher`, which `cargo install
//! prowess-sandbox` installs, and [`Launcher::embedded`] starts one that the program contains.
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
//! Programs are confined on Linux only, and need a `tokio` runtime. Other systems, and builds without
//! the feature `run`, report that the sandbox is unavailable; on Unix, [`Sandbox::unconfined`] still
//! works, with fewer limits. [`Root`] works everywhere. This crate does not decide which programs may
//! run.
#![warn(missing_docs)]
#![cfg_attr(
    not(all(feature = "run", target_os = "linux")),
    expect(dead_code, reason = "nothing is confined")
)]

mod limits;
mod level;
mod file_type;
mod platform;
mod root;
mod rewrite;
mod error;
mod system;
mod work;
mod network;
mod output;
mod job;
mod result;
mod support;
mod running;
mod launcher;
#[cfg(all(feature = "run", unix))]
mod variables;
#[cfg(all(feature = "run", unix))]
mod order;
#[cfg(all(feature = "run", unix))]
mod environment;
#[cfg(all(feature = "run", unix))]
mod capture;
#[cfg(all(feature = "run", unix))]
mod streams;
#[cfg(all(feature = "run", unix))]
mod ending;
#[cfg(all(feature = "run", target_os = "linux"))]
mod linux;
#[cfg(all(feature = "run", unix, any(test, not(target_os = "linux"))))]
mod unconfined;
#[cfg(not(all(feature = "run", unix)))]
mod unavailable;
mod engine;
mod hook;
mod sandbox;

pub use crate::{
    error::SandboxError,
    file_type::FileType,
    job::{Job, Stdin},
    launcher::Launcher,
    level::SandboxLevel,
    limits::RunLimits,
    network::{Network, NetworkProxy, ProxySession, ScriptConnection},
    output::{CapturedText, Chunk},
    platform::{ProgramStream, folder_size, remove_folder},
    result::{RunResult, RunStatus},
    rewrite::RewriteError,
    root::{DirectoryEntry, DirectoryPage, Links, Root, RootError},
    running::{ProgramEnd, RunningProgram},
    sandbox::Sandbox,
    support::{FeatureCheck, SandboxSupport},
    system::{certificate_file, is_of_system},
    work::Work,
};
