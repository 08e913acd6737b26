use anyhow::Result;
use prowess_runtime::Store as _;

use super::{print_record, report_missing_skill};
use crate::{ExitStatus, arguments::Global, completion, context, printer::Printer};

/// Enable a skill
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name of the skill
    #[arg(add = completion::disabled_skills())]
    name: String,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let target = context::store_of_skill(&args.name, global, printer)?;
    match target.store.activate(&args.name) {
        Ok(entry) => {
            print_record(&entry, &target, printer)?;
            printer.note(&format!("`{}` is active", args.name));
            Ok(ExitStatus::Success)
        }
        Err(error) => report_missing_skill(error, global, printer),
    }
}
