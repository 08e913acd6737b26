//! A login, from the first request to the token.

use std::{fmt, future::pending, time::Duration};

use hyper::Method;
use prowess_http::StreamedResponse as Incoming;
use serde_json::{Value as Json, json};
use tokio::{sync::mpsc::UnboundedReceiver, time::timeout};
use url::Url;

use super::{
    Bearer, Challenge, LoginError,
    callback::{CallbackListener, RedirectAnswer},
    challenge::sanitize,
    device::Device,
    discovery::{
        AuthorizationServer, ProtectedResource, authorization_server, is_same_issuer,
        protected_resource,
    },
    registration::RegisteredClient,
    secret::Secret,
    token::{self, Tokens},
    token_file::{LoginState, StoredLogin},
};
use crate::config::OauthSettings;

/// An instruction to the person who logs in.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoginPrompt<'p> {
    /// Open this URL in a browser on this machine.
    Browser {
        /// The URL.
        url: &'p str,
        /// The authorization server.
        issuer: &'p str,
        /// Whether the page is on another host than the authorization server.
        is_elsewhere: bool,
    },
    /// Enter a code at this URL, on any device.
    Device {
        /// The URL.
        url: &'p str,
        /// The URL with the code in it, if there is one.
        complete: Option<&'p str>,
        /// The code.
        code: &'p str,
        /// The authorization server.
        issuer: &'p str,
    },
    /// A redirect of another login arrived, and was rejected.
    Stranger,
    /// The server requires more scopes than it listed first.
    MoreScopes {
        /// All of them.
        scopes: &'p str,
    },
}

/// Options for a login.
pub struct LoginRequest<'r> {
    /// Whether to enter a code on any device, instead of using a browser on this machine.
    pub is_device: bool,
    /// Additional scopes to request.
    pub scopes: Vec<String>,
    /// Lines that a person pastes: the URL in a browser on another machine.
    pub pasted: Option<UnboundedReceiver<String>>,
    /// Shows an instruction to the person.
    pub prompt: &'r (dyn Fn(LoginPrompt<'_>) + Sync),
}

/// A login to perform.
pub(in crate::client) struct LoginJob {
    pub(in crate::client) bearer: Bearer,
    pub(in crate::client) settings: OauthSettings,
    /// The headers of every request to the server.
    pub(in crate::client) headers: Vec<(String, String)>,
}

/// The timeout for the person.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
const SERVER: &str = "an answer of the server";
/// The revision of MCP for the request that checks whether a token is required.
const VERSION: &str = "2025-11-25";

impl LoginJob {
    /// Logs in, and saves the tokens.
    pub(in crate::client) async fn run(
        &self,
        mut request: LoginRequest<'_>,
    ) -> Result<LoginState, LoginError> {
        let Bearer { web, server, label, logins, .. } = &self.bearer;
        // Checked first, so that nobody logs in for tokens that cannot be saved.
        drop(logins.lock(label).await?);
        let (status, challenge) = self.probe(None).await?;
        let is_refused = matches!(status, 401 | 403);
        let (resource, is_own_word) = protected_resource(web, server, &challenge).await?;
        let issuer = self.issuer(&resource)?;
        let found = authorization_server(web, issuer).await?;
        let authority = found.ok_or(match (is_refused, is_own_word) {
            (_, true) => LoginError::Malformed {
                what: "the authorization server",
                why: format!("`{}` has no metadata", sanitize(issuer)),
            },
            (true, false) => LoginError::NotOffered,
            (false, false) => LoginError::NotNeeded,
        })?;
        let mut scopes = self.scopes(&challenge, &resource, &authority, &request.scopes);
        // Scopes that were granted before are requested again.
        if let Ok(Some(before)) = self.bearer.state()
            && is_same_issuer(&before.issuer, &authority.issuer)
        {
            add_scopes(&mut scopes, &before.scopes.join(" "));
        }
        let mut login = self.log_in(&authority, &resource, &scopes, &mut request).await?;
        // Some servers only now list the scopes that they need.
        let token = &login.tokens.access_token;
        match self.probe(Some(token)).await? {
            (403, challenge) if challenge.wants_scope() => {
                let before = scopes.len();
                add_scopes(&mut scopes, &challenge.scope.unwrap_or_default());
                if scopes.len() == before {
                    return Err(LoginError::TokenRefused { status: 403 });
                }
                (request.prompt)(LoginPrompt::MoreScopes { scopes: &scopes.join(" ") });
                login = self.log_in(&authority, &resource, &scopes, &mut request).await?;
            }
            (401, _) => return Err(LoginError::TokenRefused { status: 401 }),
            _ => {}
        }
        let _lock = logins.lock(label).await?;
        logins.write(label, &login)?;
        Ok(login.state())
    }

    /// Returns the authorization server to use: the one in the settings, if the server names it,
    /// else the first.
    fn issuer<'r>(&self, resource: &'r ProtectedResource) -> Result<&'r str, LoginError> {
        let named = &resource.issuers;
        let Some(own) = &self.settings.issuer else { return Ok(&named[0]) };
        match named.iter().find(|it| is_same_issuer(it, own)) {
            Some(issuer) => Ok(issuer),
            None => {
                let (wanted, found) = (own.clone(), sanitize(&named[0]));
                Err(LoginError::UnlistedIssuer { wanted, found })
            }
        }
    }

    /// Returns the scopes to request: those in the settings, else those in the challenge, else all
    /// that the server lists.
    fn scopes(
        &self,
        challenge: &Challenge,
        resource: &ProtectedResource,
        authority: &AuthorizationServer,
        more: &[String],
    ) -> Vec<String> {
        let mut scopes = Vec::new();
        match &challenge.scope {
            _ if !self.settings.scopes.is_empty() => {
                add_scopes(&mut scopes, &self.settings.scopes.join(" "));
            }
            Some(scope) => add_scopes(&mut scopes, scope),
            None => add_scopes(&mut scopes, &resource.scopes.join(" ")),
        }
        add_scopes(&mut scopes, &more.join(" "));
        if authority.has_offline_access && !scopes.is_empty() {
            add_scopes(&mut scopes, "offline_access");
        }
        scopes
    }

    async fn log_in(
        &self,
        authority: &AuthorizationServer,
        resource: &ProtectedResource,
        scopes: &[String],
        request: &mut LoginRequest<'_>,
    ) -> Result<StoredLogin, LoginError> {
        let (client, tokens) = match request.is_device {
            true => self.by_device(authority, resource, scopes, request).await?,
            false => self.by_browser(authority, resource, scopes, request).await?,
        };
        Ok(StoredLogin {
            server: self.bearer.server.to_string(),
            resource: resource.resource.clone(),
            issuer: authority.issuer.clone(),
            token_endpoint: authority.token.to_string(),
            revocation_endpoint: authority.revocation.as_ref().map(Url::to_string),
            client,
            tokens,
        })
    }

    async fn by_browser(
        &self,
        authority: &AuthorizationServer,
        resource: &ProtectedResource,
        scopes: &[String],
        request: &mut LoginRequest<'_>,
    ) -> Result<(RegisteredClient, Tokens), LoginError> {
        let web = &self.bearer.web;
        let Some(page) = &authority.authorization else {
            return Err(LoginError::NoBrowserFlow { issuer: authority.issuer.clone() });
        };
        if !authority.has_s256 {
            return Err(LoginError::NoPkce { issuer: authority.issuer.clone() });
        }
        let listener = CallbackListener::new(self.settings.redirect_uri.as_deref()).await?;
        let client = self.client(authority, Some(listener.redirect())).await?;
        let (state, verifier) = (Secret::random()?, Secret::random()?);
        let mut page = page.clone();
        page.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", listener.redirect())
            .append_pair("state", state.reveal())
            .append_pair("code_challenge", &verifier.challenge())
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &resource.resource);
        if !scopes.is_empty() {
            page.query_pairs_mut().append_pair("scope", &scopes.join(" "));
        }
        if scopes.iter().any(|it| it == "offline_access") {
            // OpenID Connect issues no refresh token otherwise.
            page.query_pairs_mut().append_pair("prompt", "consent");
        }
        let issuer = &authority.issuer;
        let is_elsewhere = Url::parse(issuer).is_ok_and(|it| it.host() != page.host());
        (request.prompt)(LoginPrompt::Browser { url: page.as_str(), issuer, is_elsewhere });
        let stranger = || (request.prompt)(LoginPrompt::Stranger);
        let came = async {
            tokio::select! {
                answer = listener.wait(&state, &stranger) => answer,
                answer = wait_for_pasted(&mut request.pasted, &state, &stranger) => answer,
            }
        };
        let answer = timeout(PATIENCE, came)
            .await
            .map_err(|_| LoginError::TooLate { minutes: PATIENCE.as_secs() / 60 })?;
        let code = check_answer(answer, authority)?;
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code.reveal()),
            ("redirect_uri", listener.redirect()),
            ("code_verifier", verifier.reveal()),
            ("resource", &resource.resource),
        ];
        let tokens = token::request(web, &authority.token, &client, &grant, scopes).await?;
        Ok((client, tokens))
    }

    async fn by_device(
        &self,
        authority: &AuthorizationServer,
        resource: &ProtectedResource,
        scopes: &[String],
        request: &LoginRequest<'_>,
    ) -> Result<(RegisteredClient, Tokens), LoginError> {
        let web = &self.bearer.web;
        let endpoint = authority
            .device
            .as_ref()
            .ok_or_else(|| LoginError::NoDeviceFlow { issuer: authority.issuer.clone() })?;
        let client = self.client(authority, None).await?;
        let device = Device::new(web, endpoint, &client, &resource.resource, scopes).await?;
        (request.prompt)(LoginPrompt::Device {
            url: device.url.as_str(),
            complete: device.complete.as_ref().map(Url::as_str),
            code: &device.user_code,
            issuer: &authority.issuer,
        });
        let tokens = device.wait(web, authority, &client, &resource.resource, scopes).await?;
        Ok((client, tokens))
    }

    /// Returns the client in the settings, else registers one.
    async fn client(
        &self,
        authority: &AuthorizationServer,
        redirect: Option<&str>,
    ) -> Result<RegisteredClient, LoginError> {
        let OauthSettings { client_id, client_secret, .. } = &self.settings;
        match client_id {
            Some(id) => {
                Ok(RegisteredClient::configured(id.clone(), client_secret.clone(), authority))
            }
            None => RegisteredClient::register(&self.bearer.web, authority, redirect).await,
        }
    }

    /// Requests a session and the tools of the server, to get its challenge. Some servers let
    /// everybody start a session. It is ended at once.
    async fn probe(&self, token: Option<&Secret>) -> Result<(u16, Challenge), LoginError> {
        let begin = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": VERSION,
                "capabilities": {},
                "clientInfo": { "name": "prowess", "version": env!("CARGO_PKG_VERSION") },
            },
        });
        let begun = self.ask(Method::POST, &[], token, &begin).await?;
        if matches!(begun.status, 401 | 403) {
            return Ok((begun.status, Challenge::of(&begun)));
        }
        let session = begun.header("mcp-session-id").map(|it| ("mcp-session-id", it));
        let more: Vec<_> = [("mcp-protocol-version", VERSION)].into_iter().chain(session).collect();
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} });
        let listed = self.ask(Method::POST, &more, token, &list).await?;
        if session.is_some() {
            // It would expire later anyway.
            let _ = self.ask(Method::DELETE, &more, token, &Json::Null).await;
        }
        let answer = if matches!(listed.status, 401 | 403) { listed } else { begun };
        Ok((answer.status, Challenge::of(&answer)))
    }

    /// Sends a message to the server, and waits for the head of its answer.
    async fn ask(
        &self,
        method: Method,
        more: &[(&str, &str)],
        token: Option<&Secret>,
        message: &Json,
    ) -> Result<Incoming, LoginError> {
        let mut headers = self.headers.clone();
        headers.extend(
            token.map(|it| ("authorization".to_owned(), format!("Bearer {}", it.reveal()))),
        );
        let own = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let own = more.iter().chain(&own);
        headers.extend(own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let body = if message.is_null() { Vec::new() } else { message.to_string().into_bytes() };
        let Bearer { web, server, .. } = &self.bearer;
        web.send(method, SERVER, server, headers, body).await
    }
}

impl fmt::Debug for LoginRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_device, scopes, .. } = self;
        f.debug_struct("LoginRequest")
            .field("is_device", is_device)
            .field("scopes", scopes)
            .finish_non_exhaustive()
    }
}

/// Returns the code in an answer, if it is from the right authorization server.
fn check_answer(
    answer: RedirectAnswer,
    authority: &AuthorizationServer,
) -> Result<Secret, LoginError> {
    match &answer.issuer {
        Some(found) if *found != authority.issuer => {
            let (wanted, found) = (authority.issuer.clone(), sanitize(found));
            return Err(LoginError::OtherIssuer { wanted, found });
        }
        None if authority.names_itself => return Err(LoginError::NoIssuer),
        _ => {}
    }
    if let Some(error) = answer.error {
        let description = answer.error_description.map(|it| format!(": {}", sanitize(&it)));
        let error = format!("{}{}", sanitize(&error), description.unwrap_or_default());
        return Err(LoginError::Denied { error, is_over: false });
    }
    answer.code.ok_or_else(|| LoginError::Malformed {
        what: "the answer of the authorization server",
        why: "it has no code".to_owned(),
    })
}

/// Waits for a pasted answer; for ever, if nobody can paste one.
async fn wait_for_pasted(
    lines: &mut Option<UnboundedReceiver<String>>,
    state: &Secret,
    stranger: &(dyn Fn() + Sync),
) -> RedirectAnswer {
    while let Some(line) = match lines {
        Some(lines) => lines.recv().await,
        None => None,
    } {
        match RedirectAnswer::parse_pasted(&line, state) {
            Some(answer) => return answer,
            None if line.trim().is_empty() => {}
            None => stranger(),
        }
    }
    pending().await
}

/// Adds the scopes in a text.
fn add_scopes(scopes: &mut Vec<String>, text: &str) {
    for scope in super::challenge::scopes(text) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
}
