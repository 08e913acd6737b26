use anyhow::{Context as _, Result};
use clap_complete::{Shell, env::Shells};
use serde_json::json;

use crate::{Status, completion::ASKED, printer::Printer};

/// Print the script by which a shell completes commands, flags and names
///
/// It asks this program what a word can become, so that skills, sessions and settings are completed as
/// they are at that moment.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell that reads it
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<Status> {
    let name = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).with_context(|| format!("`{name}` cannot ask"))?;
    let mut script = Vec::new();
    shell.write_registration(ASKED, "prowess", "prowess", "prowess", &mut script)?;
    if printer.json {
        let script = String::from_utf8_lossy(&script);
        printer.document(&json!({ "shell": name, "script": script }))?;
    } else {
        printer.raw(script.trim_ascii_start())?;
    }
    Ok(Status::Well)
}
