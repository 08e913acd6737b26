//! Serves skills and tools to MCP clients, over standard input and output or over HTTP.
//!
//! The modules are in the order in which a client meets them, and each uses only those before it.

mod instructions;
mod server_state;
mod uri;
mod paging;
mod publishable;
mod entry;
mod media_type;
mod tools;
mod prompts;
mod discovery;
mod resources;
mod completion;
mod directory;
mod watch;
mod frame;
mod extension;
mod skill_server;
mod stdio;
mod admission;
mod sessions;
mod http;

pub use crate::server::{
    http::{Http, HttpServer},
    server_state::{ServeOptions, ServerState},
    skill_server::SkillServer,
    stdio::{ServeError, serve_stdio},
};
