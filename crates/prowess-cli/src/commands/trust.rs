use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use prowess_runtime::approval::TrustFile;
use serde_json::json;

use crate::{ExitStatus, cli_error::CliError, printer::Printer, safe, trust};

/// Trust the skills of a project, or stop trusting them
///
/// `ask`, `chat`, `run`, `tool` and `mcp --run` do not use the skills of a project until the project is trusted.
/// They ask at a terminal; this command answers in advance. It trusts the repository that contains the path, or the
/// folder itself if there is no repository, with everything in it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder of the project [default: the working directory]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    path: Option<PathBuf>,
    /// Stop trusting it
    #[arg(long)]
    revoke: bool,
    /// List the projects you have decided about
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    list: bool,
}

pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<ExitStatus> {
    let Some(file) = trust::trust_file() else {
        let hint = "set `HOME`, or `XDG_STATE_HOME` to an absolute path";
        return Err(CliError::new("there is no home directory to save it in").hint(hint).into());
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
            let fault = CliError::invalid_input(format!("`{shown}` was not trusted"));
            return Err(fault.hint("`prowess trust --list` lists your decisions").into());
        }
        printer.note(&format!("`{shown}` is no longer trusted"));
        return Ok(ExitStatus::Success);
    }
    if !path.is_dir() {
        return Err(CliError::invalid_input(format!("`{}` is not a folder", path.display())).into());
    }
    let folder = file.decide(&trust::project_of(path), true).with_context(cannot)?;
    printer.note(&format!("trusted `{}`", folder.display()));
    Ok(ExitStatus::Success)
}

fn list(file: &TrustFile, printer: &mut Printer) -> Result<ExitStatus> {
    let entries =
        file.entries().with_context(|| format!("cannot read `{}`", file.path().display()))?;
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
        printer.note("no project is trusted yet; use `prowess trust .` to trust this one");
    }
    Ok(ExitStatus::Success)
}
