use std::path::PathBuf;

use anyhow::Result;

use crate::{ExitStatus, arguments::Global, printer::Printer};

/// Take over skills that another package manager installed
///
/// Reads `skills-lock.json` and `.skill-lock.json` (npx skills), `apm.lock.yaml` (apm), `.clawhub/lock.json` (clawhub),
/// `.openskills.json` (openskills) and the `github-*` fields that `gh skill` writes, checks the files on disk against the hashes
/// in them, and writes `prowess.toml` and `prowess.lock`. The skills stay where they are, and the other lock file is not changed. It says
/// which skills it could not pin to a commit or version.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lock file, or a folder with some [default: those of this project]
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::AnyPath)]
    file: Option<PathBuf>,
    /// Take over the skills for all your projects
    #[arg(short, long)]
    global: bool,
    /// Show what would be taken over, without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Write without asking
    #[arg(short, long)]
    yes: bool,
}
