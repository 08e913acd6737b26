//! A skill with MCP servers in plain Python, and a launcher for them.

use std::{env, fs, os::unix::fs::PermissionsExt as _, sync::Arc, time::Duration};

use prowess::Manifest;
use prowess_mcp::{
    client::{McpLauncher, McpServer, ServerTimeouts},
    config::{McpServerConfig, ServerSetting, SkillServers},
};
use prowess_runtime::{
    Authorizer, DenyAll, Launcher, Outcome, Policy, Sandbox,
    approval::{ApproveAll, Approver},
    sandbox::{RunLimits, SandboxLevel},
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::world::{self, World, until};

/// The timeouts of servers: longer than anything takes.
pub const PATIENCE: ServerTimeouts = ServerTimeouts {
    start: Duration::from_secs(30),
    discovery: Duration::from_secs(15),
    call: Duration::from_secs(30),
    stop: Duration::from_millis(500),
};

/// A skill `notes` that may have servers, and a launcher for them.
#[derive(Debug)]
pub struct Stage {
    pub world: World,
    pub runtime: Runtime,
    /// An argument of the server, by which its processes are found.
    marker: String,
}

impl Stage {
    pub fn new() -> Self {
        let world = World::new().skill("notes", "Takes notes");
        let root = world.path("home").parent().unwrap().to_owned();
        let marker = root.file_name().unwrap().to_str().unwrap().to_owned();
        Self { world, runtime: Runtime::new().unwrap(), marker }
    }

    /// Adds a server `files`, whose behaviour is a piece of Python.
    pub fn with_server(behaviour: &str) -> Self {
        let stage = Self::new();
        let args = ["server.py", &stage.marker];
        let describe = json!({"mcpServers": {"files": {"command": "python3", "args": args}}});
        stage.file(".mcp.json", describe).file("server.py", python_server(behaviour))
    }

    /// Adds an executable file to the skill.
    pub fn file(self, path: &str, content: impl ToString) -> Self {
        self.world.write(format!("skills/notes/{path}"), content.to_string());
        let path = self.world.path(format!("skills/notes/{path}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Returns the servers that the skill configures.
    pub fn described(&self) -> SkillServers {
        let library = self.world.load();
        let launcher = mcp_launcher(Policy::default(), Arc::new(DenyAll));
        self.runtime.block_on(launcher.servers_of(library.get("notes").unwrap()))
    }

    /// Starts the only server, approved.
    pub fn start_only(&self) -> Result<McpServer, Box<Outcome>> {
        self.start_with(&mcp_launcher(Policy::default(), Arc::new(ApproveAll)))
    }

    pub fn start_with(&self, launcher: &McpLauncher) -> Result<McpServer, Box<Outcome>> {
        let library = self.world.load();
        let skill = library.get("notes").unwrap();
        let active: Vec<Manifest> = vec![skill.manifest.clone()];
        self.runtime.block_on(async {
            let described = launcher.servers_of(skill).await;
            let [description] = &described.servers[..] else { panic!("{described:?}") };
            launcher.start(skill, description, &description.name, &active).await
        })
    }

    /// Calls a tool of a server, without an authorizer.
    pub fn call(&self, server: &McpServer, tool: &str, input: Json) -> Outcome {
        call(&self.runtime, server, tool, input)
    }

    /// Returns the text of a call that succeeds.
    pub fn text(&self, server: &McpServer, tool: &str, input: Json) -> String {
        let outcome = self.call(server, tool, input);
        assert!(outcome.is_ok(), "{outcome:?}");
        outcome.output.unwrap().as_str().unwrap().to_owned()
    }

    /// Returns the number of processes of the server.
    pub fn processes(&self) -> usize {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
        let own = |line: &Vec<u8>| {
            let words = line.split(|it| *it == 0);
            words
                .skip(1)
                .any(|word| word.windows(self.marker.len()).any(|it| it == self.marker.as_bytes()))
        };
        lines.filter(own).count()
    }

    /// Returns the number of work directories with a copy of the skill.
    pub fn works(&self) -> usize {
        let all = fs::read_dir(env::temp_dir()).unwrap().flatten();
        let copies = all.map(|it| it.path().join("given/skill/.mcp.json"));
        let texts = copies.filter_map(|it| fs::read_to_string(it).ok());
        texts.filter(|it| it.contains(&self.marker)).count()
    }

    /// Waits until no process of the server is left.
    pub fn nobody_is_left(&self) {
        until("no process of the server is left", || self.processes() == 0);
    }
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the best sandbox of this machine.
pub fn sandbox() -> Sandbox {
    Sandbox::new(Launcher::program(world::launcher()), SandboxLevel::Landlock)
}

/// Returns a launcher of servers with this policy and approver.
pub fn mcp_launcher(policy: Policy, approver: Arc<dyn Approver>) -> McpLauncher {
    mcp_launcher_of(Authorizer::new(policy, approver))
}

/// Returns a launcher of servers with this authorizer.
pub fn mcp_launcher_of(authorizer: impl Into<Arc<Authorizer>>) -> McpLauncher {
    McpLauncher::new(authorizer.into(), sandbox(), RunLimits::default()).with_patience(PATIENCE)
}

/// Calls a tool of a server, without an authorizer.
pub fn call(runtime: &Runtime, server: &McpServer, tool: &str, input: Json) -> Outcome {
    let name = format!("__{tool}");
    let tools = server.tools();
    let found = tools.iter().find(|it| it.name().ends_with(&name));
    let found = found.unwrap_or_else(|| panic!("no tool `{tool}` of `{}`", server.name()));
    runtime.block_on(found.call(input))
}

/// Returns a server as a user sets it.
pub fn setting(label: &str, entry: &Json) -> ServerSetting {
    let description = McpServerConfig::read(label, entry.as_object().unwrap()).unwrap().unwrap();
    ServerSetting { description, is_trusted: true, place: None }
}

/// Returns the message of an outcome, and its hint.
pub fn message(outcome: &Outcome) -> String {
    let [message, hint] = [&outcome.message, &outcome.hint].map(|it| it.as_deref().unwrap_or(""));
    format!("{message} / {hint}")
}

/// Returns a policy that allows requests to this machine.
pub fn local() -> Policy {
    Policy { hosts: Some(vec!["127.0.0.1".to_owned()]), ..Policy::default() }
}

/// Returns a server in plain Python, with special behaviour.
pub fn python_server(behaviour: &str) -> String {
    format!(
        r#"import json, os, sys, time
def send(**message): print(json.dumps(dict(jsonrpc='2.0', **message)), flush=True)
def text(it): return {{'content': [{{'type': 'text', 'text': it}}]}}
def tool(name, **more): return {{'name': name, 'inputSchema': {{'type': 'object'}}, **more}}
def tools(cursor): return {{'tools': [tool('echo')]}}
def call(name, given): return text(json.dumps(given))
{behaviour}
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get('method'), message.get('id'), message.get('params') or {{}}
    if method == 'initialize':
        version = params['protocolVersion']
        info = {{'name': 'plain', 'version': '1'}}
        send(id=id, result={{'protocolVersion': version, 'capabilities': {{'tools': {{'listChanged': True}}}}, 'serverInfo': info}})
    elif method == 'tools/list':
        send(id=id, result=tools(params.get('cursor')))
    elif method == 'tools/call':
        send(id=id, result=call(params['name'], params.get('arguments')))
    elif id is not None:
        send(id=id, error={{'code': -32601, 'message': 'no such method'}})
"#
    )
}
