use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use prowess_agent::{RecordedTrace, TraceError};

use super::{Readers, write_page};
use crate::{ExitStatus, cli_error::CliError, printer::Printer};

/// Turn a trace into an HTML page, or into numbers with `--json`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The trace, as written by `ask --trace` or `chat --trace`
    file: PathBuf,
    /// Write the page to this file [default: stdout; at a terminal, the name of the trace with `.html`]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The largest trace.
const MAX: u64 = 1024 * 1024 * 1024;

pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<ExitStatus> {
    if printer.json && args.output.is_some() {
        let fault = CliError::new("`--json` prints numbers, and `--output` writes a page");
        return Err(fault.hint("leave one of them out").into());
    }
    let path = args.file.display();
    let bytes = read(&args.file).with_context(|| format!("cannot read `{path}`"))?;
    let traced = match RecordedTrace::read(&bytes) {
        Ok(traced) => traced,
        Err(error) => {
            printer.error_text(&format!("cannot show `{path}`: {error}"));
            if error == TraceError::Session {
                printer.hint("a trace is written beside the session, to a file of its own");
            }
            return Ok(ExitStatus::Failure);
        }
    };
    drop(bytes);
    if printer.json {
        printer.document(&traced.summary())?;
        return Ok(ExitStatus::Success);
    }
    let page = traced.page();
    match args
        .output
        .clone()
        .or_else(|| printer.is_terminal.then(|| args.file.with_added_extension("html")))
    {
        Some(output) => {
            let shown = output.display();
            write(&output, &args.file, &page).with_context(|| format!("cannot write `{shown}`"))?;
            printer.note(&format!("the page is `{shown}`"));
        }
        None => printer.raw(page.as_bytes())?,
    }
    Ok(ExitStatus::Success)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX {
        bail!("it is larger than 1 GiB");
    }
    Ok(bytes)
}

/// Writes the page, but not over the trace.
fn write(output: &Path, trace: &Path, page: &str) -> Result<()> {
    if prowess::real_path(output)
        .is_ok_and(|it| prowess::real_path(trace).is_ok_and(|own| own == it))
    {
        bail!("it is the trace itself");
    }
    write_page(output, page, Readers::Owner)
}
