//! The network of a program: a proxy outside of the sandbox, or nothing.

use std::{fmt, net::TcpListener, pin::Pin, sync::Arc};

use serde::Serialize;
use tokio::sync::oneshot::Receiver;

/// The network access of a program. It never has a network of its own.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// Nothing.
    #[default]
    None,
    /// The hosts that a proxy connects to. `HTTP_PROXY` and similar variables contain its address.
    Proxy(Arc<dyn NetworkProxy>),
}

/// A proxy for HTTP, the only network of a program. One can serve many runs.
pub trait NetworkProxy: fmt::Debug + Send + Sync {
    /// Begins a session for one run.
    fn session(&self) -> Arc<dyn ProxySession>;
}

/// The use of a proxy by one run.
pub trait ProxySession: Send + Sync {
    /// Serves a socket and its connections until the future is dropped. With a password, only
    /// clients that send it.
    fn serve(
        &self,
        socket: TcpListener,
        password: Option<String>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Returns the connections so far, in the order of their requests, and the number of those that
    /// are not listed.
    fn connections(&self) -> (Vec<ScriptConnection>, u64);
}

/// A connection that a program asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ScriptConnection {
    /// The host as a name or an address.
    pub host: String,
    /// Its port; 0 if none could be parsed.
    pub port: u16,
    /// The number of bytes sent to the host.
    pub bytes_sent: u64,
    /// The number of bytes received from it.
    pub bytes_received: u64,
    /// The reason the connection was refused or ended.
    pub refused: Option<String>,
}

/// The socket at which a program asks for connections.
#[derive(Debug)]
pub(crate) struct ProxySocket {
    pub(crate) socket: TcpListener,
    /// The password that keeps out other programs that could connect.
    pub(crate) password: Option<String>,
}

impl Network {
    /// Returns an unguessable password, if there is a proxy to protect.
    pub(crate) fn password(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Proxy(_) => {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes).ok()?;
                Some(bytes.iter().map(|it| format!("{it:02x}")).collect())
            }
        }
    }

    /// Returns the reasons for refused connections so far over which nothing was transferred, for a
    /// proxy whose sessions all list the same connections.
    pub fn refusals(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Proxy(proxy) => {
                let (connections, _) = proxy.session().connections();
                connections
                    .into_iter()
                    .filter(|it: &ScriptConnection| it.bytes_sent + it.bytes_received == 0)
                    .filter_map(|it| it.refused)
                    .collect()
            }
        }
    }

    /// Waits for a run, and serves its socket meanwhile. Returns its connections, and the number
    /// of those that are not listed.
    pub(crate) async fn serve_during<T>(
        &self,
        socket: Receiver<ProxySocket>,
        run: impl Future<Output = T>,
    ) -> (T, (Vec<ScriptConnection>, u64)) {
        match self {
            Self::None => {
                drop(socket);
                (run.await, (Vec::new(), 0))
            }
            Self::Proxy(proxy) => {
                let session = proxy.session();
                let serve = async {
                    if let Ok(ProxySocket { socket, password }) = socket.await {
                        session.serve(socket, password).await;
                    }
                    std::future::pending().await
                };
                let ended = tokio::select! {
                    ended = run => ended,
                    never = serve => never,
                };
                (ended, session.connections())
            }
        }
    }
}
