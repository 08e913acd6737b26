#[cfg(feature = "http")]
mod login;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use prowess::{Library, did_you_mean, nearest, spec::SKILL_FILE};
use prowess_cli::settings::Config;
use prowess_mcp::{
    client::{McpLauncher, McpServer},
    config::ServerSetting,
};
use prowess_runtime::{
    Action, Authorizer, Launcher, Outcome, OutcomeStatus, Tool,
    approval::ActionRequest,
    secret::mask,
    skill::{RemoteSkill, RemoteSkills},
};
use serde_json::{Value as Json, json};

use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    completion,
    connecting::{Installer, connect},
    context,
    host::PermissionArgs,
    printer::Printer,
    safe,
    server_label::server_of_label,
    tool_text,
};

/// List the configured MCP servers, their tools and the skills they offer
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<ServersCommand>,
    /// Only the server with this label
    #[arg(add = completion::servers())]
    label: Option<String>,
    #[command(flatten)]
    running: PermissionArgs,
}

#[derive(Debug, clap::Subcommand)]
enum ServersCommand {
    Show(Show),
    #[cfg(feature = "http")]
    Login(login::Login),
    #[cfg(feature = "http")]
    Logout(login::Logout),
}

/// Print a skill that a server offers, or one of its files
#[derive(Debug, clap::Args)]
struct Show {
    /// The skill: the label of its server, and its name or URI after a colon
    #[arg(value_name = "LABEL:NAME")]
    skill: String,
    /// The file, as a path within the skill
    path: Option<String>,
    #[command(flatten)]
    running: PermissionArgs,
}

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let running = match &args.what {
        Some(ServersCommand::Show(show)) => &show.running,
        #[cfg(feature = "http")]
        Some(ServersCommand::Login(login)) => &login.running(),
        #[cfg(feature = "http")]
        Some(ServersCommand::Logout(logout)) => &logout.running(),
        None => &args.running,
    };
    let config = context::config(global)?;
    running.warn_about_servers(printer);
    let installer = Installer::new(&config, launcher.clone())?;
    let authorizer = Arc::new(running.authorizer(&config));
    let sandbox = running.sandbox(&config, launcher);
    let server_launcher = running
        .server_launcher(&config, authorizer.clone(), sandbox)
        .map_err(|it: Box<Outcome>| anyhow::Error::msg(it.message.unwrap_or_default()))?;
    let library = context::library_without_notes(global, printer)?;
    let servers = ServersContext {
        config,
        authorizer,
        server_launcher,
        library,
        installer,
        yes: running.yes,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("cannot start the async runtime")?;
    let status = runtime.block_on(async {
        match &args.what {
            Some(ServersCommand::Show(show)) => servers.show(show, printer).await,
            #[cfg(feature = "http")]
            Some(ServersCommand::Login(login)) => servers.login(login, printer).await,
            #[cfg(feature = "http")]
            Some(ServersCommand::Logout(logout)) => servers.logout(logout, printer).await,
            None => servers.list(args.label.as_deref(), printer).await,
        }
    });
    servers.authorizer.take_warnings().iter().for_each(|it| printer.safety_warning(it));
    status
}

/// The parts that are needed to speak to servers.
struct ServersContext {
    config: Config,
    authorizer: Arc<Authorizer>,
    server_launcher: McpLauncher,
    library: Library,
    /// Installs the packages of servers.
    installer: Installer,
    /// Whether `--yes` was given.
    yes: bool,
}

/// The tools, skills and resources of a server.
struct ServerContents {
    tools: Vec<Arc<dyn Tool>>,
    left_out: Vec<String>,
    skills: RemoteSkills,
}

/// The layout of a list of servers.
#[derive(Clone, Copy)]
struct ServerList {
    /// The width of the column of labels.
    labels: usize,
    /// Whether the parameters of tools are printed.
    with_parameters: bool,
}

impl ServersContext {
    async fn list(&self, label: Option<&str>, printer: &mut Printer) -> Result<ExitStatus> {
        let set = match label {
            Some(label) => vec![server_of_label(&self.config, label)?],
            None => self.config.servers.value.0.iter().collect(),
        };
        let mut status = ExitStatus::Success;
        let mut documents = Vec::new();
        if set.is_empty() {
            printer.note("no server is configured; add one as `[servers.LABEL]` in `prowess.toml`");
        }
        let labels = widest(set.iter().map(|it| &*it.description.name));
        for server in set {
            let visited = self.list_contents(server, printer).await?;
            let is_well = visited.as_ref().is_ok_and(|it| it.skills.refused.is_empty());
            if !is_well {
                status = ExitStatus::Failure;
            }
            match printer.json {
                true => documents.push(self.document(server, &visited)),
                false => {
                    let list = ServerList { labels, with_parameters: label.is_some() };
                    self.print(server, list, &visited, printer)?;
                }
            }
        }
        if printer.json {
            printer.document(&json!({ "servers": documents }))?;
        }
        Ok(status)
    }

    async fn show(&self, show: &Show, printer: &mut Printer) -> Result<ExitStatus> {
        let Some((label, name)) = show.skill.split_once(':') else {
            let fault = CliError::invalid_input(format!("`{}` names no server", show.skill));
            let hint = "name both the server and the skill: `prowess servers show LABEL:NAME`";
            return Err(fault.hint(hint).into());
        };
        let set = server_of_label(&self.config, label)?;
        let shown = match self.connect(set, printer).await? {
            Ok(server) => {
                let shown = self.read(&server, name, show).await;
                server.stop().await;
                shown
            }
            Err(outcome) => Err(outcome),
        };
        let (skill, bytes) = match shown {
            Ok(shown) => shown,
            Err(outcome) => {
                printer.error_text(outcome.message.as_deref().unwrap_or_default());
                outcome.difference.iter().for_each(|it| printer.note(it));
                outcome.hint.iter().for_each(|it| printer.hint(it));
                return Ok(match outcome.status {
                    OutcomeStatus::Refused | OutcomeStatus::NotFound | OutcomeStatus::Invalid => {
                        ExitStatus::Failure
                    }
                    _ => ExitStatus::Error,
                });
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        match printer.json {
            true => printer.document(&json!({
                "skill": skill.address,
                "server": skill.server,
                "uri": skill.uri,
                "path": show.path.as_deref().unwrap_or(SKILL_FILE),
                "state": self.approval_state(&skill),
                "content": text,
            }))?,
            // A terminal would interpret control characters of a file.
            false if printer.is_terminal => printer.text(&text)?,
            false => printer.raw(&bytes)?,
        }
        Ok(ExitStatus::Success)
    }

    /// Reads a skill to print. A person reads it before approval, unless it is approved by a flag.
    async fn read(
        &self,
        server: &McpServer,
        name: &str,
        show: &Show,
    ) -> Result<(RemoteSkill, Vec<u8>), Box<Outcome>> {
        let skills = server.skills().await?;
        let found = skills.find(&show.skill).or_else(|| skills.find(name)).cloned();
        let skill = match found {
            Some(skill) => skill,
            None if name.contains("://") => server.skill_at(name).await?,
            None => return Err(unknown_skill(server, &skills, &show.skill)),
        };
        let bytes = match &show.path {
            None => server.document(&skill).await?.into_bytes(),
            Some(path) => server.file(&skill, path).await?,
        };
        if show.running.yes {
            let action = Action::TakeUp(Box::new(skill.clone()));
            self.authorizer
                .authorize(&ActionRequest {
                    tool: "use_skill",
                    action: &action,
                    active: &[],
                    given: None,
                })
                .await?;
        }
        Ok((skill, bytes))
    }

    async fn connect(
        &self,
        set: &ServerSetting,
        printer: &mut Printer,
    ) -> Result<Result<McpServer, Box<Outcome>>> {
        connect(&self.server_launcher, set, &self.installer, self.yes, printer).await
    }

    async fn list_contents(
        &self,
        set: &ServerSetting,
        printer: &mut Printer,
    ) -> Result<Result<ServerContents, Box<Outcome>>> {
        let server = match self.connect(set, printer).await? {
            Ok(server) => server,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let tools = server.tools();
        let (skills, left_out) = (server.skills().await, server.left_out());
        server.stop().await;
        Ok(skills.map(|skills| ServerContents { tools, left_out, skills }))
    }

    /// Prints the contents of a server.
    fn print(
        &self,
        set: &ServerSetting,
        ServerList { labels, with_parameters }: ServerList,
        visited: &Result<ServerContents, Box<Outcome>>,
        printer: &mut Printer,
    ) -> Result<()> {
        let label = &set.description.name;
        let origin = printer.dim(&safe::line(&set.origin()));
        let login = self.login_state(set)["issuer"].as_str().map(|it| {
            let said = format!("  (logged in at {})", safe::line(it));
            printer.dim(&said)
        });
        let login = login.unwrap_or_default();
        let padded = printer.name(&format!("{label:labels$}"));
        printer.line(format_args!("{padded}  {origin}{login}"))?;
        let ServerContents { tools, left_out, skills } = match visited {
            Ok(visited) => visited,
            Err(outcome) => {
                printer.flush()?;
                printer.error_text(outcome.message.as_deref().unwrap_or_default());
                for line in last_output(outcome).iter().flat_map(|it| it.lines()) {
                    printer.stderr_line(&format!("  | {}", safe::line(line)));
                }
                outcome.hint.iter().for_each(|it| printer.hint(it));
                return Ok(());
            }
        };
        for tool in tools {
            tool_text::print(&**tool, "  ", with_parameters, printer)?;
        }
        let addresses = widest(skills.skills.iter().map(|it| &*it.address));
        let states = widest(skills.skills.iter().map(|it| self.approval_state(it)));
        for skill in &skills.skills {
            let description = safe::line(&skill.description).into_owned();
            let state = format!("{:1$}", format!("({})", self.approval_state(skill)), states + 2);
            let (state, address) = (printer.dim(&state), safe::line(&skill.address));
            let name = printer.name(&format!("{address:addresses$}"));
            printer.line(format_args!("  {name}  {state}  {description}"))?;
        }
        printer.flush()?;
        for skill in skills.skills.iter().filter(|it| self.collides(it)) {
            let RemoteSkill { name, address, .. } = skill;
            printer.note(&format!("`{name}` is the local skill; use `{address}` for this one"));
        }
        for (uri, why) in &skills.refused {
            printer.warning(&format!("the server `{label}`: the skill `{uri}` is refused: {why}"));
        }
        left_out.iter().for_each(|it| printer.warning(&format!("the server `{label}`: {it}")));
        if skills.has_more {
            printer.warning(&format!("the server `{label}` lists more skills than are read"));
        }
        Ok(())
    }

    /// The login to a server as it is in JSON, if there is one.
    #[cfg(feature = "http")]
    fn login_state(&self, set: &ServerSetting) -> Json {
        json!(self.server_launcher.login_state(set))
    }

    /// No login: this build connects to no address.
    #[cfg(not(feature = "http"))]
    fn login_state(&self, _: &ServerSetting) -> Json {
        Json::Null
    }

    fn document(
        &self,
        set: &ServerSetting,
        visited: &Result<ServerContents, Box<Outcome>>,
    ) -> Json {
        let mut document = json!({
            "label": set.description.name,
            "origin": set.origin(),
            "login": self.login_state(set),
        });
        match visited {
            Ok(ServerContents { tools, left_out, skills }) => {
                document["status"] = "ok".into();
                document["tools"] = tools.iter().map(|it| tool_text::document(&**it)).collect();
                document["left_out"] = json!(left_out);
                document["skills"] = skills.skills.iter().map(|it| self.skill(it)).collect();
                let refused = skills.refused.iter();
                document["refused"] =
                    refused.map(|(uri, why)| json!({ "uri": uri, "why": why })).collect();
                document["has_more"] = skills.has_more.into();
            }
            Err(outcome) => {
                document["status"] = json!(outcome.status);
                document["message"] = json!(outcome.message);
                document["hint"] = json!(outcome.hint);
                document["stderr"] = json!(last_output(outcome));
            }
        }
        document
    }

    fn skill(&self, skill: &RemoteSkill) -> Json {
        json!({
            "name": skill.address,
            "uri": skill.uri,
            "description": skill.description,
            "state": self.approval_state(skill),
            "collides": self.collides(skill),
            "files": skill.files.iter().map(|it| &it.path).collect::<Vec<_>>(),
            "size": skill.files.iter().map(|it| it.size).sum::<u64>(),
        })
    }

    /// Returns one word for the approval of a skill.
    fn approval_state(&self, skill: &RemoteSkill) -> &'static str {
        match self.authorizer.approves(skill) {
            _ if self.authorizer.denies(skill) => "denied",
            Some(true) => "approved",
            Some(false) => "changed",
            None => "new",
        }
    }

    /// Returns whether a local skill has the same name, which then wins.
    fn collides(&self, skill: &RemoteSkill) -> bool {
        self.library.get(&skill.name).is_some()
    }
}

/// Returns the width of a column.
fn widest<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(|it| safe::line(it).chars().count()).max().unwrap_or(0)
}

/// Returns the end of a server's output, with secrets redacted.
fn last_output(outcome: &Outcome) -> Option<String> {
    outcome.stderr.as_ref().map(|it| mask(&it.text).into_owned())
}

fn unknown_skill(server: &McpServer, skills: &RemoteSkills, name: &str) -> Box<Outcome> {
    let message = format!("the server `{}` offers no skill `{name}`", server.name());
    let refused = skills.refused.iter().find(|it| {
        it.0.ends_with("/SKILL.md") && {
            let folder = it.0.trim_end_matches("/SKILL.md").rsplit('/').next();
            name.split_once(':').map(|it| it.1) == folder
        }
    });
    let hint = match (refused, nearest(name, skills.skills.iter().map(|it| &*it.address))) {
        (Some((_, why)), _) => format!("it is refused: {why}"),
        (_, Some(near)) => did_you_mean(near),
        _ => format!("`prowess servers {}` lists those that it offers", server.name()),
    };
    Box::new(Outcome::bad(OutcomeStatus::NotFound, message).hint(hint))
}
