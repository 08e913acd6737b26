use std::io::{self, IsTerminal as _};

use anyhow::Result;
use prowess::{did_you_mean, nearest};
use prowess_cli::settings::{Config, SettingInfo, SettingOrigin};
use prowess_runtime::{ApprovalStore, AuditLog};
use serde_json::{Value as Json, json};

use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    completion, context, host,
    markdown::wrap,
    printer::{self, Printer},
    safe,
};

/// Show and explain settings, and where each value came from
///
/// Flags win over the nearest `prowess.toml` here or above, which wins over the user's own file and the defaults. A
/// project's file can restrict what the user allows, never extend it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Explain this setting, such as `skill.depth`, or list those of a table, such as `limits`
    #[arg(add = completion::settings(), conflicts_with_all = ["path", "schema", "markdown", "approve"])]
    key: Option<String>,
    /// Print the path of the user's file
    #[arg(long, conflicts_with_all = ["schema", "markdown", "approve"])]
    path: bool,
    /// Print a JSON Schema of `prowess.toml`, for editors
    #[arg(long, conflicts_with_all = ["markdown", "approve"])]
    schema: bool,
    /// Print the reference of all settings as Markdown
    #[arg(long, conflicts_with = "approve")]
    markdown: bool,
    /// Accept the commands and hosts in this project's file, until it changes
    #[arg(long)]
    approve: bool,
    /// Accept them without asking
    #[arg(short, long, requires = "approve")]
    yes: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    if args.path {
        return print_path(global, printer);
    }
    if args.schema {
        printer.document(&Config::schema())?;
        return Ok(ExitStatus::Success);
    }
    if args.markdown {
        printer.raw(Config::reference().as_bytes())?;
        return Ok(ExitStatus::Success);
    }
    let config = context::config(global)?;
    if args.approve {
        return approve(&config, args.yes, printer);
    }
    context::explain_ignored_settings(&config, printer);
    let all = config.settings();
    let settings: Vec<&SettingInfo> = all
        .iter()
        .filter(|it: &&SettingInfo| match args.key.as_deref() {
            None => true,
            Some(key) => it.key == key || it.key.split('.').next() == Some(key),
        })
        .collect();
    if let (true, Some(key)) = (settings.is_empty(), &args.key) {
        printer.error_text(&format!("there is no setting `{key}`"));
        printer.hint(&near_settings(key, &all));
        return Ok(ExitStatus::Failure);
    }
    if printer.json {
        let files: Vec<_> = config.files.iter().map(|it| it.to_string_lossy()).collect();
        let settings: Vec<Json> = settings.iter().map(|it| setting_json(it)).collect();
        printer.document(&json!({ "files": files, "settings": settings }))?;
        return Ok(ExitStatus::Success);
    }
    match (&args.key, &settings[..]) {
        (Some(key), [setting]) if setting.key == key => explain(setting, printer)?,
        _ => print_table(&settings, printer)?,
    }
    printer.flush()?;
    if config.files.is_empty() && args.key.is_none() {
        let places = context::places(global).candidates();
        printer.note("no `prowess.toml` was found, so these are the defaults; looked for");
        for place in places {
            printer.dimmed_note(&format!("  {}", place.display()));
        }
    }
    Ok(ExitStatus::Success)
}

/// Prints the path of the user's own file, whether or not it exists.
fn print_path(global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let Some(path) = context::places(global).user_file() else {
        let fault = CliError::new("there is no home directory to keep settings in");
        return Err(fault.hint("set `HOME` or `XDG_CONFIG_HOME`").into());
    };
    let exists = path.exists();
    if printer.json {
        printer.document(&json!({ "path": path.to_string_lossy(), "exists": exists }))?;
        return Ok(ExitStatus::Success);
    }
    printer.line(safe::line(&path.to_string_lossy()))?;
    printer.flush()?;
    if !exists {
        printer
            .note("this file does not exist yet; `prowess config --markdown` lists all settings");
    }
    Ok(ExitStatus::Success)
}

/// Shows the requests of the project's file, and approves them once the user agrees, bound to its
/// content.
fn approve(config: &Config, yes: bool, printer: &mut Printer) -> Result<ExitStatus> {
    let Some(project) = &config.project else {
        printer.error_text("there is no project `prowess.toml` here or above");
        return Ok(ExitStatus::Failure);
    };
    let asked: Vec<_> = config.ignored.iter().filter(|it| it.can_be_approved).collect();
    let path = project.path.to_string_lossy();
    if !printer.json {
        for it in &asked {
            for entry in &it.entries {
                printer.line(format_args!("{}  {}", printer.name(it.key), safe::line(entry)))?;
            }
        }
        printer.flush()?;
    }
    if !asked.is_empty() && !yes && !is_agreed(&path)? {
        printer.note("nothing was approved");
        return Ok(ExitStatus::Failure);
    }
    if !asked.is_empty() {
        let Some(state) = host::state() else {
            return Err(CliError::new("there is no directory to keep the approval in").into());
        };
        let (store, audit) = (ApprovalStore::at(&state), AuditLog::at(state));
        store.approve_settings(&project.path, &project.digest, "config --approve", &audit);
        let warnings = [audit.take_warnings(), store.take_warnings()].concat();
        if !warnings.is_empty() {
            return Err(CliError::new(warnings.join("; ")).into());
        }
    }
    if printer.json {
        let entries: Vec<Json> = asked
            .iter()
            .map(|it| json!({ "key": it.key, "entries": it.entries, "origin": it.origin.to_string() }))
            .collect();
        printer.document(&json!({ "file": path, "approved": entries }))?;
        return Ok(ExitStatus::Success);
    }
    printer.note(&match (asked.is_empty(), project.is_approved) {
        (false, _) => {
            format!("`{path}` is approved until it changes; `prowess approvals` lists it")
        }
        (true, true) => format!("`{path}` is already approved"),
        (true, false) => format!("`{path}` has no commands or hosts that need approval"),
    });
    let servers = config.servers.value.0.iter().filter(|it| !it.is_trusted);
    let servers: Vec<_> = servers.map(|it| format!("`{}`", it.description.name)).collect();
    if !servers.is_empty() {
        let (servers, list) =
            (servers.join(", "), printer.with_directory_flags("`prowess servers`"));
        printer.note(&format!(
            "its servers are not included: {servers}; {list} asks about each before starting it"
        ));
    }
    Ok(ExitStatus::Success)
}

/// Asks the person at the terminal to approve the requests of a project's file.
fn is_agreed(path: &str) -> Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let fault = CliError::new("there is no terminal to ask at, so nothing was approved");
        return Err(fault.hint("read the file, then run `prowess config --approve --yes`").into());
    }
    let path = safe::line(path);
    Ok(printer::confirm(&format!("Accept these settings of `{path}` until it changes?"))?
        == Some(true))
}

/// Returns a hint with the settings nearest to an unknown key.
fn near_settings(key: &str, all: &[SettingInfo]) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let same = all.iter().map(|it| it.key).filter(|it| it.rsplit('.').next() == Some(last));
    let same: Vec<String> = same.map(|it| format!("`{it}`")).collect();
    let table = nearest(key, all.iter().filter_map(|it| it.key.split('.').next()));
    match table.filter(|_| !key.contains('.')).or_else(|| nearest(key, all.iter().map(|it| it.key)))
    {
        _ if !same.is_empty() => format!("did you mean {}?", same.join(" or ")),
        Some(near) => did_you_mean(near),
        None => "`prowess config` lists all settings".to_owned(),
    }
}

fn setting_json(it: &SettingInfo) -> Json {
    json!({
        "key": it.key,
        "value": it.value,
        "origin": it.origin.to_string(),
        "default": it.default,
        "type": it.kind,
        "description": it.about,
        "project": it.project.as_str(),
        "flag": it.flag,
        "example": it.example,
    })
}

/// Prints everything about one setting.
fn explain(it: &SettingInfo, printer: &mut Printer) -> Result<()> {
    let width = printer.width.unwrap_or(100).clamp(30, 100);
    printer.line(format_args!("{} = {}", printer.name(it.key), safe::line(&it.text)))?;
    for line in wrap(it.about, width - 2, "") {
        printer.line(format_args!("  {line}"))?;
    }
    printer.line("")?;
    let flag = it.flag.map(|it| format!("; `{it}` for one run")).unwrap_or_default();
    let rows = [
        ("origin", it.origin.to_string()),
        ("default", it.default.clone()),
        ("type", it.kind.clone()),
        ("user's file", format!("yes{flag}")),
        ("project's file", it.project.phrase().to_owned()),
    ];
    for (name, text) in rows {
        let name = format!("{name}:");
        let lines = wrap(&safe::line(&text), width - 18, "");
        let text = lines.join(&format!("\n{}", " ".repeat(18)));
        printer.line(format_args!("  {}{text}", printer.dim(&format!("{name:<16}"))))?;
    }
    printer.line("")?;
    for line in it.lines().lines() {
        printer.line(format_args!("  {}", printer.dim(line)))?;
    }
    Ok(())
}

/// Prints two lines per setting: key, value and origin unless it is the default; then its
/// description.
fn print_table(settings: &[&SettingInfo], printer: &mut Printer) -> Result<()> {
    for it in settings {
        let value = safe::line(&it.text).into_owned();
        let line = match it.origin {
            SettingOrigin::Default => {
                let value = match (&*it.text, printer.width) {
                    ("not set", _) | (_, None) => value,
                    (_, Some(width)) => {
                        safe::cut(&value, width.saturating_sub(it.key.len() + 3).max(20))
                    }
                };
                printer.dim(&value)
            }
            SettingOrigin::File { .. } | SettingOrigin::Flag(_) => {
                let origin = it.origin.to_string();
                format!("{value}  {}", printer.dim(&format!("({})", safe::line(&origin))))
            }
        };
        printer.line(format_args!("{} = {line}", printer.name(it.key)))?;
        let width = printer.width.map_or(usize::MAX, |it| it.saturating_sub(4).max(20));
        for line in wrap(it.about, width, "") {
            printer.line(format_args!("    {line}"))?;
        }
    }
    Ok(())
}
