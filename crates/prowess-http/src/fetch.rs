//! A request and its redirects.

use std::{error::Error, sync::Arc, time::Duration};

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
use url::{Position, Url};

use crate::{
    connect::Connection,
    error::{FetchError, MAX_REDIRECTS},
    hosts::Hosts,
    resolver::{Resolver, SystemResolver},
    trust::{CertificateError, Trust},
    unpack::{ENCODINGS, Unpacker},
};

/// Fetches from allowed hosts, and follows redirects. Nothing is kept from one request to the next: no
/// connection, no cookie, no session.
#[derive(Debug)]
pub struct Fetcher {
    hosts: Hosts,
    resolver: Arc<dyn Resolver>,
    trust: Trust,
}

/// A request of a [`Fetcher`].
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// The headers, without those of [`CONNECTION_HEADERS`].
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The time from resolving the name to the last byte of the response.
    pub timeout: Duration,
    /// The time without a byte from the server.
    pub idle: Duration,
    /// The maximum size of the unpacked body in bytes; the rest is cut off.
    pub max_body: u64,
}

impl FetchRequest {
    /// Creates a request without headers and body, which takes at most 30 seconds, and of whose
    /// response the first MiB is kept.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            timeout: Duration::from_secs(30),
            idle: Duration::from_secs(10),
            max_body: 1024 * 1024,
        }
    }
}

/// A response to a [`FetchRequest`].
#[derive(Debug)]
#[non_exhaustive]
pub struct FetchResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, unpacked.
    pub body: Vec<u8>,
    /// Whether the body was cut off.
    pub truncated: bool,
    /// The URL of the response, after all redirects.
    pub url: Url,
    /// The URLs of the redirects, in order.
    pub redirects: Vec<Url>,
}

/// The user agent.
pub(crate) const AGENT: &str = concat!("prowess/", env!("CARGO_PKG_VERSION"));
/// Headers that belong to the connection, in lower case: callers should not set them.
pub const CONNECTION_HEADERS: &[&str] = &[
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
/// The headers that are still sent when a redirect leads to another origin: none can contain a
/// secret.
const HARMLESS: [HeaderName; 3] = [ACCEPT, ACCEPT_LANGUAGE, USER_AGENT];

impl Fetcher {
    /// Creates a fetcher for these hosts.
    pub fn new(hosts: Hosts) -> Self {
        Self { hosts, resolver: Arc::new(SystemResolver), trust: Trust::default() }
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

    /// Fails if a URL must not be fetched, as far as its text shows.
    pub fn check(&self, url: &Url) -> Result<(), FetchError> {
        self.hosts.check(url)
    }

    /// Sends a request, and follows up to five redirects.
    pub async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let (host, after) = (host(&request.url), request.timeout);
        let followed = timeout(after, self.follow(request)).await;
        followed.unwrap_or(Err(FetchError::Timeout { host, after }))
    }

    async fn follow(&self, mut request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let mut redirects = Vec::new();
        loop {
            let (response, _connection) = self.send(&request).await?;
            let Some(url) = redirect_target(&request.url, &response)? else {
                return read(request, response, redirects).await;
            };
            if redirects.len() == MAX_REDIRECTS {
                return Err(FetchError::Redirects { host: host(&request.url) });
            }
            request = request.redirect(response.status(), url)?;
            redirects.push(request.url.clone());
        }
    }

    /// Sends a request to a checked address, without following redirects.
    async fn send(
        &self,
        request: &FetchRequest,
    ) -> Result<(hyper::Response<Incoming>, Connection), FetchError> {
        let url = &request.url;
        self.hosts.check(url)?;
        let built = request.build()?;
        let addresses = self.hosts.addresses(&*self.resolver, url).await?;
        let tls = match url.scheme() {
            "https" => Some((self.trust.config(), server_name(url)?)),
            _ => None,
        };
        let mut connection = Connection::new(&addresses, tls)
            .await
            .map_err(|source| FetchError::Connect { host: host(url), source })?;
        let sent = timeout(request.idle, connection.send(built)).await;
        let response = sent.map_err(|_| request.idle_timeout())?;
        let response = response.map_err(|source| FetchError::Answer { host: host(url), source })?;
        Ok((response, connection))
    }
}

impl FetchRequest {
    /// Returns the request after a redirect. As in browsers, a POST becomes a GET, and another
    /// origin receives nothing that was meant for this one.
    fn redirect(self, status: StatusCode, url: Url) -> Result<Self, FetchError> {
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
            retain(&mut headers, |name| !name.as_str().starts_with("content-"));
        }
        if from.origin() != url.origin() {
            if body.is_some() {
                return Err(FetchError::Body { host: host(&from), to: host(&url) });
            }
            retain(&mut headers, |name| HARMLESS.contains(name));
        }
        Ok(Self { method, url, headers, body, ..self })
    }

    /// Returns the request as sent: with the headers that this client sets.
    fn build(&self) -> Result<hyper::Request<Full<Bytes>>, FetchError> {
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
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ENCODINGS));
        headers.extend(self.headers.clone());
        Ok(request)
    }

    fn idle_timeout(&self) -> FetchError {
        FetchError::Timeout { host: host(&self.url), after: self.idle }
    }
}

/// Reads a response, up to the maximum size.
async fn read(
    request: FetchRequest,
    response: hyper::Response<Incoming>,
    redirects: Vec<Url>,
) -> Result<FetchResponse, FetchError> {
    let (mut head, mut body) = response.into_parts();
    let host = host(&request.url);
    let broken =
        |source: Box<dyn Error + Send + Sync>| FetchError::Broken { host: host.clone(), source };
    let encoding = head.headers.get(CONTENT_ENCODING).and_then(|it| it.to_str().ok());
    let mut unpacker = Unpacker::new(encoding.unwrap_or_default(), request.max_body);
    let mut is_empty = true;
    while let Some(frame) =
        timeout(request.idle, body.frame()).await.map_err(|_| request.idle_timeout())?
    {
        let frame = frame.map_err(|it| broken(it.into()))?;
        let Some(bytes) = frame.data_ref() else { continue };
        is_empty &= bytes.is_empty();
        if !unpacker.push(bytes).map_err(|it| broken(it.into()))? {
            break;
        }
    }
    if !is_empty {
        unpacker.finish().map_err(|it| broken(it.into()))?;
    }
    if !unpacker.is_plain() {
        // They described the packed body.
        head.headers.remove(CONTENT_ENCODING);
        head.headers.remove(CONTENT_LENGTH);
    }
    let unpacked = std::mem::take(unpacker.unpacked());
    Ok(FetchResponse {
        status: head.status,
        headers: head.headers,
        body: unpacked.bytes,
        truncated: unpacked.is_cut,
        url: request.url,
        redirects,
    })
}

/// Returns the URL that a response redirects to.
fn redirect_target(
    url: &Url,
    response: &hyper::Response<Incoming>,
) -> Result<Option<Url>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let location = str::from_utf8(location.as_bytes()).ok().and_then(|it| url.join(it).ok());
    location.map(Some).ok_or_else(|| FetchError::Location { host: host(url) })
}

/// Returns the name or address that a certificate has to be for.
pub(crate) fn server_name(url: &Url) -> Result<ServerName<'static>, FetchError> {
    let name = host(url);
    let name = name.trim_matches(['[', ']']);
    let name = name.strip_suffix('.').unwrap_or(name).to_owned();
    ServerName::try_from(name).map_err(|_| FetchError::Url)
}

pub(crate) fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// Removes the headers that `is_kept` rejects.
fn retain(headers: &mut HeaderMap, is_kept: impl Fn(&HeaderName) -> bool) {
    let others: Vec<HeaderName> = headers.keys().filter(|it| !is_kept(it)).cloned().collect();
    for name in others {
        headers.remove(name);
    }
}
