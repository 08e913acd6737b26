//! Runs programs confined.

use std::future;

use crate::{
    engine::{self, Engine},
    error::SandboxError,
    job::Job,
    launcher::Launcher,
    level::SandboxLevel,
    platform::ProgramStream,
    result::RunResult,
    running::RunningProgram,
    support::SandboxSupport,
    work::Work,
};

/// Runs programs confined. By default at the best level that the machine supports, with the launcher
/// of [`Launcher::find`].
#[derive(Debug, Clone)]
pub struct Sandbox {
    launcher: Launcher,
    least: SandboxLevel,
    most: SandboxLevel,
}

impl Sandbox {
    /// Creates a sandbox that runs programs at the level `least` or above, and nothing if that is
    /// not available. Has no side effects.
    pub fn new(launcher: Launcher, least: SandboxLevel) -> Self {
        Self { launcher, least: least.max(SandboxLevel::Landlock), most: SandboxLevel::Strong }
    }

    /// Limits it to this level, even if the machine supports a higher one.
    #[must_use]
    pub fn at_most(self, most: SandboxLevel) -> Self {
        let most = most.max(SandboxLevel::Landlock);
        Self { least: self.least.min(most), most, ..self }
    }

    /// Runs programs unconfined: with limits and an environment of their own, but with all
    /// permissions of the user. For a single run that the user explicitly asked for.
    #[must_use]
    pub fn unconfined(self) -> Self {
        Self { least: SandboxLevel::None, most: SandboxLevel::None, ..self }
    }

    /// Always confines programs, even after [`unconfined`](Self::unconfined).
    #[must_use]
    pub fn confined(self) -> Self {
        let most = if self.most == SandboxLevel::None { SandboxLevel::Strong } else { self.most };
        Self { least: self.least.max(SandboxLevel::Landlock), most, ..self }
    }

    /// Runs a job to its end, and removes its work directory. Dropping the future kills all its
    /// processes.
    pub async fn run(&self, job: Job) -> Result<RunResult, SandboxError> {
        self.run_keeping(job).await.map(|it| it.0)
    }

    /// Like [`run`](Self::run), but returns the work directory with the files the script left
    /// there.
    pub async fn run_keeping(&self, job: Job) -> Result<(RunResult, Work), SandboxError> {
        self.run_until(job, future::pending()).await
    }

    /// Like [`run_keeping`](Self::run_keeping), but ends the run when `cancel` completes: the
    /// result contains everything up to then.
    pub async fn run_until(
        &self,
        job: Job,
        cancel: impl Future<Output = ()>,
    ) -> Result<(RunResult, Work), SandboxError> {
        self.engine().run(job, cancel).await
    }

    /// Starts an interactive job: the returned stream is its stdin and stdout. A failure to start
    /// is reported as its end. Requires a `tokio` runtime.
    pub fn start(&self, job: Job) -> Result<(RunningProgram, ProgramStream), SandboxError> {
        self.engine().start(job)
    }

    /// Whether it confines programs.
    pub fn confines(&self) -> bool {
        self.most != SandboxLevel::None
    }

    /// Returns the level that programs would run at; *none* if nothing would run.
    pub fn level(&self) -> SandboxLevel {
        let level = self.probe().level.min(self.most);
        if level < self.least { SandboxLevel::None } else { level }
    }

    /// Determines the sandbox features that this machine supports.
    pub fn probe(&self) -> SandboxSupport {
        engine::probe(&self.launcher)
    }

    fn engine(&self) -> Engine {
        let all = [SandboxLevel::Strong, SandboxLevel::Landlock, SandboxLevel::None];
        let levels = all.into_iter().filter(|it| (self.least..=self.most).contains(it));
        Engine::new(self.launcher.clone(), levels.collect())
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new(Launcher::find(), SandboxLevel::Landlock)
    }
}
