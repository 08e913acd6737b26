use anyhow::Result;
use prowess_runtime::Store as _;
use serde_json::json;

use super::{print_record, report_missing_skill};
#[cfg(feature = "packages")]
use crate::packages;
use crate::{ExitStatus, arguments::Global, completion, context, printer::Printer, safe};

/// Remove a skill with all its files; `undo` restores it
///
/// A skill that was installed with `prowess add` is removed from all clients, or with `--client` from one, and from
/// `prowess.toml` and `prowess.lock`. Only what was installed is removed: if you have edited it, that is an error, and
/// `--force` moves your version to the trash.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name of the skill
    #[arg(add = completion::skills())]
    pub(crate) name: String,
    /// Remove an installed skill from this client only; repeatable
    #[cfg(feature = "packages")]
    #[arg(long, value_name = "NAME", add = completion::clients())]
    pub(crate) client: Vec<String>,
    /// Remove a skill that is installed for all your projects
    #[cfg(feature = "packages")]
    #[arg(short, long)]
    pub(crate) global: bool,
    /// Remove an installed skill that you have edited; your version goes to the trash
    #[cfg(feature = "packages")]
    #[arg(long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    #[cfg(feature = "packages")]
    if let Some(status) = packages::remove(args, global, printer)? {
        return Ok(status);
    }
    let target = context::store_of_skill(&args.name, global, printer)?;
    let name = &args.name;
    // A folder that is not a valid skill can be removed too.
    let entry = target.store.get(name);
    if let Err(error) = target.store.delete(name) {
        return report_missing_skill(error, global, printer);
    }
    match entry {
        Ok(entry) => print_record(&entry, &target, printer)?,
        Err(_) if printer.json => {
            let path = target.path.join(name);
            printer.document(&json!({ "name": name, "path": path.to_string_lossy() }))?;
        }
        Err(_) => printer.line(safe::line(&target.path.join(name).to_string_lossy()))?,
    }
    printer.flush()?;
    printer.note(&format!("`{name}` is removed; `prowess undo {name}` restores it"));
    // The removal is done, whether or not other skills can be searched.
    let others = context::library_without_notes(global, printer).ok();
    if let Some(other) = others.as_ref().and_then(|it| it.get(name)) {
        let path = other.folder().display().to_string();
        printer.note(&format!("another skill `{name}` is still in `{}`", safe::line(&path)));
    }
    Ok(ExitStatus::Success)
}
