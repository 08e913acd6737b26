use anyhow::Result;

use crate::{ExitStatus, arguments::Global, completion, printer::Printer};

/// List installed skills of which there is a newer version
///
/// Asks each source what is newest, and compares it with `prowess.lock`. Nothing is changed; `prowess update` does that.
/// Exits 0 whether or not there are newer versions, and 2 if a source cannot be asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look only at these skills
    #[arg(value_name = "NAME", add = completion::installed_skills())]
    names: Vec<String>,
    /// Look at the skills for all your projects
    #[arg(short, long)]
    global: bool,
}
