use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::Command;
use clap_mangen::Man;
use serde_json::json;

#[cfg(feature = "agent")]
use crate::connection;
use crate::{ExitStatus, arguments::Arguments, printer::Printer, safe};

/// Write manual pages, one for each command
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory to write to; without it, prints the page of `prowess` itself
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<ExitStatus> {
    let mut command = Arguments::command_with_examples().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages);
    let Some(directory) = &args.directory else {
        let page = Page::of(&pages[0])?;
        match printer.json {
            true => printer.document(&json!({ "name": page.name, "page": page.text }))?,
            false => printer.raw(page.text.as_bytes())?,
        }
        return Ok(ExitStatus::Success);
    };
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot write to `{}`", directory.display()))?;
    let mut paths = Vec::new();
    for command in &pages {
        let page = Page::of(command)?;
        let path = directory.join(&page.name);
        fs::write(&path, page.text)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        paths.push(path.to_string_lossy().into_owned());
    }
    if printer.json {
        printer.document(&json!({ "pages": paths }))?;
        return Ok(ExitStatus::Success);
    }
    paths.iter().try_for_each(|it| printer.line(safe::line(it)))?;
    Ok(ExitStatus::Success)
}

/// Collects a command and its subcommands, the command first.
fn collect(command: &Command, all: &mut Vec<Command>) {
    all.push(command.clone());
    command.get_subcommands().filter(|it| !it.is_hide_set()).for_each(|it| collect(it, all));
}

/// Returns the sections about the environment on the page of the program itself.
fn extra_sections() -> String {
    let models = model_variables();
    format!(
        r#".SH "EXIT STATUS"
.TP
0
Success.
.TP
1
A skill or the input has errors, or nothing was found.
.TP
2
The command failed, or the command line is invalid.
.SH ENVIRONMENT
.TP
NO_COLOR, CLICOLOR_FORCE
Disable colours; enable them even without a terminal.
.TP
COLUMNS
Width of the output, instead of that of the terminal.
{models}.TP
PROWESS_MCP_TOKEN
The token for clients of \fBprowess mcp \-\-http\fR .
.SH FILES
.TP
prowess.toml
Settings, here or in a folder above; those of the user are in ~/.config/prowess.
.TP
~/.cache/prowess
Cached skills; can be deleted at any time.
.TP
~/.local/state/prowess/sessions
Saved conversations.
"#
    )
}

/// Returns the entries about the variables of model providers.
#[cfg(feature = "agent")]
fn model_variables() -> String {
    let (keys, addresses) = (connection::key_variables(), connection::base_url_variables());
    let entries = [
        (keys, "API keys for model providers."),
        (addresses, "Base URL of the model's server, instead of the provider's own."),
    ];
    entries.map(|(names, about)| format!(".TP\n{}\n{about}\n", names.join(", "))).concat()
}

/// Returns no entries: this build knows no model providers.
#[cfg(not(feature = "agent"))]
fn model_variables() -> &'static str {
    ""
}

/// The manual page of a command.
struct Page {
    name: String,
    text: String,
}

impl Page {
    fn of(command: &Command) -> Result<Self> {
        // The name of a page is the command with hyphens.
        let typed = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
        let source = format!("prowess {}", env!("CARGO_PKG_VERSION"));
        let man = Man::new(command.clone()).title(&typed).source(source).manual("Prowess");
        let mut text = Vec::new();
        man.render(&mut text)?;
        let text = String::from_utf8(text)?;
        let mut text = text.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n");
        if typed == "prowess" {
            text.push_str(&extra_sections());
        }
        Ok(Self { name: format!("{typed}.1"), text })
    }
}
