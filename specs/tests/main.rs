//! What is promised in `specs/*.md`, played: every scenario is one test of its name.
//!
//! The ledger holds the chapters and the tests together; `world` is the stage, and the one file
//! that knows how the library and the program are called.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod world;
mod scripts;
mod server;
mod model_server;
mod databases;
mod browser;
mod mcp_client;
mod format;
mod discovery;
mod keeping;
mod watching;
mod cache;
mod words;
mod matching;
mod lab;
mod window;
mod disclosure;
mod doctor;
mod overview;
mod cli;
mod manners;
mod rules;
mod fix;
mod asking;
mod policy;
mod commands;
mod config;
mod store;
mod migrate;
mod registry;
mod execution;
mod environments;
mod prepare;
mod hostile;
mod tools;
mod sql;
mod files;
mod http;
mod models;
mod sandbox;
mod network;
mod agent;
mod middleware;
mod servers;
mod server_entries;
mod sessions;
mod trace;
mod ask;
mod trust;
mod mcp;
mod mcp_host;
mod mcp_skills;
mod mcp_transport;
mod mcp_clients;
mod oauth;
mod mcp_install;
mod coverage;
mod ledger;
mod architecture;
mod vocabulary;

/// The program that makes the table of bundled skills.
#[expect(dead_code, clippy::print_stdout, reason = "cargo runs it, the tests call a part of it")]
#[path = "../../crates/prowess/build.rs"]
mod build;

/// The worked examples: each is a program, and has a `run` that says what it comes to.
#[expect(dead_code, unreachable_pub, reason = "the tests call a part of each program")]
#[path = "../../examples"]
mod examples {
    pub(crate) mod always_on;
    pub(crate) mod basic;
    pub(crate) mod custom_activation;
    pub(crate) mod explicit_only;
    pub(crate) mod guardrail;
    pub(crate) mod retrieval_hybrid;
}
