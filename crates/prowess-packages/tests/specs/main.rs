//! The scenarios of `specs/*.md` that test packages without the program: every scenario is one test
//! of its name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod archives;
mod install;
mod package_cache;
mod signatures;
mod sources;
