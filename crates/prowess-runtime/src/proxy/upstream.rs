//! A connection to an allowed host, metered and timed out.

use std::{
    io::{self, Error},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use hyper::StatusCode;
use prowess_http::{FetchError, connect};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Duration, Instant, sleep_until, timeout},
};

use super::{
    HostRemedy, Proxy,
    log::{Log, Record},
    target::Target,
};

/// A connection to a host. Its bytes are counted; exceeding the limit breaks the connection.
#[derive(Debug)]
pub(super) struct Upstream {
    stream: TcpStream,
    meter: Arc<Meter>,
}

/// The counters of a connection.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) record: Arc<Record>,
    log: Arc<Log>,
    most: u64,
    start: Instant,
    /// The time of the last byte, in milliseconds from the start.
    last: AtomicU64,
}

/// The reason why a connection is refused, as sent to the script.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) why: String,
}

impl Refusal {
    pub(super) fn forbidden(why: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, why: why.into() }
    }

    pub(super) fn bad(why: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, why: why.into() }
    }
}

impl Proxy {
    /// Connects to a host, if that is allowed.
    pub(super) async fn connect(
        &self,
        target: &Target,
        log: &Arc<Log>,
        record: &Arc<Record>,
    ) -> Result<Upstream, Refusal> {
        let opened = timeout(self.limits.connect, self.open_stream(target)).await;
        let stream = opened.map_err(|_| Refusal {
            status: StatusCode::GATEWAY_TIMEOUT,
            why: format!("`{target}` did not respond in time"),
        })??;
        let (start, last) = (Instant::now(), AtomicU64::new(0));
        let (record, log, most) = (record.clone(), log.clone(), self.limits.bytes);
        Ok(Upstream { stream, meter: Arc::new(Meter { record, log, most, start, last }) })
    }

    async fn open_stream(&self, target: &Target) -> Result<TcpStream, Refusal> {
        let Target { host, port } = target;
        let refused = |error| refusal(&error, target, &self.remedy);
        let url =
            target.url().ok_or_else(|| Refusal::bad(format!("`{target}` is not a valid host")))?;
        self.hosts.check(&url).map_err(refused)?;
        if !DEFAULT_PORTS.contains(port) && !self.hosts.lists_port(&url) {
            let remedy = self.remedy.host_hint(&target.to_string());
            let why = format!("port {port} of `{host}` is not allowed; {remedy}");
            return Err(Refusal::forbidden(why));
        }
        let stream = match self.proxies.connect(&url, &*self.resolver).await {
            Some(stream) => stream,
            None => {
                let addresses = self.hosts.addresses(&*self.resolver, &url).await;
                connect(&addresses.map_err(refused)?).await
            }
        };
        stream.map_err(|source| refused(FetchError::Connect { host: host.to_string(), source }))
    }
}

/// The ports that are allowed for hosts listed without one.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// Converts an error to a refusal, with a hint.
fn refusal(error: &FetchError, target: &Target, remedy: &HostRemedy) -> Refusal {
    let Target { host, port } = target;
    let at = if DEFAULT_PORTS.contains(port) { host.to_string() } else { target.to_string() };
    match error {
        FetchError::Host { .. } => {
            Refusal::forbidden(format!("host `{host}` is not allowed; {}", remedy.host_hint(&at)))
        }
        FetchError::Port { service, .. } => Refusal::forbidden(format!(
            "port {port} is not allowed, because it is the port of {service}; {}",
            remedy.host_hint(&target.to_string())
        )),
        FetchError::Address { network, address, .. } => Refusal::forbidden(format!(
            "host `{host}` resolves to {network}, which is not allowed; {}",
            remedy.address_hint(*address)
        )),
        FetchError::Resolve { source, .. } | FetchError::Connect { source, .. } => {
            Refusal { status: StatusCode::BAD_GATEWAY, why: format!("{error}: {source}") }
        }
        error => Refusal::bad(error.to_string()),
    }
}

impl Meter {
    /// Waits until nothing has passed for this long.
    pub(super) async fn wait_idle(&self, idle: Duration) {
        loop {
            let until = self.start + Duration::from_millis(self.last.load(Relaxed)) + idle;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        self.last.store(self.start.elapsed().as_millis() as u64, Relaxed);
        self.log.count(bytes, self.most).inspect_err(|it| self.record.refuse(&it.to_string()))
    }
}

impl Upstream {
    pub(super) fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }
}

impl AsyncRead for Upstream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        if read > 0 {
            self.meter.record.add_received(read);
            self.meter.count(read)?;
        }
        polled
    }
}

impl AsyncWrite for Upstream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = polled {
            self.meter.record.add_sent(written);
            self.meter.count(written)?;
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
