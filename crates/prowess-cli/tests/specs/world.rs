//! The world of `prowess-testing`, and calls of tools in it.

use prowess_runtime::{Outcome, Tool};
use prowess_sandbox::{Launcher, Sandbox, SandboxLevel};
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

/// Returns the sandbox level of this machine.
pub(crate) fn level() -> SandboxLevel {
    Sandbox::new(Launcher::program(program()), SandboxLevel::Landlock).probe().level
}
