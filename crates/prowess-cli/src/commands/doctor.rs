mod asked;
mod document;
mod page;
mod faults;
mod matrix;
mod lines;

use std::path::PathBuf;

use anyhow::Result;
use prowess::{
    CLIENTS, Checkup, Client, Directory, ExaminedSkill, Severity, Surroundings, client,
    did_you_mean, examine, installed_clients, nearest,
};
use serde_json::Value as Json;

pub(super) use self::lines::{unbroken, wrap_words};
use self::{
    asked::{find_skills, plugin_of, skill_folder},
    document::document,
    matrix::print_matrix,
    page::{print_needs, print_overview, print_skill},
};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    completion, context, host,
    needs::SkillNeeds,
    printer::Printer,
    surroundings::{absolute, plugin_directory, surroundings},
};

/// Show which installed clients load your skills, and why others do not
///
/// Without a name, examines every skill in a directory that a client reads, or in a configured directory. Only
/// clients that are installed for this user or used in this project are considered; `--all` includes every known
/// client. Exits 1 if a client reads the directory of a skill and does not load the skill, because it misses or
/// refuses the file or loads another skill with the same name. With `--client`, also if that client does not read
/// the directory.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name of a skill, the path of its folder or file, or a folder to search, as with `--dir`
    #[arg(add = completion::examined_skills())]
    name: Option<String>,
    /// Include every known client, not only those installed here
    #[arg(long, conflicts_with = "client")]
    all: bool,
    /// Add a table of all skills and clients
    #[arg(long, conflicts_with = "name")]
    table: bool,
    /// Consider only this client, such as `claude-code`; repeatable
    #[arg(long, value_name = "NAME", add = completion::clients())]
    client: Vec<String>,
}

/// The number of findings printed by default.
const SHOWN: usize = 10;

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    context::check_typed_directories(global)?;
    let named = find_clients(&args.client)?;
    let name = args.name.as_deref();
    let searched = name.filter(|it| asked::is_folder_of_skills(it, global));
    let global = &context::with_paths(global, searched.map(PathBuf::from).as_slice());
    let name = name.filter(|_| searched.is_none());
    let folder = name.map(|it| skill_folder(it, global)).transpose()?.flatten();
    let typed = folder.as_deref().filter(|_| name.is_some_and(context::is_path));
    let (surroundings, project) = surroundings(global, typed)?;
    if let Some(project) = project {
        printer.note(&format!("as seen from `{}`, the project it belongs to", project.display()));
    }
    let clients = match (named.is_empty(), args.all) {
        (false, _) => named,
        (true, true) => CLIENTS.iter().collect(),
        (true, false) => installed_or_all(&surroundings, printer),
    };
    let mut others: Vec<Directory> = folder.iter().map(Directory::new).collect();
    others.extend(configured_directories(global, printer)?);
    if name.is_some() {
        // A skill that the judged clients do not see may be in the directory of another.
        others.extend(surroundings.here().into_iter().filter(|it| it.path.exists()));
    }
    let checkup =
        printer.with_progress("examining skills", || examine(&clients, &surroundings, &others));
    let chosen = match name {
        Some(name) => find_skills(&checkup, name, folder.as_deref())?,
        None => checkup.skills.iter().collect(),
    };
    let is_asked = !args.client.is_empty();
    if printer.json {
        let needs: Vec<Option<Json>> = match name {
            Some(_) => chosen.iter().map(|it| Some(needs_of(it, global)?.json())).collect(),
            None => vec![None; chosen.len()],
        };
        printer.document(&document(&checkup, &chosen, &clients, &surroundings, needs))?;
    } else if name.is_some() {
        for (number, skill) in chosen.iter().enumerate() {
            if number > 0 {
                printer.line("")?;
            }
            print_skill(skill, &checkup.crowded, printer)?;
            if let Some(needs) = needs_of(skill, global) {
                print_needs(&skill.name, &needs, printer)?;
            }
        }
        if let Some(plugin) = chosen.iter().find_map(|it| plugin_of(&it.path)) {
            let plugin = plugin.display();
            printer.note(&format!("it is part of the plugin in `{plugin}`; what clients load from plugins is not examined"));
        }
    } else {
        print_overview(&checkup, &clients, is_asked, printer)?;
        if args.table {
            print_matrix(&checkup.skills, &clients, printer)?;
        }
    }
    printer.flush()?;
    report_unexamined(&checkup, printer);
    if !is_asked {
        note_unjudged(&clients, printer);
    }
    if let Some(plugins) = plugin_directory(&surroundings).filter(|_| name.is_none()) {
        let plugins = plugins.display();
        printer.note(&format!("skills of plugins are not examined (`{plugins}`)"));
    }
    let diagnoses = chosen.iter().flat_map(|it| &it.diagnoses);
    let is_refused =
        diagnoses.into_iter().any(|it| it.is_fault() || is_asked && it.verdict.is_fault());
    let is_unread = name.is_none() && has_unread(&checkup);
    Ok(if is_refused || is_unread { ExitStatus::Failure } else { ExitStatus::Success })
}

/// Returns the needs of an examined skill; `None` if it does not load.
fn needs_of(skill: &ExaminedSkill, global: &Global) -> Option<SkillNeeds> {
    let config = context::config(global).ok()?;
    let options = context::options(&config, global);
    SkillNeeds::in_folder(skill.path.parent()?, &options, &host::interpreters(&config))
}

/// Returns the installed clients; all, with a note, if none is detected.
fn installed_or_all(surroundings: &Surroundings, printer: &mut Printer) -> Vec<&'static Client> {
    let installed = installed_clients(surroundings);
    if !installed.is_empty() {
        return installed;
    }
    let all = CLIENTS.len();
    printer.note(&format!(
        "no installed client was detected, so all {all} known clients are included"
    ));
    CLIENTS.iter().collect()
}

/// Notes how many clients are known beside those that are judged.
fn note_unjudged(clients: &[&'static Client], printer: &mut Printer) {
    let others = CLIENTS.len() - clients.len();
    if others > 0 {
        printer.note(&format!(
            "{} not installed here; `--all` includes them",
            match others {
                1 => "1 known client is".to_owned(),
                _ => format!("{others} known clients are"),
            }
        ));
    }
}

/// Returns the configured directories, without missing ones of presets.
pub(super) fn configured_directories(
    global: &Global,
    printer: &mut Printer,
) -> Result<Vec<Directory>> {
    let config = context::config(global)?;
    context::note_ignored_settings(&config, printer);
    let mut directories = Vec::new();
    for directory in config.directories() {
        let path = absolute(&context::resolve(&directory, global))?;
        let is_meant = !directory.optional || path.exists();
        directories.extend(is_meant.then_some(Directory { path, ..directory }));
    }
    Ok(directories)
}

/// Returns the names and paths of the skills in configured directories and those of clients.
pub(crate) fn skill_names(global: &Global) -> Result<Vec<(String, String)>> {
    let (surroundings, _) = surroundings(global, None)?;
    let config = context::config(global)?;
    let others = config.directories().into_iter().map(|it| {
        let path = absolute(&context::resolve(&it, global))?;
        Ok(Directory { path, ..it })
    });
    let others: Vec<Directory> = others.collect::<Result<_>>()?;
    let clients: Vec<&Client> = CLIENTS.iter().collect();
    let skills = examine(&clients, &surroundings, &others).skills.into_iter();
    Ok(skills.map(|it| (it.name, it.path.to_string_lossy().into_owned())).collect())
}

/// Returns whether some skills could not be read.
fn has_unread(checkup: &Checkup) -> bool {
    checkup.findings.iter().any(|it| it.severity == Severity::Error)
}

/// Returns the clients of these names, each once.
fn find_clients(names: &[String]) -> Result<Vec<&'static Client>, CliError> {
    let mut clients: Vec<&'static Client> = Vec::new();
    for name in names {
        let client = client(name).ok_or_else(|| no_client(name))?;
        if !clients.iter().any(|it| it.name == client.name) {
            clients.push(client);
        }
    }
    Ok(clients)
}

fn no_client(name: &str) -> CliError {
    let known: Vec<&str> = CLIENTS.iter().map(|it| it.name).collect();
    // The maker's name for it, as somebody would type it.
    let labels: Vec<String> =
        CLIENTS.iter().map(|it| it.label.to_lowercase().replace(' ', "-")).collect();
    let near = nearest(name, known.iter().copied()).or_else(|| {
        let near = nearest(name, labels.iter().map(String::as_str))?;
        Some(known[labels.iter().position(|it| it == near)?])
    });
    let fault = CliError::new(format!("there is no client `{name}`"));
    match near {
        Some(near) => fault.hint(did_you_mean(near)),
        None => fault.hint(format!("there are {}", known.join(", "))),
    }
}

/// Reports what could not be examined.
fn report_unexamined(checkup: &Checkup, printer: &mut Printer) {
    let most = if printer.verbose { checkup.findings.len() } else { SHOWN };
    checkup.findings.iter().take(most).for_each(|it| printer.finding(it));
    if checkup.findings.len() > most {
        let more = checkup.findings.len() - most;
        printer.note(&format!("{more} more could not be examined (-v shows them)"));
    }
}
