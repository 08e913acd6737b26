//! The scenarios of `specs/*.md` that test the runtime without the program: every scenario is one
//! test of its name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod world;
mod databases;
mod store;
mod registry;
mod policy;
mod asking;
mod execution;
mod sandbox;
mod network;
mod tools;
mod commands;
mod files;
mod http;
mod sql;
mod fix;

use prowess_testing::server;
