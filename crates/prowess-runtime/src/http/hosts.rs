//! The hosts that may be asked.

use std::net::IpAddr;

use url::{Host, Url};

use super::{
    address::{Network, Reach},
    fetch::FetchError,
    ports::service,
};
use crate::policy::Policy;

/// The hosts that may be asked: the whole internet by default; with patterns, only those that one of
/// them means, and with none of them nobody.
///
/// A pattern is a name (`example.com`), all names below one (`*.example.com`), an address
/// (`10.0.0.1`, `::1`), a network (`10.0.0.0/8`) or `*` for the whole internet; `:port` may stand
/// behind it. A name that is meant may lead to a private network or this machine. What is neither
/// that nor the internet, such as the metadata of a cloud, has to be meant by its address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    patterns: Option<Vec<Pattern>>,
    leads: Leads,
}

/// Where a name that is meant may lead to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Leads {
    /// To a private network or this machine, too.
    #[default]
    Anywhere,
    /// To the internet, and to addresses that are meant themselves; `localhost` to this machine.
    Listed,
    /// To the internet alone.
    Internet,
}

/// A pattern means no host.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is neither a host, `*.` before one, an address nor a network")]
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
    Network(Network),
}

/// Where a host that may be asked may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// To the internet.
    Public,
    /// To a private network as well.
    Internal,
}

impl Hosts {
    /// Takes these patterns.
    pub fn new<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Self, HostsError> {
        let bad = |text: &str| HostsError { pattern: text.to_owned() };
        let pattern = |text: P| Pattern::new(text.as_ref()).ok_or_else(|| bad(text.as_ref()));
        let patterns = patterns.into_iter().map(pattern).collect::<Result<_, _>>()?;
        Ok(Self { patterns: Some(patterns), leads: Leads::Anywhere })
    }

    /// Takes these patterns for scripts: whoever wrote one may own a name in the list, and could let it
    /// lead to this machine. So an address that is not of the internet has to be in the list itself.
    pub fn for_scripts<P: AsRef<str>>(
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, HostsError> {
        Ok(Self { leads: Leads::Listed, ..Self::new(patterns)? })
    }

    /// Takes the hosts of a policy.
    pub fn of(policy: &Policy) -> Result<Self, HostsError> {
        let hosts = policy.hosts.as_ref().map_or_else(|| Ok(Self::default()), Self::new)?;
        let leads = if policy.are_hosts_public { Leads::Internet } else { Leads::Anywhere };
        Ok(Self { leads, ..hosts })
    }

    /// Whether a URL may be asked for, as far as its text says.
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
        let only_public = self.leads == Leads::Internet;
        let is_named = |it: &&Pattern| matches!(it.meaning, Meaning::Name(_)) && !only_public;
        if METADATA.contains(&&*name) && !meant.iter().any(is_named) {
            return Err(refused());
        }
        let internet = match self.leads {
            Leads::Listed if name != "localhost" => true,
            Leads::Internet => true,
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

    /// Whether an address may be connected to that a host leads to.
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
            _ if self.leads != Leads::Internet
                && self.patterns().any(|it| it.holds(address, port)) =>
            {
                Ok(())
            }
            Reach::Internal(what) | Reach::Special(what) => {
                Err(FetchError::Address { host: host.to_owned(), what })
            }
        }
    }

    /// Whether the port of a URL stands in the list, with a host that it is for.
    pub(crate) fn names_port(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return false;
        };
        self.patterns().any(|it| it.port.is_some() && it.means(&host, port))
    }

    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.patterns.iter().flatten()
    }
}

/// Whether a pattern lets whatever another lets, wherever that leads.
pub(crate) fn covers(wide: &str, narrow: &str) -> bool {
    match (Pattern::new(wide), Pattern::new(narrow)) {
        (Some(wide), Some(narrow)) => wide.covers(&narrow),
        _ => wide == narrow,
    }
}

/// Whether a pattern means nothing but hosts of the internet, as far as its text says.
pub(crate) fn is_public(pattern: &str) -> bool {
    let Some(Pattern { meaning, port }) = Pattern::new(pattern) else { return false };
    let is_internal = |name: &str| {
        let is_below = |it: &&str| name.strip_suffix(*it).is_some_and(|it| it.ends_with('.'));
        !name.contains('.') || METADATA.contains(&name) || INTERNAL.iter().any(is_below)
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
            // The last part of an address is no port.
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
        // A name that is below another may still be one that has to be named itself.
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
            return Some(Self::Network(Network { base, bits }));
        }
        let literal = |base: IpAddr| {
            let base = base.to_canonical();
            Self::Network(Network { base, bits: if base.is_ipv4() { 32 } else { 128 } })
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

/// A host as it is compared: the parser has made it lower case and ASCII, a dot at its end says
/// nothing.
fn plain<S: AsRef<str>>(host: &Host<S>) -> String {
    let text = host.to_string();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

/// The names under which clouds tell machines their secrets.
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

/// Names that no host of the internet is below.
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
