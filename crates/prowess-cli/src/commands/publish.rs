use std::path::PathBuf;

use anyhow::Result;

use crate::{ExitStatus, arguments::Global, cli_error::CliError, printer::Printer};

/// Publish a skill to a registry
///
/// Checks and audits the skill, packs its files reproducibly, shows what would be uploaded, and asks before it uploads.
/// Errors refuse. The token comes from `PROWESS_REGISTRY_TOKEN`, and goes only to the registry.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the skill
    #[arg(value_name = "PATH", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    path: PathBuf,
}

pub(crate) fn run(_: &Args, _: &Global, _: &mut Printer) -> Result<ExitStatus> {
    Err(CliError::new("not yet").into())
}
