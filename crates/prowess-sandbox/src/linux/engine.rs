//! Runs a script confined, and leaves nothing of it behind.
//!
//! The engine starts its own program again as a launcher, with an empty environment; the launcher
//! supervises the run from outside of the sandbox.

use std::{io, mem::MaybeUninit, os::fd::OwnedFd, process::Stdio, time::Instant};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::{
        UnixStream,
        unix::{ReadHalf, pipe},
    },
    sync::oneshot,
    time::timeout,
};

use super::{
    messages::{CANCEL, IDLE, MAX_MESSAGE, Reply, encode, send_descriptor},
    report,
    start::{GREETING, Greeting, Start, no_greeting, start},
};
use crate::{
    ending,
    error::SandboxError,
    job::{Job, Stdin},
    launcher::Launcher,
    level::SandboxLevel,
    network::ProxySocket,
    order::Order,
    result::RunResult,
    running::RunningProgram,
    streams::{StopRequest, Streams},
    work::Work,
};

/// Runs jobs through a launcher, at the first of these levels that the machine supports.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    launcher: Launcher,
    levels: Vec<SandboxLevel>,
}

impl Engine {
    pub(crate) fn new(launcher: Launcher, levels: Vec<SandboxLevel>) -> Self {
        Self { launcher, levels }
    }

    /// Runs a job until it ends or is cancelled.
    pub(crate) async fn run(
        &self,
        job: Job,
        cancel: impl Future<Output = ()>,
    ) -> Result<(RunResult, Work), SandboxError> {
        self.execute(Order::new(&job, self.levels.clone())?, job, None, cancel).await
    }

    /// Starts an interactive job, connected by a socket.
    pub(crate) fn start(&self, job: Job) -> Result<(RunningProgram, UnixStream), SandboxError> {
        let order = Order { interactive: true, ..Order::new(&job, self.levels.clone())? };
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
        work.supervisor = control.into_std().ok().map(|it| OwnedFd::from(it).into());
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
            ..ending::result(ended.ending, &limits, streams, start.elapsed())
        };
        Ok((result, work))
    }

    fn launcher_error(&self, source: io::Error) -> SandboxError {
        SandboxError::Launcher { program: self.launcher.path().into(), source }
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
        let Start { mut command, control } = start(&self.launcher, order)?;
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
        // What is no launcher may read nothing.
        let sent = timeout(GREETING, control.write_all(&encode(order)?)).await;
        let sent = sent.map_err(io::Error::from).flatten();
        // It may have ended without reading all of that.
        if let Err(error) = receive_greeting(&mut control).await {
            let _ = child.start_kill();
            tokio::spawn(async move { child.wait().await });
            return Err(error);
        }
        sent?;
        let mut passing_on = None;
        if let Some(stdin) = stdin {
            let (theirs, ours) = io::pipe()?;
            passing_on = Some(stdin.pass_on(pipe::Sender::from_owned_fd(ours.into())?));
            let theirs = theirs.into();
            control.async_io(Interest::WRITABLE, || send_descriptor(&control, &theirs)).await?;
        }
        let (mut reader, writer) = control.split();
        let reply = receive_reply(&mut reader, order, proxy);
        let stop = |why| {
            let word = match why {
                StopRequest::Cancelled => CANCEL,
                StopRequest::Idle => IDLE,
            };
            // There is room for one byte, because the launcher reads everything.
            Ok(send(writer.as_ref(), &[word], SendFlags::NOSIGNAL).map(drop)?)
        };
        let reply = streams.take_until(reply, cancel, stdout, stderr, stop).await?;
        drop(passing_on);
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

/// Waits until the launcher has greeted us, and checks its version.
async fn receive_greeting(control: &mut UnixStream) -> io::Result<()> {
    let greeting = async {
        let length = control.read_u32_le().await?;
        let mut body = vec![0; usize::try_from(length.min(MAX_GREETING)).unwrap_or_default()];
        control.read_exact(&mut body).await?;
        Ok(serde_json::from_slice::<Greeting>(&body)?)
    };
    let greeting = timeout(GREETING, greeting).await.map_err(io::Error::from);
    greeting.flatten().map_err(no_greeting)?.check()
}

/// The maximum size of its message.
const MAX_GREETING: u32 = 1024;

/// Waits for the reply of a run, and passes on the socket that may precede it, with a level.
async fn receive_reply(
    reader: &mut ReadHalf<'_>,
    order: &Order,
    proxy: oneshot::Sender<ProxySocket>,
) -> io::Result<Reply> {
    let mut proxy = Some(proxy);
    loop {
        let (length, socket) = receive_length(reader.as_ref()).await?;
        if length > MAX_MESSAGE {
            return Err(io::ErrorKind::InvalidData.into());
        }
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
