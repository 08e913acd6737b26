use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use prowess_runtime::TrustFile;
use serde_json::json;

use crate::{ExitStatus, cli_error::CliError, printer::Printer, safe, trust};

/// Let the skills of a project act, or take that back
///
/// `ask`, `chat`, `run`, `tool` and `mcp --run` leave out the skills that a project brings until the project is
/// trusted. They ask at a terminal; this command answers ahead. It trusts the repository that a path is in, or the
/// folder itself where there is none, with everything below it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder of the project [default: the working directory]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    path: Option<PathBuf>,
    /// Trust it no longer
    #[arg(long)]
    revoke: bool,
    /// List what you have decided so far
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    list: bool,
}

pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<ExitStatus> {
    let Some(file) = trust::file() else {
        let hint = "set `HOME`, or `XDG_STATE_HOME` to an absolute path";
        return Err(CliError::unable("there is no home directory to remember it in")
            .hint(hint)
            .into());
    };
    if args.list {
        return list(&file, printer);
    }
    let path = args.path.as_deref().unwrap_or(Path::new("."));
    let cannot = || format!("cannot write `{}`", file.path().display());
    if args.revoke {
        let folder = if path.exists() { trust::project_of(path) } else { path.to_owned() };
        let mut is_known = file.forget(&folder).with_context(cannot)?;
        if folder != path {
            is_known |= file.forget(path).with_context(cannot)?;
        }
        // A folder above it may be trusted, with everything below.
        let is_covered = path.exists() && file.decision(&folder)? == Some(true);
        if is_covered {
            file.decide(&folder, false).with_context(cannot)?;
        }
        let shown = folder.display();
        if !is_known && !is_covered {
            let fault = CliError::typed(format!("`{shown}` was not trusted"));
            return Err(fault.hint("`prowess trust --list` lists what you have decided").into());
        }
        printer.note(&format!("`{shown}` is no longer trusted"));
        return Ok(ExitStatus::Success);
    }
    if !path.is_dir() {
        return Err(CliError::typed(format!("`{}` is not a folder", path.display())).into());
    }
    let folder = file.decide(&trust::project_of(path), true).with_context(cannot)?;
    printer.note(&format!("`{}` is trusted: its skills may act", folder.display()));
    Ok(ExitStatus::Success)
}

fn list(file: &TrustFile, printer: &mut Printer) -> Result<ExitStatus> {
    let cannot = || format!("cannot read `{}`", file.path().display());
    let entries = file.entries().with_context(cannot)?;
    if printer.json {
        printer.document(&json!({ "folders": entries }))?;
        return Ok(ExitStatus::Success);
    }
    for entry in &entries {
        let word = if entry.trusted { "trusted" } else { "not trusted" };
        let path = entry.path.to_string_lossy();
        printer.line(format_args!("{word:<11}  {}", safe::line(&path)))?;
    }
    if entries.is_empty() {
        printer.note("no project is trusted yet; `prowess trust .` trusts this one");
    }
    Ok(ExitStatus::Success)
}
