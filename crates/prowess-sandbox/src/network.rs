//! The network of a program: a proxy outside of the sandbox, or nothing.

use std::{fmt, net::TcpListener, pin::Pin, sync::Arc};

use serde::Serialize;
use tokio::sync::oneshot::Receiver;

/// The network that a program reaches. It never has one of its own.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// Nothing.
    #[default]
    None,
    /// The hosts that a proxy connects to. `HTTP_PROXY` and its kin say where the proxy is.
    Proxy(Arc<dyn NetworkProxy>),
}

/// A proxy for HTTP, the only network of a program. One can serve many runs.
pub trait NetworkProxy: fmt::Debug + Send + Sync {
    /// Begins a session for one run.
    fn session(&self) -> Arc<dyn ProxySession>;
}

/// The use of a proxy by one run.
pub trait ProxySession: Send + Sync {
    /// Serves a socket until this is dropped, and with it every connection. With a password, only
    /// whoever says it.
    fn serve(
        &self,
        socket: TcpListener,
        password: Option<String>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// The connections so far, in the order in which they were asked for, and how many more there
    /// were than are listed.
    fn connections(&self) -> (Vec<ScriptConnection>, u64);
}

/// A connection that a program asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScriptConnection {
    /// The host as a name or an address.
    pub host: String,
    /// Its port; 0 where none could be read.
    pub port: u16,
    /// How many bytes went to the host.
    pub bytes_sent: u64,
    /// How many came from it.
    pub bytes_received: u64,
    /// Why there was no connection, or why it was ended.
    pub refused: Option<String>,
}

/// Where a program asks for connections.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) socket: TcpListener,
    /// Keeps others out who could connect, too.
    pub(crate) password: Option<String>,
}

impl Network {
    /// A password that nobody can guess, if there is anything to keep others from.
    pub(crate) fn password(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Proxy(_) => {
                let mut bytes = [0; 16];
                rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).ok()?;
                Some(bytes.iter().map(|it| format!("{it:02x}")).collect())
            }
        }
    }

    /// Why connections were refused so far over which nothing has passed, where all sessions of the
    /// proxy list the same.
    pub fn refusals(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Proxy(proxy) => {
                let (connections, _) = proxy.session().connections();
                let unused = |it: &ScriptConnection| it.bytes_sent + it.bytes_received == 0;
                connections.into_iter().filter(unused).filter_map(|it| it.refused).collect()
            }
        }
    }

    /// Waits for a run, and serves its entrance as long. Returns what it has connected to, and how much
    /// of that is not listed.
    pub(crate) async fn during<T>(
        &self,
        entrance: Receiver<Entrance>,
        run: impl Future<Output = T>,
    ) -> (T, (Vec<ScriptConnection>, u64)) {
        match self {
            Self::None => {
                drop(entrance);
                (run.await, (Vec::new(), 0))
            }
            Self::Proxy(proxy) => {
                let session = proxy.session();
                let serve = async {
                    if let Ok(Entrance { socket, password }) = entrance.await {
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
