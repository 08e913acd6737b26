//! From the name of a host to its addresses.

use std::{fmt, io, net::IpAddr};

use futures_util::future::BoxFuture;

/// Looks names up.
///
/// It is called once for each connection, and its addresses are checked before anybody connects to
/// them; an implementation need not check anything.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// All addresses of a host.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Looks names up as the system does.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|it| it.ip()).collect())
        })
    }
}
