use std::sync::Arc;

use anyhow::Result;
use prowess_mcp::{Served, Server, Telling, serve_stdio};
use prowess_runtime::{
    Active, Calls, FindSkills, Launcher, Nobody, Outcome, Permitted, ReadSkillFile, RunSkill,
    Toolbox, UseSkill,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    Status,
    arguments::Global,
    context,
    host::{self, Running},
    printer::Printer,
    toolbox::GRACE,
};

/// Serve the skills over the Model Context Protocol, on standard input and output
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many tokens the catalog in the server's instructions may take
    #[arg(long, value_name = "TOKENS", default_value_t = Telling::default().budget)]
    budget: usize,
    /// Offer `run_skill` too, which runs skills and their scripts in the sandbox
    #[arg(long)]
    run: bool,
}

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<Status> {
    let config = context::config(global)?;
    let library = Arc::new(context::library(global, printer)?);
    // The client's person sees no terminal of ours: what would have to be asked is refused.
    let gate = Arc::new(host::gate(&config, Arc::new(Nobody)));
    let provider = Arc::new(Permitted::new(Arc::new(library), gate.clone()));
    let active = Arc::new(Active::new(provider.clone()));
    let thresholds = config.thresholds();
    let mut toolbox = Toolbox::new(gate.clone())
        .with(Arc::new(FindSkills { provider: provider.clone(), thresholds }))
        .with(Arc::new(UseSkill { active: active.clone() }))
        .with(Arc::new(ReadSkillFile { active: active.clone(), gate: gate.clone() }));
    if args.run {
        let running = Running::default();
        let failed = |it: Box<Outcome>| anyhow::Error::msg(it.message.unwrap_or_default());
        let executor = running.executor(&config, &gate.policy, launcher).map_err(failed)?;
        let timeout = running.limits(&config).timeout + GRACE;
        let calls = Calls { timeout, ..Calls::default() };
        toolbox = toolbox.with(Arc::new(RunSkill { active, executor })).with_calls(calls);
    }
    let vocabulary = context::vocabulary(None, &config);
    let telling = Telling { budget: args.budget, vocabulary, ..Telling::default() };
    let server = Server::new(Arc::new(Served::new(provider, toolbox, telling)));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let stop = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        anyhow::Ok(serve_stdio(server, stop).await?)
    })?;
    // Whoever is still at it must not keep the program from ending.
    runtime.shutdown_background();
    Ok(Status::Well)
}
