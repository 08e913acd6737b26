//! The environment of a script.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    net::SocketAddr,
};

use crate::{
    level::SandboxLevel,
    order::Order,
    system::{SEARCH_PATH, certificate_file},
};

/// Returns the environment of a script; with a network, also the address of the proxy.
pub(crate) fn environment(
    order: &Order,
    level: SandboxLevel,
    proxy: Option<SocketAddr>,
) -> BTreeMap<OsString, OsString> {
    let temporary = match level {
        SandboxLevel::Strong => "/tmp".into(),
        SandboxLevel::Landlock | SandboxLevel::None => order.temporary(),
    };
    let mut path = order.path.join(OsStr::new(":"));
    path.push(if path.is_empty() { "" } else { ":" });
    path.push(SEARCH_PATH);
    let own: [(OsString, OsString); 4] = [
        ("PATH".into(), path),
        ("HOME".into(), order.home.clone().unwrap_or_else(|| order.work().into())),
        ("LANG".into(), "C.UTF-8".into()),
        ("TMPDIR".into(), temporary.into()),
    ];
    let given = order.env.iter().map(|(name, value)| (name.into(), value.into()));
    let Some(proxy) = proxy else { return own.into_iter().chain(given).collect() };
    let authorities = certificate_file().map(|it| ("SSL_CERT_FILE".into(), it.into()));
    // Only the script can reach a socket in its own namespace.
    let user = match (&order.network, level) {
        (Some(password), SandboxLevel::Landlock | SandboxLevel::None) => {
            format!("{PROXY_USER}:{password}@")
        }
        _ => String::new(),
    };
    let url = format!("http://{user}{proxy}");
    let through = PROXIES.iter().map(|it| ((*it).into(), (&*url).into()));
    let always = ALWAYS.iter().map(|it| (it.0.into(), it.1.into()));
    own.into_iter().chain(authorities).chain(given).chain(through).chain(always).collect()
}

/// The user name of a script at the proxy.
pub(crate) const PROXY_USER: &str = "script";

/// The variables that programs read the address of a proxy from.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// The variables that make programs use it for every host.
const ALWAYS: [(&str, &str); 3] = [("NO_PROXY", ""), ("no_proxy", ""), ("NODE_USE_ENV_PROXY", "1")];
