//! Requests to authorization servers: over TLS, within the policy, and without redirects.

use std::time::Duration;

use hyper::Method;
use prowess_http::{
    ClientRequest as Post, Hosts, HttpClient as Wire, StreamedResponse as Incoming,
    Timeouts as Patience,
};
use prowess_runtime::text::strict_json;
use serde_json::{Map, Value};
use url::{Host, Url, form_urlencoded};

use super::{LoginError, challenge::sanitize};

/// The HTTP client of a login.
#[derive(Debug)]
pub(super) struct Web {
    wire: Wire,
    /// Whether the server to log in to is on this machine; then its authorization server may be,
    /// too.
    is_local: bool,
}

/// An answer that is a JSON object.
pub(super) type Document = Map<String, Value>;

/// The maximum size of a document.
const LONGEST: u64 = 256 * 1024;
/// The timeouts of an answer.
const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(10),
    idle: Duration::from_secs(30),
    total: Duration::from_secs(30),
};

impl Web {
    /// Creates a client for these hosts, for a login to this server.
    pub(super) fn new(hosts: Hosts, server: &Url) -> Self {
        Self { wire: Wire::new(PATIENCE).with_hosts(hosts), is_local: is_loopback(server) }
    }

    /// Parses a URL that a server names, if it is allowed: `https:`, or this machine if the server
    /// is on it.
    pub(super) fn url(&self, what: &'static str, text: &str) -> Result<Url, LoginError> {
        let bad = |why: &str| LoginError::Malformed { what, why: why.to_owned() };
        let url = Url::parse(text).map_err(|_| bad("it is not a URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it has a user name or password"));
        }
        if url.fragment().is_some() {
            return Err(bad("it has a fragment"));
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if self.is_local && is_loopback(&url) => Ok(url),
            _ => Err(LoginError::Insecure { what }),
        }
    }

    /// Requests a document; `None` if it does not exist.
    pub(super) async fn get(
        &self,
        what: &'static str,
        url: &Url,
    ) -> Result<Option<Document>, LoginError> {
        let headers = vec![("accept".to_owned(), "application/json".to_owned())];
        let mut incoming = self.send(Method::GET, what, url, headers, Vec::new()).await?;
        match incoming.status {
            200 => {
                let kind = incoming.header("content-type").unwrap_or_default();
                let is_json = kind.contains("json");
                match read(what, &mut incoming).await {
                    // Some sites have a page for every path.
                    Err(LoginError::Malformed { .. }) if !is_json => Ok(None),
                    document => document.map(Some),
                }
            }
            // A redirect is not a document, either.
            300..=499 => Ok(None),
            status => Err(LoginError::Answer { what, status }),
        }
    }

    /// Posts a form, and returns the answer with its status.
    pub(super) async fn post_form(
        &self,
        what: &'static str,
        url: &Url,
        authorization: Option<String>,
        form: &[(&str, &str)],
    ) -> Result<(u16, Document), LoginError> {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let authorization = authorization.map(|it| ("authorization".to_owned(), it));
        let headers = [
            ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
            ("accept".to_owned(), "application/json".to_owned()),
        ];
        let headers = headers.into_iter().chain(authorization).collect();
        self.answer(what, url, headers, body.into_bytes()).await
    }

    /// Posts a JSON document, and returns the answer with its status.
    pub(super) async fn post_json(
        &self,
        what: &'static str,
        url: &Url,
        document: &Value,
    ) -> Result<(u16, Document), LoginError> {
        let headers = ["content-type", "accept"];
        let headers = headers.map(|it| (it.to_owned(), "application/json".to_owned())).to_vec();
        self.answer(what, url, headers, document.to_string().into_bytes()).await
    }

    /// Sends a request, and waits for the head of the answer.
    pub(super) async fn send(
        &self,
        method: Method,
        what: &'static str,
        url: &Url,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Incoming, LoginError> {
        let post = Post { url: url.to_string(), headers, body, max_body: LONGEST };
        let sent = self.wire.send(method, post).await;
        sent.map_err(|source| LoginError::Wire { what, source })
    }

    async fn answer(
        &self,
        what: &'static str,
        url: &Url,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<(u16, Document), LoginError> {
        let mut incoming = self.send(Method::POST, what, url, headers, body).await?;
        let status = incoming.status;
        if matches!(status, 300..=399 | 500..) {
            return Err(LoginError::Answer { what, status });
        }
        let is_well = matches!(status, 200 | 201);
        match read(what, &mut incoming).await {
            Ok(document) => Ok((status, document)),
            Err(LoginError::Malformed { .. }) if !is_well => {
                Err(LoginError::Answer { what, status })
            }
            Err(error) => Err(error),
        }
    }
}

async fn read(what: &'static str, incoming: &mut Incoming) -> Result<Document, LoginError> {
    let body = incoming.whole().await.map_err(|source| LoginError::Wire { what, source })?;
    // The error is not repeated: it may contain a part of a token.
    let text = str::from_utf8(&body).ok().and_then(|it| strict_json(it).ok());
    match text {
        Some(Value::Object(document)) => Ok(document),
        _ => Err(LoginError::Malformed { what, why: "it is not a JSON object".to_owned() }),
    }
}

/// Returns a string of a document; `None` if it is missing.
pub(super) fn text<'d>(
    what: &'static str,
    document: &'d Document,
    key: &str,
) -> Result<Option<&'d str>, LoginError> {
    match document.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(_) => Err(LoginError::Malformed { what, why: format!("`{key}` is not a text") }),
    }
}

/// Returns a required string of a document.
pub(super) fn required_text<'d>(
    what: &'static str,
    document: &'d Document,
    key: &str,
) -> Result<&'d str, LoginError> {
    text(what, document, key)?
        .ok_or_else(|| LoginError::Malformed { what, why: format!("it has no `{key}`") })
}

/// Returns the strings of a list; `None` if it is missing.
pub(super) fn texts<'d>(document: &'d Document, key: &str) -> Option<Vec<&'d str>> {
    Some(document.get(key)?.as_array()?.iter().filter_map(Value::as_str).collect())
}

/// Converts an error answer (RFC 6749, section 5.2).
pub(super) fn denial(status: u16, what: &'static str, document: &Document) -> LoginError {
    let [code, description] = ["error", "error_description"]
        .map(|it| document.get(it).and_then(Value::as_str).map(sanitize));
    let Some(code) = code else { return LoginError::Answer { what, status } };
    let is_over = code == "invalid_grant";
    let error = description.map_or_else(|| code.clone(), |it| format!("{code}: {it}"));
    LoginError::Denied { error, is_over }
}

/// Whether a URL names this machine, by its text.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
