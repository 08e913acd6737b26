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
    CLIENTS, Checkup, Client, Diagnosis, Examined, Library, Options, Surroundings, VARIABLES,
    Verdict, bundled, client, examine, nearest,
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
/// a client that looks where a skill lies does not take it: because it refuses the file, or takes another of its
/// name. With `--client`, also when that client does not look there.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name of a skill, or the path of its folder or file
    #[arg(add = completion::skills())]
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
    let config = context::config(global)?;
    context::passed_over(&config, printer);
    let here = absolute(global.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let folder = args.name.as_deref().and_then(|it| context::folder_of(it, global));
    let folder = folder.map(|it| absolute(&it)).transpose()?;
    let configured = config.directories().into_iter().map(|it| context::resolve(&it, global));
    let others = folder.clone().into_iter().map(Ok).chain(configured.map(|it| absolute(&it)));
    let mut others: Vec<PathBuf> = others.collect::<Result<_>>()?;
    let surroundings = surroundings(here, folder.as_deref(), printer);
    if args.name.is_some() {
        // A skill that the chosen clients do not see lies where others look.
        let spots = CLIENTS.iter().flat_map(|it| it.spots);
        others.extend(spots.flat_map(|it| surroundings.directories(it)));
    }
    let examine = || examine(&clients, &surroundings, &others);
    let checkup = printer.during("examining skills", examine);
    let chosen = match &args.name {
        Some(name) => chosen(&checkup, name, folder.as_deref())?,
        None => checkup.skills.iter().collect(),
    };
    if printer.json {
        printer.document(&document(&checkup, &chosen, &clients))?;
    } else if args.name.is_some() {
        chosen.iter().try_for_each(|it| section(it, &checkup.crowded, printer))?;
    } else {
        overview(&checkup, &clients, printer)?;
        if args.all {
            matrix(&checkup.skills, &clients, printer)?;
        }
    }
    printer.flush()?;
    tell(&checkup, printer);
    let is_asked = !args.client.is_empty();
    let is_fault = chosen.iter().flat_map(|it| &it.diagnoses).any(|it| is_fault(it, is_asked));
    Ok(if is_fault { Status::AtFault } else { Status::Well })
}

/// Whether a client does not take a skill that it should: one that looks where it lies, or one that was asked about.
fn is_fault(diagnosis: &Diagnosis, is_asked: bool) -> bool {
    let Diagnosis { verdict, path, .. } = diagnosis;
    let is_seen = path.is_some() || is_asked;
    (verdict.is_fault() && is_seen) || (*verdict == Verdict::Unseen && is_asked)
}

/// The clients of these names; all where there is none.
fn clients(names: &[String]) -> Result<Vec<&'static Client>, Fault> {
    if names.is_empty() {
        return Ok(CLIENTS.iter().collect());
    }
    let named = |name: &String| {
        client(name).ok_or_else(|| {
            let known = || CLIENTS.iter().map(|it| it.name);
            let fault = Fault::unable(format!("there is no client `{name}`"));
            match nearest(name, known()) {
                Some(near) => fault.hint(format!("did you mean `{near}`?")),
                None => fault.hint(format!("there are {}", known().collect::<Vec<_>>().join(", "))),
            }
        })
    };
    names.iter().map(named).collect()
}

/// Where clients would be started: here, or where a skill belongs that lies in another project.
fn surroundings(here: PathBuf, folder: Option<&Path>, printer: &mut Printer) -> Surroundings {
    let home = env::home_dir().filter(|it| it.is_absolute());
    let project = folder.and_then(project_of).filter(|it| {
        let is_home = home.as_ref().is_some_and(|home| it == home);
        !is_home && !here.starts_with(it)
    });
    if let Some(project) = &project {
        printer.note(&format!("as seen from `{}`, where it belongs", project.display()));
    }
    let cwd = project.unwrap_or(here);
    let repository = cwd.ancestors().find(|it| it.join(".git").exists()).map(Path::to_owned);
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let variables: BTreeMap<String, PathBuf> =
        VARIABLES.iter().filter_map(|it| Some((it.0.to_owned(), set(it.0)?))).collect();
    Surroundings { home, cwd, repository, variables }
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

/// The skills that were asked for.
fn chosen<'a>(
    checkup: &'a Checkup,
    name: &str,
    folder: Option<&Path>,
) -> Result<Vec<&'a Examined>, Fault> {
    let is_it = |it: &&Examined| match folder {
        Some(folder) => it.path.parent() == Some(folder),
        None => it.name == name,
    };
    let chosen: Vec<&Examined> = checkup.skills.iter().filter(is_it).collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let options = Options { sources: vec![bundled()], ..Options::default() };
    if Library::load(&options).is_ok_and(|it| it.get(name).is_some()) {
        let message =
            format!("`{name}` comes with the program and lies in no directory that a client finds");
        let hint = "`prowess mcp install --client NAME` has a client ask this program for skills";
        return Err(Fault::typed(message).hint(hint));
    }
    let fault =
        Fault::typed(format!("there is no skill `{name}` in any directory that is looked into"));
    Err(match nearest(name, checkup.skills.iter().map(|it| it.name.as_str())) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault.hint("name its folder, as in `prowess doctor ./my-skill`"),
    })
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
