//! The target of a request.

use std::fmt;

use url::{Host, Url};

/// A host and a port in normal form: lower case, ASCII, without a trailing dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Target {
    /// Parses `host:port`; the port may be missing if there is a default. User information is
    /// refused.
    pub(super) fn parse(text: &str, usual: Option<u16>) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, digits(port)?),
            _ => (text, usual?),
        };
        if port == 0
            || !host.bytes().all(|it: u8| it.is_ascii_alphanumeric() || b"-._:[]".contains(&it))
        {
            return None;
        }
        let host = match Host::parse(host.strip_suffix('.').unwrap_or(host)).ok()? {
            Host::Domain(name) if name.is_empty() || name.ends_with('.') => return None,
            host => host,
        };
        Some(Self { host, port })
    }

    /// Returns it as a URL for the address guard.
    pub(super) fn url(&self) -> Option<Url> {
        Url::parse(&format!("https://{self}/")).ok()
    }

    /// Returns its name; an address has none.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Domain(name) => Some(name),
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Parses a number of ASCII digits only.
fn digits(text: &str) -> Option<u16> {
    text.bytes().all(|it| it.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_in_one_way() {
        let read = |text: &str| Target::parse(text, Some(80)).map(|it| it.to_string());
        for (text, wanted) in [
            ("example.com:443", "example.com:443"),
            ("EXAMPLE.com.:443", "example.com:443"),
            ("example.com", "example.com:80"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("0x7f.1:80", "127.0.0.1:80"),
            ("2130706433:80", "127.0.0.1:80"),
            ("[::1]:443", "[::1]:443"),
            ("[::1]", "[::1]:80"),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted), "{text}");
        }
        for text in [
            "",
            ":443",
            "a:0",
            "a:65536",
            "a:+443",
            "a:443:443",
            "evil@allowed:443",
            "allowed:443@evil:443",
            "a/b:443",
            "a b:443",
            "a\0:443",
            "a%2eb:443",
            "a..:443",
            "::1:443",
            "a#b:443",
            "a\\b:443",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(Target::parse("example.com", None), None);
    }
}
