//! Export of spans to an OpenTelemetry collector, over HTTP.

mod protobuf;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    error::Error,
    fmt,
    hash::{BuildHasher as _, RandomState},
    iter,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use prowess::lock;
use prowess_http::{ClientRequest, HttpClient, Timeouts};
use prowess_runtime::secret::mask;
use serde_json::{Value as Json, json};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::builtin::SPANS_TARGET;

/// The collector that spans are sent to.
#[derive(Clone)]
pub struct Collector {
    /// The URL, with the path: `http://localhost:4318/v1/traces`.
    pub url: String,
    /// Headers of each request, such as a key.
    pub headers: Vec<(String, String)>,
    /// The encoding of requests.
    pub protocol: CollectorProtocol,
    /// The service name of the spans, such as `prowess`.
    pub service: String,
    /// The timeout of a request.
    pub timeout: Duration,
}

/// The encoding in which spans are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectorProtocol {
    /// `http/protobuf`, which every collector accepts.
    #[default]
    Protobuf,
    /// `http/json`.
    Json,
}

impl CollectorProtocol {
    /// Returns its name, as in the environment variables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Protobuf => "http/protobuf",
            Self::Json => "http/json",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// An environment variable does not describe a collector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{variable}` is not {wanted}")]
#[non_exhaustive]
pub struct CollectorError {
    /// The variable.
    pub variable: &'static str,
    /// The expected value.
    pub wanted: &'static str,
}

/// A subscriber that sends the spans of [`Spans`](crate::Spans) to a collector in the background.
///
/// A slow or missing collector never blocks the program: spans that exceed the queue are dropped.
pub struct Otlp {
    spans: Mutex<BTreeMap<u64, Open>>,
    last: AtomicU64,
    ids: RandomState,
    sender: SyncSender<Order>,
    lost: Arc<AtomicU64>,
}

/// The background export of spans. Its owner waits for the last ones with [`finish`](Self::finish).
#[derive(Debug)]
pub struct SpanExporter {
    sender: SyncSender<Order>,
    thread: JoinHandle<Result<(), String>>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Order {
    Send(Json),
    Finish,
}

/// An open span.
struct Open {
    trace: String,
    parent: Option<String>,
    own: String,
    name: String,
    start: u128,
    fields: BTreeMap<&'static str, Json>,
    events: Vec<Json>,
    /// The number of its handles.
    holders: usize,
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const TRACES_PROTOCOL: &str = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
/// The maximum number of spans waiting to be sent.
const ROOM: usize = 4096;
/// The maximum number of spans in a request.
const BATCH: usize = 256;
/// The time a span waits for others.
const PAUSE: Duration = Duration::from_secs(2);
/// The maximum number of events of a span.
const MAX_EVENTS: usize = 256;

thread_local! {
    /// The spans that this thread has entered, innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl Collector {
    /// Returns the collector that the environment variables of OpenTelemetry describe; `None` if
    /// they are unset or disable it.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, CollectorError> {
        let set = |name| variable(name).filter(|it| !it.trim().is_empty());
        let is_off = set("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").is_some_and(|it| it == "none");
        let (name, url) = match (set(TRACES_ENDPOINT), set(ENDPOINT)) {
            _ if is_off => return Ok(None),
            (Some(url), _) => (TRACES_ENDPOINT, url),
            (None, Some(url)) => (ENDPOINT, format!("{}/v1/traces", url.trim_end_matches('/'))),
            (None, None) => return Ok(None),
        };
        if !["http://", "https://"].iter().any(|it| url.starts_with(it) && url.len() > it.len()) {
            return Err(CollectorError {
                variable: name,
                wanted: "an address with `http` or `https`",
            });
        }
        let headers = set("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| set(HEADERS));
        let headers =
            headers.iter().flat_map(|it| it.split(',')).filter(|it| !it.trim().is_empty());
        let headers: Option<Vec<_>> = headers
            .map(|it: &str| {
                let (name, value) = it.split_once('=')?;
                Some((name.trim().to_lowercase(), decode_percent(value.trim())))
            })
            .collect();
        let wanted = "a list of `name=value`";
        let headers = headers.ok_or(CollectorError { variable: HEADERS, wanted })?;
        let timeout = set("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT").or_else(|| set(TIMEOUT));
        let timeout = match timeout.map(|it| it.trim().parse()) {
            None => Duration::from_secs(10),
            Some(Ok(milliseconds)) => Duration::from_millis(milliseconds),
            Some(Err(_)) => {
                return Err(CollectorError {
                    variable: TIMEOUT,
                    wanted: "a number of milliseconds",
                });
            }
        };
        let protocol = set(TRACES_PROTOCOL).map(|it| (TRACES_PROTOCOL, it));
        let protocol = protocol.or_else(|| set(PROTOCOL).map(|it| (PROTOCOL, it)));
        let protocol = match protocol.as_ref().map(|(name, it)| (*name, it.trim())) {
            None | Some((_, "http/protobuf")) => CollectorProtocol::Protobuf,
            Some((_, "http/json")) => CollectorProtocol::Json,
            Some((variable, _)) => {
                return Err(CollectorError {
                    variable,
                    wanted: "`http/protobuf` or `http/json`; gRPC is not supported",
                });
            }
        };
        let service = set("OTEL_SERVICE_NAME").unwrap_or_else(|| "prowess".to_owned());
        Ok(Some(Self { url, headers, protocol, service, timeout }))
    }
}

/// Redacts keys.
impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.iter().map(|it| &it.0).collect();
        f.debug_struct("Collector")
            .field("url", &mask(&self.url))
            .field("headers", &headers)
            .field("protocol", &self.protocol)
            .field("service", &self.service)
            .field("timeout", &self.timeout)
            .finish()
    }
}

/// Decodes percent-encoding, such as `%20`.
fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| first == b'%').and_then(|it| str::from_utf8(it).ok());
        match hex.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Otlp {
    /// Starts the export.
    pub fn start(collector: Collector) -> (Self, SpanExporter) {
        let (sender, receiver) = sync_channel(ROOM);
        let lost = Arc::new(AtomicU64::new(0));
        let counter = lost.clone();
        let thread = thread::spawn(move || send_all(&collector, &receiver, &counter));
        let otlp = Self {
            spans: Mutex::default(),
            last: AtomicU64::new(0),
            ids: RandomState::new(),
            sender: sender.clone(),
            lost: lost.clone(),
        };
        (otlp, SpanExporter { sender, thread, lost })
    }

    fn spans(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        lock(&self.spans)
    }

    /// Returns eight unique bytes, in hex.
    fn unique_id(&self, number: u64, salt: u8) -> String {
        // An id of only zeros is invalid.
        format!("{:016x}", self.ids.hash_one((number, salt)).max(1))
    }
}

impl SpanExporter {
    /// Sends the remaining spans, and returns an error if anything failed.
    pub fn finish(self) -> Result<(), String> {
        // The thread may have ended already; joining it reports that.
        let _ = self.sender.send(Order::Finish);
        let sent = self.thread.join().unwrap_or_else(|_| Err("sending was interrupted".to_owned()));
        match (sent, self.lost.load(Ordering::Relaxed)) {
            (Ok(()), 0) => Ok(()),
            (Ok(()), lost) => {
                Err(format!("{lost} spans were left out: there were too many at once"))
            }
            (Err(error), lost) => Err(format!("{lost} spans were not sent: {error}")),
        }
    }
}

impl Subscriber for Otlp {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == SPANS_TARGET && *metadata.level() <= Level::INFO
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let own = self.unique_id(number, 0);
        let parent = span
            .parent()
            .map(Id::into_u64)
            .or_else(|| span.is_contextual().then(current).flatten());
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut spans = self.spans();
        let parent = parent.and_then(|it| spans.get(&it));
        let trace = match parent {
            Some(parent) => parent.trace.clone(),
            None => self.unique_id(number, 1) + &self.unique_id(number, 2),
        };
        let open = Open {
            trace,
            parent: parent.map(|it| it.own.clone()),
            own,
            name: span.metadata().name().to_owned(),
            start: now(),
            fields: fields.0,
            events: Vec::new(),
            holders: 1,
        };
        spans.insert(number, open);
        Id::from_u64(number)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(open) = self.spans().get_mut(&span.into_u64()) {
            let mut fields = Fields(std::mem::take(&mut open.fields));
            values.record(&mut fields);
            open.fields = fields.0;
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let Some(parent) = event
            .parent()
            .map(Id::into_u64)
            .or_else(|| event.is_contextual().then(current).flatten())
        else {
            return;
        };
        let mut fields = Fields::default();
        event.record(&mut fields);
        let name = fields.0.remove("message").unwrap_or_else(|| json!(event.metadata().name()));
        if let Some(open) = self.spans().get_mut(&parent).filter(|it| it.events.len() < MAX_EVENTS)
        {
            open.events.push(json!({
                "timeUnixNano": now().to_string(),
                "name": name,
                "attributes": attributes(fields.0),
            }));
        }
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|it| it.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|it| {
            if let Some(at) = it.iter().rposition(|it| *it == span.into_u64()) {
                it.remove(at);
            }
        });
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(open) = self.spans().get_mut(&span.into_u64()) {
            open.holders += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let number = span.into_u64();
        let mut spans = self.spans();
        let Some(open) = spans.get_mut(&number) else { return false };
        open.holders -= 1;
        if open.holders > 0 {
            return false;
        }
        if let Some(open) = spans.remove(&number)
            && self.sender.try_send(Order::Send(open.close())).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        true
    }
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp").finish_non_exhaustive()
    }
}

impl Open {
    /// Returns the span in the form of a collector.
    fn close(mut self) -> Json {
        let fields = &mut self.fields;
        let name = fields.remove("otel.name").unwrap_or_else(|| json!(self.name));
        let kind = match fields.remove("otel.kind") {
            Some(Json::String(kind)) if kind == "client" => 3,
            _ => 1,
        };
        let mut status = json!({});
        if fields.remove("otel.status_code").is_some_and(|it| it == "error") {
            status["code"] = json!(2);
        }
        if let Some(message) = fields.remove("otel.status_description") {
            status["message"] = message;
        }
        let mut span = json!({
            "traceId": self.trace,
            "spanId": self.own,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": self.start.to_string(),
            "endTimeUnixNano": now().to_string(),
            "attributes": attributes(self.fields),
            "events": self.events,
            "status": status,
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(parent);
        }
        span
    }
}

/// The fields of a span or event, by name.
#[derive(Default)]
struct Fields(BTreeMap<&'static str, Json>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name(), json!(value));
    }
}

/// Returns fields in the form of a collector: integers are strings there.
fn attributes(fields: BTreeMap<&'static str, Json>) -> Vec<Json> {
    let attributes = fields.into_iter();
    attributes.map(|(key, value)| json!({"key": key, "value": attribute(key, value)})).collect()
}

fn attribute(key: &str, value: Json) -> Json {
    match value {
        Json::Bool(value) => json!({"boolValue": value}),
        Json::Number(value) if value.is_f64() => json!({"doubleValue": value}),
        Json::Number(value) => json!({"intValue": value.to_string()}),
        // The only list among the conventions; `tracing` has no lists.
        value if key == "gen_ai.response.finish_reasons" => {
            json!({"arrayValue": {"values": [{"stringValue": value}]}})
        }
        value => json!({"stringValue": value}),
    }
}

fn current() -> Option<u64> {
    ENTERED.with_borrow(|it| it.last().copied())
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// Sends spans in batches until `Finish` arrives; returns the last error.
fn send_all(
    collector: &Collector,
    orders: &Receiver<Order>,
    lost: &AtomicU64,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|it| it.to_string())?;
    let (connect, idle, total) = (collector.timeout, collector.timeout, collector.timeout);
    let wire = HttpClient::new(Timeouts { connect, idle, total });
    let mut result = Ok(());
    let mut is_over = false;
    while !is_over {
        let mut batch = Vec::new();
        let mut deadline = None;
        while batch.len() < BATCH {
            let pause = deadline.map_or(Duration::from_secs(3600), |it: Instant| {
                it.saturating_duration_since(Instant::now())
            });
            match orders.recv_timeout(pause) {
                Ok(Order::Send(span)) => {
                    batch.push(span);
                    deadline.get_or_insert_with(|| Instant::now() + PAUSE);
                }
                Err(RecvTimeoutError::Timeout) => break,
                Ok(Order::Finish) | Err(RecvTimeoutError::Disconnected) => {
                    is_over = true;
                    break;
                }
            }
        }
        if batch.is_empty() {
            continue;
        }
        let count = batch.len() as u64;
        if let Err(error) = runtime.block_on(send(&wire, collector, batch)) {
            lost.fetch_add(count, Ordering::Relaxed);
            result = Err(error);
        }
    }
    result
}

async fn send(wire: &HttpClient, collector: &Collector, spans: Vec<Json>) -> Result<(), String> {
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [
            {"key": "service.name", "value": {"stringValue": collector.service}},
        ]},
        "scopeSpans": [{
            "scope": {"name": "prowess", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]});
    let mut headers = collector.headers.clone();
    let protocol = collector.protocol;
    headers.push(("content-type".to_owned(), protocol.content_type().to_owned()));
    let body = match protocol {
        CollectorProtocol::Protobuf => protobuf::encode(&body),
        CollectorProtocol::Json => body.to_string().into_bytes(),
    };
    // Only the status of the answer is read.
    match wire.post(ClientRequest { url: collector.url.clone(), headers, body, max_body: 0 }).await
    {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
        Ok(answer) if answer.status == 415 => Err(format!(
            "the collector answers 415, it does not take `{}`; `{PROTOCOL}` sets `http/protobuf` or \
             `http/json`",
            protocol.as_str()
        )),
        Ok(answer) => Err(format!("the collector answers {}", answer.status)),
        Err(error) => {
            let causes = iter::successors(Some(&error as &dyn Error), |&it| it.source());
            Err(causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
        }
    }
}
