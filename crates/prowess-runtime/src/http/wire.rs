//! A wire to a server that somebody named: what is posted to it, and the answer as it comes.

use std::{error::Error, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Method,
    body::Bytes,
    header::{ACCEPT_ENCODING, CONNECTION, HOST, HeaderName, HeaderValue, USER_AGENT},
};
use tokio::time::{Instant, timeout_at};
use url::{Host, Position, Url};

use super::{
    connect::Connection,
    fetch::{FetchError, OURSELVES, host, server_name},
    hosts::{Admission, Hosts},
    resolver::{Resolver, SystemResolver},
    trust::{CertificateError, Trust},
};

/// Posts to servers that the user named, wherever they are: this machine and private networks too.
/// What somebody else names is kept to hosts that may be asked; whatever a model may choose goes
/// through [`HttpRequest`](crate::HttpRequest) instead.
///
/// No redirect is followed, no proxy is used (`HTTPS_PROXY` is not read), and nothing is kept from one
/// post to the next. Dropping what it gives closes the connection.
#[derive(Debug)]
pub struct Wire {
    patience: Patience,
    hosts: Option<Hosts>,
    resolver: Arc<dyn Resolver>,
    trust: Trust,
}

/// How long is waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until there is a connection, TLS and all.
    pub connect: Duration,
    /// Without a byte from the server.
    pub idle: Duration,
    /// From the first look at a name to the last byte.
    pub total: Duration,
}

/// What is posted.
#[derive(Clone)]
pub struct Post {
    /// An `http:` or `https:` URL.
    pub url: String,
    /// Headers, each a name and a value. Values may be secrets: nothing shows them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The most bytes of an answer that are taken.
    pub most: u64,
}

/// An answer that is coming in.
#[derive(Debug)]
pub struct Incoming {
    /// What the server says of it.
    pub status: u16,
    headers: HeaderMap,
    body: hyper::body::Incoming,
    host: String,
    most: u64,
    left: u64,
    idle: Duration,
    end: Deadline,
    _connection: Connection,
}

/// Nothing came, or not all of it. An answer that says that something went wrong is an [`Incoming`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// It is no URL that can be posted to. What it is is not repeated: it may hold a password.
    #[error("{why}")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// It may not be asked.
    #[error("{why}")]
    Refused {
        /// What is not allowed.
        why: String,
    },
    /// A header is none.
    #[error("header `{name}` cannot be sent")]
    Header {
        /// Its name.
        name: String,
    },
    /// The host has no address.
    #[error("cannot find `{host}`")]
    Resolve {
        /// The host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// There is no connection.
    #[error("cannot connect to `{host}`")]
    Connect {
        /// The host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The server speaks something else.
    #[error("`{host}` gave no answer that is HTTP")]
    Answer {
        /// The host.
        host: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer ended before its end.
    #[error("the answer of `{host}` broke off")]
    Broken {
        /// The host.
        host: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// There is more of it than was wanted.
    #[error("the answer of `{host}` is longer than {most} bytes")]
    TooLong {
        /// The host.
        host: String,
        /// What was wanted.
        most: u64,
    },
    /// It took too long.
    #[error("`{host}` took longer than {} s", after.as_secs_f64())]
    Timeout {
        /// The host.
        host: String,
        /// How long was waited.
        after: Duration,
    },
}

/// When it is too late, and how long that was from the beginning.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    after: Duration,
}

/// So far ahead that it never comes; what is added to an instant must not overflow.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Default for Patience {
    /// Ten seconds, two minutes, half an hour.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(10), idle: seconds(120), total: seconds(1800) }
    }
}

impl Wire {
    /// Waits as long as this.
    pub fn new(patience: Patience) -> Self {
        let (hosts, trust) = Default::default();
        Self { patience, hosts, resolver: Arc::new(SystemResolver), trust }
    }

    /// Asks only these hosts.
    #[must_use]
    pub fn with_hosts(self, hosts: Hosts) -> Self {
        Self { hosts: Some(hosts), ..self }
    }

    /// Looks names up in another way than the system does.
    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// Trusts the authorities of these certificates (PEM) beside those of the system.
    pub fn with_certificates(self, pem: &[u8]) -> Result<Self, CertificateError> {
        Ok(Self { trust: Trust::new(pem)?, ..self })
    }

    /// Whether it may be posted, as far as its text says.
    pub fn check(&self, post: &Post) -> Result<(), WireError> {
        post.check()?;
        self.admit(&parse(&post.url)?).map(|_| ())
    }

    /// Posts, and waits for the head of the answer.
    pub async fn post(&self, post: Post) -> Result<Incoming, WireError> {
        self.send(Method::POST, post).await
    }

    /// The same, done in another way.
    pub(crate) async fn send(&self, method: Method, post: Post) -> Result<Incoming, WireError> {
        let url = parse(&post.url)?;
        let (host, most) = (host(&url), post.most);
        let request = sendable(method, post, &url)?;
        let end = Deadline::after(self.patience.total);
        let soon = Deadline::after(self.patience.connect).or(end);
        let mut connection = soon.wait(&host, self.connect(&url)).await??;
        let idle = Deadline::after(self.patience.idle).or(end);
        let sent = idle.wait(&host, connection.send(request)).await?;
        let answer =
            |source: hyper::Error| WireError::Answer { host: host.clone(), source: source.into() };
        let (head, body) = sent.map_err(answer)?.into_parts();
        Ok(Incoming {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            host,
            most,
            left: most,
            idle: self.patience.idle,
            end,
            _connection: connection,
        })
    }

    async fn connect(&self, url: &Url) -> Result<Connection, WireError> {
        let host = host(url);
        let tls = match url.scheme() {
            "https" => Some((self.trust.config(), server_name(url).map_err(|_| unusable())?)),
            _ => None,
        };
        let addresses = self.addresses(url).await?;
        let connection = Connection::new(&addresses, tls).await;
        connection.map_err(|source| WireError::Connect { host, source })
    }

    /// The addresses of a host, each of which may be connected to.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, WireError> {
        let admission = self.admit(url)?;
        let port = url.port_or_known_default().ok_or_else(unusable)?;
        let name = match url.host().ok_or_else(unusable)? {
            Host::Domain(name) => name,
            Host::Ipv4(address) => return Ok(vec![(address, port).into()]),
            Host::Ipv6(address) => return Ok(vec![(address, port).into()]),
        };
        let found = self.resolver.resolve(name).await;
        let found = found.map_err(|source| WireError::Resolve { host: name.to_owned(), source })?;
        let checked = |address| {
            if let Some((hosts, admission)) = admission {
                hosts.allow(name, address, port, admission).map_err(refused)?;
            }
            Ok(SocketAddr::new(address, port))
        };
        found.into_iter().map(checked).collect()
    }

    /// What says where a host may lead to; nothing where it may lead anywhere.
    fn admit(&self, url: &Url) -> Result<Option<(&Hosts, Admission)>, WireError> {
        let Some(hosts) = &self.hosts else { return Ok(None) };
        Ok(Some((hosts, hosts.admit(url).map_err(refused)?)))
    }
}

impl Post {
    /// Whether it can be posted, as far as its text says.
    pub fn check(&self) -> Result<(), WireError> {
        sendable(Method::POST, self.clone(), &parse(&self.url)?).map(|_| ())
    }
}

impl Incoming {
    /// A header; nothing if it is not there or no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The headers that are texts.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// More of the body, as it comes; nothing at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        self.chunk_within(self.idle).await
    }

    /// The same, with another patience.
    pub async fn chunk_within(&mut self, idle: Duration) -> Result<Option<Vec<u8>>, WireError> {
        let deadline = Deadline::after(idle).or(self.end);
        loop {
            let frame = deadline.wait(&self.host, self.body.frame()).await?;
            let Some(frame) = frame else { return Ok(None) };
            let broken = |source: hyper::Error| WireError::Broken {
                host: self.host.clone(),
                source: source.into(),
            };
            let Ok(bytes) = frame.map_err(broken)?.into_data() else { continue };
            if bytes.is_empty() {
                continue;
            }
            let left = self.left.checked_sub(bytes.len() as u64);
            let Some(left) = left else {
                return Err(WireError::TooLong { host: self.host.clone(), most: self.most });
            };
            self.left = left;
            return Ok(Some(bytes.into()));
        }
    }

    /// All of the body that is still to come.
    pub async fn whole(&mut self) -> Result<Vec<u8>, WireError> {
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

    /// Whichever is sooner.
    fn or(self, other: Self) -> Self {
        if other.at < self.at { other } else { self }
    }

    async fn wait<T>(self, host: &str, future: impl Future<Output = T>) -> Result<T, WireError> {
        let timeout = |_| WireError::Timeout { host: host.to_owned(), after: self.after };
        timeout_at(self.at, future).await.map_err(timeout)
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|it| &*it.0).collect();
        f.debug_struct("Post").field("headers", &names).field("body", &self.body.len()).finish()
    }
}

fn parse(text: &str) -> Result<Url, WireError> {
    let url = Url::parse(text).map_err(|it| WireError::Url { why: format!("no URL: {it}") })?;
    let why = match url.scheme() {
        "http" | "https" if url.username().is_empty() && url.password().is_none() => {
            return Ok(url);
        }
        "http" | "https" => "the URL holds a user name or password".to_owned(),
        scheme => format!("`{scheme}:` is not used, only `http:` and `https:`"),
    };
    Err(WireError::Url { why })
}

fn refused(error: FetchError) -> WireError {
    WireError::Refused { why: error.to_string() }
}

fn unusable() -> WireError {
    WireError::Url { why: "the URL cannot be used".to_owned() }
}

fn sendable(
    method: Method,
    post: Post,
    url: &Url,
) -> Result<hyper::Request<Full<Bytes>>, WireError> {
    let mut request = hyper::Request::new(Full::from(post.body));
    *request.method_mut() = method;
    let path = &url[Position::BeforePath..Position::AfterQuery];
    *request.uri_mut() = path.parse().map_err(|_| unusable())?;
    let headers = request.headers_mut();
    let host = &url[Position::BeforeHost..Position::AfterPort];
    headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| unusable())?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(USER_AGENT, HeaderValue::from_static(OURSELVES));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in post.headers {
        let bad = || WireError::Header { name: name.clone() };
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(request)
}
