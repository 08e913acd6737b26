//! The toolbox, made from settings and the command line.

#[cfg(feature = "sql")]
use std::{borrow::Cow, path::Path};
use std::{env, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
#[cfg(feature = "sql")]
use prowess_cli::settings::{Address, Config, SettingOrigin};
#[cfg(feature = "mcp")]
use prowess_mcp::client::McpLauncher;
#[cfg(feature = "sql")]
use prowess_runtime::sandbox::RunLimits;
#[cfg(feature = "sql")]
use prowess_runtime::tools::ExecuteSql;
#[cfg(feature = "http")]
use prowess_runtime::tools::HttpRequest;
use prowess_runtime::{
    Authorizer, Launcher, Outcome, Policy, SkillProvider, Tool, Toolbox,
    policy::Roots,
    sandbox::Root,
    skill::ActiveSkills,
    toolbox::Calls,
    tools::{ExecuteCommand, FileOperations, ReadFile, RunSkill, UseSkill, skill_tools},
};
#[cfg(feature = "sql")]
use prowess_sql::{Access, Privileges, SqlLimits, limit_sqlite_memory};

use crate::{
    approver::noting_approver,
    arguments::Global,
    context,
    host::{self, PermissionArgs, history, state},
    printer::Printer,
    secrets,
};

/// The time that a call may take to notice that it timed out.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// The caller of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A person, who has a tool per skill.
    Person,
    /// A model, for which every tool costs tokens: `run_skill` replaces the tools of the skills,
    /// and tools that can only be denied are left out.
    Model,
}

/// All tools, and the parts they are made of.
pub(crate) struct Kit {
    pub(crate) toolbox: Toolbox,
    pub(crate) authorizer: Arc<Authorizer>,
    /// Starts the MCP servers of skills.
    #[cfg(feature = "mcp")]
    pub(crate) server_launcher: McpLauncher,
}

/// Returns all tools with the skills of a provider; none of them reads or writes the withheld
/// files, such as a key file.
pub(crate) fn toolbox(
    caller: Caller,
    running: &PermissionArgs,
    provider: &Arc<dyn SkillProvider>,
    global: &Global,
    withheld: &[PathBuf],
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<Kit> {
    let config = context::config(global)?;
    let mut authorizer = running.authorizer(&config);
    if caller == Caller::Model {
        authorizer.approver = host::recording_approver(noting_approver(running.yes));
    }
    authorizer.policy.withheld.extend_from_slice(withheld);
    // The key file is among them; a file with anything else is not a key file.
    let files = withheld.iter().map(PathBuf::as_path);
    let files = files.chain(config.model.key_file.value.as_deref());
    #[cfg(feature = "http")]
    let known_secrets = secrets::known_secrets(&config, files.clone());
    authorizer.audit = authorizer.audit.masking(secrets::keys(files));
    let authorizer = Arc::new(authorizer);
    let policy = &authorizer.policy;
    let active = Arc::new(ActiveSkills::new(provider.clone()));
    if policy.roots.is_empty() {
        printer.note("the working directory is your home directory or a directory above it, so tools cannot use files; `--root DIR` or `policy.roots` in your own settings allows a directory");
    }
    let roots = Arc::new(open_roots(policy, printer));
    let limits = running.limits(&config);
    let sandbox = running.sandbox(&config, launcher.clone());
    let directory = env::current_dir().context("there is no working directory")?;
    let executor = running.executor(&config, policy, launcher.clone()).map_err(to_error)?;
    let executor = host::with_preparation(executor, &config, launcher, &authorizer);
    #[cfg(feature = "mcp")]
    let server_launcher =
        running.server_launcher(&config, authorizer.clone(), sandbox.clone()).map_err(to_error)?;
    let commands = ExecuteCommand::new(policy.clone(), sandbox, limits, directory);
    let commands = commands.with_authorizer(authorizer.clone());
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if config.skill.enabled.value {
        tools.push(Arc::new(UseSkill { active: active.clone() }));
        let executor = executor.clone();
        tools.push(Arc::new(RunSkill { active: active.clone(), executor }));
    }
    tools.push(Arc::new(ReadFile::new(active.clone(), roots.clone())));
    let files = FileOperations::new(roots);
    tools.push(Arc::new(match history() {
        Some(history) => files.with_history(history),
        None => files,
    }));
    tools.push(Arc::new(match state() {
        Some(state) => commands.with_trash(state.join("trash")),
        None => commands,
    }));
    #[cfg(feature = "http")]
    {
        let hosts = policy.request_hosts().context("`policy.hosts` cannot be used")?;
        tools.push(Arc::new(HttpRequest::new(hosts, limits).with_secrets(known_secrets)));
    }
    #[cfg(feature = "sql")]
    if caller == Caller::Person || config.sql.url.value.is_some() {
        tools.push(Arc::new(execute_sql(&config, limits)?));
    }
    #[cfg(not(feature = "sql"))]
    if config.sql.url.value.is_some() {
        let why = crate::features::missing_feature("SQL", "sql");
        printer.warning(&format!("`sql.url` is not used: {why}"));
    }
    if caller == Caller::Person {
        let skills = printer.with_progress("turning skills into tools", || {
            skill_tools(&provider.library(), &tools, &executor)
        });
        tools.extend(skills);
    }
    let calls = Calls { timeout: limits.timeout + GRACE, ..Calls::default() };
    let toolbox = Toolbox::new(authorizer.clone()).with_calls(calls).with_active(active);
    let toolbox = tools.into_iter().fold(toolbox, Toolbox::with);
    Ok(Kit {
        toolbox,
        authorizer,
        #[cfg(feature = "mcp")]
        server_launcher,
    })
}

fn to_error(outcome: Box<Outcome>) -> anyhow::Error {
    anyhow::Error::msg(outcome.message.unwrap_or_default())
}

/// Returns the directories that files are confined to; those that do not exist are reported and
/// left out.
fn open_roots(policy: &Policy, printer: &mut Printer) -> Roots {
    let mut roots = Vec::new();
    for path in &policy.roots {
        match Root::open(path) {
            Ok(root) => roots.push(root),
            Err(error) => printer.warning(&format!("its files are not used: {error}")),
        }
    }
    Roots::new(roots).without(&policy.withheld).protecting(&policy.protected)
}

/// Returns the tool for the configured database.
#[cfg(feature = "sql")]
fn execute_sql(config: &Config, limits: RunLimits) -> Result<ExecuteSql> {
    let access = if config.sql.write.value { Access::Write } else { Access::Read };
    let privileges =
        if config.sql.privileged.value { Privileges::All } else { Privileges::Limited };
    let folder = match &config.sql.url.origin {
        SettingOrigin::File { path, .. } => path.parent(),
        _ => None,
    };
    let database = config
        .sql
        .url
        .value
        .as_ref()
        .map(|url: &Address| {
            prowess_sql::open(&resolve_database(url.as_str(), folder), access, privileges)
        })
        .transpose();
    let database = database.context("`sql.url` cannot be used")?;
    limit_sqlite_memory(limits.memory);
    let limits =
        SqlLimits { timeout: limits.timeout, memory: limits.memory, ..SqlLimits::default() };
    Ok(ExecuteSql { database, access, limits })
}

/// Resolves the file of a database address from the folder of the settings file.
#[cfg(feature = "sql")]
fn resolve_database<'a>(address: &'a str, folder: Option<&Path>) -> Cow<'a, str> {
    let file = address.strip_prefix("sqlite:").map(|it| it.strip_prefix("//").unwrap_or(it));
    match (file, folder) {
        (Some(file), Some(folder)) if !file.starts_with(['/', ':']) && !file.is_empty() => {
            format!("sqlite://{}", folder.join(file).display()).into()
        }
        _ => address.into(),
    }
}
