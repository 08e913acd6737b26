mod asked;
mod document;
mod page;
mod faults;
mod matrix;
mod lines;

use anyhow::Result;
use prowess::{CLIENTS, Checkup, Client, Directory, Severity, client, examine, nearest};

use self::{
    asked::{chosen, folder_of, plugin_of},
    document::document,
    matrix::matrix,
    page::{overview, section},
};
use crate::{
    Status,
    arguments::Global,
    completion, context,
    fault::Fault,
    printer::Printer,
    surroundings::{absolute, surroundings},
};

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
    let typed = folder.as_deref().filter(|_| name.is_some_and(context::is_path));
    let (surroundings, project) = surroundings(global, typed)?;
    if let Some(project) = project {
        printer.note(&format!("as seen from `{}`, where it belongs", project.display()));
    }
    let config = context::config(global)?;
    context::passed_over(&config, printer);
    let mut others: Vec<Directory> = folder.iter().map(Directory::new).collect();
    for directory in config.directories() {
        let path = absolute(&context::resolve(&directory, global))?;
        let is_meant = !directory.optional || path.exists();
        others.extend(is_meant.then_some(Directory { path, ..directory }));
    }
    if name.is_some() {
        // A skill that the chosen clients do not see lies where others look.
        let spots = CLIENTS.iter().flat_map(|it| it.spots);
        let places = spots.flat_map(|it| surroundings.directories(it));
        others.extend(places.filter(|it| it.exists()).map(Directory::new));
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

/// The names of the skills that lie where a client looks, or in a configured directory, and their paths.
pub(crate) fn names(global: &Global) -> Result<Vec<(String, String)>> {
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

/// Says what could not be looked at.
fn tell(checkup: &Checkup, printer: &mut Printer) {
    let most = if printer.verbose { checkup.findings.len() } else { SHOWN };
    checkup.findings.iter().take(most).for_each(|it| printer.finding(it));
    if checkup.findings.len() > most {
        let more = checkup.findings.len() - most;
        printer.note(&format!("{more} more could not be looked at (-v shows them)"));
    }
}
