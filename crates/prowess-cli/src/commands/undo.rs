use anyhow::Result;
use prowess_runtime::Store as _;

use super::{refused, show_entry};
use crate::{Status, arguments::Global, context, printer::Printer};

/// Bring back the skill that was removed last
///
/// The last fifty that were removed are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The last one of this name
    name: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Status> {
    let shelf = context::shelf_of_removed(args.name.as_deref(), global, printer)?;
    let name = match shelf.store.undo(args.name.as_deref()) {
        Ok(name) => name,
        Err(error) => return Ok(refused(error, printer)),
    };
    match shelf.store.get(&name) {
        Ok(entry) => show_entry(&entry, &shelf, printer)?,
        // It was no skill when it was removed.
        Err(error) => printer.warning(&error.to_string()),
    }
    printer.note(&format!("`{name}` is back in `{}`", shelf.path.display()));
    Ok(Status::Well)
}
