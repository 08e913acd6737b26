//! Executes skills: as a plan, in the sandbox, as a filled-in template, or as instructions.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, future, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use prowess::{CompositeStep, Definition};
use prowess_sandbox::{
    Chunk, Job, Network, RootError, RunLimits, Sandbox, SandboxError, Stdin, Work,
};
use prowess_shell::lint;
use prowess_template::{Template, TemplateError};
use serde_json::{Map, Value, json};
use tokio::{
    sync::{Notify, mpsc::UnboundedSender},
    task::spawn_blocking,
    time::timeout,
};

#[cfg(feature = "http")]
use crate::{
    approver::Approver,
    preparation::{PrepareOptions, Preparer},
};
pub use crate::{
    commands::system_program,
    script::{Script, ScriptError, skill_files},
};
use crate::{
    commands::{Guard, find_secrets},
    entry::SkillRecord,
    environment::{
        InstalledInterpreter, InterpreterError, InterpreterSearch, ScriptArguments,
        declared_programs,
    },
    handover::Handover,
    outcome::{Outcome, OutcomeStatus, PlanStep},
    parameters::{Parameters, ParametersError, Variables},
    policy::Policy,
    preparation::{EnvironmentError, EnvironmentStore, PreparedEnvironment, ScriptEnvironments},
    repository,
    skill_folder::{FolderError, SkillFolder, give_folder},
};

/// Executes skills.
///
/// Creating one cannot fail and touches no files. A script can read the system and a copy of its
/// skill, can only write its work directory, has no network access, and is killed with all its
/// processes when its execution is dropped.
#[derive(Debug, Clone)]
pub struct Executor {
    sandbox: Sandbox,
    limits: RunLimits,
    environment: BTreeMap<String, String>,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    withheld: Vec<PathBuf>,
    directory: Option<PathBuf>,
    interpreters: InterpreterSearch,
    trash: PathBuf,
    network: Network,
    policy: Option<(Policy, PathBuf)>,
    environments: Option<EnvironmentStore>,
    #[cfg(feature = "http")]
    preparation: Option<(Arc<Preparer>, Arc<dyn Approver>)>,
}

/// The input and output channels of a script, in addition to its outcome.
#[derive(Debug, Default)]
pub struct Delivery {
    /// Receives its output as it is printed.
    pub chunks: Option<UnboundedSender<Chunk>>,
    /// Its standard input; empty by default.
    pub stdin: Option<Stdin>,
    /// Cancels a running script; its outcome has the output so far.
    pub cancel: Option<Arc<Notify>>,
    /// The directory for the files of its work directory. It is created if it is missing; existing
    /// files are not overwritten.
    pub output: Option<PathBuf>,
}

/// A script could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// It could not be started.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The output directory cannot be used.
    #[error("cannot copy its files")]
    Handover(#[from] RootError),
    /// The files next to it cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The interpreter that settings name cannot be used.
    #[error(transparent)]
    Interpreter(#[from] InterpreterError),
    /// The environment that was prepared for it cannot be used.
    #[error("{source}")]
    Environment {
        /// The name of the skill.
        skill: String,
        /// The error.
        source: EnvironmentError,
    },
    /// Its files cannot be written.
    #[error("cannot create a directory for the run")]
    Work(#[from] io::Error),
}

impl Executor {
    /// Creates an executor.
    pub fn new(sandbox: Sandbox, limits: RunLimits) -> Self {
        let (environment, reads, writes, withheld, interpreters, network) = Default::default();
        let (directory, trash) = (None, PathBuf::new());
        Self {
            sandbox,
            limits,
            environment,
            reads,
            writes,
            withheld,
            directory,
            interpreters,
            trash,
            network,
            policy: None,
            environments: None,
            #[cfg(feature = "http")]
            preparation: None,
        }
    }

    /// Passes these environment variables to every script.
    #[must_use]
    pub fn with_environment(self, environment: BTreeMap<String, String>) -> Self {
        Self { environment, ..self }
    }

    /// Lets every script read these files and directories.
    #[must_use]
    pub fn with_reads(self, reads: Vec<PathBuf>) -> Self {
        Self { reads, ..self }
    }

    /// Lets every script write to these directories permanently. Protected files are restored: a
    /// changed one is moved to `trash`.
    #[must_use]
    pub fn with_writes(self, writes: Vec<PathBuf>, trash: PathBuf) -> Self {
        Self { writes, trash, ..self }
    }

    /// Starts every script in this readable directory, instead of its work directory.
    #[must_use]
    pub fn with_directory(self, directory: Option<PathBuf>) -> Self {
        Self { directory, ..self }
    }

    /// Lets scripts that a model calls read the files that their arguments name, relative to
    /// `here`, as far as this policy lets a tool read them without asking.
    #[must_use]
    pub fn with_policy(self, policy: Policy, here: PathBuf) -> Self {
        Self { policy: Some((policy, here)), ..self }
    }

    /// Searches interpreters here, before those of the system.
    #[must_use]
    pub fn with_interpreters(self, interpreters: InterpreterSearch) -> Self {
        Self { interpreters, ..self }
    }

    /// Runs scripts with their prepared environments. No script may write to these.
    #[must_use]
    pub fn with_environments(self, environments: Option<EnvironmentStore>) -> Self {
        Self { environments, ..self }
    }

    /// Asks this approver whether to install missing packages of a script that a model calls.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_preparation(self, preparer: Arc<Preparer>, approver: Arc<dyn Approver>) -> Self {
        Self { preparation: Some((preparer, approver)), ..self }
    }

    /// Installs missing packages of a script, if somebody can be asked and approves. Failures show
    /// when the script runs.
    pub(crate) async fn install_missing_packages(&self, script: &Script, folder: Option<&Path>) {
        #[cfg(feature = "http")]
        if let Some((preparer, approver)) = &self.preparation
            && approver.who() != "nobody"
            && let Some(recipe) = preparer.missing_recipe(script, folder)
        {
            let (name, folder) = (script.skill.clone(), folder.map(Path::to_owned));
            let options = PrepareOptions { name, folder, ..PrepareOptions::default() };
            let _ = preparer.prepare(&recipe, options, &**approver).await;
        }
        let _ = (script, folder);
    }

    /// Returns a hint on how to install missing packages of a script.
    pub(crate) fn install_hint(&self, script: &Script, folder: Option<&Path>) -> Option<String> {
        #[cfg(feature = "http")]
        if let Some((preparer, _)) = &self.preparation
            && let Some(recipe) = preparer.missing_recipe(script, folder)
        {
            let (name, packages) = (&script.skill, recipe.requirements.join(", "));
            return Some(format!("`prowess prepare {name}` installs missing packages: {packages}"));
        }
        let _ = (script, folder);
        None
    }

    /// Forbids all scripts to read these paths.
    #[must_use]
    pub fn with_withheld(self, withheld: Vec<PathBuf>) -> Self {
        Self { withheld, ..self }
    }

    /// Gives every script access to this network; without one, it has none.
    #[must_use]
    pub fn with_network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// Executes a skill. If a script could not be run, its outcome is refused.
    pub async fn execute(&self, entry: &SkillRecord, parameters: impl Into<Parameters>) -> Outcome {
        let tried = self.attempt(entry, parameters.into(), Delivery::default()).await;
        tried.unwrap_or_else(|error| Outcome::from(&error))
    }

    /// Executes a skill, and returns an error if its script could not be run.
    pub async fn attempt(
        &self,
        entry: &SkillRecord,
        parameters: Parameters,
        delivery: Delivery,
    ) -> Result<Outcome, ExecuteError> {
        into_result(self.execute_by_type(entry, parameters, delivery).await)
    }

    /// Runs a script on a copy of its skill, with these arguments.
    pub async fn attempt_script(
        &self,
        script: &Script,
        arguments: ScriptArguments,
        parameters: Parameters,
        delivery: Delivery,
    ) -> Result<Outcome, ExecuteError> {
        into_result(self.run_script(script, arguments, parameters, delivery).await)
    }

    /// Returns the interpreter of a script, if it is not the system's own.
    pub fn interpreter(
        &self,
        script: &Script,
    ) -> Result<Option<InstalledInterpreter>, InterpreterError> {
        let program = script.interpreter.first().and_then(|it| it.to_str());
        program.map_or(Ok(None), |it| self.interpreters.find(it))
    }

    /// Creates the arguments of a script that a model calls.
    pub(crate) fn arguments(&self, tool: &str, words: Vec<OsString>) -> ScriptArguments {
        let Some((policy, here)) = &self.policy else { return words.into() };
        let roots: Vec<PathBuf> =
            policy.roots.iter().filter_map(|it| prowess::real_path(it).ok()).collect();
        let mut arguments = ScriptArguments::naming_files(&words, here, self.directory.as_deref());
        arguments.retain(|it| {
            let real = prowess::real_path(it).unwrap_or_else(|_| it.to_owned());
            let is_inside = roots.iter().any(|root| real.starts_with(root));
            is_inside
                && !policy.asks_about_secret(tool, &real)
                && !policy.asks_about_secret(tool, it)
        });
        if policy.asks_about_secret(tool, Path::new(".env")) {
            let folders = arguments.reads.iter().filter(|it| it.is_dir());
            let folders: Vec<_> = folders.cloned().collect();
            let (secrets, unsearched) = find_secrets(&folders, policy);
            arguments.withheld = secrets;
            // A directory that cannot be searched for secrets is not readable.
            if unsearched.is_some() {
                arguments.retain(Path::is_file);
            }
        }
        arguments
    }

    async fn execute_by_type(
        &self,
        entry: &SkillRecord,
        parameters: Parameters,
        delivery: Delivery,
    ) -> Result<Outcome, EarlyEnd> {
        let skill = &entry.manifest.name;
        match &entry.definition {
            Definition::Instruction { content } => {
                let kind = entry.manifest.kind.as_str();
                Ok(Outcome::ok(json!({"skill": skill, "type": kind, "content": content})))
            }
            Definition::Composite { steps } => {
                let parameters = self.check_parameters(entry, parameters).await?;
                let steps = steps.clone();
                self.run_blocking(move || Ok::<_, TemplateError>(fill_plan(&steps, &parameters)))
                    .await
            }
            Definition::Template { template } => {
                let schema = entry.parameters.as_ref().map(close_schema);
                let is_declared = schema.is_some();
                let parameters =
                    self.run_blocking(move || parameters.checked(schema.as_ref())).await?;
                let (name, text) = (skill.to_string(), template.clone());
                let data = Value::from(parameters.values().clone());
                let given = data.clone();
                let rendered: String =
                    self.run_blocking(move || Template::named(&name, &text)?.render(&data)).await?;
                match missing_values(template, &rendered, &given) {
                    Some(message) if is_declared => {
                        Ok(Outcome::bad(OutcomeStatus::Invalid, message)
                            .hint("nothing was rendered"))
                    }
                    message => Ok(Outcome { message, ..Outcome::ok(rendered) }),
                }
            }
            Definition::Script { script } => {
                check_script(script)?;
                let parameters = self.check_parameters(entry, parameters).await?;
                let work = Work::new()?;
                let path = work.give("script.sh", script.as_bytes())?;
                let files = entry.folder.as_ref().map(SkillFolder::files).transpose()?;
                let folder = files.map(|it| give_folder(&work, SKILL, &it)).transpose()?;
                let arguments = ScriptArguments::default();
                let argv = vec!["sh".into(), path.into()];
                let programs = Vec::new();
                let environments = ScriptEnvironments::default();
                let script_folder = PathBuf::new();
                let run = Run {
                    skill,
                    argv,
                    arguments,
                    programs,
                    environments,
                    folder,
                    script_folder,
                    work,
                };
                self.run(run, &parameters, delivery).await
            }
        }
    }

    async fn run_script(
        &self,
        script: &Script,
        arguments: ScriptArguments,
        parameters: Parameters,
        delivery: Delivery,
    ) -> Result<Outcome, EarlyEnd> {
        script.shell_text().map_or(Ok(()), check_script)?;
        let parameters = parameters.checked(None)?;
        let work = Work::new()?;
        let folder = give_folder(&work, SKILL, &script.files)?;
        let path = folder.join(&script.path).into();
        let environments = self.environments(script).map_err(|source| {
            let skill = script.skill.clone();
            ExecuteError::Environment { skill, source }
        })?;
        let command = environments.command(&script.interpreter);
        environments.link_modules(&folder)?;
        let argv = match script.module().filter(|_| is_python(&command)) {
            Some(module) => command.into_iter().chain(["-m".into(), module.into()]).collect(),
            None => command.into_iter().chain([path]).collect(),
        };
        let programs = declared_programs(&script.entry.manifest);
        let (skill, folder) = (&*script.skill, Some(folder));
        let script_folder = Path::new(&script.path).parent().unwrap_or(Path::new("")).to_owned();
        let run =
            Run { skill, argv, arguments, programs, environments, folder, script_folder, work };
        self.run(run, &parameters, delivery).await
    }

    /// Returns the prepared environments of a script.
    pub fn environments(&self, script: &Script) -> Result<ScriptEnvironments, EnvironmentError> {
        let store = self.environments.as_ref();
        store.map_or_else(
            || Ok(ScriptEnvironments::default()),
            |it| it.of_script(script, &self.interpreters),
        )
    }

    async fn run(
        &self,
        run: Run<'_>,
        parameters: &Parameters,
        delivery: Delivery,
    ) -> Result<Outcome, EarlyEnd> {
        self.check_writes()?;
        let Variables { variables, too_large } = parameters.variables()?;
        let handover = delivery.output.as_deref().map(Handover::open).transpose()?;
        let Run { skill, mut argv, arguments, programs, environments, folder, script_folder, work } =
            run;
        let python_path = folder.iter().filter(|_| is_python(&argv)).flat_map(|it| {
            // A module must find the files next to it like a script.
            let beside = argv.contains(&"-m".into()).then(|| it.join(&script_folder));
            [Some(it.clone()), beside].into_iter().flatten()
        });
        let python_path = python_path.collect();
        let file = work.give("parameters.json", parameters.json().as_bytes())?;
        let directory = folder.iter().map(|it| ("SKILL_DIR", it.to_string_lossy().into_owned()));
        let file = file.to_string_lossy().into_owned();
        let own = [("SKILL_NAME", skill.to_owned()), ("PARAMS_FILE", file)];
        let own = own.into_iter().chain(directory).map(|(name, value)| (name.to_owned(), value));
        let links = arguments.create_links(&work)?;
        let Programs { path, reads } = self.programs(&mut argv, &programs, &environments)?;
        argv.extend(arguments.words);
        let named = arguments.reads.into_iter().chain(self.directory.clone());
        let named = named.filter(|it| !self.may_write(it));
        let guard = self.guard_writes();
        let protected = guard.iter().flat_map(Guard::protected_paths).map(Path::to_owned);
        let protected = protected.chain(self.git_directories());
        let reads = self.reads.iter().cloned().chain(reads).chain(named).chain(protected).collect();
        let job = Job {
            env: self
                .environment
                .clone()
                .into_iter()
                .chain(variables)
                .chain(own)
                .chain(environments.variables())
                .collect(),
            python_path,
            directory: self.directory.clone(),
            reads,
            layered: environments.all().map(|it| it.tree.clone()).collect(),
            writes: self.writes.clone(),
            withheld: self.withheld_paths().chain(arguments.withheld).collect(),
            home: (!self.sandbox.confines()).then(|| self.interpreters.home.clone()).flatten(),
            path,
            stdin: delivery.stdin,
            network: self.network.clone(),
            chunks: delivery.chunks,
            ..Job::new(argv, work, self.limits)
        };
        let cancelled = async {
            match delivery.cancel {
                Some(cancel) => cancel.notified().await,
                None => future::pending().await,
            }
        };
        let (result, work) = self.sandbox.run_until(job, cancelled).await?;
        let mut outcome = Outcome::from(result);
        if let Some(guard) = guard {
            guard.restore_after_run(&mut outcome);
        }
        if !too_large.is_empty() {
            let names = too_large.join("`, `");
            let message = format!("too large for variables, so only in `PARAMS_FILE`: `{names}`");
            outcome.message.get_or_insert(message);
        }
        if let Some(handover) = handover {
            handover.copy_files(&work, &links, self.limits.work, &mut outcome);
        }
        Ok(outcome)
    }

    /// Returns the programs that precede those of the system, including the interpreter.
    fn programs(
        &self,
        argv: &mut [OsString],
        declared: &[String],
        environments: &ScriptEnvironments,
    ) -> Result<Programs, InterpreterError> {
        let mut programs = Programs::default();
        programs.reads.extend(environments.all().flat_map(|it| it.reads.clone()));
        programs.path.extend(environments.all().map(PreparedEnvironment::bin));
        if let Some(first) = argv.first_mut()
            && !environments.all().any(|it| Path::new(first).starts_with(&it.tree))
            && let Some(name) = first.to_str()
            && let Some(program) = programs.add(&self.interpreters, name)?
        {
            *first = program.into();
        }
        for name in ["python3", "node"].into_iter().chain(declared.iter().map(String::as_str)) {
            programs.add(&self.interpreters, name)?;
        }
        if !self.sandbox.confines() {
            programs.path.extend(self.interpreters.path.iter().cloned());
        }
        programs.path.dedup();
        Ok(programs)
    }

    /// Returns the paths that no script may read, except for the environments: a script gets its
    /// own.
    fn withheld_paths(&self) -> impl Iterator<Item = PathBuf> {
        let store = self.environments.as_ref().map(EnvironmentStore::root);
        self.withheld.iter().filter(move |it| Some(it.as_path()) != store).cloned()
    }

    /// Refuses to let scripts write to environments: the next script would run what this one has
    /// written there.
    fn check_writes(&self) -> Result<(), EarlyEnd> {
        let Some(store) = &self.environments else { return Ok(()) };
        let Some(writes) = store.reached_by(&self.writes) else { return Ok(()) };
        let (writes, root) = (writes.display(), store.root().display());
        let message =
            format!("a script may not write `{writes}`, because environments are in `{root}`");
        Err(Outcome::bad(OutcomeStatus::Refused, message)
            .hint("let it write a directory below")
            .into())
    }

    /// Returns the `.git` directories at the top of writable directories: they are read-only,
    /// unless they are named themselves.
    fn git_directories(&self) -> impl Iterator<Item = PathBuf> {
        let inside = self.writes.iter().map(|it| it.join(".git"));
        inside.filter(|it| {
            fs::symlink_metadata(it).is_ok_and(|it| it.is_dir()) && !self.writes.contains(it)
        })
    }

    /// Whether a path is in a writable directory.
    fn may_write(&self, path: &Path) -> bool {
        let real = prowess::real_path(path).unwrap_or_else(|_| path.to_owned());
        let mut writes = self.writes.iter().filter_map(|it| prowess::real_path(it).ok());
        writes.any(|it| real.starts_with(it))
    }

    /// Guards protected files in writable directories.
    fn guard_writes(&self) -> Option<Guard> {
        let writes: Vec<PathBuf> =
            self.writes.iter().filter_map(|it| prowess::real_path(it).ok()).collect();
        let first = writes.first()?.clone();
        let above: BTreeSet<&Path> = writes.iter().flat_map(|it| it.ancestors()).collect();
        let named = above.into_iter().flat_map(repository::named_by_settings).collect();
        Some(Guard::new(&writes, &first, named, true, self.trash.clone()))
    }

    async fn check_parameters(
        &self,
        entry: &SkillRecord,
        parameters: Parameters,
    ) -> Result<Parameters, EarlyEnd> {
        let schema = entry.parameters.clone();
        self.run_blocking(move || parameters.checked(schema.as_ref())).await
    }

    /// Runs work on another thread, with the time limit of a run.
    async fn run_blocking<T, E>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, EarlyEnd>
    where
        T: Send + 'static,
        E: Send + 'static,
        EarlyEnd: From<E>,
    {
        match timeout(self.limits.timeout, spawn_blocking(work)).await {
            Ok(Ok(done)) => Ok(done?),
            // All such work ends by itself, so it need not be stopped.
            Err(_) => {
                Err(Outcome::bad(OutcomeStatus::TimedOut, "checking the parameters took too long")
                    .into())
            }
            Ok(Err(error)) => Err(Outcome::bad(OutcomeStatus::Failed, error.to_string()).into()),
        }
    }
}

/// The name of the copy of a skill's folder.
const SKILL: &str = "skill";

/// A script that is about to run.
struct Run<'r> {
    skill: &'r str,
    /// The interpreter, and the path of the script.
    argv: Vec<OsString>,
    arguments: ScriptArguments,
    /// The programs that the skill declares.
    programs: Vec<String>,
    /// The environments that were prepared for it.
    environments: ScriptEnvironments,
    /// The folder for `SKILL_DIR`: a copy of the approved files.
    folder: Option<PathBuf>,
    /// The folder of the script within it.
    script_folder: PathBuf,
    work: Work,
}

/// Programs besides those of the system.
#[derive(Default)]
struct Programs {
    /// Their directories.
    path: Vec<PathBuf>,
    /// The paths that they have to read.
    reads: Vec<PathBuf>,
}

impl Programs {
    /// Adds an interpreter or program that is not the system's own; returns its path.
    fn add(
        &mut self,
        search: &InterpreterSearch,
        name: &str,
    ) -> Result<Option<PathBuf>, InterpreterError> {
        let Some(InstalledInterpreter { program, reads, .. }) = search.find(name)? else {
            return Ok(None);
        };
        self.reads.extend(reads);
        self.path.extend(program.parent().map(Path::to_owned));
        Ok(Some(program))
    }
}

/// The reason why an execution ends before anything has run.
enum EarlyEnd {
    Outcome(Box<Outcome>),
    Error(ExecuteError),
}

fn into_result(ended: Result<Outcome, EarlyEnd>) -> Result<Outcome, ExecuteError> {
    match ended {
        Ok(outcome) => Ok(outcome),
        Err(EarlyEnd::Outcome(outcome)) => Ok(*outcome),
        Err(EarlyEnd::Error(error)) => Err(error),
    }
}

/// Whether a command runs Python.
fn is_python(command: &[OsString]) -> bool {
    let name = command.first().and_then(|it| Path::new(it).file_name());
    name.and_then(|it| it.to_str()).is_some_and(|it| it.starts_with("python"))
}

/// Refuses a dangerous script.
fn check_script(script: &str) -> Result<(), EarlyEnd> {
    let Some(hazard) = lint(script) else { return Ok(()) };
    let outcome =
        Outcome::bad(OutcomeStatus::Refused, format!("the script is dangerous: {hazard}"));
    Err(outcome.hint("nothing was run; change the script if it is harmless").into())
}

/// Returns a schema that forbids additional parameters, unless it allows them explicitly.
fn close_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let is_open = [
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
    ];
    if let Some(object) = schema.as_object_mut()
        && object.get("properties").is_some_and(Value::is_object)
        && !is_open.iter().any(|it| object.contains_key(*it))
    {
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    schema
}

/// Returns the values that a template lacks, if its output says that one is missing.
fn missing_values(template: &str, rendered: &str, given: &Value) -> Option<String> {
    let is_given = given.to_string().contains(NO_VALUE);
    if !rendered.contains(NO_VALUE) || template.contains(NO_VALUE) || is_given {
        return None;
    }
    let names: Vec<String> = field_names(template)
        .into_iter()
        .filter(|it| given.get(it).is_none())
        .map(|it| format!("`{it}`"))
        .collect();
    Some(match names.is_empty() {
        true => format!("a value is missing and was replaced by `{NO_VALUE}`"),
        false => format!("there is no value for {}", names.join(", ")),
    })
}

/// Returns the names after a dot in the actions of a template, in order.
fn field_names(template: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for action in template.split("{{").skip(1) {
        let action = action.split("}}").next().unwrap_or(action);
        let mut before = ' ';
        for (at, c) in action.char_indices() {
            let name: String = action[at + c.len_utf8()..]
                .chars()
                .take_while(|it| it.is_alphanumeric() || *it == '_')
                .collect();
            let is_first = !before.is_alphanumeric() && !"_.)$".contains(before);
            if c == '.' && is_first && !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
            before = c;
        }
    }
    names
}

/// Returns the steps of a composite skill, with the parameters filled in. What cannot be filled in
/// is left unchanged, and reported.
fn fill_plan(steps: &[CompositeStep], parameters: &Parameters) -> Outcome {
    let data = Value::from(parameters.values().clone());
    let steps = steps.iter().zip(1..).map(|(step, number)| fill_step(number, step, &data));
    let given = Some(parameters.values()).filter(|it| !it.is_empty());
    Outcome {
        plan: Some(steps.collect()),
        output: given.map(|it| json!({ "parameters": it })),
        ..Outcome::new(OutcomeStatus::Ok)
    }
}

fn fill_step(number: usize, step: &CompositeStep, data: &Value) -> PlanStep {
    let (mut params, mut unfilled) = (Map::new(), Vec::new());
    for (name, value) in &step.params {
        // A value in a command must not become a command itself.
        let is_command = step.tool == EXECUTE_COMMAND && name == "command";
        let filled = fill_in(value, data, is_command).unwrap_or_else(|why| {
            unfilled.push(format!("`{name}`: {why}"));
            value.clone()
        });
        params.insert(name.clone(), filled);
    }
    PlanStep { step: number, tool: step.tool.clone(), params, unfilled }
}

/// The tool whose input is parsed by a shell.
const EXECUTE_COMMAND: &str = "execute_command";
/// The output of Go templates for a missing value.
const NO_VALUE: &str = "<no value>";

/// Fills in the strings of a value as templates. A string with nothing but a parameter becomes that
/// parameter, whatever its type.
fn fill_in(value: &Value, data: &Value, is_command: bool) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) if text.contains("{{") => {
            let inner = text.strip_prefix("{{").and_then(|it| it.strip_suffix("}}"));
            let name = inner.and_then(|it| it.trim().strip_prefix('.'));
            if let Some(whole) = name.and_then(|it| data.get(it)) {
                return Ok(whole.clone());
            }
            let rendered = Template::parse(text).and_then(|it| match is_command {
                true => it.render_command(data),
                false => it.render(data),
            });
            let rendered = rendered.map_err(|error| error.to_string())?;
            if rendered.contains(NO_VALUE) && !text.contains(NO_VALUE) {
                return Err(format!("`{text}` names a parameter that was not given"));
            }
            Value::String(rendered)
        }
        Value::Array(items) => items
            .iter()
            .map(|it| fill_in(it, data, is_command))
            .collect::<Result<Vec<_>, _>>()?
            .into(),
        Value::Object(items) => {
            let filled =
                items.iter().map(|(name, it)| Ok((name.clone(), fill_in(it, data, is_command)?)));
            filled.collect::<Result<Map<_, _>, String>>()?.into()
        }
        other => other.clone(),
    })
}

impl From<Outcome> for EarlyEnd {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(Box::new(outcome))
    }
}

impl From<SandboxError> for EarlyEnd {
    fn from(error: SandboxError) -> Self {
        Self::Error(error.into())
    }
}

impl From<RootError> for EarlyEnd {
    fn from(error: RootError) -> Self {
        Self::Error(error.into())
    }
}

impl From<FolderError> for EarlyEnd {
    fn from(error: FolderError) -> Self {
        Self::Error(error.into())
    }
}

impl From<InterpreterError> for EarlyEnd {
    fn from(error: InterpreterError) -> Self {
        Self::Error(error.into())
    }
}

impl From<ExecuteError> for EarlyEnd {
    fn from(error: ExecuteError) -> Self {
        Self::Error(error)
    }
}

impl From<io::Error> for EarlyEnd {
    fn from(error: io::Error) -> Self {
        Self::Error(error.into())
    }
}

impl From<ParametersError> for EarlyEnd {
    fn from(error: ParametersError) -> Self {
        Outcome::from(&error).into()
    }
}

impl From<TemplateError> for EarlyEnd {
    fn from(error: TemplateError) -> Self {
        Outcome::bad(OutcomeStatus::Failed, error.to_string()).into()
    }
}

impl From<&ExecuteError> for Outcome {
    fn from(error: &ExecuteError) -> Self {
        match error {
            ExecuteError::Sandbox(error) => error.into(),
            ExecuteError::Environment { skill, source } => {
                let hint = format!("`prowess prepare {skill} --update` prepares it again");
                Self::error(OutcomeStatus::Refused, source).hint(hint)
            }
            // If a script could not be started, nothing ran.
            error => Self::error(OutcomeStatus::Refused, error),
        }
    }
}
