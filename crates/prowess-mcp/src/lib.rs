//! Skills and tools over the Model Context Protocol, for any client and a library of any size.
//!
//! The modules are in the order in which a client meets them. Nothing here decides what a skill is,
//! which one matches or which actions are allowed: `prowess` and `prowess-runtime` do, and this
//! crate translates it into the protocol.
#![warn(missing_docs)]

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
mod server;
mod stdio;
mod admission;
mod sessions;
mod http;

pub use crate::{
    http::{Http, HttpServer},
    server::SkillServer,
    server_state::{ServeOptions, ServerState},
    stdio::{ServeError, serve_stdio},
};
