//! Both sides of the Model Context Protocol.
//!
//! - `server`: skills and tools for any client and a library of any size.
//! - `client`: the MCP servers of skills and of the user's settings, started in the sandbox or
//!   connected to over HTTP. Their tools are called like any others, and they may offer skills.
//!
//! Each side is a feature of its name and uses nothing of the other. Nothing here decides what a skill
//! is, which one matches or which actions are allowed: `prowess` and `prowess-runtime` do, and this
//! crate translates it into the protocol.
#![warn(missing_docs)]

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod server;
