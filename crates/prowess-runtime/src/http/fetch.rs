//! One request and the redirects it leads through.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Client, Method, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, ACCEPT_LANGUAGE, HeaderMap, HeaderName, LOCATION, USER_AGENT},
    redirect,
};
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use url::{Host, Url};

use super::{
    hosts::{Admission, Hosts},
    resolver::{Resolver, SystemResolver},
};

/// Asks servers for something, within what the hosts allow. Nothing is kept from one request to the
/// next: no connection, no cookie, no session.
#[derive(Debug)]
pub(crate) struct Fetcher {
    hosts: Hosts,
    resolver: Arc<dyn Resolver>,
    own: Vec<CertificateDer<'static>>,
    trusted: OnceLock<RootCertStore>,
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
    #[error("the URL names no host")]
    NoHost,
    #[error("`{host}` may not be asked")]
    Host { host: String },
    #[error("port {port} is not for HTTP")]
    Port { port: u16 },
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
    Connect { host: String, source: reqwest::Error },
    #[error("`{host}` gave no answer that is HTTP")]
    Answer { host: String, source: reqwest::Error },
    #[error("the answer of `{host}` cannot be read to its end")]
    Broken { host: String, source: reqwest::Error },
    #[error("`{host}` took longer than {} s", after.as_secs_f64())]
    Timeout { host: String, after: Duration },
}

/// A certificate could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the certificates")]
pub struct CertificateError {
    source: Box<dyn Error + Send + Sync>,
}

/// What a client is told when it looks a name up, whatever the name: the addresses that were checked.
struct Checked(Vec<SocketAddr>);

impl Resolve for Checked {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;
/// How many addresses of a host are looked at.
const MAX_ADDRESSES: usize = 32;
/// What is still sent when a redirect leads to another origin: nothing that could be a secret.
const HARMLESS: [HeaderName; 3] = [ACCEPT, ACCEPT_LANGUAGE, USER_AGENT];

impl Fetcher {
    pub(crate) fn new(hosts: Hosts) -> Self {
        let resolver = Arc::new(SystemResolver);
        Self { hosts, resolver, own: Vec::new(), trusted: OnceLock::new() }
    }

    /// Looks names up in another way.
    pub(crate) fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// Trusts authorities beside those of the system, as PEM.
    pub(crate) fn with_certificates(self, pem: &[u8]) -> Result<Self, CertificateError> {
        let bad = |source| CertificateError { source };
        let own: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let own = own.map_err(|it| bad(it.into()))?;
        for certificate in &own {
            RootCertStore::empty().add(certificate.clone()).map_err(|it| bad(it.into()))?;
        }
        Ok(Self { own, trusted: OnceLock::new(), ..self })
    }

    /// Whether a URL may be asked for, as far as its text says.
    pub(crate) fn check(&self, url: &Url) -> Result<(), FetchError> {
        self.hosts.admit(url).map(|_| ())
    }

    pub(crate) async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let (host, after) = (host(&request.url), request.timeout);
        let followed = tokio::time::timeout(after, self.follow(request)).await;
        followed.unwrap_or(Err(FetchError::Timeout { host, after }))
    }

    async fn follow(&self, mut request: Request) -> Result<Response, FetchError> {
        let mut redirects = Vec::new();
        loop {
            let response = self.send(&request).await?;
            let Some(url) = location(&request.url, &response)? else {
                return read(&request, response, redirects).await;
            };
            if redirects.len() == MAX_REDIRECTS {
                return Err(FetchError::Redirects { host: host(&request.url) });
            }
            request = request.redirected(response.status(), url)?;
            redirects.push(request.url.clone());
        }
    }

    /// Sends a request to addresses that were checked, and follows nothing.
    async fn send(&self, request: &Request) -> Result<reqwest::Response, FetchError> {
        let url = &request.url;
        let admission = self.hosts.admit(url)?;
        let addresses = self.addresses(url, admission).await?;
        let connect = |source| FetchError::Connect { host: host(url), source };
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .pool_max_idle_per_host(0)
            .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")))
            .read_timeout(request.idle)
            .tls_backend_preconfigured(self.tls(url))
            .dns_resolver(Checked(addresses))
            .build()
            .map_err(connect)?;
        let mut sent = client.request(request.method.clone(), url.clone());
        sent = sent.headers(request.headers.clone());
        if let Some(body) = &request.body {
            sent = sent.body(body.clone());
        }
        sent.send().await.map_err(|error| request.failed(error, connect))
    }

    /// The addresses of a host, each of which may be connected to. One that may not spoils the rest:
    /// whoever gives out such an answer is not to be trusted.
    async fn addresses(
        &self,
        url: &Url,
        admission: Admission,
    ) -> Result<Vec<SocketAddr>, FetchError> {
        let Some(Host::Domain(name)) = url.host() else { return Ok(Vec::new()) };
        let port = url.port_or_known_default().ok_or(FetchError::NoHost)?;
        let failed = |source| FetchError::Resolve { host: name.to_owned(), source };
        let mut found = self.resolver.resolve(name).await.map_err(failed)?;
        found.truncate(MAX_ADDRESSES);
        if found.is_empty() {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        let checked = |address: IpAddr| {
            self.hosts.allow(name, address, port, admission)?;
            Ok(SocketAddr::new(address, port))
        };
        found.into_iter().map(checked).collect()
    }

    /// The settings of a connection; without anybody to trust where nobody has to be.
    fn tls(&self, url: &Url) -> ClientConfig {
        let trusted = if url.scheme() == "https" {
            self.trusted.get_or_init(|| trusted(&self.own)).clone()
        } else {
            RootCertStore::empty()
        };
        let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("the provider knows the versions of TLS that are in use")
            .with_root_certificates(trusted)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        config
    }
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
            headers = without(headers, |name| !name.as_str().starts_with("content-"));
        }
        if from.origin() != url.origin() {
            if body.is_some() {
                return Err(FetchError::Body { host: host(&from), to: host(&url) });
            }
            headers = without(headers, |name| HARMLESS.contains(name));
        }
        Ok(Self { method, url, headers, body, ..self })
    }

    /// What went wrong before an answer came.
    fn failed(
        &self,
        error: reqwest::Error,
        connect: impl FnOnce(reqwest::Error) -> FetchError,
    ) -> FetchError {
        let (host, source) = (host(&self.url), error.without_url());
        if source.is_timeout() {
            FetchError::Timeout { host, after: self.idle }
        } else if source.is_connect() {
            connect(source)
        } else {
            FetchError::Answer { host, source }
        }
    }
}

/// Reads an answer, as much of it as is wanted.
async fn read(
    request: &Request,
    mut response: reqwest::Response,
    redirects: Vec<Url>,
) -> Result<Response, FetchError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let host = || host(&request.url);
    let (mut body, mut cut) = (Vec::new(), false);
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) if error.is_timeout() => {
                return Err(FetchError::Timeout { host: host(), after: request.idle });
            }
            Err(error) => {
                return Err(FetchError::Broken { host: host(), source: error.without_url() });
            }
        };
        let room = request.most.saturating_sub(body.len() as u64);
        cut = chunk.len() as u64 > room;
        body.extend_from_slice(&chunk[..chunk.len().min(room as usize)]);
        if cut {
            break;
        }
    }
    Ok(Response { status, headers, body, cut, url: request.url.clone(), redirects })
}

/// Where an answer redirects to.
fn location(url: &Url, response: &reqwest::Response) -> Result<Option<Url>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let location = str::from_utf8(location.as_bytes()).ok().and_then(|it| url.join(it).ok());
    location.map(Some).ok_or_else(|| FetchError::Location { host: host(url) })
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

fn without(headers: HeaderMap, keep: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let mut last = None;
    let named = headers.into_iter().map(|(name, value)| {
        // The name of a header that comes twice is said once.
        last = name.or(last.take());
        (last.clone().expect("the first header has a name"), value)
    });
    named.filter(|it| keep(&it.0)).collect()
}

/// The authorities that the system trusts, and those that were given.
fn trusted(own: &[CertificateDer<'static>]) -> RootCertStore {
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    trusted.add_parsable_certificates(own.iter().cloned());
    trusted
}
