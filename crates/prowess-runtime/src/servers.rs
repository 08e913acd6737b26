//! Servers that skills bring, or somebody has set: they are described in a skill's folder or in
//! `prowess.toml`, started in the sandbox or asked over HTTP once somebody has approved it, and their
//! tools are called like any others. What is set may also offer skills.

mod name;
mod oauth_settings;
#[cfg(feature = "http")]
mod oauth;
mod description;
mod expand;
#[cfg(feature = "http")]
mod remote;
mod client;
mod ending;
mod offered;
mod skills;
mod server_skills;
mod tool;
#[cfg(feature = "http")]
mod logging_in;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prowess::{Definition, Manifest, Skill, Type};
use serde_json::Value;
use tokio::{task::spawn_blocking, time::timeout};

#[cfg(feature = "http")]
use crate::http::Hosts;
use crate::{
    commands,
    config::ServerSetting,
    entry::Entry,
    gate::{Gate, Refusal},
    limits::Limits,
    outcome::{Outcome, Status},
    policy::Wish,
    sandbox::{Job, Running, Sandbox, Work},
    script,
    skill_folder::{FileKind, SkillFile, SkillFolder},
    tool::{Act, Tool},
};
use client::{Client, Failure, Line};
use ending::{NO_NETWORK, explained};
use expand::Known;
#[cfg(feature = "http")]
use remote::Remote;
use tool::Source;

pub use description::{Described, Description, ServerAddress, ServerProgram, Transport};
#[cfg(feature = "http")]
pub use oauth::{LoginError, LoginPrompt, LoginRequest, LoginState, Logins};
pub use oauth_settings::OauthSettings;
pub use offered::{OfferedFile, OfferedSkill, OfferedSkills};
pub use server_skills::ServerSkills;

/// Starts the servers that skills bring, or somebody has set.
///
/// A server that is a program reads the system and a copy of its skill, or the directory that was set
/// for it; it writes its work directory alone, and has no network. One behind an address is asked only if its host may be. Making a starter
/// touches nothing.
#[derive(Debug, Clone)]
pub struct Starter {
    gate: Arc<Gate>,
    sandbox: Sandbox,
    limits: Limits,
    environment: BTreeMap<String, String>,
    reads: Vec<PathBuf>,
    patience: ServerPatience,
    #[cfg(feature = "http")]
    logins: Option<Logins>,
}

/// How long a server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerPatience {
    /// Until it has said which tools it has.
    pub start: Duration,
    /// For one call.
    pub call: Duration,
    /// To end when it is told to.
    pub stop: Duration,
}

impl Default for ServerPatience {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(20),
            call: Duration::from_secs(120),
            stop: Duration::from_millis(500),
        }
    }
}

/// A server that runs. Soon after this is dropped nobody of it is alive, and one behind an address has
/// been told.
#[derive(Debug)]
pub struct Server {
    source: Source,
    client: Client,
    /// Its program, if it is one of ours.
    running: Option<Running>,
    patience: ServerPatience,
    offer: Mutex<Offer>,
}

/// Who wants a server: a skill, or a file of a project; else a person.
struct By {
    skill: Option<String>,
    file: Option<PathBuf>,
}

/// What a server has.
#[derive(Debug, Clone, Default)]
struct Offer {
    tools: Vec<Arc<dyn Tool>>,
    left_out: Vec<String>,
}

/// How many tools of a server are taken.
const TOOLS: usize = 128;
/// How much processor time a server may take, how much of its errors is kept, and how long it may run:
/// it ends with the agent.
const CPU: Duration = Duration::from_secs(60 * 60);
const ERRORS: u64 = 16 * 1024;
const FOREVER: Duration = Duration::MAX;
/// Programs that fetch what they run.
const FETCHERS: &[&str] = &["bunx", "docker", "npx", "pipx", "pnpx", "podman", "uv", "uvx"];
/// Where a copy of the skill lies among what a server is given.
const COPY: &str = "skill";

impl Starter {
    /// Makes a starter of servers that are held by this sandbox and these limits. What may run without
    /// a sandbox for once is no server.
    pub fn new(gate: Arc<Gate>, sandbox: Sandbox, limits: Limits) -> Self {
        let limits = Limits { timeout: FOREVER, idle: None, cpu: CPU, output: ERRORS, ..limits };
        let (environment, reads, patience) = Default::default();
        Self {
            gate,
            sandbox: sandbox.held(),
            limits,
            environment,
            reads,
            patience,
            #[cfg(feature = "http")]
            logins: None,
        }
    }

    /// Lets descriptions refer to these variables.
    #[must_use]
    pub fn with_environment(self, environment: BTreeMap<String, String>) -> Self {
        Self { environment, ..self }
    }

    /// Lets every server read these files and directories.
    #[must_use]
    pub fn with_reads(self, reads: Vec<PathBuf>) -> Self {
        Self { reads, ..self }
    }

    /// Waits so long for servers.
    #[must_use]
    pub fn with_patience(self, patience: ServerPatience) -> Self {
        Self { patience, ..self }
    }

    /// The servers that a skill describes.
    pub async fn described(&self, skill: &Skill) -> Described {
        let skill = skill.clone();
        spawn_blocking(move || Described::by(&skill)).await.unwrap_or_default()
    }

    /// Starts a server of a skill, once the gate lets it pass. Among the tools it goes by `name`, so that
    /// servers of two skills can be told from each other.
    pub async fn start(
        &self,
        skill: &Skill,
        description: &Description,
        name: &str,
        active: &[Manifest],
    ) -> Result<Server, Box<Outcome>> {
        let prefix = name::server(name);
        let server = &description.name;
        // What is read now is what runs, whatever lies there by then.
        let files = files(skill).await?;
        let url = match &description.transport {
            Transport::Program(_) => None,
            Transport::Http(address) => {
                // Nobody is asked about what cannot be.
                self.line(description, address, false)?;
                Some(address.url.clone())
            }
        };
        let entry = Box::new(entry(skill, description, files.clone()));
        let act = Act::Start { entry, server: server.clone(), url };
        self.gate.pass(&Wish { tool: &prefix, act: &act, active, given: None }).await?;
        let (running, line) = match &description.transport {
            Transport::Program(program) => {
                let job = self.job(description, program, &files);
                let job = job.map_err(|it| hinted(it, description))?;
                let (running, stream) = self.sandbox.start(job).map_err(Outcome::from)?;
                (Some(running), Line::Stream(stream))
            }
            Transport::Http(address) => (None, self.line(description, address, false)?),
        };
        drop(files);
        let by = By { skill: Some(skill.manifest.name.to_string()), file: None };
        self.begin(description, prefix, by, running, line).await
    }

    /// Asks the gate about a server that a file of a project sets, and gives that file.
    async fn pass(&self, set: &ServerSetting) -> Result<Option<PathBuf>, Box<Outcome>> {
        let ServerSetting { description, .. } = set;
        let prefix = name::server(&description.name);
        let file = (!set.is_trusted).then(|| set.origin.to_file()).flatten();
        let url = match &description.transport {
            Transport::Program(_) => None,
            Transport::Http(address) => {
                self.line(description, address, true)?;
                Some(address.url.clone())
            }
        };
        if let Some(file) = &file {
            let (server, line) = (description.name.clone(), description.line());
            let act = Act::Connect { server, line, file: file.clone(), url };
            self.gate.pass(&Wish { tool: &prefix, act: &act, active: &[], given: None }).await?;
        }
        Ok(file)
    }

    /// Starts a server that somebody has set, or connects to it. The gate is asked about one that a
    /// file of a project sets.
    pub async fn connect(&self, set: &ServerSetting) -> Result<Server, Box<Outcome>> {
        let ServerSetting { description, .. } = set;
        let prefix = name::server(&description.name);
        let file = self.pass(set).await?;
        let (running, line) = match &description.transport {
            Transport::Program(program) => {
                let job = self.job_set(description, program);
                let job = job.map_err(|it| hinted(it, description))?;
                let (running, stream) = self.sandbox.start(job).map_err(Outcome::from)?;
                (Some(running), Line::Stream(stream))
            }
            Transport::Http(address) => (None, self.line(description, address, true)?),
        };
        self.begin(description, prefix, By { skill: None, file }, running, line).await
    }

    /// Speaks with a server for the first time.
    async fn begin(
        &self,
        description: &Description,
        prefix: String,
        by: By,
        running: Option<Running>,
        line: Line,
    ) -> Result<Server, Box<Outcome>> {
        let server = &description.name;
        let ending = running.as_ref().map(Running::ending);
        let begun = async {
            let client = Client::connect(line, self.patience.start / 2).await?;
            let listed = client.tools(TOOLS).await?;
            Ok::<_, Failure>((client, listed))
        };
        let (client, listed) = match timeout(self.patience.start, begun).await {
            Ok(Ok(begun)) => begun,
            Ok(Err(failure)) => {
                let outcome = explained(server, failure, ending.as_ref()).await;
                return Err(hinted(Box::new(outcome), description));
            }
            Err(_) => {
                let seconds = self.patience.start.as_secs_f64();
                let message = format!("the server `{server}` was not ready after {seconds} s");
                let outcome = Outcome::bad(Status::TimedOut, message);
                let outcome = if running.is_some() { outcome.hint(NO_NETWORK) } else { outcome };
                return Err(hinted(Box::new(outcome), description));
            }
        };
        let source = Source {
            server: server.clone(),
            prefix,
            skill: by.skill,
            set_by: by.file.map(|it| it.to_string_lossy().into_owned()),
            caller: client.caller(),
            gate: self.gate.clone(),
            ending,
            patience: self.patience.call,
        };
        let offer = Mutex::new(Offer::of(&source, listed));
        Ok(Server { source, client, running, patience: self.patience, offer })
    }

    /// What runs for a server that somebody has set: where it says, with what lies there.
    fn job_set(
        &self,
        description: &Description,
        program: &ServerProgram,
    ) -> Result<Job, Box<Outcome>> {
        let failed = |error| Box::new(Outcome::error(Status::Failed, &error));
        let known = Known { folder: None, variables: &self.environment };
        let expand = |text: &String| known.expand(text).map_err(|name| unknown(description, &name));
        let ServerProgram { command, arguments, environment, directory } = program;
        let command = expand(command)?;
        let own = command.contains('/').then(|| Path::new(&*directory).join(&command));
        if own.as_ref().is_some_and(|it| it.is_relative()) {
            return Err(refused(
                description,
                &format!("`{command}` begins nowhere, without a `cwd`"),
            ));
        }
        let command = match &own {
            Some(path) => path.clone().into(),
            None => commands::program(&command)?.into(),
        };
        let arguments = arguments.iter().map(|it| expand(it).map(OsString::from));
        let argv = std::iter::once(Ok(command)).chain(arguments).collect::<Result<_, _>>()?;
        let variables = environment.iter();
        let variables = variables.map(|(name, value)| Ok((name.clone(), expand(value)?)));
        let env = variables.collect::<Result<_, Box<Outcome>>>()?;
        let directory = (!directory.is_empty()).then(|| PathBuf::from(directory));
        Ok(Job {
            env,
            reads: self.reads.iter().cloned().chain(directory.clone()).chain(own).collect(),
            directory,
            withheld: self.gate.policy.withheld.clone(),
            ..Job::new(argv, Work::new().map_err(failed)?, self.limits)
        })
    }

    /// What runs for a server: with a copy of its skill, in which it begins.
    fn job(
        &self,
        description: &Description,
        program: &ServerProgram,
        files: &[SkillFile],
    ) -> Result<Job, Box<Outcome>> {
        let failed = |error| Box::new(Outcome::error(Status::Failed, &error));
        let work = Work::new().map_err(failed)?;
        let folder = work.give_folder(COPY, files).map_err(failed)?;
        let known = Known { folder: Some(&folder.to_string_lossy()), variables: &self.environment };
        let expand = |text: &String| known.expand(text).map_err(|name| unknown(description, &name));
        let ServerProgram { command, arguments, environment, directory } = program;
        let command = self::program(description, &expand(command)?, &folder, files)?;
        let arguments = arguments.iter().map(|it| expand(it).map(OsString::from));
        let argv = std::iter::once(Ok(command)).chain(arguments).collect::<Result<_, _>>()?;
        let variables = environment.iter();
        let variables = variables.map(|(name, value)| Ok((name.clone(), expand(value)?)));
        let env = variables.collect::<Result<_, Box<Outcome>>>()?;
        let directory = inside(&expand(directory)?, &folder).ok_or_else(|| {
            refused(description, &format!("`cwd` leads out of the skill: `{directory}`"))
        })?;
        Ok(Job {
            env,
            directory: Some(directory),
            reads: self.reads.iter().cloned().chain([folder.clone()]).collect(),
            withheld: self.gate.policy.withheld.clone(),
            ..Job::new(argv, work, self.limits)
        })
    }

    /// The way to a server behind an address, as far as it may be gone.
    #[cfg(feature = "http")]
    fn line(
        &self,
        description: &Description,
        address: &ServerAddress,
        is_set: bool,
    ) -> Result<Line, Box<Outcome>> {
        let mut remote = self.remote(description, address)?;
        if is_set {
            // Whoever set it may have logged in. Where no token may be sent, none is.
            remote.bearer = self.bearer(description, address, &remote).ok().map(Arc::new);
        }
        Ok(Line::Remote(Box::new(remote)))
    }

    #[cfg(feature = "http")]
    fn remote(
        &self,
        description: &Description,
        address: &ServerAddress,
    ) -> Result<Remote, Box<Outcome>> {
        let known = Known { folder: None, variables: &self.environment };
        let expand = |text: &String| known.expand(text).map_err(|name| unknown(description, &name));
        let headers = address.headers.iter().map(|(name, it)| Ok((name.clone(), expand(it)?)));
        let headers = headers.collect::<Result<_, Box<Outcome>>>()?;
        let hosts = Hosts::of(&self.gate.policy)
            .map_err(|error| Outcome::error(Status::Invalid, &error))?;
        let remote = Remote::new(hosts, self.patience.start, expand(&address.url)?, headers);
        remote.map_err(|it| it.outcome(&description.name).into())
    }

    #[cfg(not(feature = "http"))]
    fn line(
        &self,
        description: &Description,
        _: &ServerAddress,
        _: bool,
    ) -> Result<Line, Box<Outcome>> {
        Err(refused(description, "nothing is asked over HTTP by this program"))
    }
}

impl Server {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.source.server
    }

    /// The skill that brought it; nothing if somebody has set it.
    pub fn skill(&self) -> Option<&str> {
        self.source.skill.as_deref()
    }

    /// Whether it offers skills. One that a skill brought is not asked for more.
    pub fn offers_skills(&self) -> bool {
        self.skill().is_none() && self.client.offers_skills()
    }

    /// The skills that it offers now. Nothing of them is read.
    pub async fn skills(&self) -> Result<OfferedSkills, Box<Outcome>> {
        match self.offers_skills() {
            true => self.source.skills().await,
            false => Ok(OfferedSkills::default()),
        }
    }

    /// Whether it has said since it was last asked that its skills are others now.
    pub fn has_other_skills(&self) -> bool {
        self.offers_skills() && self.client.has_other_skills()
    }

    /// A skill by its URI, also one that is not listed.
    pub async fn skill_at(&self, uri: &str) -> Result<OfferedSkill, Box<Outcome>> {
        self.source.skill(uri).await
    }

    /// The `SKILL.md` of a skill, if it is what was listed, down to every field. Nobody is asked.
    pub async fn document(&self, skill: &OfferedSkill) -> Result<String, Box<Outcome>> {
        self.source.document(skill).await
    }

    /// A file of a skill by its path, if it is what was listed. Nobody is asked.
    pub async fn file(&self, skill: &OfferedSkill, path: &str) -> Result<Vec<u8>, Box<Outcome>> {
        self.source.file(skill, path).await
    }

    /// The tool by which a model takes up these skills, as far as a model may.
    pub fn skill_tool(&self, skills: OfferedSkills) -> Arc<ServerSkills> {
        Arc::new(ServerSkills::new(self.source.clone(), skills))
    }

    /// Its tools.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.offer().tools.clone()
    }

    /// What of its tools was left out, and why.
    pub fn left_out(&self) -> Vec<String> {
        self.offer().left_out.clone()
    }

    /// Whether it can still be asked.
    pub fn is_alive(&self) -> bool {
        !self.running.as_ref().is_some_and(Running::is_over) && !self.client.is_closed()
    }

    /// Why it cannot be asked any more.
    pub async fn fault(&self) -> Outcome {
        explained(self.name(), self.client.failure(), self.source.ending.as_ref()).await
    }

    /// Asks for its tools again, if it has said that there are others; says whether there are.
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

    /// Ends it: it is told so, and killed when it does not listen. Says how it ended.
    pub async fn stop(self) -> Outcome {
        let closed = timeout(self.patience.stop, self.client.close()).await;
        match self.running {
            Some(running) => running.stop(self.patience.stop).await,
            None if closed.is_ok() => Outcome::ok(Value::Null),
            None => Outcome::bad(Status::TimedOut, "it did not say that it has heard of the end"),
        }
    }

    fn offer(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offer {
    fn of(source: &Source, (listed, has_more): (Vec<client::Listed>, bool)) -> Self {
        let (tools, mut left_out) = tool::tools(source, listed);
        if has_more {
            left_out.push(format!("of its tools the first {TOOLS} are taken"));
        }
        let tools = tools.into_iter().map(|it| Arc::new(it) as Arc<dyn Tool>).collect();
        Self { tools, left_out }
    }
}

/// What has to be approved: the command line, and every file of the skill as it was read.
fn entry(skill: &Skill, description: &Description, files: Vec<SkillFile>) -> Entry {
    Entry {
        manifest: Manifest { kind: Type::Script, ..skill.manifest.clone() },
        definition: Definition::Script { script: description.line() },
        parameters: None,
        folder: skill.absolute_folder().map(|it| SkillFolder::from(it).with(files)),
    }
}

async fn files(skill: &Skill) -> Result<Vec<SkillFile>, Box<Outcome>> {
    let skill = skill.clone();
    match spawn_blocking(move || script::files(&skill)).await {
        Ok(files) => files.map_err(|error| Box::new(Outcome::from(&error))),
        Err(error) => Err(Box::new(Outcome::error(Status::Failed, &error))),
    }
}

/// The program of a server: one of the system by its name, or one of the skill by its path.
fn program(
    description: &Description,
    command: &str,
    folder: &Path,
    files: &[SkillFile],
) -> Result<OsString, Box<Outcome>> {
    if !command.contains('/') {
        return Ok(commands::program(command)?.into());
    }
    let is_there = |path: &PathBuf| {
        let own = path.strip_prefix(folder).unwrap_or(path);
        let is_plain = |it: &&SkillFile| matches!(it.kind, FileKind::Plain(_));
        files.iter().filter(is_plain).any(|it| Path::new(&it.path) == own)
    };
    match inside(command, folder).filter(is_there) {
        Some(path) => Ok(path.into()),
        None => Err(refused(description, &format!("the skill has no program `{command}`"))),
    }
}

/// A path within a folder, if it stays there; there are no links in it.
fn inside(path: &str, folder: &Path) -> Option<PathBuf> {
    let path = Path::new(path);
    let path = path.strip_prefix(folder).unwrap_or(path);
    let stays = path.components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    let names = path.components().filter(|it| matches!(it, Component::Normal(_)));
    stays.then(|| folder.join(names.collect::<PathBuf>()))
}

fn refused(description: &Description, why: &str) -> Box<Outcome> {
    let message = format!("the server `{}` is not started: {why}", description.name);
    let hint = "a server is a program of the system by its name, or one by its path: of its skill, or of the `cwd` that is set";
    Refusal { message, hint: hint.to_owned() }.into()
}

fn unknown(description: &Description, name: &str) -> Box<Outcome> {
    let message = format!(
        "the server `{}` is not started: it asks for the variable `{name}`, which it is not given",
        description.name
    );
    let hint =
        "`policy.environment` lists the variables that may be passed on, `--env` passes one on";
    Refusal { message, hint: hint.to_owned() }.into()
}

/// The same, with what to know about programs that fetch what they run.
fn hinted(outcome: Box<Outcome>, description: &Description) -> Box<Outcome> {
    let command = match &description.transport {
        Transport::Program(it) if FETCHERS.contains(&it.command.as_str()) => &it.command,
        _ => return outcome,
    };
    let hint = format!(
        "`{command}` fetches the server, and there is no network for it: let the skill bring it"
    );
    Box::new(outcome.hint(hint))
}
