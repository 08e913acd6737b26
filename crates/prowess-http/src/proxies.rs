//! The proxies of a network, from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.

use std::{fmt, io};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};
use url::{Host, Url};

use crate::{address::AddressBlock, connect::connect, hosts::is_below, resolver::Resolver};

/// The maximum size of a proxy's answer to `CONNECT` in bytes.
const MAX_ANSWER: usize = 16 * 1024;

/// The proxies of a network, and the hosts that are reached directly. This machine always is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<ProxyAddress>,
    https: Option<ProxyAddress>,
    direct: Vec<DirectHosts>,
}

/// A variable is not the address of a usable proxy. Its value is not repeated, because it may contain a
/// password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{variable}` cannot be used: {why}")]
#[non_exhaustive]
pub struct ProxyError {
    /// The variable.
    pub variable: String,
    /// The reason.
    pub why: String,
}

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ProxyAddress {
    pub(crate) url: Url,
    /// The value of `Proxy-Authorization`.
    pub(crate) authorization: Option<String>,
}

/// Hosts that are reached without a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DirectHosts {
    All,
    /// A domain and all below it, in lower case, at one port or at any.
    Domain(String, Option<u16>),
    Addresses(AddressBlock),
}

impl Proxies {
    /// Reads the variables from `get`, those in lower case first, as curl does. Empty ones count as
    /// unset.
    pub fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let http = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
        let https = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
        let direct = first_set(&get, &["no_proxy", "NO_PROXY"]).map(|it| it.1).unwrap_or_default();
        Ok(Self {
            http: ProxyAddress::from_variables(&get, &http)?,
            https: ProxyAddress::from_variables(&get, &https)?,
            direct: direct.split(',').filter_map(DirectHosts::parse).collect(),
        })
    }

    /// Connects to the host of an `https:` URL through its proxy; returns `None` if it is reached
    /// directly. The proxy resolves the name, so no address can be checked.
    pub async fn connect(
        &self,
        url: &Url,
        resolver: &dyn Resolver,
    ) -> Option<io::Result<TcpStream>> {
        let proxy = self.proxy_for(url)?;
        Some(proxy.connect(url, resolver).await.map_err(|error| {
            io::Error::new(error.kind(), format!("the proxy `{}`: {error}", proxy.name()))
        }))
    }

    /// Whether a URL is requested through a proxy, which then resolves its host.
    pub fn cover(&self, url: &Url) -> bool {
        self.proxy_for(url).is_some()
    }

    /// Returns the proxy for a URL; `None` if its host is reached directly.
    pub(crate) fn proxy_for(&self, url: &Url) -> Option<&ProxyAddress> {
        let proxy = match url.scheme() {
            "https" => self.https.as_ref(),
            _ => self.http.as_ref(),
        }?;
        let is_direct = self.direct.iter().any(|it| it.contains(url));
        (!is_direct && !is_this_machine(url)).then_some(proxy)
    }
}

/// Returns the first of these variables that is set, with its value.
fn first_set(get: &impl Fn(&str) -> Option<String>, names: &[&str]) -> Option<(String, String)> {
    names.iter().find_map(|name| {
        let value = get(name).filter(|it| !it.trim().is_empty())?;
        Some(((*name).to_owned(), value.trim().to_owned()))
    })
}

impl ProxyAddress {
    fn from_variables(
        get: &impl Fn(&str) -> Option<String>,
        names: &[&str],
    ) -> Result<Option<Self>, ProxyError> {
        first_set(get, names)
            .map(|(variable, value)| {
                Self::parse(&value).map_err(|why| ProxyError { variable, why })
            })
            .transpose()
    }

    /// Parses the address of a proxy; fails with the reason.
    fn parse(value: &str) -> Result<Self, String> {
        let with_scheme =
            if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let mut url = Url::parse(&with_scheme).map_err(|it| format!("not a URL: {it}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("unsupported scheme `{}:`, expected `http:`", url.scheme()));
        }
        if url.host().is_none() {
            return Err("the host is missing".to_owned());
        }
        let authorization = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => {
                let (Some(mut both), Some(password)) =
                    (decode_credential(user), decode_credential(password.unwrap_or_default()))
                else {
                    return Err("the user name or password contains control characters".to_owned());
                };
                both.push(b':');
                both.extend(password);
                Some(format!("Basic {}", BASE64_STANDARD.encode(both)))
            }
        };
        // Neither can fail for a URL that has a host.
        let _ = (url.set_username(""), url.set_password(None));
        Ok(Self { url, authorization })
    }

    /// Returns its host and port, for messages.
    pub(crate) fn name(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        format!("{host}:{}", self.url.port_or_known_default().unwrap_or_default())
    }

    async fn connect(&self, url: &Url, resolver: &dyn Resolver) -> io::Result<TcpStream> {
        if self.url.scheme() != "http" {
            return Err(io::Error::other("only an `http:` proxy can be used here"));
        }
        let port = self.url.port_or_known_default().ok_or(io::ErrorKind::InvalidInput)?;
        let addresses = match self.url.host().ok_or(io::ErrorKind::InvalidInput)? {
            Host::Domain(name) => resolver.resolve(name).await?,
            Host::Ipv4(address) => vec![address.into()],
            Host::Ipv6(address) => vec![address.into()],
        };
        let addresses: Vec<_> = addresses.into_iter().map(|it| (it, port).into()).collect();
        let mut stream = connect(&addresses).await?;
        let port = url.port_or_known_default().ok_or(io::ErrorKind::InvalidInput)?;
        self.tunnel(&mut stream, url.host_str().ok_or(io::ErrorKind::InvalidInput)?, port).await?;
        Ok(stream)
    }

    /// Asks the proxy to connect a stream to a host.
    pub(crate) async fn tunnel(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        host: &str,
        port: u16,
    ) -> io::Result<()> {
        let authorization = self.authorization.as_ref();
        let authorization =
            authorization.map(|it| format!("Proxy-Authorization: {it}\r\n")).unwrap_or_default();
        let head =
            format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{authorization}\r\n");
        stream.write_all(head.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() >= MAX_ANSWER {
                return Err(io::Error::other("its response is too long"));
            }
            // Byte by byte: the bytes after the answer come from the host.
            answer.push(stream.read_u8().await?);
        }
        let line = answer.split(|it| *it == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.splitn(3, ' ');
        let (version, status) = (words.next().unwrap_or_default(), words.next());
        match status.and_then(|it| it.parse().ok()) {
            Some(_) if !version.starts_with("HTTP/1.") => {
                Err(io::Error::other("it is not an HTTP proxy"))
            }
            Some(200..=299) => Ok(()),
            Some(407_u16) => Err(io::Error::other("it requires a user name and password")),
            Some(status) => Err(io::Error::other(format!("it responded with status {status}"))),
            None => Err(io::Error::other("it is not an HTTP proxy")),
        }
    }
}

impl DirectHosts {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Self::All);
        }
        if text.contains('/') {
            return AddressBlock::parse(&text).map(Self::Addresses);
        }
        let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(&text);
        if let Ok(address) = bare.parse() {
            return Some(Self::Addresses(AddressBlock::single(address)));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (&*text, None),
        };
        let name = name.trim_start_matches("*.").trim_start_matches('.');
        Some(Self::Domain(name.to_owned(), port))
    }

    fn contains(&self, url: &Url) -> bool {
        match (self, url.host()) {
            (Self::All, _) => true,
            (Self::Domain(name, port), Some(host)) => {
                let host = host.to_string();
                (host == *name || is_below(&host, name))
                    && port.is_none_or(|it| Some(it) == url.port_or_known_default())
            }
            (Self::Addresses(block), Some(Host::Ipv4(address))) => block.contains(address.into()),
            (Self::Addresses(block), Some(Host::Ipv6(address))) => block.contains(address.into()),
            _ => false,
        }
    }
}

/// Whether a URL refers to this machine, which is always reached directly.
fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Decodes the `%XX` of a user name or password. `None` for control characters, which could end the
/// header and begin another.
fn decode_credential(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.as_bytes().iter();
    let mut decoded = Vec::new();
    while let Some(&byte) = bytes.next() {
        let rest = bytes.as_slice();
        let hex = rest.first_chunk::<2>().and_then(|it| std::str::from_utf8(it).ok());
        match hex.and_then(|it| u8::from_str_radix(it, 16).ok()).filter(|_| byte == b'%') {
            Some(value) => {
                decoded.push(value);
                bytes.nth(1);
            }
            None => decoded.push(byte),
        }
    }
    (!decoded.iter().any(u8::is_ascii_control)).then_some(decoded)
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyAddress").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, ProxyError> {
        Proxies::from_variables(|name| {
            variables.iter().find(|it| it.0 == name).map(|it| it.1.to_owned())
        })
    }

    /// Returns the proxy for each URL.
    fn of(variables: &[(&str, &str)], urls: &[&str]) -> Vec<Option<String>> {
        let proxies = proxies(variables).unwrap();
        urls.iter()
            .map(|url: &&str| proxies.proxy_for(&Url::parse(url).unwrap()).map(ProxyAddress::name))
            .collect()
    }

    #[test]
    fn each_scheme_has_its_proxy_and_all_proxy_stands_in() {
        let urls = ["https://a.example/", "http://a.example/"];
        let some = |it: &str| Some(it.to_owned());
        let both = [("HTTPS_PROXY", "http://p:1"), ("http_proxy", "q:2")];
        assert_eq!(of(&both, &urls), [some("p:1"), some("q:2")]);
        assert_eq!(of(&[("ALL_PROXY", "p:1")], &urls), [some("p:1"), some("p:1")]);
        assert_eq!(of(&[("HTTPS_PROXY", " "), ("https_proxy", "")], &urls), [None, None]);
        let lower = [("HTTPS_PROXY", "p:1"), ("https_proxy", "q:2")];
        assert_eq!(of(&lower, &urls), [some("q:2"), None]);
        assert_eq!(of(&[("HTTPS_PROXY", "https://p")], &urls), [some("p:443"), None]);
    }

    #[test]
    fn it_is_known_which_urls_have_a_proxy() {
        let variables = [("HTTPS_PROXY", "p:1"), ("NO_PROXY", "b.example")];
        let proxies = proxies(&variables).unwrap();
        let covered = |it: &str| proxies.cover(&Url::parse(it).unwrap());
        assert!(covered("https://a.example/"));
        assert!(!covered("http://a.example/"));
        assert!(!covered("https://b.example/"));
        assert!(!covered("https://127.0.0.1/"));
    }

    #[test]
    fn no_proxy_names_hosts_domains_ports_and_networks() {
        let through = |direct: &str, url: &str| {
            of(&[("ALL_PROXY", "p:1"), ("NO_PROXY", direct)], &[url])[0].is_some()
        };
        for (direct, url) in [
            ("*", "https://a.example/"),
            ("a.example", "https://a.example/"),
            ("A.Example", "https://a.example/"),
            ("example", "https://a.example/"),
            (".example", "https://a.example/"),
            ("*.example", "https://a.example/"),
            ("x, a.example", "https://a.example/"),
            ("a.example:443", "https://a.example/"),
            ("10.0.0.0/8", "http://10.1.2.3/"),
            ("10.1.2.3", "http://10.1.2.3/"),
            ("0.0.0.0/0", "http://10.1.2.3/"),
            ("fd00::/8", "http://[fd12::1]/"),
            ("[fd12::1]", "http://[fd12::1]/"),
        ] {
            assert!(!through(direct, url), "{direct} {url}");
        }
        for (direct, url) in [
            ("", "https://a.example/"),
            ("b.example", "https://a.example/"),
            ("ample", "https://a.example/"),
            ("a.example:80", "https://a.example/"),
            ("a.example:x", "https://a.example/"),
            ("10.0.0.0/8", "http://11.1.2.3/"),
            ("10.0.0.0/33", "http://10.1.2.3/"),
            ("fd00::/8", "http://10.1.2.3/"),
        ] {
            assert!(through(direct, url), "{direct} {url}");
        }
        for url in ["http://localhost:1/", "http://127.0.0.9/", "http://[::1]/"] {
            assert!(!through("", url), "{url}");
        }
    }

    #[test]
    fn a_password_is_sent_and_never_shown() {
        let known = proxies(&[("HTTPS_PROXY", "http://ann:p%40ss@p:1")]).unwrap();
        let proxy = known.https.as_ref().unwrap();
        assert_eq!(proxy.authorization.as_deref(), Some("Basic YW5uOnBAc3M="));
        assert!(!format!("{known:?}").contains("p@ss") && !format!("{known:?}").contains("p%40ss"));
        assert!(!format!("{known:?}").contains("YW5u"));
        for bad in ["socks5://ann:secret@p:1", "http://ann:secret%0d%0aX: 1@p", "http://"] {
            let error = proxies(&[("HTTPS_PROXY", bad)]).unwrap_err().to_string();
            assert!(error.starts_with("`HTTPS_PROXY` cannot be used"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
