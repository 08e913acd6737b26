//! Speaks MCP with a server: the only place that knows how.

use std::{
    fmt, io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation,
        PaginatedRequestParams, ProtocolVersion,
    },
    service::{
        ClientInitializeError, NotificationContext, RunningService, ServiceError, serve_client,
    },
    transport::async_rw::AsyncRwTransport,
};
use serde_json::{Map, Value};
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::UnixStream,
};

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
}

/// How much a server may say between two questions.
const MOST: u64 = 8 * 1024 * 1024;
/// How many pages of tools are asked for.
const PAGES: usize = 64;

impl Client {
    /// Introduces ourselves to the server at the other end.
    pub(super) async fn connect(stream: UnixStream) -> Result<Self, Failure> {
        let ear = Arc::new(Ear { room: AtomicU64::new(MOST), ..Ear::default() });
        let (read, write) = stream.into_split();
        let read = Bounded { read, ear: ear.clone() };
        let handler = Handler { ear: ear.clone() };
        let transport = AsyncRwTransport::new_client(read, write);
        match serve_client(handler, transport).await {
            Ok(service) => Ok(Self { service, ear }),
            Err(_) if ear.is_flooded() => Err(Failure::Flood),
            Err(ClientInitializeError::JsonRpcError(error)) => {
                Err(Failure::Said(error.message.into()))
            }
            Err(
                ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. },
            ) => Err(Failure::Gone),
            Err(error) => Err(Failure::Nonsense(error.to_string())),
        }
    }

    /// The first tools that the server lists, and whether it has more.
    pub(super) async fn tools(&self, most: usize) -> Result<(Vec<Listed>, bool), Failure> {
        self.ear.listen();
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

    /// Whether the server has said since the last time that it has other tools now.
    pub(super) fn has_news(&self) -> bool {
        self.ear.has_news.load(Ordering::Relaxed)
    }

    /// Why it is closed.
    pub(super) fn failure(&self) -> Failure {
        if self.ear.is_flooded() { Failure::Flood } else { Failure::Gone }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.service.is_transport_closed()
    }

    pub(super) fn caller(&self) -> Caller {
        Caller { peer: self.service.peer().clone(), ear: self.ear.clone() }
    }

    /// Hangs up: the server finds the end of its input.
    pub(super) async fn close(self) {
        let _ = self.service.cancel().await;
    }
}

impl Caller {
    /// Calls a tool. A call that is dropped is cancelled.
    pub(super) async fn call(
        &self,
        tool: &str,
        input: Map<String, Value>,
    ) -> Result<CallToolResult, Failure> {
        self.ear.listen();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        match self.peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(_) => {
                Err(Failure::Said("it wants to be asked in a way that is not known".to_owned()))
            }
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
struct Ear {
    /// How much it may still say.
    room: AtomicU64,
    is_flooded: AtomicBool,
    has_news: AtomicBool,
}

impl Ear {
    fn listen(&self) {
        self.room.store(MOST, Ordering::Relaxed);
    }

    fn is_flooded(&self) -> bool {
        self.is_flooded.load(Ordering::Relaxed)
    }

    fn failure(&self, error: ServiceError) -> Failure {
        match error {
            _ if self.is_flooded() => Failure::Flood,
            ServiceError::McpError(error) => Failure::Said(error.message.into()),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => Failure::Gone,
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
        let said = (buffer.filled().len() - before) as u64;
        let room = &self.ear.room;
        let fits = room.try_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(said));
        if fits.is_err() {
            self.ear.is_flooded.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
        }
        Poll::Ready(Ok(()))
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
}
