//! Connects to configured servers, and installs their packages if that is approved in advance.

use anyhow::Result;
use prowess_cli::settings::Config;
#[cfg(feature = "http")]
use prowess_mcp::config::Transport;
use prowess_mcp::{
    client::{McpLauncher, McpServer},
    config::ServerSetting,
};
#[cfg(feature = "http")]
use prowess_runtime::preparation::{Preparer, Recipe};
use prowess_runtime::{Launcher, Outcome};

use crate::printer::Printer;
#[cfg(feature = "http")]
use crate::{
    host,
    preparing::{PrepareChoice, PrepareResult, prepare, summary},
};

/// Installs the packages of servers. Without network, nothing is installed.
pub(crate) struct Installer {
    #[cfg(feature = "http")]
    preparer: Option<Preparer>,
}

impl Installer {
    /// Creates an installer from the settings.
    #[cfg(feature = "http")]
    pub(crate) fn new(config: &Config, launcher: Launcher) -> Result<Self> {
        Ok(Self { preparer: host::preparer(config, launcher, host::proxies()?) })
    }

    /// Creates an installer that installs nothing.
    #[cfg(not(feature = "http"))]
    pub(crate) fn new(_: &Config, _: Launcher) -> Result<Self> {
        Ok(Self {})
    }

    /// Installs the missing packages of a server; returns whether there were any.
    #[cfg(feature = "http")]
    async fn install(&self, set: &ServerSetting, printer: &mut Printer) -> Result<bool> {
        let lacking = self.preparer.as_ref().and_then(|it| Some((it, missing_packages(it, set)?)));
        let Some((preparer, recipe)) = lacking else { return Ok(false) };
        let choice = PrepareChoice { yes: true, is_server: true, ..PrepareChoice::default() };
        let name = &set.description.name;
        match prepare(preparer, &recipe, name, None, choice, printer).await? {
            PrepareResult::Done(environment) => {
                printer.note(&summary(name, &environment.record));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    #[cfg(not(feature = "http"))]
    async fn install(&self, _: &ServerSetting, _: &mut Printer) -> Result<bool> {
        Ok(false)
    }
}

/// Starts a configured server. With `yes`, installs its missing packages first.
pub(crate) async fn connect(
    server_launcher: &McpLauncher,
    set: &ServerSetting,
    installer: &Installer,
    yes: bool,
    printer: &mut Printer,
) -> Result<Result<McpServer, Box<Outcome>>> {
    let outcome = match server_launcher.connect(set).await {
        Err(outcome) if yes => outcome,
        connected => return Ok(connected),
    };
    match installer.install(set, printer).await? {
        true => Ok(server_launcher.connect(set).await),
        false => Ok(Err(outcome)),
    }
}

/// Returns the packages that a server fetches, unless they are installed.
#[cfg(feature = "http")]
fn missing_packages(preparer: &Preparer, set: &ServerSetting) -> Option<Recipe> {
    let Transport::Program(program) = &set.description.transport else { return None };
    let command = program.packages()?.ok()?;
    let recipe = command.recipe(&preparer.search).ok()?;
    matches!(preparer.store.find(&recipe), Ok(None)).then_some(recipe)
}
