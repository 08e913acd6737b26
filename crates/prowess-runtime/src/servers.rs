//! MCP servers of skills and settings: they are configured in a skill's folder or in
//! `prowess.toml`, started in the sandbox or connected over HTTP after approval, and their tools
//! are called like any others. Servers from settings may also offer skills.

mod name;
mod oauth_settings;
#[cfg(feature = "http")]
mod oauth;
mod description;
mod setting;
mod launcher;
mod expand;
mod files;
mod job;
mod write_watch;
#[cfg(feature = "http")]
mod remote;
mod client;
mod cause;
mod ending;
mod skills;
mod server_skills;
mod tool;
#[cfg(feature = "http")]
mod logging_in;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use prowess::{Definition, Manifest, Skill, Type};
use prowess_sandbox::{Job, RunLimits, RunningProgram, Sandbox};
use serde_json::Value;
use tokio::{task::spawn_blocking, time::timeout};

use crate::{
    audit_log::AuditEntry,
    authorizer::Authorizer,
    change_history::ChangeHistory,
    entry::SkillRecord,
    environment::InterpreterSearch,
    outcome::{Outcome, OutcomeStatus},
    preparation::EnvironmentStore,
    remote_skill::{RemoteSkill, RemoteSkills},
    ruling::ActionRequest,
    script,
    skill_folder::{SkillFile, SkillFolder},
    tool::{Action, Tool},
};
use cause::Circumstances;
use client::{Client, Failure, Line};
use ending::{Process, explained};
#[cfg(feature = "http")]
use expand::PlaceholderValues;
#[cfg(not(feature = "http"))]
use job::refused;
#[cfg(feature = "http")]
use job::unknown;
#[cfg(feature = "http")]
use remote::Remote;
use tool::Source;
use write_watch::WriteWatch;

pub use description::{McpServerConfig, ServerAddress, ServerProgram, SkillServers, Transport};
pub use launcher::PackageCommand;
#[cfg(feature = "http")]
pub use oauth::{LoginError, LoginPrompt, LoginRequest, LoginState, Logins};
pub use oauth_settings::OauthSettings;
pub use server_skills::ServerSkills;
pub use setting::ServerSetting;

/// Starts the servers of skills and settings.
///
/// A server program can read the system and a copy of its skill, or the paths in its entry and its
/// arguments; it can write its work directory and the paths in its entry, and connect to the hosts
/// in its entry. A remote server is only connected if its host is allowed. Creating a launcher
/// touches no files.
#[derive(Debug, Clone)]
pub struct McpLauncher {
    authorizer: Arc<Authorizer>,
    sandbox: Sandbox,
    limits: RunLimits,
    environment: BTreeMap<String, String>,
    reads: Vec<PathBuf>,
    interpreters: InterpreterSearch,
    environments: Option<EnvironmentStore>,
    history: Option<ChangeHistory>,
    directory: PathBuf,
    settings_file: Option<PathBuf>,
    patience: ServerTimeouts,
    #[cfg(feature = "http")]
    logins: Option<Logins>,
}

/// The timeouts of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTimeouts {
    /// For its start, until it has listed its tools.
    pub start: Duration,
    /// The part of that until a program answers whether it supports 2026-07-28; after that it is
    /// assumed to be older.
    pub discovery: Duration,
    /// For one call.
    pub call: Duration,
    /// For its shutdown.
    pub stop: Duration,
}

impl Default for ServerTimeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(20),
            discovery: Duration::from_secs(10),
            call: Duration::from_secs(120),
            stop: Duration::from_millis(500),
        }
    }
}

/// A running server. It is stopped soon after this is dropped; a remote session is closed.
#[derive(Debug)]
pub struct McpServer {
    source: Source,
    client: Client,
    /// Its process, if it is a local program.
    running: Option<RunningProgram>,
    /// Watches protected files that it could write, if it can write at all.
    watch: Option<WriteWatch>,
    patience: ServerTimeouts,
    offer: Mutex<Offer>,
}

/// A process that was started for a server.
struct ServerProcess {
    running: RunningProgram,
    process: Process,
    watch: Option<WriteWatch>,
}

/// The origin of a server: a skill, or a project file; else a person.
struct By {
    skill: Option<String>,
    file: Option<PathBuf>,
}

/// The tools of a server.
#[derive(Debug, Clone, Default)]
struct Offer {
    tools: Vec<Arc<dyn Tool>>,
    left_out: Vec<String>,
}

/// The maximum number of tools of a server.
const TOOLS: usize = 128;
/// The limits on a server's processor time, on its captured errors, and on its run time: it ends
/// with the agent.
const CPU: Duration = Duration::from_secs(60 * 60);
const ERRORS: u64 = 16 * 1024;
const FOREVER: Duration = Duration::MAX;

impl McpLauncher {
    /// Creates a launcher with this sandbox and these limits. A permission to run without a sandbox
    /// does not apply to servers.
    pub fn new(authorizer: Arc<Authorizer>, sandbox: Sandbox, limits: RunLimits) -> Self {
        let limits = RunLimits { timeout: FOREVER, idle: None, cpu: CPU, output: ERRORS, ..limits };
        let (environment, reads, interpreters, environments, patience) = Default::default();
        let (sandbox, directory) = (sandbox.confined(), PathBuf::from("/"));
        Self {
            authorizer,
            sandbox,
            limits,
            environment,
            reads,
            interpreters,
            environments,
            history: None,
            directory,
            settings_file: None,
            patience,
            #[cfg(feature = "http")]
            logins: None,
        }
    }

    /// Lets entries refer to these variables.
    #[must_use]
    pub fn with_environment(self, environment: BTreeMap<String, String>) -> Self {
        Self { environment, ..self }
    }

    /// Lets every server read these files and directories.
    #[must_use]
    pub fn with_reads(self, reads: Vec<PathBuf>) -> Self {
        Self { reads, ..self }
    }

    /// Searches programs here, before those of the system.
    #[must_use]
    pub fn with_interpreters(self, interpreters: InterpreterSearch) -> Self {
        Self { interpreters, ..self }
    }

    /// Uses the packages that were prepared for servers.
    #[must_use]
    pub fn with_environments(self, environments: Option<EnvironmentStore>) -> Self {
        Self { environments, ..self }
    }

    /// Saves the previous contents of protected files that a server writes, for undo.
    #[must_use]
    pub fn with_history(self, history: Option<ChangeHistory>) -> Self {
        Self { history, ..self }
    }

    /// Resolves relative paths of entries in this directory: that of the project.
    #[must_use]
    pub fn with_directory(self, directory: PathBuf) -> Self {
        Self { directory, ..self }
    }

    /// Sets the user's settings file, which hints name.
    #[must_use]
    pub fn with_settings_file(self, settings_file: Option<PathBuf>) -> Self {
        Self { settings_file, ..self }
    }

    /// Replaces the timeouts.
    #[must_use]
    pub fn with_patience(self, patience: ServerTimeouts) -> Self {
        Self { patience, ..self }
    }

    /// Reads the servers that a skill configures.
    pub async fn described(&self, skill: &Skill) -> SkillServers {
        let skill = skill.clone();
        spawn_blocking(move || SkillServers::by(&skill)).await.unwrap_or_default()
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
                blocking(move || own.job(&description, &program, &files)).await?;
                None
            }
            Transport::Http(address) => {
                self.line(description, address, false)?;
                Some(address.url.clone())
            }
        };
        let entry = Box::new(entry(skill, description, files.clone()));
        let action = Action::Start { entry, server: server.clone(), url };
        self.authorizer
            .authorize(&ActionRequest { tool: &prefix, action: &action, active, given: None })
            .await?;
        let entry = format!("the entry of `{server}` in the skill");
        let (started, line) = match &description.transport {
            Transport::Program(program) => {
                let (own, description, program) =
                    (self.clone(), description.clone(), program.clone());
                let job = move || own.watched(own.job(&description, &program, &files)?);
                self.launch(blocking(job).await?, entry, None, None)?
            }
            Transport::Http(address) => (None, self.line(description, address, false)?),
        };
        let by = By { skill: Some(skill.manifest.name.to_string()), file: None };
        self.begin(description, prefix, by, started, line).await
    }

    /// Authorizes a server that a project file configures, and returns that file.
    async fn authorize(&self, set: &ServerSetting) -> Result<Option<PathBuf>, Box<Outcome>> {
        let ServerSetting { description, .. } = set;
        let prefix = name::server(&description.name);
        let file = (!set.is_trusted).then(|| set.file()).flatten();
        // An invalid server is not asked about.
        let url = match &description.transport {
            Transport::Program(program) if file.is_some() => {
                let (own, set, program) = (self.clone(), set.clone(), program.clone());
                blocking(move || own.job_set(&set, &program)).await?;
                None
            }
            Transport::Program(_) => None,
            Transport::Http(address) => {
                self.line(description, address, true)?;
                Some(address.url.clone())
            }
        };
        if let Some(file) = &file {
            let (server, line) = (description.name.clone(), description.line());
            let action = Action::Connect { server, line, file: file.clone(), url };
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
        let (started, line) = match &description.transport {
            Transport::Program(program) => {
                let source = set.file();
                let (own, set, program) = (self.clone(), set.clone(), program.clone());
                let job = move || own.watched(own.job_set(&set, &program)?);
                let job = blocking(job).await?;
                let project = file.as_deref().and_then(Path::parent);
                let project = project.map(|it| (it.to_owned(), self.elsewhere(description)));
                let entry = format!("`[servers.{}]`", description.name);
                self.launch(job, entry, source, project)?
            }
            Transport::Http(address) => (None, self.line(description, address, true)?),
        };
        self.begin(description, prefix, By { skill: None, file }, started, line).await
    }

    /// Returns a job with a watch on protected files, in their state before it starts.
    fn watched(&self, job: Job) -> Result<(Job, Option<WriteWatch>), Box<Outcome>> {
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
    ) -> Result<(Option<ServerProcess>, Line), Box<Outcome>> {
        let home = self.interpreters.home.as_deref();
        let settings = self.settings_file.as_deref();
        let given =
            Circumstances::of(&job, entry, project, &self.authorizer.policy, home, settings);
        let given = Arc::new(given.in_file(file));
        let (running, stream) = self.sandbox.start(job).map_err(Outcome::from)?;
        let process = Process { ending: running.ending(), given };
        Ok((Some(ServerProcess { running, process, watch }), Line::Stream(stream)))
    }

    /// Connects to a server.
    async fn begin(
        &self,
        description: &McpServerConfig,
        prefix: String,
        by: By,
        started: Option<ServerProcess>,
        line: Line,
    ) -> Result<McpServer, Box<Outcome>> {
        let server = &description.name;
        let watch = started.as_ref().and_then(|it| it.watch.clone());
        let (running, process) = started.map(|it| (it.running, it.process)).unzip();
        let begun = async {
            let client = Client::connect(line, self.patience.discovery).await?;
            let listed = client.tools(TOOLS).await?;
            Ok::<_, Failure>((client, listed))
        };
        let (client, listed) = match timeout(self.patience.start, begun).await {
            Ok(Ok(begun)) => begun,
            failed => {
                let outcome = match failed {
                    Ok(Err(failure)) => explained(server, failure, process.as_ref()).await,
                    _ => {
                        let seconds = self.patience.start.as_secs_f64();
                        let message =
                            format!("the server `{server}` was not ready after {seconds} s");
                        Outcome::bad(OutcomeStatus::TimedOut, message)
                    }
                };
                // Its output is complete once it has ended.
                let outcome = match (running, process, &outcome.stderr) {
                    (Some(running), Some(process), None) => {
                        let ended = running.stop(self.patience.stop).await;
                        let Outcome { stderr, network, denied, .. } = ended.into();
                        process.given.explain(Outcome { stderr, network, denied, ..outcome })
                    }
                    _ => outcome,
                };
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
            skill: by.skill,
            set_by: by.file.map(|it| it.to_string_lossy().into_owned()),
            caller: client.caller(),
            authorizer: self.authorizer.clone(),
            process,
            patience: self.patience.call,
            was_called: Arc::default(),
        };
        let offer = Mutex::new(Offer::of(&source, listed));
        Ok(McpServer { source, client, running, watch, patience: self.patience, offer })
    }

    /// Returns the connection to a remote server, if it is allowed.
    #[cfg(feature = "http")]
    fn line(
        &self,
        description: &McpServerConfig,
        address: &ServerAddress,
        is_set: bool,
    ) -> Result<Line, Box<Outcome>> {
        let mut remote = self.remote(description, address)?;
        if is_set {
            // The user may have logged in. If no token may be sent, none is.
            remote.bearer = self.bearer(description, address, &remote).ok().map(Arc::new);
        }
        Ok(Line::Remote(Box::new(remote)))
    }

    #[cfg(feature = "http")]
    fn remote(
        &self,
        description: &McpServerConfig,
        address: &ServerAddress,
    ) -> Result<Remote, Box<Outcome>> {
        let known = PlaceholderValues { folder: None, variables: &self.environment };
        let expand = |text: &String| known.expand(text).map_err(|name| unknown(description, &name));
        let headers = address.headers.iter().map(|(name, it)| Ok((name.clone(), expand(it)?)));
        let headers = headers.collect::<Result<_, Box<Outcome>>>()?;
        let hosts = self
            .authorizer
            .policy
            .request_hosts()
            .map_err(|error| Outcome::error(OutcomeStatus::Invalid, &error))?;
        let remote = Remote::new(hosts, self.patience.start, expand(&address.url)?, headers);
        remote.map_err(|it| it.outcome(&description.name).into())
    }

    #[cfg(not(feature = "http"))]
    fn line(
        &self,
        description: &McpServerConfig,
        _: &ServerAddress,
        _: bool,
    ) -> Result<Line, Box<Outcome>> {
        Err(refused(description, "nothing is asked over HTTP by this program"))
    }
}

impl McpServer {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.source.server
    }

    /// Returns the skill that brings it; `None` if it is configured.
    pub fn skill(&self) -> Option<&str> {
        self.source.skill.as_deref()
    }

    /// Whether it offers skills. Those of a server from a skill are ignored.
    pub fn offers_skills(&self) -> bool {
        self.skill().is_none() && self.client.offers_skills()
    }

    /// Lists the skills that it offers, without reading them.
    pub async fn skills(&self) -> Result<RemoteSkills, Box<Outcome>> {
        match self.offers_skills() {
            true => self.source.skills().await,
            false => Ok(RemoteSkills::default()),
        }
    }

    /// Whether it has announced changed skills since they were last listed.
    pub fn has_other_skills(&self) -> bool {
        self.offers_skills() && self.client.has_other_skills()
    }

    /// Returns a skill by its URI, even if it is not listed.
    pub async fn skill_at(&self, uri: &str) -> Result<RemoteSkill, Box<Outcome>> {
        self.source.skill(uri).await
    }

    /// Reads the `SKILL.md` of a skill, and verifies that it matches the listed entry in every
    /// field. Nobody is asked.
    pub async fn document(&self, skill: &RemoteSkill) -> Result<String, Box<Outcome>> {
        self.source.document(skill).await
    }

    /// Reads a file of a skill by its path, and verifies that it matches the listed entry. Nobody
    /// is asked.
    pub async fn file(&self, skill: &RemoteSkill, path: &str) -> Result<Vec<u8>, Box<Outcome>> {
        self.source.file(skill, path).await
    }

    /// Creates the tool by which a model activates these skills, as far as it may.
    pub fn skill_tool(&self, skills: RemoteSkills) -> Arc<ServerSkills> {
        Arc::new(ServerSkills::new(self.source.clone(), skills))
    }

    /// Returns its tools.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.offer().tools.clone()
    }

    /// Returns the omitted tools, with the reasons.
    pub fn left_out(&self) -> Vec<String> {
        self.offer().left_out.clone()
    }

    /// Whether it can still be called.
    pub fn is_alive(&self) -> bool {
        !self.running.as_ref().is_some_and(RunningProgram::is_over) && !self.client.is_closed()
    }

    /// Returns the reason why it can no longer be called.
    pub async fn fault(&self) -> Outcome {
        explained(self.name(), self.client.failure(), self.source.process.as_ref()).await
    }

    /// Lists its tools again, if it has announced changes; returns whether there were any.
    pub async fn refresh(&self) -> bool {
        if !self.client.has_news() {
            return false;
        }
        let Ok(Ok(listed)) = timeout(self.patience.start, self.client.tools(TOOLS)).await else {
            return false;
        };
        *self.offer() = Offer::of(&self.source, listed);
        true
    }

    /// Whether it can write files of the user.
    pub fn can_write(&self) -> bool {
        self.watch.is_some()
    }

    /// Reports changed protected files where it can write, if one of its tools was called since the
    /// last report. Each change is reported once, and logged.
    pub async fn changes(&self) -> Option<String> {
        let Source { server, authorizer, prefix, was_called, .. } = &self.source;
        let watch = self.watch.as_ref().filter(|_| was_called.swap(false, Ordering::Relaxed));
        changes(watch, server, authorizer, prefix).await
    }

    /// Stops it, and kills it if that fails. Returns its outcome. Changed protected files are
    /// reported among the [warnings](crate::Records::faults) of the records.
    pub async fn stop(self) -> Outcome {
        let Self { source, client, running, watch, patience, .. } = self;
        let closed = timeout(patience.stop, client.close()).await;
        match running {
            Some(running) => {
                let ended = running.stop(patience.stop).await;
                let Source { server, authorizer, prefix, .. } = &source;
                if let Some(said) = changes(watch.as_ref(), server, authorizer, prefix).await {
                    authorizer.warn(said);
                }
                ended.into()
            }
            None if closed.is_ok() => Outcome::ok(Value::Null),
            None => Outcome::bad(OutcomeStatus::TimedOut, "it did not confirm the end"),
        }
    }

    fn offer(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offer {
    fn of(source: &Source, (listed, has_more): (Vec<client::Listed>, bool)) -> Self {
        let count = listed.len();
        let (tools, mut left_out) = tool::tools(source, listed);
        if has_more && count == TOOLS {
            left_out.push(format!("of its tools the first {TOOLS} are taken"));
        } else if has_more {
            left_out.push(format!("its list of tools does not end; the first {count} were taken"));
        }
        let tools = tools.into_iter().map(|it| Arc::new(it) as Arc<dyn Tool>).collect();
        Self { tools, left_out }
    }
}

/// Reports changed protected files where a server can write, and logs that.
async fn changes(
    watch: Option<&WriteWatch>,
    server: &str,
    authorizer: &Authorizer,
    prefix: &str,
) -> Option<String> {
    let said = watch?.report(server).await?;
    let (decision, by) = ("ran", "server");
    authorizer.audit.record(&AuditEntry {
        tool: prefix,
        what: &said,
        decision,
        by,
        ..AuditEntry::default()
    });
    Some(said)
}

/// Returns the record to approve: the command line, and every file of the skill as it was read.
fn entry(skill: &Skill, description: &McpServerConfig, files: Vec<SkillFile>) -> SkillRecord {
    SkillRecord {
        manifest: Manifest { kind: Type::Script, ..skill.manifest.clone() },
        definition: Definition::Script { script: description.line() },
        parameters: None,
        folder: skill.absolute_folder().map(|it| SkillFolder::from(it).with(files)),
    }
}

/// Runs work that reads many files on another thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Box<Outcome>> + Send + 'static,
) -> Result<T, Box<Outcome>> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Box::new(Outcome::error(OutcomeStatus::Failed, &error))),
    }
}

async fn files(skill: &Skill) -> Result<Vec<SkillFile>, Box<Outcome>> {
    let skill = skill.clone();
    let files = move || script::files(&skill).map_err(|error| Box::new(Outcome::from(&error)));
    blocking(files).await
}
