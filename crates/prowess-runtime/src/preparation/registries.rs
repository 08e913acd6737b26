//! The package registries that environments are installed from.

#[cfg(feature = "http")]
use prowess_http::{Hosts, HostsError};

use crate::environment::Ecosystem;

/// The package registries that the user has configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registries {
    /// The index for Python packages.
    pub python: String,
    /// The registry for npm packages.
    pub npm: String,
    /// The registry for JSR packages.
    pub jsr: String,
    /// Additional hosts that packages are downloaded from.
    pub hosts: Vec<String>,
}

impl Default for Registries {
    /// PyPI, npm and JSR.
    fn default() -> Self {
        Self {
            python: "https://pypi.org/simple".to_owned(),
            npm: "https://registry.npmjs.org/".to_owned(),
            jsr: "https://jsr.io/".to_owned(),
            hosts: Vec::new(),
        }
    }
}

impl Registries {
    /// Returns the hosts of the registries of an ecosystem, without credentials.
    pub fn display_hosts(&self, ecosystem: Ecosystem) -> String {
        let urls = self.urls(ecosystem);
        urls.iter().filter_map(|it| host(it)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the hosts that an installation may connect to. A public registry must resolve to a
    /// public address; one that the user configured may be in a private network.
    #[cfg(feature = "http")]
    pub(super) fn hosts(&self, ecosystem: Ecosystem) -> Result<Hosts, HostsError> {
        let public = Self { hosts: self.hosts.clone(), ..Self::default() };
        let allowed = self.allowed_hosts(ecosystem);
        match public.urls(ecosystem) == self.urls(ecosystem) {
            true => Hosts::for_scripts(allowed),
            false => Hosts::new(allowed),
        }
    }

    /// Returns the names of the hosts that an installation may connect to.
    #[cfg(feature = "http")]
    pub(super) fn allowed_hosts(&self, ecosystem: Ecosystem) -> Vec<String> {
        let mut hosts: Vec<String> =
            self.urls(ecosystem).iter().filter_map(|it| host(it)).collect();
        // The index of PyPI only lists files.
        if hosts.iter().any(|it| it == "pypi.org") {
            hosts.push("files.pythonhosted.org".to_owned());
        }
        hosts.extend(self.hosts.iter().cloned());
        hosts
    }

    fn urls(&self, ecosystem: Ecosystem) -> Vec<&str> {
        match ecosystem {
            Ecosystem::Python => vec![&self.python],
            Ecosystem::Node => vec![&self.npm],
            Ecosystem::Deno => vec![&self.npm, &self.jsr],
        }
    }
}

/// Returns the host of a URL, with the port if it is given.
pub(super) fn host(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_is_connected_to() {
        let cases = [
            ("https://pypi.org/simple", Some("pypi.org")),
            ("https://me:secret@Nexus.example:8443/x", Some("nexus.example:8443")),
            ("http://[::1]:80/", Some("[::1]:80")),
            ("pypi.org", None),
            ("https://", None),
        ];
        for (url, expected) in cases {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }
}
