//! Replaces the engine where there is none: nothing can be run.

use crate::{
    error::SandboxError,
    job::Job,
    launcher::Launcher,
    level::SandboxLevel,
    platform::ProgramStream,
    result::RunResult,
    running::RunningProgram,
    support::{FeatureCheck, SandboxSupport},
    work::Work,
};

/// Runs nothing.
#[derive(Debug, Clone)]
pub(crate) struct Engine;

impl Engine {
    pub(crate) fn new(_: Launcher, _: Vec<SandboxLevel>) -> Self {
        Self
    }

    pub(crate) async fn run(
        &self,
        _: Job,
        _: impl Future<Output = ()>,
    ) -> Result<(RunResult, Work), SandboxError> {
        Err(unavailable())
    }

    pub(crate) fn start(&self, _: Job) -> Result<(RunningProgram, ProgramStream), SandboxError> {
        Err(unavailable())
    }
}

/// Reports that nothing can be run.
pub(crate) fn probe(_: &Launcher) -> SandboxSupport {
    let check = FeatureCheck {
        name: "system",
        supported: Some(false),
        detail: REASON.to_owned(),
        remedy: Some(REMEDY.to_owned()),
    };
    SandboxSupport { level: SandboxLevel::None, checks: vec![check] }
}

#[cfg(not(feature = "run"))]
const REASON: &str = "this program was built without its sandbox";
#[cfg(not(feature = "run"))]
const REMEDY: &str = "build it with the feature `run` of `prowess-sandbox`";
#[cfg(feature = "run")]
const REASON: &str = "running programs needs Linux or another Unix system, and this is Windows";
#[cfg(feature = "run")]
const REMEDY: &str = "use Linux, for example in the Windows Subsystem for Linux";

fn unavailable() -> SandboxError {
    SandboxError::Unavailable { reason: REASON.to_owned(), remedy: REMEDY.to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::{Job, Launcher, RunLimits, Sandbox, SandboxError, SandboxLevel, Work};

    #[test]
    fn nothing_runs_where_there_is_no_engine() {
        let sandbox = Sandbox::new(Launcher::hook(), SandboxLevel::Landlock);
        let support = sandbox.probe();
        assert_eq!(support.level, SandboxLevel::None);
        assert!(support.checks[0].remedy.is_some());
        for sandbox in [sandbox.clone(), sandbox.unconfined()] {
            let job = Job::new(vec!["true".into()], Work::new().unwrap(), RunLimits::default());
            let error = sandbox.start(job).unwrap_err();
            assert!(matches!(error, SandboxError::Unavailable { .. }), "{error}");
        }
    }
}
