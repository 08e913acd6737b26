//! Speaks MCP with a server: the only place that knows how.

use std::{
    fmt, io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
#[cfg(feature = "http")]
use rmcp::service::{ClientLifecycleMode, serve_client_with_lifecycle};
use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest,
        CustomRequest, CustomResult, Implementation, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerResult,
    },
    service::{
        ClientInitializeError, NotificationContext, RunningService, ServiceError, serve_client,
    },
    transport::async_rw::AsyncRwTransport,
};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::UnixStream,
};

#[cfg(feature = "http")]
use super::remote::Remote;
use crate::outcome::{Outcome, Status};

pub(super) use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool as Listed};

/// A connection to a server.
pub(super) struct Client {
    service: RunningService<RoleClient, Handler>,
    ear: Arc<Ear>,
}

/// What can be asked of a server, also by several at once.
#[derive(Clone)]
pub(super) struct Caller {
    peer: Peer<RoleClient>,
    ear: Arc<Ear>,
}

/// A server did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It has ended, or does not listen any more.
    Gone,
    /// It says more than anybody wants to hear.
    Flood,
    /// It says that it cannot.
    Said(String),
    /// What it says is not MCP.
    Nonsense(String),
    /// There is no way to it.
    Trouble(Trouble),
}

/// Why there is no way to a server behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) status: Status,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

impl Trouble {
    /// What came of asking that server.
    pub(super) fn outcome(self, server: &str) -> Outcome {
        let Self { status, message, hint } = self;
        let outcome =
            Outcome::bad(status, format!("the server `{server}` cannot be asked: {message}"));
        Outcome { hint: hint.map(str::to_owned), ..outcome }
    }
}

/// The way to a server.
pub(super) enum Line {
    /// The input and output of a program.
    Stream(UnixStream),
    #[cfg(feature = "http")]
    /// Requests to an address.
    Remote(Remote),
}

/// How much a server may say between two questions.
const MOST: u64 = 8 * 1024 * 1024;
/// How many pages of a list are asked for.
const PAGES: usize = 64;
/// What a server says of itself that offers skills.
const SKILLS: &str = "io.modelcontextprotocol/skills";

impl Client {
    /// Introduces ourselves to the server at the other end.
    pub(super) async fn connect(line: Line) -> Result<Self, Failure> {
        let ear = Arc::new(Ear { room: AtomicU64::new(MOST), ..Ear::default() });
        let handler = || Handler { ear: ear.clone() };
        let served = match line {
            Line::Stream(stream) => {
                let (read, write) = stream.into_split();
                let read = Bounded { read, ear: ear.clone() };
                serve_client(handler(), AsyncRwTransport::new_client(read, write)).await
            }
            #[cfg(feature = "http")]
            Line::Remote(remote) => {
                let remote = Arc::new(remote);
                let served = serve_client(handler(), remote.clone().transport(ear.clone())).await;
                match served {
                    Err(ClientInitializeError::JsonRpcError(error)) => {
                        let asked = remote.transport(ear.clone());
                        let without = serve_client_with_lifecycle(handler(), asked, at_once());
                        // What it says about the handshake tells more, if that is of no use either.
                        without.await.map_err(|_| ClientInitializeError::JsonRpcError(error))
                    }
                    served => served,
                }
            }
        };
        match served {
            Ok(service) => Ok(Self { service, ear }),
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

    /// The first tools that the server lists, and whether it has more.
    pub(super) async fn tools(&self, most: usize) -> Result<(Vec<Listed>, bool), Failure> {
        self.ear.listen(0);
        self.ear.has_news.store(false, Ordering::Relaxed);
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.service.list_tools(Some(page)).await;
            let page = page.map_err(|error| self.ear.failure(error))?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > most {
                break;
            }
        }
        let has_more = cursor.is_some() || tools.len() > most;
        tools.truncate(most);
        Ok((tools, has_more))
    }

    /// Whether the server offers skills.
    pub(super) fn offers_skills(&self) -> bool {
        let said = self.service.peer().peer_info();
        said.is_some_and(|it| {
            it.capabilities.extensions.as_ref().is_some_and(|it| it.contains_key(SKILLS))
        })
    }

    /// Whether the server has said since the last time that it has other tools now.
    pub(super) fn has_news(&self) -> bool {
        self.ear.has_news.load(Ordering::Relaxed)
    }

    /// The same of its skills.
    pub(super) fn has_other_skills(&self) -> bool {
        self.ear.has_other_skills.load(Ordering::Relaxed)
    }

    /// Why it is closed.
    pub(super) fn failure(&self) -> Failure {
        if self.ear.is_flooded() { Failure::Flood } else { Failure::Gone }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.service.is_transport_closed() || self.ear.is_flooded()
    }

    pub(super) fn caller(&self) -> Caller {
        Caller { peer: self.service.peer().clone(), ear: self.ear.clone() }
    }

    /// Hangs up: the server finds the end of its input, or is told to forget us.
    pub(super) async fn close(self) {
        let _ = self.service.cancel().await;
    }
}

/// How a server is asked that knows no handshake any more.
#[cfg(feature = "http")]
fn at_once() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

impl Caller {
    /// Calls a tool. A call that is dropped is cancelled.
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

    /// The first skills that the server lists, as it lists them, and whether it has more.
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
            // Whoever sends us back to where we were has nothing new.
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

    /// The skill of a URI, as the server describes it now.
    pub(super) async fn skill(&self, uri: &str) -> Result<Value, Failure> {
        self.ear.listen(0);
        Ok(self.ask("skills/get", json!({ "uri": uri })).await?["skill"].take())
    }

    /// The bytes of a resource that should have so many.
    pub(super) async fn read(&self, uri: &str, size: u64) -> Result<Vec<u8>, Failure> {
        // Written in JSON, most are longer.
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
            _ => Err(Failure::Nonsense("it tells something else than was asked for".to_owned())),
        }
    }

    /// Asks what the base protocol does not have.
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

/// What is noticed while a server speaks.
#[derive(Debug, Default)]
pub(super) struct Ear {
    /// How much it may still say.
    room: AtomicU64,
    is_flooded: AtomicBool,
    has_news: AtomicBool,
    has_other_skills: AtomicBool,
    /// What was in the way since the last question.
    trouble: Mutex<Option<Trouble>>,
}

impl Ear {
    /// Lets it say so much more than a usual answer has.
    fn listen(&self, more: u64) {
        self.room.store(MOST + more, Ordering::Relaxed);
        self.note(None);
    }

    /// Notes what is in the way to it.
    pub(super) fn note(&self, trouble: Option<Trouble>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Hears so much; says whether that is still wanted.
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

    /// Why it is not there.
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

/// What a server says, as long as it is not too much.
struct Bounded<R> {
    read: R,
    ear: Arc<Ear>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
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

/// Answers what a server asks us. Unless it says otherwise, no model is asked for it, no person, and
/// it is told of no directory.
struct Handler {
    ear: Arc<Ear>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("prowess", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
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
