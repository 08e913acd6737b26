//! What is promised in `specs/*.md`, played: every scenario is one test of its name.
//!
//! The ledger holds the chapters and the tests together; `world` is the stage, and the one file
//! that knows how the library and the program are called.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod world;
mod format;
mod discovery;
mod cli;
mod hostile;
mod ledger;
mod architecture;
