//! The world of `prowess-testing`, and calls of tools in it.

use prowess_sandbox::{Launcher, Sandbox, SandboxLevel};
pub(crate) use prowess_testing::{tools::call, world::*};

/// Returns the sandbox level of this machine.
pub(crate) fn level() -> SandboxLevel {
    Sandbox::new(Launcher::program(program()), SandboxLevel::Landlock).probe().level
}
