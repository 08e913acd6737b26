//! The redirect target of the browser: a port of this machine, for one login.

use std::{
    convert::Infallible,
    future::pending,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::HeaderValue,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use url::{Url, form_urlencoded};

use super::{LoginError, secret::Secret, web::is_loopback};

/// A listener for one answer.
#[derive(Debug)]
pub(super) struct CallbackListener {
    listener: TcpListener,
    /// `localhost` has two addresses, and another program could listen at the other one.
    second: Option<TcpListener>,
    redirect: String,
    path: String,
}

/// The answer of the authorization server in the redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RedirectAnswer {
    pub(super) code: Option<Secret>,
    pub(super) issuer: Option<String>,
    pub(super) error: Option<String>,
    pub(super) error_description: Option<String>,
}

/// The kind of request to the port.
enum Visit {
    Redirect(RedirectAnswer),
    /// It belongs to another login, or is forged.
    Stranger,
    Nothing,
}

/// The maximum number of concurrent requests, and their timeout.
const VISITORS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum size of the head of a request.
const LONGEST: usize = 16 * 1024;

impl CallbackListener {
    /// Listens at any port, or at that of a registered redirect URI.
    pub(super) async fn new(registered: Option<&str>) -> Result<Self, LoginError> {
        match registered {
            Some(registered) => Self::bind_to(registered).await,
            None => Self::bind_any().await.map_err(|source| {
                let address = "127.0.0.1".to_owned();
                LoginError::Listen { address, source }
            }),
        }
    }

    async fn bind_any() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let redirect = format!("http://127.0.0.1:{}/callback", listener.local_addr()?.port());
        Ok(Self { listener, second: None, redirect, path: "/callback".to_owned() })
    }

    async fn bind_to(registered: &str) -> Result<Self, LoginError> {
        let url = Url::parse(registered)
            .ok()
            .filter(|url| url.scheme() == "http" && is_loopback(url) && url.query().is_none());
        let Some((url, port)) = url.and_then(|it| it.port().map(|port| (it, port))) else {
            let why = "it must be like `http://127.0.0.1:8912/callback`, with a port".to_owned();
            return Err(LoginError::Malformed { what: "`oauth.redirect_uri`", why });
        };
        match bind_local(&url, port).await {
            Ok((listener, second)) => {
                let (redirect, path) = (registered.to_owned(), url.path().to_owned());
                Ok(Self { listener, second, redirect, path })
            }
            Err(source) => Err(LoginError::Listen { address: registered.to_owned(), source }),
        }
    }

    /// Returns the redirect URI.
    pub(super) fn redirect(&self) -> &str {
        &self.redirect
    }

    /// Waits for the answer with this state. A request with another one is rejected, and does not
    /// end the login: any program of this machine can connect.
    pub(super) async fn wait(
        &self,
        state: &Secret,
        stranger: &(dyn Fn() + Sync),
    ) -> RedirectAnswer {
        let mut visits = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.accept(), if visits.len() < VISITORS => {
                    match accepted {
                        Ok(stream) => drop(visits.spawn(serve_request(stream, self.path.clone(), state.clone()))),
                        // There may be no file descriptor left for the moment.
                        Err(_) => sleep(PAUSE).await,
                    }
                }
                Some(visit) = visits.join_next() => match visit {
                    Ok(Visit::Redirect(answer)) => return answer,
                    Ok(Visit::Stranger) => stranger(),
                    Ok(Visit::Nothing) | Err(_) => {}
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        let second = async {
            match &self.second {
                Some(second) => second.accept().await,
                None => pending().await,
            }
        };
        tokio::select! {
            accepted = self.listener.accept() => accepted,
            accepted = second => accepted,
        }
        .map(|it| it.0)
    }
}

/// Listens at the address of this machine that a URL names; at both addresses of `localhost`.
async fn bind_local(url: &Url, port: u16) -> io::Result<(TcpListener, Option<TcpListener>)> {
    if url.domain().is_none() {
        let is_six = url.host_str() == Some("[::1]");
        let address: IpAddr =
            if is_six { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        return Ok((TcpListener::bind((address, port)).await?, None));
    }
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        second => Ok((TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?, second.ok())),
    }
}

impl RedirectAnswer {
    /// Parses the answer in a query; `None` if it belongs to another login.
    fn read(query: &str, state: &Secret) -> Option<Self> {
        let value = |name: &str| {
            let mut values = form_urlencoded::parse(query.as_bytes()).filter(|it| it.0 == name);
            // A duplicate parameter is ambiguous.
            let value = values.next().map(|it| it.1.into_owned());
            if values.next().is_some() { None } else { value }
        };
        if value("state").as_deref() != Some(state.reveal()) {
            return None;
        }
        Some(Self {
            code: value("code").map(Secret::new),
            issuer: value("iss"),
            error: value("error"),
            error_description: value("error_description"),
        })
    }

    /// Parses the answer in a URL that was copied from a browser on another machine.
    pub(super) fn parse_pasted(text: &str, state: &Secret) -> Option<Self> {
        Self::read(Url::parse(text.trim()).ok()?.query()?, state)
    }
}

/// Serves one request.
async fn serve_request(stream: TcpStream, path: String, state: Secret) -> Visit {
    let visit = Arc::new(Mutex::new(Visit::Nothing));
    let service = service_fn(|request: Request<Incoming>| {
        let (status, text, what) = respond(&request, &path, &state);
        *visit.lock().unwrap_or_else(PoisonError::into_inner) = what;
        async move { Ok::<_, Infallible>(page(status, text)) }
    });
    let mut server = http1::Builder::new();
    let server = server.keep_alive(false).max_buf_size(LONGEST);
    // A client that does not read the answer has sent its request in any case.
    let _ = timeout(PATIENCE, server.serve_connection(TokioIo::new(stream), service)).await;
    std::mem::replace(&mut *visit.lock().unwrap_or_else(PoisonError::into_inner), Visit::Nothing)
}

fn respond(
    request: &Request<Incoming>,
    path: &str,
    state: &Secret,
) -> (StatusCode, &'static str, Visit) {
    if request.method() != Method::GET || request.uri().path() != path {
        return (StatusCode::NOT_FOUND, "Not found.\n", Visit::Nothing);
    }
    match RedirectAnswer::read(request.uri().query().unwrap_or_default(), state) {
        Some(answer) => {
            let text = "You can close this window and return to the terminal.\n";
            (StatusCode::OK, text, Visit::Redirect(answer))
        }
        None => {
            let text = "This does not belong to the current login.\n";
            (StatusCode::BAD_REQUEST, text, Visit::Stranger)
        }
    }
}

/// Creates a page of plain text. The code in its URL is not passed on or cached.
fn page(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
