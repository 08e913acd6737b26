//! Admission over HTTP: by host name, origin, and token.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header, uri::Authority};
use sha2::{Digest as _, Sha256};

/// The rules that decide which requests are admitted.
#[derive(Debug)]
pub(crate) struct Admission {
    address: IpAddr,
    port: u16,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The digest of the token: comparing digests does not leak how similar the tokens are.
    token: Option<[u8; 32]>,
}

/// An admitted request, with its origin.
pub(crate) struct AdmittedRequest {
    pub(crate) origin: Option<HeaderValue>,
}

/// The reason a request is rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdmissionError {
    /// A name that leads here and is not ours: a website may have made it lead here.
    #[error("requests to this host name are not allowed")]
    Host,
    #[error("requests from this website are not allowed")]
    Origin,
    #[error("a token is needed")]
    NoToken,
    #[error("the token is wrong")]
    WrongToken,
}

impl Admission {
    pub(crate) fn new(
        address: SocketAddr,
        hosts: &[String],
        origins: &[String],
        token: Option<&str>,
    ) -> Self {
        Self {
            address: address.ip(),
            port: address.port(),
            hosts: hosts.to_vec(),
            origins: origins.to_vec(),
            token: token.map(|it| Sha256::digest(it).into()),
        }
    }

    /// Checks the host name, and the origin if a website sent the request.
    pub(crate) fn admit<B>(&self, request: &Request<B>) -> Result<AdmittedRequest, AdmissionError> {
        let host = single_header(request.headers(), header::HOST).ok_or(AdmissionError::Host)?;
        let host: Authority = host.as_bytes().try_into().map_err(|_| AdmissionError::Host)?;
        let is_plain = host.as_str() == host.host()
            || host.port().is_some_and(|port| host.as_str() == format!("{}:{port}", host.host()));
        if !is_plain {
            return Err(AdmissionError::Host);
        }
        let named = request.uri().authority().into_iter().chain([&host]);
        if !named.map(Authority::host).all(|it| self.is_own(it)) {
            return Err(AdmissionError::Host);
        }
        if !request.headers().contains_key(header::ORIGIN) {
            return Ok(AdmittedRequest { origin: None });
        }
        let origin =
            single_header(request.headers(), header::ORIGIN).ok_or(AdmissionError::Origin)?;
        match self.is_welcome(origin, &host) {
            true => Ok(AdmittedRequest { origin: Some(origin.clone()) }),
            false => Err(AdmissionError::Origin),
        }
    }

    /// Checks the token, if one is required.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), AdmissionError> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = single_header(headers, header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let (scheme, given) =
            given.and_then(|it| it.split_at_checked(7)).ok_or(AdmissionError::NoToken)?;
        if !scheme.eq_ignore_ascii_case(b"Bearer ") {
            return Err(AdmissionError::NoToken);
        }
        let given: [u8; 32] = Sha256::digest(given.trim_ascii()).into();
        let differs = token.iter().zip(given).fold(0, |all, (one, other)| all | (one ^ other));
        if differs == 0 { Ok(()) } else { Err(AdmissionError::WrongToken) }
    }

    /// Whether a host name is ours. A literal IP address cannot be rebound by others.
    fn is_own(&self, host: &str) -> bool {
        let listed = self.hosts.iter().any(|it| it.eq_ignore_ascii_case(host));
        listed
            || match address(host) {
                Some(address) => {
                    address.is_loopback()
                        || address == self.address
                        || self.address.is_unspecified()
                }
                None => host.eq_ignore_ascii_case("localhost"),
            }
    }

    /// Whether an origin is allowed: a configured one, the server's own, and one of this machine if
    /// a token is required. Any program may serve a page at another port of this machine.
    fn is_welcome(&self, origin: &HeaderValue, host: &Authority) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        if self.origins.iter().any(|it| it.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let Ok(uri) = origin.parse::<Uri>() else { return false };
        let Some(authority) = uri.authority() else { return false };
        let is_own = uri.scheme_str() == Some("http")
            && authority.as_str().eq_ignore_ascii_case(host.as_str())
            && host.port_u16() == Some(self.port);
        let is_local = authority.host().eq_ignore_ascii_case("localhost")
            || address(authority.host()).is_some_and(|it| it.is_loopback());
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        is_own || self.token.is_some() && is_web && is_local
    }
}

impl AdmissionError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
        }
    }

    /// Returns the authentication challenge for the client.
    pub(crate) fn challenge(&self) -> Option<&'static str> {
        match self {
            Self::Host | Self::Origin => None,
            Self::NoToken => Some("Bearer realm=\"prowess\""),
            Self::WrongToken => Some("Bearer realm=\"prowess\", error=\"invalid_token\""),
        }
    }
}

/// Returns a header that occurs exactly once; a repeated one is ignored.
fn single_header(headers: &HeaderMap, name: header::HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Parses a host as an IP address, in brackets if necessary.
fn address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}
