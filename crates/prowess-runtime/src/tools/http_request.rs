//! `http_request`: sends an HTTP request.

use std::{borrow::Cow, collections::BTreeMap, error::Error, sync::Arc, time::Duration};

use hyper::{
    HeaderMap, Method,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use prowess_http::{
    CONNECTION_HEADERS, CertificateError, FetchError, FetchRequest, FetchResponse, Fetcher, Hosts,
    Resolver,
};
use prowess_sandbox::RunLimits;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::{input, schema};
use crate::{
    content::{Content, text_end},
    known_secret::{KnownSecret, secret_in},
    outcome::{Outcome, OutcomeStatus},
    tool::{Action, Tool, ToolFuture},
};

/// The tool `http_request`. Any answer of a server is a success, whatever its status.
#[derive(Debug)]
pub struct HttpRequest {
    fetcher: Fetcher,
    limits: RunLimits,
    secrets: Vec<KnownSecret>,
}

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// An `http:` or `https:` URL, without a user name or password
    url: String,
    /// HTTP method; `GET` by default
    #[serde(default)]
    method: Verb,
    /// Request headers
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Query parameters to add to the URL; a list repeats its name
    #[serde(default)]
    query: Map<String, Value>,
    /// Request body: a string is sent as is, anything else as JSON
    body: Option<Value>,
    /// Timeout in seconds
    timeout: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Verb {
    #[default]
    Get,
    Post,
    Put,
    Delete,
    Patch,
    Head,
}

/// The maximum size of all returned headers of an answer, in bytes.
const MAX_HEADERS: usize = 32 * 1024;

impl HttpRequest {
    /// Creates the tool for these hosts. Of the limits, those of time and output apply.
    pub fn new(hosts: Hosts, limits: RunLimits) -> Self {
        Self { fetcher: Fetcher::new(hosts), limits, secrets: Vec::new() }
    }

    /// Refuses to send any of these secrets, however they are encoded.
    #[must_use]
    pub fn with_secrets(self, secrets: Vec<KnownSecret>) -> Self {
        Self { secrets, ..self }
    }

    /// Replaces the system's resolver.
    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { fetcher: self.fetcher.with_resolver(resolver), ..self }
    }

    /// Trusts these certificate authorities (PEM) in addition to those of the system.
    pub fn with_certificates(self, pem: &[u8]) -> Result<Self, CertificateError> {
        Ok(Self { fetcher: self.fetcher.with_certificates(pem)?, ..self })
    }

    /// Creates the request of an input, checked as far as possible before it is sent.
    fn request(&self, given: &Value) -> Result<FetchRequest, Box<Outcome>> {
        let input: Input = input(given)?;
        // The parser's message does not repeat the URL, which may contain a password.
        let mut url = Url::parse(&input.url).map_err(|it| invalid(format!("`url`: {it}")))?;
        add_query(&mut url, &input.query)?;
        url.set_fragment(None);
        self.fetcher.check(&url).map_err(|it| Box::new(to_outcome(&it)))?;
        let mut headers = parse_headers(&input.headers)?;
        let body = input.body.map(|body| {
            let (kind, bytes) = match body {
                Value::String(text) => (guess_content_type(&text), text.into_bytes()),
                body => (JSON, body.to_string().into_bytes()),
            };
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
            bytes
        });
        self.refuse_secrets(&url, &headers, body.as_deref())?;
        let timeout = self.timeout(input.timeout)?;
        let idle = self.limits.idle.unwrap_or(timeout);
        let method = input.method.into();
        let max_body = self.limits.output;
        Ok(FetchRequest { method, url, headers, body, timeout, idle, max_body })
    }

    /// Refuses a request that contains a known secret.
    fn refuse_secrets(
        &self,
        url: &Url,
        headers: &HeaderMap,
        body: Option<&[u8]>,
    ) -> Result<(), Box<Outcome>> {
        let mut sent = vec![("the URL", url.as_str().to_owned())];
        for (name, value) in headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            sent.push(("a header", format!("{name}: {value}")));
        }
        sent.extend(body.map(|it| ("the body", String::from_utf8_lossy(it).into_owned())));
        let found =
            sent.iter().find_map(|(part, text)| Some((part, secret_in(&self.secrets, text)?)));
        let Some((part, secret)) = found else { return Ok(()) };
        let message =
            format!("{part} contains the value of `{}`, so nothing was sent", secret.name);
        Err(Outcome::bad(OutcomeStatus::Refused, message)
            .hint("leave the secret out of the request")
            .into())
    }

    fn timeout(&self, seconds: Option<f64>) -> Result<Duration, Box<Outcome>> {
        let most = self.limits.timeout;
        let Some(seconds) = seconds else { return Ok(most) };
        let timeout = Duration::try_from_secs_f64(seconds).ok();
        timeout.filter(|it| !it.is_zero() && *it <= most).ok_or_else(|| {
            invalid(format!("`timeout` must be more than 0 and at most {} s", most.as_secs_f64()))
        })
    }
}

impl Tool for HttpRequest {
    fn name(&self) -> &str {
        "http_request"
    }

    fn description(&self) -> Cow<'_, str> {
        "Send an HTTP request and return status, headers and body; a binary body is base64. Redirects are \
         followed. Private networks are refused unless they are configured."
            .into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        let FetchRequest { method, url, body, .. } = self.request(given)?;
        let body = body.map(|it| it.len());
        Ok(Action::Fetch { method: method.to_string(), url: url.into(), body })
    }

    fn perform<'a>(&'a self, _: Action, given: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            let request = match self.request(&given) {
                Ok(request) => request,
                Err(outcome) => return *outcome,
            };
            match self.fetcher.fetch(request).await {
                Ok(response) => Outcome::ok(to_output(response)),
                Err(error) => to_outcome(&error),
            }
        })
    }
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Guesses the content type of a text without one.
fn guess_content_type(text: &str) -> &'static str {
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() { JSON } else { TEXT }
}

fn add_query(url: &mut Url, query: &Map<String, Value>) -> Result<(), Box<Outcome>> {
    if query.is_empty() {
        return Ok(());
    }
    let mut pairs = url.query_pairs_mut();
    for (name, value) in query {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            match value {
                Value::String(text) => pairs.append_pair(name, text),
                Value::Number(_) | Value::Bool(_) => pairs.append_pair(name, &value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let message =
                        format!("`query.{name}` must be a string, a number, true or false");
                    return Err(invalid(message));
                }
            };
        }
    }
    Ok(())
}

fn parse_headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, Box<Outcome>> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let bad = |what: &str| invalid(format!("header `{}` {what}", name.escape_debug()));
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| bad("is not a valid header name"))?;
        if CONNECTION_HEADERS.contains(&name.as_str()) {
            return Err(bad("cannot be set"));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("has an invalid value"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

fn to_output(response: FetchResponse) -> Value {
    let FetchResponse { status, headers, mut body, truncated: mut cut, url, redirects, .. } =
        response;
    let mut named: BTreeMap<&str, Vec<Cow<'_, str>>> = BTreeMap::new();
    let mut room = MAX_HEADERS;
    for (name, value) in &headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        match room.checked_sub(name.as_str().len() + value.len()) {
            Some(left) => room = left,
            None => {
                cut = true;
                continue;
            }
        }
        named.entry(name.as_str()).or_default().push(value);
    }
    let named: Map<String, Value> = named
        .into_iter()
        .map(|(name, values)| {
            let value = if let [value] = &values[..] { json!(value) } else { json!(values) };
            (name.to_owned(), value)
        })
        .collect();
    if cut {
        body.truncate(text_end(&body));
    }
    let mut answer = Map::new();
    answer.insert("status".to_owned(), status.as_u16().into());
    answer.insert("url".to_owned(), url.as_str().into());
    answer.insert("redirects".to_owned(), redirects.iter().map(Url::as_str).collect());
    answer.insert("headers".to_owned(), named.into());
    Content::new(body).insert_into(&mut answer, "body");
    answer.insert("cut".to_owned(), cut.into());
    answer.into()
}

/// The hint on the effect of a list of hosts.
const HOSTS_HINT: &str = "once it is set, only the listed hosts can be reached";

/// Creates the outcome for a failed request.
fn to_outcome(error: &FetchError) -> Outcome {
    let mut deepest: Option<&dyn Error> = error.source();
    while let Some(source) = deepest.and_then(Error::source) {
        deepest = Some(source);
    }
    let message = deepest.map_or(error.to_string(), |it| format!("{error}: {it}"));
    let bad = |status| Outcome::bad(status, &*message);
    match error {
        FetchError::Scheme { .. } => bad(OutcomeStatus::Refused),
        FetchError::Url => bad(OutcomeStatus::Invalid),
        FetchError::Userinfo => {
            bad(OutcomeStatus::Refused).hint("send a header `authorization` instead")
        }
        FetchError::Port { host, port, .. } => bad(OutcomeStatus::Refused).hint(format!(
            "add `{host}:{port}` to `policy.hosts` in your own settings; {HOSTS_HINT}"
        )),
        FetchError::Host { .. } | FetchError::Address { .. } => bad(OutcomeStatus::Refused)
            .hint(format!("add it to `policy.hosts` in your own settings; {HOSTS_HINT}")),
        FetchError::Downgrade { .. } | FetchError::Body { .. } => bad(OutcomeStatus::Refused)
            .hint("request the other URL directly if that is what you want"),
        FetchError::Timeout { .. } => bad(OutcomeStatus::TimedOut),
        _ => bad(OutcomeStatus::Failed),
    }
}

fn invalid(message: String) -> Box<Outcome> {
    Outcome::bad(OutcomeStatus::Invalid, message).into()
}

impl From<Verb> for Method {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Get => Self::GET,
            Verb::Post => Self::POST,
            Verb::Put => Self::PUT,
            Verb::Delete => Self::DELETE,
            Verb::Patch => Self::PATCH,
            Verb::Head => Self::HEAD,
        }
    }
}
