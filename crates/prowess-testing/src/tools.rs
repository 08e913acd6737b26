//! Tools in a folder, and approvers that remember what they were asked.

use std::{
    fmt, fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use prowess_runtime::{
    Authorizer, Launcher, Outcome, Policy, Sandbox, Tool, Toolbox,
    approval::{Approver, ApproverFuture, ApproverReply, Question},
    policy::{Decision, Roots, UnlistedCommands},
    sandbox::{Root, RunLimits, SandboxLevel},
    tools::{ExecuteCommand, FileOperations},
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::world::{self, PATIENCE, World};

/// An approver that always gives the same reply, and remembers the questions.
pub struct Asked {
    reply: ApproverReply,
    before: Box<dyn Fn() + Send + Sync>,
    questions: Mutex<Vec<Question>>,
}

/// The folder `work` of a world, for a policy and tools.
#[derive(Debug)]
pub struct WorkFolder<'w>(pub &'w World);

impl Asked {
    pub fn new(reply: ApproverReply) -> Self {
        Self::after(reply, || {})
    }

    /// Like [`new`](Self::new), and does something before it replies.
    pub fn after(reply: ApproverReply, before: impl Fn() + Send + Sync + 'static) -> Self {
        Self { reply, before: Box::new(before), questions: Mutex::default() }
    }

    pub fn questions(&self) -> Vec<Question> {
        self.questions.lock().unwrap().clone()
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("reply", &self.reply).finish_non_exhaustive()
    }
}

impl Approver for Asked {
    fn who(&self) -> &str {
        "person"
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        self.questions.lock().unwrap().push(question.clone());
        (self.before)();
        Box::pin(async { self.reply })
    }
}

impl WorkFolder<'_> {
    pub fn root(&self) -> PathBuf {
        fs::create_dir_all(self.0.path("work")).unwrap();
        fs::canonicalize(self.0.path("work")).unwrap()
    }

    /// Returns a policy that asks about writes and about commands that are not listed.
    pub fn policy(&self) -> Policy {
        Policy {
            roots: vec![self.root()],
            writes: Decision::Ask,
            unlisted_commands: UnlistedCommands::Ask,
            ..Policy::default()
        }
    }

    pub fn files(&self) -> FileOperations {
        FileOperations::new(Arc::new(Roots::new(vec![Root::open(&self.root()).unwrap()])))
    }

    pub fn commands(&self, policy: &Policy) -> ExecuteCommand {
        let sandbox = Sandbox::new(Launcher::program(world::launcher()), SandboxLevel::Landlock);
        ExecuteCommand::new(policy.clone(), sandbox, RunLimits::default(), self.root())
    }

    pub fn toolbox(&self, policy: Policy, approver: Arc<dyn Approver>) -> Toolbox {
        let commands = self.commands(&policy);
        let authorizer = Authorizer::new(policy, approver).with_state(self.0.path("state"));
        Toolbox::new(Arc::new(authorizer)).with(Arc::new(self.files())).with(Arc::new(commands))
    }

    /// Returns the outcome of a command, and the questions about it.
    pub fn run(
        &self,
        line: &str,
        policy: Policy,
        reply: ApproverReply,
    ) -> (Outcome, Vec<Question>) {
        let asked = Arc::new(Asked::new(reply));
        let toolbox = self.toolbox(policy, asked.clone());
        let outcome = wait_for(toolbox.call("execute_command", json!({ "command": line })));
        (outcome, asked.questions())
    }
}

/// Calls a tool directly, without an authorizer.
pub fn call(tool: &dyn Tool, input: Json) -> Outcome {
    let runtime = Runtime::new().unwrap();
    let outcome = runtime.block_on(tool.call(input));
    // What the tool has left running is not waited for.
    runtime.shutdown_background();
    outcome
}

/// Waits until a condition holds, while other tasks go on.
pub async fn reached(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Goes on with a future until a condition holds, and drops it then.
pub async fn dropped_when<T>(
    what: &str,
    is: impl FnMut() -> bool,
    future: impl Future<Output = T>,
) {
    tokio::select! {
        _ = future => panic!("it has ended before: {what}"),
        () = reached(what, is) => {}
    }
}

/// Waits for a future.
pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(future)
}
