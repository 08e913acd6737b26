use anyhow::Result;

use crate::{ExitStatus, arguments::Global, printer::Printer};

/// Use a skill without installing it
///
/// Fetches the skill into a temporary folder and prints its instructions and the paths of its files, or starts a command that can use it: `PROWESS_SKILL_DIR` is the
/// folder of the skill, `PROWESS_SKILLS_DIR` the folder above it, and `{}` in an argument stands for the folder of the skill. Claude Code (`claude`) gets it
/// with `--add-dir`. The folder is removed when the command ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the skill is, such as `anthropics/skills@pdf`
    #[arg(value_name = "SOURCE", value_hint = clap::ValueHint::AnyPath)]
    source: String,
    /// The skill with this name
    #[arg(short, long, value_name = "NAME")]
    skill: Option<String>,
    /// Use it although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Use only what was fetched before
    #[arg(long)]
    offline: bool,
    /// Start the command without asking
    #[arg(short, long)]
    yes: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}
