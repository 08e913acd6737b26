//! The scenarios of `specs/*.md` that need MCP servers or their clients but neither an agent nor
//! the program: every scenario is one test of its name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod servers;
mod server_entries;
mod mcp;
mod mcp_skills;
mod mcp_transport;
mod mcp_host;
mod oauth;

use prowess_testing::{mcp_messages, server, world};
