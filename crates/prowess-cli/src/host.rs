//! The parts that run things, made from settings and the command line.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, DirBuilder, Metadata},
    io,
    path::{self, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::ValueHint;
use prowess::{Cache, Library};
#[cfg(feature = "agent")]
use prowess_agent::RecordingApprover;
use prowess_cli::settings::{Config, Places, SettingOrigin, duration};
#[cfg(feature = "http")]
use prowess_http::Hosts;
#[cfg(any(feature = "agent", feature = "http", feature = "packages"))]
use prowess_http::Proxies;
#[cfg(all(feature = "http", feature = "mcp"))]
use prowess_mcp::client::Logins;
#[cfg(feature = "mcp")]
use prowess_mcp::client::{McpLauncher, ServerTimeouts};
use prowess_runtime::sys::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, user_id};
use prowess_runtime::{
    ApprovalStore, AuditLog, Authorizer, DenyAll, Executor, Launcher, Outcome, OutcomeStatus,
    Policy, Sandbox,
    approval::Approver,
    environment::InterpreterSearch,
    files::ChangeHistory,
    preparation::EnvironmentStore,
    sandbox::{Network, RunLimits},
};
#[cfg(feature = "http")]
use prowess_runtime::{
    preparation::{PrepareLimits, Preparer},
    sandbox::Proxy,
};

#[cfg(any(feature = "agent", feature = "http", feature = "packages"))]
use crate::cli_error::CliError;
#[cfg(feature = "http")]
use crate::registries;
use crate::{
    approver::approver,
    arguments::{directory_parser, existing_path_parser},
    printer::Printer,
    secrets,
    surroundings::real_path,
    sys::{OwnDirectory, SignalKind, own_directory, signal},
    trust,
};

/// The permissions of a run: what scripts, commands and tools may do, and for how long.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct PermissionArgs {
    /// Time limit for a script, command or tool call, such as `5s` or `2m`
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,
    /// Approve in advance: run the skill, install missing packages, start servers, and write files
    ///
    /// Skills are approved until they change; files, commands and requests only this once. Not included are files
    /// with secrets, hidden files, startup files, instructions for agents, and unlisted commands without a sandbox:
    /// you are asked about these at a terminal, and they are refused elsewhere.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Trust the skills of this project for this run; `prowess trust` trusts them permanently
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// Run scripts and commands without a sandbox, with all your permissions
    #[arg(long)]
    pub(crate) unsandboxed: bool,
    /// Let tools and commands use this directory; repeatable [default: the working directory]
    #[arg(long, value_name = "DIR", value_parser = directory_parser())]
    pub(crate) root: Vec<PathBuf>,
    /// Pass this environment variable to scripts; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// Let scripts read this file or directory; repeatable
    #[arg(long, value_name = "PATH", value_parser = existing_path_parser())]
    read: Vec<PathBuf>,
    /// Let scripts write to this directory, and keep the files; `undo` does not restore them; repeatable
    #[arg(long, value_name = "DIR", value_parser = directory_parser(), value_hint = ValueHint::DirPath)]
    write: Vec<PathBuf>,
}

impl PermissionArgs {
    /// Returns the executor of skills. It is an error to pass on a variable that is not set.
    pub(crate) fn executor(
        &self,
        config: &Config,
        policy: &Policy,
        launcher: Launcher,
    ) -> Result<Executor, Box<Outcome>> {
        let executor = Executor::new(self.sandbox(config, launcher), self.limits(config));
        let trash = state().unwrap_or_else(env::temp_dir).join("trash");
        let executor = executor
            .with_reads(self.read.clone())
            .with_writes(self.write.clone(), trash)
            .with_withheld(policy.withheld.clone())
            .with_interpreters(interpreters(config))
            .with_environments(environments())
            .with_network(network(policy)?)
            .with_policy(policy.clone(), env::current_dir().unwrap_or_default());
        Ok(executor.with_environment(self.environment(config)?))
    }

    /// Returns the absolute paths of the directories that scripts may write to.
    pub(crate) fn write_directories(&self) -> Vec<PathBuf> {
        self.write.iter().map(|it| path::absolute(it).unwrap_or_else(|_| it.clone())).collect()
    }

    /// Warns about options that do not apply to servers, and names the setting that does.
    #[cfg(feature = "mcp")]
    pub(crate) fn warn_about_servers(&self, printer: &mut Printer) {
        if self.unsandboxed {
            printer.warning(
                "`--unsandboxed` does not apply to servers, which always run in the sandbox",
            );
        }
        if !self.write.is_empty() {
            printer.warning(
                "`--write` does not apply to servers; use `write = [\"DIR\"]` in `[servers.LABEL]`",
            );
        }
    }

    /// Returns the launcher of the MCP servers of skills.
    #[cfg(feature = "mcp")]
    pub(crate) fn server_launcher(
        &self,
        config: &Config,
        authorizer: Arc<Authorizer>,
        sandbox: Sandbox,
    ) -> Result<McpLauncher, Box<Outcome>> {
        let server_launcher = McpLauncher::new(authorizer, sandbox, self.limits(config));
        let here = trust::project_of(&env::current_dir().unwrap_or_default());
        let server_launcher = server_launcher
            .with_reads(self.read.clone())
            .with_interpreters(interpreters(config))
            .with_environments(environments())
            .with_history(history())
            .with_directory(here)
            .with_settings_file(user_places().user_file());
        let server_launcher = match self.timeout {
            Some(call) => {
                server_launcher.with_patience(ServerTimeouts { call, ..ServerTimeouts::default() })
            }
            None => server_launcher,
        };
        #[cfg(feature = "http")]
        let server_launcher = match logins() {
            Some(logins) => server_launcher.with_logins(logins),
            None => server_launcher,
        };
        Ok(server_launcher.with_environment(self.environment(config)?))
    }

    /// Returns the sandbox of scripts and commands.
    pub(crate) fn sandbox(&self, config: &Config, launcher: Launcher) -> Sandbox {
        let sandbox = Sandbox::new(launcher, config.sandbox.level.value);
        if self.unsandboxed { sandbox.unconfined() } else { sandbox }
    }

    /// Returns the limits of a run.
    pub(crate) fn limits(&self, config: &Config) -> RunLimits {
        let mut limits = config.limits.clone();
        if let Some(timeout) = self.timeout {
            limits.timeout.flag("--timeout", timeout);
            // More wall-clock time means as much more CPU time, unless that was set.
            if limits.cpu.explicit().is_none() {
                limits.cpu.value = limits.cpu.value.max(timeout);
            }
        }
        limits.run_limits()
    }

    /// Returns the authorizer of runs.
    pub(crate) fn authorizer(&self, config: &Config) -> Authorizer {
        let mut authorizer = authorizer(config, recording_approver(approver(self.yes)));
        // Without a sandbox there is no proxy, and every host can be reached.
        if self.unsandboxed {
            authorizer.policy.script_hosts.clear();
        }
        if !self.root.is_empty() {
            let roots = self.root.iter();
            let roots = roots.map(|it| path::absolute(it).unwrap_or_else(|_| it.clone()));
            authorizer.policy.roots = roots.collect();
        }
        authorizer
    }

    fn environment(&self, config: &Config) -> Result<BTreeMap<String, String>, Box<Outcome>> {
        let mut environment = BTreeMap::new();
        for name in &self.env {
            if let Some(why) = why_not_passed(name) {
                let message = format!("the variable `{name}` is not passed on: {why}");
                return Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message)));
            }
            let Ok(value) = env::var(name) else {
                let message = format!("the variable `{name}` is not set, or is not valid UTF-8");
                return Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message)));
            };
            environment.insert(name.clone(), value);
        }
        let set = config.policy.environment.value.iter();
        environment.extend(set.filter_map(|name| Some((name.clone(), env::var(name).ok()?))));
        Ok(environment)
    }
}

/// Returns an approver that records questions and answers as events of the turn of an agent.
#[cfg(feature = "agent")]
pub(crate) fn recording_approver(approver: Arc<dyn Approver>) -> Arc<dyn Approver> {
    Arc::new(RecordingApprover::new(approver))
}

/// Returns the approver unchanged: this build has no agent.
#[cfg(not(feature = "agent"))]
pub(crate) fn recording_approver(approver: Arc<dyn Approver>) -> Arc<dyn Approver> {
    approver
}

/// Returns the search for script interpreters. Those of a project are used once it is trusted.
pub(crate) fn interpreters(config: &Config) -> InterpreterSearch {
    let configured = [("python", &config.run.python), ("node", &config.run.node)];
    let configured =
        configured.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it.value.clone()?)));
    let here = env::current_dir().unwrap_or_default();
    let project = trust::project_of(&here);
    let directories = here.ancestors().take_while(|it| it.starts_with(&project));
    let mut directories: Vec<&Path> =
        directories.filter(|it| InterpreterSearch::matters(it)).collect();
    let trusted = trust::trust_file().filter(|_| !directories.is_empty());
    if !trusted.is_some_and(|it| it.decision(&project).is_ok_and(|it| it == Some(true))) {
        directories.clear();
    }
    InterpreterSearch {
        configured: configured.collect(),
        virtual_env: env::var_os("VIRTUAL_ENV").map(PathBuf::from).filter(|it| it.is_absolute()),
        directories: directories.into_iter().map(Path::to_owned).collect(),
        path: env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect(),
        home: env::home_dir(),
    }
}

/// Returns the store of prepared environments; `None` without a home directory.
pub(crate) fn environments() -> Option<EnvironmentStore> {
    let state = state().filter(|it| !is_homeless(it))?;
    let approvals = Arc::new(ApprovalStore::at(&state));
    Some(EnvironmentStore::new(environments_folder()?, approvals, Arc::new(AuditLog::at(state))))
}

fn environments_folder() -> Option<PathBuf> {
    let data = own_directory(OwnDirectory::Data)?;
    Some(data.join("environments")).filter(|it| !is_homeless(it))
}

/// Returns the proxies of `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
#[cfg(any(feature = "agent", feature = "http", feature = "packages"))]
pub(crate) fn proxies() -> Result<Proxies, CliError> {
    Proxies::from_variables(|name| env::var(name).ok()).map_err(|error| {
        let hint = "set it to a URL such as `http://proxy.example:3128`, or unset it";
        CliError::new(error.to_string()).hint(hint)
    })
}

/// Returns the preparer of environments; `None` without a home directory.
#[cfg(feature = "http")]
pub(crate) fn preparer(config: &Config, launcher: Launcher, proxies: Proxies) -> Option<Preparer> {
    let settings = &config.prepare;
    let limits = PrepareLimits {
        timeout: settings.timeout.value,
        size: settings.max_size.value.0,
        total: settings.max_total.value.0,
    };
    Some(Preparer {
        store: environments()?,
        sandbox: Sandbox::new(launcher, config.sandbox.level.value),
        search: interpreters(config),
        registries: registries::registries(config),
        settings_file: user_places().user_file(),
        limits,
        proxies,
    })
}

/// Returns an executor that installs nothing, because this build has no network.
#[cfg(not(feature = "http"))]
pub(crate) fn with_preparation(
    executor: Executor,
    _: &Config,
    _: Launcher,
    _: &Authorizer,
) -> Executor {
    executor
}

/// Makes an executor offer to install missing packages of the scripts that a model calls.
#[cfg(feature = "http")]
pub(crate) fn with_preparation(
    executor: Executor,
    config: &Config,
    launcher: Launcher,
    authorizer: &Authorizer,
) -> Executor {
    // Errors in the proxy variables are reported when packages are requested.
    match preparer(config, launcher, proxies().unwrap_or_default()) {
        Some(preparer) => {
            executor.with_preparation(Arc::new(preparer), authorizer.approver.clone())
        }
        None => executor,
    }
}

/// Returns no network: this build has none.
#[cfg(not(feature = "http"))]
fn network(policy: &Policy) -> Result<Network, Box<Outcome>> {
    if policy.script_hosts.is_empty() {
        return Ok(Network::None);
    }
    let message = format!(
        "`policy.script_hosts` cannot be used: {}",
        crate::features::missing_feature("network", "http")
    );
    Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message)))
}

/// Returns the network of scripts: the hosts that the policy lists, and no others.
#[cfg(feature = "http")]
fn network(policy: &Policy) -> Result<Network, Box<Outcome>> {
    if policy.script_hosts.is_empty() {
        return Ok(Network::None);
    }
    let hosts = Hosts::for_scripts(&policy.script_hosts).map_err(|error| {
        let message = format!("`policy.script_hosts` cannot be used: {error}");
        Box::new(Outcome::bad(OutcomeStatus::Invalid, message))
    })?;
    Ok(Network::Proxy(Arc::new(Proxy::new(hosts))))
}

/// Returns the authorizer that asks this approver.
pub(crate) fn authorizer(config: &Config, approver: Arc<dyn Approver>) -> Authorizer {
    let cwd = env::current_dir().unwrap_or_default();
    let mut policy = config.policy(&cwd);
    if !names_roots(config) {
        policy.roots.retain(|it| !is_home(it));
    }
    // Anyone who can write the cache of libraries can change which skills there are.
    let cache = cache_folder()
        .filter(|it| DirBuilder::new().recursive(true).mode(0o700).create(it).is_ok());
    policy.withheld.extend(state().into_iter().chain(cache).chain(environments_folder()));
    policy.interpreters = interpreters(config).by_name();
    let mut authorizer = Authorizer::new(policy, approver);
    match state() {
        Some(directory) if is_homeless(&directory) => {
            let home = env::home_dir().unwrap_or_default();
            let home = home.display();
            authorizer.warn(format!(
                "nothing is logged and no approval is saved, because the home directory `{home}` does not exist"
            ));
        }
        Some(directory) => authorizer = authorizer.with_state(directory),
        None => {}
    }
    let keys = secrets::keys(config.model.key_file.value.as_deref());
    authorizer.audit = authorizer.audit.masking(keys);
    authorizer
}

/// Returns whether the user has named the directories that tools may use; those that a project
/// names do not count for a home directory.
fn names_roots(config: &Config) -> bool {
    match &config.policy.roots.origin {
        SettingOrigin::File { path, .. } => {
            config.project.as_ref().is_none_or(|it| it.path.as_path() != &**path)
        }
        SettingOrigin::Default | SettingOrigin::Flag(_) => false,
    }
}

/// Returns whether a directory is the home directory, or one above it, such as `/home`.
pub(crate) fn is_home(directory: &Path) -> bool {
    env::home_dir().is_some_and(|it| real_path(&it).starts_with(real_path(directory)))
}

/// Returns the history of changed files, for `prowess undo`; `None` without a home directory.
pub(crate) fn history() -> Option<ChangeHistory> {
    let state = state().filter(|it| !is_homeless(it))?;
    Some(ChangeHistory::at(state.join("changes")))
}

#[cfg(all(feature = "http", feature = "mcp"))]
/// Returns the store of logins to servers; `None` without a home directory. It is in the state
/// directory, which no script or command can read.
fn logins() -> Option<Logins> {
    let state = state().filter(|it| !is_homeless(it))?;
    Some(Logins::at(state.join("logins")))
}

/// Returns a library without the skills that the policy denies, and prints their number on stderr.
pub(crate) fn without_denied(library: Library, config: &Config, printer: &mut Printer) -> Library {
    if config.policy.rules.value.is_empty() {
        return library;
    }
    let authorizer = authorizer(config, Arc::new(DenyAll));
    let denied = library.all().filter(|it| authorizer.is_denied(it)).count();
    if denied == 0 {
        return library;
    }
    let skills = if denied == 1 { "skill is" } else { "skills are" };
    printer.note(&format!("{denied} {skills} not shown, because a rule of the policy denies them"));
    library.filter_skills(|it| !authorizer.is_denied(it))
}

/// Returns the reason why a variable cannot be passed on, whatever its value.
fn why_not_passed(name: &str) -> Option<&'static str> {
    if name.contains('=') {
        return Some("`--env` takes only a name; the value comes from the environment");
    }
    let is_own =
        name.starts_with("PARAM_") || ["PARAMS_FILE", "SKILL_DIR", "SKILL_NAME"].contains(&name);
    is_own.then_some("every script gets its own value")
}

/// Returns the places of the user's own settings.
pub(crate) fn user_places() -> Places {
    let user = own_directory(OwnDirectory::Config);
    Places { user, home: env::home_dir(), ..Places::default() }
}

/// Returns the state directory, with the audit log, sessions and quarantined files; `None` without
/// a home directory.
pub(crate) fn state() -> Option<PathBuf> {
    own_directory(OwnDirectory::State)
}

/// Returns the cache of libraries; `None` where others could write to it too, or without a home
/// directory.
pub(crate) fn cache() -> Option<Cache> {
    let folder = cache_folder()?;
    let is_safe = fs::symlink_metadata(&folder).map_or_else(
        |error| error.kind() == io::ErrorKind::NotFound,
        |it: Metadata| it.is_dir() && it.uid() == user_id() && it.permissions().mode() & 0o022 == 0,
    );
    is_safe.then(|| Cache::new(folder))
}

fn cache_folder() -> Option<PathBuf> {
    own_directory(OwnDirectory::Cache).filter(|it| !is_homeless(it))
}

/// Returns whether a path is in a home directory that does not exist and should not be created.
fn is_homeless(directory: &Path) -> bool {
    env::home_dir().is_some_and(|home| directory.starts_with(&home) && !home.exists())
}

/// Returns a future that waits for the end of the program; its signal handlers are installed at
/// once.
pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Parses a duration.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let wanted = "must be a time such as `500ms`, `5s`, `2m` or `30d`, at most a year";
    duration(text).ok_or_else(|| wanted.to_owned())
}
