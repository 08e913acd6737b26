//! The agent, made from settings and the command line: all its middleware, in order.

use std::{
    env,
    io::Read as _,
    num::{NonZeroU64, NonZeroUsize},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use anyhow::{Context as _, Result};
use prowess::{Cataloging, ContextWindow, Tokenizer, lock};
#[cfg(feature = "mcp")]
use prowess_agent::Servers;
use prowess_agent::{
    Agent, Budget, CatchErrors, ChatRequest, Delta, FitContext, Logging, Model, ModelError,
    ModelFuture, Price, Retry, SkillOptions, Skills, Spans, Spending, ToolLoop, Trace,
};
use prowess_cli::settings::Config;
use prowess_runtime::secret::KnownSecrets;
use prowess_runtime::{Authorizer, Launcher, SkillProvider, files::Journal, text::timestamp};
use serde_json::Value as Json;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    arguments::Global,
    cli_error::CliError,
    connection::ModelArgs,
    context,
    event_renderer::{EventSender, UiEvent, View},
    host::PermissionArgs,
    input,
    matching_args::MatchingArgs,
    printer::Printer,
    safe,
    toolbox::{self, Caller, Kit},
    trust,
};

/// The options of an agent.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentArgs {
    /// System prompt: a text, or `@FILE`
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Maximum number of requests to the model for one answer
    #[arg(long, value_name = "N", default_value_t = STEPS)]
    steps: NonZeroUsize,
    /// Stop once a request has used this many tokens
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<NonZeroU64>,
    /// Stop once a request has cost this much, by the configured prices
    #[arg(long, value_name = "COST", value_parser = parse_cost, allow_negative_numbers = true)]
    max_cost: Option<f64>,
    /// Maximum tokens per reply
    #[arg(long, value_name = "TOKENS")]
    max_output: Option<NonZeroUsize>,
    /// Context window size in tokens [default: 128000]
    #[arg(long, value_name = "TOKENS")]
    window: Option<NonZeroUsize>,
    #[command(flatten)]
    matching: MatchingArgs,
    /// Append a trace of everything that happens to this file; see `prowess trace`
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) naming: ModelArgs,
    #[command(flatten, next_help_heading = "Permissions")]
    running: PermissionArgs,
}

/// An agent, and the parts that are asked for while it works.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) agent: Agent,
    pub(crate) provider: Arc<dyn SkillProvider>,
    pub(crate) authorizer: Arc<Authorizer>,
    /// Starts MCP servers; `None` for a dry run.
    #[cfg(feature = "mcp")]
    pub(crate) servers: Option<Arc<Servers>>,
    pub(crate) events: UnboundedReceiver<UiEvent>,
    pub(crate) window: ContextWindow,
    /// The secrets to redact.
    pub(crate) secrets: KnownSecrets,
}

/// The default system prompt.
const SYSTEM: &str = "You are an agent at the user's command line. Do what the user asks with \
                      the skills and tools you have, say plainly what you could not do, and \
                      answer briefly.";

/// The default limit of requests to the model.
const STEPS: NonZeroUsize = NonZeroUsize::new(50).expect("it is not zero");

impl AgentArgs {
    /// Builds the agent over a model; its tools cannot touch the session file.
    pub(crate) fn stack(
        &self,
        model: Arc<dyn Model>,
        session: Option<PathBuf>,
        view: View,
        global: &Global,
        launcher: Launcher,
        printer: &mut Printer,
    ) -> Result<Stack> {
        let config = context::config(global)?;
        let global = &trust::ask_for_trust(&config, global, self.running.trust_project, printer);
        let provider = context::provider(global, printer)?;
        let own = [&self.naming.key_file, &self.trace, &session];
        let withheld: Vec<PathBuf> = own.into_iter().flatten().cloned().collect();
        let kit = toolbox::toolbox(
            Caller::Model,
            &self.running,
            &provider,
            global,
            &withheld,
            launcher,
            printer,
        )?;
        let Kit { toolbox, authorizer, .. } = kit;
        let window = self.window(model.name(), &config);
        let skills = Skills::new(Some(provider.clone()), self.skill_options(&config, &window))
            .with_gate(authorizer.clone());
        let spending = self.spending(model.name(), &config)?;
        let calling = ToolLoop { max_steps: self.steps.get(), ..ToolLoop::new(Arc::new(toolbox)) };
        let system =
            self.system.as_deref().map_or_else(|| Ok(SYSTEM.to_owned()), input::read_text)?;
        let system = format!("{}\n\n{}", system.trim_end(), describe_surroundings());
        let secrets = self.naming.secrets(&config);
        let (sender, shown, events) = EventSender::new(view, &secrets);
        // The sender comes first, so that text is printed before the error that ends it.
        let mut agent = Agent::new(model).with_system(system).with(sender);
        if let Some(tokens) = self.max_output.or(config.model.max_output.value) {
            agent = agent.with_max_output(tokens.get());
        }
        let traced = self.open_trace()?.map(|it| it.without(secrets.clone()));
        for trace in [traced, shown].into_iter().flatten() {
            agent = agent.with(trace);
        }
        let agent = agent
            .with(Spans::new("prowess"))
            .with(Logging::default())
            .with(CatchErrors::new())
            .with(skills)
            .with(calling);
        #[cfg(not(feature = "mcp"))]
        if view != View::Dry && !config.servers.value.0.is_empty() {
            let why = crate::features::missing_feature("MCP", "mcp");
            printer.warning(&format!("the configured servers are not started: {why}"));
        }
        // A dry run starts nothing.
        #[cfg(feature = "mcp")]
        let servers = (view != View::Dry).then(|| {
            let set = config.servers.value.0.clone();
            Arc::new(Servers::new(kit.server_launcher, provider.clone()).with_set(set))
        });
        #[cfg(feature = "mcp")]
        let agent = match &servers {
            Some(servers) => agent.with_shared(servers.clone()),
            None => agent,
        };
        let agent = agent
            .with(spending)
            .with(FitContext::new(window).with_summaries(None))
            .with(Retry::default());
        Ok(Stack {
            agent,
            provider,
            authorizer,
            #[cfg(feature = "mcp")]
            servers,
            events,
            window,
            secrets,
        })
    }

    fn window(&self, model: &str, config: &Config) -> ContextWindow {
        let set = config.window();
        let vocabulary = Tokenizer::for_model(model);
        ContextWindow {
            tokens: self.window.map_or(set.tokens, NonZeroUsize::get),
            vocabulary,
            ..set
        }
    }

    fn skill_options(&self, config: &Config, window: &ContextWindow) -> SkillOptions {
        let usual = SkillOptions::default();
        let budget = Some(window.catalog_budget());
        let cataloging =
            |it: Cataloging<'static>| Cataloging { budget, vocabulary: window.vocabulary, ..it };
        SkillOptions {
            matching: self.matching.matching(config),
            thresholds: config.thresholds(),
            catalog: usual.catalog.map(cataloging),
            run_skill: true,
            ..usual
        }
    }

    /// Returns the spending limits of an answer.
    fn spending(&self, model: &str, config: &Config) -> Result<Spending, CliError> {
        let prices = (config.model.input_price.value, config.model.output_price.value);
        let price = match prices {
            (Some(input), Some(output)) => {
                Some(Price { input: input.get(), output: output.get(), cached: input.get() })
            }
            _ => None,
        };
        if price.is_none() && self.max_cost.is_some() {
            let hint = "set `model.input_price` and `model.output_price`, each per million tokens";
            return Err(CliError::new("no price is configured for the model").hint(hint));
        }
        Ok(Spending {
            turn: Budget {
                total: self.max_tokens.map(NonZeroU64::get),
                cost: self.max_cost,
                ..Budget::default()
            },
            prices: price.into_iter().map(|it| (model.to_owned(), it)).collect(),
            ..Spending::default()
        })
    }

    /// Returns the writer of the trace, if one was asked for.
    fn open_trace(&self) -> Result<Option<Trace>> {
        let Some(path) = &self.trace else { return Ok(None) };
        if !is_trace(path) {
            let message =
                format!("`{}` is not a trace, so nothing was added to it", path.display());
            return Err(CliError::invalid_input(message)
                .hint("`--trace` needs a new file or an existing trace")
                .into());
        }
        let journal =
            Journal::open(path).with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(Some(Trace::journal(journal)))
    }
}

/// Returns whether a file is a trace, or may become one.
fn is_trace(path: &Path) -> bool {
    let mut start = Vec::new();
    // A missing file can be created; one that cannot be opened is reported later.
    let Ok(file) = input::open(path) else { return true };
    let read = file.take(4096).read_to_end(&mut start);
    let line = start.split(|it| *it == b'\n').find(|it| !it.trim_ascii().is_empty());
    let Some(line) = line.filter(|_| read.is_ok()) else { return true };
    let first: Json = serde_json::from_slice(line).unwrap_or_default();
    first["event"] == "trace"
}

/// Returns the place and date of the user for the model; only the day, so that the provider's
/// prompt cache stays valid.
fn describe_surroundings() -> String {
    let directory = env::current_dir().unwrap_or_default();
    let (day, system) = (timestamp(), env::consts::OS);
    let day = day.get(..10).unwrap_or_default();
    let directory = directory.display().to_string();
    format!("Working directory: {}. Date: {day}. System: {system}.", safe::line(&directory))
}

/// Parses a cost.
fn parse_cost(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|it: &f64| it.is_finite() && *it > 0.0);
    cost.ok_or_else(|| "must be greater than 0".to_owned())
}

/// A model that is never called, and records the request it would be sent.
#[derive(Debug)]
pub(crate) struct DryRunModel {
    /// The configured model, if there is one.
    pub(crate) model: Option<Arc<dyn Model>>,
    asked: Mutex<Option<ChatRequest>>,
}

impl DryRunModel {
    pub(crate) fn new(model: Option<Arc<dyn Model>>) -> Self {
        Self { model, asked: Mutex::default() }
    }

    /// Returns the request that would have been sent.
    pub(crate) fn recorded_request(&self) -> Option<ChatRequest> {
        lock(&self.asked).clone()
    }
}

impl Model for DryRunModel {
    fn name(&self) -> &str {
        self.model.as_ref().map_or("none", |it| it.name())
    }

    fn provider(&self) -> &str {
        self.model.as_ref().map_or("none", |it| it.provider())
    }

    fn reply<'a>(
        &'a self,
        ask: &'a ChatRequest,
        _: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> ModelFuture<'a> {
        *lock(&self.asked) = Some(ask.clone());
        let (model, message) = (self.name().to_owned(), "it is not asked".to_owned());
        Box::pin(async move { Err(ModelError::Refused { model, message }) })
    }
}
