//! The input and output of a server that is a program.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use prowess_runtime::OutcomeStatus;
use rmcp::{RoleClient, model::ProtocolVersion, transport::async_rw::AsyncRwTransport};
use serde_json::json;
use tokio::{
    io::{
        AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _,
        DuplexStream, ReadBuf,
    },
    task::JoinHandle,
    time::timeout,
};

use super::{
    failure::ConnectionFailure,
    message::{DEPTH, PROBE, client_info, discovery_answer, is_deep, without_meta},
    monitor::TrafficMonitor,
};

/// The input and output of a program.
pub(super) struct Pipe<R, W> {
    pub(super) read: R,
    pub(super) write: W,
    /// The beginning of an incomplete line.
    pub(super) line: Vec<u8>,
    /// Whether it supports 2026-07-28, if it answered that after the timeout.
    pub(super) late: Option<bool>,
    pub(super) monitor: Arc<TrafficMonitor>,
}

/// The buffer size of a pipe in bytes.
const PIPE: usize = 64 * 1024;

impl<R, W> Pipe<R, W>
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Asks whether the program supports 2026-07-28, before anything else: its first request
    /// determines the revision of all answers. One that does not answer in time is assumed to be
    /// older.
    pub(super) async fn knows_discovery(&mut self, patience: Duration) -> bool {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": ProtocolVersion::V_2026_07_28.as_str(),
            "io.modelcontextprotocol/clientInfo": client_info(),
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({
            "jsonrpc": "2.0", "id": PROBE, "method": "server/discover", "params": { "_meta": meta },
        });
        // It must be written completely, or the next request would be corrupted.
        if self.write.write_all(format!("{request}\n").as_bytes()).await.is_err() {
            return false;
        }
        let answered = async {
            while self.read.read_until(b'\n', &mut self.line).await? > 0 {
                self.monitor.inspect(&self.line);
                let knows = discovery_answer(&self.line);
                self.line.clear();
                if let Some(knows) = knows {
                    return Ok(knows);
                }
            }
            Ok::<_, io::Error>(false)
        };
        matches!(timeout(patience, answered).await, Ok(Ok(true)))
    }

    /// Creates a transport for the SDK, with messages that it can parse. The pipe is returned once
    /// that transport is closed.
    pub(super) fn transport(
        mut self,
    ) -> (impl rmcp::transport::Transport<RoleClient> + 'static, JoinHandle<Self>) {
        let (requests, write) = tokio::io::duplex(PIPE);
        let (answers, read) = tokio::io::duplex(PIPE);
        let carried = tokio::spawn(async move {
            self.carry(requests, answers).await;
            self
        });
        (AsyncRwTransport::new_client(read, write), carried)
    }

    /// Passes messages in both directions, incoming ones line by line, until one side is closed.
    async fn carry(&mut self, mut requests: DuplexStream, mut answers: DuplexStream) {
        let Self { read, write, line, late, monitor } = self;
        let inwards = async {
            while read.read_until(b'\n', line).await.is_ok_and(|it| it > 0) {
                monitor.inspect(line);
                // The request has timed out: the SDK does not know it.
                if let Some(knows) = discovery_answer(line) {
                    *late = Some(knows);
                } else if is_deep(line) {
                    // The SDK drops messages that it cannot parse, and the caller would wait for
                    // ever.
                    let message = format!("its answer is nested more than {DEPTH} levels deep");
                    let status = OutcomeStatus::Failed;
                    monitor.note(Some(ConnectionFailure { status, message, hint: None }));
                    break;
                } else if answers.write_all(&without_meta(line)).await.is_err() {
                    break;
                }
                line.clear();
            }
        };
        let outwards = async {
            if tokio::io::copy(&mut requests, write).await.is_err() {
                // It has closed its input, but may have sent something before.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = inwards => {}
            () = outwards => {}
        }
    }
}

/// The output of a server, up to a limit.
pub(super) struct BoundedReader<R> {
    pub(super) read: R,
    pub(super) monitor: Arc<TrafficMonitor>,
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.read).poll_read(context, buffer))?;
        match self.monitor.count(buffer.filled().len() - before) {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(io::ErrorKind::FileTooLarge.into())),
        }
    }
}
