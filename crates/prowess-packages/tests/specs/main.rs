//! The scenarios of `specs/*.md` that test packages without the program: every scenario is one test
//! of its name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod archives;
mod audit;
mod fetching;
mod hosts;
mod import;
mod install;
mod lock;
mod package_cache;
mod packaged_skills;
mod signatures;
mod sources;
#[cfg(unix)]
mod ssh_server;
mod uploading;
