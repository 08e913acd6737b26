//! Tokens and token requests.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::{
    LoginError,
    challenge::scopes,
    registration::RegisteredClient,
    secret::Secret,
    web::{Document, Web, denial, required_text, text},
};

/// The tokens that an authorization server issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub(super) access_token: Secret,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<Secret>,
    /// The expiry time in seconds since 1970; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// The granted scopes, as far as known.
    pub(super) scope: Vec<String>,
}

const WHAT: &str = "a token";
/// The time before its expiry at which a token is renewed, so that it is valid on arrival, in
/// seconds.
const MARGIN: u64 = 10;

/// Requests tokens with a grant.
pub(super) async fn request(
    web: &Web,
    endpoint: &Url,
    client: &RegisteredClient,
    grant: &[(&str, &str)],
    scope: &[String],
) -> Result<Tokens, LoginError> {
    let form = [grant, &client.fields()].concat();
    let (status, answer) = web.post_form(WHAT, endpoint, client.authorization(), &form).await?;
    match status {
        // GitHub also uses this status for errors.
        200 if !answer.contains_key("error") => Tokens::read(&answer, scope),
        status => Err(denial(status, WHAT, &answer)),
    }
}

impl Tokens {
    /// Parses the answer to a request for these scopes.
    fn read(answer: &Document, asked: &[String]) -> Result<Self, LoginError> {
        let bad = |why: &str| LoginError::Malformed { what: WHAT, why: why.to_owned() };
        let access = required_text(WHAT, answer, "access_token")?;
        if !access.bytes().all(|it| it.is_ascii_graphic()) {
            return Err(bad("it has characters that a header cannot have"));
        }
        if !required_text(WHAT, answer, "token_type")?.eq_ignore_ascii_case("bearer") {
            return Err(bad("it is not a Bearer token"));
        }
        let lifetime = match answer.get("expires_in") {
            None | Some(Value::Null) => None,
            // Some servers send the number as a string.
            Some(Value::String(text)) => {
                Some(text.parse().map_err(|_| bad("`expires_in` is not a number"))?)
            }
            Some(value) => Some(value.as_u64().ok_or_else(|| bad("`expires_in` is not a number"))?),
        };
        let granted = text(WHAT, answer, "scope")?;
        Ok(Self {
            access_token: Secret::new(access),
            refresh_token: text(WHAT, answer, "refresh_token")?.map(Secret::new),
            expires_at: lifetime.map(|it: u64| now().saturating_add(it)),
            scope: granted.map_or_else(|| asked.to_vec(), scopes),
        })
    }

    /// Whether it has expired, or is about to.
    pub(super) fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|it| it <= now().saturating_add(MARGIN))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}
