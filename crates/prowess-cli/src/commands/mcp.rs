mod serving;

use std::sync::Arc;

use anyhow::Result;
use prowess_mcp::{Served, Server, Telling};
use prowess_runtime::{Active, FindSkills, Nobody, Permitted, Toolbox, UseSkill};

use self::serving::Serving;
use crate::{Status, arguments::Global, context, host, printer::Printer};

/// Serve the skills over the Model Context Protocol, on standard input and output
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many tokens the catalog in the server's instructions may take
    #[arg(long, value_name = "TOKENS", default_value_t = Telling::default().budget)]
    budget: usize,
    /// Look out for changes of the skills, and tell clients of them
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    serving: Serving,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Status> {
    let config = context::config(global)?;
    let is_watched = args.watch || config.skill.watch.value;
    let keeper = Arc::new(context::keeper(global, is_watched, printer)?);
    // The client's person sees no terminal of ours: what would have to be asked is refused.
    let gate = Arc::new(host::gate(&config, Arc::new(Nobody)));
    let provider = Arc::new(Permitted::new(keeper, gate.clone()));
    let active = Arc::new(Active::new(provider.clone()));
    let toolbox = Toolbox::new(gate)
        .with(Arc::new(FindSkills { provider: provider.clone() }))
        .with(Arc::new(UseSkill { active: active.clone() }))
        .with_active(active);
    let folders = args.serving.http.is_none();
    let telling = Telling { budget: args.budget, folders, ..Telling::default() };
    let server = Server::new(Arc::new(Served { provider, toolbox, telling }));
    let server = if is_watched { server.watching() } else { server };
    args.serving.serve(server, printer)?;
    Ok(Status::Well)
}
