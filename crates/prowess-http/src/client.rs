//! A streaming client: sends a request, and returns the response as it arrives.

use std::{error::Error, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Method,
    body::Bytes,
    header::{
        ACCEPT_ENCODING, CONNECTION, HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT,
    },
};
use tokio::time::{Instant, timeout_at};
use url::{Host, Position, Url};

use crate::{
    connect::{Connection, Stream, connect, encrypt},
    error::FetchError,
    fetch::{AGENT, host, server_name},
    hosts::{Admission, Hosts},
    proxies::{Proxies, ProxyAddress},
    resolver::{Resolver, SystemResolver},
    trust::{CertificateError, Trust},
};

/// Sends requests to servers that the user named, at any address, including this machine and
/// private networks, unless [`with_hosts`](Self::with_hosts) restricts them. For URLs from
/// untrusted input use [`Fetcher`](crate::Fetcher).
///
/// No redirect is followed, and nothing is kept from one request to the next. Proxies are used if
/// set by [`with_proxies`](Self::with_proxies); the environment is not read. Dropping the response
/// closes the connection.
#[derive(Debug)]
pub struct HttpClient {
    timeouts: Timeouts,
    hosts: Option<Hosts>,
    resolver: Arc<dyn Resolver>,
    trust: Trust,
    proxies: Proxies,
}

/// Timeouts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The time until the connection is established, including TLS.
    pub connect: Duration,
    /// The time without a byte from the server.
    pub idle: Duration,
    /// The time from resolving the name to the last byte.
    pub total: Duration,
}

/// A request of an [`HttpClient`].
#[derive(Clone)]
pub struct ClientRequest {
    /// An `http:` or `https:` URL.
    pub url: String,
    /// Headers, each a name and a value. Values are redacted in `Debug`.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The maximum size of the response body in bytes; more is an error.
    pub max_body: u64,
}

impl ClientRequest {
    /// Creates a request without headers and body, whose response has at most 1 MiB.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), body: Vec::new(), max_body: 1024 * 1024 }
    }
}

/// A response whose body is still being received.
#[derive(Debug)]
pub struct StreamedResponse {
    /// The status code.
    pub status: u16,
    headers: HeaderMap,
    body: hyper::body::Incoming,
    host: String,
    max_body: u64,
    left: u64,
    idle: Duration,
    end: Deadline,
    _connection: Connection,
}

/// There is no response, or only a part of it. A response with an error status is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL cannot be used. It is not repeated, because it may contain a password.
    #[error("{why}")]
    Url {
        /// The reason.
        why: String,
    },
    /// The host is not allowed.
    #[error("{why}")]
    Refused {
        /// The reason.
        why: String,
    },
    /// A header is not valid.
    #[error("header `{name}` cannot be sent")]
    Header {
        /// Its name.
        name: String,
    },
    /// The host has no address.
    #[error("cannot resolve `{host}`")]
    Resolve {
        /// The host.
        host: String,
        /// The cause.
        source: io::Error,
    },
    /// No connection could be established.
    #[error("cannot connect to `{host}`")]
    Connect {
        /// The host.
        host: String,
        /// The cause.
        source: io::Error,
    },
    /// The proxy could not be reached, or did not connect to the host.
    #[error("cannot connect through the proxy `{proxy}`")]
    Proxy {
        /// Its host and port.
        proxy: String,
        /// The cause.
        source: io::Error,
    },
    /// The response is not HTTP.
    #[error("`{host}` did not answer with HTTP")]
    Answer {
        /// The host.
        host: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The response ended early.
    #[error("the response of `{host}` was cut off")]
    Broken {
        /// The host.
        host: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The body is longer than [`ClientRequest::max_body`].
    #[error("the response of `{host}` is longer than {limit} bytes")]
    TooLong {
        /// The host.
        host: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A timeout expired.
    #[error("request to `{host}` timed out after {} s", after.as_secs_f64())]
    Timeout {
        /// The host.
        host: String,
        /// The timeout.
        after: Duration,
    },
}

/// The end of a timeout.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    after: Duration,
}

/// So far ahead that it is never reached, but adding it to an instant does not overflow.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Default for Timeouts {
    /// Ten seconds, two minutes, half an hour.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(10), idle: seconds(120), total: seconds(1800) }
    }
}

impl HttpClient {
    /// Creates a client with these timeouts.
    pub fn new(timeouts: Timeouts) -> Self {
        let (hosts, trust, proxies) = Default::default();
        Self { timeouts, hosts, resolver: Arc::new(SystemResolver), trust, proxies }
    }

    /// Sends requests to these hosts only.
    #[must_use]
    pub fn with_hosts(self, hosts: Hosts) -> Self {
        Self { hosts: Some(hosts), ..self }
    }

    /// Resolves names with this resolver instead of the system's.
    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// Trusts the authorities of these certificates (PEM) in addition to those of the system.
    pub fn with_certificates(self, pem: &[u8]) -> Result<Self, CertificateError> {
        Ok(Self { trust: Trust::new(pem)?, ..self })
    }

    /// Sends requests through these proxies. Not with [`with_hosts`](Self::with_hosts): a proxy
    /// resolves names itself, so no address could be checked.
    #[must_use]
    pub fn with_proxies(self, proxies: Proxies) -> Self {
        Self { proxies, ..self }
    }

    /// Fails if a request cannot or must not be sent, as far as its text shows.
    pub fn check(&self, request: &ClientRequest) -> Result<(), HttpError> {
        request.check()?;
        self.admit(&parse(&request.url)?).map(|_| ())
    }

    /// Sends a POST request, and waits for the head of the response.
    pub async fn post(&self, request: ClientRequest) -> Result<StreamedResponse, HttpError> {
        self.send(Method::POST, request).await
    }

    /// Sends a request with a method, and waits for the head of the response.
    pub async fn send(
        &self,
        method: Method,
        request: ClientRequest,
    ) -> Result<StreamedResponse, HttpError> {
        let url = parse(&request.url)?;
        let (host, max_body) = (host(&url), request.max_body);
        let mut request = build_request(method, request, &url)?;
        if let Some(proxy) = self.proxy(&url).filter(|_| url.scheme() == "http") {
            rewrite_for_proxy(&mut request, proxy, &url)?;
        }
        let end = Deadline::after(self.timeouts.total);
        let connect = Deadline::after(self.timeouts.connect).min(end);
        let mut connection = connect.wait(&host, self.connect(&url)).await??;
        let idle = Deadline::after(self.timeouts.idle).min(end);
        let (head, body) = idle
            .wait(&host, connection.send(request))
            .await?
            .map_err(|error| HttpError::Answer { host: host.clone(), source: error.into() })?
            .into_parts();
        Ok(StreamedResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            host,
            max_body,
            left: max_body,
            idle: self.timeouts.idle,
            end,
            _connection: connection,
        })
    }

    async fn connect(&self, url: &Url) -> Result<Connection, HttpError> {
        let host = host(url);
        let tls = match url.scheme() {
            "https" => Some((self.trust.config(), server_name(url).map_err(|_| unusable_url())?)),
            _ => None,
        };
        if let Some(proxy) = self.proxy(url) {
            let stream = self.connect_through(proxy, url).await?;
            return Connection::over(stream, tls).await.map_err(|it| proxy_error(proxy, it));
        }
        let addresses = self.addresses(url).await?;
        let connection = Connection::new(&addresses, tls).await;
        connection.map_err(|source| HttpError::Connect { host, source })
    }

    /// Returns the proxy for a URL.
    fn proxy(&self, url: &Url) -> Option<&ProxyAddress> {
        self.proxies.proxy_for(url).filter(|_| self.hosts.is_none())
    }

    /// Returns a stream through a proxy: to the host of an `https:` URL, to the proxy itself for an
    /// `http:` one.
    async fn connect_through(
        &self,
        proxy: &ProxyAddress,
        url: &Url,
    ) -> Result<Box<dyn Stream>, HttpError> {
        let tls = match proxy.url.scheme() {
            "https" => {
                Some((self.trust.config(), server_name(&proxy.url).map_err(|_| unusable_url())?))
            }
            _ => None,
        };
        let addresses = self.addresses(&proxy.url).await?;
        let stream = connect(&addresses).await.map_err(|it| proxy_error(proxy, it))?;
        let mut stream =
            encrypt(Box::new(stream), tls).await.map_err(|it| proxy_error(proxy, it))?;
        if url.scheme() == "https" {
            let name = url.host_str().ok_or_else(unusable_url)?;
            let port = url.port_or_known_default().ok_or_else(unusable_url)?;
            proxy.tunnel(&mut stream, name, port).await.map_err(|it| proxy_error(proxy, it))?;
        }
        Ok(stream)
    }

    /// Returns the addresses of a host, all of which are allowed.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, HttpError> {
        let admission = self.admit(url)?;
        let port = url.port_or_known_default().ok_or_else(unusable_url)?;
        let name = match url.host().ok_or_else(unusable_url)? {
            Host::Domain(name) => name,
            Host::Ipv4(address) => return Ok(vec![(address, port).into()]),
            Host::Ipv6(address) => return Ok(vec![(address, port).into()]),
        };
        let found = self.resolver.resolve(name).await;
        let found = found.map_err(|source| HttpError::Resolve { host: name.to_owned(), source })?;
        found
            .into_iter()
            .map(|address| {
                if let Some((hosts, admission)) = admission {
                    hosts.check_address(name, address, port, admission).map_err(refusal)?;
                }
                Ok(SocketAddr::new(address, port))
            })
            .collect()
    }

    /// Returns the addresses that a host may resolve to; `None` if there is no restriction.
    fn admit(&self, url: &Url) -> Result<Option<(&Hosts, Admission)>, HttpError> {
        let Some(hosts) = &self.hosts else { return Ok(None) };
        Ok(Some((hosts, hosts.admit(url).map_err(refusal)?)))
    }
}

impl ClientRequest {
    /// Fails if it cannot be sent, as far as its text shows.
    pub fn check(&self) -> Result<(), HttpError> {
        build_request(Method::POST, self.clone(), &parse(&self.url)?).map(|_| ())
    }
}

impl StreamedResponse {
    /// Returns the value of a header, if it is present and valid text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the headers whose values are valid text.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// Returns the next part of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        self.chunk_within(self.idle).await
    }

    /// Returns the next part of the body, with another timeout.
    pub async fn chunk_within(&mut self, idle: Duration) -> Result<Option<Vec<u8>>, HttpError> {
        let deadline = Deadline::after(idle).min(self.end);
        loop {
            let frame = deadline.wait(&self.host, self.body.frame()).await?;
            let Some(frame) = frame else { return Ok(None) };
            let Ok(bytes) = frame
                .map_err(|source: hyper::Error| HttpError::Broken {
                    host: self.host.clone(),
                    source: source.into(),
                })?
                .into_data()
            else {
                continue;
            };
            if bytes.is_empty() {
                continue;
            }
            let left = self.left.checked_sub(bytes.len() as u64);
            let Some(left) = left else {
                return Err(HttpError::TooLong { host: self.host.clone(), limit: self.max_body });
            };
            self.left = left;
            return Ok(Some(bytes.into()));
        }
    }

    /// Returns the rest of the body.
    pub async fn whole(&mut self) -> Result<Vec<u8>, HttpError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            whole.extend(bytes);
        }
        Ok(whole)
    }
}

impl Deadline {
    fn after(after: Duration) -> Self {
        Self { at: Instant::now() + after.min(NEVER), after }
    }

    /// Returns the earlier of two deadlines.
    fn min(self, other: Self) -> Self {
        if other.at < self.at { other } else { self }
    }

    async fn wait<T>(self, host: &str, future: impl Future<Output = T>) -> Result<T, HttpError> {
        timeout_at(self.at, future)
            .await
            .map_err(|_| HttpError::Timeout { host: host.to_owned(), after: self.after })
    }
}

impl fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|it| &*it.0).collect();
        f.debug_struct("ClientRequest")
            .field("headers", &names)
            .field("body", &self.body.len())
            .finish()
    }
}

fn parse(text: &str) -> Result<Url, HttpError> {
    let url = match Url::parse(text) {
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err(HttpError::Url { why: without_scheme(text) });
        }
        url => url.map_err(|it| HttpError::Url { why: format!("not a URL: {it}") })?,
    };
    let why = match url.scheme() {
        "http" | "https" if url.username().is_empty() && url.password().is_none() => {
            return Ok(url);
        }
        "http" | "https" => "the URL contains a user name or password".to_owned(),
        // `localhost:8080` has a port, not a scheme.
        _ if url.cannot_be_a_base() && url.path().parse::<u16>().is_ok() => without_scheme(text),
        scheme => format!("unsupported scheme `{scheme}:`, expected `http:` or `https:`"),
    };
    Err(HttpError::Url { why })
}

/// Returns the message that a text is not a URL because it has no scheme. A text that could contain
/// a password is not repeated.
fn without_scheme(text: &str) -> String {
    let with_scheme = format!("http://{text}");
    match Url::parse(&with_scheme) {
        Ok(_) if !text.contains(['@', '?']) => {
            format!("`{text}` is not a URL; did you mean `{with_scheme}`?")
        }
        _ => "not a URL: `http://` or `https://` is missing".to_owned(),
    }
}

/// Rewrites a request for a URL to be sent to a proxy instead of its server.
fn rewrite_for_proxy(
    request: &mut hyper::Request<Full<Bytes>>,
    proxy: &ProxyAddress,
    url: &Url,
) -> Result<(), HttpError> {
    let whole = &url[..Position::AfterQuery];
    *request.uri_mut() = whole.parse().map_err(|_| unusable_url())?;
    if let Some(authorization) = &proxy.authorization {
        let mut value = HeaderValue::from_str(authorization).map_err(|_| unusable_url())?;
        value.set_sensitive(true);
        request.headers_mut().insert(PROXY_AUTHORIZATION, value);
    }
    Ok(())
}

fn refusal(error: FetchError) -> HttpError {
    HttpError::Refused { why: error.to_string() }
}

fn proxy_error(proxy: &ProxyAddress, source: io::Error) -> HttpError {
    HttpError::Proxy { proxy: proxy.name(), source }
}

fn unusable_url() -> HttpError {
    HttpError::Url { why: "the URL cannot be used".to_owned() }
}

fn build_request(
    method: Method,
    sent: ClientRequest,
    url: &Url,
) -> Result<hyper::Request<Full<Bytes>>, HttpError> {
    let mut request = hyper::Request::new(Full::from(sent.body));
    *request.method_mut() = method;
    let path = &url[Position::BeforePath..Position::AfterQuery];
    *request.uri_mut() = path.parse().map_err(|_| unusable_url())?;
    let headers = request.headers_mut();
    let host = &url[Position::BeforeHost..Position::AfterPort];
    headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| unusable_url())?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in sent.headers {
        let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value));
        let (Ok(header), Ok(mut value)) = parsed else { return Err(HttpError::Header { name }) };
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(request)
}
