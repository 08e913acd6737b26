//! Captures the output of a script while it runs.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    sync::mpsc::UnboundedSender,
    time::{Instant, sleep_until},
};

use crate::{capture::Capture, limits::RunLimits, output::Chunk};

/// The captured output of a script.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    limit: u64,
    idle: Option<Duration>,
    chunks: Option<UnboundedSender<Chunk>>,
}

/// A reason to stop a run that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// The caller cancelled it.
    Cancelled,
    /// It printed nothing for too long.
    Idle,
}

/// The time a stream may be silent after the end of its run, when no writer should be left.
const DRAIN: Duration = Duration::from_millis(500);
/// Effectively never.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Streams {
    pub(crate) fn new(limits: &RunLimits, chunks: Option<UnboundedSender<Chunk>>) -> Self {
        let limit = limits.output;
        let (stdout, stderr) = (Capture::new(limit), Capture::new(limit));
        Self { stdout, stderr, limit, idle: limits.idle, chunks }
    }

    /// Captures output until there is a reply, and then the rest. Asks `stop` to stop the run after
    /// too long without output, or if it is cancelled.
    pub(crate) async fn take_until<T>(
        &mut self,
        reply: impl Future<Output = io::Result<T>>,
        cancel: impl Future<Output = ()>,
        mut stdout: impl AsyncRead + Unpin,
        mut stderr: impl AsyncRead + Unpin,
        mut stop: impl FnMut(StopRequest) -> io::Result<()>,
    ) -> io::Result<T> {
        let (mut out, mut err) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        let (mut out_open, mut err_open) = (true, true);
        let mut replied = None;
        let mut patience = self.idle.unwrap_or(NEVER).min(NEVER);
        let mut cancelled = false;
        tokio::pin!(reply, cancel);
        loop {
            let silent = sleep_until(Instant::now() + patience);
            tokio::select! {
                count = stdout.read(&mut out), if out_open => {
                    let bytes = &out[..count?];
                    out_open = !bytes.is_empty();
                    self.pass_on(Chunk::Stdout, self.stdout.total(), bytes);
                    self.stdout.push(bytes);
                }
                count = stderr.read(&mut err), if err_open => {
                    let bytes = &err[..count?];
                    err_open = !bytes.is_empty();
                    self.pass_on(Chunk::Stderr, self.stderr.total(), bytes);
                    self.stderr.push(bytes);
                }
                it = &mut reply, if replied.is_none() => {
                    replied = Some(it?);
                    patience = DRAIN;
                }
                () = &mut cancel, if !cancelled && replied.is_none() => {
                    cancelled = true;
                    stop(StopRequest::Cancelled)?;
                    patience = NEVER;
                }
                () = silent => {
                    if let Some(reply) = replied.take() {
                        return Ok(reply);
                    }
                    stop(StopRequest::Idle)?;
                    patience = NEVER;
                }
            }
            if let Some(reply) = replied.take_if(|_| !out_open && !err_open) {
                return Ok(reply);
            }
        }
    }

    /// Passes on the end of the output that exceeded the limit.
    pub(crate) fn pass_on_ends(&self) {
        let Some(chunks) = &self.chunks else { return };
        let ends = [
            Chunk::Stdout(self.stdout.after(self.limit)),
            Chunk::Stderr(self.stderr.after(self.limit)),
        ];
        // The receiver may be gone.
        ends.into_iter().filter(|it| !it.bytes().is_empty()).for_each(|it| _ = chunks.send(it));
    }

    /// Passes on output up to the limit, so that no receiver has to hold more.
    fn pass_on(&self, chunk: fn(Vec<u8>) -> Chunk, before: u64, bytes: &[u8]) {
        let room = usize::try_from(self.limit.saturating_sub(before)).unwrap_or(usize::MAX);
        let bytes = &bytes[..room.min(bytes.len())];
        if let Some(chunks) = self.chunks.as_ref().filter(|_| !bytes.is_empty()) {
            // The receiver may be gone.
            let _ = chunks.send(chunk(bytes.to_vec()));
        }
    }
}
