use anyhow::Result;

use crate::{ExitStatus, arguments::Global, printer::Printer};

/// Show or clean the cache of fetched packages
///
/// Without options, prints where the cache is and how much it takes. What is removed is fetched again when it is needed;
/// installed skills stay.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Remove what was not used for 30 days
    #[arg(long)]
    clean: bool,
    /// Remove everything
    #[arg(long, requires = "clean")]
    all: bool,
}
