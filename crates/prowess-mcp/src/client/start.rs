//! Starts a server, or connects to it: once the authorizer allows it, in the sandbox or over HTTP.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use prowess::{Definition, Manifest, Skill, Type};
use prowess_runtime::{
    Action, Outcome, OutcomeStatus, SkillRecord,
    approval::ActionRequest,
    executor::skill_files,
    files::WriteWatch,
    skill::{SkillFile, SkillFolder},
};
use prowess_sandbox::{Job, RunningProgram};
use tokio::{task::spawn_blocking, time::timeout};

#[cfg(not(feature = "http"))]
use super::refusal::refuse;
use super::{
    cause::ServerPermissions,
    connection::{Channel, Connection},
    ending::{Process, explain_failure},
    failure::Failure,
    launcher::McpLauncher,
    mcp_server::{McpServer, Offer, TOOLS, changes},
    name,
    named_files::named_files,
    source::Source,
};
#[cfg(feature = "http")]
use super::{expand::PlaceholderValues, refusal::refuse_unknown_variable, remote::Remote};
use crate::config::{McpServerConfig, ServerAddress, ServerSetting, SkillServers, Transport};

/// A process that was started for a server.
struct ServerProcess {
    running: RunningProgram,
    process: Process,
    watch: Option<WriteWatch>,
}

/// The origin of a server: a skill, or a project file; else a person.
struct ServerOrigin {
    skill: Option<String>,
    file: Option<PathBuf>,
}

impl McpLauncher {
    /// Reads the servers that a skill configures.
    pub async fn servers_of(&self, skill: &Skill) -> SkillServers {
        let skill = skill.clone();
        spawn_blocking(move || SkillServers::of(&skill)).await.unwrap_or_default()
    }

    /// Starts a server of a skill, once it is authorized. Its tools use `name`, so that servers of
    /// two skills can be distinguished.
    pub async fn start(
        &self,
        skill: &Skill,
        description: &McpServerConfig,
        name: &str,
        active: &[Manifest],
    ) -> Result<McpServer, Box<Outcome>> {
        let prefix = name::server(name);
        let server = &description.name;
        // The files that are read now are those that run, even if they change.
        let files = files(skill).await?;
        // An invalid server is not asked about.
        let url = match &description.transport {
            Transport::Program(program) => {
                let (own, description) = (self.clone(), description.clone());
                let (program, files) = (program.clone(), files.clone());
                blocking(move || own.job_of_skill(&description, &program, &files)).await?;
                None
            }
            Transport::Http(address) => {
                self.channel(description, address, false)?;
                Some(address.url.clone())
            }
        };
        let entry = Box::new(approved_record(skill, description, files.clone()));
        let action = Action::Start { entry, server: server.clone(), url };
        self.authorizer
            .authorize(&ActionRequest { tool: &prefix, action: &action, active, given: None })
            .await?;
        let entry = format!("the entry of `{server}` in the skill");
        let (started, channel) = match &description.transport {
            Transport::Program(program) => {
                let (own, description, program) =
                    (self.clone(), description.clone(), program.clone());
                self.launch(
                    blocking(move || {
                        own.with_watch(own.job_of_skill(&description, &program, &files)?)
                    })
                    .await?,
                    entry,
                    None,
                    None,
                )?
            }
            Transport::Http(address) => (None, self.channel(description, address, false)?),
        };
        let origin = ServerOrigin { skill: Some(skill.manifest.name.to_string()), file: None };
        self.open(description, prefix, origin, started, channel).await
    }

    /// Authorizes a server that a project file configures, and returns that file.
    pub(super) async fn authorize(
        &self,
        set: &ServerSetting,
    ) -> Result<Option<PathBuf>, Box<Outcome>> {
        let ServerSetting { description, .. } = set;
        let prefix = name::server(&description.name);
        let file = (!set.is_trusted).then(|| set.file()).flatten();
        // An invalid server is not asked about.
        let url = match &description.transport {
            Transport::Program(program) if file.is_some() => {
                let (own, set, program) = (self.clone(), set.clone(), program.clone());
                blocking(move || own.job_of_setting(&set, &program)).await?;
                None
            }
            Transport::Program(_) => None,
            Transport::Http(address) => {
                self.channel(description, address, true)?;
                Some(address.url.clone())
            }
        };
        if let Some(file) = &file {
            let (server, line) = (description.name.clone(), description.line());
            let files = match &description.transport {
                Transport::Program(program) => {
                    let (program, file) = (program.clone(), file.clone());
                    blocking(move || named_files(&program, &file)).await?
                }
                Transport::Http(_) => Vec::new(),
            };
            let action = Action::Connect { server, line, file: file.clone(), url, files };
            self.authorizer
                .authorize(&ActionRequest {
                    tool: &prefix,
                    action: &action,
                    active: &[],
                    given: None,
                })
                .await?;
        }
        Ok(file)
    }

    /// Starts a configured server, or connects to it. One that a project file configures is
    /// authorized first.
    pub async fn connect(&self, set: &ServerSetting) -> Result<McpServer, Box<Outcome>> {
        let ServerSetting { description, .. } = set;
        let prefix = name::server(&description.name);
        let file = self.authorize(set).await?;
        let (started, channel) = match &description.transport {
            Transport::Program(program) => {
                let source = set.file();
                let (own, set, program) = (self.clone(), set.clone(), program.clone());
                let job =
                    blocking(move || own.with_watch(own.job_of_setting(&set, &program)?)).await?;
                let project = file.as_deref().and_then(Path::parent);
                let project = project.map(|it| (it.to_owned(), self.outside_hint(description)));
                let entry = format!("`[servers.{}]`", description.name);
                self.launch(job, entry, source, project)?
            }
            Transport::Http(address) => (None, self.channel(description, address, true)?),
        };
        self.open(description, prefix, ServerOrigin { skill: None, file }, started, channel).await
    }

    /// Returns a job with a watch on protected files, in their state before it starts.
    fn with_watch(&self, job: Job) -> Result<(Job, Option<WriteWatch>), Box<Outcome>> {
        let watch = WriteWatch::new(&job.writes, self.history.clone());
        Ok((job, watch))
    }

    /// Starts the program of a server; `entry` describes where its entry is, and `project` the
    /// directory that it cannot access paths outside of, with an alternative.
    fn launch(
        &self,
        (job, watch): (Job, Option<WriteWatch>),
        entry: String,
        file: Option<PathBuf>,
        project: Option<(PathBuf, String)>,
    ) -> Result<(Option<ServerProcess>, Channel), Box<Outcome>> {
        let home = self.interpreters.home.as_deref();
        let settings = self.settings_file.as_deref();
        let permissions =
            ServerPermissions::of(&job, entry, project, &self.authorizer.policy, home, settings);
        let permissions = Arc::new(permissions.in_file(file));
        let (running, stream) = self.sandbox.start(job).map_err(Outcome::from)?;
        let monitor = Arc::default();
        let process = Process { ending: running.ending(), permissions, monitor };
        Ok((Some(ServerProcess { running, process, watch }), Channel::Stream(stream)))
    }

    /// Connects to a server.
    async fn open(
        &self,
        description: &McpServerConfig,
        prefix: String,
        origin: ServerOrigin,
        started: Option<ServerProcess>,
        channel: Channel,
    ) -> Result<McpServer, Box<Outcome>> {
        let server = &description.name;
        let watch = started.as_ref().and_then(|it| it.watch.clone());
        let (running, process) = started.map(|it| (it.running, it.process)).unzip();
        let monitor = process.as_ref().map(|it| it.monitor.clone()).unwrap_or_default();
        let opened = async {
            let patience = self.patience.discovery;
            let connection = Connection::connect(channel, patience, monitor.clone()).await?;
            let listed = connection.tools(TOOLS).await?;
            // A server may print something else before its first message.
            monitor.take_foreign_line();
            Ok::<_, Failure>((connection, listed))
        };
        let (connection, listed) = match timeout(self.patience.start, opened).await {
            Ok(Ok(opened)) => opened,
            failed => {
                let mut outcome = match failed {
                    Ok(Err(failure)) => explain_failure(server, failure, process.as_ref()).await,
                    _ => {
                        let seconds = self.patience.start.as_secs_f64();
                        let message =
                            format!("the server `{server}` was not ready after {seconds} s");
                        Outcome::bad(OutcomeStatus::TimedOut, message)
                    }
                };
                // Its output is complete once it has ended.
                if let (Some(running), Some(process), None) = (running, process, &outcome.stderr) {
                    let ended = Outcome::from(running.stop(self.patience.stop).await);
                    (outcome.stderr, outcome.network) = (ended.stderr, ended.network);
                    outcome.denied = ended.denied;
                    outcome = process.explain(outcome);
                }
                if let Some(said) = changes(watch.as_ref(), server, &self.authorizer, &prefix).await
                {
                    self.authorizer.warn(said);
                }
                return Err(Box::new(outcome));
            }
        };
        let source = Source {
            server: server.clone(),
            prefix,
            skill: origin.skill,
            settings_file: origin.file.map(|it| it.to_string_lossy().into_owned()),
            caller: connection.caller(),
            authorizer: self.authorizer.clone(),
            process,
            patience: self.patience.call,
            was_called: Arc::default(),
        };
        let offer = Mutex::new(Offer::of(&source, listed));
        Ok(McpServer { source, connection, running, watch, patience: self.patience, offer })
    }

    /// Returns the connection to a remote server, if it is allowed.
    #[cfg(feature = "http")]
    fn channel(
        &self,
        description: &McpServerConfig,
        address: &ServerAddress,
        is_set: bool,
    ) -> Result<Channel, Box<Outcome>> {
        let mut remote = self.remote(description, address)?;
        if is_set {
            // The user may have logged in. If no token may be sent, none is.
            remote.bearer = self.bearer(description, address, &remote).ok().map(Arc::new);
        }
        Ok(Channel::Remote(Box::new(remote)))
    }

    #[cfg(feature = "http")]
    pub(super) fn remote(
        &self,
        description: &McpServerConfig,
        address: &ServerAddress,
    ) -> Result<Remote, Box<Outcome>> {
        let known = PlaceholderValues { folder: None, variables: &self.environment };
        let headers = address.headers.iter();
        let headers: Result<_, String> =
            headers.map(|(name, it)| Ok((name.clone(), known.expand(it)?))).collect();
        let (headers, url) = headers
            .and_then(|headers| Ok((headers, known.expand(&address.url)?)))
            .map_err(|name| refuse_unknown_variable(description, &name))?;
        let hosts = self
            .authorizer
            .policy
            .request_hosts()
            .map_err(|error| Outcome::error(OutcomeStatus::Invalid, &error))?;
        let remote = Remote::new(hosts, self.patience.start, url, headers);
        remote.map_err(|it| it.outcome(&description.name).into())
    }

    #[cfg(not(feature = "http"))]
    fn channel(
        &self,
        description: &McpServerConfig,
        _: &ServerAddress,
        _: bool,
    ) -> Result<Channel, Box<Outcome>> {
        Err(refuse(description, "this build has no network support (feature `http`)"))
    }
}

/// Returns the content to approve: the command line, and every file of the skill as it was read.
fn approved_record(
    skill: &Skill,
    description: &McpServerConfig,
    files: Vec<SkillFile>,
) -> SkillRecord {
    SkillRecord {
        manifest: Manifest { kind: Type::Script, ..skill.manifest.clone() },
        definition: Definition::Script { script: description.line() },
        parameters: None,
        folder: skill.absolute_folder().map(|it| SkillFolder::from(it).with_files(files)),
    }
}

/// Runs work that reads many files on another thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Box<Outcome>> + Send + 'static,
) -> Result<T, Box<Outcome>> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Box::new(Outcome::error(OutcomeStatus::Failed, &error))),
    }
}

async fn files(skill: &Skill) -> Result<Vec<SkillFile>, Box<Outcome>> {
    let skill = skill.clone();
    blocking(move || skill_files(&skill).map_err(|error| Box::new(Outcome::from(&error)))).await
}
