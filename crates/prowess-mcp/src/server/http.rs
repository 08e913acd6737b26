//! Serving over streamable HTTP: many clients, each of which has to be admitted.

use std::{
    collections::HashSet, convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, JsonRpcError},
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::{SessionManager as _, local::LocalSessionManager},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::server::{
    admission::{Admission, AdmissionError, AdmittedRequest},
    frame,
    sessions::{Peer, SessionTable},
    skill_server::SkillServer,
    stdio::ServeError,
};

/// The path of the server.
const PATH: &str = "/mcp";
/// The message size that every client may send at any time, and the number that may send more at
/// once.
const SHORT: usize = 64 * 1024;
const LONG_ONES: usize = 16;
/// The maximum size of a request head, and of the unread part of an answer.
const BUFFER: usize = 64 * 1024;
/// The delay before the next client is accepted after accepting one failed.
const PAUSE: Duration = Duration::from_millis(50);
/// The time clients have to read the rest when the server stops.
const LEAVING: Duration = Duration::from_secs(2);

/// The settings of the HTTP server: admission and limits.
#[derive(Debug, Clone)]
pub struct Http {
    /// The token that clients must send; without one, every client on this machine is admitted.
    pub token: Option<String>,
    /// The allowed origins, in addition to the server's own; with a token, also those of this
    /// machine.
    pub origins: Vec<String>,
    /// The allowed host names, in addition to those of this machine.
    pub hosts: Vec<String>,
    /// The maximum number of open connections.
    pub connections: usize,
    /// The maximum number of sessions.
    pub sessions: usize,
    /// The maximum number of sessions per client: a machine, or a user of this one.
    pub sessions_per_client: usize,
    /// The time after which an idle session ends.
    pub idle: Duration,
    /// The timeout for a client to send a head or a body, or to read any part of an answer.
    pub patience: Duration,
}

/// A bound address at which clients can reach the server.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    http: Http,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl Default for Http {
    fn default() -> Self {
        Self {
            token: None,
            origins: Vec::new(),
            hosts: Vec::new(),
            connections: 4096,
            sessions: 2048,
            sessions_per_client: 256,
            idle: Duration::from_secs(30 * 60),
            patience: Duration::from_secs(30),
        }
    }
}

impl HttpServer {
    /// Binds an address. One that other machines can reach is refused without a token.
    pub async fn bind(address: SocketAddr, http: Http) -> Result<Self, ServeError> {
        if !address.ip().is_loopback() && http.token.is_none() {
            return Err(ServeError::Open(address));
        }
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| ServeError::Address(address, error))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, http })
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves clients until `stop` completes.
    pub async fn serve(self, server: SkillServer, stop: impl Future<Output = ()>) {
        let Self { listener, address, http } = self;
        let _following = server.start();
        let handler = Arc::new(RequestHandler::new(server, address, &http));
        let room = Arc::new(Semaphore::new(http.connections));
        let mut clients = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let client = tokio::select! {
                client = listener.accept() => client,
                Some(_) = clients.join_next() => continue,
                () = &mut stop => break,
            };
            // The client is gone again, or too many files are open: the next one may succeed.
            let Ok((client, from)) = client else {
                sleep(PAUSE).await;
                continue;
            };
            let Ok(place) = room.clone().try_acquire_owned() else {
                let _ = client.try_write(FULL);
                continue;
            };
            let handler = handler.clone();
            let patience = http.patience;
            clients.spawn(async move {
                handler.serve_client(client, from, patience).await;
                drop(place);
            });
        }
        drop(listener);
        handler.service.config.cancellation_token.cancel();
        let _ = timeout(LEAVING, async { while clients.join_next().await.is_some() {} }).await;
    }
}

/// The answer to a client if there are too many already.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The layer between clients and the server.
struct RequestHandler {
    admission: Admission,
    service: StreamableHttpService<SkillServer, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    address: SocketAddr,
    table: SessionTable,
    patience: Duration,
    long_ones: Semaphore,
}

impl RequestHandler {
    fn new(server: SkillServer, address: SocketAddr, http: &Http) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(http.idle);
        let manager = Arc::new(manager);
        // Admission is decided here, before anything is read.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_json_response(true)
            .with_max_request_body_bytes(frame::LONGEST);
        Self {
            admission: Admission::new(address, &http.hosts, &http.origins, http.token.as_deref()),
            service: StreamableHttpService::new(
                move || Ok(server.for_client()),
                manager.clone(),
                config,
            ),
            manager,
            address,
            table: SessionTable::new(http.sessions, http.sessions_per_client),
            patience: http.patience,
            long_ones: Semaphore::new(LONG_ONES),
        }
    }

    /// Answers one client until it disconnects.
    async fn serve_client(
        self: Arc<Self>,
        client: TcpStream,
        from: SocketAddr,
        patience: Duration,
    ) {
        let _ = client.set_nodelay(true);
        limit_unread(&client, patience);
        let stopped = self.service.config.cancellation_token.clone();
        let answer = service_fn(move |request| {
            let handler = self.clone();
            async move { Ok::<_, Infallible>(handler.answer(request, from).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(client), answer);
        let mut connection = pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = stopped.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    async fn answer(&self, request: Request<Incoming>, from: SocketAddr) -> Answer {
        let AdmittedRequest { origin } = match self.admission.admit(&request) {
            Ok(admitted) => admitted,
            Err(denied) => return denial(&denied),
        };
        let mut answer = self.answer_admitted(request, from).await;
        if let Some(origin) = origin {
            allow_origin(answer.headers_mut(), origin);
        }
        answer
    }

    async fn answer_admitted(&self, request: Request<Incoming>, from: SocketAddr) -> Answer {
        if request.uri().path() != PATH {
            return text_answer(StatusCode::NOT_FOUND, format!("the server is at {PATH}"));
        }
        if request.method() == Method::OPTIONS {
            return preflight(request.headers());
        }
        if let Err(denied) = self.admission.check_token(request.headers()) {
            return denial(&denied);
        }
        let open = session(request.headers()).and_then(|it| self.table.record_request(it));
        let answer = self.answer_client(request, from).await;
        match open {
            // The session is in use until the answer is read.
            Some(open) => answer.map(|body| {
                body.map_frame(move |it| {
                    let _ = &open;
                    it
                })
                .boxed()
            }),
            None => answer,
        }
    }

    async fn answer_client(&self, request: Request<Incoming>, from: SocketAddr) -> Answer {
        if request.method() != Method::POST {
            let is_end = request.method() == Method::DELETE;
            if is_end && self.names_ended_session(request.headers()).await {
                return text_answer(StatusCode::NOT_FOUND, "there is no such session");
            }
            let mut answer = self.service.handle(request).await;
            // The session is gone by now, and some clients take 202 for a failure.
            if is_end && answer.status() == StatusCode::ACCEPTED {
                *answer.status_mut() = StatusCode::NO_CONTENT;
            }
            return answer;
        }
        let (head, body) = request.into_parts();
        let body = match timeout(self.patience, self.read(body)).await {
            Ok(Ok(body)) => body,
            Ok(Err(answer)) => return *answer,
            Err(_) => return text_answer(StatusCode::REQUEST_TIMEOUT, "the message took too long"),
        };
        match frame::read(&body) {
            Ok(message) if begins_session(&message) => {
                self.begin(Request::from_parts(head, Full::new(body)), from).await
            }
            Ok(_) => self.service.handle(Request::from_parts(head, Full::new(body))).await,
            Err(Some(error)) if error.error.code == ErrorCode::METHOD_NOT_FOUND => {
                refusal(StatusCode::NOT_FOUND, &error)
            }
            Err(Some(error)) => refusal(StatusCode::BAD_REQUEST, &error),
            Err(None) => text_answer(StatusCode::ACCEPTED, ""),
        }
    }

    /// Begins a session, if the limits allow one more.
    async fn begin(&self, request: Request<Full<Bytes>>, from: SocketAddr) -> Answer {
        let there: HashSet<String> =
            self.manager.sessions.read().await.keys().map(|it| it.to_string()).collect();
        let peer = Peer::of(from, self.address);
        let Some(place) = self.table.reserve(peer, |it| there.contains(it)) else {
            let mut answer =
                text_answer(StatusCode::SERVICE_UNAVAILABLE, "there are too many sessions");
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
            return answer;
        };
        if let Some(evicted) = &place.evicted {
            let _ = self.manager.close_session(&evicted.as_str().into()).await;
        }
        let answer = self.service.handle(request).await;
        if let Some(id) = session(answer.headers()) {
            place.settle(id);
        }
        answer
    }

    /// Whether the request names a session that does not exist, or no longer.
    async fn names_ended_session(&self, headers: &HeaderMap) -> bool {
        let Some(named) = session(headers) else { return false };
        !self.manager.sessions.read().await.contains_key(named)
    }

    /// Reads a message. Only a few long ones are read at once, to limit the total memory.
    async fn read(&self, mut body: Incoming) -> Result<Bytes, Box<Answer>> {
        let mut message = Vec::new();
        let mut place = None;
        while let Some(read) = body.frame().await {
            let Ok(read) = read else {
                return Err(
                    text_answer(StatusCode::BAD_REQUEST, "the message is incomplete").into()
                );
            };
            let Ok(data) = read.into_data() else { continue };
            if message.len() + data.len() > SHORT && place.is_none() {
                place = self.long_ones.acquire().await.ok();
            }
            if message.len() + data.len() > frame::LONGEST {
                return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, &frame::too_long()).into());
            }
            message.extend_from_slice(&data);
        }
        Ok(message.into())
    }
}

/// Disconnects a client that reads nothing, or is gone, after this time.
#[cfg(target_os = "linux")]
fn limit_unread(client: &TcpStream, patience: Duration) {
    let limit = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(client, limit);
}

/// Leaves it to the system when a client that reads nothing, or is gone, is disconnected.
#[cfg(not(target_os = "linux"))]
fn limit_unread(_: &TcpStream, _: Duration) {}

/// Returns the session id of a request or an answer.
fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get("mcp-session-id").and_then(|it| it.to_str().ok())
}

/// Whether a message begins a session.
fn begins_session(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}

fn denial(denied: &AdmissionError) -> Answer {
    let mut answer = text_answer(denied.status(), denied.to_string());
    if let Some(challenge) = denied.challenge() {
        let challenge = HeaderValue::from_static(challenge);
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    answer
}

fn refusal(status: StatusCode, error: &JsonRpcError) -> Answer {
    let body = serde_json::to_vec(error).unwrap_or_default();
    let mut answer = text_answer(status, body);
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

fn text_answer(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()).boxed());
    *answer.status_mut() = status;
    answer
}

/// Answers the preflight request of a browser.
fn preflight(asked: &HeaderMap) -> Answer {
    let mut answer = text_answer(StatusCode::NO_CONTENT, "");
    let headers = answer.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    if asked.contains_key(header::ORIGIN) {
        let methods = HeaderValue::from_static("GET, POST, DELETE");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
    }
    answer
}

/// Adds the headers that allow a website to read an answer.
fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}
