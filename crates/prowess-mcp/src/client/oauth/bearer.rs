//! The token of every request to a server, renewed when it has expired.

use std::sync::Arc;

use hyper::Method;
use prowess_http::Hosts;
use url::Url;

use super::{
    LoginError, Logins,
    discovery::is_same_issuer,
    secret::Secret,
    token,
    token_file::{LoginState, StoredLogin},
    web::{Web, is_loopback},
};

/// The login to a server, for its requests. Every request reads the file again, so that a process
/// sees the changes of others.
#[derive(Debug)]
pub(in crate::client) struct Bearer {
    pub(super) label: String,
    pub(super) server: Url,
    /// The only authorization server that may have issued the tokens.
    pub(super) issuer: Option<String>,
    pub(super) logins: Logins,
    pub(super) web: Web,
}

impl Bearer {
    /// Creates the login to a server with a label, if a token may be sent there at all.
    pub(in crate::client) fn new(
        label: &str,
        server: &str,
        issuer: Option<String>,
        logins: Logins,
        hosts: Hosts,
    ) -> Result<Self, LoginError> {
        let what = "its address";
        let server = Url::parse(server)
            .map_err(|_| LoginError::Malformed { what, why: "it is not a URL".to_owned() })?;
        if server.scheme() != "https" && !is_loopback(&server) {
            return Err(LoginError::Insecure { what });
        }
        let web = Web::new(hosts, &server);
        Ok(Self { label: label.to_owned(), server, issuer, logins, web })
    }

    /// Returns the label of the server.
    pub(in crate::client) fn label(&self) -> &str {
        &self.label
    }

    /// Returns the token to send; `None` without a login. An expired one is renewed first.
    pub(in crate::client) async fn token(self: &Arc<Self>) -> Result<Option<Secret>, LoginError> {
        match self.read()? {
            Some(login) if login.tokens.is_expired() => {
                self.renew(&login.tokens.access_token).await
            }
            login => Ok(login.map(|it| it.tokens.access_token)),
        }
    }

    /// Returns another token than this invalid one; the same if it cannot be renewed.
    pub(in crate::client) async fn renew(
        self: &Arc<Self>,
        old: &Secret,
    ) -> Result<Option<Secret>, LoginError> {
        // The caller may be dropped, but a used refresh token must be replaced in any case.
        let (own, old) = (self.clone(), old.clone());
        let renewed = tokio::spawn(async move { own.renew_stored(&old).await }).await;
        renewed.unwrap_or(Err(LoginError::Interrupted))
    }

    async fn renew_stored(&self, old: &Secret) -> Result<Option<Secret>, LoginError> {
        let _lock = self.logins.lock(&self.label).await?;
        // Another process may have renewed it meanwhile.
        let Some(login) = self.read()? else { return Ok(None) };
        if login.tokens.access_token != *old {
            return Ok(Some(login.tokens.access_token));
        }
        let Some(refresh) = login.tokens.refresh_token.clone() else {
            return Ok(Some(old.clone()));
        };
        let grant = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.reveal()),
            ("resource", &login.resource),
        ];
        let endpoint = self.web.url("the token endpoint", &login.token_endpoint)?;
        let scope = &login.tokens.scope;
        let renewed = token::request(&self.web, &endpoint, &login.client, &grant, scope).await;
        // It will never be valid again, and some servers treat a second attempt as theft.
        if matches!(renewed, Err(LoginError::Denied { is_over: true, .. })) {
            self.logins.remove(&self.label, Some(self.server.as_str()))?;
        }
        let mut tokens = renewed?;
        tokens.refresh_token = tokens.refresh_token.or(Some(refresh));
        let token = tokens.access_token.clone();
        self.logins.write(&self.label, &StoredLogin { tokens, ..login })?;
        Ok(Some(token))
    }

    /// Returns the state of the login.
    pub(in crate::client) fn state(&self) -> Result<Option<LoginState>, LoginError> {
        Ok(self.read()?.map(StoredLogin::state))
    }

    /// Removes the login, and revokes it at the authorization server if that is supported; returns
    /// whether there was one.
    pub(in crate::client) async fn log_out(&self) -> Result<bool, LoginError> {
        let _lock = self.logins.lock(&self.label).await?;
        let login = self.read().unwrap_or_default();
        let is_removed = self.logins.remove(&self.label, None)?;
        if let Some(login) = login {
            // It is removed here in any case.
            let _ = self.revoke(&login).await;
        }
        Ok(is_removed)
    }

    /// Revokes the tokens at the authorization server (RFC 7009).
    async fn revoke(&self, login: &StoredLogin) -> Result<(), LoginError> {
        let what = "the revocation of a token";
        let Some(endpoint) = &login.revocation_endpoint else { return Ok(()) };
        let endpoint = self.web.url(what, endpoint)?;
        let tokens = &login.tokens;
        let (token, hint) = match &tokens.refresh_token {
            Some(token) => (token, "refresh_token"),
            None => (&tokens.access_token, "access_token"),
        };
        let form = [("token", token.reveal()), ("token_type_hint", hint)];
        let form = [&form, &*login.client.fields()].concat();
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let kind = "application/x-www-form-urlencoded".to_owned();
        let authorization = login.client.authorization().map(|it| ("authorization".to_owned(), it));
        let headers =
            [("content-type".to_owned(), kind)].into_iter().chain(authorization).collect();
        self.web.send(Method::POST, what, &endpoint, headers, body.into_bytes()).await.map(|_| ())
    }

    fn read(&self) -> Result<Option<StoredLogin>, LoginError> {
        let login = self.logins.read(&self.label, self.server.as_str())?;
        Ok(login.filter(|it: &StoredLogin| {
            self.issuer.as_ref().is_none_or(|own| is_same_issuer(own, &it.issuer))
        }))
    }
}
