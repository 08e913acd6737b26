//! The only network access of a script: an HTTP proxy that connects to listed hosts and no others.
//!
//! It accepts `CONNECT` for TLS, and plain requests with an absolute URL. Names are resolved here,
//! once, and the checked address is connected to, as for [`HttpRequest`](crate::HttpRequest).
//! Nothing is added to the traffic: no credentials, no name of ours.

mod log;
mod target;
mod hello;
mod upstream;
mod answer;
mod tunnel;

use std::{
    convert::Infallible,
    io::{self, Write as _},
    net::{self, IpAddr},
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use prowess::lock;
use prowess_http::{Hosts, Proxies, Resolver, SystemResolver};
use prowess_sandbox::{NetworkProxy, ProxySession, ScriptConnection};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

use answer::{Client, Tasks};
pub(crate) use log::Log;

/// Connects scripts to listed hosts. One proxy can serve many runs.
#[derive(Debug, Clone)]
pub struct Proxy {
    hosts: Hosts,
    resolver: Arc<dyn Resolver>,
    limits: ProxyLimits,
    remedy: HostRemedy,
    log: Option<Arc<Log>>,
    proxies: Proxies,
}

/// The flag or setting that would allow a refused host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostRemedy {
    /// A flag, such as `--net`.
    Flag(String),
    /// A setting, such as `prepare.hosts`.
    Setting {
        /// Its key.
        key: String,
        /// The file that it belongs in.
        file: Option<PathBuf>,
        /// Whether the hint names the resolved address, which the script can read as well.
        names_address: bool,
    },
}

impl HostRemedy {
    /// Returns the hint that allows a host.
    fn host_hint(&self, host: &str) -> String {
        match self {
            Self::Flag(flag) => format!("run with `{flag} {host}`"),
            Self::Setting { key, .. } => format!("add `{host}` to `{key}`{}", self.in_file()),
        }
    }

    /// Returns the hint that allows a host at a non-public address.
    fn address_hint(&self, address: IpAddr) -> String {
        match self {
            Self::Flag(flag) => format!("run with `{flag}` and its address as well"),
            Self::Setting { key, names_address, .. } => {
                let address = match names_address {
                    true => format!("`{address}`"),
                    false => "its address".to_owned(),
                };
                format!("add {address} to `{key}`{} as well", self.in_file())
            }
        }
    }

    /// Returns the file of a setting as a phrase that follows its key.
    fn in_file(&self) -> String {
        match self {
            Self::Setting { file: Some(file), .. } => format!(" in `{}`", file.display()),
            Self::Setting { file: None, .. } | Self::Flag(_) => String::new(),
        }
    }
}

/// Limits on the traffic of one run. Every connection ends with the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Maximum number of connections at once; further ones are refused.
    pub connections: usize,
    /// Maximum bytes of all connections, both ways.
    pub bytes: u64,
    /// The timeout for resolving a host and connecting to it.
    pub connect: Duration,
    /// The timeout without a byte either way, and for the head of a request or of TLS.
    pub idle: Duration,
}

impl Default for ProxyLimits {
    /// 128 connections, 1 GiB, half a minute to connect, one without a byte.
    fn default() -> Self {
        let (connect, idle) = (Duration::from_secs(30), Duration::from_secs(60));
        Self { connections: 128, bytes: 1 << 30, connect, idle }
    }
}

/// The maximum size of the head of a request, in bytes.
const MAX_HEAD: usize = 32 * 1024;
/// The pause while the system has no file descriptors left.
const MOMENT: Duration = Duration::from_millis(50);

impl Proxy {
    /// Creates a proxy that connects to these hosts only.
    pub fn new(hosts: Hosts) -> Self {
        let (resolver, limits) = (Arc::new(SystemResolver), ProxyLimits::default());
        let remedy = HostRemedy::Flag("--net".to_owned());
        Self { hosts, resolver, limits, remedy, log: None, proxies: Proxies::default() }
    }

    /// Replaces the system's resolver.
    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// Connects through these proxies, which resolve names themselves: only for hosts that the user
    /// named.
    #[must_use]
    pub fn with_proxies(self, proxies: Proxies) -> Self {
        Self { proxies, ..self }
    }

    /// Replaces the limits.
    #[must_use]
    pub fn with_limits(self, limits: ProxyLimits) -> Self {
        Self { limits, ..self }
    }

    /// Replaces the hint in refusals.
    #[must_use]
    pub fn with_remedy(self, remedy: HostRemedy) -> Self {
        Self { remedy, ..self }
    }

    /// Serves one run only, and lists its connections before it ends.
    #[must_use]
    pub fn for_one_run(self) -> Self {
        self.with_log(Arc::default())
    }

    /// Lists the connections of its only run in a log that can be read before it ends.
    #[must_use]
    pub(crate) fn with_log(self, log: Arc<Log>) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Returns the log for the connections of a run.
    fn log(&self) -> Arc<Log> {
        self.log.clone().unwrap_or_default()
    }

    /// Serves a socket until the future is dropped, and with it every connection. With a password,
    /// serves only clients that send it.
    async fn serve(
        &self,
        socket: net::TcpListener,
        password: Option<String>,
        log: Arc<Log>,
    ) -> io::Result<Infallible> {
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from_std(socket)?;
        let client = Arc::new(Client { proxy: self.clone(), password, log });
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                // Finished connections make room for the next.
                biased;
                Some(_) = connections.join_next() => {}
                accepted = socket.accept() => match accepted {
                    Ok((stream, _)) if connections.len() < self.limits.connections => {
                        connections.spawn(serve_connection(client.clone(), stream));
                    }
                    Ok((stream, _)) => client.refuse_connection(stream),
                    Err(_) => sleep(MOMENT).await,
                },
            }
        }
    }
}

impl NetworkProxy for Proxy {
    fn session(&self) -> Arc<dyn ProxySession> {
        Arc::new(Session { proxy: self.clone(), log: self.log() })
    }
}

/// The use of a proxy by one run.
struct Session {
    proxy: Proxy,
    log: Arc<Log>,
}

impl ProxySession for Session {
    fn serve(
        &self,
        socket: net::TcpListener,
        password: Option<String>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let Err(error) = self.proxy.serve(socket, password, self.log.clone()).await;
            self.log.refuse_unknown(&error.to_string());
        })
    }

    fn connections(&self) -> (Vec<ScriptConnection>, u64) {
        self.log.connections()
    }
}

/// Answers the requests of one connection. Their tasks end with it.
async fn serve_connection(client: Arc<Client>, stream: TcpStream) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(client.proxy.limits.idle);
    builder.max_buf_size(MAX_HEAD);
    let tasks: Arc<Mutex<Tasks>> = Arc::default();
    let service = service_fn(|request| {
        let (client, tasks) = (client.clone(), Arc::clone(&tasks));
        async move { Ok::<_, Infallible>(client.answer(request, &tasks).await) }
    });
    // The log has the end of a connection, as far as it matters.
    let _ = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    let mut tasks = lock(&tasks).split_off();
    while tasks.join_next().await.is_some() {}
}

impl Client {
    /// Refuses a connection because there are too many, without waiting for the client.
    fn refuse_connection(&self, stream: TcpStream) {
        self.log.refuse_unknown("there were too many connections at once");
        let (text, length) = (answer::TOO_MANY, answer::TOO_MANY.len());
        let head = "HTTP/1.1 503 Too many connections at once\r\nConnection: close\r\n";
        let response = format!("{head}Content-Length: {length}\r\n\r\n{text}");
        // The buffer of a fresh socket is large enough for this.
        let _ = stream.into_std().and_then(|mut it| it.write_all(response.as_bytes()));
    }
}
