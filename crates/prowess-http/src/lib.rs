//! A bounded HTTP client with a guard against requests to private networks.
//!
//! ```
//! use std::time::Duration;
//!
//! use prowess_http::{FetchRequest, Fetcher, Hosts, Method, Url};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // By default all of the internet is allowed, and nothing else.
//! let fetcher = Fetcher::new(Hosts::default());
//! let request = FetchRequest {
//!     timeout: Duration::from_secs(5),
//!     ..FetchRequest::new(Method::GET, Url::parse("http://127.0.0.1/admin")?)
//! };
//! let error = fetcher.fetch(request).await.unwrap_err();
//! assert_eq!(error.to_string(), "`127.0.0.1` resolves to this machine; requests to it are not allowed");
//! # Ok(())
//! # }
//! ```
//!
//! [`Fetcher`] is for URLs from untrusted input: a name is resolved once, every address is checked, and
//! the connection goes to a checked address, again after every redirect. [`HttpClient`] is for servers
//! that a user named; its response is streamed. [`Hosts`] is the guard of both, and can be used alone.
//! Time, size, redirects, headers and unpacked bytes are limited.
//!
//! A runtime of `tokio` is needed. [`HttpClient`] uses the [`Proxies`] that a host gives
//! it. Connection pools, cookies and HTTP/2 are not in this crate.
#![warn(missing_docs)]

mod address;
mod ports;
mod resolver;
mod error;
mod hosts;
mod trust;
mod connect;
mod proxies;
mod unpack;
mod fetch;
mod client;

pub use hyper::{HeaderMap, Method, StatusCode};
pub use url::Url;

pub use crate::{
    client::{ClientRequest, HttpClient, HttpError, StreamedResponse, Timeouts},
    connect::connect,
    error::FetchError,
    fetch::{CONNECTION_HEADERS, FetchRequest, FetchResponse, Fetcher},
    hosts::{Hosts, HostsError, is_public_pattern, pattern_covers},
    proxies::{Proxies, ProxyError},
    resolver::{Resolver, SystemResolver},
    trust::CertificateError,
};
