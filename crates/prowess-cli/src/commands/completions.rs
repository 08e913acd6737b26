use anyhow::{Context as _, Result};
use clap_complete::{Shell, env::Shells};
use serde_json::json;

use crate::{ExitStatus, completion::ASKED, printer::Printer};

/// Print a shell completion script for commands, options and names
///
/// The script calls this program, so that names of skills, sessions and settings are always current.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Our own script for bash: that of clap does not join words that bash has split, and does not
/// quote paths with blanks.
const BASH: &str = include_str!("completions.bash");

pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<ExitStatus> {
    let name = args.shell.to_string();
    let script = match args.shell {
        Shell::Bash => BASH.to_owned(),
        _ => script(&name)?,
    };
    if printer.json {
        printer.document(&json!({ "shell": name, "script": script }))?;
    } else {
        printer.raw(script.as_bytes())?;
    }
    Ok(ExitStatus::Success)
}

/// Returns the script of clap for a shell.
fn script(name: &str) -> Result<String> {
    let shells = Shells::builtins();
    let shell = shells.completer(name).with_context(|| format!("`{name}` cannot ask"))?;
    let mut script = Vec::new();
    shell.write_registration(ASKED, "prowess", "prowess", "prowess", &mut script)?;
    Ok(String::from_utf8_lossy(&script).trim_start().to_owned())
}
