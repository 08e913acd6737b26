//! Runs a script confined, and leaves nothing of it behind.
//!
//! The engine starts its own program again as a launcher, with an empty environment; the launcher
//! supervises the run from outside of the sandbox.

use std::{
    ffi::OsString,
    fs, io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{self, Path, PathBuf},
    process::Stdio,
    time::Instant,
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::{UnixStream, unix::ReadHalf},
    sync::oneshot,
};

use crate::{
    ending, environment,
    error::SandboxError,
    job::{Job, Stdin},
    launcher::Launcher,
    level::SandboxLevel,
    network::ProxySocket,
    order::{Order, Reply, encode, send_descriptor},
    report,
    result::RunResult,
    running::RunningProgram,
    streams::Streams,
    work::Work,
};

pub(crate) use crate::report::probe;

/// Runs jobs through a launcher, at the first of these levels that the machine supports.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) launcher: Launcher,
    pub(crate) levels: Vec<SandboxLevel>,
}

impl Engine {
    /// Runs a job until it ends or is cancelled.
    pub(crate) async fn run(
        &self,
        job: Job,
        cancel: impl Future<Output = ()>,
    ) -> Result<(RunResult, Work), SandboxError> {
        self.execute(self.order(&job)?, job, None, cancel).await
    }

    /// Starts an interactive job, connected by a socket.
    pub(crate) fn start(&self, job: Job) -> Result<(RunningProgram, UnixStream), SandboxError> {
        let order = Order { interactive: true, ..self.order(&job)? };
        let (ours, theirs) = socket_pair().map_err(|source| self.launcher_error(source))?;
        let engine = self.clone();
        let running = RunningProgram::spawn(move |cancel| async move {
            let cancelled = async { cancel.notified().await };
            engine.execute(order, job, Some(theirs), cancelled).await.map(|it| it.0)
        });
        Ok((running, ours))
    }

    /// Executes a job as ordered, and captures its output, unless that goes elsewhere.
    async fn execute(
        &self,
        order: Order,
        job: Job,
        stdout: Option<OwnedFd>,
        cancel: impl Future<Output = ()>,
    ) -> Result<(RunResult, Work), SandboxError> {
        let start = Instant::now();
        let Job { mut work, limits, chunks, stdin, network, .. } = job;
        let mut streams = Streams::new(&limits, chunks);
        let (sender, socket) = oneshot::channel();
        let run = self.run_launcher(&order, stdin, stdout, &mut streams, sender, cancel);
        let (replied, (connections, connections_omitted)) = network.serve_during(socket, run).await;
        let (reply, control) = replied.map_err(|source| self.launcher_error(source))?;
        streams.pass_on_ends();
        work.supervisor = control.into_std().ok().map(Into::into);
        let ended = match reply {
            Reply::Ended(ended) => ended,
            Reply::Failed(failure) => {
                return Err(SandboxError::Start { source: failure.error(), what: failure.what });
            }
            Reply::Unavailable(missing) => return Err(report::unavailable(&missing)),
        };
        let result = RunResult {
            files: work.files().unwrap_or_default(),
            connections,
            connections_omitted,
            ..ending::result(ended, &limits, streams, start.elapsed())
        };
        Ok((result, work))
    }

    fn launcher_error(&self, source: io::Error) -> SandboxError {
        SandboxError::Launcher { program: self.launcher.path().into(), source }
    }

    /// Returns the order for the launcher.
    fn order(&self, job: &Job) -> Result<Order, SandboxError> {
        if let Some((name, _)) =
            job.env.iter().find(|(name, value)| !environment::is_harmless(name, value))
        {
            return Err(SandboxError::Variable { name: name.clone() });
        }
        if job.argv.is_empty() {
            let source = io::ErrorKind::InvalidInput.into();
            return Err(SandboxError::Start { what: "run an empty command".to_owned(), source });
        }
        let directory = job.directory.as_deref().unwrap_or(job.work.path());
        let (mut reads, layered) = (resolve_all(&job.reads)?, resolve_all(&job.layered)?);
        reads.extend(layered.iter().cloned());
        let (writes, hidden) = (resolve_all(&job.writes)?, resolve_all(&job.hidden)?);
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
            directory: path::absolute(directory)
                .map_err(|source| SandboxError::Path { path: directory.to_owned(), source })?
                .into(),
            interactive: false,
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
            levels: self.levels.clone(),
        })
    }

    /// Sends the order to the launcher, captures the output, and returns the reply.
    async fn run_launcher(
        &self,
        order: &Order,
        stdin: Option<Stdin>,
        stdout: Option<OwnedFd>,
        streams: &mut Streams,
        proxy: oneshot::Sender<ProxySocket>,
        cancel: impl Future<Output = ()>,
    ) -> io::Result<(Reply, UnixStream)> {
        let (mut command, control) = self.launcher.command()?;
        command.stdout(stdout.map_or_else(Stdio::piped, Stdio::from)).stderr(Stdio::piped());
        let mut child = tokio::process::Command::from(command).spawn()?;
        let stdout: Box<dyn AsyncRead + Send + Unpin> = match child.stdout.take() {
            Some(stdout) => Box::new(stdout),
            None => Box::new(tokio::io::empty()),
        };
        let stderr =
            child.stderr.take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        control.set_nonblocking(true)?;
        let mut control = UnixStream::from_std(control)?;
        control.write_all(&encode(order)?).await?;
        let stdin = stdin.map(Stdin::pass_on).transpose()?;
        if let Some((theirs, _)) = &stdin {
            control.async_io(Interest::WRITABLE, || send_descriptor(&control, theirs)).await?;
        }
        let _passing_on = stdin.map(|it| it.1);
        let (mut reader, mut writer) = control.split();
        let reply = receive_reply(&mut reader, order, proxy);
        let reply = streams.take_until(reply, cancel, stdout, stderr, &mut writer).await?;
        // It stays until the work directory is gone, and is reaped in the background.
        tokio::spawn(async move { child.wait().await });
        Ok((reply, control))
    }
}

/// Returns two connected sockets: ours, and one for a program.
fn socket_pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

/// Waits for the reply of a run, and passes on the socket that may precede it, with a level.
async fn receive_reply(
    reader: &mut ReadHalf<'_>,
    order: &Order,
    proxy: oneshot::Sender<ProxySocket>,
) -> io::Result<Reply> {
    let mut proxy = Some(proxy);
    loop {
        let (length, socket) = receive_length(reader.as_ref()).await?;
        let mut body = vec![0; length as usize];
        reader.read_exact(&mut body).await?;
        let Some(socket) = socket else { return Ok(serde_json::from_slice(&body)?) };
        let level: SandboxLevel = serde_json::from_slice(&body)?;
        // Only the script can reach a socket in its own namespace.
        let password = order.network.clone().filter(|_| level < SandboxLevel::Strong);
        if let Some(proxy) = proxy.take() {
            let _ = proxy.send(ProxySocket { socket: socket.into(), password });
        }
    }
}

/// Receives the length of a message, and the descriptor that comes with it.
async fn receive_length(stream: &UnixStream) -> io::Result<(u32, Option<OwnedFd>)> {
    let (mut length, mut read, mut socket) = ([0; 4], 0, None);
    while read < length.len() {
        match stream
            .async_io(Interest::READABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let mut parts = [io::IoSliceMut::new(&mut length[read..])];
                let received =
                    recvmsg(stream, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
                for message in ancillary.drain() {
                    if let RecvAncillaryMessage::ScmRights(mut fds) = message {
                        socket = fds.next().or(socket.take());
                    }
                }
                Ok(received.bytes)
            })
            .await?
        {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => read += count,
        }
    }
    Ok((u32::from_le_bytes(length), socket))
}

fn resolve_all(paths: &[PathBuf]) -> Result<Vec<OsString>, SandboxError> {
    paths
        .iter()
        .map(|it| resolve(it).map_err(|source| SandboxError::Path { path: it.clone(), source }))
        .collect()
}

/// Returns a path for a script, without links. Refuses the root directory and everything in
/// `/proc`, `/sys` and `/dev`.
fn resolve(path: &Path) -> io::Result<OsString> {
    let path = fs::canonicalize(path)?;
    let own = ["/proc", "/sys", "/dev"].iter().find(|it| path.starts_with(it));
    let rule = match own {
        Some(own) => format!("scripts are never given access to `{own}`"),
        None if path == Path::new("/") => {
            "scripts are never given access to the whole file system".to_owned()
        }
        None => return Ok(path.into()),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, rule))
}
