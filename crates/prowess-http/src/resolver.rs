//! Resolution of host names to addresses.

use std::{fmt, io, net::IpAddr};

use futures_util::future::BoxFuture;

/// Resolves host names.
///
/// It is called once per connection, and its addresses are checked before connecting; an
/// implementation need not check anything.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// Returns all addresses of a host.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Resolves names with the system's resolver.
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
