//! From the name of a host to its addresses.

use std::{fmt, future::Future, io, net::IpAddr, pin::Pin};

/// The addresses of a host, once they are waited for.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks names up. It is asked once for each connection, and what it says is checked before anybody
/// connects to it; it need not check anything.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// All addresses of a host.
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a>;
}

/// Looks names up as every other program does.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|it| it.ip()).collect())
        })
    }
}
