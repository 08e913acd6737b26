//! Both sides of the Model Context Protocol.
//!
//! - [`config`]: the entries of MCP servers, as skills and settings write them.
//! - `client`: starts these servers in the sandbox, or connects to them over HTTP. Their tools are
//!   called like any others, and they may offer skills.
//! - `server`: serves skills and tools to any client, from a library of any size.
//!
//! Client and server are features of these names, and neither uses the other. Nothing here decides what a skill
//! is, which one matches or which actions are allowed: `prowess` and `prowess-runtime` do, and this
//! crate translates it into the protocol.
#![warn(missing_docs)]

pub mod config;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod server;
