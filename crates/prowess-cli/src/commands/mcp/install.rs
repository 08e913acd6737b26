mod client;
mod document;
mod jsonc;
mod redact;
mod toml;
mod yaml;

use std::{
    env,
    io::{self, IsTerminal as _},
    path::{self, Path},
};

use anyhow::Result;
use clap::{Parser as _, ValueEnum as _};
use prowess::{Citation, Directory, SettingsFormat};
use serde_json::json;

use self::{client::McpClient, document::Document};
use crate::{
    ExitStatus,
    arguments::{Arguments, Command, Global, ProfileName},
    cli_error::CliError,
    completion, context, diff,
    printer::{self, Printer},
    safe, surroundings, usage_error,
};

/// Register this server in a client's settings
///
/// Shows what will change and asks for confirmation at a terminal; elsewhere, `--yes` is required. Nothing else in
/// the file changes. Directories, presets and similar options are passed on to the server.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The client, such as `claude-code`, `codex`, `cursor` or `vscode`; without it, lists all clients
    #[arg(long, value_name = "NAME", add = completion::from_list(McpClient::all().into_iter().map(|it| (it.name, it.label))))]
    client: Option<String>,
    /// Register for the project in the working directory or in `--cwd`
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// Register for all projects of this user; the default
    #[arg(long)]
    user: bool,
    /// Name of the server in the client
    #[arg(long, value_name = "NAME", default_value = "prowess", value_parser = parse_name)]
    name: String,
    /// Remove the server from the settings
    #[arg(long)]
    remove: bool,
    /// Show what would change, without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Write without asking
    #[arg(short, long)]
    yes: bool,
    /// More arguments for the server, such as `-- --watch`
    #[arg(last = true, value_name = "ARGUMENTS")]
    more: Vec<String>,
}

impl Args {
    /// Returns whether no action is given.
    fn is_bare(&self) -> bool {
        let Self { client, project, user, name: _, remove, dry_run, yes, more } = self;
        client.is_none() && !project && !user && !remove && !dry_run && !yes && more.is_empty()
    }
}

/// A file that cannot be edited, with the reason.
#[derive(Debug)]
struct Broken {
    line: Option<usize>,
    what: String,
}

impl Broken {
    fn at(text: &str, at: usize, what: impl Into<String>) -> Self {
        let before = text.get(..at).unwrap_or(text);
        Self { line: Some(before.matches('\n').count() + 1), what: what.into() }
    }

    fn whole(what: impl Into<String>) -> Self {
        Self { line: None, what: what.into() }
    }
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let Some(client) = &args.client else {
        return if args.is_bare() {
            list(printer)
        } else {
            let fault = CliError::new("no client was given");
            Err(fault.hint("`prowess mcp install` lists the supported clients").into())
        };
    };
    let client = McpClient::find(client)?;
    let here = path::absolute(global.cwd.as_deref().unwrap_or(Path::new(".")))?;
    if !here.is_dir() {
        return Err(CliError::new(format!("there is no folder `{}`", here.display())).into());
    }
    let project = args.project.then_some(&*here);
    let path = match project {
        Some(project) => client.project_file(project)?,
        None => client.user_file(surroundings::surroundings(global, None)?.0)?,
    };
    let document = Document::open(path, project)?;
    if document.is_link() {
        let (path, target) = (document.path.display(), document.target.display());
        printer.note(&format!("`{path}` is a link; `{target}` will be changed"));
    }
    let text = edit_settings(args, global, &client, &document, printer)?;
    let is_new = text != document.text;
    let path = document.path.to_string_lossy();
    // Without context lines and secrets: one line may have all settings.
    let [before, after] =
        [&document.text, &text].map(|it| redact::redact(it, client.settings.format));
    let diff = diff::diff(&path, &before, &after, 0);
    if is_new && !printer.json {
        printer.line(diff::for_terminal(&diff, printer.colored).trim_end())?;
        printer.flush()?;
    }
    let is_written = is_new && !args.dry_run && is_agreed(args, &diff, printer)?;
    if is_written {
        if let Some(folder) = document.missing_folder() {
            let (folder, label) = (folder.display(), client.label);
            printer.warning(&format!(
                "`{folder}` does not exist and will be created; is {label} installed?"
            ));
        }
        document.write(&text, args.project)?;
    }
    if printer.json {
        printer.document(&json!({
            "client": client.name,
            "path": path,
            "changed": is_written,
            "diff": diff,
        }))?;
    }
    print_result(args, &client, is_new, is_written, printer);
    Ok(if is_new && !is_written && !args.dry_run {
        ExitStatus::Failure
    } else {
        ExitStatus::Success
    })
}

/// Lists the known clients.
fn list(printer: &mut Printer) -> Result<ExitStatus> {
    if printer.json {
        let clients = McpClient::all().into_iter();
        let clients = clients.map(|it| json!({ "name": it.name, "label": it.label }));
        printer.document(&json!({ "clients": clients.collect::<Vec<_>>() }))?;
        return Ok(ExitStatus::Success);
    }
    let clients = McpClient::all();
    let room = clients.iter().map(|it| it.name.len()).max().unwrap_or(0);
    for McpClient { name, label, .. } in clients {
        let pad = " ".repeat(room - name.len());
        printer.line(format_args!("{}{pad}  {label}", printer.name(name)))?;
    }
    printer.flush()?;
    printer.note("`prowess mcp install --client NAME` registers this server in one of them");
    Ok(ExitStatus::Success)
}

/// Returns the text of the settings with the server added or removed.
fn edit_settings(
    args: &Args,
    global: &Global,
    client: &McpClient,
    document: &Document,
    printer: &mut Printer,
) -> Result<String> {
    let text = &*document.text;
    let (mark, text) = text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 });
    let way = [
        client.servers(|way: &[&str]| {
            let it = jsonc::get(text, way).ok().flatten();
            it.is_some_and(|it| it.is_object() && it.get("type").is_none())
        }),
        &[args.name.as_str()],
    ]
    .concat();
    let edited = if args.remove {
        match client.settings.format {
            _ if text.trim().is_empty() => Ok(text.to_owned()),
            SettingsFormat::Json => jsonc::remove(text, &way),
            SettingsFormat::Toml => toml::remove(text, &way),
            SettingsFormat::Yaml => yaml::remove(text, &way),
        }
    } else {
        let arguments = arguments(args, global, printer)?;
        let entry = client.entry(&args.name, &program_path()?, &arguments);
        match client.settings.format {
            SettingsFormat::Json => jsonc::put(text, &way, &entry),
            SettingsFormat::Toml => toml::put(text, &way, &entry),
            SettingsFormat::Yaml => yaml::put(text, &way, &entry),
        }
    };
    let edited = edited.map_err(|Broken { line, what }| {
        let line = line.map(|it| format!(":{it}")).unwrap_or_default();
        CliError::new(format!("`{}{line}`: {what}", document.path.display()))
            .hint("the file was not changed; fix it, or add the server by hand")
    })?;
    Ok(format!("{mark}{edited}"))
}

/// Returns whether the user agrees to the change.
fn is_agreed(args: &Args, diff: &str, printer: &mut Printer) -> Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let fault = CliError::new("there is no terminal to ask at, so nothing was written");
        return Err(fault.hint("`--yes` writes without asking").into());
    }
    if printer.json {
        printer::write_stderr(&safe::lines(diff));
    }
    Ok(printer::confirm("Write this?")? == Some(true))
}

/// Prints the result.
fn print_result(
    args: &Args,
    client: &McpClient,
    is_new: bool,
    is_written: bool,
    printer: &mut Printer,
) {
    let label = client.label;
    let Citation { url: source, checked, .. } = client.settings.source;
    let name = &args.name;
    printer.note(&match (is_new, is_written, args.remove) {
        (false, _, false) => format!("`{name}` is already registered; nothing to change"),
        (false, _, true) => format!("`{name}` is not registered; nothing to change"),
        (true, false, _) => "nothing was written".to_owned(),
        (true, true, false) => format!(
            "restart {label} to use `{name}`; its format is documented at {source} (checked {checked})"
        ),
        (true, true, true) => format!("removed `{name}`; restart {label}"),
    });
}

/// Returns the path of this program.
fn program_path() -> Result<String> {
    path_text(&env::current_exe()?)
}

/// Returns the arguments of the server: all options that choose skills, and those given for it.
fn arguments(args: &Args, global: &Global, printer: &mut Printer) -> Result<Vec<String>> {
    // Invalid settings are reported now, not by a client later.
    context::config(global)?;
    let mut all = vec!["mcp".to_owned()];
    let mut add = |flag: &str, value: String| all.extend([flag.to_owned(), value]);
    for directory in &global.dir {
        let directory = path::absolute(context::resolve(&Directory::new(directory), global))?;
        if !directory.is_dir() {
            printer.warning(&format!("there is no folder `{}` yet", directory.display()));
        }
        add("--dir", path_text(&directory)?);
    }
    global.preset.iter().for_each(|it| add("--preset", it.clone()));
    let base = global.cwd.as_deref().unwrap_or(Path::new("."));
    if global.cwd.is_some() {
        add("--cwd", path_text(&path::absolute(base)?)?);
    }
    if let Some(config) = &global.config {
        add("--config", path_text(&path::absolute(base.join(config))?)?);
    }
    global.depth.iter().for_each(|it| add("--depth", it.get().to_string()));
    global.include.iter().for_each(|it| add("--include", it.clone()));
    global.exclude.iter().for_each(|it| add("--exclude", it.clone()));
    global.max_file_size.iter().for_each(|it| add("--max-file-size", it.0.to_string()));
    global.max_skill_size.iter().for_each(|it| add("--max-skill-size", it.0.to_string()));
    if global.profile != ProfileName::Spec {
        let name = global.profile.to_possible_value();
        name.iter().for_each(|it| add("--profile", it.get_name().to_owned()));
    }
    all.extend(args.more.iter().cloned());
    let typed = ["prowess"].into_iter().chain(all.iter().map(String::as_str));
    match Arguments::try_parse_from(typed).map(|it| it.command) {
        Ok(Some(Command::Mcp(mcp))) if mcp.is_of_a_client() => Ok(all),
        Ok(_) => {
            let message = "a client starts the server on stdio";
            Err(CliError::new(message).hint("`--http` and commands cannot be used here").into())
        }
        Err(error) => Err(usage_error::explain(&error, &all).into()),
    }
}

/// Returns a path as text, which is all that settings can contain.
fn path_text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    Ok(text.ok_or_else(|| {
        CliError::new(format!("`{}` cannot be written: it is not valid UTF-8", path.display()))
    })?)
}

/// Parses a name that every client accepts.
fn parse_name(typed: &str) -> Result<String, String> {
    match !typed.is_empty()
        && typed.chars().all(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    {
        true => Ok(typed.to_owned()),
        false => Err("only letters, digits, `-` and `_` are allowed".to_owned()),
    }
}
