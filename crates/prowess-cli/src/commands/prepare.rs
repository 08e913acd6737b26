use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use prowess::Skill;
use prowess_cli::settings::Config;
use prowess_mcp::config::{McpServerConfig, SkillServers, Transport};
use prowess_runtime::{
    Launcher,
    executor::ScriptError,
    preparation::{EnvironmentRecord, EnvironmentStore, Recipe, RecipeError, SkillRecipes},
};
use serde_json::json;

use super::count;
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    completion, context, host,
    needs::SkillNeeds,
    preparing::{self, PrepareChoice, PrepareResult},
    printer::Printer,
    safe,
    server_label::server_of_label,
};

/// Install the packages that the scripts and servers of a skill need
///
/// Packages are installed once, after you agree, into an environment of their own: by uv, pip, npm, pnpm, bun or deno, in a
/// sandbox that can reach only the package registries, in exact versions with hashes. Scripts then run with it, and
/// cannot change it. Without a name, it lists the environments that are prepared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name, `scope:name` or path of the skill
    #[arg(add = completion::skills(), group = "what")]
    name: Option<String>,
    /// Install the packages of a server in `prowess.toml` instead, such as those of `npx` and `uvx`
    #[arg(long, value_name = "LABEL", add = completion::servers(), group = "what")]
    server: Option<String>,
    /// Also install packages whose names are only guessed from imports
    #[arg(long, requires = "what")]
    guessed: bool,
    /// Let packages run their own install scripts, in the sandbox
    #[arg(long, requires = "what")]
    install_scripts: bool,
    /// Choose new versions instead of those installed before
    #[arg(long, requires = "what", conflicts_with = "offline")]
    update: bool,
    /// Rebuild an environment from its downloads, without network access
    #[arg(long, requires = "what")]
    offline: bool,
    /// Remove environments that were not used for 30 days or whose skills are gone; with a name, those of the skill
    #[arg(long, conflicts_with_all = ["guessed", "install_scripts", "update", "offline"])]
    clean: bool,
    /// Remove every environment
    #[arg(long, requires = "clean", conflicts_with = "what")]
    all: bool,
    /// Install without asking
    #[arg(long)]
    yes: bool,
}

/// The age from which an unused environment is removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let Some(store) = host::environments() else {
        let fault = CliError::new("there is no home directory to keep environments in");
        return Err(fault.hint("set `HOME`, or `XDG_DATA_HOME` and `XDG_STATE_HOME`").into());
    };
    if args.name.is_none() && args.server.is_none() {
        return match args.clean {
            true => clean(&store, |it, used| args.all || it.is_unused(used, UNUSED), printer),
            false => list(&store, printer),
        };
    }
    let config = context::config(global)?;
    let mut programs = None;
    let wanted = match (&args.name, &args.server) {
        (_, Some(label)) => of_server(label, &config)?,
        (Some(typed), None) => {
            let (library, name) = context::library_for(typed, global, printer)?;
            let skill = library.get(&name).ok_or_else(|| context::no_skill(&library, &name))?;
            programs = SkillNeeds::of(skill, &host::interpreters(&config)).install_programs();
            of_skill(skill, &config)?
        }
        (None, None) => PrepareTarget::default(),
    };
    if args.clean {
        let keys: Vec<String> = wanted.recipes.iter().map(Recipe::key).collect();
        let user = (wanted.name.clone(), wanted.folder.clone());
        // Including environments of its earlier needs.
        return clean(
            &store,
            |it, _| keys.contains(&it.key) || it.used_by.iter().all(|it| *it == user),
            printer,
        );
    }
    let choice = PrepareChoice {
        with_guessed: args.guessed,
        install_scripts: args.install_scripts,
        offline: args.offline,
        update: args.update,
        yes: args.yes,
        is_server: args.server.is_some(),
    };
    let preparer = host::preparer(&config, launcher, host::proxies()?)
        .context("there is no home directory")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot wait for anything")?;
    let PrepareTarget { name, key, folder, recipes, errors } = wanted;
    let mut prepared = Vec::new();
    let mut status = ExitStatus::Success;
    for (error, hint) in &errors {
        printer.error_text(&safe::line(error));
        hint.iter().for_each(|it| printer.hint(it));
        status = ExitStatus::Failure;
    }
    for recipe in &recipes {
        let folder = folder.clone();
        let work = preparing::prepare(&preparer, recipe, &name, folder, choice, printer);
        match runtime.block_on(work)? {
            PrepareResult::Done(environment) => {
                if !printer.json {
                    printer.line(preparing::summary(&name, &environment.record))?;
                }
                prepared.push(environment.record);
            }
            PrepareResult::Declined(failed)
            | PrepareResult::NotOffered(failed)
            | PrepareResult::Failed(failed) => status = failed,
        }
    }
    runtime.shutdown_background();
    if printer.json {
        printer.document(&json!({ key: name, "environments": prepared }))?;
    } else if recipes.is_empty() && errors.is_empty() {
        printer.note(&format!("`{name}` needs no packages"));
    }
    // Package installers do not provide programs.
    programs.iter().for_each(|it| printer.note(it));
    Ok(status)
}

/// The target of a preparation.
#[derive(Default)]
struct PrepareTarget {
    name: String,
    /// Its kind: `skill` or `server`.
    key: &'static str,
    folder: Option<PathBuf>,
    recipes: Vec<Recipe>,
    /// The environments that cannot be prepared, each with a hint.
    errors: Vec<(String, Option<&'static str>)>,
}

/// Returns the needs of the scripts and servers of a skill.
fn of_skill(skill: &Skill, config: &Config) -> Result<PrepareTarget, ScriptError> {
    let search = host::interpreters(config);
    let SkillRecipes { recipes, errors, .. } = SkillRecipes::of(skill, &search)?;
    let mut wanted = PrepareTarget {
        name: skill.manifest.name.to_string(),
        key: "skill",
        folder: skill.absolute_folder(),
        recipes: recipes.into_iter().map(|it| it.1).collect(),
        errors: errors.iter().map(explain).collect(),
    };
    for server in SkillServers::of(skill).servers {
        wanted.add(&server, config);
    }
    Ok(wanted)
}

/// Returns the needs of a configured server.
fn of_server(label: &str, config: &Config) -> Result<PrepareTarget, CliError> {
    let server = server_of_label(config, label)?;
    let mut wanted =
        PrepareTarget { name: label.to_owned(), key: "server", ..PrepareTarget::default() };
    wanted.add(&server.description, config);
    Ok(wanted)
}

impl PrepareTarget {
    /// Adds the packages that a server fetches.
    fn add(&mut self, server: &McpServerConfig, config: &Config) {
        let Transport::Program(program) = &server.transport else { return };
        let recipe = match program.packages() {
            None => return,
            Some(Ok(command)) => {
                command.recipe(&host::interpreters(config)).map_err(|error| explain(&error))
            }
            Some(Err(why)) => Err((why, None)),
        };
        match recipe {
            Ok(recipe) => self.recipes.push(recipe),
            Err((why, hint)) => {
                self.errors.push((format!("the server `{}`: {why}", server.name), hint));
            }
        }
    }
}

/// Explains why there is no recipe, with a hint.
fn explain(error: &RecipeError) -> (String, Option<&'static str>) {
    let hint = match error {
        RecipeError::NoInterpreter { .. } => {
            Some("install it, or set `run.python` or `run.node` in your settings")
        }
        RecipeError::LeftOut { .. } => {
            Some("install it yourself into a virtual environment, and run with that active")
        }
        _ => None,
    };
    (error.to_string(), hint)
}

fn list(store: &EnvironmentStore, printer: &mut Printer) -> Result<ExitStatus> {
    let all = store.all();
    if printer.json {
        let records: Vec<_> = all.iter().map(|it| &it.0).collect();
        printer.document(&json!({ "environments": records }))?;
        return Ok(ExitStatus::Success);
    }
    for (record, used) in &all {
        let names: Vec<_> = record
            .used_by
            .iter()
            .map(|(name, folder): &(String, Option<PathBuf>)| match folder {
                Some(_) => safe::line(name).into_owned(),
                None => format!("server {}", safe::line(name)),
            })
            .collect();
        let packages = count(record.packages.len(), "package");
        let (key, manager) = (printer.dim(&record.key), record.manager);
        let (size, age) = (preparing::format_size(record.size), age(*used));
        let names = printer.name(&names.join(", "));
        printer.line(format_args!("{names}  {packages}, {size}, {manager}, used {age}  {key}"))?;
    }
    printer.flush()?;
    match all.len() {
        0 => printer.note(
            "nothing is prepared; `prowess prepare NAME` installs what a skill's scripts need",
        ),
        many => {
            let total = preparing::format_size(all.iter().map(|it| it.0.size).sum());
            let all = count(many, "environment");
            printer.note(&format!("{all}, {total}; `prowess prepare --clean` removes unused ones"));
        }
    }
    Ok(ExitStatus::Success)
}

fn clean(
    store: &EnvironmentStore,
    is_meant: impl Fn(&EnvironmentRecord, SystemTime) -> bool,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let removed = store.clean(is_meant).context("cannot remove environments")?;
    if printer.json {
        printer.document(&json!({ "removed": removed }))?;
        return Ok(ExitStatus::Success);
    }
    let total = preparing::format_size(removed.iter().map(|it| it.size).sum());
    printer.note(&match removed.len() {
        0 => "nothing was removed".to_owned(),
        many => format!("removed {}, {total}", count(many, "environment")),
    });
    Ok(ExitStatus::Success)
}

fn age(used: SystemTime) -> String {
    let days = used.elapsed().unwrap_or_default().as_secs() / (24 * 60 * 60);
    match days {
        0 => "today".to_owned(),
        1 => "yesterday".to_owned(),
        days => format!("{days} days ago"),
    }
}
