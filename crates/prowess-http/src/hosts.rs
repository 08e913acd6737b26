//! The hosts that may be connected to.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use url::{Host, Url};

use crate::{
    address::{AddressBlock, NetworkKind},
    error::FetchError,
    ports::service,
    resolver::Resolver,
};

/// The hosts that may be connected to: the whole internet by default; with patterns, only those
/// that match one of them, and with an empty list none.
///
/// ```
/// use prowess_http::{Hosts, Url};
///
/// let hosts = Hosts::new(["example.com", "*.example.org", "10.0.0.0/8"])?;
/// let allows = |url: &str| hosts.check(&Url::parse(url).unwrap()).is_ok();
/// assert!(allows("https://example.com/page"));
/// assert!(allows("http://10.1.2.3:8080/"));
/// assert!(!allows("http://example.com:6379/")); // the port of Redis
/// assert!(!allows("http://169.254.169.254/")); // a cloud metadata service
/// assert!(!allows("https://example.net/"));
/// # Ok::<(), prowess_http::HostsError>(())
/// ```
///
/// A pattern is a name (`example.com`), all names below one (`*.example.com`), an address
/// (`10.0.0.1`, `::1`), a network (`10.0.0.0/8`) or `*` for the whole internet; `:port` may follow
/// it. A listed name may resolve to a private network or this machine. An address that is neither
/// of these nor on the internet, such as the metadata service of a cloud, has to be listed itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    patterns: Option<Vec<Pattern>>,
    scope: AddressScope,
}

/// The addresses that a listed name may resolve to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum AddressScope {
    /// Also a private network or this machine.
    #[default]
    Anywhere,
    /// The internet, and addresses that are listed themselves; for `localhost` also this machine.
    Listed,
    /// The internet only.
    Internet,
}

/// A pattern is not valid.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is not a host, a pattern such as `*.example.com`, an address or a network")]
#[non_exhaustive]
pub struct HostsError {
    /// The pattern.
    pub pattern: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    target: Target,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Internet,
    Name(String),
    /// All names below one.
    Subdomains(String),
    Network(AddressBlock),
}

/// The addresses that an allowed host may resolve to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The internet.
    Public,
    /// Also a private network.
    Internal,
}

/// The maximum number of addresses of a host that are considered.
const MAX_ADDRESSES: usize = 32;

impl Hosts {
    /// Allows the hosts of these patterns.
    pub fn new<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Self, HostsError> {
        let patterns = patterns
            .into_iter()
            .map(|it: P| {
                let text = it.as_ref();
                Pattern::parse(text).ok_or_else(|| HostsError { pattern: text.to_owned() })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { patterns: Some(patterns), scope: AddressScope::Anywhere })
    }

    /// Allows the hosts of these patterns to untrusted scripts: the author of a script may own a
    /// listed name, and could make it resolve to this machine. So an address that is not on the
    /// internet has to be listed itself.
    pub fn for_scripts<P: AsRef<str>>(
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, HostsError> {
        Ok(Self { scope: AddressScope::Listed, ..Self::new(patterns)? })
    }

    /// Allows the same hosts, but only if their names resolve to the internet.
    #[must_use]
    pub fn internet_only(self) -> Self {
        Self { scope: AddressScope::Internet, ..self }
    }

    /// Fails if a URL must not be requested, as far as its text shows.
    pub fn check(&self, url: &Url) -> Result<(), FetchError> {
        self.admit(url).map(drop)
    }

    /// Resolves the host of a URL to addresses, all of which are allowed. If one is not, the result
    /// is an error: a resolver that returns such an address is not trustworthy.
    pub async fn addresses(
        &self,
        resolver: &dyn Resolver,
        url: &Url,
    ) -> Result<Vec<SocketAddr>, FetchError> {
        let admission = self.admit(url)?;
        let port = url.port_or_known_default().ok_or(FetchError::Url)?;
        let name = match url.host().ok_or(FetchError::Url)? {
            Host::Domain(name) => name,
            // A literal address was checked with the URL.
            Host::Ipv4(address) => return Ok(vec![(address, port).into()]),
            Host::Ipv6(address) => return Ok(vec![(address, port).into()]),
        };
        let mut found = match resolver.resolve(name).await {
            Ok(found) if found.is_empty() => Err(io::ErrorKind::NotFound.into()),
            found => found,
        }
        .map_err(|source| FetchError::Resolve { host: name.to_owned(), source })?;
        found.truncate(MAX_ADDRESSES);
        found
            .into_iter()
            .map(|address: IpAddr| {
                self.check_address(name, address, port, admission)?;
                Ok(SocketAddr::new(address, port))
            })
            .collect()
    }

    /// Whether the port of a URL is listed for its host.
    pub fn lists_port(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return false;
        };
        self.patterns().any(|it| it.port.is_some() && it.matches(&host, port))
    }

    /// Checks a URL, as far as its text shows, and returns the addresses that it may resolve to.
    pub(crate) fn admit(&self, url: &Url) -> Result<Admission, FetchError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Scheme { scheme: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Userinfo);
        }
        let host = url.host().ok_or(FetchError::Url)?;
        let port = url.port_or_known_default().ok_or(FetchError::Url)?;
        let matching: Vec<&Pattern> =
            self.patterns().filter(|it| it.matches(&host, port)).collect();
        let name = normalize(&host);
        let only_public = self.scope == AddressScope::Internet;
        let is_named = matching.iter().any(|it| matches!(it.target, Target::Name(_)));
        if matching.is_empty() && self.patterns.is_some()
            || METADATA.contains(&&*name) && (only_public || !is_named)
        {
            return Err(FetchError::Host { host: host.to_string() });
        }
        let internet = match self.scope {
            AddressScope::Listed if name != "localhost" => true,
            AddressScope::Internet => true,
            _ => matching.iter().all(|it| it.target == Target::Internet),
        };
        let admission = if internet { Admission::Public } else { Admission::Internal };
        match host {
            Host::Domain(_) => {}
            Host::Ipv4(it) => self.check_address(&it.to_string(), it.into(), port, admission)?,
            Host::Ipv6(it) => self.check_address(&it.to_string(), it.into(), port, admission)?,
        }
        let is_port_listed = !only_public && matching.iter().any(|it| it.port.is_some());
        if let Some(service) = service(port).filter(|_| !is_port_listed) {
            return Err(FetchError::Port { host: host.to_string(), port, service });
        }
        Ok(admission)
    }

    /// Checks an address that a host resolves to.
    pub(crate) fn check_address(
        &self,
        host: &str,
        address: IpAddr,
        port: u16,
        admission: Admission,
    ) -> Result<(), FetchError> {
        match NetworkKind::of(address) {
            NetworkKind::Public => Ok(()),
            NetworkKind::Internal(_) if admission == Admission::Internal => Ok(()),
            _ if self.scope != AddressScope::Internet
                && self.patterns().any(|it| it.contains(address, port)) =>
            {
                Ok(())
            }
            NetworkKind::Internal(network) | NetworkKind::Special(network) => {
                Err(FetchError::Address { host: host.to_owned(), network, address })
            }
        }
    }

    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.patterns.iter().flatten()
    }
}

/// Whether a pattern of [`Hosts`] allows everything that another one allows.
pub fn pattern_covers(wide: &str, narrow: &str) -> bool {
    match (Pattern::parse(wide), Pattern::parse(narrow)) {
        (Some(wide), Some(narrow)) => wide.covers(&narrow),
        _ => wide == narrow,
    }
}

/// Whether a pattern of [`Hosts`] allows only hosts on the internet, as far as its text shows.
pub fn is_public_pattern(pattern: &str) -> bool {
    let Some(Pattern { target, port }) = Pattern::parse(pattern) else { return false };
    let is_public = match target {
        Target::Internet => true,
        Target::Name(name) | Target::Subdomains(name) => {
            name.contains('.')
                && !METADATA.contains(&&*name)
                && !INTERNAL.iter().any(|it| is_below(&name, it))
        }
        Target::Network(network) => network.is_public(),
    };
    is_public && port.is_none_or(|it| service(it).is_none())
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let (text, port) = match text.rsplit_once(':') {
            // The last part of an IPv6 address is not a port.
            Some((before, port)) if !before.contains(':') || before.ends_with(']') => {
                (before, Some(port.parse().ok()?))
            }
            _ => (text, None),
        };
        Some(Self { target: Target::parse(text)?, port })
    }

    fn matches(&self, host: &Host<&str>, port: u16) -> bool {
        let is_match = match (&self.target, host) {
            (Target::Internet, _) => true,
            (Target::Name(name), Host::Domain(_)) => *name == normalize(host),
            (Target::Subdomains(domain), Host::Domain(_)) => is_below(&normalize(host), domain),
            (Target::Network(_), Host::Ipv4(address)) => self.contains((*address).into(), port),
            (Target::Network(_), Host::Ipv6(address)) => self.contains((*address).into(), port),
            _ => false,
        };
        is_match && self.port.is_none_or(|it| it == port)
    }

    fn covers(&self, narrow: &Self) -> bool {
        let is_covered = match (&self.target, &narrow.target) {
            // A name below another may still be one that has to be listed itself.
            (Target::Subdomains(domain), Target::Name(name)) => {
                is_below(name, domain) && !METADATA.contains(&&**name)
            }
            (Target::Subdomains(domain), Target::Subdomains(other)) => {
                domain == other || is_below(other, domain)
            }
            (Target::Network(wide), Target::Network(narrow)) => {
                wide.bits <= narrow.bits && wide.contains(narrow.base)
            }
            (wide, narrow) => wide == narrow,
        };
        let port = match narrow.port {
            Some(port) if self.port.is_none() => service(port).is_none(),
            port => self.port.is_none() || self.port == port,
        };
        is_covered && port
    }

    fn contains(&self, address: IpAddr, port: u16) -> bool {
        let Target::Network(network) = self.target else { return false };
        network.contains(address.to_canonical()) && self.port.is_none_or(|it| it == port)
    }
}

impl Target {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Internet);
        }
        if let Some(suffix) = text.strip_prefix("*.") {
            let host = Host::parse(suffix).ok()?;
            return matches!(host, Host::Domain(_)).then(|| Self::Subdomains(normalize(&host)));
        }
        if text.contains('/') {
            return AddressBlock::parse(text).map(Self::Network);
        }
        if let Ok(address) = text.parse() {
            return Some(Self::address(address));
        }
        Some(match Host::parse(text).ok()? {
            Host::Ipv4(address) => Self::address(address.into()),
            Host::Ipv6(address) => Self::address(address.into()),
            host @ Host::Domain(_) => Self::Name(normalize(&host)),
        })
    }

    fn address(address: IpAddr) -> Self {
        Self::Network(AddressBlock::single(address.to_canonical()))
    }
}

/// Returns a host in the form for comparison: the parser has made it lower case and ASCII, and a
/// trailing dot is ignored.
fn normalize<S: AsRef<str>>(host: &Host<S>) -> String {
    let text = host.to_string();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

/// Whether a name is below a domain.
pub(crate) fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|it| it.ends_with('.'))
}

/// The names of cloud metadata services, which give machines their secrets.
const METADATA: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Domains without hosts on the internet.
const INTERNAL: &[&str] = &[
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "corp",
    "home",
    "home.arpa",
];
