use anyhow::Result;

use crate::{ExitStatus, arguments::Global, printer::Printer};

/// Search registries and installed skills
///
/// Asks the registries of `--registry`, else those of the setting `packages.registries`, and ranks what they have together with the skills that are installed here, in the same way as `find`.
/// A registry that cannot be asked is an error, and what the others have is printed all the same.
/// Exits 1 when nothing matches, and 2 when a registry cannot be asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What the skill should do; several words need no quotes
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Ask this registry, such as `https://clawhub.ai`; repeatable
    #[arg(long, value_name = "URL")]
    registry: Vec<String>,
    /// Maximum number of skills, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    top: u8,
}
