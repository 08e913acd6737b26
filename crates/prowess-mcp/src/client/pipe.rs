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
    failure::Trouble,
    message::{DEPTH, PROBE, client_info, discovered, is_deep, without_meta},
    monitor::TrafficMonitor,
};

/// The input and output of a program.
pub(super) struct Pipe<R, W> {
    pub(super) read: R,
    pub(super) write: W,
    /// The beginning of a line that has not ended yet.
    pub(super) line: Vec<u8>,
    /// Whether it knows 2026-07-28, as it said when it was taken for an older one already.
    pub(super) late: Option<bool>,
    pub(super) monitor: Arc<TrafficMonitor>,
}

/// How many bytes of it wait to be read.
const PIPE: usize = 64 * 1024;

impl<R, W> Pipe<R, W>
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Asks whether the program knows 2026-07-28, before anything else is said: its first request
    /// decides by which revision it answers all others. One that says nothing in time is taken for an
    /// older one.
    pub(super) async fn knows_discovery(&mut self, patience: Duration) -> bool {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": ProtocolVersion::V_2026_07_28.as_str(),
            "io.modelcontextprotocol/clientInfo": client_info(),
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({
            "jsonrpc": "2.0", "id": PROBE, "method": "server/discover", "params": { "_meta": meta },
        });
        // It is written whole, or the next request would stand in the middle of it.
        if self.write.write_all(format!("{request}\n").as_bytes()).await.is_err() {
            return false;
        }
        let answered = async {
            while self.read.read_until(b'\n', &mut self.line).await? > 0 {
                let knows = discovered(&self.line);
                self.line.clear();
                if let Some(knows) = knows {
                    return Ok(knows);
                }
            }
            Ok::<_, io::Error>(false)
        };
        matches!(timeout(patience, answered).await, Ok(Ok(true)))
    }

    /// A transport for the SDK, with messages as it can read them. The pipe is given back once that
    /// transport is closed.
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

    /// Carries messages in both directions, line by line towards us, until one side is closed.
    async fn carry(&mut self, mut requests: DuplexStream, mut answers: DuplexStream) {
        let Self { read, write, line, late, monitor } = self;
        let inwards = async {
            while read.read_until(b'\n', line).await.is_ok_and(|it| it > 0) {
                // Whoever asked has given up waiting for it: the SDK does not know that request.
                if let Some(knows) = discovered(line) {
                    *late = Some(knows);
                } else if is_deep(line) {
                    // The SDK drops what it cannot read, and whoever has asked would wait.
                    let message = format!("its answer is nested more than {DEPTH} levels deep");
                    let status = OutcomeStatus::Failed;
                    monitor.note(Some(Trouble { status, message, hint: None }));
                    break;
                } else if answers.write_all(&without_meta(line)).await.is_err() {
                    break;
                }
                line.clear();
            }
        };
        let outwards = async {
            if tokio::io::copy(&mut requests, write).await.is_err() {
                // It does not listen any more, but may have said something before.
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
