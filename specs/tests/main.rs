//! Checks that chapters, tests and crates match, and tests the scripts of the project.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod coverage;
mod ledger;
mod architecture;
mod vocabulary;
mod book;
mod growth;
