//! The OAuth client: registered manually, or dynamically (RFC 7591).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::form_urlencoded::byte_serialize;

use super::{
    LoginError,
    discovery::AuthorizationServer,
    secret::Secret,
    web::{Web, denial, required_text, text},
};

/// A client that is registered with an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RegisteredClient {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Secret>,
    method: Method,
}

/// The authentication method of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    None,
    ClientSecretBasic,
    ClientSecretPost,
}

const WHAT: &str = "the registration of a client";

impl RegisteredClient {
    /// Creates a manually registered client.
    pub(super) fn configured(
        id: String,
        secret: Option<String>,
        server: &AuthorizationServer,
    ) -> Self {
        let method = match &secret {
            None => Method::None,
            Some(_) if server.supports(Method::ClientSecretBasic) => Method::ClientSecretBasic,
            Some(_) => Method::ClientSecretPost,
        };
        Self { id, secret: secret.map(Secret::new), method }
    }

    /// Registers a client.
    pub(super) async fn register(
        web: &Web,
        server: &AuthorizationServer,
        redirect: Option<&str>,
    ) -> Result<Self, LoginError> {
        let Some(url) = &server.registration else {
            return Err(LoginError::NoRegistration { issuer: server.issuer.clone() });
        };
        let method = [Method::None, Method::ClientSecretPost, Method::ClientSecretBasic];
        let method = method.into_iter().find(|it| server.supports(*it)).unwrap_or(Method::None);
        let grant = if redirect.is_some() { "authorization_code" } else { super::device::GRANT };
        let mut client = json!({
            "client_name": "Prowess",
            "application_type": "native",
            "token_endpoint_auth_method": method,
            "grant_types": [grant, "refresh_token"],
            "response_types": [],
            "redirect_uris": [],
        });
        if let Some(redirect) = redirect {
            client["response_types"] = json!(["code"]);
            client["redirect_uris"] = json!([redirect]);
        }
        let (status, answer) = web.post_json(WHAT, url, &client).await?;
        if !matches!(status, 200 | 201) {
            return Err(denial(status, WHAT, &answer));
        }
        let secret = text(WHAT, &answer, "client_secret")?.map(Secret::new);
        let method = match (&secret, text(WHAT, &answer, "token_endpoint_auth_method")?) {
            (None, _) | (_, Some("none")) => Method::None,
            (_, Some("client_secret_post")) => Method::ClientSecretPost,
            (_, None | Some("client_secret_basic")) => Method::ClientSecretBasic,
            _ => {
                let why = "it requires an unknown authentication method".to_owned();
                return Err(LoginError::Malformed { what: WHAT, why });
            }
        };
        Ok(Self { id: required_text(WHAT, &answer, "client_id")?.to_owned(), secret, method })
    }

    /// Returns the header with its credentials.
    pub(super) fn authorization(&self) -> Option<String> {
        let secret = self.secret.as_ref().filter(|_| self.method == Method::ClientSecretBasic)?;
        let [id, secret] = [&*self.id, secret.reveal()]
            .map(|it| byte_serialize(it.as_bytes()).collect::<String>());
        Some(format!("Basic {}", BASE64_STANDARD.encode(format!("{id}:{secret}"))))
    }

    /// Returns the form fields with its credentials.
    pub(super) fn fields(&self) -> Vec<(&str, &str)> {
        let id = ("client_id", &*self.id);
        match (self.method, &self.secret) {
            (Method::ClientSecretBasic, _) => Vec::new(),
            (Method::ClientSecretPost, Some(secret)) => {
                vec![id, ("client_secret", secret.reveal())]
            }
            _ => vec![id],
        }
    }
}

impl AuthorizationServer {
    fn supports(&self, method: Method) -> bool {
        let word = match method {
            Method::None => "none",
            Method::ClientSecretBasic => "client_secret_basic",
            Method::ClientSecretPost => "client_secret_post",
        };
        self.methods.as_ref().is_none_or(|it| it.iter().any(|it| it == word))
    }
}
