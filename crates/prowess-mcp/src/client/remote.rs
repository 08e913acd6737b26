//! The connection to a remote server: the transport of the SDK on our own HTTP client.

use std::{
    borrow::Cow,
    collections::HashMap,
    error::Error,
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::stream::{BoxStream, StreamExt as _, try_unfold};
use hyper::{
    Method,
    body::Bytes,
    header::{HeaderName, HeaderValue},
};
use prowess_http::{
    CONNECTION_HEADERS as OURS, ClientRequest as Post, Hosts, HttpClient as Wire,
    HttpError as WireError, StreamedResponse as Incoming, Timeouts as Patience,
};
use prowess_runtime::OutcomeStatus;
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{
            SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
            StreamableHttpError, StreamableHttpPostResponse as Posted,
        },
    },
};
use sse_stream::{Sse, SseStream};
use tokio::time::sleep;

use super::{
    failure::ConnectionFailure,
    message::without_meta,
    monitor::TrafficMonitor,
    oauth::{Bearer, Challenge, LoginError},
};

/// A remote server.
#[derive(Debug)]
pub(super) struct Remote {
    wire: Wire,
    /// The template of every request.
    base: Post,
    /// The user's login, if there can be one.
    pub(super) bearer: Option<Arc<Bearer>>,
    pub(super) hosts: Hosts,
}

/// A remote server with the state of a connection.
#[derive(Debug, Clone)]
struct RemoteRequest {
    remote: Arc<Remote>,
    monitor: Arc<TrafficMonitor>,
    /// Whether its event stream was opened before.
    is_known: Arc<AtomicBool>,
}

/// The failure of a request. The caller gets it from the [`TrafficMonitor`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RequestFailure(String);

type RemoteError = StreamableHttpError<RequestFailure>;

/// The minimum time until an event stream is opened again, whatever the server says.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum length of a server's error message.
const MESSAGE: usize = 256;
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

impl Remote {
    /// Creates the connection to a server at this URL, if it is allowed, with headers for every
    /// request. The caller chooses the timeout of an answer.
    pub(super) fn new(
        hosts: Hosts,
        connect: Duration,
        url: String,
        headers: Vec<(String, String)>,
    ) -> Result<Self, ConnectionFailure> {
        let mut names = headers.iter().map(|it| &it.0);
        if let Some(name) = names.find(|name| OURS.iter().any(|it| it.eq_ignore_ascii_case(name))) {
            let message = format!("header `{}` cannot be set", name.escape_debug());
            return Err(ConnectionFailure { status: OutcomeStatus::Refused, message, hint: None });
        }
        let patience = Patience { connect, idle: Duration::MAX, total: Duration::MAX };
        let wire = Wire::new(patience).with_hosts(hosts.clone());
        let base = Post { url, headers, body: Vec::new(), max_body: u64::MAX };
        wire.check(&base).map_err(|error| connection_failure(&error))?;
        Ok(Self { wire, base, bearer: None, hosts })
    }

    pub(super) fn url(&self) -> &str {
        &self.base.url
    }

    /// Returns the headers of every request, without a token.
    pub(super) fn headers(&self) -> &[(String, String)] {
        &self.base.headers
    }

    /// Creates the transport.
    pub(super) fn transport(
        self: Arc<Self>,
        monitor: Arc<TrafficMonitor>,
    ) -> StreamableHttpClientTransport<impl StreamableHttpClient> {
        let config = StreamableHttpClientTransportConfig::with_uri(&*self.base.url);
        let asked = RemoteRequest { remote: self, monitor, is_known: Arc::default() };
        StreamableHttpClientTransport::with_client(asked, config)
    }
}

impl StreamableHttpClient for RemoteRequest {
    type Error = RequestFailure;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Posted, RemoteError> {
        let has_session = session.is_some();
        let own = [("content-type", JSON.to_owned()), ("accept", format!("{JSON}, {EVENTS}"))];
        let own = own.into_iter().chain(session.map(|it| (SESSION, it.to_string())));
        let body = serde_json::to_vec(&message)?;
        let mut incoming = self.send(Method::POST, headers, own, body).await?;
        let session = incoming.header(SESSION).map(str::to_owned);
        let kind = incoming.header("content-type").unwrap_or_default();
        match incoming.status {
            202 | 204 => Ok(Posted::Accepted),
            404 if has_session => Err(RemoteError::SessionExpired),
            200..300 if kind.starts_with(EVENTS) => Ok(Posted::Sse(self.events(incoming), session)),
            200..300 if kind.starts_with(JSON) => {
                let body = self.body(&mut incoming).await?;
                match serde_json::from_slice::<ServerJsonRpcMessage>(&without_meta(&body)) {
                    Ok(message) => Ok(Posted::Json(message, session)),
                    Err(_) if !matches!(message, ClientJsonRpcMessage::Request(_)) => {
                        Ok(Posted::Accepted)
                    }
                    Err(error) => Err(self.fail(not_mcp(&error.to_string()))),
                }
            }
            200..300 if !matches!(message, ClientJsonRpcMessage::Request(_)) => {
                Ok(Posted::Accepted)
            }
            200..300 => Err(self.fail(not_mcp("its answer is neither JSON nor events"))),
            status => {
                let refusal_of_token = self.refusal_of_token(&incoming);
                let is_answer = kind.starts_with(JSON)
                    && !matches!(status, 401 | 403)
                    && matches!(message, ClientJsonRpcMessage::Request(_));
                let body = self.body(&mut incoming).await?;
                match serde_json::from_slice(&body) {
                    // A protocol error may come with an HTTP error status; it must have the `id` of
                    // a request to be delivered.
                    Ok(ServerJsonRpcMessage::Error(error)) if is_answer && error.id.is_some() => {
                        Ok(Posted::Json(ServerJsonRpcMessage::Error(error), session))
                    }
                    _ => Err(self.fail(refusal_of_token.unwrap_or_else(|| refusal(status, &body)))),
                }
            }
        }
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), RemoteError> {
        let own = [(SESSION, session.to_string())];
        self.send(Method::DELETE, headers, own, Vec::new()).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, RemoteError> {
        if self.is_known.swap(true, Ordering::Relaxed) {
            sleep(PAUSE).await;
        }
        if self.monitor.is_flooded() {
            return Err(RemoteError::ServerDoesNotSupportSse);
        }
        let own = iter::once(("accept", EVENTS.to_owned()))
            .chain(session.map(|it| (SESSION, it.to_string())))
            .chain(last.map(|it| ("last-event-id", it)));
        let incoming = self.send(Method::GET, headers, own, Vec::new()).await?;
        let is_stream = incoming.header("content-type").is_some_and(|it| it.starts_with(EVENTS));
        match incoming.status {
            200 if is_stream => Ok(self.events(incoming)),
            _ => Err(RemoteError::ServerDoesNotSupportSse),
        }
    }
}

const SESSION: &str = "mcp-session-id";

impl RemoteRequest {
    /// Sends a request, and waits for the head of the answer. Headers of MCP override the
    /// configured ones.
    async fn send(
        &self,
        method: Method,
        headers: HashMap<HeaderName, HeaderValue>,
        own: impl IntoIterator<Item = (&'static str, String)>,
        body: Vec<u8>,
    ) -> Result<Incoming, RemoteError> {
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()));
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        let plain = ("accept-encoding".to_owned(), "identity".to_owned());
        let base = self.remote.base.clone();
        let headers = base.headers.into_iter().chain(headers).chain(own).chain([plain]).collect();
        let post = Post { headers, body, ..base };
        let Some(bearer) = &self.remote.bearer else { return self.post(method, post).await };
        let token = bearer.token().await.map_err(|it| self.fail(no_token(bearer, &it)))?;
        let Some(token) = token else { return self.post(method, post).await };
        let incoming = self.post(method.clone(), with_token(&post, token.reveal())).await?;
        if incoming.status != 401 {
            return Ok(incoming);
        }
        // The token may have been revoked, or the clocks may differ.
        let renewed = bearer.renew(&token).await;
        match renewed.map_err(|it| self.fail(no_token(bearer, &it)))? {
            Some(renewed) if renewed != token => {
                self.post(method, with_token(&post, renewed.reveal())).await
            }
            _ => Ok(incoming),
        }
    }

    async fn post(&self, method: Method, post: Post) -> Result<Incoming, RemoteError> {
        let sent = self.remote.wire.send(method, post).await;
        sent.map_err(|error| self.fail(connection_failure(&error)))
    }

    /// Returns the error if a token is missing, or insufficient.
    fn refusal_of_token(&self, incoming: &Incoming) -> Option<ConnectionFailure> {
        let label = self.remote.bearer.as_ref()?.label();
        let challenge = Challenge::of(incoming);
        let (message, hint) = match incoming.status {
            401 => (
                "it needs a login".to_owned(),
                format!(
                    "run `prowess servers login {label}`, or set an `authorization` in its `headers`"
                ),
            ),
            403 if challenge.wants_scope() => match &challenge.scopes().join(" ")[..] {
                "" => (
                    "the login does not allow this".to_owned(),
                    format!("run `prowess servers login {label}` with a `--scope` that it needs"),
                ),
                scopes => (
                    format!("the login lacks the scopes `{scopes}`"),
                    format!("run `prowess servers login {label} --scope '{scopes}'`"),
                ),
            },
            _ => return None,
        };
        Some(ConnectionFailure { status: OutcomeStatus::Failed, message, hint: Some(hint.into()) })
    }

    /// Reads an answer, up to a limit.
    async fn body(&self, incoming: &mut Incoming) -> Result<Vec<u8>, RemoteError> {
        let mut body = Vec::new();
        while let Some(bytes) =
            incoming.chunk().await.map_err(|error| self.fail(connection_failure(&error)))?
        {
            if !self.monitor.count(bytes.len()) {
                return Err(RemoteError::Client(flood_error()));
            }
            body.extend(bytes);
        }
        Ok(body)
    }

    /// Returns the events of an answer, as they arrive.
    fn events(&self, incoming: Incoming) -> BoxStream<'static, Result<Sse, SseError>> {
        let monitor = self.monitor.clone();
        let bytes = try_unfold((incoming, monitor), |(mut incoming, monitor)| async move {
            let chunk =
                incoming.chunk().await.map_err(|error| RequestFailure(error.to_string()))?;
            let Some(bytes) = chunk else { return Ok(None) };
            if !monitor.count(bytes.len()) {
                return Err(flood_error());
            }
            Ok(Some((Bytes::from(bytes), (incoming, monitor))))
        });
        SseStream::from_bytes_stream(bytes)
            .map(move |it| {
                it.map(|event: Sse| {
                    let data = event.data.map(|it| match without_meta(it.as_bytes()) {
                        Cow::Borrowed(_) => it,
                        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).trim_end().to_owned(),
                    });
                    Sse { data, ..event }
                })
            })
            .boxed()
    }

    fn fail(&self, trouble: ConnectionFailure) -> RemoteError {
        let unasked = RequestFailure(trouble.message.clone());
        self.monitor.note(Some(trouble));
        RemoteError::Client(unasked)
    }
}

/// Creates the error for an HTTP error status.
fn refusal(status: u16, body: &[u8]) -> ConnectionFailure {
    let hint = match status {
        300..=399 => Some("redirects are not followed: use the URL that it redirects to"),
        401 | 403 => {
            Some("its entry can have `headers`, such as `authorization` with a variable in it")
        }
        404 => Some("check the path of its `url`"),
        _ => None,
    };
    let said: String = String::from_utf8_lossy(body).chars().take(MESSAGE).collect();
    let said = said.trim();
    let colon = if said.is_empty() { "" } else { ": " };
    let message = format!("it answers with {status}{colon}{said}");
    ConnectionFailure { status: OutcomeStatus::Failed, message, hint: hint.map(Cow::Borrowed) }
}

/// Adds a token to a request.
fn with_token(post: &Post, token: &str) -> Post {
    let mut post = post.clone();
    post.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    post
}

fn no_token(bearer: &Bearer, error: &LoginError) -> ConnectionFailure {
    let label = bearer.label();
    let message = format!("its token cannot be renewed: {}", error.message_with_cause());
    let hint = match error {
        LoginError::Denied { .. } => Some(format!("run `prowess servers login {label}`")),
        _ => error.hint(label),
    };
    ConnectionFailure { status: OutcomeStatus::Failed, message, hint: hint.map(Cow::Owned) }
}

fn flood_error() -> RequestFailure {
    RequestFailure("it sends too much".to_owned())
}

fn not_mcp(why: &str) -> ConnectionFailure {
    ConnectionFailure {
        status: OutcomeStatus::Failed,
        message: format!("it does not speak MCP: {why}"),
        hint: None,
    }
}

fn connection_failure(error: &WireError) -> ConnectionFailure {
    let mut deepest: Option<&dyn Error> = error.source();
    while let Some(source) = deepest.and_then(Error::source) {
        deepest = Some(source);
    }
    let message = deepest.map_or(error.to_string(), |it| format!("{error}: {it}"));
    let (status, hint) = match error {
        WireError::Refused { .. } => (
            OutcomeStatus::Refused,
            Some(
                "list it in `policy.hosts` of your own settings; once that is set, only the hosts in it can be reached",
            ),
        ),
        WireError::Url { .. } | WireError::Header { .. } => (OutcomeStatus::Refused, None),
        WireError::Timeout { .. } => (OutcomeStatus::TimedOut, None),
        WireError::Connect { .. } | WireError::Resolve { .. } => {
            (OutcomeStatus::Failed, Some("check that the server is running, and its `url`"))
        }
        _ => (OutcomeStatus::Failed, None),
    };
    ConnectionFailure { status, message, hint: hint.map(Cow::Borrowed) }
}
