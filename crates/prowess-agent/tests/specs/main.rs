//! The scenarios of `specs/*.md` that need the agent but not the program: every scenario is one
//! test of its name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod world;
mod agent;
mod middleware;
mod models;
mod sessions;
mod servers;
mod mcp_host;
mod trace;

use prowess_testing::{model_server, server};

/// The worked examples: each is a program with a function `run` that returns its result.
#[expect(dead_code, unreachable_pub, reason = "the tests call a part of each program")]
#[path = "../../../../examples"]
mod examples {
    pub(crate) mod always_on;
    pub(crate) mod basic;
    pub(crate) mod custom_activation;
    pub(crate) mod explicit_only;
    pub(crate) mod guardrail;
    pub(crate) mod retrieval_hybrid;
}
