//! `execute_command`: runs a listed command in the sandbox, inside the roots.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    env, fs, io, mem,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use prowess_sandbox::{Chunk, Job, RunLimits, Sandbox, SandboxLevel, Work};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::{input, schema};
use crate::{
    active::ActiveSkills,
    authorizer::Authorizer,
    blocking::blocking,
    commands::{self, GitDirs, Guard, Plan, Withheld},
    outcome::{Outcome, OutcomeStatus},
    policy::{Approvals, Decision, Policy, PolicyRule},
    protected::ResolvedPath,
    repository,
    tool::{Action, CommandPreview, Tool, ToolFuture},
};

/// The tool `execute_command`.
#[derive(Debug, Clone)]
pub struct ExecuteCommand {
    policy: Policy,
    sandbox: Sandbox,
    limits: RunLimits,
    directory: PathBuf,
    trash: PathBuf,
    chunks: Option<UnboundedSender<Chunk>>,
    authorizer: Option<Arc<Authorizer>>,
    /// The sandbox level of the machine, once it is known.
    level: OnceLock<SandboxLevel>,
}

const NAME: &str = "execute_command";

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The command, such as `grep -rn TODO src | head -5`. `|`, `&&`, `||` and `;` can join
    /// commands; variables, substitutions and redirections are not supported
    command: String,
    /// Timeout in seconds, up to the configured limit
    timeout: Option<f64>,
    /// Directory to run in: absolute, or relative to the working directory
    #[serde(alias = "cwd")]
    working_directory: Option<PathBuf>,
}

impl ExecuteCommand {
    /// Creates the tool. Commands run in `directory` unless a call names another one.
    pub fn new(policy: Policy, sandbox: Sandbox, limits: RunLimits, directory: PathBuf) -> Self {
        Self {
            policy,
            sandbox,
            limits,
            directory,
            trash: env::temp_dir(),
            chunks: None,
            authorizer: None,
            level: OnceLock::new(),
        }
    }

    /// Sets the directory for files that no command may create, such as a new `prowess.toml`. The
    /// default is the directory for temporary files.
    #[must_use]
    pub fn with_trash(self, trash: PathBuf) -> Self {
        Self { trash, ..self }
    }

    /// Sends the output of commands as it is printed.
    #[must_use]
    pub fn streaming(self, chunks: UnboundedSender<Chunk>) -> Self {
        Self { chunks: Some(chunks), ..self }
    }

    /// Sets the authorizer, which determines the undisclosed skills: commands cannot read their
    /// files.
    #[must_use]
    pub fn with_authorizer(self, authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer: Some(authorizer), ..self }
    }

    /// Returns the current policy for a command.
    fn policy(&self, roots: &[PathBuf]) -> Policy {
        let mut policy = self.policy.clone();
        if let (Some(authorizer), Some(active)) = (&self.authorizer, ActiveSkills::current()) {
            let undisclosed = authorizer.undisclosed_skills(&active, |folder: &Path| {
                roots.iter().any(|it| folder.starts_with(it) || it.starts_with(folder))
            });
            for (_, folder) in undisclosed {
                // Names of folders must not act as patterns.
                let pattern = folder.to_string_lossy().replace('*', "?");
                let deny = PolicyRule::new(Decision::Deny);
                policy.rules.push(PolicyRule { path: Some(pattern), ..deny });
            }
        }
        policy
    }

    /// Whether a command may only read a file with secrets after approval.
    fn asks_about_secret(&self, path: &Path) -> bool {
        match &self.authorizer {
            Some(authorizer) => authorizer.asks_about_secret(NAME, path),
            None => self.policy.asks_about_secret(NAME, path),
        }
    }

    /// Returns the files with secrets to hide from a command that names none of them: one that only
    /// reads, or an unlisted one that no person has approved. Git would treat a hidden file as
    /// removed.
    fn hidden_secrets(
        &self,
        plan: &Plan,
        is_agreed: bool,
        roots: &[PathBuf],
    ) -> (Vec<PathBuf>, Option<PathBuf>) {
        let asks = self.policy.secret_reads != Decision::Allow;
        let is_known = plan.writes() && (plan.unlisted.is_empty() || is_agreed);
        if !asks || is_known || plan.has_git() || !plan.prints_content() {
            return Default::default();
        }
        let (mut secrets, unseen) = commands::find_secrets(roots, &self.policy);
        secrets.retain(|path: &PathBuf| {
            let mut named = plan.secrets.iter().chain(&plan.spelled_secrets);
            !named.any(|it| it.starts_with(path)) && self.asks_about_secret(path)
        });
        (secrets, unseen)
    }

    fn working_directory(&self, input: &Input) -> PathBuf {
        match &input.working_directory {
            Some(named) => self.directory.join(named),
            None => self.directory.clone(),
        }
    }

    fn limits(&self, input: &Input) -> Result<RunLimits, Box<Outcome>> {
        let Some(seconds) = input.timeout else { return Ok(self.limits) };
        match Duration::try_from_secs_f64(seconds) {
            Ok(timeout) if !timeout.is_zero() => {
                Ok(RunLimits { timeout: timeout.min(self.limits.timeout), ..self.limits })
            }
            _ => {
                Err(Outcome::bad(OutcomeStatus::Invalid, "`timeout` is not a number of seconds")
                    .into())
            }
        }
    }

    /// Plans a command by the policy in force now.
    fn preview(&self, input: &Input) -> CommandPreview {
        let policy = self.policy(&self.roots());
        let plan = commands::plan(&input.command, &self.working_directory(input), &policy);
        // A listed command is not asked about, unless the policy always asks.
        let is_asked = plan.as_ref().is_ok_and(|it| {
            !it.unlisted.is_empty()
                || !it.secrets.is_empty()
                || self.policy.approvals == Approvals::Always
        });
        let reach = match &plan {
            Ok(plan) if is_asked => self.describe_reach(plan),
            _ => Vec::new(),
        };
        CommandPreview { plan, reach, is_sandboxed: self.sandbox.confines(), is_agreed: false }
    }

    /// Returns the existing roots of the policy, with links resolved.
    fn roots(&self) -> Vec<PathBuf> {
        self.policy.roots.iter().filter_map(|it| prowess::real_path(it).ok()).collect()
    }

    /// Returns the resources that a command could access, one per line.
    fn describe_reach(&self, plan: &Plan) -> Vec<String> {
        let directory = format!("directory: `{}`", plan.directory.display());
        if !self.sandbox.confines() {
            return vec![directory, "no sandbox: it runs with all your permissions".to_owned()];
        }
        let level = self.level.get_or_init(|| self.sandbox.level());
        let level = match level {
            SandboxLevel::None => {
                "sandbox: not available on this machine, so it cannot run".to_owned()
            }
            level => format!("sandbox: {level}, no network"),
        };
        let roots: Vec<String> =
            self.policy.roots.iter().map(|it| format!("`{}`", it.display())).collect();
        let roots = roots.join(", ");
        let files = match plan.writes() {
            true => format!(
                "files: it can read and write {roots}; `prowess undo` cannot restore what it changes"
            ),
            false => format!("files: it can only read {roots}"),
        };
        vec![directory, level, files]
    }

    /// Refuses a command that requires approval.
    fn refuse_unapproved(&self, action: Action) -> Result<CommandPreview, Box<Outcome>> {
        let preview = preview_of(action)?;
        let plan = preview.plan.clone()?;
        let refused = |message: String| Box::new(Outcome::bad(OutcomeStatus::Refused, message));
        if !plan.unlisted.is_empty() {
            return Err(refused(plan.unlisted.join(", and ")));
        }
        match plan.secrets.iter().find(|it| self.asks_about_secret(it)) {
            Some(secret) => {
                let secret = secret.display();
                Err(refused(format!("it names `{secret}`, which may contain secrets")))
            }
            None => Ok(preview),
        }
    }

    async fn run(&self, preview: CommandPreview, given: &Value) -> Result<Outcome, Box<Outcome>> {
        let limits = self.limits(&input(given)?)?;
        let tool = self.clone();
        let prepared = blocking(move || tool.prepare(preview, limits)).await.flatten()?;
        let result = self.sandbox.run(prepared.job).await.map_err(Outcome::from)?;
        let (mut outcome, checks) = (Outcome::from(result), prepared.checks);
        blocking(move || {
            checks.finish(&mut outcome);
            outcome
        })
        .await
    }

    /// Finds the files that a planned command may see and change. Walks the roots.
    fn prepare(
        &self,
        preview: CommandPreview,
        limits: RunLimits,
    ) -> Result<PreparedCommand, Box<Outcome>> {
        let CommandPreview { plan, is_agreed, .. } = preview;
        let plan = plan?;
        if !plan.is_unchanged() {
            let message = "the directory or the program changed while waiting for approval";
            return Err(Outcome::bad(OutcomeStatus::Refused, message).hint("try again").into());
        }
        let roots = self.roots();
        let policy = self.policy(&roots);
        let git = if plan.has_git() { GitDirs::default() } else { GitDirs::new(&roots) };
        let mut withheld = Withheld::new(&policy);
        let (hidden, unseen_secrets) = self.hidden_secrets(&plan, is_agreed, &roots);
        withheld.paths.extend(hidden.iter().cloned());
        let guard = plan.writes().then(|| {
            let named = self.protected(&roots, mem::take(&mut withheld.links));
            // A person has approved its effects; files that git writes belong to the repository.
            let is_seen = plan.has_git() || is_agreed;
            Guard::new(&roots, &plan.directory, named, !is_seen, self.trash.clone())
        });
        let there = guard.iter().flat_map(Guard::protected_paths);
        let there = there.filter(|it| !git.contains(it)).map(Path::to_owned);
        let mut reads: Vec<PathBuf> = there.chain(plan.own_programs()).collect();
        let mut path: Vec<PathBuf> = Vec::new();
        for interpreter in policy.interpreters.values() {
            let outside = interpreter
                .reads
                .iter()
                .filter(|it: &&PathBuf| !roots.iter().any(|root| it.starts_with(root)));
            reads.extend(outside.cloned());
            path.extend(interpreter.program.parent().map(Path::to_owned));
        }
        path.dedup();
        let mut writes = roots;
        if guard.is_none() {
            reads.append(&mut writes);
        }
        let work = create_work(&plan).map_err(|error| {
            Outcome::bad(OutcomeStatus::Failed, format!("cannot create a work directory: {error}"))
        })?;
        let unseen = [
            ("`.git`", git.unsearched),
            ("denied files", withheld.unsearched),
            ("files with secrets", unseen_secrets),
        ];
        let job = Job {
            directory: Some(plan.directory.clone()),
            reads,
            writes,
            path,
            hidden: git.paths,
            withheld: withheld.paths.into_iter().collect(),
            chunks: self.chunks.clone(),
            ..Job::new(plan.argv(), work, limits)
        };
        Ok(PreparedCommand { job, checks: AfterRun { unseen, hidden, guard } })
    }

    /// Returns the files that no command may change, wherever they are.
    fn protected(&self, roots: &[PathBuf], withheld: Vec<PathBuf>) -> Vec<PathBuf> {
        let protected = self.policy.protected.iter().map(|it| ResolvedPath::of(it));
        let mut named: Vec<PathBuf> =
            protected.flat_map(|it| it.links.into_iter().chain([it.end])).collect();
        named.extend(withheld);
        let trees: BTreeSet<&Path> = roots.iter().flat_map(|it| it.ancestors()).collect();
        named.extend(trees.into_iter().flat_map(repository::named_by_settings));
        named
    }
}

/// A command that is ready to run.
struct PreparedCommand {
    job: Job,
    checks: AfterRun,
}

/// The checks and repairs after a command has run.
struct AfterRun {
    /// The search that was cut short, with the first directory that was not searched any more.
    unseen: [(&'static str, Option<PathBuf>); 3],
    /// The files with secrets that the command did not see.
    hidden: Vec<PathBuf>,
    guard: Option<Guard>,
}

impl AfterRun {
    /// Restores protected files, and notes in the outcome what the command was denied.
    fn finish(self, outcome: &mut Outcome) {
        outcome.files.clear();
        for (what, place) in self.unseen {
            outcome.denied.extend(place.map(|it| describe_unsearched(what, &it)));
        }
        outcome.denied.extend(describe_hidden(&self.hidden));
        if let Some(guard) = self.guard {
            let unsearched = guard.first_unsearched();
            outcome.denied.extend(unsearched.map(|it| describe_unsearched("protected files", it)));
            guard.restore_after_run(outcome);
        }
    }
}

/// Describes where a search of the roots ended early.
fn describe_unsearched(what: &str, place: &Path) -> String {
    format!("not searched for {what}: `{}` and later directories", place.display())
}

/// Returns the planned command of an action.
fn preview_of(action: Action) -> Result<CommandPreview, Box<Outcome>> {
    match action {
        Action::Command { preview: Some(preview), .. } => Ok(preview),
        _ => Err(Outcome::bad(OutcomeStatus::Invalid, "the command was not planned").into()),
    }
}

impl Tool for ExecuteCommand {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> Cow<'_, str> {
        let commands = self.policy.commands.join(", ");
        let others = match self.policy.asks_about_commands() {
            true => " The user is asked about any other command.",
            false => "",
        };
        format!(
            "Run a command without network access; it can write only inside the configured directories. \
             Allowed commands: {commands}.{others}"
        )
        .into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn aliases(&self) -> &[(&str, &str)] {
        &[("cwd", "working_directory")]
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        let input: Input = input(given)?;
        self.limits(&input)?;
        let preview = Some(self.preview(&input));
        Ok(Action::Command {
            directory: self.working_directory(&input),
            line: input.command,
            preview,
        })
    }

    fn perform<'a>(&'a self, action: Action, given: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            match preview_of(action) {
                Ok(preview) => self.run(preview, &given).await.unwrap_or_else(|it| *it),
                Err(outcome) => *outcome,
            }
        })
    }

    fn call<'a>(&'a self, given: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            match self.action(&given).and_then(|it| self.refuse_unapproved(it)) {
                Ok(preview) => self.run(preview, &given).await.unwrap_or_else(|it| *it),
                Err(outcome) => *outcome,
            }
        })
    }
}

/// Returns a sentence with the hidden files with secrets.
fn describe_hidden(hidden: &[PathBuf]) -> Option<String> {
    /// The maximum number of named files.
    const NAMED: usize = 3;
    let mut names: Vec<String> =
        hidden.iter().take(NAMED).map(|it| format!("`{}`", it.display())).collect();
    let more = hidden.len().saturating_sub(NAMED);
    names.extend((more > 0).then(|| format!("{more} more")));
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!(
            "reading {names}, which may contain secrets; a command that names one is asked about"
        )
    })
}

/// Creates a work directory, with the files that programs expect in a home directory.
fn create_work(plan: &Plan) -> io::Result<Work> {
    let work = Work::new()?;
    if plan.parts().any(|it| it[0].ends_with("git")) {
        // The roots come from the policy, whoever owns them.
        fs::write(work.path().join(".gitconfig"), "[safe]\n\tdirectory = *\n")?;
    }
    Ok(work)
}
