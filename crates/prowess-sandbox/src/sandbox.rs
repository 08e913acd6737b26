//! Runs programs so that they can do no more than they should.

use std::future;

use tokio::net::UnixStream;

use crate::{
    engine::{self, Engine},
    error::SandboxError,
    job::Job,
    launcher::Launcher,
    level::SandboxLevel,
    result::RunResult,
    running::RunningProgram,
    support::SandboxSupport,
    work::Work,
};

/// Runs programs so that they can do no more than they should.
#[derive(Debug, Clone)]
pub struct Sandbox {
    launcher: Launcher,
    least: SandboxLevel,
    most: SandboxLevel,
}

impl Sandbox {
    /// A sandbox that runs nothing with less than `least` around it, and nothing at all without one.
    /// Touches nothing.
    pub fn new(launcher: Launcher, least: SandboxLevel) -> Self {
        Self { launcher, least: least.max(SandboxLevel::Landlock), most: SandboxLevel::Strong }
    }

    /// The same with no more than this level, even if the machine gives more.
    #[must_use]
    pub fn at_most(self, most: SandboxLevel) -> Self {
        let most = most.max(SandboxLevel::Landlock);
        Self { least: self.least.min(most), most, ..self }
    }

    /// Runs programs without confining them: with limits and an environment of their own, but with
    /// all that the user may do. For a single run that somebody has asked for in so many words.
    #[must_use]
    pub fn without(self) -> Self {
        Self { least: SandboxLevel::None, most: SandboxLevel::None, ..self }
    }

    /// The same, but never without confining what it runs.
    #[must_use]
    pub fn confined(self) -> Self {
        let most = if self.most == SandboxLevel::None { SandboxLevel::Strong } else { self.most };
        Self { least: self.least.max(SandboxLevel::Landlock), most, ..self }
    }

    /// Runs a job to its end. Its work directory is gone then. Dropped before, it leaves nobody alive
    /// either.
    pub async fn run(&self, job: Job) -> Result<RunResult, SandboxError> {
        self.run_keeping(job).await.map(|it| it.0)
    }

    /// The same, but returns the work directory with what the script left there.
    pub async fn run_keeping(&self, job: Job) -> Result<(RunResult, Work), SandboxError> {
        self.run_until(job, future::pending()).await
    }

    /// The same, but ends the run when somebody cancels it: the result is what came of it so far.
    pub async fn run_until(
        &self,
        job: Job,
        cancel: impl Future<Output = ()>,
    ) -> Result<(RunResult, Work), SandboxError> {
        self.engine().run(job, cancel).await
    }

    /// Starts a job that is spoken with through what is returned: what is written there it reads from
    /// its stdin, what it prints is read there. Why one did not begin is how it ended. Only within a
    /// runtime.
    pub fn start(&self, job: Job) -> Result<(RunningProgram, UnixStream), SandboxError> {
        self.engine().start(job)
    }

    /// Whether it confines what it runs.
    pub fn confines(&self) -> bool {
        self.most != SandboxLevel::None
    }

    /// The level that programs would run at; *none* where nothing would run.
    pub fn level(&self) -> SandboxLevel {
        let level = self.probe().level.min(self.most);
        if level < self.least { SandboxLevel::None } else { level }
    }

    /// Finds out which sandbox features this machine supports.
    pub fn probe(&self) -> SandboxSupport {
        engine::probe(&self.launcher)
    }

    fn engine(&self) -> Engine {
        let all = [SandboxLevel::Strong, SandboxLevel::Landlock, SandboxLevel::None];
        let levels = all.into_iter().filter(|it| (self.least..=self.most).contains(it));
        Engine { launcher: self.launcher.clone(), levels: levels.collect() }
    }
}
