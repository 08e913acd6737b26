//! Runs a script so that it can do no more than it should, and leaves nothing of it behind.
//!
//! The engine starts its own program again as a launcher, with an empty environment; the launcher
//! supervises the run from outside of what it holds.

mod work;
mod environment;
mod order;
mod launcher;
mod supervisor;
mod inside;
mod mounts;
mod rules;
mod filter;
mod listener;
mod tree;
mod sys;
mod capture;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    process::Child,
    sync::mpsc::UnboundedSender,
    time::sleep_until,
};

use crate::{
    limits::Limits,
    outcome::{Level, Outcome, Status},
};
use capture::Capture;
use order::{Ended, Exit, Failure, IDLE, Order, Reply, Stop, framed};

pub use launcher::Launcher;
pub use work::Work;

/// Runs scripts so that they can do no more than they should.
#[derive(Debug, Clone)]
pub struct Sandbox {
    launcher: Launcher,
    least: Level,
    most: Level,
}

/// What is to be run, and what it is given.
#[derive(Debug)]
pub struct Job {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Variables of its environment, beside `PATH`, `HOME`, `LANG` and `TMPDIR`.
    pub env: BTreeMap<String, String>,
    /// Where it begins; the work directory when not given.
    pub directory: Option<PathBuf>,
    /// Files and directories that it may read, besides the system.
    pub reads: Vec<PathBuf>,
    /// Files and directories that it may write, besides the work directory.
    pub writes: Vec<PathBuf>,
    /// Its private directory.
    pub work: Work,
    /// How long and how much it may take.
    pub limits: Limits,
    /// Gets what it prints as it comes, up to the limit of each stream.
    pub chunks: Option<UnboundedSender<Chunk>>,
}

/// A piece of what a script prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// From its stdout.
    Stdout(Vec<u8>),
    /// From its stderr.
    Stderr(Vec<u8>),
}

/// A script could not be started. One that ran and failed is an [`Outcome`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// This machine does not give what is needed to hold a script.
    #[error("no script is run, because this machine cannot hold it: {reason}")]
    Unavailable {
        /// What it does not give.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// A variable would change more than the script.
    #[error("the variable `{name}` may not be given to a script")]
    Variable {
        /// Its name.
        name: String,
    },
    /// What the script is to be given is not there, or cannot be given.
    #[error("cannot give `{}` to a script", path.display())]
    Path {
        /// What it is.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The script did not begin.
    #[error("cannot {what}")]
    Start {
        /// What could not be done.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// The launcher did not begin, or ended before its time.
    #[error("cannot run the launcher `{}`", program.display())]
    Launcher {
        /// Where it is.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// How long a stream may be silent after the end of its run. Nobody is left to write to it then.
const DRAIN: Duration = Duration::from_millis(500);
/// As good as never.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Sandbox {
    /// A sandbox that runs nothing with less than `least` around it, and nothing at all without one.
    /// Touches nothing.
    pub fn new(launcher: Launcher, least: Level) -> Self {
        Self { launcher, least: least.max(Level::Landlock), most: Level::Strong }
    }

    /// The same with no more than this level, even if the machine gives more.
    #[must_use]
    pub fn at_most(self, most: Level) -> Self {
        let most = most.max(Level::Landlock);
        Self { least: self.least.min(most), most, ..self }
    }

    /// Runs what it is given without holding it: with limits and an environment of its own, but with
    /// all that the user may do. For a single run that somebody has asked for in so many words.
    #[must_use]
    pub fn without(self) -> Self {
        Self { least: Level::None, most: Level::None, ..self }
    }

    /// Runs a job to its end. Its work directory is gone then; dropped before, it leaves nobody alive
    /// either.
    pub async fn run(&self, job: Job) -> Result<Outcome, SandboxError> {
        self.run_keeping(job).await.map(|it| it.0)
    }

    /// The same, but returns the work directory with what the script left there.
    pub async fn run_keeping(&self, job: Job) -> Result<(Outcome, Work), SandboxError> {
        let order = self.order(&job)?;
        let start = Instant::now();
        let Job { mut work, limits, chunks, .. } = job;
        let mut streams = Streams::new(limits.output, chunks);
        let (reply, control) =
            self.talk(&order, &mut streams).await.map_err(|source| self.launcher_error(source))?;
        work.supervisor = control.into_std().ok().map(Into::into);
        let ended = match reply {
            Reply::Ended(ended) => ended,
            Reply::Failed(failure) => return Err(failed(failure)),
            Reply::Unavailable(missing) => return Err(unavailable(&missing)),
        };
        let files = work.files().unwrap_or_default();
        let outcome =
            Outcome { files, duration: Some(start.elapsed()), ..outcome(ended, &limits, streams) };
        Ok((outcome, work))
    }

    /// What the launcher is told about a job.
    fn order(&self, job: &Job) -> Result<Order, SandboxError> {
        let unsafe_one =
            |(name, value): &(&String, &String)| !environment::is_harmless(name, value);
        if let Some((name, _)) = job.env.iter().find(unsafe_one) {
            return Err(SandboxError::Variable { name: name.clone() });
        }
        if job.argv.is_empty() {
            let source = io::ErrorKind::InvalidInput.into();
            return Err(SandboxError::Start { what: "run nothing".to_owned(), source });
        }
        let all = [Level::Strong, Level::Landlock, Level::None];
        let levels = all.into_iter().filter(|it| (self.least..=self.most).contains(it));
        let directory = job.directory.as_deref().unwrap_or(job.work.path());
        Ok(Order {
            argv: job.argv.clone(),
            env: job.env.clone(),
            directory: directory.into(),
            reads: job.reads.iter().map(|it| given(it)).collect::<Result<_, _>>()?,
            writes: job.writes.iter().map(|it| given(it)).collect::<Result<_, _>>()?,
            base: job.work.base().into(),
            limits: job.limits,
            levels: levels.collect(),
        })
    }

    /// Has the launcher do what is ordered, takes in what is printed, and returns what it replies.
    async fn talk(&self, order: &Order, streams: &mut Streams) -> io::Result<(Reply, UnixStream)> {
        let (control, mut child) = self.launcher.start(Stdio::piped)?;
        control.set_nonblocking(true)?;
        let mut control = UnixStream::from_std(control)?;
        control.write_all(&framed(order)?).await?;
        let (mut ear, mut mouth) = control.split();
        let reply = streams.take_until(&mut child, &mut mouth, order.limits.idle, reply(&mut ear));
        let reply = reply.await?;
        // It stays until the work directory is gone, and is reaped behind our back.
        tokio::spawn(async move { child.wait().await });
        Ok((reply, control))
    }

    fn launcher_error(&self, source: io::Error) -> SandboxError {
        SandboxError::Launcher { program: self.launcher.path().clone(), source }
    }
}

async fn reply(ear: &mut tokio::net::unix::ReadHalf<'_>) -> io::Result<Reply> {
    let length = ear.read_u32_le().await?;
    let mut body = vec![0; length as usize];
    ear.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

/// What a script prints, taken in.
struct Streams {
    stdout: Capture,
    stderr: Capture,
    most: u64,
    chunks: Option<UnboundedSender<Chunk>>,
}

impl Streams {
    fn new(most: u64, chunks: Option<UnboundedSender<Chunk>>) -> Self {
        Self { stdout: Capture::new(most), stderr: Capture::new(most), most, chunks }
    }

    /// Takes in what is printed until there is a reply, and what is left then. Asks for an end when
    /// nothing is printed for too long.
    async fn take_until(
        &mut self,
        child: &mut Child,
        mouth: &mut tokio::net::unix::WriteHalf<'_>,
        idle: Option<Duration>,
        reply: impl Future<Output = io::Result<Reply>>,
    ) -> io::Result<Reply> {
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let mut stdout = child.stdout.take().ok_or_else(missing)?;
        let mut stderr = child.stderr.take().ok_or_else(missing)?;
        let (mut out, mut err) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        let (mut out_open, mut err_open) = (true, true);
        let mut ended = None;
        let mut patience = idle.unwrap_or(NEVER);
        let mut last = tokio::time::Instant::now();
        tokio::pin!(reply);
        while ended.is_none() || out_open || err_open {
            tokio::select! {
                count = stdout.read(&mut out), if out_open => {
                    let count = count?;
                    out_open = count > 0;
                    self.take_stdout(&out[..count]);
                }
                count = stderr.read(&mut err), if err_open => {
                    let count = count?;
                    err_open = count > 0;
                    self.take_stderr(&err[..count]);
                }
                reply = &mut reply, if ended.is_none() => {
                    ended = Some(reply?);
                    patience = DRAIN;
                }
                () = sleep_until(last + patience) => {
                    if ended.is_some() {
                        break;
                    }
                    mouth.write_all(&[IDLE]).await?;
                    patience = NEVER;
                }
            }
            last = tokio::time::Instant::now();
        }
        ended.ok_or_else(missing)
    }

    fn take_stdout(&mut self, bytes: &[u8]) {
        self.pass_on(Chunk::Stdout, self.stdout.total(), bytes);
        self.stdout.take(bytes);
    }

    fn take_stderr(&mut self, bytes: &[u8]) {
        self.pass_on(Chunk::Stderr, self.stderr.total(), bytes);
        self.stderr.take(bytes);
    }

    /// Passes on what comes, up to the limit: nobody has to hold more than that.
    fn pass_on(&self, chunk: fn(Vec<u8>) -> Chunk, before: u64, bytes: &[u8]) {
        let room = usize::try_from(self.most.saturating_sub(before)).unwrap_or(usize::MAX);
        let bytes = &bytes[..room.min(bytes.len())];
        if let Some(chunks) = self.chunks.as_ref().filter(|_| !bytes.is_empty()) {
            // Who no longer listens does not mind.
            let _ = chunks.send(chunk(bytes.to_vec()));
        }
    }
}

/// A path that is given to a script: without links, and not all there is.
fn given(path: &Path) -> Result<OsString, SandboxError> {
    let failed = |source| SandboxError::Path { path: path.to_owned(), source };
    let path = fs::canonicalize(path).map_err(failed)?;
    let own = ["/proc", "/sys", "/dev"].iter().any(|it| path.starts_with(it));
    if own || path == Path::new("/") {
        return Err(failed(io::ErrorKind::PermissionDenied.into()));
    }
    Ok(path.into())
}

fn failed(failure: Failure) -> SandboxError {
    SandboxError::Start { source: failure.error(), what: failure.what }
}

fn unavailable(missing: &[(Level, Failure)]) -> SandboxError {
    let reasons: Vec<String> = missing
        .iter()
        .map(|(level, it)| format!("`{level}` cannot {}: {}", it.what, it.error()))
        .collect();
    SandboxError::Unavailable { reason: reasons.join("; "), remedy: String::new() }
}

/// What came of a run.
fn outcome(ended: Ended, limits: &Limits, streams: Streams) -> Outcome {
    let (status, message) = match (ended.stopped, ended.exit) {
        (Some(stop), _) => stopped(stop, limits),
        (None, Exit::Code(0)) => (Status::Ok, None),
        (None, Exit::Code(code)) => (Status::Failed, Some(format!("it exited with {code}"))),
        (None, Exit::Signal(signal)) => (Status::Killed, Some(format!("signal {signal} ended it"))),
    };
    let (exit_code, signal) = match ended.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    Outcome {
        message,
        exit_code,
        signal,
        stdout: Some(streams.stdout.finish()),
        stderr: Some(streams.stderr.finish()),
        sandbox: Some(ended.level),
        denied: ended.denied,
        ..Outcome::new(status)
    }
}

fn stopped(stop: Stop, limits: &Limits) -> (Status, Option<String>) {
    let seconds = |it: Duration| format!("{} s", it.as_secs_f64());
    let (status, message) = match stop {
        Stop::Unwanted => (Status::Cancelled, "nobody waited for it any more".to_owned()),
        Stop::Time => {
            (Status::TimedOut, format!("it took longer than {}", seconds(limits.timeout)))
        }
        Stop::Idle => {
            let idle = seconds(limits.idle.unwrap_or_default());
            (Status::TimedOut, format!("it printed nothing for {idle}"))
        }
        Stop::Memory => {
            (Status::Killed, format!("it took more than {} bytes of memory", limits.memory))
        }
        Stop::Work => (Status::Killed, format!("it wrote more than {} bytes", limits.work)),
        Stop::Processes => {
            (Status::Killed, format!("it had more than {} processes", limits.processes))
        }
    };
    (status, Some(message))
}
