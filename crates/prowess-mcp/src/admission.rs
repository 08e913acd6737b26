//! Who is let in over HTTP: by the name the server is called by, the website that asks, and a token.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header, uri::Authority};
use sha2::{Digest as _, Sha256};

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Admission {
    address: IpAddr,
    port: u16,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The digest of the token: two digests can be compared without telling how alike they are.
    token: Option<[u8; 32]>,
}

/// A request that is let in, with the website it came from.
pub(crate) struct AdmittedRequest {
    pub(crate) origin: Option<HeaderValue>,
}

/// Why a request is not let in.
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

    /// Looks at the name the server is called by, and at the website that asks, if it is one.
    pub(crate) fn admit<B>(&self, request: &Request<B>) -> Result<AdmittedRequest, AdmissionError> {
        let host = one(request.headers(), header::HOST).ok_or(AdmissionError::Host)?;
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
        let origin = one(request.headers(), header::ORIGIN).ok_or(AdmissionError::Origin)?;
        match self.is_welcome(origin, &host) {
            true => Ok(AdmittedRequest { origin: Some(origin.clone()) }),
            false => Err(AdmissionError::Origin),
        }
    }

    /// Looks for the token, where one is needed.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), AdmissionError> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = one(headers, header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let (scheme, given) =
            given.and_then(|it| it.split_at_checked(7)).ok_or(AdmissionError::NoToken)?;
        if !scheme.eq_ignore_ascii_case(b"Bearer ") {
            return Err(AdmissionError::NoToken);
        }
        let given: [u8; 32] = Sha256::digest(given.trim_ascii()).into();
        let differs = token.iter().zip(given).fold(0, |all, (one, other)| all | (one ^ other));
        if differs == 0 { Ok(()) } else { Err(AdmissionError::WrongToken) }
    }

    /// Whether a name is ours. An address that is written out cannot be made to lead here by others.
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

    /// Whether a website may speak with us: one that was named, one at our own address, and one of this
    /// machine if it has to know the token. Anything may serve a page at another port of this machine.
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
        let is_local = || {
            authority.host().eq_ignore_ascii_case("localhost")
                || address(authority.host()).is_some_and(|it| it.is_loopback())
        };
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        is_own || self.token.is_some() && is_web && is_local()
    }
}

impl AdmissionError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
        }
    }

    /// How the client may be let in.
    pub(crate) fn challenge(&self) -> Option<&'static str> {
        match self {
            Self::Host | Self::Origin => None,
            Self::NoToken => Some("Bearer realm=\"prowess\""),
            Self::WrongToken => Some("Bearer realm=\"prowess\", error=\"invalid_token\""),
        }
    }
}

/// A header that stands there once; one that is given twice means nothing.
fn one(headers: &HeaderMap, name: header::HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// The address that is written as a host, with brackets where it needs them.
fn address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}
