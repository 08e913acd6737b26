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
mod connect;
mod mounts;
mod rules;
mod filter;
mod listener;
mod metadata;
mod cgroup;
mod usage;
mod disk;
mod tree;
mod sys;
mod capture;
mod streams;
mod network;
mod running;
mod ending;
mod report;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, fs, future, io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{self, Path, PathBuf},
    process::Stdio,
    time::Instant,
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::{
        UnixStream,
        unix::{ReadHalf, pipe},
    },
    sync::{mpsc::UnboundedSender, oneshot},
    task::AbortHandle,
};

use crate::{
    limits::RunLimits,
    outcome::{Outcome, OutcomeStatus, SandboxLevel},
};
use network::Entrance;
use order::{Order, Reply, framed, send_descriptor};
use streams::Streams;

#[cfg(feature = "http")]
pub(crate) use disk::size as folder_size;
#[cfg(feature = "http")]
pub(crate) use environment::certificates;
pub use launcher::Launcher;
pub(crate) use mounts::is_of_system;
pub use network::Network;
pub use report::{Check, Report};
pub(crate) use running::Ending;
pub use running::Running;
pub use work::Work;
pub(crate) use work::{remove as remove_folder, sweep};

/// Runs scripts so that they can do no more than they should.
#[derive(Debug, Clone)]
pub struct Sandbox {
    launcher: Launcher,
    least: SandboxLevel,
    most: SandboxLevel,
}

/// What is to be run, and what it is given.
#[derive(Debug)]
pub struct Job {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Variables of its environment, beside `PATH`, `HOME`, `LANG` and `TMPDIR`.
    pub env: BTreeMap<String, String>,
    /// The directories that a Python looks for modules in, before its own.
    pub python_path: Vec<PathBuf>,
    /// Where it begins; the work directory when not given.
    pub directory: Option<PathBuf>,
    /// Files and directories that it may read, besides the system.
    pub reads: Vec<PathBuf>,
    /// Directories that it may read, and write in a layer of its own that is gone when it ends. Where a machine gives no
    /// such layer, they can only be read.
    pub layered: Vec<PathBuf>,
    /// Files and directories that it may write, besides the work directory.
    pub writes: Vec<PathBuf>,
    /// What of these it may not read all the same.
    pub hidden: Vec<PathBuf>,
    /// What of these it may neither read nor write. What is not there is passed over.
    pub withheld: Vec<PathBuf>,
    /// Its private directory.
    pub work: Work,
    /// How long and how much it may take.
    pub limits: RunLimits,
    /// Directories of `PATH`, before those of the system.
    pub path: Vec<PathBuf>,
    /// Its `HOME`; the work directory when not given.
    pub home: Option<PathBuf>,
    /// What it reads from its stdin; nothing when not given.
    pub stdin: Option<Stdin>,
    /// What of the network it reaches.
    pub network: Network,
    /// Gets what it prints as it comes, up to the limit of each stream; of what is over that, the end
    /// when it has ended.
    pub chunks: Option<UnboundedSender<Chunk>>,
}

/// What a script reads from its stdin, as it comes.
pub struct Stdin(Box<dyn AsyncRead + Send + Unpin>);

impl Stdin {
    /// Passes on what is read here.
    pub fn new(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self(Box::new(reader))
    }

    /// Begins to pass it on; returns where it is read, and what ends it when dropped.
    fn pass_on(mut self) -> io::Result<(OwnedFd, AbortOnDrop)> {
        let (theirs, ours) = io::pipe()?;
        let mut ours = pipe::Sender::from_owned_fd(ours.into())?;
        // Who no longer reads does not mind.
        let task = tokio::spawn(async move { _ = tokio::io::copy(&mut self.0, &mut ours).await });
        Ok((theirs.into(), AbortOnDrop(task.abort_handle())))
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stdin")
    }
}

/// Ends a task when it is dropped.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Job {
    /// A job that is given nothing but its work directory.
    pub fn new(argv: Vec<OsString>, work: Work, limits: RunLimits) -> Self {
        let (env, python_path, reads, layered, writes, hidden, withheld, path, network) =
            Default::default();
        let (directory, home, stdin, chunks) = (None, None, None, None);
        Self {
            argv,
            env,
            python_path,
            directory,
            reads,
            layered,
            writes,
            hidden,
            withheld,
            work,
            limits,
            path,
            home,
            stdin,
            network,
            chunks,
        }
    }
}

impl Job {
    /// The variable that says where modules of Python are, which nobody else may set.
    fn python_path(&self) -> Option<(String, String)> {
        let paths = self.python_path.iter().map(|it| it.to_string_lossy());
        let path = paths.collect::<Vec<_>>().join(":");
        (!path.is_empty()).then(|| ("PYTHONPATH".to_owned(), path))
    }
}

/// A piece of what a script prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// From its stdout.
    Stdout(Vec<u8>),
    /// From its stderr.
    Stderr(Vec<u8>),
}

impl Chunk {
    /// What was printed.
    pub fn bytes(&self) -> &[u8] {
        let (Self::Stdout(bytes) | Self::Stderr(bytes)) = self;
        bytes
    }
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

impl From<SandboxError> for Outcome {
    /// What a caller is told about a script that could not be started.
    fn from(error: SandboxError) -> Self {
        let status = match &error {
            SandboxError::Unavailable { .. } => OutcomeStatus::Refused,
            SandboxError::Variable { .. } | SandboxError::Path { .. } => OutcomeStatus::Invalid,
            SandboxError::Start { .. } | SandboxError::Launcher { .. } => OutcomeStatus::Failed,
        };
        let cause = std::error::Error::source(&error);
        let message = cause.map_or_else(|| error.to_string(), |it| format!("{error}: {it}"));
        let outcome = Self::bad(status, message);
        match error {
            SandboxError::Unavailable { remedy, .. } => outcome.hint(remedy),
            _ => outcome,
        }
    }
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

    /// Runs what it is given without holding it: with limits and an environment of its own, but with
    /// all that the user may do. For a single run that somebody has asked for in so many words.
    #[must_use]
    pub fn without(self) -> Self {
        Self { least: SandboxLevel::None, most: SandboxLevel::None, ..self }
    }

    /// The same, but never without holding what it is given.
    pub(crate) fn held(self) -> Self {
        let most = if self.most == SandboxLevel::None { SandboxLevel::Strong } else { self.most };
        Self { least: self.least.max(SandboxLevel::Landlock), most, ..self }
    }

    /// Runs a job to its end. Its work directory is gone then. Dropped before, it leaves nobody alive
    /// either.
    pub async fn run(&self, job: Job) -> Result<Outcome, SandboxError> {
        self.run_keeping(job).await.map(|it| it.0)
    }

    /// The same, but returns the work directory with what the script left there.
    pub async fn run_keeping(&self, job: Job) -> Result<(Outcome, Work), SandboxError> {
        self.run_until(job, future::pending()).await
    }

    /// The same, but ends the run when somebody cancels it: the outcome is what came of it so far.
    pub async fn run_until(
        &self,
        job: Job,
        cancel: impl Future<Output = ()>,
    ) -> Result<(Outcome, Work), SandboxError> {
        self.obey(self.order(&job)?, job, None, cancel).await
    }

    /// Starts a job that is spoken with through what is returned: what is written there it reads from
    /// its stdin, what it prints is read there. Why one did not begin is how it ended. Only within a
    /// runtime.
    pub fn start(&self, job: Job) -> Result<(Running, UnixStream), SandboxError> {
        let order = Order { converses: true, ..self.order(&job)? };
        let lost = |source| self.lost(source);
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(lost)?;
        ours.set_nonblocking(true).map_err(lost)?;
        let ours = UnixStream::from_std(ours).map_err(lost)?;
        let sandbox = self.clone();
        let running = Running::spawn(move |cancel| async move {
            let cancelled = async { cancel.notified().await };
            sandbox.obey(order, job, Some(theirs.into()), cancelled).await.map(|it| it.0)
        });
        Ok((running, ours))
    }

    /// Has a job done as it is ordered, and takes in what it prints, unless that goes elsewhere.
    async fn obey(
        &self,
        order: Order,
        job: Job,
        stdout: Option<OwnedFd>,
        cancel: impl Future<Output = ()>,
    ) -> Result<(Outcome, Work), SandboxError> {
        let start = Instant::now();
        let Job { mut work, limits, chunks, stdin, network, .. } = job;
        let mut streams = Streams::new(&limits, chunks);
        let (enter, entrance) = oneshot::channel();
        let talk = self.talk(&order, stdin, stdout, &mut streams, enter, cancel);
        let (talk, (network, network_omitted)) = network.during(entrance, talk).await;
        let (reply, control) = talk.map_err(|source| self.lost(source))?;
        streams.pass_on_ends();
        work.supervisor = control.into_std().ok().map(Into::into);
        let ended = match reply {
            Reply::Ended(ended) => ended,
            Reply::Failed(failure) => {
                return Err(SandboxError::Start { source: failure.error(), what: failure.what });
            }
            Reply::Unavailable(missing) => return Err(report::unavailable(&missing)),
        };
        let files = work.files().unwrap_or_default();
        let outcome = ending::outcome(ended, &limits, streams);
        let duration = Some(start.elapsed());
        Ok((Outcome { files, duration, network, network_omitted, ..outcome }, work))
    }

    /// Whether it holds what it runs.
    pub(crate) fn holds(&self) -> bool {
        self.most != SandboxLevel::None
    }

    /// What would hold a script; *none* where nothing would run.
    pub(crate) fn level(&self) -> SandboxLevel {
        let level = self.probe().level.min(self.most);
        if level < self.least { SandboxLevel::None } else { level }
    }

    /// Finds out what this machine gives to hold a script.
    pub fn probe(&self) -> Report {
        report::probe(&self.launcher)
    }

    fn lost(&self, source: io::Error) -> SandboxError {
        SandboxError::Launcher { program: self.launcher.path().into(), source }
    }

    /// What the launcher is told about a job.
    fn order(&self, job: &Job) -> Result<Order, SandboxError> {
        let harmless = |(name, value): (&String, &String)| environment::is_harmless(name, value);
        if let Some((name, _)) = job.env.iter().find(|it| !harmless(*it)) {
            return Err(SandboxError::Variable { name: name.clone() });
        }
        if job.argv.is_empty() {
            let source = io::ErrorKind::InvalidInput.into();
            return Err(SandboxError::Start { what: "run nothing".to_owned(), source });
        }
        let all = [SandboxLevel::Strong, SandboxLevel::Landlock, SandboxLevel::None];
        let levels = all.into_iter().filter(|it| (self.least..=self.most).contains(it));
        let directory = job.directory.as_deref().unwrap_or(job.work.path());
        let nowhere = |source| SandboxError::Path { path: directory.to_owned(), source };
        let real =
            |paths: &[PathBuf]| paths.iter().map(|it| given(it)).collect::<Result<Vec<_>, _>>();
        let (mut reads, layered) = (real(&job.reads)?, real(&job.layered)?);
        reads.extend(layered.iter().cloned());
        let (writes, hidden) = (real(&job.writes)?, real(&job.hidden)?);
        let withheld = job.withheld.iter().filter_map(|it| fs::canonicalize(it).ok());
        let known = job.reads.iter().chain(&job.layered).chain(&job.writes);
        let known = known.zip(reads.iter().chain(&writes));
        let links = known.filter_map(|(path, real)| {
            let path = path::absolute(path).ok()?.into_os_string();
            (path != *real).then(|| (path, real.clone()))
        });
        Ok(Order {
            links: links.collect(),
            argv: job.argv.clone(),
            env: job.env.clone().into_iter().chain(job.python_path()).collect(),
            directory: path::absolute(directory).map_err(nowhere)?.into(),
            converses: false,
            has_stdin: job.stdin.is_some(),
            path: job.path.iter().map(Into::into).collect(),
            home: job.home.as_ref().map(Into::into),
            reads,
            layered,
            writes,
            hidden,
            withheld: withheld.map(Into::into).collect(),
            base: job.work.base().into(),
            limits: job.limits,
            network: job.network.password(),
            levels: levels.collect(),
        })
    }

    /// Has the launcher do what is ordered, takes in what is printed, and returns the reply.
    async fn talk(
        &self,
        order: &Order,
        stdin: Option<Stdin>,
        stdout: Option<OwnedFd>,
        streams: &mut Streams,
        enter: oneshot::Sender<Entrance>,
        cancel: impl Future<Output = ()>,
    ) -> io::Result<(Reply, UnixStream)> {
        let (mut command, control) = self.launcher.command()?;
        command.stdout(stdout.map_or_else(Stdio::piped, Stdio::from)).stderr(Stdio::piped());
        let mut child = tokio::process::Command::from(command).spawn()?;
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdout: Box<dyn AsyncRead + Send + Unpin> = match child.stdout.take() {
            Some(stdout) => Box::new(stdout),
            None => Box::new(tokio::io::empty()),
        };
        let stderr = child.stderr.take().ok_or_else(missing)?;
        control.set_nonblocking(true)?;
        let mut control = UnixStream::from_std(control)?;
        control.write_all(&framed(order)?).await?;
        let stdin = stdin.map(Stdin::pass_on).transpose()?;
        if let Some((theirs, _)) = &stdin {
            let send = || send_descriptor(&control, theirs);
            control.async_io(Interest::WRITABLE, send).await?;
        }
        let _passing_on = stdin.map(|it| it.1);
        let (mut ear, mut mouth) = control.split();
        let reply = reply(&mut ear, order, enter);
        let reply = streams.take_until(reply, cancel, stdout, stderr, &mut mouth).await?;
        // It stays until the work directory is gone, and is reaped behind our back.
        tokio::spawn(async move { child.wait().await });
        Ok((reply, control))
    }
}

/// Waits for what came of a run, and hands on the socket that may come before it, with a level.
async fn reply(
    ear: &mut ReadHalf<'_>,
    order: &Order,
    enter: oneshot::Sender<Entrance>,
) -> io::Result<Reply> {
    let mut enter = Some(enter);
    loop {
        let (length, socket) = length(ear.as_ref()).await?;
        let mut body = vec![0; length as usize];
        ear.read_exact(&mut body).await?;
        let Some(socket) = socket else { return Ok(serde_json::from_slice(&body)?) };
        let level: SandboxLevel = serde_json::from_slice(&body)?;
        // Nobody but the script reaches a socket in its own namespace.
        let password = order.network.clone().filter(|_| level < SandboxLevel::Strong);
        if let Some(enter) = enter.take() {
            let _ = enter.send(Entrance { socket: socket.into(), password });
        }
    }
}

/// The length of a message, and the descriptor that comes with it.
async fn length(stream: &UnixStream) -> io::Result<(u32, Option<OwnedFd>)> {
    let (mut length, mut read, mut socket) = ([0; 4], 0, None);
    while read < length.len() {
        let receive = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [io::IoSliceMut::new(&mut length[read..])];
            let received = recvmsg(stream, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(mut fds) = message {
                    socket = fds.next().or(socket.take());
                }
            }
            Ok(received.bytes)
        };
        match stream.async_io(Interest::READABLE, receive).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => read += count,
        }
    }
    Ok((u32::from_le_bytes(length), socket))
}

/// A path that is given to a script: without links, and not all there is.
fn given(path: &Path) -> Result<OsString, SandboxError> {
    let failed = |source| SandboxError::Path { path: path.to_owned(), source };
    let path = fs::canonicalize(path).map_err(failed)?;
    let own = ["/proc", "/sys", "/dev"].iter().find(|it| path.starts_with(it));
    let rule = match own {
        Some(own) => format!("no script is given what lies in `{own}`"),
        None if path == Path::new("/") => "no script is given the whole root".to_owned(),
        None => return Ok(path.into()),
    };
    Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, rule)))
}
