//! An MCP client: the only place that knows the protocol.

use std::{
    borrow::Cow,
    fmt, io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest,
        CustomRequest, CustomResult, Implementation, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerNotification, ServerResult,
        SubscriptionFilter,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, NotificationContext, RunningService,
        ServiceError, Subscription, serve_client_with_lifecycle,
    },
    transport::async_rw::AsyncRwTransport,
};
use serde_json::{Map, Value, json};
use tokio::{
    io::{
        AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader,
        DuplexStream, ReadBuf,
    },
    net::UnixStream,
    task::JoinHandle,
    time::timeout,
};

#[cfg(feature = "http")]
use super::remote::Remote;
use crate::outcome::{Outcome, OutcomeStatus};

pub(super) use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool as Listed};

/// A connection to a server.
pub(super) struct Client {
    service: RunningService<RoleClient, Handler>,
    ear: Arc<Ear>,
    /// Receives changes from a server of 2026-07-28, which sends them only to a subscriber.
    subscriber: Option<JoinHandle<()>>,
}

/// Sends requests to a server, also concurrently.
#[derive(Clone)]
pub(super) struct Caller {
    peer: Peer<RoleClient>,
    ear: Arc<Ear>,
}

/// A request to a server failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It has ended, or does not respond any more.
    Gone,
    /// It sends too much data.
    Flood,
    /// It returned an error.
    Said(String),
    /// It sent invalid MCP messages.
    Nonsense(String),
    /// The connection failed.
    Trouble(Trouble),
}

/// The reason why a remote server cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) status: OutcomeStatus,
    pub(super) message: String,
    pub(super) hint: Option<Cow<'static, str>>,
}

impl Trouble {
    /// Converts it to the outcome of a request to that server.
    pub(super) fn outcome(self, server: &str) -> Outcome {
        let Self { status, message, hint } = self;
        let outcome =
            Outcome::bad(status, format!("the server `{server}` cannot be asked: {message}"));
        Outcome { hint: hint.map(Cow::into_owned), ..outcome }
    }
}

/// The connection to a server.
pub(super) enum Line {
    /// The input and output of a program.
    Stream(UnixStream),
    #[cfg(feature = "http")]
    /// HTTP requests.
    Remote(Box<Remote>),
}

/// The maximum number of bytes that a server may send between two requests.
const MOST: u64 = 8 * 1024 * 1024;
/// The buffer size of a pipe in bytes.
const PIPE: usize = 64 * 1024;
/// The maximum number of requested pages of a list.
const PAGES: usize = 64;
/// The maximum nesting depth of a message.
const DEPTH: usize = 120;
/// The capability of a server that offers skills.
const SKILLS: &str = "io.modelcontextprotocol/skills";

impl Client {
    /// Connects to a server, by the protocol revision in which it offers the most. Some support
    /// two, and offer skills only in 2026-07-28. A program has `patience` to answer whether it
    /// supports that revision.
    pub(super) async fn connect(line: Line, patience: Duration) -> Result<Self, Failure> {
        let ear = Arc::new(Ear { room: AtomicU64::new(MOST), ..Ear::default() });
        let handler = || Handler { ear: ear.clone() };
        let served = match line {
            Line::Stream(stream) => {
                let (read, write) = stream.into_split();
                let read = BufReader::new(BoundedReader { read, ear: ear.clone() });
                let ear = ear.clone();
                let mut pipe = Pipe { read, write, line: Vec::new(), late: None, ear };
                let lifecycle = match pipe.knows_discovery(patience).await {
                    true => discovery(),
                    false => ClientLifecycleMode::Initialize,
                };
                let (transport, carried) = pipe.transport();
                match serve_client_with_lifecycle(handler(), transport, lifecycle).await {
                    Err(ClientInitializeError::JsonRpcError(error)) => match carried.await {
                        // It was only slow, and is bound to its first answer.
                        Ok(pipe) if pipe.late == Some(true) => {
                            let (transport, _) = pipe.transport();
                            serve_client_with_lifecycle(handler(), transport, discovery()).await
                        }
                        _ => Err(ClientInitializeError::JsonRpcError(error)),
                    },
                    served => served,
                }
            }
            #[cfg(feature = "http")]
            Line::Remote(remote) => {
                let remote: Arc<Remote> = Arc::from(remote);
                let connected = |lifecycle| {
                    let transport = remote.clone().transport(ear.clone());
                    serve_client_with_lifecycle(handler(), transport, lifecycle)
                };
                match connected(ClientLifecycleMode::Initialize).await {
                    Err(ClientInitializeError::JsonRpcError(error)) => {
                        // The error of the handshake is more helpful, if this fails as well.
                        let served = connected(discovery()).await;
                        served.map_err(|_| ClientInitializeError::JsonRpcError(error))
                    }
                    Ok(service) if !offers_skills(&service) => match connected(discovery()).await {
                        Ok(other) if offers_skills(&other) => {
                            let _ = service.cancel().await;
                            Ok(other)
                        }
                        _ => {
                            ear.note(None);
                            Ok(service)
                        }
                    },
                    served => served,
                }
            }
        };
        match served {
            Ok(service) => {
                let subscriber = subscribe(&service, &ear);
                Ok(Self { service, ear, subscriber })
            }
            Err(_) if ear.is_flooded() => Err(Failure::Flood),
            Err(ClientInitializeError::JsonRpcError(error)) => {
                Err(Failure::Said(error.message.into()))
            }
            Err(
                ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. },
            ) => Err(ear.gone()),
            Err(error) => Err(Failure::Nonsense(error.to_string())),
        }
    }

    /// Returns the first tools that the server lists, and whether it has more.
    pub(super) async fn tools(&self, most: usize) -> Result<(Vec<Listed>, bool), Failure> {
        self.ear.listen(0);
        self.ear.has_news.store(false, Ordering::Relaxed);
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = self.service.list_tools(Some(page)).await;
            let page = page.map_err(|error| self.ear.failure(error))?;
            tools.extend(page.tools);
            // A server that repeats a cursor has nothing new.
            let is_same = page.next_cursor == cursor;
            cursor = page.next_cursor;
            if cursor.is_none() || is_same || tools.len() > most {
                break;
            }
        }
        let has_more = cursor.is_some() || tools.len() > most;
        tools.truncate(most);
        Ok((tools, has_more))
    }

    /// Whether the server offers skills.
    pub(super) fn offers_skills(&self) -> bool {
        offers_skills(&self.service)
    }

    /// Whether the server has announced changed tools since they were last listed.
    pub(super) fn has_news(&self) -> bool {
        self.ear.has_news.load(Ordering::Relaxed)
    }

    /// Whether the server has announced changed skills since they were last listed.
    pub(super) fn has_other_skills(&self) -> bool {
        self.ear.has_other_skills.load(Ordering::Relaxed)
    }

    /// Returns the reason why it is closed.
    pub(super) fn failure(&self) -> Failure {
        if self.ear.is_flooded() { Failure::Flood } else { Failure::Gone }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.service.is_transport_closed() || self.ear.is_flooded()
    }

    pub(super) fn caller(&self) -> Caller {
        Caller { peer: self.service.peer().clone(), ear: self.ear.clone() }
    }

    /// Closes the connection: the server reaches the end of its input, or is asked to end the
    /// session.
    pub(super) async fn close(self) {
        if let Some(subscriber) = &self.subscriber {
            subscriber.abort();
        }
        let _ = self.service.cancel().await;
    }
}

/// Selects 2026-07-28, which has no handshake.
fn discovery() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

/// The input and output of a program.
struct Pipe<R, W> {
    read: R,
    write: W,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// Whether it supports 2026-07-28, if it answered that after the timeout.
    late: Option<bool>,
    ear: Arc<Ear>,
}

impl<R, W> Pipe<R, W>
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Asks whether the program supports 2026-07-28, before anything else: its first request
    /// determines the revision of all answers. One that does not answer in time is assumed to be
    /// older.
    async fn knows_discovery(&mut self, patience: Duration) -> bool {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": ProtocolVersion::V_2026_07_28.as_str(),
            "io.modelcontextprotocol/clientInfo": own(),
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

    /// Creates a transport for the SDK, with messages that it can parse. The pipe is returned once
    /// that transport is closed.
    fn transport(
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
        let Self { read, write, line, late, ear } = self;
        let inwards = async {
            while read.read_until(b'\n', line).await.is_ok_and(|it| it > 0) {
                // The request has timed out: the SDK does not know it.
                if let Some(knows) = discovered(line) {
                    *late = Some(knows);
                } else if is_deep(line) {
                    // The SDK drops messages that it cannot parse, and the caller would wait for
                    // ever.
                    let message = format!("its answer is nested more than {DEPTH} levels deep");
                    let status = OutcomeStatus::Failed;
                    ear.note(Some(Trouble { status, message, hint: None }));
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

/// Whether a message is nested deeper than the JSON parser allows.
fn is_deep(message: &[u8]) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in message {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth += 1,
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            return true;
        }
    }
    false
}

/// Whether a message says that a program supports 2026-07-28; `None` if it is not an answer to
/// that.
fn discovered(message: &[u8]) -> Option<bool> {
    // No other message has this ID, and few contain the word: only those are parsed here.
    let text = std::str::from_utf8(message).ok().filter(|it| it.contains(PROBE))?;
    let message: Value = serde_json::from_str(text).ok()?;
    if message["id"] != PROBE || !message["method"].is_null() {
        return None;
    }
    let versions = message["result"]["supportedVersions"].as_array();
    let own = ProtocolVersion::V_2026_07_28.as_str();
    Some(versions.is_some_and(|it| it.iter().any(|it| it == own)))
}

/// Removes the `_meta` of a result about skills, because of which the SDK would parse it as the
/// result of a tool and lose the rest.
pub(super) fn without_meta(message: &[u8]) -> Cow<'_, [u8]> {
    // Few messages contain both, and only those are parsed here.
    let has_both = |it: &str| it.contains("\"_meta\"") && it.contains("\"skill");
    if !std::str::from_utf8(message).is_ok_and(has_both) {
        return message.into();
    }
    let Ok(mut parsed) = serde_json::from_slice::<Value>(message) else { return message.into() };
    let result = parsed.get_mut("result").and_then(Value::as_object_mut);
    let result = result.filter(|it| it.contains_key("skills") || it.contains_key("skill"));
    match result.and_then(|it| it.remove("_meta")) {
        Some(_) => format!("{parsed}\n").into_bytes().into(),
        None => message.into(),
    }
}

/// The ID of the request that asks for the revision.
const PROBE: &str = "discover";

fn own() -> Implementation {
    Implementation::new("prowess", env!("CARGO_PKG_VERSION"))
}

fn offers_skills(service: &RunningService<RoleClient, Handler>) -> bool {
    let said = service.peer().peer_info();
    said.is_some_and(|it| {
        it.capabilities.extensions.as_ref().is_some_and(|it| it.contains_key(SKILLS))
    })
}

/// Subscribes to changes of tools and resources, if the server only sends them on request.
fn subscribe(
    service: &RunningService<RoleClient, Handler>,
    ear: &Arc<Ear>,
) -> Option<JoinHandle<()>> {
    let info = service.peer().peer_info()?;
    if info.protocol_version.as_str() < ProtocolVersion::V_2026_07_28.as_str() {
        return None;
    }
    let capabilities = &info.capabilities;
    let tools = capabilities.tools.as_ref().and_then(|it| it.list_changed);
    let resources = capabilities.resources.as_ref().and_then(|it| it.list_changed);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = tools.filter(|it| *it);
    filter.resources_list_changed = resources.filter(|it| *it);
    if filter == SubscriptionFilter::new() {
        return None;
    }
    let (peer, ear) = (service.peer().clone(), ear.clone());
    Some(tokio::spawn(async move {
        if let Ok(subscription) = peer.listen(filter).await {
            follow(subscription, &ear).await;
        }
    }))
}

/// Records every change of a subscription, until it ends.
async fn follow(mut subscription: Subscription, ear: &Ear) {
    while let Ok(Some(notification)) = subscription.next().await {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => {
                ear.has_news.store(true, Ordering::Relaxed);
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                ear.has_other_skills.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

impl Caller {
    /// Calls a tool. Dropping the future cancels the call.
    pub(super) async fn call(
        &self,
        tool: &str,
        input: Map<String, Value>,
    ) -> Result<CallToolResult, Failure> {
        self.ear.listen(0);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        match self.peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(_) => {
                Err(Failure::Said("it wants to be asked in a way that is not known".to_owned()))
            }
            Err(error) => Err(self.ear.failure(error)),
        }
    }

    /// Returns the first skills that the server lists, as listed, and whether it has more.
    pub(super) async fn skills(&self, most: usize) -> Result<(Vec<Value>, bool), Failure> {
        self.ear.listen(0);
        self.ear.has_other_skills.store(false, Ordering::Relaxed);
        let mut skills = Vec::new();
        let mut cursor = Value::Null;
        for _ in 0..PAGES {
            let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
            let mut page = self.ask("skills/list", params).await?;
            match page["skills"].take() {
                Value::Array(listed) => skills.extend(listed),
                _ => return Err(Failure::Nonsense("it lists no skills, nor none".to_owned())),
            }
            let next = page["nextCursor"].take();
            // A server that repeats a cursor has nothing new.
            let is_over = next.is_null() || next == cursor;
            cursor = next;
            if is_over || skills.len() > most {
                break;
            }
        }
        let has_more = !cursor.is_null() || skills.len() > most;
        skills.truncate(most);
        Ok((skills, has_more))
    }

    /// Returns the skill of a URI, as the server describes it now.
    pub(super) async fn skill(&self, uri: &str) -> Result<Value, Failure> {
        self.ear.listen(0);
        Ok(self.ask("skills/get", json!({ "uri": uri })).await?["skill"].take())
    }

    /// Reads a resource of an expected size.
    pub(super) async fn read(&self, uri: &str, size: u64) -> Result<Vec<u8>, Failure> {
        // Most are longer when encoded in JSON.
        self.ear.listen(size.saturating_mul(2));
        let params = ReadResourceRequestParams::new(uri);
        let contents = match self.peer.read_resource_once(params).await {
            Ok(ReadResourceResponse::Complete(result)) => result.contents,
            Ok(_) => return Err(Failure::Said("it wants to be asked in another way".to_owned())),
            Err(error) => return Err(self.ear.failure(error)),
        };
        match <[ResourceContents; 1]>::try_from(contents) {
            Ok([ResourceContents::TextResourceContents { uri: own, text, .. }]) if own == uri => {
                Ok(text.into_bytes())
            }
            Ok([ResourceContents::BlobResourceContents { uri: own, blob, .. }]) if own == uri => {
                let bytes = BASE64_STANDARD.decode(blob);
                bytes.map_err(|_| Failure::Nonsense("its bytes are not in base64".to_owned()))
            }
            _ => Err(Failure::Nonsense("it answered something else than was asked for".to_owned())),
        }
    }

    /// Sends a request that is not part of the base protocol.
    async fn ask(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let request = CustomRequest::new(method, Some(params));
        match self.peer.send_request(ClientRequest::CustomRequest(request)).await {
            Ok(ServerResult::CustomResult(CustomResult(result))) => Ok(result),
            Ok(_) => Err(Failure::Nonsense(format!("its answer to `{method}` is none"))),
            Err(error) => Err(self.ear.failure(error)),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("ear", &self.ear).finish_non_exhaustive()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("ear", &self.ear).finish_non_exhaustive()
    }
}

/// The state of the incoming messages of a server.
#[derive(Debug, Default)]
pub(super) struct Ear {
    /// The number of bytes that it may still send.
    room: AtomicU64,
    is_flooded: AtomicBool,
    has_news: AtomicBool,
    has_other_skills: AtomicBool,
    /// The connection error since the last request.
    trouble: Mutex<Option<Trouble>>,
}

impl Ear {
    /// Allows so many more bytes than for a usual answer.
    fn listen(&self, more: u64) {
        self.room.store(MOST + more, Ordering::Relaxed);
        self.note(None);
    }

    /// Records a connection error.
    pub(super) fn note(&self, trouble: Option<Trouble>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Counts incoming bytes; returns whether they are within the limit.
    pub(super) fn hear(&self, said: usize) -> bool {
        let (room, said) = (&self.room, said as u64);
        let fits = room.try_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(said));
        if fits.is_err() {
            self.is_flooded.store(true, Ordering::Relaxed);
        }
        fits.is_ok()
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.is_flooded.load(Ordering::Relaxed)
    }

    /// Returns the reason why it is gone.
    fn gone(&self) -> Failure {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        trouble.map_or(Failure::Gone, Failure::Trouble)
    }

    fn failure(&self, error: ServiceError) -> Failure {
        match error {
            _ if self.is_flooded() => Failure::Flood,
            ServiceError::McpError(error) => Failure::Said(error.message.into()),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => self.gone(),
            error => Failure::Nonsense(error.to_string()),
        }
    }
}

/// The output of a server, up to a limit.
struct BoundedReader<R> {
    read: R,
    ear: Arc<Ear>,
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.read).poll_read(context, buffer))?;
        match self.ear.hear(buffer.filled().len() - before) {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(io::ErrorKind::FileTooLarge.into())),
        }
    }
}

/// Answers requests of a server. By default, it cannot use a model, ask a person, or list
/// directories.
struct Handler {
    ear: Arc<Ear>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), own())
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.ear.has_news.store(true, Ordering::Relaxed);
    }

    /// Skills are resources, and have no notification of their own.
    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.ear.has_other_skills.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a program that delays its answer to the first request until the second one, and
    /// then answers in order. With `knows` it only supports 2026-07-28.
    async fn answer_late(stream: UnixStream, knows: bool) {
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        let mut held: Vec<Value> = Vec::new();
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).unwrap();
            if asked["id"].is_null() {
                continue;
            }
            held.push(asked);
            if held.len() == 1 && held[0]["id"] == PROBE {
                continue;
            }
            for asked in held.drain(..) {
                let own = json!({ "name": "late", "version": "1" });
                let result = match asked["method"].as_str() {
                    Some("server/discover") if knows => json!({
                        "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                        "serverInfo": own, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    }),
                    Some("initialize") if !knows => json!({
                        "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": own,
                    }),
                    Some("tools/list") => {
                        json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] })
                    }
                    _ => Value::Null,
                };
                let mut said = json!({ "jsonrpc": "2.0", "id": asked["id"] });
                match result {
                    Value::Null => {
                        said["error"] = json!({ "code": -32601, "message": "no such method" });
                    }
                    result => said["result"] = result,
                }
                write.write_all(format!("{said}\n").as_bytes()).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_any_more_is_dropped() {
        for knows in [false, true] {
            let (own, other) = UnixStream::pair().unwrap();
            let server = tokio::spawn(answer_late(other, knows));
            let client = Client::connect(Line::Stream(own), Duration::ZERO).await.unwrap();
            let (tools, _) = client.tools(8).await.unwrap();
            assert_eq!(tools.len(), 1, "{knows}");
            client.close().await;
            server.await.unwrap();
        }
    }
}
