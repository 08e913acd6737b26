use anyhow::Result;

use crate::{ExitStatus, arguments::Global, completion, printer::Printer};

/// Update installed skills, after showing what changes
///
/// Shows the difference in what a model would read, then the other files that change, and asks once. What you have edited is
/// merged with the new version; where both changed the same lines, your version is put aside and named. Without names, all skills are
/// updated. A skill that is pinned to a tag or commit stays there. `prowess undo` takes an update back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Update only these skills
    #[arg(value_name = "NAME", add = completion::installed_skills())]
    names: Vec<String>,
    /// Update the skills for all your projects
    #[arg(short, long)]
    global: bool,
    /// Show what would change, without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Update although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Update without asking
    #[arg(short, long)]
    yes: bool,
}
