mod document;
mod page;
mod matrix;
mod lines;

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::{
    CLIENTS, Checkup, Client, Directory, Examined, Finding, Library, Options, Severity,
    Surroundings, VARIABLES, bundled, client, examine, nearest,
};

use self::{
    document::document,
    matrix::matrix,
    page::{overview, section},
};
use crate::{Status, arguments::Global, completion, context, fault::Fault, printer::Printer};

/// Say which clients find a skill, which load it, and why not
///
/// Without a name it looks at every skill that lies where a client looks, or in a configured directory. Exits 1 when
/// a client that looks where a skill lies does not take it: because it overlooks or refuses the file, or takes another
/// of its name. With `--client`, also when that client does not look there.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name of a skill, or the path of its folder or file
    #[arg(add = completion::examined())]
    name: Option<String>,
    /// End with a table of all skills and clients
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Only this client, such as `claude-code`; may be given several times
    #[arg(long, value_name = "NAME", add = completion::clients())]
    client: Vec<String>,
}

/// How many findings are told without being asked for.
const SHOWN: usize = 10;

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Status> {
    let clients = clients(&args.client)?;
    let name = args.name.as_deref();
    let folder = name.map(|it| folder_of(it, global)).transpose()?.flatten();
    let (surroundings, project) =
        surroundings(global, folder.as_deref().filter(|_| is_path(name)))?;
    if let Some(project) = project {
        printer.note(&format!("as seen from `{}`, where it belongs", project.display()));
    }
    let config = context::config(global)?;
    context::passed_over(&config, printer);
    let mut others: Vec<PathBuf> = folder.iter().cloned().collect();
    for directory in config.directories() {
        let path = absolute(&context::resolve(&directory, global))?;
        others.extend(Some(path).filter(|it| !directory.optional || it.exists()));
    }
    if name.is_some() {
        // A skill that the chosen clients do not see lies where others look.
        let spots = CLIENTS.iter().flat_map(|it| surroundings_of(it, &surroundings));
        others.extend(spots.filter(|it| it.exists()));
    }
    let examine = || examine(&clients, &surroundings, &others);
    let checkup = printer.during("examining skills", examine);
    let chosen = match name {
        Some(name) => chosen(&checkup, name, folder.as_deref())?,
        None => checkup.skills.iter().collect(),
    };
    let is_asked = !args.client.is_empty();
    if printer.json {
        printer.document(&document(&checkup, &chosen, &clients))?;
    } else if name.is_some() {
        for (number, skill) in chosen.iter().enumerate() {
            if number > 0 {
                printer.line("")?;
            }
            section(skill, &checkup.crowded, printer)?;
        }
        if let Some(plugin) = chosen.iter().find_map(|it| plugin_of(&it.path)) {
            let plugin = plugin.display();
            printer.note(&format!("it is part of the plugin in `{plugin}`; what clients take from plugins is not looked at"));
        }
    } else {
        overview(&checkup, &clients, is_asked, printer)?;
        if args.all {
            matrix(&checkup.skills, &clients, printer)?;
        }
    }
    printer.flush()?;
    tell(&checkup, printer);
    let diagnoses = chosen.iter().flat_map(|it| &it.diagnoses);
    let is_refused =
        diagnoses.into_iter().any(|it| it.is_fault() || is_asked && it.verdict.is_fault());
    let is_unread = name.is_none() && is_unread(&checkup);
    Ok(if is_refused || is_unread { Status::AtFault } else { Status::Well })
}

/// The names of the skills that lie where a client looks, or in a configured directory; and what makes each stand out.
pub(crate) fn names(global: &Global) -> Result<Vec<(String, String)>> {
    let (surroundings, _) = surroundings(global, None)?;
    let config = context::config(global)?;
    let others =
        config.directories().into_iter().map(|it| absolute(&context::resolve(&it, global)));
    let others: Vec<PathBuf> = others.collect::<Result<_>>()?;
    let clients: Vec<&Client> = CLIENTS.iter().collect();
    let skills = examine(&clients, &surroundings, &others).skills.into_iter();
    Ok(skills.map(|it| (it.name, it.path.to_string_lossy().into_owned())).collect())
}

/// Whether there are skills that nobody can read.
fn is_unread(checkup: &Checkup) -> bool {
    checkup.findings.iter().any(|it| it.severity == Severity::Error)
}

/// The clients of these names, each once; all where there is none.
fn clients(names: &[String]) -> Result<Vec<&'static Client>, Fault> {
    if names.is_empty() {
        return Ok(CLIENTS.iter().collect());
    }
    let mut clients: Vec<&'static Client> = Vec::new();
    for name in names {
        let client = client(name).ok_or_else(|| no_client(name))?;
        if !clients.iter().any(|it| it.name == client.name) {
            clients.push(client);
        }
    }
    Ok(clients)
}

fn no_client(name: &str) -> Fault {
    let known = || CLIENTS.iter().map(|it| it.name);
    let fault = Fault::unable(format!("there is no client `{name}`"));
    // What its makers call it, as somebody would type that.
    let labels: Vec<String> =
        CLIENTS.iter().map(|it| it.label.to_lowercase().replace(' ', "-")).collect();
    let by_label = || {
        let near = nearest(name, labels.iter().map(String::as_str))?;
        known().nth(labels.iter().position(|it| it == near)?)
    };
    match nearest(name, known()).or_else(by_label) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault.hint(format!("there are {}", known().collect::<Vec<_>>().join(", "))),
    }
}

/// Whether a path was typed, and no name.
fn is_path(name: Option<&str>) -> bool {
    name.is_some_and(|it| it.contains('/') || matches!(it, "." | ".." | "SKILL.md"))
}

/// The folder that a path names, or that lies here under a name.
fn folder_of(name: &str, global: &Global) -> Result<Option<PathBuf>> {
    let path = absolute(&context::resolve(&Directory::new(name), global))?;
    let folder =
        if path.is_dir() { Some(&*path) } else { path.parent().filter(|_| path.is_file()) };
    match folder {
        None if is_path(Some(name)) => {
            let hint = "name the folder of a skill, or a skill that lies where a client looks";
            Err(Fault::typed(format!("there is no `{name}`")).hint(hint).into())
        }
        folder => Ok(folder.map(Path::to_owned)),
    }
}

/// Where clients would be started: here, or where a skill belongs that lies in another project, which is told too.
fn surroundings(global: &Global, folder: Option<&Path>) -> Result<(Surroundings, Option<PathBuf>)> {
    let here = absolute(global.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let home = env::home_dir().filter(|it| it.is_absolute());
    let project = folder.and_then(project_of).filter(|it| {
        let is_home = home.as_ref().is_some_and(|home| it == home);
        !is_home && !here.starts_with(it)
    });
    let cwd = project.clone().unwrap_or(here);
    let repository = cwd.ancestors().find(|it| it.join(".git").exists()).map(Path::to_owned);
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let variables: BTreeMap<String, PathBuf> =
        VARIABLES.iter().filter_map(|it| Some((it.0.to_owned(), set(it.0)?))).collect();
    Ok((Surroundings { home, cwd, repository, variables }, project))
}

/// The directories that a client looks into.
fn surroundings_of(client: &Client, surroundings: &Surroundings) -> Vec<PathBuf> {
    client.spots.iter().flat_map(|it| surroundings.directories(it)).collect()
}

/// The folder of the project that a skill lies in: the one with the directory that some client looks into.
fn project_of(folder: &Path) -> Option<PathBuf> {
    let spots = CLIENTS.iter().flat_map(|it| it.spots).filter(|it| it.is_in_project());
    let project = |path: &'static str| {
        let has = |it: &&Path| folder.starts_with(it.join(path));
        Some((folder.ancestors().skip(1).find(has)?, path.len()))
    };
    // `skills` is a directory of its own, and the end of many others.
    let found = spots.filter_map(|it| project(it.path)).max_by_key(|it| it.1);
    found.map(|it| it.0.to_owned())
}

/// The folder of the plugin or extension that a skill is part of.
fn plugin_of(path: &Path) -> Option<&Path> {
    let manifests = [".claude-plugin/plugin.json", "plugin.json", "gemini-extension.json"];
    let has = |it: &&Path| manifests.iter().any(|manifest| it.join(manifest).is_file());
    path.ancestors().skip(2).take(3).find(has)
}

/// The skills that were asked for: those in a folder where a path was typed, else those of a name, or in folders that
/// are called so.
fn chosen<'a>(
    checkup: &'a Checkup,
    name: &str,
    folder: Option<&Path>,
) -> Result<Vec<&'a Examined>, Fault> {
    let named = |it: &Examined| it.name == name;
    let called = |it: &Examined| folder_name(&it.path) == Some(name);
    let inside = |it: &Examined| folder.is_some() && it.path.parent() == folder;
    let ways: [&dyn Fn(&Examined) -> bool; 3] = match is_path(Some(name)) {
        true => [&inside; 3],
        false => [&named, &called, &inside],
    };
    let all = |is_it: &dyn Fn(&Examined) -> bool| -> Vec<&'a Examined> {
        checkup.skills.iter().filter(|it| is_it(it)).collect()
    };
    let found = ways.into_iter().map(all).find(|it| !it.is_empty());
    found.ok_or_else(|| missing(checkup, name, folder))
}

/// Why there is no such skill.
fn missing(checkup: &Checkup, name: &str, folder: Option<&Path>) -> Fault {
    let is_it = |it: &&Finding| match folder {
        Some(folder) => it.path.starts_with(folder),
        None => it.path.file_name() == Some(name.as_ref()) || folder_name(&it.path) == Some(name),
    };
    if let Some(finding) = checkup.findings.iter().find(is_it) {
        let fault = Fault::unable(format!("{}: {}", finding.path.display(), finding.message));
        return fault.hint(&*finding.hint);
    }
    if is_path(Some(name)) {
        let hint = format!("`prowess doctor --dir {name}` looks at all skills in it");
        return Fault::typed(format!("`{name}` has no `SKILL.md`")).hint(hint);
    }
    let options = Options { sources: vec![bundled()], ..Options::default() };
    if Library::load(&options).is_ok_and(|it| it.get(name).is_some()) {
        let message =
            format!("`{name}` comes with the program and lies in no directory that a client finds");
        let hint = "`prowess mcp install --client NAME` has a client ask this program for skills";
        return Fault::typed(message).hint(hint);
    }
    let fault =
        Fault::typed(format!("there is no skill `{name}` in any directory that is looked into"));
    let names = checkup.skills.iter().map(|it| it.name.as_str());
    let folders = checkup.skills.iter().filter_map(|it| folder_name(&it.path));
    match nearest(name, names.chain(folders)) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault.hint("name its folder, as in `prowess doctor ./my-skill`"),
    }
}

fn folder_name(path: &Path) -> Option<&str> {
    path.parent()?.file_name()?.to_str()
}

/// Says what could not be looked at.
fn tell(checkup: &Checkup, printer: &mut Printer) {
    let most = if printer.verbose { checkup.findings.len() } else { SHOWN };
    checkup.findings.iter().take(most).for_each(|it| printer.finding(it));
    if checkup.findings.len() > most {
        let more = checkup.findings.len() - most;
        printer.note(&format!("{more} more could not be looked at (-v shows them)"));
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    // Without the parts that say nothing, so that the same directory has the same path.
    Ok(std::path::absolute(path)?.components().collect())
}
