//! A server of skills in this process, and its clients.

use std::sync::Arc;

use prowess::{Listing, LiveLibrary, Options, Thresholds};
use prowess_mcp::server::{Http, HttpServer, ServeOptions, ServerState, SkillServer};
use prowess_runtime::{
    Authorizer, DenyAll, Executor, Policy, Toolbox,
    sandbox::RunLimits,
    skill::{ActiveSkills, PermittedSkills},
    tools::{FindSkills, ReadSkillFile, RunSkill, UseSkill},
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::{
    mcp_messages::{At, Revision, V2025},
    skill_servers::sandbox,
    world::World,
};

/// What is served, and to whom.
#[derive(Debug, Default)]
pub struct Serving {
    pub policy: Policy,
    pub options: ServeOptions,
    pub http: Http,
    /// Whether skills are run.
    pub runs: bool,
    /// Whether clients are notified of changes.
    pub watches: bool,
}

/// A server over HTTP. Ended when dropped.
#[derive(Debug)]
pub struct McpHost {
    pub at: At,
    _runtime: Runtime,
}

/// A client with a server of its own.
#[derive(Debug)]
pub struct McpClient {
    at: At,
    revision: Revision,
    /// The server's description: the result of `initialize` or `server/discover`.
    pub server: Json,
    _host: McpHost,
}

impl Serving {
    /// Serves a library as `prowess mcp` does.
    pub fn start(self, options: Options) -> McpHost {
        let resources = if self.watches { Listing::AtOnce } else { Listing::OnDemand };
        let options = Options { watch: self.watches, resources, ..options };
        let live_library = Arc::new(LiveLibrary::start(&options).unwrap());
        let authorizer = Arc::new(Authorizer::new(self.policy, Arc::new(DenyAll)));
        let provider = Arc::new(PermittedSkills::new(live_library, authorizer.clone()));
        let active = Arc::new(ActiveSkills::new(provider.clone()));
        let mut toolbox = Toolbox::new(authorizer.clone())
            .with(Arc::new(FindSkills {
                provider: provider.clone(),
                thresholds: Thresholds::default(),
            }))
            .with(Arc::new(UseSkill { active: active.clone() }))
            .with(Arc::new(ReadSkillFile { active: active.clone(), authorizer }));
        if self.runs {
            let executor = Executor::new(sandbox(), RunLimits::default());
            toolbox = toolbox.with(Arc::new(RunSkill { active, executor }));
        }
        let served = ServerState::new(provider, toolbox, self.options);
        let server = SkillServer::new(Arc::new(served));
        McpHost::of(if self.watches { server.watching() } else { server }, self.http)
    }
}

impl McpHost {
    /// Serves `skills/` of a world.
    pub fn new(world: &World, serving: Serving) -> Self {
        serving.start(world.options())
    }

    /// Serves at any port of this machine.
    pub fn of(server: SkillServer, http: Http) -> Self {
        let runtime = Runtime::new().unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        let host = runtime.block_on(HttpServer::bind(address, http)).unwrap();
        let port = host.url().rsplit([':', '/']).nth(1).unwrap().parse().unwrap();
        runtime.spawn(host.serve(server, std::future::pending()));
        Self { at: At { port, headers: Vec::new() }, _runtime: runtime }
    }
}

impl McpClient {
    /// Serves `skills/` of a world to a client of the last revision with a handshake.
    pub fn new(world: &World) -> Self {
        Self::with(world, V2025, Serving::default())
    }

    /// Like [`new`](Self::new), in another revision, served otherwise.
    pub fn with(world: &World, revision: Revision, serving: Serving) -> Self {
        Self::of(McpHost::new(world, serving), revision)
    }

    /// Begins a conversation with a host.
    pub fn of(host: McpHost, revision: Revision) -> Self {
        let (at, server) = match revision {
            Revision::Handshake(version) => host.at.begin(version),
            Revision::Stateless => {
                let discovered = host.at.ask_stateless("server/discover", json!({}));
                (host.at.clone(), discovered.json()["result"].take())
            }
        };
        Self { at, revision, server, _host: host }
    }

    /// Sends a request that succeeds, and returns its result.
    pub fn request(&self, method: &str, params: Json) -> Json {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Sends a request that fails, and returns its error.
    pub fn error(&self, method: &str, params: Json) -> Json {
        let mut answer = self.ask(method, params);
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].take()
    }

    /// Calls a tool.
    pub fn call(&self, tool: &str, arguments: Json) -> Json {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Sends a request, and returns the whole answer.
    pub fn ask(&self, method: &str, params: Json) -> Json {
        match self.revision {
            Revision::Handshake(_) => self.at.ask(method, params).json(),
            Revision::Stateless => self.at.ask_stateless(method, params).json(),
        }
    }
}
