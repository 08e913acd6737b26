use std::{
    cell::Cell,
    env,
    ffi::OsString,
    iter,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::ValueHint;
use prowess::{Definition, Library, Manifest, ResourceKind, Skill, Type, did_you_mean, nearest};
use prowess_cli::settings::Config;
#[cfg(feature = "http")]
use prowess_http::{Hosts, HostsError};
use prowess_runtime::{
    Action, Authorizer, Executor, Launcher, Outcome, OutcomeStatus, Parameters, SkillProvider,
    SkillRecord,
    approval::{ActionRequest, ApproverReply, Coverage, Question},
    environment::{Present, ScriptArguments, install_system_programs, program_not_found},
    executor::{Delivery, ExecuteError, Script, ScriptError},
    outcome::PlanStep,
    parameters::ParametersError,
    preparation::{EnvironmentRecord, ScriptEnvironments},
    sandbox::{Chunk, Stdin},
    skill::ActiveSkills,
};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc::unbounded_channel},
    time::{Instant, interval_at, sleep_until},
};

use super::{count, disabled_outcome, tool, warn_about_fields};
#[cfg(feature = "http")]
use crate::preparing::{self, PrepareChoice, PrepareResult};
use crate::sys::{SignalKind, signal};
use crate::{
    ExitStatus,
    approver::approver,
    arguments::{self, Global, directory_parser},
    completion,
    context::{self, shell_quote},
    host::{self, PermissionArgs},
    input,
    needs::SkillNeeds,
    printer::{Printer, clock},
    safe::{self, Pieces},
    toolbox::{self, Caller, Kit},
    trust,
};

/// Run a skill
///
/// Scripts run in the sandbox, templates are filled in, and instructions are printed. The plan of a composite skill
/// is shown first; once you approve it, its steps run in order, each subject to the policy.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name, `scope:name` or path of the skill
    #[arg(add = completion::skills())]
    name: String,
    /// Parameters; a value that is valid JSON is passed as JSON
    ///
    /// A script gets each parameter as the environment variable `PARAM_KEY`, in uppercase and with `_` for every
    /// character that is not an ASCII letter or digit, and all of them in the JSON file `PARAMS_FILE`. A key
    /// without ASCII letters or digits is only in the file.
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// More parameters, as a JSON object, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// Run this script of the skill
    #[arg(long, value_name = "PATH", add = completion::resources())]
    script: Option<String>,
    /// Arguments of the `--script`, after `--`; it can read the files they name
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
    /// Print the plan of a composite skill, without running it
    #[arg(long)]
    plan: bool,
    /// Run in this directory, with read access to it, instead of an empty one
    #[arg(long, value_name = "DIR", value_parser = directory_parser(), value_hint = ValueHint::DirPath)]
    workdir: Option<PathBuf>,
    /// Copy the files it creates to this directory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Let the script connect to this host, such as `api.github.com` or `*.example.com:8443`; repeatable
    ///
    /// A host is a name, a pattern such as `*.example.com`, an address or a network; separate several with commas.
    /// Ports 80 and 443 are open unless a port is given. The script connects through a proxy that refuses all other
    /// hosts.
    #[arg(
        long,
        value_name = "HOST",
        value_delimiter = ',',
        value_parser = parse_host,
        conflicts_with = "unsandboxed"
    )]
    net: Vec<String>,
    /// Do not install missing packages, and do not offer to
    #[arg(long)]
    no_install: bool,
    #[command(flatten)]
    running: PermissionArgs,
}

/// The most scripts that are suggested.
const SUGGESTED: usize = 5;
/// The time that a cancelled run may take to end.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The time between two drawings of the clock.
const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> anyhow::Result<ExitStatus> {
    let config = context::config(global)?;
    // A path on the command line is trusted.
    let trusted = match context::skill_folder_at(&args.name, global) {
        Some(_) => global.clone(),
        None => {
            let names = iter::once(&*args.name);
            trust::ask_for_trust_in(names, &config, global, args.running.trust_project, printer)?
        }
    };
    let (library, name) = context::library_for(&args.name, &trusted, printer)?;
    let library = Arc::new(library);
    let skill = library.get(&name);
    let json = match args.params.as_deref().map(input::read_text).transpose() {
        Ok(json) => json,
        Err(error) => {
            let outcome = Outcome::error(OutcomeStatus::Invalid, error.as_ref());
            print_outcome(&args.name, skill, &outcome, false, printer)?;
            return Ok(input::exit_status(&error));
        }
    };
    skill.iter().for_each(|it| warn_about_fields(&library, it, printer));
    let mut authorizer = args.running.authorizer(&config);
    if !args.net.is_empty() {
        authorizer.policy.script_hosts = args.net.clone();
    }
    let ready = skill
        .ok_or_else(|| match is_untrusted(&args.name, global, &trusted, printer) {
            true => Box::new(untrusted_skill(&args.name)),
            false => Box::new(missing_skill(&library, &args.name)),
        })
        .and_then(|skill| Task::of(skill, args, json.as_deref()))
        .and_then(|task| {
            let executor = args.running.executor(&config, &authorizer.policy, launcher.clone())?;
            Ok((task, executor.with_directory(args.directory())))
        });
    let mut is_plan_shown = false;
    let tried = match ready {
        Ok((task, executor)) => {
            if args.running.unsandboxed && task.is_script() {
                printer.warning("running without a sandbox, with all your permissions");
            }
            if printer.verbose {
                task.report_interpreter(&executor, printer);
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("cannot start the async runtime")?;
            if !args.running.unsandboxed
                && !args.no_install
                && let RunTarget::Script(script) = &task.what
            {
                let folder = skill.and_then(Skill::absolute_folder);
                let offer =
                    offer_packages(script, folder, &config, launcher.clone(), args, printer);
                if let Some(status) = runtime.block_on(offer)? {
                    printer.hint("`--no-install` runs it without installing anything");
                    runtime.shutdown_background();
                    return Ok(status);
                }
            }
            let mut tried =
                runtime.block_on(run_task(args, &task, &executor, &authorizer, printer));
            if let Ok(Ok(Outcome { status: OutcomeStatus::Ok, plan: Some(plan), .. })) = &tried
                && !args.plan
            {
                let plan = plan.clone();
                let provider: Arc<dyn SkillProvider> = Arc::new(library.clone());
                let kit = toolbox::toolbox(
                    Caller::Person,
                    &args.running,
                    &provider,
                    global,
                    &[],
                    launcher,
                    printer,
                )?;
                let active = Arc::new(ActiveSkills::new(provider));
                active.activate(&name);
                let ended = active.within(run_plan(args, &plan, &kit, printer));
                if let Some(outcome) = runtime.block_on(ended)? {
                    tried = Ok(Ok(outcome));
                    is_plan_shown = true;
                }
                kit.authorizer.take_warnings().iter().for_each(|it| printer.safety_warning(it));
            }
            // A person who interrupts a question is not going to answer it.
            runtime.shutdown_background();
            tried?
        }
        Err(outcome) => Ok(*outcome),
    };
    authorizer.take_warnings().iter().for_each(|it| printer.safety_warning(it));
    let outcome = tried.as_ref().map_or_else(Outcome::from, Outcome::clone);
    let name = skill.map_or(&*args.name, |it| &it.manifest.name);
    print_outcome(name, skill, &outcome, is_plan_shown, printer)?;
    if !printer.json {
        print_hint(args, skill, &outcome, &config, printer);
    }
    Ok(match tried {
        Ok(outcome) if outcome.is_ok() => ExitStatus::Success,
        Err(_) if outcome.status == OutcomeStatus::Refused => ExitStatus::Error,
        _ => ExitStatus::Failure,
    })
}

impl Args {
    /// Returns the working directory of the script, unless it gets a temporary one: the given one,
    /// or the current one if the script may write here or has no sandbox.
    fn directory(&self) -> Option<PathBuf> {
        let here = env::current_dir().ok()?;
        match &self.workdir {
            Some(directory) => Some(here.join(directory)),
            None if self.running.unsandboxed => Some(here),
            None => self.running.write_directories().contains(&here).then_some(here),
        }
    }

    /// Returns the first folder among the arguments of a script that reports that it could not
    /// write.
    fn unwritable_folder(&self, outcome: &Outcome) -> Option<String> {
        let stderr = &outcome.stderr.as_ref()?.text;
        let is_refused = READ_ONLY.iter().any(|it| stderr.contains(it));
        let mut named = self.arguments.iter().filter(|it| Path::new(it).is_dir());
        named.next().filter(|_| is_refused).map(|it| it.to_string_lossy().into_owned())
    }

    /// Returns the arguments of a script, and the files it may read because they are arguments.
    fn script_arguments(&self) -> ScriptArguments {
        let Ok(here) = env::current_dir() else { return self.arguments.clone().into() };
        let directory = self.directory();
        let mut arguments =
            ScriptArguments::naming_files(&self.arguments, &here, directory.as_deref());
        self.running.write_directories().iter().for_each(|it| arguments.leading_to(it, &here));
        arguments
    }
}

/// Installs the missing packages of a script, if somebody can be asked and agrees. Returns the exit
/// status if that was declined or failed; if nobody can be asked, the script runs without them.
#[cfg(feature = "http")]
async fn offer_packages(
    script: &Script,
    folder: Option<PathBuf>,
    config: &Config,
    launcher: Launcher,
    args: &Args,
    printer: &mut Printer,
) -> anyhow::Result<Option<ExitStatus>> {
    let yes = args.running.yes;
    let Some(preparer) = host::preparer(config, launcher, host::proxies()?) else {
        return Ok(None);
    };
    let Some(recipe) = preparer.missing_recipe(script, folder.as_deref()) else { return Ok(None) };
    if approver(yes).who() == "nobody" {
        let packages = safe::line(&recipe.requirements.join(", ")).into_owned();
        printer.note(&format!(
            "not installed, because nobody could be asked: {packages}; `--yes` installs them without asking"
        ));
        return Ok(None);
    }
    let choice = PrepareChoice { yes, ..PrepareChoice::default() };
    let skill = &script.skill;
    Ok(match preparing::prepare(&preparer, &recipe, skill, folder, choice, printer).await? {
        PrepareResult::Done(environment) => {
            printer.note(&preparing::summary(skill, &environment.record));
            None
        }
        PrepareResult::Declined(_) => {
            let path = safe::line(&script.path).into_owned();
            printer
                .error_text(&format!("`{path}` was not run, because these packages are missing"));
            Some(ExitStatus::Failure)
        }
        PrepareResult::NotOffered(_) => None,
        PrepareResult::Failed(status) => Some(status),
    })
}

/// Installs nothing: this build has no network.
#[cfg(not(feature = "http"))]
async fn offer_packages(
    _: &Script,
    _: Option<PathBuf>,
    _: &Config,
    _: Launcher,
    _: &Args,
    _: &mut Printer,
) -> anyhow::Result<Option<ExitStatus>> {
    Ok(None)
}

/// Prints a plan, asks whether to run it, and does; `None` if nobody could be asked.
async fn run_plan(
    args: &Args,
    plan: &[PlanStep],
    kit: &Kit,
    printer: &mut Printer,
) -> anyhow::Result<Option<Outcome>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let work = async {
        let approver = approver(args.running.yes);
        if approver.who() == "nobody" {
            printer
                .note("nothing was run; use `--yes`, or answer at a terminal, to run these steps");
            return Ok(None);
        }
        if !printer.json {
            show_plan(plan, printer)?;
            printer.flush()?;
        }
        // A plan that cannot be run needs no approval.
        if plan.iter().any(|it| !it.unfilled.is_empty()) {
            return Ok(Some(kit.toolbox.run_plan(plan, |_, _| {}).await));
        }
        let question = Question {
            what: match plan.len() {
                1 => "run this step".to_owned(),
                steps => format!("run these {steps} steps"),
            },
            why: "the skill is a plan of calls".to_owned(),
            coverage: Coverage::Once,
            ..Question::default()
        };
        if approver.ask(&question).await == ApproverReply::No {
            let why = "the plan was not run, because the answer was no";
            let mut outcome = Outcome::bad(OutcomeStatus::Refused, why).hint("nothing was run");
            outcome.plan = Some(plan.to_vec());
            return Ok(Some(outcome));
        }
        let mut printed = Ok(());
        let outcome = kit
            .toolbox
            .run_plan(plan, |step: &PlanStep, outcome: Option<&Outcome>| match outcome {
                _ if printer.json => {}
                None => {
                    printer.note(&format!("step {} of {}: {}", step.step, plan.len(), step.tool));
                }
                Some(outcome) => {
                    let outcome = printer.with_full_hint(outcome);
                    let told =
                        tool::print_output(&outcome, false, printer).and_then(|()| printer.flush());
                    printed = std::mem::replace(&mut printed, Ok(())).and(told);
                    printer.report_refused(&outcome);
                    printer.report_network(&outcome);
                }
            })
            .await;
        printed?;
        Ok(Some(outcome))
    };
    let why = tokio::select! {
        ended = work => return ended,
        _ = interrupt.recv() => "interrupted",
        _ = terminate.recv() => "terminated",
    };
    let mut outcome = Outcome::bad(OutcomeStatus::Cancelled, why);
    outcome.plan = Some(plan.to_vec());
    Ok(Some(outcome))
}

/// Prints the steps of a plan, one line each.
fn show_plan(plan: &[PlanStep], printer: &mut Printer) -> anyhow::Result<()> {
    for step in plan {
        let params = Value::from(step.params.clone()).to_string();
        let tool = printer.name(&safe::line(&step.tool));
        printer.line(format_args!("{}. {tool} {}", step.step, safe::line(&params)))?;
    }
    for step in plan {
        for what in &step.unfilled {
            printer.note(&format!("step {} is not filled in: {what}", step.step));
        }
    }
    Ok(())
}

/// The thing to execute, with its arguments.
struct Task {
    /// The skill that it belongs to.
    manifest: Manifest,
    what: RunTarget,
    parameters: Parameters,
}

enum RunTarget {
    Skill(SkillRecord),
    Script(Script),
}

impl Task {
    /// Returns the arguments, for the question of approval.
    fn approved_input(&self, arguments: &[OsString]) -> Value {
        let parameters = self.parameters.values();
        if arguments.is_empty() {
            return Value::Object(parameters.clone());
        }
        let arguments: Vec<_> = arguments.iter().map(|it| it.to_string_lossy()).collect();
        json!({ "parameters": parameters, "arguments": arguments })
    }

    fn of(skill: &Skill, args: &Args, json: Option<&str>) -> Result<Self, Box<Outcome>> {
        let manifest = skill.manifest.clone();
        if !manifest.is_active() {
            return Err(disabled_outcome(&manifest));
        }
        let what = match &args.script {
            Some(path) => RunTarget::Script(
                Script::of(skill, path).map_err(|it| no_script(skill, path, &it))?,
            ),
            None => {
                let entry = SkillRecord::of(skill).and_then(SkillRecord::with_files);
                RunTarget::Skill(entry.map_err(|it| Box::new(Outcome::from(&it)))?)
            }
        };
        if args.script.is_none() && !args.arguments.is_empty() {
            return Err(no_arguments(skill, &what));
        }
        let is_composite = matches!(
            &what,
            RunTarget::Skill(SkillRecord { definition: Definition::Composite { .. }, .. })
        );
        if args.plan && !is_composite {
            let message = format!("`{}` has no plan, so nothing was run", manifest.name);
            let hint = "only composite skills have one; run this one without `--plan`";
            return Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message).hint(hint)));
        }
        let is_script = match &what {
            RunTarget::Skill(entry) => matches!(entry.definition, Definition::Script { .. }),
            RunTarget::Script(_) => true,
        };
        if !args.net.is_empty() && !is_script {
            let message =
                format!("`{}` is not a script, so it cannot connect to hosts", manifest.name);
            let hint = "`--net` is for scripts; `--script PATH` runs one of the skill's files";
            return Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message).hint(hint)));
        }
        let schema = match &what {
            RunTarget::Skill(entry) => entry.parameters.as_ref(),
            RunTarget::Script(_) => None,
        };
        if let Some(path) = args.pairs.first().and_then(|it| find_script(skill, it))
            && args.script.is_none()
        {
            return Err(file_as_parameter(args, path));
        }
        let parameters = parameters(&args.pairs, json, schema);
        let parameters = parameters.map_err(|it| Box::new(Outcome::from(&it)))?;
        Ok(Self { manifest, what, parameters })
    }

    /// Returns the record to approve.
    fn entry(&self) -> &SkillRecord {
        match &self.what {
            RunTarget::Skill(entry) => entry,
            RunTarget::Script(script) => &script.entry,
        }
    }

    /// Reports which interpreter a script runs with, and why.
    fn report_interpreter(&self, executor: &Executor, printer: &mut Printer) {
        let RunTarget::Script(script) = &self.what else { return };
        let Some(program) = script.interpreter.first() else { return };
        // A missing interpreter is reported by the run.
        let Ok(found) = executor.interpreter(script) else { return };
        if let Ok(ScriptEnvironments { own: Some(own), .. }) = executor.environments(script) {
            let EnvironmentRecord { packages, key, .. } = &own.record;
            let packages = count(packages.len(), "package");
            printer.note(&format!(
                "`{}` runs with {packages}, environment {key}; changes to it are discarded",
                script.path
            ));
        }
        let (program, origin) = match &found {
            Some(found) => (found.program.as_os_str(), found.origin.to_string()),
            None => (program.as_os_str(), "the system".to_owned()),
        };
        let program = program.to_string_lossy();
        printer.note(&format!("`{}` runs with `{program}`, from {origin}", script.path));
    }

    fn is_script(&self) -> bool {
        matches!(self.entry().definition, Definition::Script { .. })
    }
}

/// Refuses every host that `--net` names: this build has no network.
#[cfg(not(feature = "http"))]
fn parse_host(_: &str) -> Result<String, String> {
    Err(crate::features::missing_feature("network", "http"))
}

/// Parses a host of `--net`.
#[cfg(feature = "http")]
fn parse_host(text: &str) -> Result<String, HostsError> {
    Hosts::for_scripts([text]).map(|_| text.to_owned())
}

/// Returns the parameters on the command line, or all errors in them.
pub(super) fn parameters(
    pairs: &[String],
    json: Option<&str>,
    schema: Option<&Value>,
) -> Result<Parameters, ParametersError> {
    let mut parameters = Parameters::default();
    let mut mismatches: Vec<_> =
        json.and_then(|it| parameters.add_json(it).err()).into_iter().collect();
    mismatches.extend(pairs.iter().filter_map(|it| parameters.add_pair(it, schema).err()));
    if mismatches.is_empty() {
        Ok(parameters)
    } else {
        Err(ParametersError::Mismatches(mismatches))
    }
}

/// Returns whether an untrusted project has a skill of this name.
fn is_untrusted(name: &str, global: &Global, trusted: &Global, printer: &mut Printer) -> bool {
    !trusted.untrusted.is_empty()
        && context::library_without_notes(global, printer).is_ok_and(|it| it.get(name).is_some())
}

fn untrusted_skill(name: &str) -> Outcome {
    let message = format!("skill `{name}` is in this project, which is not trusted");
    Outcome::bad(OutcomeStatus::Refused, message)
        .hint("`prowess trust .` trusts it; `--trust-project` trusts it for this run")
}

fn missing_skill(library: &Library, name: &str) -> Outcome {
    if let Some(finding) = library.why_left_out(name) {
        let message = format!("skill `{name}` was left out: {}", finding.message);
        return Outcome::bad(OutcomeStatus::Invalid, message).hint(&*finding.hint);
    }
    let outcome = Outcome::bad(OutcomeStatus::NotFound, format!("there is no skill `{name}`"));
    match context::nearest_skill(library, name) {
        Some(near) => outcome.hint(did_you_mean(near)),
        None => outcome.hint("`prowess list` lists all skills"),
    }
}

/// Returns the script of a skill by its path or its file name.
fn find_script<'s>(skill: &'s Skill, typed: &str) -> Option<&'s str> {
    let typed = typed.strip_prefix("./").unwrap_or(typed);
    let scripts = skill.resources().iter().filter(|it| it.kind == ResourceKind::Script);
    let mut scripts = scripts.map(|it| &*it.path);
    let exact = scripts.clone().find(|it| *it == typed);
    exact.or_else(|| scripts.find(|it| file_name(it) == typed))
}

/// Returns the last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the scripts of a skill to suggest, those that its instructions mention first.
fn suggested_scripts(skill: &Skill) -> Vec<&str> {
    let text = skill.instructions().unwrap_or_default();
    let scripts = skill.resources().iter().filter(|it| it.kind == ResourceKind::Script);
    let mut scripts: Vec<&str> =
        scripts.map(|it| &*it.path).filter(|it| file_name(it) != "__init__.py").collect();
    scripts.sort_by_cached_key(|it| mention(&text, it).unwrap_or(usize::MAX));
    scripts
}

/// Returns the first mention of a script in a text, by its path or its file name.
fn mention(text: &str, path: &str) -> Option<usize> {
    find_word(text, path, true).or_else(|| find_word(text, file_name(path), false))
}

/// Returns the first place of a path or file name in a text, not as a part of a longer one.
fn find_word(text: &str, word: &str, is_whole_path: bool) -> Option<usize> {
    text.match_indices(word).map(|it| it.0).find(|at| {
        let (before, after) = (&text[..*at], &text[at + word.len()..]);
        // The same name in another folder is another script.
        let is_elsewhere = !is_whole_path && before.ends_with('/') && !before.ends_with("./");
        let is_longer = before.ends_with(|it| is_of_name(it) || it == '.');
        !is_elsewhere && !is_longer && !after.starts_with(is_of_name)
    })
}

fn is_of_name(it: char) -> bool {
    it.is_alphanumeric() || matches!(it, '_' | '-')
}

/// Returns the error for a file of a skill given as a parameter, with the right command.
fn file_as_parameter(args: &Args, path: &str) -> Box<Outcome> {
    let given: String = args.pairs[1..].iter().map(|it| format!(" {}", shell_quote(it))).collect();
    let given = if given.is_empty() { given } else { format!(" --{given}") };
    let (name, script) = (shell_quote(&args.name), shell_quote(path));
    let message = format!("`{}` is a file of the skill, not KEY=VALUE", args.pairs[0]);
    let hint = format!("`prowess run {name} --script {script}{given}` runs it");
    Box::new(Outcome::bad(OutcomeStatus::Invalid, message).hint(hint))
}

/// Returns the error that only a file of a skill takes arguments, with a hint.
fn no_arguments(skill: &Skill, what: &RunTarget) -> Box<Outcome> {
    let name = &skill.manifest.name;
    let script = suggested_scripts(skill).first().map(|it| shell_quote(it));
    let message = format!("`{name}` takes no arguments after `--`; only `--script` does");
    let hint = match (what, script) {
        (RunTarget::Skill(SkillRecord { definition: Definition::Script { .. }, .. }), _) => {
            "use `KEY=VALUE`; the script gets it as `$PARAM_KEY`".to_owned()
        }
        (_, Some(script)) => format!("`--script {script} -- ARGUMENTS` runs one of its files"),
        (_, None) => "use `KEY=VALUE`".to_owned(),
    };
    Box::new(Outcome::bad(OutcomeStatus::Invalid, message).hint(hint))
}

fn no_script(skill: &Skill, path: &str, error: &ScriptError) -> Box<Outcome> {
    let scripts = suggested_scripts(skill);
    let outcome = Outcome::from(error);
    let is_missing = outcome.status == OutcomeStatus::NotFound;
    let name = file_name(path);
    let same_name = scripts.iter().copied().find(|it| file_name(it) == name);
    // In a long path only the folder may be similar.
    let similar = nearest(path, scripts.iter().copied())
        .filter(|it| nearest(name, [file_name(it)].into_iter()).is_some());
    Box::new(match same_name.or(similar) {
        Some(near) if near != path => outcome.hint(did_you_mean(near)),
        None if is_missing && !scripts.is_empty() => {
            let shown = scripts.iter().take(SUGGESTED).map(|it| format!("`{it}`"));
            let more = scripts.len().saturating_sub(SUGGESTED);
            let shown: Vec<_> =
                shown.chain((more > 0).then(|| format!("and {more} more"))).collect();
            outcome.hint(format!("its scripts are {}", shown.join(", ")))
        }
        _ => outcome,
    })
}

/// Authorizes and executes a task, and prints the output of a script as it comes.
async fn run_task(
    args: &Args,
    task: &Task,
    executor: &Executor,
    authorizer: &Authorizer,
    printer: &mut Printer,
) -> anyhow::Result<Result<Outcome, ExecuteError>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, mut chunks) = unbounded_channel();
    let cancel = Arc::new(Notify::new());
    let delivery = Delivery {
        chunks: (!printer.json).then_some(sender),
        cancel: Some(cancel.clone()),
        output: args.output.clone(),
        // Standard input that was read for parameters is not passed on.
        stdin: (args.params.as_deref() != Some("-")).then(|| Stdin::new(tokio::io::stdin())),
    };
    let mut streams =
        Streams { stdout: Pieces::default(), stderr: Pieces::default(), is_silent: true };
    let running_since = Cell::new(None);
    let mut ticks = interval_at(Instant::now() + SECOND, SECOND);
    let work = async {
        let difference = match authorize(args, task, authorizer).await {
            Ok(difference) => difference,
            Err(refused) => return Ok(*refused),
        };
        running_since.set(Some(Instant::now()));
        let parameters = task.parameters.clone();
        let ended = match &task.what {
            RunTarget::Skill(entry) => executor.attempt(entry, parameters, delivery).await,
            RunTarget::Script(script) => {
                executor.attempt_script(script, args.script_arguments(), parameters, delivery).await
            }
        };
        ended.map(|mut outcome| {
            let tool = format!("skill_{}", task.manifest.name);
            authorizer.note_network(&tool, Some(&task.entry().manifest.name), &outcome);
            outcome.difference = difference;
            outcome
        })
    };
    tokio::pin!(work);
    let mut unwanted: Option<(&str, Instant)> = None;
    let mut ended = loop {
        let patience = sleep_until(unwanted.map_or_else(Instant::now, |it| it.1));
        let why = tokio::select! {
            ended = &mut work => break ended,
            Some(chunk) = chunks.recv() => {
                printer.progress_ends();
                streams.print(&chunk, printer)?;
                continue;
            }
            _ = ticks.tick(), if streams.is_silent && unwanted.is_none() => {
                if let Some(since) = running_since.get() {
                    let (name, clock) = (&task.manifest.name, clock(since.elapsed()));
                    printer.progress(&format!("running `{name}`{clock}"));
                }
                continue;
            }
            _ = interrupt.recv() => "interrupted",
            _ = terminate.recv() => "terminated",
            () = patience, if unwanted.is_some() => "cancelled",
        };
        // Dropping the run ends everything that it started.
        if unwanted.is_some() || running_since.get().is_none() {
            break Ok(Outcome::bad(OutcomeStatus::Cancelled, why));
        }
        cancel.notify_one();
        unwanted = Some((why, Instant::now() + PATIENCE));
    };
    printer.progress_ends();
    if let (Some((why, _)), Ok(outcome)) = (unwanted, &mut ended)
        && outcome.status == OutcomeStatus::Cancelled
    {
        outcome.message = Some(why.to_owned());
    }
    while let Ok(chunk) = chunks.try_recv() {
        streams.print(&chunk, printer)?;
    }
    Ok(ended)
}

/// Authorizes a task, and records in the audit log if it runs without a sandbox. Returns the
/// difference since its approval.
async fn authorize(
    args: &Args,
    task: &Task,
    authorizer: &Authorizer,
) -> Result<Option<String>, Box<Outcome>> {
    let entry = task.entry();
    let tool = format!("skill_{}", task.manifest.name);
    let action = match &task.what {
        RunTarget::Skill(entry) => Action::of(entry.clone()),
        RunTarget::Script(_) => Action::Execute(Box::new(entry.clone())),
    };
    let active = std::slice::from_ref(&task.manifest);
    let given = task.approved_input(&args.arguments);
    let requested = ActionRequest { tool: &tool, action: &action, active, given: Some(&given) };
    let difference = authorizer.authorize(&requested).await?;
    if args.running.unsandboxed && task.is_script() {
        authorizer.note_unsandboxed(&requested);
    }
    Ok(difference)
}

/// The output of a script so far, decoded for terminals.
struct Streams {
    stdout: Pieces,
    stderr: Pieces,
    /// Whether nothing has come yet.
    is_silent: bool,
}

impl Streams {
    fn print(&mut self, chunk: &Chunk, printer: &mut Printer) -> anyhow::Result<()> {
        self.is_silent = false;
        match chunk {
            Chunk::Stdout(bytes) if printer.is_terminal => {
                printer.raw(safe::lines(&self.stdout.text(bytes)).as_bytes())?;
            }
            Chunk::Stdout(bytes) => printer.raw(bytes)?,
            Chunk::Stderr(bytes) if printer.err_is_terminal => {
                printer.stderr_raw(safe::lines(&self.stderr.text(bytes)).as_bytes());
            }
            Chunk::Stderr(bytes) => printer.stderr_raw(bytes),
        }
        printer.flush()
    }
}

/// The messages of programs that cannot write to a read-only path.
const READ_ONLY: &[&str] = &["Read-only file system", "EROFS"];

/// The messages of Python and Node.js about a missing package.
const LACKS_MODULE: &[&str] = &["No module named", "Cannot find module", "Cannot find package"];

/// Prints a hint to what would help, if no other was printed.
fn print_hint(
    args: &Args,
    skill: Option<&Skill>,
    outcome: &Outcome,
    config: &Config,
    printer: &mut Printer,
) {
    if args.output.is_none() && !outcome.files.is_empty() {
        let files: Vec<_> = outcome.files.iter().take(3).map(|it| safe::line(it)).collect();
        let more = if outcome.files.len() > 3 { " and others" } else { "" };
        let files = files.join("`, `");
        printer.note(&format!("`{files}`{more} was written to a temporary directory and discarded; `--output DIR` or `--write DIR` keeps files"));
    }
    let read = skill
        .filter(|it: &&Skill| it.manifest.kind == Type::Instruction && args.script.is_none())
        .filter(|_| outcome.is_ok());
    let scripts = read.map(suggested_scripts).unwrap_or_default();
    if let Some(first) = scripts.first() {
        let (name, path) = (shell_quote(&args.name), shell_quote(first));
        let command =
            printer.with_directory_flags(&format!("`prowess run {name} --script {path}`"));
        printer.note(&match scripts.len() {
            1 => format!("it has a script; run it with {command}"),
            many => format!("it has {many} scripts; run one with {command}"),
        });
    }
    if let Some(output) = args.output.as_ref().filter(|_| outcome.is_ok()) {
        let is_script =
            args.script.is_some() || skill.is_some_and(|it| it.manifest.kind == Type::Script);
        if outcome.files.is_empty() && is_script {
            printer.note(&format!(
                "it created no files, so nothing was copied to `{}`",
                output.display()
            ));
        }
    }
    if outcome.is_ok() || outcome.hint.is_some() {
        return;
    }
    if outcome.status == OutcomeStatus::TimedOut {
        printer.hint("`--timeout 2m` gives it more time");
    } else if args.script.is_some() && outcome.status == OutcomeStatus::Failed {
        let printed = outcome.stderr.as_ref().map(|it| &*it.text).unwrap_or_default();
        let program = program_not_found(printed).filter(|it| {
            let interpreters = host::interpreters(config);
            Present::look(&interpreters, None).program(it).is_none()
        });
        let lacks_module = outcome
            .stderr
            .as_ref()
            .is_some_and(|it| LACKS_MODULE.iter().any(|phrase| it.text.contains(phrase)));
        let skill = skill.filter(|_| lacks_module);
        let needs = skill.map(|it| SkillNeeds::of(it, &host::interpreters(config)));
        let needs = needs.map(|it| it.of_script(args.script.as_deref().unwrap_or_default()));
        if let Some(missing) = needs.as_ref().and_then(SkillNeeds::describe_missing) {
            let installs = needs.as_ref().and_then(|it| it.hint(&args.name));
            let installs = installs.map(|it| format!("; {it}")).unwrap_or_default();
            printer.hint(&format!("{missing}{installs}"));
        } else if let Some(program) = program {
            let install = install_system_programs(&[program]);
            printer.hint(&install.unwrap_or_else(|| format!("`{program}` is not installed")));
        } else if let Some(folder) = args.unwritable_folder(outcome) {
            printer.hint(&format!("`--write {}` lets it write there", shell_quote(&folder)));
        } else if outcome.denied.iter().any(|it| it.contains("socket (IPv")) {
            printer.hint("`--net HOST` lets it reach a host");
        }
    } else if args.script.is_some() && outcome.status == OutcomeStatus::Invalid {
        printer.hint("arguments of a script come after `--`");
    }
}

/// Completes the approving command of a hint with all arguments of this one.
fn complete_hint(hint: &str) -> String {
    let mut pieces: Vec<String> = hint.split('`').map(str::to_owned).collect();
    let Some(command) = pieces.get_mut(1).filter(|it| it.starts_with("prowess run ")) else {
        return hint.to_owned();
    };
    if !command.split(' ').any(|it| it == "--yes") {
        return hint.to_owned();
    }
    let mut all: Vec<String> = arguments::words().skip(1).map(|it| shell_quote(&it)).collect();
    let end = all.iter().position(|it| it == "--").unwrap_or(all.len());
    all.insert(end, "--yes".to_owned());
    *command = format!("prowess {}", all.join(" "));
    pieces.join("`")
}

/// Prints the outcome; the output of a script was printed already.
fn print_outcome(
    name: &str,
    skill: Option<&Skill>,
    outcome: &Outcome,
    is_plan_shown: bool,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let mut outcome = printer.with_full_hint(outcome);
    outcome.hint = outcome.hint.as_deref().map(complete_hint);
    let outcome = &outcome;
    if printer.json {
        let kind = skill.map(|it| it.manifest.kind.as_str());
        let mut document = json!({"skill": name, "type": kind, "outcome": outcome});
        if !outcome.is_ok() {
            let texts = [("error", &outcome.message), ("hint", &outcome.hint)];
            for (key, text) in texts.iter().filter_map(|(key, it)| Some((*key, it.as_ref()?))) {
                document[key] = json!(text);
            }
        }
        return printer.document(&document);
    }
    // The plan was printed with the question.
    if !is_plan_shown {
        show_plan(outcome.plan.as_deref().unwrap_or_default(), printer)?;
    }
    let output = outcome.output.as_ref().filter(|_| outcome.is_ok());
    let is_markdown = skill.is_some_and(|it| it.manifest.kind == Type::Instruction);
    match output.and_then(|it| it.as_str().or_else(|| it["content"].as_str())) {
        Some(text) if printer.is_terminal && is_markdown => printer.markdown(text)?,
        // A terminal would interpret control characters of the text.
        Some(text) if printer.is_terminal => printer.text(text)?,
        Some(text) => printer.raw(text.as_bytes())?,
        None => {}
    }
    for what in &outcome.left_out {
        printer.note(&format!("not copied: {what}"));
    }
    printer.report_refused(outcome);
    printer.report_network(outcome);
    match &outcome.message {
        Some(message) if outcome.is_ok() => printer.note(message),
        Some(message) => printer.error_text(message),
        None => {}
    }
    outcome.hint.iter().for_each(|it| printer.exact_hint(it));
    Ok(())
}
