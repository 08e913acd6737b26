use anyhow::Result;

use crate::{ExitStatus, arguments::Global, printer::Printer};

/// Install exactly what `prowess.lock` says
///
/// Fetches what is missing and puts every skill where the lock file says. Skills that are in `prowess.toml` but not in the lock
/// file yet are added to it, and those that are gone from `prowess.toml` are removed. With `--locked`, the lock file is not changed: if it does not agree with
/// `prowess.toml`, nothing is installed and it exits 1, which is what CI wants. Files that you have edited are left alone and reported.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fail if `prowess.lock` does not agree with `prowess.toml`
    #[arg(long)]
    locked: bool,
    /// Use only what was fetched before
    #[arg(long)]
    offline: bool,
    /// Sync the skills for all your projects
    #[arg(short, long)]
    global: bool,
    /// Show what would change, without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Install although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Install what is new in `prowess.toml` without asking
    #[arg(short, long)]
    yes: bool,
}
