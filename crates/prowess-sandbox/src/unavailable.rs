//! Replaces the engine if it is not built: nothing can be run.

use tokio::net::UnixStream;

use crate::{
    error::SandboxError, job::Job, launcher::Launcher, level::SandboxLevel, result::RunResult,
    running::RunningProgram, support::SandboxSupport, work::Work,
};

/// Runs nothing.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) launcher: Launcher,
    pub(crate) levels: Vec<SandboxLevel>,
}

impl Engine {
    pub(crate) async fn run(
        &self,
        _: Job,
        _: impl Future<Output = ()>,
    ) -> Result<(RunResult, Work), SandboxError> {
        Err(unavailable())
    }

    pub(crate) fn start(&self, _: Job) -> Result<(RunningProgram, UnixStream), SandboxError> {
        Err(unavailable())
    }
}

pub(crate) fn probe(_: &Launcher) -> SandboxSupport {
    SandboxSupport { level: SandboxLevel::None, checks: Vec::new() }
}

fn unavailable() -> SandboxError {
    SandboxError::Unavailable {
        reason: "this program was built without its sandbox".to_owned(),
        remedy: "build it with the feature `run` of `prowess-sandbox`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Job, Launcher, RunLimits, Sandbox, SandboxError, SandboxLevel, Work};

    #[test]
    fn nothing_runs_where_it_was_not_built() {
        let sandbox = Sandbox::new(Launcher::hook(), SandboxLevel::Landlock);
        assert_eq!(sandbox.probe().level, SandboxLevel::None);
        for sandbox in [sandbox.clone(), sandbox.unconfined()] {
            let job = Job::new(vec!["true".into()], Work::new().unwrap(), RunLimits::default());
            let error = sandbox.start(job).unwrap_err();
            assert!(matches!(error, SandboxError::Unavailable { .. }), "{error}");
        }
    }
}
