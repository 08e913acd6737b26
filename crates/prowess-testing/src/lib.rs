//! Helpers for the tests of all crates: a folder with skills in it, the program run inside it, and
//! servers that answer as a test wants.
//!
//! Only tests use this crate, and it is not published.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

pub mod world;
pub mod cost;
pub mod browser;
pub mod mcp_messages;
pub mod configured_server;
#[cfg(feature = "http")]
pub mod server;
#[cfg(feature = "models")]
pub mod model_server;
#[cfg(feature = "runtime")]
pub mod tools;
#[cfg(feature = "mcp")]
pub mod skill_servers;
#[cfg(feature = "mcp")]
pub mod skill_host;
#[cfg(feature = "mcp")]
pub mod login_site;
#[cfg(feature = "mcp")]
pub mod serving;
#[cfg(feature = "mcp")]
pub mod mcp_sdk;
