//! The errors of requests without a response.

use std::{error::Error, io, net::IpAddr, time::Duration};

/// The maximum number of redirects that are followed.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// A request was refused, or got no response. A response with an error status is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is neither `http:` nor `https:`.
    #[error("unsupported scheme `{scheme}:`, expected `http:` or `https:`")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The URL contains a user name or password.
    #[error("the URL contains a user name or password")]
    Userinfo,
    /// The URL cannot be used.
    #[error("the URL cannot be used")]
    Url,
    /// The host is not among the allowed ones.
    #[error("requests to `{host}` are not allowed")]
    Host {
        /// The host.
        host: String,
    },
    /// The port belongs to a service other than HTTP.
    #[error("port {port} is not for HTTP: it is the port of {service}")]
    Port {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The service.
        service: &'static str,
    },
    /// The host resolves to an address that is not allowed.
    #[error("`{host}` resolves to {network}; requests to it are not allowed")]
    Address {
        /// The host.
        host: String,
        /// The network of the address, in words.
        network: &'static str,
        /// The address.
        address: IpAddr,
    },
    /// The host redirects from `https:` to `http:`.
    #[error("`{host}` redirects from `https:` to `http:`")]
    Downgrade {
        /// The host.
        host: String,
    },
    /// The host redirects to another one, which would get the body.
    #[error("`{host}` redirects to `{to}`, which would receive the body")]
    Body {
        /// The host.
        host: String,
        /// The other host.
        to: String,
    },
    /// The host redirects to something that is not a URL.
    #[error("`{host}` redirects to an invalid URL")]
    Location {
        /// The host.
        host: String,
    },
    /// The host redirects too often.
    #[error("`{host}` redirects more than {MAX_REDIRECTS} times")]
    Redirects {
        /// The host.
        host: String,
    },
    /// The host has no address.
    #[error("cannot resolve `{host}`")]
    Resolve {
        /// The host.
        host: String,
        /// The cause.
        source: io::Error,
    },
    /// No connection could be established.
    #[error("cannot connect to `{host}`")]
    Connect {
        /// The host.
        host: String,
        /// The cause.
        source: io::Error,
    },
    /// The response is not HTTP.
    #[error("`{host}` did not answer with HTTP")]
    Answer {
        /// The host.
        host: String,
        /// The cause.
        source: hyper::Error,
    },
    /// The body ended early, or could not be unpacked.
    #[error("the response of `{host}` could not be read completely")]
    Broken {
        /// The host.
        host: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A timeout expired.
    #[error("request to `{host}` timed out after {} s", after.as_secs_f64())]
    Timeout {
        /// The host.
        host: String,
        /// The timeout.
        after: Duration,
    },
}
