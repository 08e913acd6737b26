//! Requests of a script to the proxy, and their answers.

use std::{
    mem,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    client::conn::http1,
    ext::ReasonPhrase,
    header::{
        CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
        PROXY_AUTHORIZATION, TRANSFER_ENCODING,
    },
};
use hyper_util::rt::TokioIo;
use prowess::lock;
use prowess_http::CONNECTION_HEADERS;
use tokio::task::JoinSet;

use super::{
    MAX_HEAD, Proxy,
    log::{Log, Record},
    target::Target,
    tunnel,
    upstream::{Refusal, Upstream},
};

/// The proxy's side of one run of a script.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) proxy: Proxy,
    pub(super) password: Option<String>,
    pub(super) log: Arc<Log>,
}

/// The tasks that the requests of one connection have started.
#[derive(Debug, Default)]
pub(super) struct Tasks(JoinSet<()>);

type Answer = Response<BoxBody<Bytes, hyper::Error>>;

/// The answer to a connection over the limit.
pub(super) const TOO_MANY: &str = "prowess: there are too many connections at once\n";

impl Tasks {
    /// Returns all of them, to wait for.
    pub(super) fn split_off(&mut self) -> JoinSet<()> {
        mem::take(&mut self.0)
    }
}

impl Client {
    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>, tasks: &Mutex<Tasks>) -> Answer {
        if !self.is_authenticated(request.headers()) {
            let mut answer = reply(
                StatusCode::PROXY_AUTHENTICATION_REQUIRED,
                "proxy authentication is required",
            );
            let basic = HeaderValue::from_static("Basic realm=\"prowess\"");
            answer.headers_mut().insert("proxy-authenticate", basic);
            return answer;
        }
        let target = match parse_target(&request) {
            Ok(target) => target,
            Err(Refusal { status, why }) => {
                self.log.refuse(&requested_authority(request.uri()), &why);
                return reply(status, &why);
            }
        };
        let record = self.log.begin(&target);
        let answered = match *request.method() {
            Method::CONNECT => self.tunnel(request, target, &record, tasks).await,
            _ => self.forward(request, target, &record, tasks).await,
        };
        answered.unwrap_or_else(|Refusal { status, why }| {
            record.refuse(&why);
            reply(status, &why)
        })
    }

    /// Whether the request has the password, if one is required.
    fn is_authenticated(&self, headers: &HeaderMap) -> bool {
        let Some(password) = &self.password else { return true };
        let value = headers.get(PROXY_AUTHORIZATION).and_then(|it| it.to_str().ok());
        let code = value.and_then(|it| it.strip_prefix("Basic "));
        let credentials = code.and_then(|it| BASE64_STANDARD.decode(it.trim()).ok());
        credentials.is_some_and(|it| it.ends_with(format!(":{password}").as_bytes()))
    }

    /// Connects to a host, and passes on the bytes that follow this request.
    async fn tunnel(
        &self,
        request: Request<Incoming>,
        target: Target,
        record: &Arc<Record>,
        tasks: &Mutex<Tasks>,
    ) -> Result<Answer, Refusal> {
        let upstream = self.proxy.connect(&target, &self.log, record).await?;
        let (idle, record) = (self.proxy.limits.idle, record.clone());
        lock(tasks).0.spawn(async move {
            match hyper::upgrade::on(request).await {
                // The log has the end of a connection, as far as it matters.
                Ok(client) => drop(tunnel::relay(client, target, upstream, idle).await),
                Err(_) => {
                    record.refuse("the connection was closed before the tunnel was established");
                }
            }
        });
        Ok(Response::new(empty_body()))
    }

    /// Forwards a request to its host, without the headers meant for the proxy.
    async fn forward(
        &self,
        request: Request<Incoming>,
        target: Target,
        record: &Arc<Record>,
        tasks: &Mutex<Tasks>,
    ) -> Result<Answer, Refusal> {
        let idle = self.proxy.limits.idle;
        let upstream = self.proxy.connect(&target, &self.log, record).await?;
        let (mut sender, driver) =
            handshake(upstream, idle).await.map_err(|it| no_response(&target, &it))?;
        lock(tasks).0.spawn(driver);
        let sent = sender.send_request(to_origin(request, &target)?).await;
        let mut answer = sent.map_err(|it| no_response(&target, &it))?;
        if answer.status().is_informational() {
            let why = format!("`{target}` responded with {}", answer.status());
            return Err(Refusal { status: StatusCode::BAD_GATEWAY, why });
        }
        let headers = answer.headers_mut();
        let length = headers.get(CONTENT_LENGTH).cloned();
        let length = length.filter(|_| !headers.contains_key(TRANSFER_ENCODING));
        strip_headers(headers);
        // An answer to `HEAD` has the length, too, but no body.
        headers.extend(length.map(|it| (CONTENT_LENGTH, it)));
        Ok(answer.map(BodyExt::boxed))
    }
}

fn no_response(target: &Target, error: &hyper::Error) -> Refusal {
    let why = format!("`{target}` did not respond: {error}");
    Refusal { status: StatusCode::BAD_GATEWAY, why }
}

/// Starts HTTP with a host. The returned future must be awaited; it ends when the connection is
/// idle for too long.
async fn handshake(
    upstream: Upstream,
    idle: std::time::Duration,
) -> hyper::Result<(http1::SendRequest<Incoming>, impl Future<Output = ()> + use<>)> {
    let meter = upstream.meter();
    let mut builder = http1::Builder::new();
    let handshake = builder.max_buf_size(2 * MAX_HEAD).handshake(TokioIo::new(upstream)).await;
    let (sender, connection) = handshake?;
    let driver = async move {
        tokio::select! {
            _ = connection => {}
            () = meter.wait_idle(idle) => meter.record.refuse("the connection was idle for too long"),
        }
    };
    Ok((sender, driver))
}

/// Returns the target of a request, if it is unambiguous.
fn parse_target<B>(request: &Request<B>) -> Result<Target, Refusal> {
    let uri = request.uri();
    let is_tunnel = request.method() == Method::CONNECT;
    let usual = match (is_tunnel, uri.scheme_str()) {
        (true, None) => None,
        (false, Some("http")) => Some(80),
        (false, Some("https")) => {
            return Err(Refusal::bad("a request for `https:` must use `CONNECT`"));
        }
        (false, None) => {
            return Err(Refusal::bad("this is a proxy: the request must contain the whole URL"));
        }
        _ => return Err(Refusal::bad("this proxy only supports `http:` and `https:`")),
    };
    let asked = uri.authority().map_or("", |it| it.as_str());
    let target = Target::parse(asked, usual);
    let target = target.ok_or_else(|| Refusal::bad("the request has no valid host"))?;
    for host in request.headers().get_all(HOST) {
        let host = host.to_str().ok().and_then(|it| Target::parse(it, Some(target.port)));
        if host.as_ref() != Some(&target) {
            let why = format!("the header `Host` is for another host than `{target}`");
            return Err(Refusal::bad(why));
        }
    }
    Ok(target)
}

/// Converts a request to the form sent to the host.
fn to_origin(request: Request<Incoming>, target: &Target) -> Result<Request<Incoming>, Refusal> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |it| it.as_str());
    head.uri = path.parse().map_err(|_| Refusal::bad("the path is invalid"))?;
    strip_headers(&mut head.headers);
    let host = match target.port {
        80 => target.host.to_string(),
        _ => target.to_string(),
    };
    let host = HeaderValue::from_str(&host);
    head.headers.insert(HOST, host.map_err(|_| Refusal::bad("the host is invalid"))?);
    head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri;
    *request.headers_mut() = head.headers;
    Ok(request)
}

/// Removes hop-by-hop headers, and those with the length of the body, which is set anew.
fn strip_headers(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter().filter_map(|it| it.to_str().ok());
    let named = named.flat_map(|it| it.split(','));
    let named: Vec<HeaderName> = named.filter_map(|it| it.trim().parse().ok()).collect();
    named.iter().for_each(|it| drop(headers.remove(it)));
    CONNECTION_HEADERS.iter().for_each(|it| drop(headers.remove(*it)));
}

/// Returns the requested authority, without credentials.
fn requested_authority(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |it| it.as_str());
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

/// Returns an answer of the proxy itself. Many programs show only its first line.
fn reply(status: StatusCode, why: &str) -> Answer {
    let body = Full::from(format!("prowess: {why}\n")).map_err(|never| match never {});
    let mut answer = Response::new(body.boxed());
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    if let Ok(phrase) = ReasonPhrase::try_from(why.as_bytes()) {
        answer.extensions_mut().insert(phrase);
    }
    answer
}

fn empty_body() -> BoxBody<Bytes, hyper::Error> {
    Full::default().map_err(|never| match never {}).boxed()
}
