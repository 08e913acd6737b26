mod install;
mod serving;

use std::sync::Arc;

use anyhow::Result;
use prowess_mcp::server::{ServeOptions, ServerState, SkillServer};
use prowess_runtime::{
    DenyAll, Launcher, Outcome, Toolbox,
    skill::{ActiveSkills, PermittedSkills},
    toolbox::Calls,
    tools::{FindSkills, ReadSkillFile, RunSkill, UseSkill},
};

use self::serving::ServeArgs;
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    context,
    host::{self, PermissionArgs},
    printer::Printer,
    toolbox::GRACE,
    trust,
};

/// Serve skills over the Model Context Protocol, on stdio or over HTTP
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// Maximum size in tokens of the list of skills in the server's instructions
    #[arg(long, value_name = "TOKENS", default_value_t = ServeOptions::default().budget)]
    budget: usize,
    /// Also offer `run_skill`, which runs skills and their scripts in the sandbox
    #[arg(long)]
    run: bool,
    /// With `--run`, trust the skills of this project; `prowess trust` trusts them permanently
    #[arg(long, requires = "run")]
    trust_project: bool,
    /// Watch the skills for changes, and notify clients
    #[arg(long)]
    watch: bool,
    /// Do not offer skills as prompts, which some frameworks turn into one tool each
    #[arg(long)]
    no_prompts: bool,
    /// Do not offer skills as resources or through the Skills extension
    #[arg(long)]
    no_resources: bool,
    #[command(flatten)]
    serving: ServeArgs,
}

/// The subcommands of `mcp`.
#[derive(Debug, clap::Subcommand)]
enum McpCommand {
    Install(install::Args),
}

impl Args {
    /// Returns whether no serving option is given.
    fn is_bare(&self) -> bool {
        let Self {
            command: _,
            budget,
            run,
            trust_project,
            watch,
            no_prompts,
            no_resources,
            serving,
        } = self;
        let is_default = *budget == ServeOptions::default().budget && serving.http.is_none();
        is_default && ![*run, *trust_project, *watch, *no_prompts, *no_resources].contains(&true)
    }

    /// Returns whether a client can start this server and speak to it.
    fn is_of_a_client(&self) -> bool {
        self.command.is_none() && self.serving.http.is_none()
    }
}

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    if let Some(McpCommand::Install(install)) = &args.command {
        if !args.is_bare() {
            let hint = "put the server's arguments after it, as in `-- --watch`";
            return Err(CliError::new("`install` takes no serving flags").hint(hint).into());
        }
        return install::run(install, global, printer);
    }
    let config = context::config(global)?;
    let is_watched = args.watch || config.skill.watch.value;
    let trusted = match args.run {
        true => trust::ask_for_trust(&config, global, args.trust_project, printer),
        false => global.clone(),
    };
    let live_library = context::live_library(&trusted, is_watched, printer)?;
    context::note_left_out(&live_library.library(), printer);
    if printer.verbose {
        let watched = if is_watched { ", and watching for changes" } else { "" };
        printer
            .note(&format!("loaded {} skills{watched}", live_library.library().skills().count()));
    }
    // The client's user does not see this terminal: actions that need approval are refused.
    let authorizer = Arc::new(host::authorizer(&config, Arc::new(DenyAll)));
    let provider = Arc::new(PermittedSkills::new(live_library, authorizer.clone()));
    let active = Arc::new(ActiveSkills::new(provider.clone()));
    let thresholds = config.thresholds();
    let mut toolbox = Toolbox::new(authorizer.clone())
        .with(Arc::new(FindSkills { provider: provider.clone(), thresholds }))
        .with(Arc::new(UseSkill { active: active.clone() }))
        .with(Arc::new(ReadSkillFile { active: active.clone(), authorizer: authorizer.clone() }));
    if args.run {
        let running = PermissionArgs::default();
        let executor = running
            .executor(&config, &authorizer.policy, launcher.clone())
            .map_err(|it: Box<Outcome>| anyhow::Error::msg(it.message.unwrap_or_default()))?;
        let executor = host::with_preparation(executor, &config, launcher, &authorizer);
        let timeout = running.limits(&config).timeout + GRACE;
        let calls = Calls { timeout, ..Calls::default() };
        toolbox = toolbox.with(Arc::new(RunSkill { active, executor })).with_calls(calls);
    }
    let vocabulary = context::tokenizer(None, &config);
    let folders = args.serving.http.is_none();
    let (prompts, resources) = (!args.no_prompts, !args.no_resources);
    let telling = ServeOptions { budget: args.budget, vocabulary, folders, prompts, resources };
    let server = SkillServer::new(Arc::new(ServerState::new(provider, toolbox, telling)));
    let server = if is_watched { server.watching() } else { server };
    args.serving.serve(server, args.run, printer)?;
    Ok(ExitStatus::Success)
}
