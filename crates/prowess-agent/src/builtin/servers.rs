//! MCP servers of skills or of the configuration: they start with their skill or with the session,
//! and stop with the session or the agent.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use prowess::{Level, Library, Manifest, Message, Skill, Thresholds, brief_line, lock};
use prowess_mcp::{
    client::{McpLauncher, McpServer, ServerSkills},
    config::{McpServerConfig, ServerSetting},
};
use prowess_runtime::{Outcome, OutcomeStatus, SkillProvider, Tool, skill::RemoteSkill};
use tokio::sync::Mutex as AsyncMutex;

use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Context, Request, Turn},
    middleware::{Middleware, Next, ResponseFuture},
    model::ChatResponse,
    session::Session,
};

/// Starts the MCP servers of a skill that becomes active, and offers their tools from then on. A
/// skill that is shown in brief starts none.
///
/// It is placed behind [`ToolLoop`](crate::ToolLoop), so that a skill that is activated in one step
/// has its tools in the next. A server runs until the session is dropped, the agent is dropped, or
/// the skill is gone. A server that cannot be started is left out, and everything else continues. A
/// configured server may also offer skills, which the model activates only by a tool of that
/// server; those that match a request are listed before it.
#[derive(Debug)]
pub struct Servers {
    starter: McpLauncher,
    provider: Arc<dyn SkillProvider>,
    set: Vec<ServerSetting>,
    /// The servers of each session. The session owns them.
    sessions: Mutex<Vec<Weak<AsyncMutex<SessionServers>>>>,
}

/// The servers of one session.
#[derive(Debug, Default)]
struct SessionServers {
    /// Whether the configured servers were added.
    has_set: bool,
    /// The skills whose servers were added.
    seen: BTreeSet<Arc<Path>>,
    members: Vec<SessionServer>,
}

/// A server, running or not.
#[derive(Debug)]
struct SessionServer {
    wanted: ServerToStart,
    /// Its name among the tools.
    name: String,
    server: Option<McpServer>,
    /// The tool that activates its skills, if it offers any.
    skills: Option<Arc<ServerSkills>>,
    /// The last turn in which it was restarted after a failure.
    retried: usize,
    /// The number of failures it is still allowed.
    patience: usize,
    /// The reason it does not run, once known.
    why: String,
}

/// The origin of a server.
#[derive(Debug)]
enum ServerToStart {
    /// An active skill.
    OfSkill { skill: String, path: Arc<Path>, description: McpServerConfig },
    /// The configuration, whatever the request.
    Configured(ServerSetting),
}

/// The maximum number of failures of a server in a session.
const FAILURES: usize = 3;
/// The maximum number of rejected skills of a server that are reported.
const MAX_REFUSED: usize = 20;
/// The maximum number of matching skills of all servers that are listed, and the length of a
/// description.
const FITTING: usize = 3;
const MAX_DESCRIPTION: usize = 250;

impl Servers {
    /// Starts the servers of this provider's skills.
    pub fn new(starter: McpLauncher, provider: Arc<dyn SkillProvider>) -> Self {
        Self { starter, provider, set: Vec::new(), sessions: Mutex::default() }
    }

    /// Starts these configured servers too, with the first request of a session.
    #[must_use]
    pub fn with_set(mut self, set: Vec<ServerSetting>) -> Self {
        self.set = set;
        self
    }

    /// Stops the servers that can write, in all sessions: warnings about files they wrote that
    /// other programs act on are then in the records. Servers of a session that continues are
    /// started again.
    pub async fn close(&self) {
        let sessions: Vec<_> = {
            let sessions = lock(&self.sessions);
            sessions.iter().filter_map(Weak::upgrade).collect()
        };
        for servers in sessions {
            let mut servers = servers.lock().await;
            let servers = servers.members.iter_mut();
            let servers = servers.filter_map(|it| it.server.take_if(|it| it.can_write()));
            futures_util::future::join_all(servers.map(McpServer::stop)).await;
        }
    }

    async fn reply(&self, mut request: Request, next: Next<'_>) -> Result<ChatResponse, TurnError> {
        let turn = request.turn.clone();
        let servers = self.servers(&turn.session);
        {
            let mut servers = servers.lock().await;
            turn.within(self.update(&mut servers, &turn)).await;
            let running = servers.members.iter().filter_map(|it| Some((it, it.server.as_ref()?)));
            for (member, server) in running {
                server.tools().into_iter().for_each(|it| request.offer(it));
                member.skills.iter().for_each(|it| request.offer(it.clone()));
            }
            request.context.extend(servers.members.iter().filter_map(SessionServer::outage));
            let asked = prowess::request(&request.prompt.history);
            request.context.extend(asked.and_then(|it| servers.matching_skills(it, &turn.session)));
        }
        next.reply(request).await
    }

    fn servers(&self, session: &Session) -> Arc<AsyncMutex<SessionServers>> {
        let servers = session.keep(AsyncMutex::<SessionServers>::default);
        let mut sessions = lock(&self.sessions);
        sessions.retain(|it| it.strong_count() > 0);
        if sessions.iter().all(|it| !std::ptr::eq(it.as_ptr(), &*servers)) {
            sessions.push(Arc::downgrade(&servers));
        }
        servers
    }

    /// Stops servers that are no longer wanted, and starts those that are.
    async fn update(&self, servers: &mut SessionServers, turn: &Turn) {
        let library = self.provider.library();
        if !std::mem::replace(&mut servers.has_set, true) {
            let set = self.set.iter().map(|it| {
                SessionServer::new(
                    ServerToStart::Configured(it.clone()),
                    it.description.name.clone(),
                )
            });
            servers.members.extend(set);
        }
        let gone: Vec<SessionServer> = servers
            .members
            .extract_if(.., |it: &mut SessionServer| !it.wanted.exists(&library))
            .collect();
        for mut member in gone {
            if let ServerToStart::OfSkill { path, .. } = &member.wanted {
                servers.seen.remove(path);
            }
            if let Some(server) = member.server.take() {
                server.stop().await;
                turn.note(member.event("stopped", "its skill is gone"));
            }
        }
        let active = turn.active_skills().skills_of(&library);
        for skill in &active {
            if servers.seen.insert(skill.origin.path.clone()) {
                self.add(servers, skill, turn).await;
            }
        }
        let manifests: Vec<Manifest> = active.iter().map(|it| it.manifest.clone()).collect();
        for member in &mut servers.members {
            member.update(&self.starter, &library, &manifests, turn).await;
        }
    }

    /// Adds the servers that a skill declares.
    async fn add(&self, servers: &mut SessionServers, skill: &Skill, turn: &Turn) {
        let own = &*skill.manifest.name;
        let described = self.starter.servers_of(skill).await;
        for fault in described.faults {
            turn.note(EventKind::Warned { message: format!("the skill `{own}`: {fault}") });
        }
        for description in described.servers {
            let is_taken = servers.members.iter().any(|it| it.name == description.name);
            let name = match is_taken {
                true => format!("{own} {}", description.name),
                false => description.name.clone(),
            };
            let (skill, path) = (own.to_owned(), skill.origin.path.clone());
            servers.members.push(SessionServer::new(
                ServerToStart::OfSkill { skill, path, description },
                name,
            ));
        }
    }
}

impl Middleware for Servers {
    fn name(&self) -> &str {
        "servers"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(self.reply(request, next))
    }
}

impl Drop for Servers {
    /// Stops the servers of sessions that outlive this middleware.
    fn drop(&mut self) {
        let sessions = self.sessions.get_mut().unwrap_or_else(PoisonError::into_inner);
        for servers in sessions.iter().filter_map(Weak::upgrade) {
            // A task that holds the lock would keep this middleware alive too.
            if let Ok(mut servers) = servers.try_lock() {
                servers.members.clear();
            }
        }
    }
}

impl SessionServers {
    /// Returns the context that lists the skills of servers that match a request.
    fn matching_skills(&self, request: &Message, session: &Session) -> Option<Context> {
        let running = self.members.iter().filter(|it| it.server.is_some());
        let tools = running.filter_map(|it| it.skills.as_ref());
        let found = tools.flat_map(|tool| {
            let found = tool.matches(&request.content, FITTING).into_iter();
            found.map(move |(skill, confidence)| (tool.name(), skill, confidence))
        });
        let thresholds = Thresholds::default();
        let mut found: Vec<_> =
            found.filter(|it| thresholds.level(it.2) != Level::Metadata).collect();
        found.sort_by(|one, other| other.2.total_cmp(&one.2));
        let lines: String = found
            .into_iter()
            .take(FITTING)
            .map(|(tool, skill, _): (&str, RemoteSkill, f64)| {
                let description = brief_line(&skill.description, MAX_DESCRIPTION);
                format!("- `{}`, by `{tool}`: {description}\n", skill.address)
            })
            .collect();
        if lines.is_empty() {
            return None;
        }
        let text = format!(
            "Skills of servers that may fit, each with the tool that loads it. Their servers wrote the \
             descriptions:\n{}",
            session.marker().fence(&lines)
        );
        Some(Context { from: "servers".to_owned(), text })
    }
}

impl ServerToStart {
    fn exists(&self, library: &Library) -> bool {
        match self {
            Self::OfSkill { skill, path, .. } => find(library, skill, path).is_some(),
            Self::Configured(_) => true,
        }
    }
}

impl SessionServer {
    fn new(wanted: ServerToStart, name: String) -> Self {
        let why = String::new();
        Self { wanted, name, server: None, skills: None, retried: 0, patience: FAILURES, why }
    }

    /// Starts it if it does not run, but only once per turn if it has failed before.
    async fn update(
        &mut self,
        starter: &McpLauncher,
        library: &Library,
        active: &[Manifest],
        turn: &Turn,
    ) {
        let changes = match &self.server {
            Some(server) => server.changes().await,
            None => None,
        };
        if let Some(message) = changes {
            turn.note(EventKind::Warned { message });
        }
        if let Some(server) = self.server.take_if(|it| !it.is_alive()) {
            let message = describe_outcome(&server.fault().await);
            server.stop().await;
            self.skills = None;
            self.fail(turn, 0, &message);
        }
        match &self.server {
            Some(server) => {
                if server.refresh().await {
                    turn.note(self.started_event(server));
                }
                if server.has_other_skills() {
                    self.skills = self.skill_tool(server, turn).await;
                }
            }
            None if self.patience == 0 || self.retried == turn.number => {}
            None => {
                if self.patience < FAILURES {
                    self.retried = turn.number;
                }
                let started = match &self.wanted {
                    ServerToStart::OfSkill { skill, path, description } => {
                        let Some(skill) = find(library, skill, path) else { return };
                        starter.start(skill, description, &self.name, active).await
                    }
                    ServerToStart::Configured(set) => starter.connect(set).await,
                };
                match started {
                    Ok(server) => {
                        turn.note(self.started_event(&server));
                        self.skills = self.skill_tool(&server, turn).await;
                        self.server = Some(server);
                    }
                    Err(outcome) if outcome.status == OutcomeStatus::Refused => {
                        self.patience = 0;
                        self.why = describe_outcome(&outcome);
                        turn.note(self.event("refused", &self.why));
                    }
                    Err(outcome) => self.fail(turn, turn.number, &describe_outcome(&outcome)),
                }
            }
        }
    }

    /// Returns the tool for the skills that a server offers now. Faults of rejected ones are
    /// reported.
    async fn skill_tool(&self, server: &McpServer, turn: &Turn) -> Option<Arc<ServerSkills>> {
        let skills = match server.skills().await {
            Ok(skills) => skills,
            Err(outcome) => {
                turn.note(EventKind::Warned { message: describe_outcome(&outcome) });
                return self.skills.clone();
            }
        };
        for (uri, why) in skills.refused.iter().take(MAX_REFUSED) {
            let message =
                format!("the server `{}`: the skill `{uri}` is refused: {why}", self.name);
            turn.note(EventKind::Warned { message });
        }
        let tool = match &self.skills {
            None => server.skill_tool(skills),
            Some(tool) => Arc::new(tool.relisted(skills)),
        };
        Some(tool).filter(|it| !it.is_empty())
    }

    fn fail(&mut self, turn: &Turn, retried: usize, message: &str) {
        self.patience -= 1;
        self.retried = self.retried.max(retried);
        message.clone_into(&mut self.why);
        turn.note(self.event("failed", message));
    }

    /// Returns the context about a server that does not run, so that the model does not look for
    /// its tools.
    fn outage(&self) -> Option<Context> {
        let why = self.why.lines().next().filter(|_| self.server.is_none())?;
        let (server, of) = match &self.wanted {
            ServerToStart::OfSkill { skill, description, .. } => {
                (&description.name, format!(" of the skill `{skill}`"))
            }
            ServerToStart::Configured(_) => (&self.name, String::new()),
        };
        let text =
            format!("The server `{server}`{of} does not run, so its tools are not there: {why}");
        Some(Context { from: format!("server:{server}"), text })
    }

    fn started_event(&self, server: &McpServer) -> EventKind {
        let tools = server.tools();
        let names: Vec<&str> = tools.iter().map(|it| it.name()).collect();
        let lines = std::iter::once(names.join(", ")).chain(server.left_out());
        self.event("started", &lines.collect::<Vec<_>>().join("\n"))
    }

    fn event(&self, state: &str, message: &str) -> EventKind {
        let (server, skill) = match &self.wanted {
            ServerToStart::OfSkill { skill, description, .. } => (&description.name, skill.clone()),
            ServerToStart::Configured(set) => (&set.description.name, String::new()),
        };
        EventKind::Server {
            server: server.clone(),
            skill,
            state: state.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// Returns a skill if it still exists and is enabled.
fn find<'l>(library: &'l Library, name: &str, path: &Path) -> Option<&'l Skill> {
    library.get(name).filter(|it| *it.origin.path == *path && it.manifest.is_active())
}

/// Describes an outcome: the reason, and the hint.
fn describe_outcome(outcome: &Outcome) -> String {
    let message = outcome.message.clone().unwrap_or_default();
    let errors = outcome.stderr.as_ref().map(|it| it.text.trim()).filter(|it| !it.is_empty());
    let lines = [Some(message.as_str()), outcome.hint.as_deref(), errors];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}
