//! The scenarios of `specs/*.md` that test packages without the program: every scenario is one test
//! of its name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod import;
mod lock;
mod fetching;
mod hosts;
mod install;
mod packaged_skills;
mod archives;
mod package_cache;
mod packaged_skills;
mod signatures;
mod sources;
#[cfg(unix)]
mod ssh_server;
mod uploading;
mod audit;
