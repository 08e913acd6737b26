//! The world of `prowess-testing`, and calls of tools in it.

use prowess_runtime::{Outcome, Tool};
pub(crate) use prowess_testing::world::*;
use serde_json::Value as Json;

/// Calls a tool directly, without an authorizer.
pub(crate) fn call(tool: &dyn Tool, input: Json) -> Outcome {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let outcome = runtime.block_on(tool.call(input));
    runtime.shutdown_background();
    outcome
}
