use std::path::PathBuf;

use anyhow::Result;

use crate::{ExitStatus, arguments::Global, printer::Printer};

/// Write the lock file of another package manager
///
/// Writes what `prowess.lock` says in the format of another program, so that its users install the same. What that format cannot say is
/// reported.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Export the skills for all your projects
    #[arg(short, long)]
    global: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// `skills-lock.json` of npx skills
    SkillsLock,
    /// `apm.lock.yaml` of apm
    Apm,
}
