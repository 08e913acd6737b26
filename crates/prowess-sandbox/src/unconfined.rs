//! Runs programs on Unix systems without a sandbox: unconfined, if that was asked for, and nothing
//! otherwise.
//!
//! The system holds each process to its limits of CPU time, file size and descriptors, and a program
//! is ended with its whole process group. Other limits cannot be enforced, and a result lists them.

mod program;

use std::{
    env, io,
    os::fd::OwnedFd,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use self::program::{ProcessGroup, Program};
use crate::{
    ending::{self, Ending, StopCause},
    error::SandboxError,
    job::Job,
    launcher::Launcher,
    level::SandboxLevel,
    order::Order,
    platform::ProgramStream,
    result::RunResult,
    running::RunningProgram,
    streams::{StopRequest, Streams},
    support::{FeatureCheck, SandboxSupport},
    work::Work,
};

/// Runs jobs unconfined, and nothing if they are to be confined.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    levels: Vec<SandboxLevel>,
}

/// The time a program has to end after it is asked to, before it is killed.
const GRACE: Duration = Duration::from_millis(200);
/// Effectively never.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The limits that are not enforced, by their names in settings.
const UNENFORCED: [&str; 3] = ["memory", "processes", "work"];

impl Engine {
    pub(crate) fn new(_: Launcher, levels: Vec<SandboxLevel>) -> Self {
        Self { levels }
    }

    /// Runs a job until it ends or is cancelled.
    pub(crate) async fn run(
        &self,
        job: Job,
        cancel: impl Future<Output = ()>,
    ) -> Result<(RunResult, Work), SandboxError> {
        execute(self.order(&job)?, job, None, cancel).await
    }

    /// Starts an interactive job, connected by a socket.
    pub(crate) fn start(&self, job: Job) -> Result<(RunningProgram, ProgramStream), SandboxError> {
        let order = self.order(&job)?;
        let (ours, theirs) = socket_pair().map_err(|source| start_error(&order, source))?;
        let running = RunningProgram::spawn(move |cancel| async move {
            let cancelled = async { cancel.notified().await };
            execute(order, job, Some(theirs), cancelled).await.map(|it| it.0)
        });
        Ok((running, ours))
    }

    fn order(&self, job: &Job) -> Result<Order, SandboxError> {
        if self.levels.contains(&SandboxLevel::None) {
            Order::new(job, self.levels.clone())
        } else {
            Err(SandboxError::Unavailable { reason: reason(), remedy: REMEDY.to_owned() })
        }
    }
}

/// Reports that programs cannot be confined on this system.
pub(crate) fn probe(_: &Launcher) -> SandboxSupport {
    let check = FeatureCheck {
        name: "system",
        supported: Some(false),
        detail: reason(),
        remedy: Some(REMEDY.to_owned()),
    };
    SandboxSupport { level: SandboxLevel::None, checks: vec![check] }
}

const REMEDY: &str = "use Linux, also in a container or virtual machine; without a sandbox, a \
                      script runs only with `--unsandboxed` and an approval";

fn reason() -> String {
    let system = if cfg!(target_os = "macos") { "macOS" } else { env::consts::OS };
    format!("confining a program needs Linux, and this is {system}")
}

/// Executes a job as ordered, and captures its output, unless that goes to a socket.
async fn execute(
    order: Order,
    job: Job,
    socket: Option<OwnedFd>,
    cancel: impl Future<Output = ()>,
) -> Result<(RunResult, Work), SandboxError> {
    let start = Instant::now();
    let Job { work, limits, chunks, stdin, .. } = job;
    let mut streams = Streams::new(&limits, chunks);
    let failed = |source| start_error(&order, source);
    let Program { group, stdin: to, stdout, stderr, exit } =
        Program::start(&order, socket).map_err(failed)?;
    let _kill = KillOnDrop(group.clone());
    let _passing_on = stdin.zip(to).map(|(from, to)| from.pass_on(to));
    let stopped = OnceLock::new();
    let cancelled_or_late = async {
        let cause = tokio::select! {
            () = cancel => StopCause::Cancelled,
            () = sleep(limits.timeout.min(NEVER)) => StopCause::Time,
        };
        let _ = stopped.set(cause);
    };
    let stop = |why| {
        if why == StopRequest::Idle {
            let _ = stopped.set(StopCause::Idle);
        }
        stop_group(&group, stopped.get() != Some(&StopCause::Cancelled));
        Ok(())
    };
    let exit = async { exit.await.unwrap_or_else(|error| Err(io::Error::other(error))) };
    let exit = streams.take_until(exit, cancelled_or_late, stdout, stderr, stop).await;
    let exit = exit.map_err(failed)?;
    streams.pass_on_ends();
    let stopped = stopped.into_inner();
    let ending = Ending { level: SandboxLevel::None, exit, stopped, denied: Vec::new() };
    let result = RunResult {
        files: work.files().unwrap_or_default(),
        unenforced_limits: UNENFORCED.to_vec(),
        ..ending::result(ending, &limits, streams, start.elapsed())
    };
    Ok((result, work))
}

/// Kills a program, after some time to end by itself if that is `patient`.
fn stop_group(group: &Arc<ProcessGroup>, patient: bool) {
    if !patient {
        return group.kill();
    }
    group.ask_to_end();
    let group = group.clone();
    tokio::spawn(async move {
        sleep(GRACE).await;
        group.kill();
    });
}

/// Kills a program when the future of its run is dropped.
struct KillOnDrop(Arc<ProcessGroup>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

fn start_error(order: &Order, source: io::Error) -> SandboxError {
    let program = order.argv.first().map(|it| it.to_string_lossy()).unwrap_or_default();
    SandboxError::Start { what: format!("start `{program}`"), source }
}

/// Returns two connected sockets: ours, and one for a program.
fn socket_pair() -> io::Result<(ProgramStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((ProgramStream::from_std(ours)?, theirs.into()))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, future, path::Path, thread};

    use rustix::process::Pid;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        runtime::Runtime,
        sync::mpsc,
    };

    use super::*;
    use crate::{Chunk, RunLimits, RunStatus, Stdin};

    const OPEN: &[SandboxLevel] = &[SandboxLevel::None];
    /// A timeout of runs that end for another reason.
    const LONG: Duration = Duration::from_secs(100);

    fn engine(levels: &[SandboxLevel]) -> Engine {
        Engine::new(Launcher::program("/no/launcher"), levels.to_vec())
    }

    fn job(script: &str) -> Job {
        let argv = ["sh", "-c", script].map(Into::into).to_vec();
        let limits = RunLimits { timeout: LONG, ..RunLimits::default() };
        Job::new(argv, Work::new().unwrap(), limits)
    }

    fn run(job: Job) -> RunResult {
        let engine = engine(OPEN);
        Runtime::new().unwrap().block_on(engine.run(job, future::pending())).unwrap().0
    }

    /// Waits until the process whose number is in a file has ended.
    fn wait_for_end(file: &Path) {
        let number = fs::read_to_string(file).unwrap();
        let pid = Pid::from_raw(number.trim().parse().unwrap()).unwrap();
        while rustix::process::test_kill_process(pid).is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn nothing_runs_unless_it_may_run_unconfined() {
        let levels = [SandboxLevel::Strong, SandboxLevel::Landlock];
        let error = Runtime::new()
            .unwrap()
            .block_on(engine(&levels).run(job("true"), future::pending()))
            .unwrap_err();
        assert!(matches!(error, SandboxError::Unavailable { .. }), "{error}");
        let support = probe(&Launcher::program("/no/launcher"));
        assert_eq!(support.level, SandboxLevel::None);
        assert!(support.checks[0].detail.contains("needs Linux"), "{support:?}");
    }

    #[test]
    fn a_result_has_the_output_and_the_limits_that_do_not_hold() {
        let result = run(job("echo out; echo err >&2; echo x > file; exit 3"));
        assert_eq!((result.status, result.exit_code), (RunStatus::Failed, Some(3)));
        assert_eq!((&*result.stdout.text, &*result.stderr.text), ("out\n", "err\n"));
        assert_eq!((&*result.files, result.level), (&["file".to_owned()][..], SandboxLevel::None));
        assert_eq!(result.unenforced_limits, UNENFORCED);
    }

    #[test]
    fn the_environment_and_the_descriptors_of_the_host_are_not_passed_on() {
        let env = BTreeMap::from([("GIVEN".to_owned(), "yes".to_owned())]);
        let shell = run(Job { env, ..job("env | cut -d= -f1 | sort | tr '\\n' ' '") });
        let names = shell.stdout.text.replace("PWD ", "").replace("SHLVL ", "").replace("_ ", "");
        assert_eq!(names, "GIVEN HOME LANG PATH TMPDIR ");
        let (reader, _writer) = io::pipe().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let result = run(job(&format!("(: <&{number}) 2>/dev/null && echo open || echo closed")));
        assert_eq!(result.stdout.text, "closed\n");
    }

    #[test]
    fn a_limit_ends_a_program() {
        let limit = |change: fn(&mut RunLimits), script: &str| {
            let mut job = job(script);
            change(&mut job.limits);
            let result = run(job);
            (result.status, result.message.unwrap_or_default())
        };
        let (status, message) = limit(|it| it.timeout = Duration::from_millis(50), "sleep 600");
        assert_eq!((status, &*message), (RunStatus::TimedOut, "timed out after 0.05 s"));
        let idle = |it: &mut RunLimits| it.idle = Some(Duration::from_millis(50));
        let (status, message) = limit(idle, "sleep 600");
        assert_eq!((status, &*message), (RunStatus::TimedOut, "no output for 0.05 s"));
        let (status, message) = limit(|it| it.cpu = Duration::from_secs(1), "while :; do :; done");
        assert_eq!((status, &*message), (RunStatus::Killed, "used more than 1 s of CPU time"));
        let write = "exec dd if=/dev/zero of=file bs=64k count=64 2>/dev/null";
        let (status, message) = limit(|it| it.file = 1 << 20, write);
        assert_eq!((status, &*message), (RunStatus::Killed, "wrote a file larger than 1 MiB"));
        let result =
            run(Job { limits: RunLimits { output: 4, ..job("").limits }, ..job("echo 123456789") });
        assert_eq!(result.stdout.cut, 6, "{result:?}");
    }

    #[test]
    fn its_children_end_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let child = folder.path().join("child");
        let script = format!("sleep 600 >/dev/null 2>&1 & echo $! > '{}'", child.display());
        assert_eq!(run(job(&script)).status, RunStatus::Ok);
        wait_for_end(&child);
    }

    #[test]
    fn it_ends_when_its_future_is_dropped_and_when_it_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let child = folder.path().join("child");
        let script = |rest: &str| {
            format!("sleep 600 & echo $! > '{}'; echo started; {rest}", child.display())
        };
        Runtime::new().unwrap().block_on(async {
            let (sender, mut chunks) = mpsc::unbounded_channel();
            let engine = engine(OPEN);
            let run = engine.run(
                Job { chunks: Some(sender), ..job(&script("wait")) },
                future::pending(),
            );
            tokio::select! {
                ended = run => panic!("it has ended: {ended:?}"),
                chunk = chunks.recv() => assert_eq!(chunk, Some(Chunk::Stdout(b"started\n".into()))),
            }
            wait_for_end(&child);
            fs::remove_file(&child).unwrap();

            let (sender, mut chunks) = mpsc::unbounded_channel();
            let stubborn = script("trap '' TERM; wait");
            let job = Job { chunks: Some(sender), ..job(&stubborn) };
            let cancel = async move { _ = chunks.recv().await };
            let (result, _) = engine.run(job, cancel).await.unwrap();
            assert_eq!(result.status, RunStatus::Cancelled, "{result:?}");
            wait_for_end(&child);
        });
    }

    #[test]
    fn its_stdin_is_passed_on() {
        let given = Job { stdin: Some(Stdin::new(&b"given"[..])), ..job("cat") };
        assert_eq!(run(given).stdout.text, "given");
        assert_eq!(run(job("cat")).stdout.text, "");
        Runtime::new().unwrap().block_on(async {
            let (program, mut stream) =
                engine(OPEN).start(job("read line; echo \"$line, too\"")).unwrap();
            stream.write_all(b"you\n").await.unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).await.unwrap();
            assert_eq!(said, "you, too\n");
            assert_eq!(program.end().await.unwrap().status, RunStatus::Ok);
        });
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let job = Job { argv: vec!["/no/such/program".into()], ..job("") };
        let ended = Runtime::new().unwrap().block_on(engine(OPEN).run(job, future::pending()));
        let error = ended.unwrap_err();
        assert_eq!(error.to_string(), "cannot start `/no/such/program`");
    }
}
