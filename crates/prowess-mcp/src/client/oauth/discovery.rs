//! Finds the authorization server of a server: the metadata of RFC 9728, RFC 8414 and OpenID
//! Connect Discovery.

use url::Url;

use super::{
    Challenge, LoginError,
    challenge::{sanitize, scopes},
    web::{Document, Web, required_text, text, texts},
};

/// The protected resource metadata of a server.
#[derive(Debug)]
pub(super) struct ProtectedResource {
    /// The resource that tokens must be issued for (RFC 8707).
    pub(super) resource: String,
    /// The authorization servers that may issue them; the first is used.
    pub(super) issuers: Vec<String>,
    pub(super) scopes: Vec<String>,
}

/// The metadata of an authorization server.
#[derive(Debug)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization: Option<Url>,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    pub(super) device: Option<Url>,
    pub(super) revocation: Option<Url>,
    pub(super) has_s256: bool,
    /// Whether its answers contain its issuer (RFC 9207).
    pub(super) names_itself: bool,
    /// Whether it only issues refresh tokens with the scope `offline_access`.
    pub(super) has_offline_access: bool,
    /// The authentication methods of clients; `None` if it does not list them.
    pub(super) methods: Option<Vec<String>>,
}

const RESOURCE: &str = "the metadata of the server";
const ISSUER: &str = "the metadata of the authorization server";

/// Returns the metadata of a server: from the URL in its challenge, else from the well-known one. A
/// server without metadata, as in 2025-03-26, is its own authorization server; also returns whether
/// the metadata exist.
pub(super) async fn protected_resource(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
) -> Result<(ProtectedResource, bool), LoginError> {
    let places = match &challenge.resource_metadata {
        Some(place) => vec![web.url(RESOURCE, place)?],
        None => {
            let root = well_known(server, "oauth-protected-resource", "");
            let own = well_known(server, "oauth-protected-resource", server.path());
            if own == root { vec![root] } else { vec![own, root] }
        }
    };
    for place in &places {
        if let Some(document) = web.get(RESOURCE, place).await? {
            return ProtectedResource::read(&document, server).map(|it| (it, true));
        }
    }
    if challenge.resource_metadata.is_some() {
        let why = "it is not at the URL that the server names".to_owned();
        return Err(LoginError::Malformed { what: RESOURCE, why });
    }
    let issuers = vec![server.origin().ascii_serialization()];
    Ok((ProtectedResource { resource: resource_uri(server), issuers, scopes: Vec::new() }, false))
}

/// Returns the metadata of an authorization server; `None` if it has none.
pub(super) async fn authorization_server(
    web: &Web,
    issuer: &str,
) -> Result<Option<AuthorizationServer>, LoginError> {
    let url = web.url("the authorization server", issuer)?;
    let path = url.path().trim_end_matches('/');
    let mut places = vec![
        well_known(&url, "oauth-authorization-server", path),
        well_known(&url, "openid-configuration", path),
    ];
    if !path.is_empty() {
        let mut behind = url.clone();
        behind.set_path(&format!("{path}/.well-known/openid-configuration"));
        behind.set_query(None);
        places.push(behind);
    }
    for place in places {
        if let Some(document) = web.get(ISSUER, &place).await? {
            return AuthorizationServer::read(web, &document, issuer).map(Some);
        }
    }
    Ok(None)
}

impl ProtectedResource {
    fn read(document: &Document, server: &Url) -> Result<Self, LoginError> {
        let resource = required_text(RESOURCE, document, "resource")?;
        if !Url::parse(resource).is_ok_and(|it| is_within(server, &it)) {
            return Err(LoginError::OtherResource { resource: sanitize(resource) });
        }
        let issuers = texts(document, "authorization_servers").unwrap_or_default();
        if issuers.is_empty() {
            let why = "it names no authorization server".to_owned();
            return Err(LoginError::Malformed { what: RESOURCE, why });
        }
        let supported = texts(document, "scopes_supported").unwrap_or_default();
        Ok(Self {
            resource: resource.to_owned(),
            issuers: issuers.into_iter().map(str::to_owned).collect(),
            scopes: scopes(&supported.join(" ")),
        })
    }
}

impl AuthorizationServer {
    fn read(web: &Web, document: &Document, issuer: &str) -> Result<Self, LoginError> {
        let found = required_text(ISSUER, document, "issuer")?;
        if !is_same_issuer(found, issuer) {
            return Err(LoginError::OtherIssuer {
                wanted: sanitize(issuer),
                found: sanitize(found),
            });
        }
        let optional = |key: &str, what: &'static str| match text(ISSUER, document, key)? {
            Some(url) => web.url(what, url).map(Some),
            None => Ok(None),
        };
        let lists =
            |key: &str, value: &str| texts(document, key).is_some_and(|it| it.contains(&value));
        let has_codes =
            texts(document, "response_types_supported").is_none_or(|it| it.contains(&"code"));
        let methods = texts(document, "token_endpoint_auth_methods_supported");
        Ok(Self {
            issuer: found.to_owned(),
            authorization: optional("authorization_endpoint", "the authorization endpoint")?
                .filter(|_| has_codes),
            token: web
                .url("the token endpoint", required_text(ISSUER, document, "token_endpoint")?)?,
            registration: optional("registration_endpoint", "the registration endpoint")?,
            device: optional("device_authorization_endpoint", "the device endpoint")?,
            revocation: optional("revocation_endpoint", "the revocation endpoint")?,
            has_s256: lists("code_challenge_methods_supported", "S256"),
            names_itself: document.get("authorization_response_iss_parameter_supported")
                == Some(&true.into()),
            has_offline_access: lists("scopes_supported", "offline_access"),
            methods: methods.map(|it| it.into_iter().map(str::to_owned).collect()),
        })
    }
}

/// Whether two issuers are equal, ignoring a trailing slash.
pub(super) fn is_same_issuer(one: &str, other: &str) -> bool {
    one.strip_suffix('/').unwrap_or(one) == other.strip_suffix('/').unwrap_or(other)
}

/// Returns the well-known URL of this host for a path.
fn well_known(url: &Url, name: &str, path: &str) -> Url {
    let mut place = url.clone();
    place.set_path(&format!("/.well-known/{name}{}", path.trim_end_matches('/')));
    place.set_query(None);
    place
}

/// Whether a URL is the resource, or below it.
fn is_within(url: &Url, resource: &Url) -> bool {
    let path = resource.path().trim_end_matches('/');
    let rest = url.path().strip_prefix(path);
    url.origin() == resource.origin()
        && resource.username().is_empty()
        && resource.password().is_none()
        && resource.fragment().is_none()
        && resource.query().is_none_or(|it| url.query() == Some(it))
        && rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// Returns the URL of a server as a resource.
fn resource_uri(server: &Url) -> String {
    let text = server.as_str();
    if server.path() == "/" && server.query().is_none() { text.trim_end_matches('/') } else { text }
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_the_server_or_above_it() {
        let server = Url::parse("https://x.test/mcp/one").unwrap();
        let within = |it: &str| is_within(&server, &Url::parse(it).unwrap());
        for good in [
            "https://x.test",
            "https://x.test/",
            "https://x.test/mcp/",
            "https://x.test:443/mcp/one",
        ] {
            assert!(within(good), "{good}");
        }
        for bad in [
            "https://y.test",
            "http://x.test",
            "https://x.test:444",
            "https://x.test/mc",
            "https://x.test/mcp/one/two",
            "https://x.test/mcp?a",
            "https://x.test.evil.test",
            "https://x.test@evil.test",
            "https://u@x.test/mcp",
        ] {
            assert!(!within(bad), "{bad}");
        }
    }

    #[test]
    fn well_known_paths_come_before_the_path() {
        let url = Url::parse("https://x.test/a/b?q").unwrap();
        let place = well_known(&url, "oauth-protected-resource", url.path());
        assert_eq!(place.as_str(), "https://x.test/.well-known/oauth-protected-resource/a/b");
        assert_eq!(resource_uri(&Url::parse("https://x.test/").unwrap()), "https://x.test");
    }
}
