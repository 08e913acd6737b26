use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::json;

use super::count;
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    packages::{self, Place, size_text},
    printer::Printer,
    safe,
};

/// Show or clean the cache of fetched packages
///
/// Without options, prints where the cache is and how much it takes. What is removed is fetched again when it is
/// needed; installed skills stay as they are.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Remove what no installed skill of this project or of yours needs
    #[arg(long)]
    clean: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let folder = packages::cache_folder()?;
    let cache = packages::open_cache()?;
    let failed = |error: prowess_packages::CacheError| {
        CliError::new(packages::chain(&error)).hint(error.hint())
    };
    if !args.clean {
        let size = cache.size().map_err(failed)?;
        if printer.json {
            printer.document(&json!({
                "path": folder.to_string_lossy(), "files": size.files, "bytes": size.bytes,
            }))?;
            return Ok(ExitStatus::Success);
        }
        let files = count(usize::try_from(size.files).unwrap_or(usize::MAX), "file");
        let path = safe::line(&folder.to_string_lossy()).into_owned();
        printer.line(format_args!(
            "{}  {files}, {}",
            printer.name(&path),
            size_text(size.bytes)
        ))?;
        printer.flush()?;
        if size.files > 0 {
            printer.note("`prowess cache --clean` removes what no installed skill needs");
        }
        return Ok(ExitStatus::Success);
    }
    let mut keep = BTreeSet::new();
    for is_global in [false, true] {
        let Ok(place) = Place::find(is_global, global) else { continue };
        let lock = place.read_lock()?;
        keep.extend(lock.skills().iter().flat_map(|it| it.files.iter().map(|it| it.digest)));
    }
    let removed = cache.prune(&keep).map_err(failed)?;
    if printer.json {
        printer.document(&json!({
            "path": folder.to_string_lossy(),
            "removed": { "files": removed.files, "bytes": removed.bytes },
        }))?;
        return Ok(ExitStatus::Success);
    }
    let files = count(usize::try_from(removed.files).unwrap_or(usize::MAX), "file");
    printer.note(&match removed.files {
        0 => "nothing was removed".to_owned(),
        _ => format!("{files} removed, {}", size_text(removed.bytes)),
    });
    Ok(ExitStatus::Success)
}
