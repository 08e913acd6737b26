use std::path::PathBuf;

use anyhow::Result;

use crate::{ExitStatus, arguments::Global, printer::Printer};

/// Publish a skill to a registry
///
/// Checks and audits the skill, packs its files reproducibly, shows what would be uploaded, and asks before it uploads. Errors refuse. The token
/// comes from `PROWESS_REGISTRY_TOKEN`, and goes only to the registry.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the skill
    #[arg(value_name = "PATH", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    path: PathBuf,
    /// The registry, such as `https://hub.example.com`
    #[arg(long, value_name = "URL")]
    to: String,
    /// The version, such as `1.2.0` [default: that in the skill]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// What is new in this version
    #[arg(long, value_name = "TEXT", default_value = "")]
    changelog: String,
    /// Show what would be uploaded, without uploading it
    #[arg(long)]
    dry_run: bool,
    /// Publish although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Publish without asking
    #[arg(short, long)]
    yes: bool,
}
