//! Requests over HTTP: what the user named may be anywhere, what a server names only on the internet.

use std::{
    collections::hash_map::RandomState,
    fs::File,
    hash::{BuildHasher as _, Hasher as _},
    io::{Read as _, Seek as _, Write as _},
    sync::Arc,
    time::{Duration, SystemTime},
};

use prowess_http::{
    CertificateError, ClientRequest, Hosts, HttpClient, HttpError, Method, Proxies, Resolver,
    StreamedResponse, SystemResolver, Timeouts, Url,
};
use sha2::{Digest as _, Sha256, Sha512};

use crate::{
    cache::CacheDraft,
    digest::FileDigest,
    fetch::{
        blocking,
        error::{FetchPackageError, size},
        git_program::{is_this_machine, shown},
        pipe::pipe,
        progress::FetchProgress,
    },
};

/// Sends requests.
#[derive(Debug)]
pub(super) struct Web {
    /// For hosts that the user named.
    named: HttpClient,
    /// For hosts that servers name.
    guarded: HttpClient,
    timeouts: Timeouts,
    proxies: Proxies,
    certificates: Option<Vec<u8>>,
    resolver: Arc<dyn Resolver>,
    tokens: Vec<(String, String)>,
    progress: FetchProgress,
}

/// A request with its redirects.
#[derive(Debug, Clone)]
pub(super) struct WebRequest {
    pub(super) url: Url,
    /// A URL of the host that the user named.
    pub(super) named: Url,
    pub(super) accept: Option<&'static str>,
    pub(super) redirects: Redirects,
    /// The most bytes of the body.
    pub(super) max: u64,
    /// A type and a body, for a POST request.
    pub(super) post: Option<(String, Vec<u8>)>,
    pub(super) headers: Vec<(String, String)>,
}

/// Where redirects may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirects {
    /// To the host that the user named.
    SameHost,
    /// To the internet.
    Internet,
}

/// A response whose body is still to be received.
#[derive(Debug)]
pub(super) struct WebResponse {
    pub(super) url: Url,
    pub(super) status: u16,
    stream: StreamedResponse,
}

/// A body in a file that has no name.
#[derive(Debug)]
pub(super) struct SavedBody {
    pub(super) url: Url,
    pub(super) file: File,
    pub(super) digest: FileDigest,
    pub(super) sha512: [u8; 64],
    /// The first bytes.
    pub(super) beginning: Vec<u8>,
    /// The folder of the file.
    pub(super) _scratch: CacheDraft,
}

/// The most redirects of a request.
const MAX_REDIRECTS: usize = 5;
/// How often a request is sent if it fails for a reason that passes.
const ATTEMPTS: u32 = 3;
/// The longest that is waited for a server that says how long it wants.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The most bytes of a message about an error.
const MAX_MESSAGE: usize = 4096;
/// How many bytes are enough to recognize a format.
const BEGINNING: usize = 1024;

impl Web {
    pub(super) fn new(progress: FetchProgress) -> Self {
        let timeouts = Timeouts { idle: Duration::from_secs(60), ..Timeouts::default() };
        Self {
            named: HttpClient::new(timeouts),
            guarded: HttpClient::new(timeouts).with_hosts(Hosts::default()),
            timeouts,
            proxies: Proxies::default(),
            certificates: None,
            resolver: Arc::new(SystemResolver),
            tokens: Vec::new(),
            progress,
        }
    }

    pub(super) fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.timeouts = timeouts;
        // They were valid before.
        let _ = self.build();
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    pub(super) fn set_resolver(&mut self, resolver: Arc<dyn Resolver>) {
        self.resolver = resolver;
        let _ = self.build();
    }

    pub(super) fn set_proxies(&mut self, proxies: Proxies) {
        self.proxies = proxies;
        let _ = self.build();
    }

    pub(super) fn set_certificates(&mut self, pem: &[u8]) -> Result<(), CertificateError> {
        self.certificates = Some(pem.to_vec());
        self.build()
    }

    pub(super) fn add_token(&mut self, host: &str, token: String) {
        self.tokens.push((host.to_ascii_lowercase(), token));
    }

    /// Returns the token for the host of a URL. It is not sent where others could read it.
    pub(super) fn token(&self, url: &Url) -> Option<&str> {
        let host = url.host_str()?;
        let is_private = url.scheme() == "https" || is_this_machine(url);
        let with_port = url.port().map(|it| format!("{host}:{it}"));
        let is_meant = |it: &str| it == host || with_port.as_deref() == Some(it);
        let token = self.tokens.iter().rev().find(|it| is_meant(&it.0));
        token.filter(|_| is_private).map(|it| &*it.1)
    }

    fn build(&mut self) -> Result<(), CertificateError> {
        let mut named = HttpClient::new(self.timeouts).with_proxies(self.proxies.clone());
        let mut guarded = HttpClient::new(self.timeouts).with_hosts(Hosts::default());
        named = named.with_resolver(self.resolver.clone());
        guarded = guarded.with_resolver(self.resolver.clone());
        if let Some(pem) = &self.certificates {
            named = named.with_certificates(pem)?;
            guarded = guarded.with_certificates(pem)?;
        }
        (self.named, self.guarded) = (named, guarded);
        Ok(())
    }

    /// Sends a request, follows redirects, and tries again if that can help. The status is not an error,
    /// but for those that ask to wait.
    pub(super) async fn send(&self, request: WebRequest) -> Result<WebResponse, FetchPackageError> {
        let mut attempt = 1;
        loop {
            let sent = self.follow(&request).await;
            let wait = match &sent {
                Ok(response) if matches!(response.status, 429 | 503) => response.retry_after(),
                // It may have been done all the same.
                Ok(response) if matches!(response.status, 502 | 504) && request.post.is_none() => {
                    response.retry_after()
                }
                Err(FetchPackageError::Unreachable { .. }) if request.post.is_none() => None,
                _ => return sent,
            };
            let too_long = wait.is_some_and(|it| it > MAX_WAIT);
            if attempt == ATTEMPTS || too_long {
                return match sent {
                    Ok(response) if response.status == 429 => Err(FetchPackageError::RateLimited {
                        host: host(&response.url),
                        after: wait,
                    }),
                    sent => sent,
                };
            }
            let pause = wait.unwrap_or(Duration::from_millis(200) * 2_u32.pow(attempt));
            tokio::time::sleep(pause + jitter()).await;
            attempt += 1;
        }
    }

    async fn follow(&self, request: &WebRequest) -> Result<WebResponse, FetchPackageError> {
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.progress.add_request();
            let response = self.send_once(request, &url).await?;
            let is_redirect = matches!(response.status, 301 | 302 | 303 | 307 | 308);
            let Some(location) = response.stream.header("location").filter(|_| is_redirect) else {
                return Ok(response);
            };
            let refused =
                |why: String| Err(FetchPackageError::Refused { url: shown(url.as_str()), why });
            let Ok(next) = url.join(location) else {
                return refused("it redirects to something that is not a URL".to_owned());
            };
            let to = shown(next.as_str());
            if request.post.is_some() {
                return refused(format!(
                    "it redirects to `{to}`, which would receive what is sent"
                ));
            }
            if !matches!(next.scheme(), "http" | "https") {
                return refused(format!("it redirects to `{to}`"));
            }
            if url.scheme() == "https" && next.scheme() == "http" {
                return refused(format!("it redirects from `https:` to `{to}`"));
            }
            if request.redirects == Redirects::SameHost && !is_same_host(&next, &request.named) {
                return refused(format!("it redirects to another host, `{to}`"));
            }
            url = next;
        }
        Err(FetchPackageError::Refused {
            url: shown(request.url.as_str()),
            why: format!("it redirects more than {MAX_REDIRECTS} times"),
        })
    }

    async fn send_once(
        &self,
        request: &WebRequest,
        url: &Url,
    ) -> Result<WebResponse, FetchPackageError> {
        let is_named = is_same_host(url, &request.named);
        let is_first = is_same_host(url, &request.url);
        let mut sent = ClientRequest { max_body: request.max, ..ClientRequest::new(url.as_str()) };
        if let Some(accept) = request.accept {
            sent.headers.push(("accept".to_owned(), accept.to_owned()));
        }
        if is_first {
            sent.headers.extend(request.headers.iter().cloned());
            let is_set = request.headers.iter().any(|it| it.0 == "authorization");
            if let Some(token) = self.token(url).filter(|_| !is_set) {
                sent.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
            }
        }
        let mut method = Method::GET;
        if let Some((kind, body)) = &request.post {
            method = Method::POST;
            sent.headers.push(("content-type".to_owned(), kind.clone()));
            sent.body.clone_from(body);
        }
        let client = match is_named {
            true => &self.named,
            // A proxy resolves the name itself, so only its text can be checked.
            false if self.proxies.cover(url) => {
                Hosts::default().check(url).map_err(|it| FetchPackageError::Refused {
                    url: shown(url.as_str()),
                    why: it.to_string(),
                })?;
                &self.named
            }
            false => &self.guarded,
        };
        let stream = client.send(method, sent).await.map_err(|it| http_error(url, it))?;
        let length = stream.header("content-length").filter(|_| stream.status == 200);
        if let Some(length) = length.and_then(|it| it.parse().ok()) {
            self.progress.expect_bytes(length);
        }
        Ok(WebResponse { url: url.clone(), status: stream.status, stream })
    }

    /// Returns the body of a response.
    pub(super) async fn body(
        &self,
        mut response: WebResponse,
    ) -> Result<Vec<u8>, FetchPackageError> {
        let mut body = Vec::new();
        while let Some(part) = self.part(&mut response).await? {
            body.extend(part);
        }
        Ok(body)
    }

    /// Returns the body of a response with an error as a line of text.
    pub(super) async fn message(&self, mut response: WebResponse) -> String {
        let mut body = Vec::new();
        while body.len() < MAX_MESSAGE {
            match self.part(&mut response).await {
                Ok(Some(part)) => body.extend(part),
                _ => break,
            }
        }
        let text = String::from_utf8_lossy(&body);
        let text = text.trim();
        if text.starts_with('<') {
            return String::new();
        }
        let json = serde_json::from_str::<serde_json::Value>(text).ok();
        let told = json
            .as_ref()
            .and_then(|it| ["message", "error"].iter().find_map(|key| it.get(key)?.as_str()));
        let line = told.unwrap_or(text).lines().next().unwrap_or_default();
        let line: String = line.chars().take(300).collect();
        line.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
    }

    /// Receives a body into a file in a draft.
    pub(super) async fn save(
        &self,
        mut response: WebResponse,
        scratch: CacheDraft,
    ) -> Result<SavedBody, FetchPackageError> {
        let url = response.url.clone();
        let (sender, mut reader) = pipe();
        let saving = blocking(move || {
            let path = scratch.path().to_owned();
            let cannot =
                |source| FetchPackageError::Io { action: "write", path: path.clone(), source };
            let mut file = tempfile::tempfile_in(scratch.path()).map_err(cannot)?;
            let (mut sha256, mut sha512) = (Sha256::new(), Sha512::new());
            let mut beginning = Vec::new();
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = reader.read(&mut buffer).map_err(cannot)?;
                if count == 0 {
                    break;
                }
                let part = &buffer[..count];
                beginning.extend(&part[..count.min(BEGINNING - beginning.len())]);
                sha256.update(part);
                sha512.update(part);
                file.write_all(part).map_err(cannot)?;
            }
            file.rewind().map_err(cannot)?;
            let digest = FileDigest(sha256.finalize().into());
            let sha512 = sha512.finalize().into();
            Ok(SavedBody { url, file, digest, sha512, beginning, _scratch: scratch })
        });
        let receiving = async move {
            while let Some(part) = self.part(&mut response).await? {
                if sender.send(part).await.is_err() {
                    break;
                }
            }
            Ok::<_, FetchPackageError>(())
        };
        let (received, saved) = tokio::join!(receiving, saving);
        received?;
        saved
    }

    async fn part(&self, response: &mut WebResponse) -> Result<Option<Vec<u8>>, FetchPackageError> {
        let part = response.stream.chunk().await.map_err(|it| http_error(&response.url, it))?;
        self.progress.add_bytes(part.as_ref().map_or(0, |it| it.len() as u64));
        Ok(part)
    }
}

impl WebRequest {
    /// Creates a request for a URL that the user named.
    pub(super) fn new(url: &Url, max: u64) -> Self {
        Self {
            url: url.clone(),
            named: url.clone(),
            accept: None,
            redirects: Redirects::Internet,
            max,
            post: None,
            headers: Vec::new(),
        }
    }
}

impl WebResponse {
    /// Returns the response if it succeeded, else an error.
    pub(super) async fn succeeded(self, web: &Web) -> Result<Self, FetchPackageError> {
        if self.status == 200 {
            return Ok(self);
        }
        let (url, status) = (shown(self.url.as_str()), self.status);
        let has_token = web.token(&self.url).is_some();
        let message = web.message(self).await;
        match status {
            404 | 410 => Err(FetchPackageError::NotFound { url }),
            401 | 403 => Err(FetchPackageError::NoAccess {
                url,
                hint: match has_token {
                    true => "the token that you gave does not allow it".to_owned(),
                    false => "give a token for this host".to_owned(),
                },
            }),
            _ => Err(FetchPackageError::Status { url, status, message }),
        }
    }

    /// Returns how long the server wants to be left alone.
    fn retry_after(&self) -> Option<Duration> {
        let text = self.stream.header("retry-after")?.trim();
        let seconds: u64 = text.parse().ok()?;
        // Some servers send a time since 1970.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
        let year = 31_536_000;
        Some(Duration::from_secs(if seconds > year {
            seconds.saturating_sub(now)
        } else {
            seconds
        }))
    }
}

fn http_error(url: &Url, error: HttpError) -> FetchPackageError {
    let host = host(url);
    match error {
        HttpError::Resolve { .. } | HttpError::Connect { .. } | HttpError::Proxy { .. } => {
            FetchPackageError::Unreachable { host, source: error.into() }
        }
        HttpError::Timeout { after, .. } => FetchPackageError::Stalled { host, after },
        HttpError::TooLong { limit, .. } => {
            FetchPackageError::TooLarge { url: shown(url.as_str()), limit: size(limit) }
        }
        HttpError::Refused { why } | HttpError::Url { why } => {
            FetchPackageError::Refused { url: shown(url.as_str()), why }
        }
        source => FetchPackageError::Http { url: shown(url.as_str()), source },
    }
}

pub(super) fn host(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    }
}

/// Whether two URLs are of one server: the same host, at the same port or at the usual ports.
pub(super) fn is_same_host(one: &Url, other: &Url) -> bool {
    one.host_str().is_some() && one.host_str() == other.host_str() && one.port() == other.port()
}

/// Returns a pause that differs from that of others, so that they do not all come back at once.
fn jitter() -> Duration {
    Duration::from_millis(RandomState::new().build_hasher().finish() % 250)
}

/// Fails if a URL would be requested without encryption from elsewhere than this machine.
pub(super) fn check_encrypted(url: &Url) -> Result<(), FetchPackageError> {
    let why = match url.scheme() {
        "https" => return Ok(()),
        "http" if is_this_machine(url) => return Ok(()),
        "http" => "`http:` can be read and changed on its way; use `https:`".to_owned(),
        _ => "expected `https:`".to_owned(),
    };
    Err(FetchPackageError::Refused { url: shown(url.as_str()), why })
}

/// Joins a path to a URL that may have a path itself.
pub(super) fn join(base: &str, path: &str) -> Result<Url, FetchPackageError> {
    let text = format!("{}/{path}", base.trim_end_matches('/'));
    Url::parse(&text).map_err(|error| FetchPackageError::Refused {
        url: shown(&text),
        why: format!("it is not a URL: {error}"),
    })
}
