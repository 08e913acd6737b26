//! Both sides of the Model Context Protocol.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use prowess::{Directory, Library, Options};
//! use prowess_mcp::server::{ServeOptions, ServerState, SkillServer, serve_stdio};
//! use prowess_runtime::{
//!     Authorizer, DenyAll, Policy, SkillProvider, Toolbox, skill::ActiveSkills, tools::UseSkill,
//! };
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let options = Options { directories: vec![Directory::new("skills")], ..Options::default() };
//! let provider: Arc<dyn SkillProvider> = Arc::new(Arc::new(Library::load(&options)?));
//! let active = Arc::new(ActiveSkills::new(provider.clone()));
//! let authorizer = Arc::new(Authorizer::new(Policy::default(), Arc::new(DenyAll)));
//! let toolbox = Toolbox::new(authorizer).with(Arc::new(UseSkill { active }));
//! let state = ServerState::new(provider, toolbox, ServeOptions::default());
//! serve_stdio(SkillServer::new(Arc::new(state)), std::future::pending()).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`config`]: the entries of MCP servers, as skills and settings write them.
//! - `client`: starts these servers in the sandbox, or connects to them over HTTP. Their tools are
//!   called like any others, and they may offer skills.
//! - `server`: serves skills and tools to any client, from a library of any size.
//!
//! Client and server are features of these names, and neither uses the other. Both require a `tokio`
//! runtime. Nothing here decides what a skill is, which one matches or which actions are allowed:
//! `prowess` and `prowess-runtime` do, and this crate translates it into the protocol.
#![warn(missing_docs)]

mod sys;
pub mod config;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod server;
