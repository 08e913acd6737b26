//! What of the network a script reaches: a proxy of ours, or nothing.

use std::net::TcpListener;

use tokio::sync::oneshot::Receiver;

use crate::outcome::ScriptConnection;
#[cfg(feature = "http")]
use crate::proxy::Proxy;

/// What of the network a script reaches. It never has one of its own.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// Nothing.
    #[default]
    None,
    /// The hosts that a proxy connects to. The environment says where the proxy is.
    #[cfg(feature = "http")]
    Proxy(Proxy),
}

/// Where a script asks for connections.
#[derive(Debug)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "nobody serves it"))]
pub(super) struct Entrance {
    pub(super) socket: TcpListener,
    /// What keeps others out who could connect, too.
    pub(super) password: Option<String>,
}

impl Network {
    /// A password that nobody can guess, if there is anything to keep others from.
    pub(super) fn password(&self) -> Option<String> {
        match self {
            Self::None => None,
            #[cfg(feature = "http")]
            Self::Proxy(_) => {
                let mut bytes = [0; 16];
                rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).ok()?;
                Some(bytes.iter().map(|it| format!("{it:02x}")).collect())
            }
        }
    }

    /// Why connections were refused so far over which nothing has passed, where the proxy lists them for all to see.
    pub(crate) fn refusals(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            #[cfg(feature = "http")]
            Self::Proxy(proxy) => {
                let (connections, _) = proxy.log().connections();
                let unused = |it: &ScriptConnection| it.bytes_sent + it.bytes_received == 0;
                connections.into_iter().filter(unused).filter_map(|it| it.refused).collect()
            }
        }
    }

    /// Waits for a run, and serves its entrance as long. Returns what it has connected to, and how much
    /// of that is not listed.
    pub(super) async fn during<T>(
        &self,
        entrance: Receiver<Entrance>,
        run: impl Future<Output = T>,
    ) -> (T, (Vec<ScriptConnection>, u64)) {
        match self {
            Self::None => {
                drop(entrance);
                (run.await, (Vec::new(), 0))
            }
            #[cfg(feature = "http")]
            Self::Proxy(proxy) => {
                let log = proxy.log();
                let serve = async {
                    if let Ok(Entrance { socket, password }) = entrance.await {
                        let Err(error) = proxy.serve(socket, password, log.clone()).await;
                        log.refuse_unknown(&error.to_string());
                    }
                    std::future::pending().await
                };
                let ended = tokio::select! {
                    ended = run => ended,
                    never = serve => never,
                };
                (ended, log.connections())
            }
        }
    }
}
