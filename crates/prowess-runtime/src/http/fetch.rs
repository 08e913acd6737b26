//! One request and the redirects it leads through.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Method, StatusCode,
    body::{Bytes, Incoming},
    header::{
        ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
        HOST, HeaderName, HeaderValue, LOCATION, USER_AGENT,
    },
};
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use url::{Host, Position, Url};

use super::{
    connect::Connection,
    hosts::{Admission, Hosts},
    resolver::{Resolver, SystemResolver},
    trust::{CertificateError, Trust},
    unpack::{ENCODINGS, Unpacker},
};

/// Asks servers for something, within what the hosts allow. Nothing is kept from one request to the
/// next: no connection, no cookie, no session.
#[derive(Debug)]
pub(crate) struct Fetcher {
    hosts: Hosts,
    resolver: Arc<dyn Resolver>,
    trust: Trust,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    /// From the first look at a name to the last byte of the answer.
    pub(crate) timeout: Duration,
    /// Without a byte from the server.
    pub(crate) idle: Duration,
    /// The most bytes of a body, once it is unpacked.
    pub(crate) most: u64,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether there was more of it.
    pub(crate) cut: bool,
    pub(crate) url: Url,
    /// Where it was redirected to, in order.
    pub(crate) redirects: Vec<Url>,
}

/// Nothing was answered. An answer that says that something went wrong is a [`Response`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("`{scheme}:` is not used, only `http:` and `https:`")]
    Scheme { scheme: String },
    #[error("the URL holds a user name or password")]
    Userinfo,
    #[error("the URL cannot be used")]
    Url,
    #[error("`{host}` may not be asked")]
    Host { host: String },
    #[error("port {port} is not for HTTP: it is the port of {service}")]
    Port { host: String, port: u16, service: &'static str },
    #[error("`{host}` leads to {what}, which may not be asked")]
    Address { host: String, what: &'static str },
    #[error("`{host}` redirects from `https:` to `http:`")]
    Downgrade { host: String },
    #[error("`{host}` redirects to `{to}`, which would get the body")]
    Body { host: String, to: String },
    #[error("`{host}` redirects to what is no URL")]
    Location { host: String },
    #[error("`{host}` redirects more than {MAX_REDIRECTS} times")]
    Redirects { host: String },
    #[error("cannot find `{host}`")]
    Resolve { host: String, source: io::Error },
    #[error("cannot connect to `{host}`")]
    Connect { host: String, source: io::Error },
    #[error("`{host}` gave no answer that is HTTP")]
    Answer { host: String, source: hyper::Error },
    #[error("the answer of `{host}` cannot be read to its end")]
    Broken { host: String, source: Box<dyn Error + Send + Sync> },
    #[error("`{host}` took longer than {} s", after.as_secs_f64())]
    Timeout { host: String, after: Duration },
}

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;
/// What we say who we are.
pub(super) const OURSELVES: &str = concat!("prowess/", env!("CARGO_PKG_VERSION"));
/// Headers that belong to the connection, and are not for whoever asks to set.
pub(crate) const OURS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// How many addresses of a host are looked at.
const MAX_ADDRESSES: usize = 32;
/// What is still sent when a redirect leads to another origin: nothing that could be a secret.
const HARMLESS: [HeaderName; 3] = [ACCEPT, ACCEPT_LANGUAGE, USER_AGENT];

impl Fetcher {
    pub(crate) fn new(hosts: Hosts) -> Self {
        Self { hosts, resolver: Arc::new(SystemResolver), trust: Trust::default() }
    }

    /// Looks names up in another way.
    pub(crate) fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// Trusts authorities beside those of the system, as PEM.
    pub(crate) fn with_certificates(self, pem: &[u8]) -> Result<Self, CertificateError> {
        Ok(Self { trust: Trust::new(pem)?, ..self })
    }

    /// Whether a URL may be asked for, as far as its text says.
    pub(crate) fn check(&self, url: &Url) -> Result<(), FetchError> {
        self.hosts.admit(url).map(|_| ())
    }

    pub(crate) async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let (host, after) = (host(&request.url), request.timeout);
        let followed = timeout(after, self.follow(request)).await;
        followed.unwrap_or(Err(FetchError::Timeout { host, after }))
    }

    async fn follow(&self, mut request: Request) -> Result<Response, FetchError> {
        let mut redirects = Vec::new();
        loop {
            let (response, _connection) = self.send(&request).await?;
            let Some(url) = location(&request.url, &response)? else {
                return read(request, response, redirects).await;
            };
            if redirects.len() == MAX_REDIRECTS {
                return Err(FetchError::Redirects { host: host(&request.url) });
            }
            request = request.redirected(response.status(), url)?;
            redirects.push(request.url.clone());
        }
    }

    /// Sends a request to an address that was checked, and follows nothing.
    async fn send(
        &self,
        request: &Request,
    ) -> Result<(hyper::Response<Incoming>, Connection), FetchError> {
        let url = &request.url;
        let admission = self.hosts.admit(url)?;
        let sendable = request.sendable()?;
        let addresses = addresses(&self.hosts, &*self.resolver, url, admission).await?;
        let tls = match url.scheme() {
            "https" => Some((self.trust.config(), server_name(url)?)),
            _ => None,
        };
        let failed = |source| FetchError::Connect { host: host(url), source };
        let mut connection = Connection::new(&addresses, tls).await.map_err(failed)?;
        let sent = timeout(request.idle, connection.send(sendable)).await;
        let response = sent.map_err(|_| request.idled())?;
        let response = response.map_err(|source| FetchError::Answer { host: host(url), source })?;
        Ok((response, connection))
    }
}

/// The addresses of a host, each of which may be connected to. One that may not spoils the rest:
/// whoever gives out such an answer is not to be trusted.
pub(crate) async fn addresses(
    hosts: &Hosts,
    resolver: &dyn Resolver,
    url: &Url,
    admission: Admission,
) -> Result<Vec<SocketAddr>, FetchError> {
    let port = url.port_or_known_default().ok_or(FetchError::Url)?;
    let name = match url.host().ok_or(FetchError::Url)? {
        Host::Domain(name) => name,
        // An address was checked with the URL.
        Host::Ipv4(address) => return Ok(vec![(address, port).into()]),
        Host::Ipv6(address) => return Ok(vec![(address, port).into()]),
    };
    let failed = |source| FetchError::Resolve { host: name.to_owned(), source };
    let mut found = resolver.resolve(name).await.map_err(failed)?;
    found.truncate(MAX_ADDRESSES);
    if found.is_empty() {
        return Err(failed(io::ErrorKind::NotFound.into()));
    }
    let checked = |address: IpAddr| {
        hosts.allow(name, address, port, admission)?;
        Ok(SocketAddr::new(address, port))
    };
    found.into_iter().map(checked).collect()
}

impl Request {
    /// What is asked for after a redirect. As browsers do it, what was posted is got, and another
    /// origin learns nothing that was meant for this one.
    fn redirected(self, status: StatusCode, url: Url) -> Result<Self, FetchError> {
        let Self { mut method, url: from, mut headers, mut body, .. } = self;
        if from.scheme() == "https" && url.scheme() == "http" {
            return Err(FetchError::Downgrade { host: host(&from) });
        }
        let is_got = match status {
            StatusCode::SEE_OTHER => method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
            _ => false,
        };
        if is_got {
            method = Method::GET;
            body = None;
            keep(&mut headers, |name| !name.as_str().starts_with("content-"));
        }
        if from.origin() != url.origin() {
            if body.is_some() {
                return Err(FetchError::Body { host: host(&from), to: host(&url) });
            }
            keep(&mut headers, |name| HARMLESS.contains(name));
        }
        Ok(Self { method, url, headers, body, ..self })
    }

    /// As it is sent: with the headers that are ours to set.
    fn sendable(&self) -> Result<hyper::Request<Full<Bytes>>, FetchError> {
        let body = Full::from(self.body.clone().unwrap_or_default());
        let mut request = hyper::Request::new(body);
        *request.method_mut() = self.method.clone();
        let path = &self.url[Position::BeforePath..Position::AfterQuery];
        *request.uri_mut() = path.parse().map_err(|_| FetchError::Url)?;
        let host = &self.url[Position::BeforeHost..Position::AfterPort];
        let host = HeaderValue::from_str(host).map_err(|_| FetchError::Url)?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        headers.insert(USER_AGENT, HeaderValue::from_static(OURSELVES));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ENCODINGS));
        headers.extend(self.headers.clone());
        Ok(request)
    }

    fn idled(&self) -> FetchError {
        FetchError::Timeout { host: host(&self.url), after: self.idle }
    }
}

/// Reads an answer, as much of it as is wanted.
async fn read(
    request: Request,
    response: hyper::Response<Incoming>,
    redirects: Vec<Url>,
) -> Result<Response, FetchError> {
    let (mut head, mut body) = response.into_parts();
    let host = host(&request.url);
    let broken =
        |source: Box<dyn Error + Send + Sync>| FetchError::Broken { host: host.clone(), source };
    let encoding = head.headers.get(CONTENT_ENCODING).and_then(|it| it.to_str().ok());
    let mut unpacker = Unpacker::new(encoding.unwrap_or_default(), request.most);
    let mut is_empty = true;
    while let Some(frame) =
        timeout(request.idle, body.frame()).await.map_err(|_| request.idled())?
    {
        let frame = frame.map_err(|it| broken(it.into()))?;
        let Some(bytes) = frame.data_ref() else { continue };
        is_empty &= bytes.is_empty();
        if !unpacker.take(bytes).map_err(|it| broken(it.into()))? {
            break;
        }
    }
    if !is_empty {
        unpacker.finish().map_err(|it| broken(it.into()))?;
    }
    if !unpacker.is_plain() {
        // They were about the body as it was on the way.
        head.headers.remove(CONTENT_ENCODING);
        head.headers.remove(CONTENT_LENGTH);
    }
    let room = std::mem::take(unpacker.room());
    Ok(Response {
        status: head.status,
        headers: head.headers,
        body: room.bytes,
        cut: room.cut,
        url: request.url,
        redirects,
    })
}

/// Where an answer redirects to.
fn location(url: &Url, response: &hyper::Response<Incoming>) -> Result<Option<Url>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let location = str::from_utf8(location.as_bytes()).ok().and_then(|it| url.join(it).ok());
    location.map(Some).ok_or_else(|| FetchError::Location { host: host(url) })
}

/// The name or address that a certificate has to be for.
pub(super) fn server_name(url: &Url) -> Result<ServerName<'static>, FetchError> {
    let name = host(url);
    let name = name.trim_matches(['[', ']']);
    let name = name.strip_suffix('.').unwrap_or(name).to_owned();
    ServerName::try_from(name).map_err(|_| FetchError::Url)
}

pub(super) fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// Leaves out the headers that are not to be kept.
fn keep(headers: &mut HeaderMap, is_kept: impl Fn(&HeaderName) -> bool) {
    let others: Vec<HeaderName> = headers.keys().filter(|it| !is_kept(it)).cloned().collect();
    for name in others {
        headers.remove(name);
    }
}
