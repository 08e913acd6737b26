//! The scenarios of `specs/*.md` that the library keeps by itself: every scenario is one test of its name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod format;
mod discovery;
mod keeping;
mod watching;
mod words;
mod matching;
mod window;
mod disclosure;
mod doctor;
mod rules;
mod hostile;

use prowess_testing::world;

/// The program that makes the table of bundled skills.
#[expect(dead_code, clippy::print_stdout, reason = "cargo runs it, the tests call a part of it")]
#[path = "../../build.rs"]
mod build;
