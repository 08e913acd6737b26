//! The parts of a URL that approvals and the audit log contain.

/// Returns the scheme, host and port of a URL.
#[cfg(feature = "http")]
pub(super) fn origin(url: &str) -> String {
    url::Url::parse(url)
        .map_or_else(|_| without_secrets(url), |it| it.origin().ascii_serialization())
}

/// Without HTTP nothing is sent anywhere.
#[cfg(not(feature = "http"))]
pub(super) fn origin(url: &str) -> String {
    without_secrets(url)
}

/// Returns a URL without the parts that could be secret.
pub(super) fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let start = url[..end].find("://").map_or(0, |it| it + "://".len());
    let host = url[start..end].split('/').next().unwrap_or_default();
    let user = host.rfind('@').map_or(0, |it| it + 1);
    format!("{}{}", &url[..start], &url[start + user..end])
}
