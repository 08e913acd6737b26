//! Starts and connects to MCP servers: those that skills bring, and those of the user's or a
//! project's settings.
//!
//! [`McpLauncher`] starts a server in the sandbox, or connects to it over HTTP, once the authorizer
//! allows it. [`McpServer`] has its tools, which are called like any others, and its skills. The
//! modules are in the order in which an entry passes through them, and each uses only those before
//! it.

mod name;
mod expand;
mod refusal;
mod failure;
mod monitor;
mod message;
#[cfg(feature = "http")]
mod oauth;
#[cfg(feature = "http")]
mod remote;
mod pipe;
mod connection;
mod cause;
mod ending;
mod source;
mod tool;
mod server_skills;
mod launcher;
mod job;
#[cfg(feature = "http")]
mod logging_in;
mod mcp_server;
mod named_files;
mod start;

#[cfg(feature = "http")]
pub use crate::client::oauth::{LoginError, LoginPrompt, LoginRequest, LoginState, Logins};
pub use crate::client::{
    launcher::{McpLauncher, ServerTimeouts},
    mcp_server::McpServer,
    server_skills::ServerSkills,
};
