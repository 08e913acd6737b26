//! The hosts that may be connected to.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use url::{Host, Url};

use crate::{
    address::{AddressBlock, Reach},
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
/// assert!(!allows("http://169.254.169.254/")); // the metadata of a cloud
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
    leads: AddressScope,
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
pub struct HostsError {
    /// The pattern.
    pub pattern: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    meaning: Meaning,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    Internet,
    Name(String),
    Below(String),
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
        let bad = |text: &str| HostsError { pattern: text.to_owned() };
        let patterns = patterns
            .into_iter()
            .map(|text: P| Pattern::new(text.as_ref()).ok_or_else(|| bad(text.as_ref())))
            .collect::<Result<_, _>>()?;
        Ok(Self { patterns: Some(patterns), leads: AddressScope::Anywhere })
    }

    /// Allows the hosts of these patterns to untrusted scripts: the author of a script may own a
    /// listed name, and could make it resolve to this machine. So an address that is not on the
    /// internet has to be listed itself.
    pub fn for_scripts<P: AsRef<str>>(
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, HostsError> {
        Ok(Self { leads: AddressScope::Listed, ..Self::new(patterns)? })
    }

    /// Allows the same hosts, but only if their names resolve to the internet.
    #[must_use]
    pub fn internet_only(self) -> Self {
        Self { leads: AddressScope::Internet, ..self }
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
        let failed = |source| FetchError::Resolve { host: name.to_owned(), source };
        let mut found = resolver.resolve(name).await.map_err(failed)?;
        found.truncate(MAX_ADDRESSES);
        if found.is_empty() {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        found
            .into_iter()
            .map(|address: IpAddr| {
                self.allow(name, address, port, admission)?;
                Ok(SocketAddr::new(address, port))
            })
            .collect()
    }

    /// Whether the port of a URL is listed for its host.
    pub fn lists_port(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return false;
        };
        self.patterns().any(|it| it.port.is_some() && it.means(&host, port))
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
        let refused = || FetchError::Host { host: host.to_string() };
        let meant: Vec<&Pattern> = self.patterns().filter(|it| it.means(&host, port)).collect();
        if meant.is_empty() && self.patterns.is_some() {
            return Err(refused());
        }
        let name = plain(&host);
        let only_public = self.leads == AddressScope::Internet;
        if METADATA.contains(&&*name)
            && !meant
                .iter()
                .any(|it: &&Pattern| matches!(it.meaning, Meaning::Name(_)) && !only_public)
        {
            return Err(refused());
        }
        let internet = match self.leads {
            AddressScope::Listed if name != "localhost" => true,
            AddressScope::Internet => true,
            _ => meant.iter().all(|it| it.meaning == Meaning::Internet),
        };
        let admission = if internet { Admission::Public } else { Admission::Internal };
        match host {
            Host::Domain(_) => {}
            Host::Ipv4(it) => self.allow(&it.to_string(), it.into(), port, admission)?,
            Host::Ipv6(it) => self.allow(&it.to_string(), it.into(), port, admission)?,
        }
        let is_port_meant = !only_public && meant.iter().any(|it| it.port.is_some());
        if let Some(service) = service(port).filter(|_| !is_port_meant) {
            return Err(FetchError::Port { host: host.to_string(), port, service });
        }
        Ok(admission)
    }

    /// Checks an address that a host resolves to.
    pub(crate) fn allow(
        &self,
        host: &str,
        address: IpAddr,
        port: u16,
        admission: Admission,
    ) -> Result<(), FetchError> {
        match Reach::of(address) {
            Reach::Public => Ok(()),
            Reach::Internal(_) if admission == Admission::Internal => Ok(()),
            _ if self.leads != AddressScope::Internet
                && self.patterns().any(|it| it.holds(address, port)) =>
            {
                Ok(())
            }
            Reach::Internal(network) | Reach::Special(network) => {
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
    match (Pattern::new(wide), Pattern::new(narrow)) {
        (Some(wide), Some(narrow)) => wide.covers(&narrow),
        _ => wide == narrow,
    }
}

/// Whether a pattern of [`Hosts`] allows only hosts on the internet, as far as its text shows.
pub fn is_public_pattern(pattern: &str) -> bool {
    let Some(Pattern { meaning, port }) = Pattern::new(pattern) else { return false };
    let is_internal = |name: &str| {
        !name.contains('.')
            || METADATA.contains(&name)
            || INTERNAL
                .iter()
                .any(|it: &&str| name.strip_suffix(*it).is_some_and(|it| it.ends_with('.')))
    };
    let is_public = match meaning {
        Meaning::Internet => true,
        Meaning::Name(name) | Meaning::Below(name) => !is_internal(&name),
        Meaning::Network(network) => network.is_public(),
    };
    is_public && port.is_none_or(|it| service(it).is_none())
}

impl Pattern {
    fn new(text: &str) -> Option<Self> {
        let (text, port) = match text.rsplit_once(':') {
            // The last part of an IPv6 address is not a port.
            Some((before, port)) if !before.contains(':') || before.ends_with(']') => {
                (before, Some(port.parse().ok()?))
            }
            _ => (text, None),
        };
        Some(Self { meaning: Meaning::new(text)?, port })
    }

    fn means(&self, host: &Host<&str>, port: u16) -> bool {
        let is_meant = match (&self.meaning, host) {
            (Meaning::Internet, _) => true,
            (Meaning::Name(name), Host::Domain(_)) => *name == plain(host),
            (Meaning::Below(suffix), Host::Domain(_)) => {
                plain(host).strip_suffix(&**suffix).is_some_and(|it| it.ends_with('.'))
            }
            (Meaning::Network(_), Host::Ipv4(address)) => self.holds((*address).into(), port),
            (Meaning::Network(_), Host::Ipv6(address)) => self.holds((*address).into(), port),
            _ => false,
        };
        is_meant && self.port.is_none_or(|it| it == port)
    }

    fn covers(&self, narrow: &Self) -> bool {
        // A name below another may still be one that has to be listed itself.
        let below = |suffix: &str, name: &str| {
            name.strip_suffix(suffix).is_some_and(|it| it.ends_with('.'))
        };
        let is_covered = match (&self.meaning, &narrow.meaning) {
            (Meaning::Below(suffix), Meaning::Name(name)) => {
                below(suffix, name) && !METADATA.contains(&&**name)
            }
            (Meaning::Below(suffix), Meaning::Below(other)) => {
                suffix == other || below(suffix, other)
            }
            (Meaning::Network(wide), Meaning::Network(narrow)) => {
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

    fn holds(&self, address: IpAddr, port: u16) -> bool {
        let Meaning::Network(network) = self.meaning else { return false };
        network.contains(address.to_canonical()) && self.port.is_none_or(|it| it == port)
    }
}

impl Meaning {
    fn new(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Internet);
        }
        if let Some(suffix) = text.strip_prefix("*.") {
            let host = Host::parse(suffix).ok()?;
            return matches!(host, Host::Domain(_)).then(|| Self::Below(plain(&host)));
        }
        if let Some((base, bits)) = text.split_once('/') {
            let base: IpAddr = base.parse().ok()?;
            let most = if base.is_ipv4() { 32 } else { 128 };
            let bits = bits.parse().ok().filter(|it| *it <= most)?;
            return Some(Self::Network(AddressBlock { base, bits }));
        }
        let literal = |base: IpAddr| {
            let base = base.to_canonical();
            Self::Network(AddressBlock { base, bits: if base.is_ipv4() { 32 } else { 128 } })
        };
        if let Ok(address) = text.parse() {
            return Some(literal(address));
        }
        Some(match Host::parse(text).ok()? {
            Host::Ipv4(address) => literal(address.into()),
            Host::Ipv6(address) => literal(address.into()),
            host @ Host::Domain(_) => Self::Name(plain(&host)),
        })
    }
}

/// Returns a host in the form for comparison: the parser has made it lower case and ASCII, and a
/// trailing dot is ignored.
fn plain<S: AsRef<str>>(host: &Host<S>) -> String {
    let text = host.to_string();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
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
