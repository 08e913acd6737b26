use anyhow::Result;

use crate::{ExitStatus, arguments::Global, completion, printer::Printer};

/// Compare installed skills with `prowess.lock`
///
/// Reads every file that is installed and reports what is changed, missing or extra, and links that lead elsewhere. Exits 1 if there is anything.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look only at these skills
    #[arg(value_name = "NAME", add = completion::installed_skills())]
    names: Vec<String>,
    /// Verify the skills for all your projects
    #[arg(short, long)]
    global: bool,
}
