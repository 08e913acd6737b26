//! Serving over standard input and output: one client, until it disconnects.

use std::{
    collections::{HashSet, VecDeque},
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use prowess::lock;
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta as _,
        JsonRpcError, JsonRpcNotification, ProtocolVersion, RequestId, ServerJsonRpcMessage,
    },
    service::ServerInitializeError,
    transport::{
        Transport,
        io::{StdioReader, StdioWriter, stdio_pipes},
    },
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    server::{frame, skill_server::SkillServer},
    sys::is_output_closed,
};

/// The maximum number of concurrent requests.
const AT_ONCE: usize = 64;
/// The maximum number of further requests that are queued, so that a cancellation behind them is
/// still read. Together they are no longer than two messages may be.
const QUEUED: usize = 256;
/// The maximum number of messages not yet read by the client; no further ones are produced until it
/// reads.
const UNREAD: usize = 16;
/// The time a client that has disconnected has to read the remaining answers.
const LEAVING: Duration = Duration::from_secs(5);

/// The server could not start, or failed before its client disconnected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client and the server did not come to terms.
    #[error("the client did not start with `initialize`")]
    Beginning(#[source] Box<ServerInitializeError>),
    /// Others than those on this machine would be served, whoever they are.
    #[error("`{0}` can be reached from other machines, but there is no token")]
    Open(SocketAddr),
    /// The address cannot be taken.
    #[error("cannot listen on `{0}`")]
    Address(SocketAddr, #[source] io::Error),
    /// The server's task broke down.
    #[error("the server failed")]
    Broken(#[from] io::Error),
}

/// Serves one client over standard input and output, until it disconnects or `stop` completes.
pub async fn serve_stdio(
    server: SkillServer,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let mut stop = pin!(stop);
    let lines = Lines::new();
    let output_closed = lines.output_closed.clone();
    let running = tokio::select! {
        begun = server.serve(lines) => match begun {
            Ok(running) => running,
            // A client that connects and leaves at once is not an error.
            Err(
                ServerInitializeError::ConnectionClosed(_)
                | ServerInitializeError::TransportError { .. },
            ) => return Ok(()),
            Err(error) => return Err(ServeError::Beginning(Box::new(error))),
        },
        () = &mut stop => return Ok(()),
    };
    // Only after the client has its first answer, which is the most urgent one.
    let _following = running.service().start();
    let cancellation = running.cancellation_token();
    let mut ended = pin!(running.waiting());
    let ended = tokio::select! {
        ended = &mut ended => ended,
        () = output_closed.notified() => {
            cancellation.cancel();
            ended.await
        }
        () = stop => {
            cancellation.cancel();
            ended.await
        }
    };
    ended.map_err(io::Error::other)?;
    Ok(())
}

/// Standard input and output as lines, each a message. It reads no faster than the client does, and
/// answers invalid messages itself.
struct Lines {
    input: BufReader<StdioReader>,
    line: Vec<u8>,
    /// Whether the rest of an overlong line is being skipped.
    is_skipping: bool,
    has_ended: bool,
    /// Whether the client has begun; until then, other messages are ignored.
    has_begun: bool,
    /// Requests that wait for others to finish, with their size in bytes.
    queued: VecDeque<(usize, ClientJsonRpcMessage)>,
    /// The pending error answer to an invalid message.
    refusal: Option<Box<JsonRpcError>>,
    running: Arc<OpenRequests>,
    output: Option<mpsc::Sender<Vec<u8>>>,
    writing: Option<JoinHandle<()>>,
    /// Notified when the output is no longer read.
    output_closed: Arc<Notify>,
}

/// The requests in progress.
#[derive(Default)]
struct OpenRequests {
    ids: Mutex<HashSet<RequestId>>,
    one_is_finished: Notify,
}

/// A line of input.
enum ReadLine {
    Line,
    TooLong,
    End,
}

impl Lines {
    fn new() -> Self {
        let (input, output) = stdio_pipes();
        let (sender, lines) = mpsc::channel(UNREAD);
        let output_closed = Arc::new(Notify::new());
        let writing = tokio::spawn(write(output, lines, output_closed.clone()));
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_skipping: false,
            has_ended: false,
            has_begun: false,
            queued: VecDeque::new(),
            refusal: None,
            running: Arc::default(),
            output: Some(sender),
            writing: Some(writing),
            output_closed,
        }
    }

    /// Reads up to the end of a line. If the future is dropped, the bytes read so far are kept.
    async fn read(&mut self) -> io::Result<ReadLine> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(ReadLine::End);
            }
            let end = available.iter().position(|it| *it == b'\n');
            let taken = end.map_or(available.len(), |it| it + 1);
            if !self.is_skipping {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(taken);
            if self.line.len() > frame::LONGEST {
                self.line = Vec::new();
                self.is_skipping = true;
            }
            if end.is_some() {
                let is_too_long = std::mem::take(&mut self.is_skipping);
                return Ok(if is_too_long { ReadLine::TooLong } else { ReadLine::Line });
            }
        }
    }

    /// Accepts a line, and returns a message to be handled at once.
    fn accept_line(&mut self, read: ReadLine) -> Option<ClientJsonRpcMessage> {
        let line = std::mem::take(&mut self.line);
        match read {
            ReadLine::End => self.has_ended = true,
            ReadLine::TooLong => self.refusal = Some(frame::too_long().into()),
            ReadLine::Line if line.trim_ascii().is_empty() => {}
            ReadLine::Line => match frame::read(line.trim_ascii()) {
                Ok(message) => return self.accept_message(line.len(), message),
                Err(refusal) => self.refusal = refusal,
            },
        }
        None
    }

    fn accept_message(
        &mut self,
        length: usize,
        message: ClientJsonRpcMessage,
    ) -> Option<ClientJsonRpcMessage> {
        match &message {
            ClientJsonRpcMessage::Request(request) => {
                let is_queued = self.queued.iter().any(|it| id(&it.1) == Some(&request.id));
                if is_queued || self.running.ids().contains(&request.id) {
                    let error = ErrorData::invalid_request("the `id` is in use", None);
                    // The error has no id, so that it is not taken for the answer to the first
                    // request.
                    self.refusal = Some(JsonRpcError::new(None, error).into());
                } else {
                    self.queued.push_back((length, message));
                }
                return None;
            }
            ClientJsonRpcMessage::Notification(JsonRpcNotification {
                notification: ClientNotification::CancelledNotification(cancelled),
                ..
            }) => {
                // A cancelled request is not answered.
                if let Some(cancelled) = &cancelled.params.request_id {
                    self.queued.retain(|it| id(&it.1) != Some(cancelled));
                    self.running.finish(cancelled);
                }
            }
            _ => {}
        }
        Some(message).filter(|_| self.has_begun)
    }

    /// Returns the next request, if the limit allows it.
    fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        let mut ids = self.running.ids();
        if ids.len() >= AT_ONCE {
            return None;
        }
        let (_, message) = self.queued.pop_front()?;
        ids.extend(id(&message).cloned());
        drop(ids);
        self.has_begun |= begins_conversation(&message);
        Some(message)
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, running) = (self.output.clone(), self.running.clone());
        async move {
            let line = line(&message)?;
            let output = output.ok_or(io::ErrorKind::BrokenPipe)?;
            let room = output.reserve().await;
            let answered = match &message {
                ServerJsonRpcMessage::Response(response) => Some(&response.id),
                ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
                _ => None,
            };
            // After the answer, the client may reuse the id.
            if let Some(id) = answered {
                running.finish(id);
            }
            room.map_err(|_| io::ErrorKind::BrokenPipe)?.send(line);
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // This future is dropped whenever another event comes first: nothing that was read may be
        // kept in a local variable across an await.
        loop {
            let output = self.output.as_ref()?;
            if let Some(refusal) = &self.refusal {
                let line = line(refusal).ok()?;
                output.reserve().await.ok()?.send(line);
                self.refusal = None;
            }
            if let Some(message) = self.next() {
                return Some(message);
            }
            if self.has_ended && self.queued.is_empty() {
                if is_output_closed() {
                    self.output_closed.notify_one();
                }
                return None;
            }
            let length = self.queued.iter().map(|it| it.0).sum::<usize>();
            let has_room = self.queued.len() < QUEUED && length < frame::LONGEST;
            let running = self.running.clone();
            let read = tokio::select! {
                read = self.read(), if has_room && !self.has_ended => read.unwrap_or(ReadLine::End),
                () = running.one_is_finished.notified() => continue,
            };
            if let Some(message) = self.accept_line(read) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.take());
        if let Some(writing) = self.writing.take() {
            let _ = timeout(LEAVING, writing).await;
        }
        Ok(())
    }
}

impl OpenRequests {
    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        lock(&self.ids)
    }

    fn finish(&self, id: &RequestId) {
        self.ids().remove(id);
        self.one_is_finished.notify_one();
    }
}

/// Writes lines until there are no more, or the output is no longer read.
async fn write(
    mut output: StdioWriter,
    mut lines: mpsc::Receiver<Vec<u8>>,
    output_closed: Arc<Notify>,
) {
    while let Some(line) = lines.recv().await {
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            output_closed.notify_one();
            return;
        }
    }
}

fn line(message: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

fn id(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(&request.id),
        _ => None,
    }
}

/// Whether a request begins a conversation: `initialize`, or one that carries the same information.
fn begins_conversation(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|it| ProtocolVersion::KNOWN_VERSIONS.contains(&it))
        }
    }
}
